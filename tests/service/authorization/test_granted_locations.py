"""The locations of data that stored privileges allow."""

from __future__ import annotations

from typing import Any

import pytest

from metastore import idl
from metastore.service.authorization import location_grants
from metastore.service.call.context import Metastore
from tests.service.authorization.callers import ROLE, USER, As, Caller, bag, partition, refusal, table

pytestmark = pytest.mark.on_one_database


def test_a_location_outside_needs_a_right_to_it(root: Caller, as_user: As, server: Metastore) -> None:
    root.grant_privileges(bag("CREATE", "bob", dbName="shop"))
    bob, place = as_user("bob"), "file:/tmp/elsewhere/bobs"
    assert "type=DFS_URI, name=file:/tmp/elsewhere/bobs" in refusal(bob.create_table, table("shop", "t", location=place))
    home = root.get_database("shop").locationUri
    bob.create_table(table("shop", "home", location=f"{home}/home"))
    root.create_role(idl.Role(roleName="travellers"))
    root.grant_role("travellers", "bob", USER, "root", USER, False)
    location_grants.grant(server.database, "Travellers", ROLE, "/tmp/elsewhere/")
    assert server.authorizer is not None
    server.authorizer.renew()
    bob.create_table(table("shop", "t", location=place))
    moved = bob.get_table("shop", "home")
    moved.sd.location = "file:/tmp/nowhere"
    assert "DFS_URI" in refusal(bob.alter_table, "shop", "home", moved)
    location_grants.revoke(server.database, "travellers", ROLE, "file:/tmp/elsewhere")
    server.authorizer.renew()
    assert "DFS_URI" in refusal(bob.create_table, table("shop", "u", location=f"{place}2"))


def test_a_table_that_lies_beside_its_location_needs_a_right_to_that_place(root: Caller, as_user: As, server: Metastore) -> None:
    """Hive 4 makes such a table if it will drop it without its data: the name of the directory ends with the transaction's id."""
    root.grant_privileges(bag("CREATE", "bob", dbName="shop"))
    bob, place = as_user("bob"), "file:/tmp/elsewhere/bobs"
    location_grants.grant(server.database, "bob", USER, place)
    assert server.authorizer is not None
    server.authorizer.renew()
    new = table("shop", "t", location=place)
    new.parameters, new.txnId = {"soft_delete": "true"}, 5
    assert "name=file:/tmp/elsewhere/bobs.v0000005" in refusal(bob.create_table, new)
    new.sd.location = f"{place}/inside"
    bob.create_table(new)
    assert bob.get_table("shop", "t").sd.location == f"{place}/inside.v0000005"


def test_nothing_is_laid_over_the_files_of_another(root: Caller, as_user: As) -> None:
    root.grant_privileges(bag("CREATE", "bob", dbName="shop"))
    bob, orders = as_user("bob"), root.get_table("shop", "orders").sd.location
    for place in (orders, f"{orders}/inside", root.get_database("shop").locationUri):
        assert "DFS_URI" in refusal(bob.create_table, table("shop", "t", location=place))
    assert "DFS_URI" in refusal(bob.create_table, table("shop", "t", location=root.get_database("default").locationUri))
    bob.create_table(table("shop", "orders_of_bob", location=f"{orders}_of_bob"))
    bob.create_table(table("shop", "also_mine", location=f"{orders}_of_bob/inside"))


def test_partitions_lie_in_their_table_or_where_one_may(root: Caller, as_user: As) -> None:
    root.grant_privileges(bag("INSERT", "bob", dbName="shop", objectName="orders"))
    bob, orders, prices = as_user("bob"), root.get_table("shop", "orders"), root.get_table("shop", "prices")
    bob.add_partition(partition(orders, "1"))
    bob.add_partition(partition(orders, "2", f"{orders.sd.location}/anywhere"))
    for place in ("file:/tmp/elsewhere/p", f"{prices.sd.location}/k=1"):
        assert "DFS_URI" in refusal(bob.add_partitions, [partition(orders, "3", place)])
    root.add_partition(partition(orders, "4", "file:/tmp/elsewhere/p"))
    same = bob.get_partition("shop", "orders", ["4"])
    same.parameters["note"] = "x"
    bob.alter_partitions("shop", "orders", [same])


def test_an_altered_database_stays_or_moves_to_a_permitted_place(root: Caller, as_user: As) -> None:
    root.grant_privileges(bag("ALTER", "bob", dbName="shop"))
    bob = as_user("bob")
    changed = bob.get_database("shop")
    changed.description = "x"
    bob.alter_database("shop", changed)
    for place in ("file:/tmp/elsewhere/shop.db", bob.get_table("shop", "orders").sd.location + "/in"):
        changed.locationUri = place
        assert ("DFS_URI" in refusal(bob.alter_database, "shop", changed)) is True
    changed.locationUri, changed.ownerName = root.get_database("shop").locationUri, "bob"
    assert "OBJECT OWNERSHIP" in refusal(bob.alter_database, "shop", changed)


