"""Names of tables in texts and how they are judged: the sources of materialized views, and names that contain dots."""

from __future__ import annotations

from typing import Any

import pytest

from metastore import idl
from metastore.errors import NoSuchObject
from tests.service.authorization.callers import As, Caller, bag, refusal, table

pytestmark = pytest.mark.on_one_database


def view(name: str, *used: str, source: str | None = None, database: str = "default") -> Any:
    """Return a materialized view made from tables that texts name, and from one that a struct names."""
    made = table(database, name)
    made.tableType, made.viewOriginalText, made.viewExpandedText = "MATERIALIZED_VIEW", "select 1", "select 1"
    made.creationMetadata = idl.CreationMetadata(catName="hive", dbName=database, tblName=name, tablesUsed=list(used))
    if source is not None:
        named = idl.Table(dbName="shop", tableName=source, catName="hive")
        made.creationMetadata.sourceTables = [idl.SourceTable(table=named, insertedCount=0, updatedCount=0, deletedCount=0)]
    return made


def missing(call: Any, *args: Any) -> str:
    with pytest.raises(NoSuchObject) as caught:
        call(*args)
    return caught.value.message.replace("lost", "orders").replace("gone", "shop")


def test_a_view_has_no_source_that_is_missing_or_hidden(root: Caller, as_user: As) -> None:
    eve = as_user("eve")
    messages = {missing(eve.create_table, view("v", text)) for text in ("shop.orders", "shop.lost", "gone.orders", "hive.shop.orders")}
    messages |= {missing(eve.create_table, view("v", source=name)) for name in ("orders", "lost")}
    messages.add(missing(eve.create_table_req, idl.CreateTableRequest(table=view("v", "shop.orders"))))
    eve.create_table(table("default", "plain"))
    eve.create_table(view("mine", "default.plain"))
    made = eve.get_table("default", "mine")
    for text in ("shop.orders", "shop.lost"):
        other = eve.get_table("default", "mine")
        other.creationMetadata.tablesUsed = ["default.plain", text]
        messages.add(missing(eve.alter_table, "default", "mine", other))
        messages.add(missing(eve.update_creation_metadata, "hive", "default", "mine", other.creationMetadata))
    assert messages == {"hive.shop.orders table not found: name tables that are there and that you may read"}
    assert eve.get_table("default", "mine") == made
    assert "v" not in root.get_all_tables("default")


def test_a_user_who_sees_a_source_but_may_not_read_it_is_refused(root: Caller, as_user: As) -> None:
    root.grant_privileges(bag("INSERT", "eve", dbName="shop", objectName="orders"))
    assert "[SELECT] on Object [type=TABLE_OR_VIEW, name=shop.orders]" in refusal(as_user("eve").create_table, view("v", "shop.orders"))


def test_no_view_is_in_the_way_of_a_later_object(root: Caller, as_user: As) -> None:
    with pytest.raises(NoSuchObject):
        as_user("eve").create_table(view("squat", "later.t"))
    root.create_database(idl.Database(name="later", ownerName="olga"))
    root.create_table(table("later", "t", "olga"))
    as_user("olga").drop_table("later", "t", True)
    root.drop_database("later", True, True)


def test_a_view_is_altered_by_who_does_not_read_its_sources(root: Caller, as_user: As) -> None:
    root.grant_privileges(bag("SELECT", "eve", dbName="shop", objectName="orders"))
    eve = as_user("eve")
    eve.create_table(view("v", "shop.orders", source="orders"))
    root.revoke_privileges(bag("SELECT", "eve", dbName="shop", objectName="orders"))
    changed = eve.get_table("default", "v")
    changed.parameters["comment"] = "x"
    eve.alter_table("default", "v", changed)
    for call, args in ((as_user("olga").drop_table, ("shop", "orders", True)), (root.drop_database, ("shop", True, True))):
        message = refusal(call, *args)
        assert "used in 1 materialized views" in message
        assert "default.v" not in message


@pytest.fixture
def dotted(root: Caller, as_user: As) -> Caller:
    """Bob, who may do everything with rows of `shop.orders` and nothing with `shop."orders.2024"`."""
    root.create_table(table("shop", "orders.2024", "olga"))
    root.grant_privileges(bag("INSERT,UPDATE,DELETE,SELECT", "bob", dbName="shop", objectName="orders"))
    return as_user("bob")


def test_a_lock_is_on_the_table_of_the_whole_name(dotted: Caller, as_user: As) -> None:
    def lock(caller: Caller, name: str) -> Any:
        component = idl.LockComponent(type=idl.LockType.EXCLUSIVE, level=2, dbname="shop", tablename=name)
        return caller.lock(idl.LockRequest(component=[component], txnid=0, user="x", hostname="h"))

    assert "[CREATE] on Object [type=DATABASE, name=shop]" in refusal(lock, dotted, "Orders.2024")
    lock(dotted, "orders.files")
    lock(as_user("olga"), "orders.2024")
    assert [each.tablename for each in dotted.show_locks(idl.ShowLocksRequest()).locks] == ["orders.files"]
    assert len(as_user("olga").show_locks(idl.ShowLocksRequest()).locks) == 2


def test_a_source_with_dots_is_judged_by_each_possible_meaning(dotted: Caller) -> None:
    with pytest.raises(NoSuchObject, match=r"hive\.shop\.orders\.2024 table not found"):
        dotted.create_table(view("v", "shop.orders.2024"))
    with pytest.raises(NoSuchObject, match="table not found"):
        dotted.create_table(view("v", "shop.orders.2025"))
    dotted.create_table(view("v", "shop.orders", "hive.shop.orders"))


def test_an_index_takes_no_table_of_another_by_a_name_with_dots(root: Caller, as_user: As) -> None:
    root.create_database(idl.Database(name="a.b", ownerName="olga"))
    hers = table("a.b", "c", "olga")
    hers.tableType = "INDEX_TABLE"
    root.create_table(hers)
    root.create_database(idl.Database(name="bobs", ownerName="bob"))
    bob = as_user("bob")
    bob.create_table(table("bobs", "own"))
    index = idl.Index(indexName="i", dbName="bobs", origTableName="own", indexTableName="a.b.c", sd=hers.sd, parameters={})
    assert "[CREATE] on Object [type=DATABASE, name=a.b]" in refusal(bob.add_index, index, None)
