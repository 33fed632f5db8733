"""The questions that are sent to an Open Policy Agent and to Ranger's PDP, and the refusal of a call when they do not answer."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from metastore import idl
from metastore.config import Config
from metastore.errors import MetaError
from metastore.service.authorization.opa import Opa
from metastore.service.authorization.ranger import Ranger
from metastore.service.authorizer import (  # fmt: skip
    ALTER,
    CREATE,
    DATABASE,
    FUNCTION,
    INSERT,
    LOCATION,
    SEE,
    SELECT,
    SERVER,
    TABLE,
    USE,
    Access,
    Owner,
    Who,
)
from metastore.service.catalog.catalogs import create_startup_objects
from tests.service.authorization.callers import Caller, table
from tests.support.catalog.catalog import MetastoreMaker
from tests.support.servers.http_counterpart import answering
from tests.support.servers.servers import free_port

BOB = Who("bob", ("staff",))
TABLES = [Access(SEE, TABLE, "hive", "shop", name, owner=Owner("olga", 1)) for name in ("orders", "prices", "secret")]


def opa(url: str, **settings: Any) -> Opa:
    return Opa(Config(authorization="opa", authorization_url=url, admin_users=("root",), **settings))


def ranger(url: str, **settings: Any) -> Ranger:
    return Ranger(Config(authorization="ranger", authorization_url=url, ranger_service="dev_hive", **settings))


def test_one_question_is_put_as_boschs_authorizer_puts_it() -> None:
    with answering(lambda _path, _body: {"result": True}) as server:
        assert opa(f"{server.url}/v1/data/hms/").allowed(BOB, [Access(SELECT, TABLE, "hive", "shop", "orders", ("a",))]) == [True]
        path, body, _ = server.asked[0]
    access = body["input"].pop("access")
    assert access["privilege"] == "SELECT"
    assert path == "/v1/data/hms/table_allow"
    assert body == {
        "input": {
            "identity": {"username": "bob", "groups": ["staff"]},
            "resources": {
                "database": None, "table": {"catName": "hive", "dbName": "shop", "tableName": "orders", "owner": None}, "partition": None,
                "columns": ["a"],
            },
            "privileges": {"readRequiredPriv": [{"priv": "SELECT"}], "writeRequiredPriv": [], "inputs": None, "outputs": None},
        }
    }  # fmt: skip


@pytest.mark.parametrize(
    ("access", "path", "privilege"),
    [
        (Access(CREATE, DATABASE, "hive", "shop"), "database_allow", "CREATE"),
        (Access(ALTER, FUNCTION, "hive", "shop", "f"), "database_allow", "ALTER_METADATA"),
        (Access(INSERT, TABLE, "hive", "shop", "t"), "table_allow", "INSERT"),
        (Access(USE, LOCATION, location="s3://b/x"), "user_allow", "ALL"),
        (Access("ADMINISTER", SERVER), "user_allow", "ALL"),
    ],
)
def test_each_kind_of_object_has_its_rule(access: Access, path: str, privilege: str) -> None:
    with answering(lambda _path, _body: {"result": False}) as server:
        assert opa(server.url).allowed(BOB, [access]) == [False]
        ((asked, body, _),) = server.asked
    assert asked == f"/{path}"
    assert body["input"]["privileges"]["writeRequiredPriv"] == [{"priv": privilege}]


def test_many_questions_are_put_together_where_the_policy_can_answer_them() -> None:
    with answering(lambda path, _body: {"result": [0, 2]} if path == "/batch_allow" else {"result": False}) as server:
        assert opa(server.url).allowed(BOB, TABLES) == [True, False, True]
        assert [path for path, _, _ in server.asked] == ["/batch_allow"]
        assert len(server.asked[0][1]["input"]["asked"]) == 3


def test_very_many_questions_are_put_in_parts() -> None:
    asked = [Access(SEE, TABLE, "hive", "shop", f"t{number}") for number in range(2500)]
    allows = {"/batch_allow": lambda body: {"result": list(range(0, len(body["input"]["asked"]), 2))}}
    with answering(lambda path, body: allows[path](body)) as server:
        assert opa(server.url).allowed(BOB, asked) == [True, False] * 1250
        assert [len(body["input"]["asked"]) for _, body, _ in server.asked] == [1000, 1000, 500]
    with answering(lambda _path, body: {"accesses": [{"decision": "ALLOW"}] * len(body["accesses"])}) as server:
        assert all(ranger(server.url).allowed(BOB, asked))
        assert [len(body["accesses"]) for _, body, _ in server.asked] == [1000, 1000, 500]


def test_without_a_rule_for_many_each_is_asked() -> None:
    def answer(path: str, body: Any) -> Any:
        return {} if path == "/batch_allow" else {"result": body["input"]["resources"]["table"]["tableName"] != "secret"}

    with answering(answer) as server:
        assert opa(server.url).allowed(BOB, TABLES) == [True, True, False]
        assert [path for path, _, _ in server.asked] == ["/batch_allow", "/table_allow", "/table_allow", "/table_allow"]


def test_an_answer_is_remembered_for_a_while() -> None:
    with answering(lambda _path, _body: {"result": [0, 1]}) as server:
        asking = opa(server.url)
        assert asking.allowed(BOB, TABLES[:2]) == asking.allowed(BOB, TABLES[:2]) == [True, True]
        assert len(server.asked) == 1
        asking = opa(server.url, authorization_cache=0)
        for _ in range(2):
            asking.allowed(BOB, TABLES[:2])
        assert len(server.asked) == 3


def test_an_admin_is_not_asked_about() -> None:
    with answering(lambda _path, _body: {"result": False}) as server:
        assert opa(server.url).allowed(Who("root"), TABLES) == [True, True, True]
        assert server.asked == []


@pytest.mark.parametrize("answer", [500, b"no json", [], {"result": "yes"}, {"result": [7]}, {"result": [True]}, {"result": None}])
def test_a_text_that_is_not_an_answer_allows_nothing(answer: Any) -> None:
    with answering(lambda _path, _body: answer) as server:
        for asked in (TABLES, TABLES[:1]):
            try:
                assert not any(opa(server.url).allowed(BOB, asked))
            except MetaError as error:
                assert "nothing is allowed" in error.message  # noqa: PT017  # either will do
        with pytest.raises(MetaError, match="nothing is allowed"):
            ranger(server.url).allowed(BOB, TABLES)


def test_a_server_that_is_silent_or_not_there_allows_nothing() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        for make in (opa, ranger):
            with pytest.raises(MetaError, match="nothing is allowed"):
                make(url, authorization_timeout=0.1).allowed(BOB, TABLES)
    with pytest.raises(MetaError, match="nothing is allowed"):
        opa(f"http://127.0.0.1:{free_port()}").allowed(BOB, TABLES)


def test_the_server_to_ask_has_to_be_named() -> None:
    with pytest.raises(MetaError, match="needs the setting authorization_url"):
        Opa(Config(authorization="opa"))


def test_a_token_is_sent() -> None:
    with answering(lambda _path, _body: {"result": True}) as server:
        opa(server.url, authorization_token="t0ken").allowed(BOB, TABLES[:1])
        assert server.asked[0][2]["Authorization"] == "Bearer t0ken"


def decided(path: str, body: Any) -> Any:
    """Answer as Ranger's PDP: bob may select from `orders`."""
    assert path == "/authz/v1/authorizeMulti"
    assert body["context"] == {"serviceType": "hive", "serviceName": "dev_hive"}
    found = [
        {"decision": "ALLOW" if (each["resource"]["name"], *each["permissions"]) in RANGER_ALLOWS else "DENY"} for each in body["accesses"]
    ]
    return {"decision": "PARTIAL", "accesses": found}


