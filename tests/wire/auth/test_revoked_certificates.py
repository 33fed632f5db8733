"""A list of revoked certificates: a client with one of them is refused, or cut off if it is connected; all others are served on."""

from __future__ import annotations

import ssl
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from metastore.client import Client, connect
from metastore.wire.messages.protocol import Unreadable
from tests.support.logins.certificates import Authority
from tests.support.servers.servers import Server, run_command, serving
from tests.support.servers.waiting import until


@dataclass(frozen=True)
class Place:
    """A server that accepts logins by certificate, and the files that it reads."""

    server: Server
    authority: Authority
    clients: Authority
    list: Path
    files: dict[str, Path]

    def client(self, name: str) -> Client:
        trust = ssl.create_default_context(cafile=str(self.authority.file))
        trust.load_cert_chain(self.files[name])
        return connect(self.server.uri, timeout=20, tls=trust)

    def is_let_in(self, name: str) -> bool:
        with self.client(name) as client:
            try:
                return bool(client.set_ugi(name, []) == [name])
            except (OSError, Unreadable):
                return False


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    authority, clients = Authority(tmp_path, "servers"), Authority(tmp_path, "clients")
    files = {name: clients.issue(name) for name in ("trino", "stolen")}
    revoked = clients.revoke(tmp_path / "revoked.crl")
    options = {
        "authentication": "certificate",
        "tls_certificate": authority.issue("server"),
        "tls_client_ca": clients.file,
        "tls_client_crl": revoked,
    }
    with serving(
        "--workers", "1", *(each for name, text in options.items() for each in ("--set", f"{name}={text}")), home=tmp_path
    ) as server:
        yield Place(server, authority, clients, revoked, files)


def test_a_revoked_certificate_is_refused_from_the_next_connection_on(place: Place) -> None:
    assert place.is_let_in("trino")
    assert place.is_let_in("stolen")
    place.clients.revoke(place.list, place.files["stolen"])
    assert not place.is_let_in("stolen")
    assert place.is_let_in("trino")
    until(lambda: "certificate revoked" in place.server.log.read_text())


@pytest.mark.parametrize("busy", [True, False])
def test_a_session_by_a_revoked_certificate_is_cut_off(place: Place, busy: bool) -> None:
    with place.client("stolen") as stolen, place.client("trino") as trino:
        assert stolen.get_all_databases() == trino.get_all_databases() == ["default"]
        place.clients.revoke(place.list, place.files["stolen"])
        end = time.monotonic() + 60
        connection = stolen._connection
        assert connection is not None
        while busy or not connection.has_ended():
            assert time.monotonic() < end, "it is still let in"
            time.sleep(0.1)
            if busy:
                try:
                    assert stolen.get_all_databases() == ["default"]
                except (OSError, Unreadable):
                    break
        assert not place.is_let_in("stolen")
        for _ in range(2):
            assert trino.get_all_databases() == ["default"], "it logs in again"


def test_a_list_of_others_a_broken_one_and_one_out_of_date(place: Place, tmp_path: Path) -> None:
    good = place.list.read_bytes()
    for bad in (b"", good[: len(good) // 2], place.clients.file.read_bytes()):
        place.list.write_bytes(bad)
        assert place.is_let_in("trino"), "the last good list serves on"
    assert place.server.logged(event="certificates not read again, the old ones stay in use")
    place.list.unlink()
    assert place.is_let_in("trino")
    place.clients.revoke(place.list, until=datetime.now(timezone.utc) - timedelta(hours=1))
    assert not place.is_let_in("trino")
    until(lambda: "CRL has expired" in place.server.log.read_text())
    Authority(tmp_path, "strangers").revoke(place.list)
    assert not place.is_let_in("trino"), "nothing says that it is not revoked"
    place.list.write_bytes(place.list.read_bytes() + good)
    assert place.is_let_in("trino")


@pytest.mark.parametrize(
    ("content", "message"),
    [(None, "No such file"), ("", "NO_CERTIFICATE_OR_CRL_FOUND"), ("authority", "holds no list of revoked certificates")],
)
def test_a_server_without_the_list_that_it_is_to_go_by_does_not_start(tmp_path: Path, content: str | None, message: str) -> None:
    authority = Authority(tmp_path)
    file = tmp_path / "list.crl"
    if content is not None:
        file.write_bytes(authority.file.read_bytes() if content else b"")
    options = {"tls_certificate": authority.issue("server"), "tls_client_ca": authority.file, "tls_client_crl": file}
    arguments = [each for name, text in options.items() for each in ("--set", f"{name}={text}")]
    done = run_command("serve", "--port", "0", *arguments, home=tmp_path)
    assert done.returncode == 1
    assert message in done.stderr
    done = run_command("serve", "--port", "0", *arguments[:2], *arguments[4:], home=tmp_path)
    assert done.returncode in (1, 2)
    assert "tls_client_crl lists revoked certificates of the authorities in tls_client_ca; set that, too" in done.stderr
