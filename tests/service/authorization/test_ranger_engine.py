"""Ranger's own policy engine, with the resources and permissions of its Hive service, answers the authorizer's questions."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from metastore import idl
from metastore.config import Config
from metastore.errors import MetaError, NoSuchObject
from metastore.service.authorization.ranger import Ranger
from metastore.service.authorizer import (
    ADMINISTER,
    ALTER,
    CATALOG,
    CREATE,
    DATABASE,
    DELETE,
    DROP,
    FUNCTION,
    INSERT,
    LOCATION,
    OWN,
    ROLE,
    SEE,
    SELECT,
    SERVER,
    TABLE,
    UPDATE,
    USE,
    Access,
    Owner,
    Who,
)
from metastore.service.catalog.catalogs import create_startup_objects
from tests.service.authorization.callers import Caller, table
from tests.support.catalog.catalog import MetastoreMaker
from tests.support.engines.jars import ranger_classpath
from tests.support.servers.servers import free_port

pytestmark = pytest.mark.slow

SERVICE = "dev_hive"
LAKE = "s3://bucket/lake/t"


def policy(number: int, user: str, accesses: Sequence[str], **resources: str) -> dict[str, Any]:
    """Return a policy that allows a user accesses to resources, in the form of Ranger's administration."""
    return {
        "id": number, "name": f"policy {number}", "service": SERVICE, "serviceType": "hive", "isEnabled": True, "isAuditEnabled": False,
        "resources": {name: {"values": [value], "isExcludes": False, "isRecursive": name == "url"} for name, value in resources.items()},
        "policyItems": [{"users": [user], "accesses": [{"type": each, "isAllowed": True} for each in accesses]}],
    }  # fmt: skip


POLICIES = [
    policy(1, "bob", ["select"], database="shop", table="orders", column="*"),
    policy(2, "carl", ["select"], database="shop", table="orders", column="a"),
    policy(3, "ute", ["update"], database="shop", table="*", column="*"),
    policy(4, "{OWNER}", ["all"], database="*", table="*", column="*"),
    policy(5, "dora", ["create", "alter", "drop"], database="shop"),
    policy(6, "dora", ["create", "drop"], database="shop", udf="*"),
    policy(7, "dora", ["write"], url="s3://bucket/lake/*"),
    policy(8, "root", ["all"], **{"global": "*"}),
    policy(10, "olga", ["create"], database="shop"),
    policy(9, "mara", ["create", "alter", "drop"], database="shop", table="*", column="*"),
]  # fmt: skip


@pytest.fixture(scope="module")
def pdp(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder, port = tmp_path_factory.mktemp("ranger"), free_port()
    (folder / "policies.json").write_text(json.dumps(POLICIES))
    with (folder / "errors.txt").open("w") as errors:
        process = subprocess.Popen(
            ["java", "-cp", ranger_classpath(), "RangerEngine", str(port), SERVICE, str(folder / "policies.json")],
            stdout=subprocess.PIPE, stderr=errors, text=True,
        )  # fmt: skip
    assert process.stdout is not None
    try:
        while (line := process.stdout.readline()) != "ready\n":
            assert line, (folder / "errors.txt").read_text()[-3000:]
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


ORDERS = Access(SEE, TABLE, "hive", "shop", "orders", owner=Owner("olga", 1))
SHOP = Access(SEE, DATABASE, "hive", "shop")
ASKED = [
    *(ORDERS._replace(privilege=each) for each in (SEE, SELECT, INSERT, UPDATE, DELETE, ALTER, DROP, OWN)),
    *(SHOP._replace(privilege=each) for each in (SEE, CREATE, ALTER, DROP, OWN)),
    *(Access(each, FUNCTION, "hive", "shop", "f") for each in (SEE, CREATE, DROP)),
    *(Access(USE, LOCATION, location=each) for each in (LAKE, "s3://bucket/other", "s3://bucket/la\\ke/t")),
    Access(SEE, CATALOG, "hive"), Access(CREATE, CATALOG, "hive", "new"), Access(ADMINISTER, SERVER),
    Access(CREATE, ROLE, name="r", grant=True),
]  # fmt: skip
"""Each kind of question. Ranger has to understand all of them."""


def words(access: Access) -> str:
    return f"{access.privilege} {access.kind}" + (f" {access.location}" if access.location else "")


@pytest.mark.parametrize(
    ("user", "allowed"),
    [
        ("eve", ""),
        ("bob", "SEE table, SELECT table, SEE database"),
        ("carl", "SEE table, SEE database"),
        ("ute", "SEE table, INSERT table, UPDATE table, DELETE table, SEE database"),
        ("dora", "SEE database, CREATE database, ALTER database, DROP database, SEE function, CREATE function, DROP function, LAKE"),
        ("olga", "SEE table, SELECT table, INSERT table, UPDATE table, DELETE table, ALTER table, DROP table, OWN table, CREATES"),
        ("root", "SEE catalog, CREATE catalog, ADMINISTER server, CREATE role"),
        # A policy for all tables of a database is one for the database.
        ("mara", "SEE table, ALTER table, DROP table, SEE database, CREATE database, ALTER database, DROP database"),
    ],
)  # fmt: skip
def test_each_question_is_understood(pdp: str, user: str, allowed: str) -> None:
    made = Ranger(Config(authorization="ranger", authorization_url=pdp, ranger_service=SERVICE))
    answers = made.allowed(Who(user), ASKED)
    made.close()
    assert ", ".join(words(each) for each, ok in zip(ASKED, answers, strict=True) if ok) == (
        allowed.replace("LAKE", f"USE location {LAKE}").replace("CREATES", "SEE database, CREATE database")
    )


def test_a_metastore_shows_the_objects_that_ranger_allows(make_metastore: MetastoreMaker, pdp: str) -> None:
    server = make_metastore(authorization="ranger", authorization_url=pdp, ranger_service=SERVICE, admin_users=("root",))
    create_startup_objects(server)
    root = Caller(server, "root")
    root.create_database(idl.Database(name="shop", ownerName="root"))
    for name in ("orders", "prices"):
        root.create_table(table("shop", name, "olga"))
    for user, tables in (
        ("bob", ["orders"]),
        ("carl", ["orders"]),
        ("ute", ["orders", "prices"]),
        ("olga", ["orders", "prices"]),
        ("eve", []),
    ):
        assert Caller(server, user).get_all_tables("shop") == tables, user
    with pytest.raises(MetaError, match=r"name=bob.*OBJECT OWNERSHIP.*name=shop.orders"):
        Caller(server, "bob").drop_table("shop", "orders", True)
    with pytest.raises(NoSuchObject):
        Caller(server, "bob").get_table("shop", "prices")
    Caller(server, "olga").drop_table("shop", "prices", True)
    assert root.get_all_tables("shop") == ["orders"]