RANGER_ALLOWS = {("table:shop/orders", "select"), ("table:shop/orders", "_any"), ("database:shop", "_any"), ("url:s3://b/x", "write")}


def test_ranger_is_asked_for_all_together() -> None:
    with answering(decided) as server:
        asked = [*TABLES, Access(INSERT, TABLE, "hive", "shop", "orders"), Access(USE, LOCATION, location="s3://b/x")]
        assert ranger(server.url).allowed(BOB, asked) == [True, False, False, False, True]
        ((_, body, _),) = server.asked
    assert body["user"] == {"name": "bob", "groups": ["staff"]}
    assert body["accesses"][0] == {"resource": {"name": "table:shop/orders", "attributes": {"OWNER": "olga"}}, "permissions": ["_any"]}


def made_by_root(make_metastore: MetastoreMaker, kind: str, url: str) -> Any:
    server = make_metastore(authorization=kind, authorization_url=url, admin_users=("root",), ranger_service="dev_hive")
    create_startup_objects(server)
    root = Caller(server, "root")
    root.create_database(idl.Database(name="shop"))
    for name in ("orders", "prices"):
        root.create_table(table("shop", name))
    return server


def test_a_metastore_shows_the_objects_that_ranger_allows(make_metastore: MetastoreMaker) -> None:
    with answering(decided) as pdp:
        bob = Caller(made_by_root(make_metastore, "ranger", pdp.url), "bob")
        assert bob.get_all_databases() == ["default", "shop"]
        assert bob.get_all_tables("shop") == ["orders"]
        with pytest.raises(MetaError, match="DROPTABLE"):
            bob.drop_table("shop", "orders", True)


