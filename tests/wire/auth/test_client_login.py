"""Our client's errors when a login can not begin or a server violates SASL, and the login that the environment chooses."""

from __future__ import annotations

import base64
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from metastore.client import Client, connect
from metastore.client_login import LoginError, Plain, Token, from_environment
from metastore.idl import FieldSchema, Partition, SerDeInfo, StorageDescriptor, Table
from metastore.rules.accounts.delegation_tokens import KIND
from metastore.rules.accounts.delegation_tokens import DelegationToken as Written
from metastore.service.accounts import users
from metastore.store.core import migrate
from metastore.store.core.database import Database
from tests.support.servers.servers import serving

TOKEN = Written(b"identifier", b"password")
TEXT = TOKEN.to_text()

MANY = 10_001
"""The number of partitions, more than a page: the reply has several blocks, and each has the layer of the login."""


def add_many_partitions(client: Client) -> None:
    """Make the table `default.t` with its partitions."""
    sd = StorageDescriptor(cols=[FieldSchema("a", "int")], serdeInfo=SerDeInfo(parameters={}))
    client.create_table(Table(dbName="default", tableName="t", sd=sd, partitionKeys=[FieldSchema("k", "int")], parameters={}))
    for first in range(0, MANY, 2000):
        values = range(first, min(first + 2000, MANY))
        client.add_partitions([Partition(dbName="default", tableName="t", values=[str(each)], sd=sd, parameters={}) for each in values])


def file_of(path: Path, *tokens: Written) -> str:
    raw = b"".join(b"\x01a" + base64.urlsafe_b64decode(token.to_text() + "==") for token in tokens)
    path.write_bytes(b"HDTS\0" + bytes([len(tokens)]) + raw + b"\0")
    return str(path)


@contextmanager
def answering(answer: bytes, host: str = "127.0.0.1") -> Iterator[tuple[str, list[bytes]]]:
    """A server that sends the same answer to each client; yields its address and the messages that it received."""
    said: list[bytes] = []
    with socket.create_server((host, 0)) as listener:

        def serve() -> None:
            sock, _ = listener.accept()
            with sock:
                sock.settimeout(10)
                said.append(sock.recv(4096))
                with suppress(OSError):  # the client may have closed already
                    sock.sendall(answer)
                    sock.shutdown(socket.SHUT_WR)
                    while sock.recv(4096):
                        pass

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"{host}:{listener.getsockname()[1]}", said
        thread.join(60)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (b"", "closed the connection at the login"),
        (b"HTTP/1.1 400 Bad request", "does not speak SASL: .* status 72"),
        (b"\x05\x7f\xff\xff\xff", "does not speak SASL: .* bytes"),
        (b"\x03\0\0\0\x05never", "refuses the login by PLAIN: never"),
        (b"\x04\0\0\0\x01\xff", "refuses the login by PLAIN: "),
        (b"\x02\0\0\0\0", "continues with the status 2"),
        (b"\x01\0\0\0\0", "continues with the status 1"),
    ],
)
def test_each_refusal_of_a_login_has_its_reason(answer: bytes, reason: str) -> None:
    with answering(answer) as (address, _), pytest.raises(LoginError, match=reason):
        connect(address, login=Plain("alice", "secret"), timeout=10).getStatus()


@pytest.mark.parametrize("rspauth", [b"", b"rspauth=" + b"0" * 32, b"\xff"])
def test_a_server_that_proves_nothing_is_not_believed(rspauth: bytes) -> None:
    challenge = b'realm="default",nonce="x",algorithm=md5-sess'
    answer = b"\x02" + len(challenge).to_bytes(4, "big") + challenge + b"\x05" + len(rspauth).to_bytes(4, "big") + rspauth
    with answering(answer) as (address, _), pytest.raises(LoginError, match=r"does not know the password|can not be read"):
        connect(address, login=Token(TEXT), timeout=10).getStatus()


def test_a_password_is_not_sent_where_others_can_read_it() -> None:
    host = socket.gethostname()
    reason = f"PLAIN would send the password to {host} unencrypted"
    with answering(b"", host) as (address, said):
        client = connect(address, login=Plain("alice", "secret"), timeout=10)
        with pytest.raises(LoginError, match=reason):
            client.getStatus()
    assert said == [b""]


