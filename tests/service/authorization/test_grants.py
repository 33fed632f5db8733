"""The accesses that stored roles and privileges allow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from thriftpy2.thrift import TApplicationException

from metastore import idl
from metastore.errors import InvalidObject, InvalidOperation, NoSuchObject, PermissionDenied, UnknownDatabase
from metastore.service.authorization import decision, grants
from metastore.service.call.context import Metastore
from metastore.store.schema.model import tables
from tests.service.authorization.callers import GROUP, ROLE, USER, As, Caller, bag, refusal, table

pytestmark = pytest.mark.on_one_database


def test_a_user_without_grants_sees_nothing(root: Caller, as_user: As) -> None:
    bob = as_user("bob")
    assert bob.get_all_databases() == ["default"]
    with pytest.raises(NoSuchObject, match=r"There is no database hive\.shop"):
        bob.get_database("shop")
    with pytest.raises(NoSuchObject, match=r"hive\.shop\.orders table not found"):
        bob.get_table("shop", "orders")
    assert bob.get_all_tables("shop") == []


def test_a_caller_without_a_name_has_no_rights(root: Caller, as_user: As) -> None:
    root.grant_privileges(bag("SELECT", "public", ROLE, dbName="shop"))
    assert as_user(None).get_all_databases() == ["default"]


def test_the_owner_of_a_table_may_do_everything_with_it(root: Caller, as_user: As) -> None:
    olga = as_user("olga")
    assert olga.get_all_databases() == ["default", "shop"]
    assert olga.get_all_tables("shop") == ["orders", "prices"]
    olga.grant_privileges(bag("SELECT", "bob", dbName="shop", objectName="orders"))
    assert as_user("bob").get_table("shop", "orders").tableName == "orders"
    olga.revoke_privileges(bag("SELECT", "bob", dbName="shop", objectName="orders"))
    with pytest.raises(NoSuchObject):
        as_user("bob").get_table("shop", "orders")
    olga.drop_table("shop", "orders", True)
    assert root.get_all_tables("shop") == ["prices"]


def test_a_missing_privilege_is_reported_as_hive_does(root: Caller, as_user: As) -> None:
    root.grant_privileges(bag("SELECT", "bob", dbName="shop", objectName="orders"))
    assert refusal(as_user("bob").drop_table, "shop", "orders", True) == (
        "Permission denied: Principal [name=bob, type=USER] does not have following privileges for operation DROPTABLE "
        "[[OBJECT OWNERSHIP] on Object [type=TABLE_OR_VIEW, name=shop.orders]]"
    )
    assert "[SELECT]" not in refusal(as_user("bob").append_partition, "shop", "orders", ["v"])
    assert root.get_all_tables("shop") == ["orders", "prices"]


def test_a_privilege_on_a_database_holds_for_its_tables(root: Caller, as_user: As) -> None:
    bob = as_user("bob")
    root.grant_privileges(bag("SELECT", "bob", dbName="shop"))
    assert bob.get_all_tables("shop") == ["orders", "prices"]
    root.create_table(table("shop", "later", "root"))
    assert bob.get_table("shop", "later").tableName == "later"
    assert "[CREATE] on Object [type=DATABASE, name=shop]" in refusal(bob.create_table, table("shop", "orders"))


def test_the_right_to_create_shows_the_database_and_ones_own_objects(root: Caller, as_user: As) -> None:
    bob = as_user("bob")
    root.grant_privileges(bag("CREATE", "bob", dbName="shop"))
    assert bob.get_all_databases() == ["default", "shop"]
    assert bob.get_all_tables("shop") == []
    bob.create_table(table("shop", "mine", "bob"))
    assert bob.get_all_tables("shop") == ["mine"]


def test_a_new_object_belongs_to_its_maker_or_a_role_of_the_maker(root: Caller, as_user: As) -> None:
    root.create_role(idl.Role(roleName="staff"))
    root.grant_role("staff", "bob", USER, "root", USER, False)
    root.grant_privileges(bag("CREATE", "bob"))
    bob = as_user("bob")
    bob.create_database(idl.Database(name="bobs", ownerName="olga"))
    assert bob.get_database("bobs").ownerName == "bob"
    for name, owner, kind, stored in (
        ("a", None, None, ("bob", USER)),
        ("b", "olga", USER, ("bob", USER)),
        ("c", "staff", ROLE, ("staff", ROLE)),
        ("d", "admin", ROLE, ("bob", USER)),
    ):
        made = table("bobs", name, owner)
        made.ownerType = kind
        bob.create_table(made)
        found = root.get_table("bobs", name)
        assert (found.owner, found.ownerType) == stored


def test_select_on_a_column_lets_the_table_be_read(root: Caller, as_user: As) -> None:
    root.grant_privileges(bag("SELECT", "bob", dbName="shop", objectName="orders", columnName="a"))
    bob = as_user("bob")
    assert bob.get_all_tables("shop") == ["orders"]
    assert bob.get_aggr_stats_for(idl.PartitionsStatsRequest("shop", "orders", ["a"], ["k=1"])).partsFound == 0
    assert "INSERT" in refusal(bob.append_partition, "shop", "orders", ["v"])


def test_a_role_has_the_privileges_of_the_roles_in_it(root: Caller, as_user: As) -> None:
    for role in ("readers", "staff"):
        root.create_role(idl.Role(roleName=role))
    root.grant_privileges(bag("SELECT", "readers", ROLE, dbName="shop"))
    root.grant_role("readers", "staff", ROLE, "root", USER, False)
    root.grant_role("staff", "clerks", GROUP, "root", USER, False)
    assert as_user("bob").get_all_tables("shop") == []
    assert as_user("bob", "clerks").get_all_tables("shop") == ["orders", "prices"]
    assert as_user("bob", "clerks").get_role_names() == ["public", "readers", "staff"]
    root.revoke_role("readers", "staff", ROLE)
    assert as_user("bob", "clerks").get_all_tables("shop") == []


def test_privileges_of_public_are_held_by_everybody(root: Caller, as_user: As) -> None:
    root.grant_privileges(bag("SELECT", "public", ROLE, dbName="shop", objectName="prices"))
    assert as_user("anybody").get_all_tables("shop") == ["prices"]


def test_only_with_the_option_a_privilege_can_be_granted_on(root: Caller, as_user: As) -> None:
    bob, to_carl = as_user("bob"), bag("SELECT", "carl", dbName="shop", objectName="orders")
    root.grant_privileges(bag("SELECT,INSERT", "bob", dbName="shop", objectName="orders"))
    assert "GRANT_PRIVILEGE" in refusal(bob.grant_privileges, to_carl)
    root.grant_privileges(bag("SELECT", "bob", option=True, dbName="shop"))
    bob.grant_privileges(to_carl)
    assert "GRANT_PRIVILEGE" in refusal(bob.grant_privileges, bag("INSERT", "carl", dbName="shop", objectName="orders"))
    assert "REVOKE_PRIVILEGE" in refusal(bob.revoke_privileges, bag("SELECT", "bob", dbName="shop"))


def test_a_role_can_be_granted_with_its_option(root: Caller, as_user: As) -> None:
    root.create_role(idl.Role(roleName="readers"))
    root.grant_role("readers", "bob", USER, "root", USER, True)
    as_user("bob").grant_role("readers", "carl", USER, "bob", USER, False)
    assert "GRANT_ROLE" in refusal(as_user("carl").grant_role, "readers", "dora", USER, "carl", USER, False)
    assert "GRANT_ROLE" in refusal(as_user("bob").grant_role, "admin", "bob", USER, "bob", USER, False)


def test_privileges_of_others_are_hidden(root: Caller, as_user: As) -> None:
    ref = idl.HiveObjectRef(objectType=idl.HiveObjectType.TABLE, dbName="shop", objectName="orders")
    for user in ("bob", "carl"):
        root.grant_privileges(bag("SELECT", user, dbName="shop", objectName="orders"))
    assert [each.principalName for each in as_user("bob").list_privileges(None, None, ref)] == ["bob"]
    assert [each.principalName for each in as_user("olga").list_privileges(None, None, ref)] == ["bob", "carl"]
    assert "ADMIN" in refusal(as_user("bob").get_privilege_set, ref, "carl", [])


def test_the_right_to_create_on_the_server_makes_databases(root: Caller, as_user: As) -> None:
    bob = as_user("bob")
    assert "CREATEDATABASE" in refusal(bob.create_database, idl.Database(name="shop"))
    root.grant_privileges(bag("CREATE", "bob"))
    bob.create_database(idl.Database(name="bobs"))
    bob.create_table(table("bobs", "t"))
    bob.drop_database("bobs", True, True)


def test_another_name_needs_drop_and_create(root: Caller, as_user: As) -> None:
    root.create_database(idl.Database(name="other", ownerName="root"))
    olga, moved = as_user("olga"), root.get_table("shop", "orders")
    moved.dbName = "other"
    with pytest.raises(InvalidOperation, match="Database other does not exist"):
        olga.alter_table("shop", "orders", moved)
    root.grant_privileges(bag("SELECT", "olga", dbName="other"))
    assert "[CREATE] on Object [type=DATABASE, name=other]" in refusal(olga.alter_table, "shop", "orders", moved)
    root.grant_privileges(bag("CREATE", "olga", dbName="other"))
    olga.alter_table("shop", "orders", moved)
    assert as_user("olga").get_all_tables("other") == ["orders"]


def test_an_index_takes_no_table_of_another_along(root: Caller, as_user: As) -> None:
    ann = as_user("ann")
    root.grant_privileges(bag("CREATE", "ann", dbName="shop"))
    ann.create_table(table("shop", "own"))
    hers = table("shop", "for_index", "olga")
    hers.tableType = "INDEX_TABLE"
    root.create_table(hers)
    index = idl.Index(indexName="i", dbName="shop", origTableName="own", indexTableName="for_index", sd=hers.sd, parameters={})
    for name in ("for_index", "shop.for_index"):
        index.indexTableName = name
        assert "[OBJECT OWNERSHIP] on Object [type=TABLE_OR_VIEW, name=shop.for_index]" in refusal(ann.add_index, index, None)
    index.origTableName, index.indexTableName = "orders", "new"
    new = table("shop", "new")
    with pytest.raises(InvalidObject, match="the orginal table do not exist"):
        ann.add_index(index, new)
    index.origTableName = "own"
    ann.add_index(index, new)
    assert root.get_table("shop", "new").owner == "ann"
    assert ann.get_index_names("shop", "own", -1) == ["i"]
    with pytest.raises(NoSuchObject, match=r"shop\.own index=i not found"):
        as_user("bob").drop_index_by_name("shop", "own", "i", True)
    assert ann.drop_index_by_name("shop", "own", "i", True) is True
    assert root.get_all_tables("shop") == ["for_index", "orders", "own", "prices"]


def test_the_right_to_alter_a_table_does_not_change_its_owner(root: Caller, as_user: As) -> None:
    root.grant_privileges(bag("ALTER", "bob", dbName="shop", objectName="orders"))
    taken = root.get_table("shop", "orders")
    taken.parameters["note"] = "x"
    as_user("bob").alter_table("shop", "orders", taken)
    taken.owner = "bob"
    assert "OBJECT OWNERSHIP" in refusal(as_user("bob").alter_table, "shop", "orders", taken)
    as_user("olga").alter_table("shop", "orders", taken)
    assert root.get_table("shop", "orders").owner == "bob"


def test_a_user_who_may_insert_may_count_and_move_the_snapshot_of_iceberg(root: Caller, as_user: As) -> None:
    bob = as_user("bob")
    made = table("shop", "ice", "olga")
    made.parameters = {"table_type": "ICEBERG"}
    root.create_table(made)
    for name in ("ice", "orders"):
        root.grant_privileges(bag("INSERT", "bob", dbName="shop", objectName=name))
    place = bob.get_table("shop", "ice").sd.location

    def altered(name: str, **parameters: str) -> Any:
        changed = bob.get_table("shop", name)
        changed.parameters.update(parameters)
        return changed

    bob.alter_table("shop", "orders", altered("orders", numRows="7", COLUMN_STATS_ACCURATE="{}"))
    bob.alter_table("shop", "ice", altered("ice", metadata_location=f"{place}/metadata/1.json", **{"current-snapshot-id": "1"}))
    assert "OBJECT OWNERSHIP" in refusal(bob.alter_table, "shop", "orders", altered("orders", metadata_location=f"{place}/metadata/1.json"))
    assert "OBJECT OWNERSHIP" in refusal(bob.alter_table, "shop", "ice", altered("ice", note="x"))
    for elsewhere in ("file:/tmp/elsewhere/1.json", f"{bob.get_table('shop', 'orders').sd.location}/1.json"):
        assert "DFS_URI" in refusal(bob.alter_table, "shop", "ice", altered("ice", metadata_location=elsewhere))
    wider = altered("ice", metadata_location=f"{place}/metadata/2.json")
    wider.sd.cols = [*wider.sd.cols, idl.FieldSchema(name="c", type="string")]
    assert "OBJECT OWNERSHIP" in refusal(bob.alter_table, "shop", "ice", wider)


def test_listings_over_databases_show_visible_objects(root: Caller, as_user: As) -> None:
    root.grant_privileges(bag("SELECT", "bob", dbName="shop", objectName="prices"))
    bob = as_user("bob")
    assert [(each.dbName, each.tableName) for each in bob.get_table_meta("*", "*", None)] == [("shop", "prices")]
    assert [each.tableName for each in bob.get_table_objects_by_name("shop", ["orders", "prices", "lost"])] == ["prices"]
    assert bob.get_table_names_by_filter("shop", 'hive_filter_field_owner__ like ".*"', 1) == ["prices"]


@pytest.mark.parametrize(
    ("user", "database", "found"),
    [
        ("root", "*", ["extra", "orders", "prices"]),
        ("bob", "shop", ["orders"]),
        ("bob", "*", ["orders"]),
        ("eve", "shop", []),
        ("eve", "*", []),
        ("auditor", "*", ["extra", "orders", "prices"]),
    ],
)
def test_patterns_find_no_hidden_table(root: Caller, as_user: As, user: str, database: str, found: list[str]) -> None:
    root.create_database(idl.Database(name="shop2", ownerName="root"))
    root.create_table(table("shop2", "extra", "root"))
    root.grant_privileges(bag("SELECT", "bob", dbName="shop", objectName="orders"))
    root.grant_privileges(bag("SELECT", "auditor"))
    caller = as_user(user)
    request = idl.GetTablesRequest(dbName=database, tablesPattern="*")
    try:
        shown = [each.tableName for each in caller.get_table_objects_by_name_req(request).tables]
    except UnknownDatabase:
        shown = []
    assert sorted(shown) == found


def test_tables_are_found_together_as_one_by_one(root: Caller, as_user: As, monkeypatch: pytest.MonkeyPatch) -> None:
    root.create_database(idl.Database(name="other"))
    root.create_role(idl.Role(roleName="crew"))
    root.grant_role("crew", "bob", USER, "root", USER, False)
    owned = {
        "t_user": ("bob", USER),
        "t_group": ("staff", GROUP),
        "t_role": ("crew", ROLE),
        "t_namesake": ("bob", GROUP),
        "t_of_nobody": (None, USER),
    }
    for name, (owner, kind) in owned.items():
        made = table("shop", name, owner)
        made.ownerType = kind
        root.create_table(made)
    for name in ("orders", "prices"):
        root.create_table(table("other", name, "olga"))
    root.grant_privileges(bag("INSERT", "bob", dbName="shop", objectName="orders"))
    root.grant_privileges(bag("SELECT", "crew", ROLE, dbName="shop", objectName="prices", columnName="a"))
    root.grant_privileges(bag("SELECT", "bob", dbName="other", objectName="prices"))
    bob = as_user("bob", "staff")
    expected = ["orders", "prices", "t_group", "t_role", "t_user"], ["prices"]
    assert (bob.get_tables("shop", "*"), bob.get_tables("other", "*")) == expected  # each table is asked for by itself
    assert (bob.get_all_tables("shop"), bob.get_all_tables("other")) == expected
    monkeypatch.setattr(decision, "MOST_NAMED", 0)
    assert (bob.get_tables("shop", "*"), bob.get_tables("other", "*")) == expected
    monkeypatch.setattr(grants, "MOST_LOOKED_UP", 0)
    assert (bob.get_all_tables("shop"), bob.get_all_tables("other")) == expected
    assert as_user("carl").get_all_tables("shop") == as_user("carl").get_tables("shop", "*") == []


def test_an_owner_without_a_type_is_a_user(root: Caller, as_user: As, server: Metastore) -> None:
    """Rows that were taken from a metastore before Hive 3 may lack the type."""
    root.create_table(table("shop", "old", "una"))
    untyped = sa.update(tables).where(tables.c.name == "old").values(owner_type=sa.null())
    server.database.write(lambda session: session.execute(untyped))
    assert as_user("una").get_all_databases() == ["default", "shop"]
    assert as_user("una").get_all_tables("shop") == ["old"]


def test_a_refusal_names_some_of_its_objects(root: Caller, as_user: As) -> None:
    opened = as_user("olga").open_txns(idl.OpenTxnRequest(num_txns=30, user="olga", hostname="h")).txn_ids
    with pytest.raises(PermissionDenied, match=r"and 10 more\]") as caught:
        as_user("bob").abort_txns(idl.AbortTxnsRequest(txn_ids=opened))
    assert str(caught.value.message).count("name=") == 21


def test_only_its_own_user_goes_on_with_a_transaction(root: Caller, as_user: As) -> None:
    opened = as_user("olga").open_txns(idl.OpenTxnRequest(num_txns=1, user="bob", hostname="h")).txn_ids[0]
    for method, request in (
        ("commit_txn", idl.CommitTxnRequest(txnid=opened)),
        ("abort_txn", idl.AbortTxnRequest(txnid=opened)),
        ("abort_txns", idl.AbortTxnsRequest(txn_ids=[opened])),
        ("heartbeat", idl.HeartbeatRequest(txnid=opened)),
        ("heartbeat_txn_range", idl.HeartbeatTxnRangeRequest(min=opened, max=opened)),
    ):
        with pytest.raises(Exception, match=f"OBJECT OWNERSHIP.*name={opened}"):
            getattr(as_user("bob"), method)(request)
    assert [each.id for each in as_user("bob").get_open_txns_info().open_txns] == []
    assert [each.user for each in as_user("olga").get_open_txns_info().open_txns] == ["olga"]
    as_user("olga").commit_txn(idl.CommitTxnRequest(txnid=opened))


def test_only_its_own_user_goes_on_with_a_lock(root: Caller, as_user: As) -> None:
    component = idl.LockComponent(type=idl.LockType.EXCLUSIVE, level=2, dbname="shop", tablename="orders")
    request = idl.LockRequest(component=[component], txnid=0, user="bob", hostname="h")
    held = as_user("olga").lock(request).lockid
    root.grant_privileges(bag("SELECT", "bob", dbName="shop", objectName="orders"))
    bob = as_user("bob")
    for method, of_lock in (
        ("check_lock", idl.CheckLockRequest(lockid=held)),
        ("unlock", idl.UnlockRequest(lockid=held)),
        ("heartbeat", idl.HeartbeatRequest(held)),
    ):
        with pytest.raises(Exception, match=f"OBJECT OWNERSHIP.*name={held}"):
            getattr(bob, method)(of_lock)
    with pytest.raises(Exception, match=r"INSERT.*name=shop.orders"):
        bob.lock(request)
    assert [each.user for each in bob.show_locks(idl.ShowLocksRequest()).locks] == ["olga"]
    assert as_user("eve").show_locks(idl.ShowLocksRequest()).locks == []
    as_user("olga").unlock(idl.UnlockRequest(lockid=held))


def test_a_dropped_table_leaves_no_rights_to_its_successor(root: Caller, as_user: As) -> None:
    root.grant_privileges(bag("SELECT", "bob", dbName="shop", objectName="orders"))
    root.drop_table("shop", "orders", True)
    root.create_table(table("shop", "orders", "olga"))
    with pytest.raises(NoSuchObject):
        as_user("bob").get_table("shop", "orders")
    assert as_user("bob").get_all_databases() == ["default"]


def test_in_the_database_default_everybody_creates_and_has_no_more(root: Caller, as_user: As) -> None:
    """The role public owns the database `default`, as in Hive."""
    root.create_table(table("default", "theirs", "olga"))
    bob = as_user("bob")
    bob.create_table(table("default", "mine"))
    assert bob.get_all_tables("default") == ["mine"]
    with pytest.raises(NoSuchObject):
        bob.drop_table("default", "theirs", True)
    taken = bob.get_database("default")
    taken.ownerName, taken.ownerType = "bob", USER
    assert "OBJECT OWNERSHIP" in refusal(bob.alter_database, "default", taken)
    assert "OBJECT OWNERSHIP" in refusal(bob.drop_database, "default", True, True)
    assert "SELECT" in refusal(bob.grant_privileges, bag("SELECT", "eve", dbName="default"))
    assert "OBJECT OWNERSHIP" in refusal(bob.revoke_privileges, bag("SELECT", "eve", dbName="default"))
    function = idl.Function(functionName="f", dbName="default", className="c.C", ownerName="bob", ownerType=USER, functionType=1)
    bob.create_function(function)
    assert "OBJECT OWNERSHIP" in refusal(as_user("carl").drop_function, "default", "f")
    assert root.get_all_tables("default") == ["mine", "theirs"]


@pytest.fixture
def bobs(root: Caller, as_user: As, tmp_path: Path) -> Caller:
    """Bob, who has a database, and in another catalog a database with the name of olga's."""
    root.create_catalog(idl.CreateCatalogRequest(idl.Catalog(name="other", locationUri=f"file:{tmp_path}/other")))
    for catalog, name in (("hive", "bobs"), ("other", "shop")):
        root.create_database(idl.Database(name=name, catalogName=catalog, ownerName="bob"))
    made = table("shop", "orders")
    made.catName, made.parameters = "other", {"transactional": "true", "transactional_properties": "insert_only"}
    bob = as_user("bob")
    bob.create_table(made)
    return bob