def test_a_function_moves_into_no_database_that_is_hidden(root: Caller, as_user: As) -> None:
    root.create_database(idl.Database(name="bobs", ownerName="bob"))
    bob = as_user("bob")
    made = idl.Function(functionName="f", dbName="bobs", className="c.C", ownerName="bob", ownerType=USER, functionType=1, resourceUris=[])
    bob.create_function(made)
    for place, message in (("shop", "The database hive.shop does not exist"), ("lost", "The database hive.lost does not exist")):
        made.dbName = place
        with pytest.raises(Exception, match=message):
            bob.alter_function("bobs", "f", made)
    assert root.get_functions("shop", "*") == []
    made.dbName, made.resourceUris = "bobs", [idl.ResourceUri(resourceType=1, uri="s3://elsewhere/f.jar")]
    assert "DFS_URI" in refusal(bob.alter_function, "bobs", "f", made)


def test_a_database_lies_at_its_default_place_or_where_one_may(root: Caller, as_user: As) -> None:
    root.grant_privileges(bag("CREATE", "bob"))
    bob, shop = as_user("bob"), root.get_database("shop").locationUri
    for place in ("file:/tmp/elsewhere/bobs.db", shop, f"{shop}/orders"):
        assert "DFS_URI" in refusal(bob.create_database, idl.Database(name="bobs", locationUri=place))
    bob.create_database(idl.Database(name="bobs", locationUri=shop.replace("shop.db", "bobs.db")))


def test_a_spec_of_partitions_is_judged_by_where_they_will_lie(root: Caller, as_user: As) -> None:
    """The place consists of a location and a path. An absent one counts as the text null, as in Java."""
    root.grant_privileges(bag("INSERT", "bob", dbName="shop", objectName="orders"))
    root.create_table(table("shop", "ordersnull", "olga"))
    bob = as_user("bob")
    sd = bob.get_table("shop", "orders").sd

    def spec(path: str | None) -> Any:
        shared = idl.PartitionSpecWithSharedSD(partitions=[idl.PartitionWithoutSD(values=["x"], relativePath=path, parameters={})], sd=sd)
        return idl.PartitionSpec(dbName="shop", tableName="orders", sharedSDPartitionSpec=shared)

    assert "DFS_URI" in refusal(bob.add_partitions_pspec, [spec(None)])
    assert bob.add_partitions_pspec([spec("/k=x")]) == 1


@pytest.fixture
def crowded(root: Caller, as_user: As) -> Caller:
    """Bob, who may create in `shop` and insert into `orders`. Tables of olga that he may not see are in the way."""
    root.grant_privileges(bag("CREATE", "bob", dbName="shop"))
    root.grant_privileges(bag("INSERT,ALTER,DELETE", "bob", dbName="shop", objectName="orders"))
    home, orders = root.get_database("shop").locationUri, root.get_table("shop", "orders").sd.location
    for name, place in (("payroll", f"{home}/report"), ("inner", f"{orders}/k=9"), ("deep", f"{orders}/k=8/deep")):
        made = table("shop", name, "olga", place)
        made.tableType, made.parameters = "EXTERNAL_TABLE", {"EXTERNAL": "TRUE"}
        root.create_table(made)
    return as_user("bob")


def test_a_new_table_is_laid_over_nothing_by_default(crowded: Caller, root: Caller, as_user: As) -> None:
    report = table("shop", "report")
    no_place = idl.CreateTableRequest(table=report)
    index = idl.Index(
        indexName="i", dbName="shop", origTableName="orders", indexTableName="report", sd=report.sd, parameters={}, indexHandlerClass="c"
    )
    for call in (
        lambda: crowded.create_table(report),
        lambda: crowded.create_table_with_environment_context(report, None),
        lambda: crowded.create_table_with_constraints(report),
        lambda: crowded.create_table_req(no_place),
        lambda: crowded.translate_table_dryrun(no_place),
        lambda: crowded.add_index(index, table("shop", "report")),
    ):
        message = refusal(call)
        assert "type=DFS_URI" in message
        assert "payroll" not in message
    assert "report" not in root.get_all_tables("shop")
    crowded.create_table(table("shop", "free"))
    root.grant_privileges(bag("CREATE", "olga", dbName="shop"))
    as_user("olga").create_table(table("shop", "report", "olga"))


def test_a_new_name_moves_a_table_over_nothing(crowded: Caller) -> None:
    crowded.create_table(table("shop", "mine"))
    renamed = crowded.get_table("shop", "mine")
    renamed.tableName = "report"
    for call in (crowded.alter_table, crowded.alter_table_with_cascade):
        assert "type=DFS_URI" in refusal(call, "shop", "mine", renamed, *([] if call is crowded.alter_table else [False]))
    renamed.tableName = "moved"
    crowded.alter_table("shop", "mine", renamed)
    assert crowded.get_table("shop", "moved").sd.location.endswith("/moved")


