"""Where stored privileges let data lie."""

from __future__ import annotations

from typing import Any

import pytest

from metastore import idl
from metastore.service.authorization import location_grants
from metastore.service.context import Metastore
from tests.service.authorization.callers import ROLE, USER, As, Caller, bag, partition, refusal, table


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


def test_nothing_is_laid_over_the_files_of_another(root: Caller, as_user: As) -> None:
    root.grant_privileges(bag("CREATE", "bob", dbName="shop"))
    bob, orders = as_user("bob"), root.get_table("shop", "orders").sd.location
    for place in (orders, f"{orders}/inside", root.get_database("shop").locationUri):
        assert "DFS_URI" in refusal(bob.create_table, table("shop", "t", location=place))
    assert "DFS_URI" in refusal(bob.create_table, table("shop", "t", location=root.get_database("default").locationUri))
    bob.create_table(table("shop", "mine", location=f"{orders}_of_bob"))
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


def test_who_may_alter_a_database_leaves_it_where_it_is_or_moves_it_where_one_may(root: Caller, as_user: As) -> None:
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
    for place, told in (("shop", "The database hive.shop does not exist"), ("lost", "The database hive.lost does not exist")):
        made.dbName = place
        with pytest.raises(Exception, match=told):
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
    """Put together from a location and a path, of which one that is absent counts as the text null, as in Java."""
    root.grant_privileges(bag("INSERT", "bob", dbName="shop", objectName="orders"))
    root.create_table(table("shop", "ordersnull", "olga"))
    bob = as_user("bob")
    sd = bob.get_table("shop", "orders").sd

    def spec(path: str | None) -> Any:
        shared = idl.PartitionSpecWithSharedSD(partitions=[idl.PartitionWithoutSD(values=["x"], relativePath=path, parameters={})], sd=sd)
        return idl.PartitionSpec(dbName="shop", tableName="orders", sharedSDPartitionSpec=shared)

    assert "DFS_URI" in refusal(bob.add_partitions_pspec, [spec(None)])
    assert bob.add_partitions_pspec([spec("/k=x")]) == 1