def test_a_foreign_key_refers_to_no_hidden_table_by_another_catalog(bobs: Caller) -> None:
    key = idl.SQLForeignKey(
        pktable_db="shop", pktable_name="orders", pkcolumn_name="a", fktable_db="bobs", fktable_name="t", fkcolumn_name="a", key_seq=1,
        catName="other",
    )  # fmt: skip
    with pytest.raises(InvalidObject, match=r"Parent table not found: hive\.shop\.orders"):
        bobs.create_table_with_constraints(table("bobs", "t"), foreignKeys=[key])
    bobs.create_table(table("bobs", "t"))
    key.catName, key.fktable_db = None, "@hive#bobs"
    with pytest.raises(TApplicationException, match=r"Parent table not found: hive\.shop\.orders"):
        bobs.add_foreign_key(idl.AddForeignKeyRequest([key]))


def test_locks_and_compactions_in_another_catalog_are_shown_with_its_name(bobs: Caller, as_user: As) -> None:
    component = idl.LockComponent(type=idl.LockType.SHARED_READ, level=2, dbname="@other#shop", tablename="orders")
    bobs.lock(idl.LockRequest(component=[component], txnid=0, user="bob", hostname="h"))
    bobs.compact2(idl.CompactionRequest(dbname="@other#shop", tablename="orders", type=idl.CompactionType.MAJOR))
    for caller, names in ((bobs, ["@other#shop"]), (as_user("olga"), [])):
        assert [each.dbname for each in caller.show_locks(idl.ShowLocksRequest()).locks] == names
        assert [each.dbname for each in caller.show_compact(idl.ShowCompactRequest()).compacts] == names
    assert as_user("root").find_next_compact2(idl.FindNextCompactRequest(workerId="w")).ci.dbname == "@other#shop"


