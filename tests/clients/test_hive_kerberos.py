"""Hive's own clients of 3.1 and 4.0 log in by Kerberos and by delegation token, under each protection."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from metastore.idl import CreateTableRequest
from metastore.rules.accounts.delegation_tokens import read_identifier, read_token

pytest.importorskip("gssapi", reason="built with libkrb5-dev: pip install '.[kerberos]'")

from tests.streaming.conftest import CAPABILITIES
from tests.streaming.reading import rows
from tests.support.acid.acid_tables import definition, stored_table
from tests.support.engines.hive_client import hive_client
from tests.support.engines.ingest import Ingest, ingest
from tests.support.engines.jars import HIVE, STREAMING
from tests.support.logins.kdc import REALM, Kdc
from tests.support.logins.secured import ALICE, HIVE_SERVER, OOZIE, PROTECTIONS, Secured, grant

LARGE = 300_000
"""Bytes that do not fit into one frame of Java's, which takes 64 KiB."""

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def secured(running_kdc: Kdc, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    made = Secured(running_kdc, tmp_path_factory.mktemp("secured") / "home")
    with made.serve():
        yield made


def token_file(folder: Path, token: str) -> Path:
    """Write a token into a file as Hadoop's programs find it (`HADOOP_TOKEN_FILE_LOCATION`)."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "tokens"
    path.write_bytes(b"HDTS\0\x01\x01a" + base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)) + b"\0")
    return path


class HiveUser:
    """Hive's client as one user."""

    def __init__(self, secured: Secured, folder: Path, release: str) -> None:
        self._secured = secured
        self._folder = folder
        self._release = release

    def run(
        self, *commands: str, user: str = ALICE, protection: str = "authentication", principal: str = f"hive/_HOST@{REALM}"
    ) -> list[str]:
        """Run commands as a user with a keytab."""
        properties = {"login.principal": user, "login.keytab": str(self._secured.kdc.keytab(user))}
        return self._run(commands, properties, {}, {"hadoop.rpc.protection": protection, "hive.metastore.kerberos.principal": principal})

    def run_with(self, token: str, *commands: str, protection: str = "authentication") -> list[str]:
        """Run commands as a user who has only a token."""
        path = token_file(self._folder, token)
        settings = {"hadoop.rpc.protection": protection, "hive.metastore.kerberos.principal": f"hive/_HOST@{REALM}"}
        return self._run(commands, {}, {"HADOOP_TOKEN_FILE_LOCATION": str(path)}, settings)

    def _run(self, commands: tuple[str, ...], properties: dict[str, str], environment: dict[str, str], more: dict[str, str]) -> list[str]:
        settings = {"hadoop.security.authentication": "kerberos", "hive.metastore.sasl.enabled": "true", **more}
        conf = {"java.security.krb5.conf": str(self._secured.kdc.configuration), **properties}
        return hive_client(
            self._folder, self._secured.uri, settings, *commands, properties=conf, environment=environment, release=self._release
        )


@pytest.fixture(params=[STREAMING, HIVE])
def hive(request: pytest.FixtureRequest, secured: Secured, tmp_path: Path) -> HiveUser:
    return HiveUser(secured, tmp_path / "hive", request.param)


@pytest.mark.parametrize("protection", PROTECTIONS)
def test_tickets_and_tokens_under_each_protection(hive: HiveUser, protection: str) -> None:
    commands = ["create:mine", "owner:mine", "drop:mine", f"long:large:{LARGE}", "drop:large"]
    answers = ["created", "alice", "dropped", str(LARGE), "dropped"]
    *found, token = hive.run(*commands, "token:alice:alice", protection=protection)
    assert found == answers
    assert read_identifier(read_token(token).identifier).owner == "alice"
    assert hive.run_with(token, *commands, protection=protection) == answers


def test_a_token_is_renewed_and_cancelled(hive: HiveUser) -> None:
    (token,) = hive.run("token:alice@TEST.EXAMPLE:alice@TEST.EXAMPLE")
    (until,) = hive.run(f"renew:{token}")
    assert int(until) > read_identifier(read_token(token).identifier).issued
    (refused,) = hive.run_with(token, "token:alice:alice")
    assert "Nobody gets delegation tokens after a login with such a token" in refused
    assert hive.run(f"cancel:{token}") == ["cancelled"]
    (refused,) = hive.run_with(token, "databases")
    assert "The delegation token of alice does not exist: it was cancelled or has expired" in refused


def test_a_proxy_user_gets_a_token_for_another(hive: HiveUser) -> None:
    token, refused = hive.run("token:alice:oozie", "token:root:oozie", user=OOZIE)
    assert "oozie gets no delegation token of root: it may not act for root" in refused
    assert hive.run_with(token, "create:by_oozie", "owner:by_oozie", "drop:by_oozie") == ["created", "alice", "dropped"]


def test_a_client_that_takes_the_server_for_another_is_refused(hive: HiveUser, kdc: Kdc) -> None:
    kdc.keytab(f"other/localhost@{REALM}")
    (refused,) = hive.run("databases", principal=f"other/_HOST@{REALM}")
    assert "the client asked for another server" in refused


def test_hiveserver2_keeps_its_tokens_and_keys(hive: HiveUser) -> None:
    kept = hive.run("addtoken:id:text", "addtoken:id:text", "gettoken:id", "tokens", "removetoken:id", "addkey:one", user=HIVE_SERVER)
    assert kept[:5] == ["true", "false", "text", "id", "true"]
    number = kept[5]
    assert hive.run(f"updatekey:{number}:two", "keys", f"removekey:{number}", user=HIVE_SERVER) == ["updated", "two", "true"]
    for refused in hive.run("addtoken:id:text", "gettoken:id", "tokens", "addkey:one", "keys", f"removekey:{number}"):
        assert "alice (by kerberos) may not see or change stored tokens and master keys" in refused


@pytest.mark.parametrize("protection", PROTECTIONS)
@pytest.mark.parametrize("by_token", [False, True], ids=["keytab", "token"])
def test_the_streaming_ingest_logs_in(kdc: Kdc, tmp_path: Path, protection: str, by_token: bool) -> None:
    """A user who may insert commits batches (3.1.3 dies in its first heartbeat); one who may only read writes nothing."""
    made = Secured(kdc, tmp_path / "home")
    settings = {
        "hadoop.security.authentication": "kerberos", "hive.metastore.sasl.enabled": "true", "hadoop.rpc.protection": protection,
        "hive.metastore.kerberos.principal": f"hive/_HOST@{REALM}",
    }  # fmt: skip
    warehouse = tmp_path / "warehouse"
    held = {"ingrid": "INSERT", "sam": "SELECT"}

    @contextmanager
    def stream(user: str) -> Iterator[Ingest]:
        environment, properties = {}, {"java.security.krb5.conf": str(kdc.configuration)}
        if by_token:
            environment["HADOOP_TOKEN_FILE_LOCATION"] = str(token_file(tmp_path / user, made.token_of(user)))
        else:
            principal = f"{user}@{REALM}"
            properties |= {"login.principal": principal, "login.keytab": str(kdc.keytab(principal))}
        with ingest(made.uri, tmp_path / user, warehouse, "default", "alerts", 3, settings, properties, environment) as started:
            yield started

    with made.serve(warehouse=str(warehouse), **made.rights("grants", "alerts", held)) as server, made.kerberos() as admin:
        table = definition("alerts", "id int, msg string", "continent string", buckets=2, bucketed_by=("id",))
        admin.create_table_req(CreateTableRequest(table=table, processorCapabilities=CAPABILITIES, processorIdentifier="tests"))
        grant(admin, "alerts", held)
        table = stored_table(admin, "alerts")
        with stream("ingrid") as running:
            running.do("begin", "write 1,hello,asia", "commit", "begin", "write 2,slow,asia")
            running.do("commit", "begin", "write 3,back,asia", "abort")
        found = sorted(rows(admin, table, "continent=asia"), key=lambda row: row["id"])
        assert found == [{"id": 1, "msg": "hello"}, {"id": 2, "msg": "slow"}]
        files = sorted(tmp_path.glob("warehouse/**/bucket*"))
        with pytest.raises(AssertionError, match="the ingest failed"), stream("sam") as running:
            running.do("begin", "write 4,never,asia", "commit")
        assert sorted(tmp_path.glob("warehouse/**/bucket*")) == files
        refused = [(each["user"], each["method"]) for each in server.logged(outcome="PermissionDenied")]
        assert refused == [("sam", "allocate_table_write_ids")]
