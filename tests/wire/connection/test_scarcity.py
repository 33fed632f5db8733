"""A real server whose disk is full, or whose file descriptors are used up: it reports the shortage, survives, and recovers later."""

from __future__ import annotations

import resource
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from metastore import idl
from metastore.client import Client, connect
from metastore.wire.sockets.descriptors import PAUSE
from tests.support.servers.servers import COMMAND, Server, serving
from tests.support.servers.waiting import until
from tests.telemetry.test_log_of_calls import events, workers
from tests.telemetry.test_telemetry import STORAGE
from tests.wire.http.test_pages import get, sample


def make_tables(client: Client) -> Iterator[str]:
    """Make tables, and yield their names, until the server refuses one; that name comes last."""
    for number in range(10_000):
        try:
            client.create_table(idl.Table(f"t{number}", "default", sd=STORAGE, parameters={"text": "x" * 3000}))
        except idl.MetaException as refusal:
            yield f"t{number}"
            said = str(refusal.message)
            break
        yield f"t{number}"
    assert "database sqlite takes no changes" in said
    assert "nothing was changed" in said


@contextmanager
def full_disk(server: Server, folder: Path) -> Iterator[None]:
    """Forbid the workers files much larger than the largest one there: for them this is a full disk."""
    largest = max(path.stat().st_size for path in folder.iterdir() if path.is_file())
    for pid in workers(server):
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (largest + 100_000, resource.RLIM_INFINITY))
    try:
        yield
    finally:
        for pid in workers(server):
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


def test_a_full_disk_shows_and_nothing_is_lost(tmp_path: Path) -> None:
    folder = tmp_path / "data" / "metastore"
    with serving("--workers", "1", home=tmp_path) as server, connect(server.uri, timeout=60) as client:
        assert get(server.uri, "/readyz")[0] == 200
        text = get(server.uri, "/metrics")[1]
        assert sample(text, "metastore_ready") == sample(text, "metastore_database_writable") == 1
        with full_disk(server, folder):
            *made, refused = make_tables(client)
            assert made
            until(lambda: "nothing was changed" in get(server.uri, "/readyz")[1])  # the test write of the readiness check fails too
            status, text = get(server.uri, "/readyz")
            assert (status, "takes no changes" in text) == (503, True)
            assert sorted(client.get_all_tables("default")) == sorted(made), "reads go on"
            assert not (folder / "warehouse" / refused).exists(), "and no directory is left"
            text = get(server.uri, "/metrics")[1]
            assert sample(text, "metastore_ready") == sample(text, "metastore_database_writable") == 0
            assert sample(text, "metastore_database_up") == 1
        (first, *_) = events(server, "database takes no changes")
        assert first["level"] == "error"
        assert first["reason"]
        until(lambda: get(server.uri, "/readyz")[0] == 200)
        client.create_table(idl.Table(refused, "default", sd=STORAGE, parameters={}))
        until(lambda: get(server.uri, "/readyz")[0] == 200 and events(server, "database takes changes again"))
        for event in ("database takes no changes", "database takes changes again", "not ready", "ready again"):
            assert 1 <= len(events(server, event)) <= 2, "and no line for each call"


def test_a_server_without_descriptors_says_so_once_and_goes_on_when_there_are_some(tmp_path: Path) -> None:
    few = ("sh", "-c", 'ulimit -n 64 && exec "$@"', "sh", *COMMAND)
    with serving("--workers", "1", home=tmp_path, command=few) as server, ExitStack() as clients:
        host, _, port = server.uri.removeprefix("thrift://").rpartition(":")
        with connect(server.uri, timeout=60) as early:
            early.get_all_databases()
            opened = [clients.enter_context(socket.create_connection((host, int(port)), 20)) for _ in range(80)]
            began = time.monotonic()
            (line,) = until(lambda: events(server, "no room for another connection"))
            assert "Too many open files" in line["reason"]
            assert line["descriptors"] == 64
            assert line["connections"] > 10
            assert early.get_all_databases() == ["default"], "who is connected is served"
            for each in opened:
                each.close()
            text = until(lambda: tried(server))
            most = (time.monotonic() - began) / PAUSE + 2
            assert 1 <= sample(text, "metastore_accept_failures_total") <= most, "it pauses between attempts"
        assert len(events(server, "no room for another connection")) == 1
        (line,) = events(server, "connections are accepted again")
        assert line["seconds"] > 0
        with connect(server.uri, timeout=60) as late:
            assert late.get_all_databases() == ["default"]


def tried(server: Server) -> str:
    """Return the metrics, "" while the server accepts no connection."""
    try:
        return get(server.uri, "/metrics")[1]
    except OSError:
        return ""