def test_the_right_to_alter_a_function_does_not_change_its_owner(root: Caller, as_user: As) -> None:
    made = idl.Function(functionName="f", dbName="shop", className="c.C", ownerName="olga", ownerType=USER, functionType=1)
    root.create_function(made)
    root.grant_privileges(bag("ALTER", "bob", dbName="shop"))
    root.grant_privileges(bag("CREATE", "bob", dbName="shop"))
    made.className = "c.D"
    as_user("bob").alter_function("shop", "f", made)
    made.ownerName = "bob"
    assert "OBJECT OWNERSHIP" in refusal(as_user("bob").alter_function, "shop", "f", made)
    assert (root.get_function("shop", "f").className, root.get_function("shop", "f").ownerName) == ("c.D", "olga")


def test_the_right_to_alter_a_database_does_not_change_its_owner(root: Caller, as_user: As) -> None:
    """An alteration with only a name empties owner and parameters, as in Hive's own metastore."""
    root.create_database(idl.Database(name="adb", ownerName="olga", ownerType=USER, parameters={"k": "v"}))
    root.grant_privileges(bag("ALTER", "bob", dbName="adb"))
    bob = as_user("bob")
    for new in (idl.Database(name="adb"), idl.Database(), idl.Database(parameters={"k": "w"}), idl.Database(name="adb", ownerName="bob")):
        assert "OBJECT OWNERSHIP" in refusal(bob.alter_database, "adb", new)
        assert "OBJECT OWNERSHIP" in refusal(bob.alter_database_req, idl.AlterDatabaseRequest(oldDbName="adb", newDb=new))
    found = bob.get_database("adb")
    assert (found.ownerName, found.parameters) == ("olga", {"k": "v"})
    found.parameters["k"] = "w"
    bob.alter_database("adb", found)
    as_user("olga").alter_database("adb", idl.Database(name="adb"))
    assert root.get_database("adb").ownerName is None


def test_a_user_who_may_insert_changes_only_counts(root: Caller, as_user: As) -> None:
    root.grant_privileges(bag("INSERT", "bob", dbName="shop", objectName="orders"))
    bob = as_user("bob")
    for field, value in {
        "retention": 7,
        "rewriteEnabled": True,
        "writeId": 77,
        "tableType": "EXTERNAL_TABLE",
        "viewExpandedText": "x",
    }.items():
        changed = bob.get_table("shop", "orders")
        setattr(changed, field, value)
        assert "OBJECT OWNERSHIP" in refusal(bob.alter_table, "shop", "orders", changed)
        assert "OBJECT OWNERSHIP" in refusal(
            bob.alter_table_req, idl.AlterTableRequest(catName="hive", dbName="shop", tableName="orders", table=changed)
        )
    counted = bob.get_table("shop", "orders")
    counted.parameters["numRows"] = "7"
    counted.lastAccessTime, counted.temporary, counted.accessType, counted.retention = 5, False, 8, None
    bob.alter_table("shop", "orders", counted)
    assert root.get_table("shop", "orders").parameters["numRows"] == "7"
