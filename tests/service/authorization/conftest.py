"""A server whose authorizer uses stored privileges, and its callers."""

from __future__ import annotations

import pytest

from metastore import idl
from metastore.service.call.context import Metastore
from metastore.service.catalog.catalogs import create_startup_objects
from tests.service.authorization.callers import As, Caller, table
from tests.support.catalog.catalog import MetastoreMaker


@pytest.fixture
def server(make_metastore: MetastoreMaker) -> Metastore:
    made = make_metastore(authorization="grants", admin_users=("root",))
    create_startup_objects(made)
    return made


@pytest.fixture
def as_user(server: Metastore) -> As:
    return lambda user, *groups: Caller(server, user, groups)


@pytest.fixture
def root(as_user: As) -> Caller:
    """An admin, who has made the database `shop` of olga with the tables `orders` and `prices`."""
    admin = as_user("root")
    admin.create_database(idl.Database(name="shop", ownerName="root"))
    for name in ("orders", "prices"):
        admin.create_table(table("shop", name, "olga", keys=["k"]))
    return admin
