"""A server process with two workers that accepts Kerberos and tokens: our client, PyIceberg's, and the clients that it refuses."""

from __future__ import annotations

import json
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from metastore.client import connect
from metastore.client_login import LoginError
from metastore.idl import Database, FieldSchema, MetaException, NoSuchObjectException, SerDeInfo, StorageDescriptor, Table
from metastore.rules.accounts.delegation_tokens import read_token
from tests.support.logins.kdc import REALM, Kdc
from tests.support.servers.servers import COMMAND, ROOT, Server, environment, serving

pytest.importorskip("gssapi", reason="built with libkrb5-dev: pip install '.[kerberos]'")

from tests.support.logins.secured import ALICE, HIVE_SERVER, OOZIE, PROTECTIONS, Secured


@pytest.fixture(scope="module")
def secured(running_kdc: Kdc, tmp_path_factory: pytest.TempPathFactory) -> Secured:
    return Secured(running_kdc, tmp_path_factory.mktemp("secured") / "home")


@pytest.fixture(scope="module")
def running(secured: Secured) -> Iterator[Server]:
    with secured.serve() as server:
        yield server


@pytest.fixture
def server(kdc: Kdc, running: Server) -> Server:
    return running


def wide_table(name: str, columns: int) -> Table:
    """A table whose messages do not fit into a frame of 64 KiB."""
    sd = StorageDescriptor(
        cols=[FieldSchema(name=f"c{number}", type="int", comment="x" * 100) for number in range(columns)],
        serdeInfo=SerDeInfo(serializationLib="lib", parameters={}), inputFormat="in", outputFormat="out", parameters={},
    )  # fmt: skip
    return Table(dbName="default", tableName=name, sd=sd, partitionKeys=[], parameters={}, tableType="MANAGED_TABLE")


@pytest.mark.parametrize("quality", PROTECTIONS)
def test_calls_are_answered_under_each_protection(server: Server, secured: Secured, quality: str) -> None:
    with secured.kerberos(qualities=(quality,)) as client:
        token = client.get_delegation_token("alice", "alice")
        for each in (client, secured.token(token, qualities=(quality,))):
            with each:
                name = f"{quality}_{'kerberos' if each is client else 'token'}"
                each.create_table(wide_table(name, 1000))
                table = each.get_table("default", name)
                assert len(table.sd.cols) == 1000
                for _ in range(3):
                    assert name in each.get_all_tables("default")


def test_new_objects_belong_to_the_user_of_the_ticket(server: Server, secured: Secured) -> None:
    with secured.kerberos() as client:
        client.create_database(Database(name="mine", parameters={}))
        assert client.get_database("mine").ownerName == "alice"
        assert client.set_ugi("alice", ["staff"])[-1] == "alice"
        with pytest.raises(MetaException, match="set_ugi names root, but this connection is logged in as alice by kerberos"):
            client.set_ugi("root", [])


def test_a_proxy_user_acts_for_another_by_ticket_and_by_token(server: Server, secured: Secured) -> None:
    with secured.kerberos(OOZIE, act_for="alice") as client:
        client.create_database(Database(name="for_alice", parameters={}))
        assert client.get_database("for_alice").ownerName == "alice"
    with secured.kerberos(OOZIE) as client:
        text = client.get_delegation_token("alice", "oozie")
        with pytest.raises(MetaException, match="oozie gets no delegation token of root"):
            client.get_delegation_token("root", "oozie")
    with secured.token(text) as client:
        client.create_database(Database(name="by_token", parameters={}))
        assert client.get_database("by_token").ownerName == "alice"
    with pytest.raises(LoginError, match="The server refuses the login by GSSAPI: oozie may not act for root"):
        secured.kerberos(OOZIE, act_for="root").getStatus()


def test_a_token_serves_until_it_is_cancelled(server: Server, secured: Secured) -> None:
    with secured.kerberos() as client:
        text = client.get_delegation_token("alice", "alice")
        assert client.renew_delegation_token(text) > 0
        for _ in range(8):  # both workers take it
            with secured.token(text) as by_token:
                assert by_token.getStatus() == 2
                with pytest.raises(MetaException, match="Nobody gets delegation tokens after a login with such a token"):
                    by_token.get_delegation_token("alice", "alice")
                with pytest.raises(MetaException, match="Nobody renews delegation tokens after a login with such a token"):
                    by_token.renew_delegation_token(text)
        client.cancel_delegation_token(text)
    for _ in range(8):
        with pytest.raises(LoginError, match="The delegation token of alice does not exist: it was cancelled or has expired"):
            secured.token(text).getStatus()


