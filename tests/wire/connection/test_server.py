"""The supervisor and its worker processes, in a process of their own."""

from __future__ import annotations

import os
import signal
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from metastore.client import connect
from metastore.service.call.context import Metastore
from metastore.wire.connection.server import ServerThread
from metastore.wire.messages.protocol import Unreadable
from metastore.wire.sockets.settings import WireSettings
from tests.support.servers.processes import children, runs
from tests.support.servers.stub_server import HANDLERS, Stub
from tests.wire.connection.test_calls import wait_until

PROGRAM = """
import ctypes, os, sys, threading, time
from types import SimpleNamespace
from typing import cast
from metastore import log
from metastore.wire.connection.server import Supervisor
from metastore.wire.sockets.settings import WireSettings
from tests.support.catalog.methods import entries
from tests.support.servers.stub_server import HANDLERS, Stub

log.configure("warning")

def make():
    if "fail" in sys.argv:
        raise RuntimeError("no database")
    return Stub()

def wait(call, args):
    print("entered", flush=True)
    time.sleep(0.3)
    return "waited"

def hold(call, args):
    ctypes.PyDLL(None).sleep(60)  # does not give the interpreter up

def fork_of_a_full_system(fork=os.fork, refused=[]):
    if not refused:
        refused.append(True)
        raise OSError("Resource temporarily unavailable")
    return fork()

if "full" in sys.argv:
    os.fork = fork_of_a_full_system

Supervisor_ = Supervisor(
    WireSettings(port=0, workers=2, drain_timeout=10.0, watchdog_timeout=1.5),
    make,
    methods={**HANDLERS, **entries({"getName": wait, "getCpuProfile": hold})},
    ready=lambda host, port: print("ready", port, flush=True),
    on_worker_death=lambda pid: print("dead", pid, flush=True),
)
sys.exit(Supervisor_.run())
"""


