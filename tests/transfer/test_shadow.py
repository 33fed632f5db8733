"""`metastore shadow` between real servers: clients get the primary's answers, also when the secondary hangs or is gone."""

from __future__ import annotations

import json
import socket
import ssl
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from thriftpy2.thrift import TApplicationException, TException

from metastore import idl
from metastore.client import Client, connect
from metastore.shadow.asking import MOST
from tests.support.catalog import same_replies
from tests.support.catalog.full_catalog import Filler
from tests.support.databases import databases
from tests.support.engines.java_metastore import java_metastore
from tests.support.logins.certificates import Authority
from tests.support.logins.kdc import SERVICE, Kdc
from tests.support.servers.processes import children, runs
from tests.support.servers.servers import COMMAND, environment, serving
from tests.support.servers.shadow import shadowing
from tests.support.servers.waiting import until


def server(stack: ExitStack, home: Path, *options: str, **more: Any) -> Any:
    return stack.enter_context(serving("--workers", "1", "--warehouse", str(home / "warehouse"), *options, home=home, **more))


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[Any, Any]]:
    """Two servers with the same content but for one table."""
    urls = [f"sqlite:///{tmp_path / name}.db" for name in ("old", "new")]
    with ExitStack() as stack:
        old = server(stack, tmp_path / "old", "--db", urls[0])
        with connect(old.uri) as client:
            Filler(client, f"file:{tmp_path / 'data'}").everything()
        command = [*COMMAND, "import", urls[0], "--db", urls[1]]
        subprocess.run(command, check=True, env=environment(tmp_path / "new"), capture_output=True)
        new = server(stack, tmp_path / "new", "--db", urls[1])
        with connect(new.uri) as client:
            table = client.get_table("sales", "orders")
            table.parameters["color"] = "blue"
            client.alter_table("sales", "orders", table)
        yield old, new


def read(client: Client) -> None:
    for database in client.get_all_databases():
        client.get_database(database)
        for table in client.get_all_tables(database):
            with suppress(idl.MetaException):  # for tables that need capabilities
                client.get_table(database, table)
            client.get_partitions(database, table, -1)
    client.get_table_objects_by_name("sales", ["orders"])
    with pytest.raises(idl.NoSuchObjectException):
        client.get_table("sales", "nope")


@pytest.mark.parametrize(
    ("protocol", "framed"),
    [
        ("binary", False),
        ("compact", True),
        *(pytest.param(*each, marks=pytest.mark.slow) for each in (("binary", True), ("compact", False))),
    ],
)
def test_reads_are_compared_and_changes_go_to_the_primary(pair: tuple[Any, Any], tmp_path: Path, protocol: str, framed: bool) -> None:
    old, new = pair
    with shadowing(old.uri, new.uri, tmp_path / "shadow") as shadow:
        with connect(shadow.uri, protocol=protocol, framed=framed) as client, connect(old.uri) as direct:
            read(client)
            assert client.get_table("sales", "orders") == direct.get_table("sales", "orders")
            client.create_database(idl.Database(name=f"made_{protocol}_{framed}".lower(), parameters={}))
            txn = client.open_txns(idl.OpenTxnRequest(1, "ann", "h")).txn_ids[0]
            client.heartbeat(idl.HeartbeatRequest(txnid=txn))
            client.abort_txn(idl.AbortTxnRequest(txnid=txn))
        with connect(new.uri) as client:
            assert not [name for name in client.get_all_databases() if name.startswith("made")]
        counts = shadow.end()
    assert counts["get_table"]["different"] == 2  # the table that differs, read twice
    assert counts["get_table_objects_by_name"] == {"different": 1}
    assert {name for name, found in counts.items() if set(found) != {"same"}} == {"get_table", "get_table_objects_by_name"}
    assert {"create_database", "open_txns", "heartbeat"}.isdisjoint(counts)
    assert {(each["method"], each["path"], each["primary"], each["secondary"]) for each in shadow.differences()} == {
        ("get_table", "success.parameters[color]", None, "blue"),
        ("get_table_objects_by_name", "success[hive.sales.orders].parameters[color]", None, "blue"),
    }
    assert shadow.differences()[0]["arguments"] == {"dbname": "sales", "tbl_name": "orders"}


def test_a_secondary_that_is_gone_holds_nobody_up(pair: tuple[Any, Any], tmp_path: Path) -> None:
    old, new = pair
    with shadowing(old.uri, new.uri, tmp_path / "shadow") as shadow:
        with connect(shadow.uri) as client:
            client.get_all_databases()
            new.kill()
            for _ in range(20):
                assert client.get_table("sales", "orders").tableName == "orders"
        counts = shadow.end()
    assert counts["get_table"]["unanswered"] == 20