def test_a_token_serves_after_a_restart(kdc: Kdc, tmp_path: Path) -> None:
    own = Secured(kdc, tmp_path / "home")
    with own.serve(), own.kerberos() as client:
        text = client.get_delegation_token("alice", "alice")
    with own.serve(), own.token(text) as client:
        assert client.getStatus() == 2


def test_a_connection_outlives_its_ticket(kdc: Kdc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = Secured(kdc, tmp_path / "home")
    configuration = {"KRB5_CONFIG": str(kdc.configured("strict", clockskew="1"))}
    monkeypatch.setenv("KRB5_CONFIG", configuration["KRB5_CONFIG"])
    with serving(*own.settings(), home=own.home, variables={**kdc.variables, **configuration}):
        cache = kdc.tickets(ALICE, lifetime="3s", name="-short")
        with own.kerberos(cache=cache, qualities=("privacy",)) as client:
            assert client.getStatus() == 2
            end = time.time() + 6
            while time.time() < end:
                assert client.getStatus() == 2
                time.sleep(0.1)
            with pytest.raises(LoginError, match="expired"):
                own.kerberos(cache=cache).getStatus()
            assert client.getStatus() == 2


def test_a_changed_keytab_serves_without_a_restart(kdc: Kdc, tmp_path: Path) -> None:
    own = Secured(kdc, tmp_path / "home")
    service = f"rotated/localhost@{REALM}"
    shutil.copy(kdc.keytab(service), own.keytab)
    with own.serve(**{"hive.metastore.kerberos.principal": service}):
        with own.kerberos(principal="rotated/_HOST") as client:
            assert client.getStatus() == 2
        changed = kdc.keytab(service, name="rotated-2", new_key=True)
        with pytest.raises(LoginError, match="export it again after each change of the key"):
            own.kerberos(principal="rotated/_HOST").getStatus()
        shutil.copy(changed, own.keytab)
        with own.kerberos(principal="rotated/_HOST") as client:
            assert client.getStatus() == 2


def test_the_command_line_logs_in_as_the_environment_says(server: Server, secured: Secured) -> None:
    with secured.kerberos() as client:
        token = client.get_delegation_token("alice", "alice")
    for login in (
        {"METASTORE_CLIENT_LOGIN": "token", "METASTORE_CLIENT_TOKEN": token},
        {"METASTORE_CLIENT_LOGIN": "kerberos", "KRB5CCNAME": secured.kdc.tickets(ALICE)},
        {"METASTORE_CLIENT_LOGIN": "kerberos", "METASTORE_CLIENT_USER": ALICE, "METASTORE_CLIENT_KEYTAB": str(secured.kdc.keytab(ALICE))},
    ):
        variables = environment(secured.home, {**secured.kdc.variables, **login, "METASTORE_URI": secured.uri})
        ran = subprocess.run(
            [*COMMAND, "call", "getStatus"], env=variables, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
        )
        assert (ran.returncode, ran.stdout.strip()) == (0, "2"), ran.stderr
    variables = environment(secured.home, {**secured.kdc.variables, **login, "METASTORE_URI": secured.uri})
    got = subprocess.run(
        [*COMMAND, "call", "get_delegation_token", "alice", "alice"],
        env=variables,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    with secured.token(json.loads(got.stdout)) as client:
        assert client.getStatus() == 2
    ran = subprocess.run(
        [*COMMAND, "ls", "--uri", secured.uri],
        env=environment(secured.home),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 1
    assert "This server asks for a login; it accepts kerberos, token" in ran.stderr


def test_a_forged_token_is_refused(server: Server, secured: Secured) -> None:
    with secured.kerberos() as client:
        token = read_token(client.get_delegation_token("alice", "alice"))
    forged = type(token)(token.identifier, bytes(20)).to_text()
    with pytest.raises(LoginError, match="The password of the token is wrong"):
        secured.token(forged).getStatus()


def test_a_client_without_login_is_kept_out(server: Server, secured: Secured) -> None:
    with pytest.raises(Exception, match="This server asks for a login; it accepts kerberos, token"):
        connect(secured.uri, timeout=30).get_all_databases()


def test_only_users_of_the_setting_see_the_tokens_of_other_servers(server: Server, secured: Secured) -> None:
    with secured.kerberos() as client:
        for ask in (client.get_master_keys, client.get_all_token_identifiers, lambda: client.add_master_key("k")):
            with pytest.raises(Exception, match=r"alice \(by kerberos\) may not see or change stored tokens"):
                ask()


def test_another_server_keeps_its_tokens_and_keys(server: Server, secured: Secured) -> None:
    with secured.kerberos(HIVE_SERVER) as client:
        assert client.add_token("id", "token")
        assert not client.add_token("id", "token")
        assert (client.get_token("id"), client.get_token("other"), client.get_all_token_identifiers()) == ("token", "", ["id"])
        assert client.remove_token("id")
        number = client.add_master_key("key")
        client.update_master_key(number, "changed")
        assert client.get_master_keys() == ["changed"]
        assert client.remove_master_key(number)
        with pytest.raises(NoSuchObjectException, match=f"No key found with keyId: {number}"):
            client.update_master_key(number, "again")


def test_a_frame_beyond_the_limit_and_one_that_is_forged_end_the_connection(server: Server, secured: Secured) -> None:
    for frame in (b"\x7f\xff\xff\xff", b"\0\0\0\x20" + b"x" * 32, b"\0\0\0\0"):
        with secured.kerberos(qualities=("integrity",)) as client:
            assert client.getStatus() == 2
            sock = client._connected()._sock  # type: ignore[attr-defined]
            assert sock is not None
            sock.sendall(frame)
            while sock.recv(4096):
                pass
    with secured.kerberos() as client:
        assert client.getStatus() == 2


def test_many_half_logins_do_no_harm(server: Server, secured: Secured) -> None:
    sockets = []
    for name in (b"GSSAPI", b"DIGEST-MD5", b"NONE", b"\xff" * 100):
        sock = socket.create_connection(("localhost", secured.port), 30)
        sock.sendall(b"\x01" + len(name).to_bytes(4, "big") + name + b"\x02\0\0\0\x03abc")
        assert sock.recv(1) == b"\x03"
        sockets.append(sock)
    with secured.kerberos() as client:
        assert client.getStatus() == 2
    for sock in sockets:
        sock.close()


WITHOUT_LIBRARY = (COMMAND[0], "-c", "import sys; sys.modules['gssapi'] = None; " + COMMAND[2])


def test_without_the_library_server_and_client_name_the_extra(kdc: Kdc, tmp_path: Path) -> None:
    own = Secured(kdc, tmp_path / "home")
    variables = environment(own.home, {**kdc.variables, "METASTORE_CLIENT_LOGIN": "kerberos"})
    for arguments in (["serve", *own.settings()], ["ls"]):
        ended = subprocess.run(
            [*WITHOUT_LIBRARY, *arguments], env=variables, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
        )
        assert ended.returncode != 0
        assert "needs the library gssapi" in ended.stderr
        assert "pip install '.[kerberos]'" in ended.stderr
        assert "Traceback" not in ended.stderr


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"hive.metastore.kerberos.keytab.file": "/nowhere"}, "kerberos_keytab: .* the file does not exist"),
        ({"hive.metastore.kerberos.principal": f"hive/other@{REALM}"}, f"it has no key of hive/other@{REALM}"),
        ({"hive.metastore.kerberos.principal": ""}, "needs kerberos_principal and kerberos_keytab"),
        ({"hadoop.rpc.protection": "much"}, "none of authentication, integrity, privacy"),
        ({"hadoop.security.auth_to_local": "RULE:x"}, "kerberos_name_rules: 'RULE:x' is not a rule"),
    ],
)
def test_a_server_whose_settings_do_not_serve_does_not_start(kdc: Kdc, tmp_path: Path, settings: dict[str, str], reason: str) -> None:
    own = Secured(kdc, tmp_path / "home")
    ended = subprocess.run(
        [*COMMAND, "serve", *own.settings(**settings)],
        env=environment(own.home, kdc.variables), cwd=ROOT, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert ended.returncode != 0
    assert re.search(reason, ended.stderr.replace("\n", " "))
    assert "Traceback" not in ended.stderr