class Running:
    """A server process whose lines of output can be waited for."""

    def __init__(self, *args: str) -> None:
        self.process = subprocess.Popen([sys.executable, "-c", PROGRAM, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.lines: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line.strip())

    def wait_for(self, start: str) -> str:
        wait_until(lambda: any(line.startswith(start) for line in list(self.lines)))
        return next(line for line in self.lines if line.startswith(start))

    @property
    def uri(self) -> str:
        return f"thrift://127.0.0.1:{self.wait_for('ready').split()[1]}"

    def children(self) -> set[int]:
        return set(children(self.process.pid))

    def end(self) -> None:
        self.process.kill()
        self.process.wait()


@pytest.fixture
def run() -> Iterator[Callable[..., Running]]:
    started: list[Running] = []

    def run(*args: str) -> Running:
        started.append(Running(*args))
        return started[-1]

    yield run
    for server in started:
        server.end()


def test_sigterm_lets_the_call_in_flight_finish_and_ends_with_0(run: Callable[..., Running]) -> None:
    server = run()
    results: list[str] = []
    idle = connect(server.uri, timeout=10)
    assert idle.getStatus() == 2
    caller = threading.Thread(target=lambda: results.append(connect(server.uri, timeout=10).getName()))
    caller.start()
    server.wait_for("entered")
    server.process.send_signal(signal.SIGTERM)
    assert server.process.wait(30) == 0
    caller.join()
    assert results == ["waited"]
    with pytest.raises(OSError, match=r"closed|reset|refused"):
        idle.getStatus()
    with pytest.raises(ConnectionError, match="No metastore answers"):
        connect(server.uri, timeout=10).getStatus()


def test_a_killed_worker_is_replaced(run: Callable[..., Running]) -> None:
    server = run()
    assert connect(server.uri, timeout=10).getStatus() == 2
    before = server.children()
    assert len(before) == 2
    victim = min(before)
    os.kill(victim, signal.SIGKILL)
    server.wait_for(f"dead {victim}")
    wait_until(lambda: len(server.children()) == 2 and victim not in server.children())
    assert connect(server.uri, timeout=10).getStatus() == 2


def test_a_worker_that_the_system_has_no_process_for_comes_later(run: Callable[..., Running]) -> None:
    server = run("full")
    assert connect(server.uri, timeout=10).getStatus() == 2
    assert len(server.children()) == 2


def test_a_connection_that_is_reset_while_it_is_accepted_is_closed(server: ServerThread) -> None:
    closed: list[bool] = []

    def refuse(*_arguments: object) -> None:
        raise OSError("Invalid argument")  # the error of macOS

    reset = SimpleNamespace(setsockopt=refuse, close=lambda: closed.append(True))
    server._worker._accept(SimpleNamespace(accept=lambda: (reset, ("127.0.0.1", 1))))
    assert closed == [True]
    assert connect(server.uri, timeout=10).getStatus() == 2


def test_a_worker_whose_interpreter_is_held_is_replaced(run: Callable[..., Running]) -> None:
    server = run()
    client = connect(server.uri, timeout=30)
    sock = client._connected()._sock  # type: ignore[attr-defined]
    sock.sendall(b"\x80\x01\0\x01\0\0\0\x0dgetCpuProfile\0\0\0\x07\0")
    server.wait_for("dead")
    client.close()
    wait_until(lambda: len(server.children()) == 2)
    assert client.getStatus() == 2


def test_workers_end_when_their_supervisor_is_killed(run: Callable[..., Running]) -> None:
    server = run()
    assert connect(server.uri, timeout=10).getStatus() == 2
    workers = server.children()
    server.end()
    wait_until(lambda: not any(runs(pid) for pid in workers))


def test_a_worker_that_can_not_start_ends_the_server(run: Callable[..., Running]) -> None:
    server = run("fail")
    assert server.process.wait(30) == 1
    assert server.process.stderr is not None
    assert "no database" in server.process.stderr.read()


def test_a_taken_port_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(OSError, match=f"Can not listen on 127.0.0.1:{port}"):
            ServerThread(WireSettings(port=port), cast(Metastore, Stub()), HANDLERS)


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with a key and a self-signed certificate for localhost."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(timezone.utc)
    built = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    path = tmp_path_factory.mktemp("tls") / "server.pem"
    path.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        + built.public_bytes(serialization.Encoding.PEM)
    )
    return path


@pytest.mark.parametrize("park_after", [0.01, 10.0])
def test_tls_serves_and_a_plain_client_is_turned_away(certificate: Path, park_after: float) -> None:
    settings = WireSettings(port=0, tls_certificate=certificate, park_after=park_after)
    with ServerThread(settings, cast(Metastore, Stub()), HANDLERS) as server:
        trust = ssl.create_default_context(cafile=str(certificate))
        uri = f"thrift://localhost:{server.port}"
        with connect(uri, timeout=10, tls=trust) as client:
            assert client.getStatus() == 2
            name = "x" * 200_000
            assert client.get_table("d", name).tableName == name
            if park_after < 1:
                wait_until(lambda: bool(server._worker._parked))
            assert client.getStatus() == 2
        with connect(uri, timeout=10) as plain, pytest.raises((OSError, Unreadable)):
            plain.getStatus()
        with connect(uri, timeout=10, tls=trust) as client:
            assert client.getStatus() == 2


def test_a_drain_waits_for_the_call_and_closes_the_silent(stub: Stub) -> None:
    server = ServerThread(WireSettings(port=0), cast(Metastore, stub), HANDLERS).__enter__()
    results: list[object] = []
    silent = connect(server.uri, timeout=10)
    assert silent.getStatus() == 2
    sock = silent._connected()._sock  # type: ignore[attr-defined]
    caller = threading.Thread(target=lambda: results.append(connect(server.uri, timeout=10).get_all_databases()))
    caller.start()
    assert stub.entered.wait(60)
    stopper = threading.Thread(target=server.stop)
    stopper.start()
    assert sock.recv(1) == b"", "the server closes the silent connection"
    assert stopper.is_alive()
    stub.release.set()
    stopper.join(30)
    caller.join(30)
    assert results == [["waited"]]