def test_a_secondary_that_hangs_holds_nobody_up(pair: tuple[Any, Any], tmp_path: Path) -> None:
    """Only a limited number of calls waits for the secondary. Calls beyond that are dropped and counted."""
    old, _ = pair
    with closing(socket.create_server(("127.0.0.1", 0))) as silent:
        uri = f"thrift://127.0.0.1:{silent.getsockname()[1]}"
        with shadowing(old.uri, uri, tmp_path / "shadow", "--timeout", "60") as shadow:
            with connect(shadow.uri) as client:
                for _ in range(MOST + 100):
                    client.get_all_databases()
            assert shadow.end() == {"get_all_databases": {"dropped": 100}}


def test_the_process_beside_ends_with_the_proxy(tmp_path: Path) -> None:
    """The process ends even when the proxy is killed."""
    with ExitStack() as stack:
        old = server(stack, tmp_path / "old")
        shadow = stack.enter_context(shadowing(old.uri, old.uri, tmp_path / "shadow"))
        (beside,) = children(shadow.process.pid)
        shadow.process.kill()
        shadow.process.wait()
        until(lambda: not runs(beside), missing="its end")


def test_a_primary_that_is_gone_ends_the_connection(pair: tuple[Any, Any], tmp_path: Path) -> None:
    old, new = pair
    with shadowing(old.uri, new.uri, tmp_path / "shadow") as shadow, connect(shadow.uri) as client:
        client.get_all_databases()
        old.kill()

        def is_closed() -> bool:
            with suppress(ConnectionResetError):
                client.get_all_databases()  # a worker that ends may still answer
                return False
            return True

        until(is_closed, missing="the end of the connection")
        assert shadow.process.poll() is None


def test_the_user_that_a_client_names_is_named_to_both(tmp_path: Path) -> None:
    with ExitStack() as stack:
        grants = ("--set", "authorization=grants", "--set", "admin_users=root")
        old, new = (server(stack, tmp_path / name, *grants) for name in ("old", "new"))
        for each in (old, new):
            with connect(each.uri) as root:
                root.set_ugi("root", [])
                root.create_database(idl.Database(name="hers", ownerName="alice", ownerType=1, parameters={}))
        shadow = stack.enter_context(shadowing(old.uri, new.uri, tmp_path / "shadow"))
        for user, seen in (("alice", ["default", "hers"]), ("bob", ["default"])):
            with connect(shadow.uri) as client:
                client.set_ugi(user, [])
                assert client.get_all_databases() == seen
        assert shadow.end() == {"get_all_databases": {"same": 2}, "set_ugi": {"same": 2}}


def test_a_difference_has_the_last_user_that_its_client_named(pair: tuple[Any, Any], tmp_path: Path) -> None:
    old, new = pair
    with shadowing(old.uri, new.uri, tmp_path / "shadow") as shadow:
        for users in (("anna", "bob"), ()):
            with connect(shadow.uri) as client:
                client.get_table("sales", "orders")
                for user in users:
                    client.set_ugi(user, [])
                    client.get_table("sales", "orders")
        shadow.end()
    assert Counter(each["user"] for each in shadow.differences()) == {None: 2, "anna": 1, "bob": 1}


def test_the_counts_are_printed_from_time_to_time(pair: tuple[Any, Any], tmp_path: Path) -> None:
    old, new = pair
    with shadowing(old.uri, new.uri, tmp_path / "shadow", "--every", "0.2") as shadow, connect(shadow.uri) as client:
        client.get_all_databases()
        assert shadow.process.stdout is not None
        lines = iter(shadow.process.stdout.readline, "")
        found = until(lambda: json.loads(next(lines)), is_there=bool, missing="no counts", seconds=30)
        assert found == {"get_all_databases": {"same": 1}}


@contextmanager
def tls_server(folder: Path, authority: Authority, home: Path) -> Iterator[Any]:
    settings = ("--set", f"tls_certificate={authority.issue(home.name, file=folder / f'{home.name}.pem')}")
    with ExitStack() as stack:
        yield server(stack, home, *settings)