def test_a_new_partition_is_laid_over_nothing_in_its_own_table(crowded: Caller) -> None:
    orders = crowded.get_table("shop", "orders")
    shared = idl.PartitionSpecWithSharedSD(
        partitions=[idl.PartitionWithoutSD(values=["9"], relativePath="/k=9", parameters={})], sd=orders.sd
    )
    crowded.add_partition(partition(orders, "1"))
    for value in ("9", "8"):
        new, explicit = partition(orders, value), partition(orders, value, f"{orders.sd.location}/k={value}")
        moved = crowded.get_partition("shop", "orders", ["1"])
        moved.sd.location = explicit.sd.location
        values = crowded.get_partition("shop", "orders", ["1"])
        values.values = [value]
        for call in (
            lambda new=new: crowded.add_partition(new),
            lambda new=explicit: crowded.add_partitions([new]),
            lambda new=new: crowded.add_partitions_req(idl.AddPartitionsRequest(dbName="shop", tblName="orders", parts=[new])),
            lambda value=value: crowded.append_partition("shop", "orders", [value]),
            lambda value=value: crowded.append_partition_by_name("shop", "orders", f"k={value}"),
            lambda value=value: crowded.append_partition_by_name("shop", "orders", f"k={value}/more=1"),
            lambda value=value: crowded.append_partition_req(
                idl.AppendPartitionsRequest(catalogName="hive", dbName="shop", tableName="orders", partVals=[value])
            ),
            lambda value=value: crowded.append_partition_req(
                idl.AppendPartitionsRequest(catalogName="hive", dbName="shop", tableName="orders", name=f"k={value}")
            ),
            lambda moved=moved: crowded.alter_partition("shop", "orders", moved),
            lambda values=values: crowded.rename_partition("shop", "orders", ["1"], values),
        ):
            message = refusal(call)
            assert "type=DFS_URI" in message
            assert "inner" not in message
    assert "type=DFS_URI" in refusal(
        crowded.add_partitions_pspec, [idl.PartitionSpec(dbName="shop", tableName="orders", sharedSDPartitionSpec=shared)]
    )
    crowded.add_partitions([partition(orders, "2"), partition(orders, "3", f"{orders.sd.location}/k=3")])
    same = crowded.get_partition("shop", "orders", ["1"])
    crowded.alter_partitions("shop", "orders", [same])
    crowded.rename_partition("shop", "orders", ["1"], partition(orders, "4", same.sd.location))


def test_partitions_move_over_nothing_by_an_exchange(crowded: Caller, root: Caller) -> None:
    root.grant_privileges(bag("INSERT,DELETE", "bob", dbName="shop", objectName="prices"))
    for value in ("1", "9"):
        crowded.append_partition("shop", "prices", [value])
    for call in (crowded.exchange_partition, crowded.exchange_partitions):
        assert "type=DFS_URI" in refusal(call, {"k": "9"}, "shop", "prices", "shop", "orders")
    crowded.exchange_partition({"k": "1"}, "shop", "prices", "shop", "orders")
    assert crowded.get_partition_names("shop", "orders", -1) == ["k=1"]


def test_a_partition_stays_where_it_lies_with_something_of_another_in_it(crowded: Caller, root: Caller) -> None:
    for value in ("8", "9"):
        root.append_partition("shop", "orders", [value])
        there = crowded.get_partition("shop", "orders", [value])
        there.parameters["note"] = "x"
        crowded.alter_partitions("shop", "orders", [there])


def test_a_table_in_the_directory_of_another_takes_partitions(root: Caller, as_user: As) -> None:
    """A user with the right to the directory made the table there. Its partitions are no further inside the other table than it is."""
    root.create_table(table("shop", "inside", "bob", f"{root.get_table('shop', 'orders').sd.location}/inside", keys=["k"]))
    bob = as_user("bob")
    bob.append_partition("shop", "inside", ["1"])
    found = bob.get_table("shop", "inside")
    bob.add_partition(partition(found, "2", f"{found.sd.location}/k=2"))


def test_a_new_database_is_laid_over_nothing_by_default(root: Caller, as_user: As) -> None:
    root.grant_privileges(bag("CREATE", "bob"))
    bob, place = as_user("bob"), root.get_database("shop").locationUri.replace("shop.db", "bobs.db")
    root.create_table(table("shop", "far", "olga", f"{place}/far"))
    for given in (None, place):
        assert "type=DFS_URI" in refusal(bob.create_database, idl.Database(name="bobs", locationUri=given))
    assert "type=DFS_URI" in refusal(bob.create_database_req, idl.CreateDatabaseRequest(databaseName="bobs"))
    bob.create_database(idl.Database(name="bobs2"))


def test_no_error_about_a_directory_names_other_objects_there(root: Caller, as_user: As) -> None:
    home = root.get_database("shop").locationUri
    for name, keys in (("shared", []), ("target", ["k"])):
        root.create_table(table("shop", name, "bob", keys=keys))
    made = table("shop", "payroll", "olga", f"{home}/shared")
    made.tableType, made.parameters = "EXTERNAL_TABLE", {"EXTERNAL": "TRUE"}
    root.create_table(made)
    bob = as_user("bob")
    message = refusal(bob.truncate_table, "shop", "shared", None)
    assert "shared is the directory of another object too" in message
    assert "payroll" not in message