def test_a_password_lets_in(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/metastore.db"
    database = Database(url)
    migrate.upgrade(database)
    users.add(database, "alice", "open sesame")
    database.close()
    with serving("--db", url, "--set", "authentication=users", home=tmp_path / "home") as server:
        with connect(server.uri, login=Plain("alice", "open sesame"), timeout=30) as client:
            assert client.getStatus() == 2
            add_many_partitions(client)
            assert len(client.get_partitions("default", "t", -1)) == MANY
            assert client.getStatus() == 2
        with pytest.raises(LoginError, match="The server refuses the login by PLAIN"):
            connect(server.uri, login=Plain("alice", "close sesame"), timeout=30).getStatus()
        with pytest.raises(LoginError, match="does not offer the SASL mechanism DIGEST-MD5; it offers PLAIN"):
            connect(server.uri, login=Token(TEXT), timeout=30).getStatus()


def test_without_variables_nobody_logs_in() -> None:
    assert from_environment({}) is None
    assert from_environment({"METASTORE_CLIENT_LOGIN": "none", "HADOOP_TOKEN_FILE_LOCATION": "/nowhere"}) is None


def test_a_token_comes_from_its_text_or_from_hadoops_file(tmp_path: Path) -> None:
    path = file_of(tmp_path / "tokens", Written(b"h", b"d", "HDFS_DELEGATION_TOKEN", "nn"), Written(b"o", b"t", KIND, "other"), TOKEN)
    hadoop = {"HADOOP_TOKEN_FILE_LOCATION": path}
    assert from_environment(hadoop) == Token(TEXT)
    assert from_environment({**hadoop, "METASTORE_CLIENT_LOGIN": "token"}) == Token(TEXT)
    assert from_environment({**hadoop, "METASTORE_CLIENT_LOGIN": "token", "METASTORE_CLIENT_TOKEN": "text"}) == Token("text")
    assert Token.from_file(path, "other") == Token(Written(b"o", b"t", KIND, "other").to_text())


def test_a_file_without_the_metastores_token_is_of_other_services(tmp_path: Path) -> None:
    path = file_of(tmp_path / "tokens", Written(b"h", b"d", "HDFS_DELEGATION_TOKEN", "nn"))
    assert from_environment({"HADOOP_TOKEN_FILE_LOCATION": path}) is None
    with pytest.raises(LoginError, match="has no HIVE_DELEGATION_TOKEN for ''; it has HDFS_DELEGATION_TOKEN for 'nn'"):
        from_environment({"HADOOP_TOKEN_FILE_LOCATION": path, "METASTORE_CLIENT_LOGIN": "token"})


def test_a_missing_file_and_one_of_another_kind_are_errors(tmp_path: Path) -> None:
    with pytest.raises(LoginError, match="can not be read: No such file"):
        Token.from_file(tmp_path / "none")
    (tmp_path / "other").write_text("x")
    with pytest.raises(LoginError, match="not a file of Hadoop's tokens"):
        Token.from_file(tmp_path / "other")


@pytest.mark.parametrize(
    ("variables", "reason"),
    [
        ({"LOGIN": "token"}, "METASTORE_CLIENT_LOGIN=token needs METASTORE_CLIENT_TOKEN or HADOOP_TOKEN_FILE_LOCATION"),
        ({"LOGIN": "plain", "USER": "alice"}, "needs METASTORE_CLIENT_USER and METASTORE_CLIENT_PASSWORD"),
        ({"LOGIN": "magic"}, "METASTORE_CLIENT_LOGIN=magic is unknown: use kerberos, token, plain, jwt or none"),
    ],
)
def test_missing_variables_are_named(variables: dict[str, str], reason: str) -> None:
    with pytest.raises(LoginError, match=reason):
        from_environment({f"METASTORE_CLIENT_{name}": value for name, value in variables.items()})


def test_user_and_password_come_from_the_environment() -> None:
    variables = {"METASTORE_CLIENT_LOGIN": "plain", "METASTORE_CLIENT_USER": "alice", "METASTORE_CLIENT_PASSWORD": "secret"}
    found = from_environment(variables)
    assert found == Plain("alice", "secret")
    assert "secret" not in repr(found)
    assert TEXT not in repr(Token(TEXT))


def test_kerberos_comes_from_the_environment() -> None:
    pytest.importorskip("gssapi", reason="built with libkrb5-dev: pip install '.[kerberos]'")
    from metastore.client_login.kerberos import Kerberos

    variables = {"METASTORE_CLIENT_LOGIN": "kerberos"}
    assert from_environment(variables) == Kerberos()
    more = {"METASTORE_CLIENT_PRINCIPAL": "m/_HOST@R", "METASTORE_CLIENT_USER": "a@R", "METASTORE_CLIENT_KEYTAB": "/k"}
    assert from_environment({**variables, **more}) == Kerberos(principal="m/_HOST@R", user="a@R", keytab="/k")
