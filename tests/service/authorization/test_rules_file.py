"""The accesses that a file of rules in Trino's form allows, and the errors of a broken file."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from metastore import idl
from metastore.config import Config
from metastore.errors import MetaError
from metastore.service.authorization.rules_file import RulesFile
from metastore.service.authorizer import (  # fmt: skip
    ALTER,
    CATALOG,
    CREATE,
    DATABASE,
    DROP,
    FUNCTION,
    INSERT,
    LOCATION,
    SEE,
    SELECT,
    SERVER,
    TABLE,
    USE,
    Access,
    Who,
)
from metastore.service.catalog.catalogs import create_startup_objects
from tests.service.authorization.callers import Caller, refusal, table
from tests.support.catalog.catalog import MetastoreMaker

BOB = Who("bob", ("staff",))


def rules(folder: Path, **lists: Any) -> RulesFile:
    file = folder / "rules.json"
    file.write_text(json.dumps(lists))
    return RulesFile(Config(authorization_file=str(file), admin_users=("root",)))


def may(
    made: RulesFile, privilege: str, kind: str, database: str | None = None, name: str | None = None, who: Who = BOB, **more: Any
) -> bool:
    return made.allowed(who, [Access(privilege, kind, "hive", database, name, **more)])[0]


def test_the_first_rule_that_fits_decides(tmp_path: Path) -> None:
    made = rules(
        tmp_path,
        tables=[
            {"user": "eve", "privileges": []},
            {"schema": "shop", "table": "secret.*", "privileges": []},
            {"group": "staff", "schema": "shop", "privileges": ["SELECT"]},
            {"schema": "shop", "privileges": ["SELECT", "INSERT", "OWNERSHIP"]},
        ],
    )
    assert may(made, SELECT, TABLE, "shop", "orders")
    assert not may(made, INSERT, TABLE, "shop", "orders")
    assert may(made, INSERT, TABLE, "shop", "orders", Who("carl"))
    assert not may(made, SEE, TABLE, "shop", "secrets", Who("carl"))
    assert may(made, SEE, TABLE, "shop", "a_secret", Who("carl"))  # an expression fits the whole name
    assert not may(made, SEE, TABLE, "shop", "orders", Who("eve"))
    assert not may(made, SEE, TABLE, "other", "t")


def test_a_missing_list_allows_and_an_empty_one_refuses(tmp_path: Path) -> None:
    assert may(rules(tmp_path), DROP, TABLE, "shop", "t")
    assert may(rules(tmp_path), DROP, DATABASE, "shop")
    assert not may(rules(tmp_path, tables=[]), SEE, TABLE, "shop", "t")
    assert not may(rules(tmp_path, schemas=[]), DROP, DATABASE, "shop")
    assert not may(rules(tmp_path, schemas=[], tables=[]), SEE, DATABASE, "shop")
    assert not may(rules(tmp_path), SEE, FUNCTION, "shop", "f")


def test_a_catalog_can_be_closed_or_read_only(tmp_path: Path) -> None:
    made = rules(tmp_path, catalogs=[{"user": "bob", "catalog": "hive", "allow": "read-only"}, {"user": "carl", "allow": True}])
    assert may(made, SELECT, TABLE, "shop", "t")
    assert not may(made, INSERT, TABLE, "shop", "t")
    assert may(made, INSERT, TABLE, "shop", "t", Who("carl"))
    assert not may(made, SEE, CATALOG, who=Who("eve"))


def test_ownership_of_schemas_and_tables(tmp_path: Path) -> None:
    made = rules(
        tmp_path,
        schemas=[{"user": "bob", "schema": "bobs", "owner": True}],
        tables=[{"user": "bob", "schema": "bobs", "table": "mine.*", "privileges": ["OWNERSHIP", "GRANT_SELECT"]}],
        functions=[{"user": "bob", "schema": "bobs", "function": "f", "privileges": ["EXECUTE"]}],
    )
    assert may(made, CREATE, CATALOG, "bobs")
    assert not may(made, CREATE, CATALOG, "other")
    assert may(made, DROP, DATABASE, "bobs")
    assert may(made, CREATE, DATABASE, "bobs", "mine_too")
    assert not may(made, CREATE, DATABASE, "bobs", "yours")
    assert may(made, ALTER, TABLE, "bobs", "mine")
    assert not may(made, SELECT, TABLE, "bobs", "mine")
    assert may(made, SELECT, TABLE, "bobs", "mine", grant=True)
    assert may(made, SEE, FUNCTION, "bobs", "f")
    assert not may(made, DROP, FUNCTION, "bobs", "f")
    assert may(made, SEE, DATABASE, "bobs")
    assert not may(made, "ADMINISTER", SERVER)
    assert may(made, "ADMINISTER", SERVER, who=Who("root"))


def test_a_schema_is_seen_where_a_table_could_be(tmp_path: Path) -> None:
    made = rules(
        tmp_path, schemas=[], tables=[{"schema": "shut", "privileges": []}, {"user": "bob", "table": "t", "privileges": ["SELECT"]}]
    )
    assert may(made, SEE, DATABASE, "anything")
    assert not may(made, SEE, DATABASE, "shut")
    assert not may(made, SEE, DATABASE, "anything", who=Who("eve"))


def test_locations_are_a_list_of_our_own(tmp_path: Path) -> None:
    made = rules(tmp_path, locations=[{"group": "staff", "location": "s3a://bucket/staff"}])
    assert may(made, USE, LOCATION, location="s3://bucket/staff/t")
    assert not may(made, USE, LOCATION, location="s3://bucket/staffs")
    assert not may(made, USE, LOCATION, location="s3://bucket/staff/t", who=Who("eve"))
    assert not may(rules(tmp_path), USE, LOCATION, location="s3://bucket/staff/t")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "unexpected end|end of data"),
        ("[]", "no JSON object"),
        ('{"tabels": []}', "unknown lists .*tabels"),
        ('{"tables": [{"table": "(", "privileges": []}]}', "rule 1 of tables"),
        ('{"tables": [{"privileges": ["SELCT"]}]}', "rule 1 of tables: it has the unknown privileges .*SELCT"),
        ('{"tables": [{"table": "t"}]}', "`privileges` is not a list"),
        ('{"schemas": [{"role": "x", "owner": true}]}', "rule 1 of schemas: `role`"),
        ('{"catalogs": [{"allow": "some"}]}', "rule 1 of catalogs: `allow` is 'some'"),
        ('{"locations": [{"location": "x"}]}', "rule 1 of locations: `location`"),
        ('{"schemas": [3]}', "rule 1 of schemas: it is not an object"),
    ],
)
def test_a_broken_file_stops_the_start(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "rules.json"
    file.write_text(text)
    with pytest.raises(MetaError, match=message):
        RulesFile(Config(authorization_file=str(file)))


def test_a_file_that_is_not_there_stops_the_start(tmp_path: Path) -> None:
    with pytest.raises(MetaError, match=r"authorization_file .* can not be read"):
        RulesFile(Config(authorization_file=str(tmp_path / "none.json")))
    with pytest.raises(MetaError, match="needs the setting authorization_file"):
        RulesFile(Config())


def test_a_changed_file_is_read_again_and_a_broken_one_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("metastore.service.authorization.rules_file.LOOK_AGAIN", 0.0)
    made = rules(tmp_path, tables=[])
    assert not may(made, SEE, TABLE, "shop", "t")
    file = tmp_path / "rules.json"
    for text, allowed in (('{"tables": [{"privileges": ["SELECT"]}]}', True), ("{", True), ('{"tables": [ ]}', False)):
        file.write_text(text)
        os.utime(file, ns=(len(text), len(text)))
        assert may(made, SEE, TABLE, "shop", "t") is allowed
    file.unlink()
    assert not may(made, SEE, TABLE, "shop", "t")


def test_a_server_goes_by_the_file(make_metastore: MetastoreMaker, tmp_path: Path) -> None:
    file = tmp_path / "rules.json"
    file.write_text(json.dumps({"schemas": [], "tables": [{"user": "bob", "table": "t", "privileges": ["SELECT"]}]}))
    server = make_metastore(authorization="file", authorization_file=str(file), admin_users=("root",))
    from metastore.service.catalog.catalogs import create_startup_objects

    create_startup_objects(server)
    root, bob = Caller(server, "root"), Caller(server, "bob")
    root.create_database(idl.Database(name="shop"))
    for name in ("t", "u"):
        root.create_table(table("shop", name))
    assert bob.get_all_databases() == ["default", "shop"]
    assert bob.get_all_tables("shop") == ["t"]
    with pytest.raises(MetaError, match="DROPTABLE"):
        bob.drop_table("shop", "t", True)
    assert Caller(server, "eve").get_all_databases() == ["default"]


def test_a_table_is_made_and_renamed_by_who_owns_its_name(tmp_path: Path, make_metastore: MetastoreMaker) -> None:
    file = tmp_path / "rules.json"
    lists = {
        "schemas": [{"user": "bob", "schema": "bobs", "owner": True}],
        "tables": [
            {"schema": "bobs", "table": "secret_.*", "privileges": []},
            {"user": "bob", "schema": "bobs", "privileges": ["SELECT", "OWNERSHIP"]},
            {"user": "bob", "schema": "shop", "table": "mine.*", "privileges": ["SELECT", "OWNERSHIP"]},
        ],
    }
    file.write_text(json.dumps(lists))
    server = make_metastore(authorization="file", authorization_file=str(file), admin_users=("root",))
    create_startup_objects(server)
    root, bob = Caller(server, "root"), Caller(server, "bob")
    for name in ("bobs", "shop"):
        root.create_database(idl.Database(name=name))
    for database, name in (("bobs", "secret_x"), ("bobs", "SECRET_y"), ("shop", "other")):
        made = table(database, name)
        for call, args in (
            (bob.create_table, (made,)),
            (bob.create_table_req, (idl.CreateTableRequest(table=made),)),
            (bob.add_index, (_index_in(database, name), made)),
        ):
            assert "[CREATE] on Object" in refusal(call, *args)
    bob.create_table(table("bobs", "plain"))
    bob.create_table(table("shop", "mine1"))
    lock = idl.LockComponent(type=idl.LockType.EXCLUSIVE, level=2, dbname="shop", tablename="mine2")
    bob.lock(idl.LockRequest(component=[lock], txnid=0, user="bob", hostname="h"))
    lock.tablename = "other"
    assert "[CREATE] on Object" in refusal(bob.lock, idl.LockRequest(component=[lock], txnid=0, user="bob", hostname="h"))
    for new in ("SECRET_z", "fine"):
        renamed = bob.get_table("bobs", "plain")
        renamed.tableName = new
        if new == "fine":
            bob.alter_table("bobs", "plain", renamed)
        else:
            assert "[CREATE] on Object" in refusal(bob.alter_table, "bobs", "plain", renamed)
    assert root.get_all_tables("bobs") == ["fine"]


def _index_in(database: str, name: str) -> Any:
    return idl.Index(indexName="i", dbName=database, origTableName="plain", indexTableName=name, sd=table(database, name).sd, parameters={})
