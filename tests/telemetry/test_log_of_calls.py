"""The log of a real server: the calls that have a line, reasons of failures, the loss of the database, and the effects of signals."""

from __future__ import annotations

import os
import re
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from metastore import idl
from metastore.client import connect
from metastore.methods.interface.errors import reason
from tests.support.databases.replicas import alone
from tests.support.servers.servers import Server, serving
from tests.support.servers.waiting import until
from tests.wire.http.test_pages import get, sample


def events(server: Server, event: str) -> list[dict[str, Any]]:
    """Return the lines of the log of one kind that are there now."""
    return [line for line in server.lines() if line["event"] == event]


def workers(server: Server) -> set[int]:
    return set(server.children())


def call_some(server: Server) -> None:
    """A read, a change and two calls that fail."""
    with connect(server.uri, timeout=20) as client:
        client.get_all_databases()
        client.create_database(idl.Database("d"))
        with pytest.raises(idl.NoSuchObjectException):
            client.get_database("nowhere")
        with pytest.raises(idl.AlreadyExistsException):
            client.create_database(idl.Database("d"))


@pytest.mark.parametrize(
    ("options", "logged"),
    [
        ((), ["create_database", "get_database", "create_database"]),
        (("--set", "log_calls=all"), ["get_all_databases", "create_database", "get_database", "create_database"]),
        (("--set", "log_calls=failures"), ["get_database", "create_database"]),
    ],
)
def test_the_setting_says_which_calls_are_logged(options: tuple[str, ...], logged: list[str], tmp_path: Path) -> None:
    with serving("--workers", "1", *options, home=tmp_path) as server:
        call_some(server)
        until(lambda: len(events(server, "call")) >= len(logged))
        assert [line["method"] for line in events(server, "call")] == logged
        lacking, there = events(server, "call")[-2:]
        assert (lacking["outcome"], "nowhere" in lacking["reason"]) == ("NoSuchObject", True)
        assert (there["outcome"], "d" in there["reason"]) == ("AlreadyExists", True)
        assert all("reason" not in line for line in events(server, "call")[:-2])
        assert get(server.uri, "/metrics")[1].count('method="get_all_databases",outcome="ok"'), "what is not logged is counted"


def test_a_reason_is_short_and_holds_no_password() -> None:
    shown = reason(ValueError("s3a://key:hunter2@bucket/t " + "x" * 5000))
    assert "hunter2" not in shown
    assert len(shown) == 1000
    assert reason(KeyError()) == "KeyError"


def test_a_signal_switches_to_everything_and_back_in_all_workers(tmp_path: Path) -> None:
    def read(method: str, *arguments: str) -> None:
        for _ in range(12):  # a connection each, so that both processes get some
            with connect(server.uri, timeout=20) as client:
                getattr(client, method)(*arguments)

    def logged(method: str) -> int:
        return sum(line["method"] == method for line in events(server, "call"))

    def switch(said: str) -> None:
        server.process.send_signal(signal.SIGUSR2)
        until(lambda: events(server, said))

    with serving("--workers", "2", "--set", "log_level=warning", home=tmp_path) as server:
        read("get_databases", "*")
        assert events(server, "call") == [], "reads are quiet before"
        switch("everything is logged until the next SIGUSR2")
        read("get_all_databases")
        until(lambda: logged("get_all_databases") == 12)
        assert until(lambda: events(server, "client left"))[0]["level"] == "debug"
        for pid in workers(server):
            os.kill(pid, signal.SIGUSR2)  # as a signal to the whole group does: workers ignore it, the supervisor acts on it
        switch("the settings log_level and log_calls apply again")
        read("get_all_tables", "default")
        server.process.terminate()
        assert server.process.wait(60) == 0
        assert logged("get_all_tables") == 0, "and quiet again"


def test_a_signal_prints_the_stacks_of_all_processes_and_ends_none(tmp_path: Path) -> None:
    """A signal prints the stacks each time, while the threads of the workers continue."""
    with serving("--workers", "2", home=tmp_path) as server, ThreadPoolExecutor(4) as callers:
        before = workers(server)
        done = Event()

        def keep_calling(name: str) -> int:
            calls = 0
            with connect(server.uri, timeout=60) as client:
                while not done.is_set():
                    client.create_database(idl.Database(name))
                    client.drop_database(name, True, False)
                    calls += 1
            return calls

        calling = [callers.submit(keep_calling, f"d{number}") for number in range(4)]
        try:
            for times in range(1, 21):
                server.process.send_signal(signal.SIGUSR1)
                until(lambda: all(printed(server, pid) >= times for pid in (server.process.pid, *before)))  # noqa: B023
        finally:
            done.set()
        assert min(each.result(60) for each in calling) > 0
        assert workers(server) == before
        assert "in serve\n" in server.log.read_text(), "threads of clients are among them"
        (victim, *_) = before
        known = printed(server, victim)
        os.kill(victim, signal.SIGUSR1)
        until(lambda: printed(server, victim) > known)
        assert workers(server) == before
        assert server.process.poll() is None


def printed(server: Server, pid: int) -> int:
    """Return the number of times that a process has printed its stacks."""
    return len(re.findall(rf"stacks of process {pid}\nthread \d+\n  File ", server.log.read_text()))


def test_each_worker_says_once_that_the_database_is_lost_and_once_that_it_is_back(tmp_path: Path) -> None:
    with alone() as database:
        options = ("--db", database.address("primary"), "--workers", "2", "--set", "compactor_check_interval=1s")
        with serving(*options, home=tmp_path) as server:
            assert get(server.uri, "/readyz")[0] == 200
            assert events(server, "database lost") == []
            database.kill("primary")
            lost = until(lambda: each_worker(server, "database lost"))
            for line in lost:
                assert line["level"] == "error"
                assert line["database"] == database.address("primary")
                assert "connect" in line["reason"], "refused, or closed by a server that ends"
            assert get(server.uri, "/readyz")[0] == 503
            text = get(server.uri, "/metrics")[1]
            assert sample(text, "metastore_ready") == sample(text, "metastore_database_up") == 0
            assert sample(text, "metastore_workers") == 2, "the counts of the processes are shown all the same"
            assert "refused" in events(server, "not ready")[0]["reason"]
            assert events(server, "database is back") == []
            database.start_again("primary")
            for line in until(lambda: each_worker(server, "database is back")):
                assert line["seconds"] > 0
            with connect(server.uri, timeout=30) as client:
                client.create_database(idl.Database("d"))
            assert get(server.uri, "/readyz")[0] == 200
            assert len(events(server, "ready again")) <= len(events(server, "not ready")) <= 2
            assert len(events(server, "database lost")) == len(events(server, "database is back")) == 2


def each_worker(server: Server, event: str) -> list[dict[str, Any]]:
    """Return the lines of an event once each worker has one."""
    found = events(server, event)
    return found if {line["pid"] for line in found} == workers(server) else []