def test_tls_on_all_sides(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    trust = ssl.create_default_context(cafile=str(authority.file))
    options = [f"--{side}-tls-ca={authority.file}" for side in ("primary", "secondary")]
    options += ["--set", f"tls_certificate={authority.issue('shadow')}"]
    with (
        tls_server(tmp_path, authority, tmp_path / "old") as old,
        tls_server(tmp_path, authority, tmp_path / "new") as new,
        shadowing(old.uri, new.uri, tmp_path / "shadow", *options) as shadow,
    ):
        with connect(shadow.uri, tls=trust) as client:
            assert client.get_all_databases() == ["default"]
        with connect(shadow.uri, timeout=20) as client, pytest.raises(ConnectionError):
            client.get_all_databases()
        assert shadow.end() == {"get_all_databases": {"same": 1}}


def test_http_is_refused(tmp_path: Path) -> None:
    """One server is both sides."""
    with ExitStack() as stack:
        old = server(stack, tmp_path / "old")
        shadow = stack.enter_context(shadowing(old.uri, old.uri, tmp_path / "shadow"))
        with pytest.raises(ConnectionError), connect(shadow.uri.replace("thrift", "http") + "/metastore") as client:
            client.get_all_databases()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--set", "authentication=users"], "authentication by users needs a metastore's own database"),
        (["--set", "host=0.0.0.0"], "no setting decides who may log in"),
        (["--primary", "ftp://x"], "'ftp://x' is not a metastore URI"),
        (["--log", "/nowhere/at/all"], "/nowhere/at/all"),
    ],
)
def test_an_option_that_does_not_fit_ends_the_command(tmp_path: Path, options: list[str], message: str) -> None:
    command = [*COMMAND, "shadow", "--primary", "thrift://localhost:1", "--secondary", "thrift://localhost:2", "--port", "0", *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment(tmp_path), timeout=60)
    assert done.returncode in (1, 2)
    assert message in done.stderr


def test_a_login_by_kerberos_goes_on_to_both(kdc: Kdc, tmp_path: Path) -> None:
    """The shadow logs in to both as a user who may act for its clients."""
    pytest.importorskip("gssapi")
    from metastore.client_login.kerberos import Kerberos
    from tests.support.logins.secured import ALICE, OOZIE, Secured

    keytab = kdc.keytab(SERVICE)
    own = {
        **kdc.variables, "METASTORE_CLIENT_LOGIN": "kerberos", "METASTORE_CLIENT_USER": OOZIE,
        "METASTORE_CLIENT_KEYTAB": str(kdc.keytab(OOZIE)), "METASTORE_CLIENT_PRINCIPAL": SERVICE.replace("localhost", "_HOST"),
    }  # fmt: skip
    options = ["--set", "authentication=kerberos", "--set", f"kerberos_principal={SERVICE}", "--set", f"kerberos_keytab={keytab}"]
    options += ["--set", "sasl_protection=privacy", "--host", "localhost"]
    with ExitStack() as stack:
        sides = [Secured(kdc, tmp_path / name) for name in ("old", "new")]
        for side in sides:
            stack.enter_context(side.serve(authorization="grants", admin_users="alice"))
        shadow = stack.enter_context(shadowing(sides[0].uri, sides[1].uri, tmp_path / "shadow", *options, variables=own))
        port = shadow.uri.rpartition(":")[2]
        login = Kerberos(cache=kdc.tickets(ALICE), principal=SERVICE)
        with connect(f"thrift://localhost:{port}", login=login, timeout=30) as client:
            client.create_database(idl.Database(name="d", parameters={}))
            assert client.get_database("d").ownerName == "alice"
            assert client.get_role_names() == ["admin", "public"]
        with connect(f"thrift://localhost:{port}", timeout=30) as client, pytest.raises((ConnectionError, TApplicationException)):
            client.get_all_databases()
        assert shadow.end() == {"get_database": {"different": 1}, "get_role_names": {"same": 1}}


@pytest.mark.slow
def test_an_import_from_java_answers_as_java(tmp_path: Path) -> None:
    """Each method that lists or gets, of all objects there are, on Java's 4.0.1 and on its import."""
    with ExitStack() as stack:
        java_url = stack.enter_context(contextmanager(databases.fresh)("postgresql", tmp_path))
        own_url = f"sqlite:///{tmp_path / 'own.db'}"
        java = stack.enter_context(java_metastore(java_url, tmp_path / "java"))
        with connect(java) as client:
            Filler(client, f"file:{tmp_path / 'data'}").everything()
        command = [*COMMAND, "import", java_url, "--db", own_url]
        subprocess.run(command, check=True, env=environment(tmp_path / "own"), capture_output=True)
        own = server(stack, tmp_path / "own", "--db", own_url, "--set", "table_translation=strict")
        shadow = stack.enter_context(shadowing(java, own.uri, tmp_path / "shadow"))
        with connect(shadow.uri, timeout=120) as client:
            for _, ask in same_replies.asked(client):
                with suppress(TException):
                    ask(client)
            with suppress(TException):
                read(client)
        shadow.end()
        assert {(each["method"], each["path"], str(each["primary"]), str(each["secondary"])) for each in shadow.differences()} == set()