POLICY = """
package hms
import rego.v1

default table_allow := false
default database_allow := false
default user_allow := false

table_allow if {
    input.identity.username == "bob"
    input.resources.table.dbName == "shop"
    input.resources.table.tableName == "orders"
    input.privileges.readRequiredPriv[0].priv == "SELECT"
}
database_allow if {
    input.identity.username == "bob"
    input.resources.database.name == "shop"
    input.privileges.readRequiredPriv[0].priv == "SELECT"
}
"""
BATCH_RULE = """
batch_allow contains place if {
    input.identity.username == "bob"
    some place, each in input.asked
    each.resources.table.tableName == "orders"
    each.access.privilege in {"SEE", "SELECT"}
}
batch_allow contains place if {
    input.identity.username == "bob"
    some place, each in input.asked
    each.resources.database.name == "shop"
    each.access.privilege == "SEE"
}
"""


@pytest.fixture(scope="session")
def opa_program(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The path of the program `opa`: from the variable METASTORE_TEST_OPA or PATH, or it is built from its Go module."""
    found = os.environ.get("METASTORE_TEST_OPA") or shutil.which("opa")
    if found:
        return found
    if shutil.which("go") is None:
        pytest.skip("neither opa nor go is installed")
    folder = tmp_path_factory.mktemp("opa")
    environment = {**os.environ, "GOBIN": str(folder), "GOFLAGS": "-mod=mod"}
    subprocess.run(["go", "install", "github.com/open-policy-agent/opa@v1.10.0"], env=environment, check=True, timeout=1800)
    return str(folder / "opa")


@pytest.fixture(params=[POLICY, POLICY + BATCH_RULE], ids=["single", "batch"])
def opa_server(opa_program: str, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[str]:
    """A real OPA with a policy."""
    policy, port = tmp_path / "hms.rego", free_port()
    policy.write_text(request.param)
    process = subprocess.Popen(
        [opa_program, "run", "--server", "--addr", f"127.0.0.1:{port}", str(policy)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    url, until = f"http://127.0.0.1:{port}", time.monotonic() + 60
    try:
        while True:
            try:
                if httpx.get(f"{url}/health").status_code == 200:
                    break
            except httpx.HTTPError:
                assert process.poll() is None, "opa has ended"
                assert time.monotonic() < until, "opa is not ready"
                time.sleep(0.1)
        yield f"{url}/v1/data/hms"
    finally:
        process.terminate()
        process.wait(30)


@pytest.mark.slow
@pytest.mark.timeout(2000)
def test_a_metastore_shows_the_objects_that_a_real_opa_allows(make_metastore: MetastoreMaker, opa_server: str) -> None:
    bob = Caller(made_by_root(make_metastore, "opa", opa_server), "bob")
    assert bob.get_all_databases() == ["default", "shop"]
    assert bob.get_all_tables("shop") == ["orders"]
    assert bob.get_table("shop", "orders").tableName == "orders"
    with pytest.raises(MetaError, match="DROPTABLE"):
        bob.drop_table("shop", "orders", True)
    assert Caller(bob.metastore, "eve").get_all_tables("shop") == []
