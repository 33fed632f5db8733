import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import structlog

from metastore.app import build, close
from metastore.config import Config
from metastore.errors import MetaError
from metastore.jobs import JOBS, Job, Runner
from metastore.service.call.context import Metastore
from metastore.store.core import leases
from metastore.store.core.database import Database
from tests.support.databases.statement_counts import counting
from tests.support.servers.servers import serving
from tests.support.servers.waiting import until

PATIENCE = 60.0


@pytest.fixture
def make(database_url: str, tmp_path: Path) -> Iterator[Callable[..., Metastore]]:
    made: list[Metastore] = []

    def one(**settings: object) -> Metastore:
        values = {"db": database_url, "warehouse": str(tmp_path / "w"), "data_directory": str(tmp_path / "d"), **settings}
        made.append(build(Config(**values)))  # type: ignore[arg-type]  # names of settings
        return made[-1]

    yield one
    for metastore in made:
        close(metastore)


class Counting:
    """A job that notes its runs, and the most runs at a time."""

    def __init__(self, *, error: Exception | None = None, waits: threading.Event | None = None) -> None:
        self.runs: list[int | None] = []
        self.most = self._now = 0
        self._error, self._waits, self._lock = error, waits, threading.Lock()

    def __call__(self, metastore: Metastore, since: int | None) -> None:  # noqa: ARG002  # a job takes both
        with self._lock:
            self._now += 1
            self.most = max(self.most, self._now)
        self.runs.append(since)
        if self._waits is not None:
            self._waits.wait(PATIENCE)
        with self._lock:
            self._now -= 1
        if self._error is not None:
            raise self._error


def job(run: Counting, name: str = "test", switch: str | None = None) -> Job:
    return Job(name, "compactor_cleaner_interval", switch, run)


def holder(database: Database, name: str = "test") -> str | None:
    found = database.read(lambda session: leases.find(session, name))
    return found[0] if found is not None and found[1] > time.time_ns() // 1_000_000 else None


def test_one_of_many_workers_runs_a_job_and_another_takes_over(make: Callable[..., Metastore]) -> None:
    run = Counting()
    metastores = [make(compactor_cleaner_interval=0.1) for _ in range(3)]
    runners = [Runner(metastore, [job(run)]) for metastore in metastores]
    for runner in runners:
        runner.start()
    database = metastores[0].database
    until(lambda: len(run.runs) > 3)
    first = holder(database)
    assert first is not None
    assert run.most == 1
    leader = next(runner for runner in runners if runner._who == first)
    leader.stop()
    assert holder(database) != first, "a clean stop gives the lease back"
    seen = len(run.runs)
    until(lambda: len(run.runs) > seen)
    until(lambda: holder(database) is not None)
    assert holder(database) != first
    for runner in runners:
        runner.stop()
    assert holder(database) is None
    assert run.most == 1


def test_a_run_gets_the_time_when_the_last_good_one_began(make: Callable[..., Metastore]) -> None:
    run = Counting()
    began = time.time_ns() // 1_000_000
    runner = Runner(make(compactor_cleaner_interval=0.1), [job(run)])
    runner.start()
    until(lambda: len(run.runs) > 2)
    runner.stop()
    assert run.runs[0] is None
    first, second = run.runs[1:3]
    assert first is not None
    assert second is not None
    assert began <= first < second


@pytest.mark.parametrize(
    ("error", "shown"),
    [(OSError("the disk is gone"), "exc_info"), (MetaError("the database is gone"), "reason")],
    ids=["a fault", "what says all"],
)
def test_a_job_that_fails_is_logged_and_tried_again(error: Exception, shown: str, make: Callable[..., Metastore]) -> None:
    bad, good = Counting(error=error), Counting()
    runner = Runner(make(compactor_cleaner_interval=0.1), [job(bad, "bad"), job(good, "good")])
    with structlog.testing.capture_logs() as logs:
        runner.start()
        until(lambda: len(bad.runs) > 1 and len(good.runs) > 1)
        runner.stop()
    assert bad.runs[:2] == [None, None]
    logged = next(entry for entry in logs if entry["log_level"] == "error")
    assert (logged["event"], logged["job"]) == ("a job failed; it is tried again", "bad")
    assert {"exc_info", "reason"} & set(logged) == {shown}
    assert str(error) in str(logged[shown])


@pytest.mark.parametrize("most", [1, 1_000_000], ids=["once", "always"])
def test_a_job_that_the_system_has_no_thread_for_is_tried_again(
    make: Callable[..., Metastore], monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    """The runner also ends if no job ever got a thread."""
    run = Counting()
    runner = Runner(make(compactor_cleaner_interval=0.1), [job(run)])
    refused: list[str] = []
    start = threading.Thread.start

    def refuse(thread: threading.Thread) -> None:
        if thread.name.startswith("job ") and len(refused) < most:
            refused.append(thread.name)
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", refuse)
    runner.start()
    until(lambda: run.runs if most == 1 else len(refused) > 1)
    runner.stop()


def test_a_long_run_keeps_its_lease_and_holds_up_no_other_job(make: Callable[..., Metastore]) -> None:
    gate = threading.Event()
    slow, quick, other = Counting(waits=gate), Counting(), Counting()
    metastore = make(compactor_cleaner_interval=0.1)
    runner, rival = Runner(metastore, [job(slow), job(quick, "quick")]), Runner(make(compactor_cleaner_interval=0.1), [job(other)])
    runner.start()
    until(lambda: slow.runs)
    rival.start()
    beyond = time.monotonic() + 2.5
    until(lambda: time.monotonic() > beyond)
    assert (len(slow.runs), other.runs) == (1, [])
    assert len(quick.runs) > 3
    gate.set()
    until(lambda: len(slow.runs) > 1)
    runner.stop()
    rival.stop()


def test_a_database_that_does_not_answer_does_not_end_the_jobs(make: Callable[..., Metastore], monkeypatch: pytest.MonkeyPatch) -> None:
    run = Counting()
    metastore = make(compactor_cleaner_interval=0.1)
    broken = threading.Event()
    broken.set()
    failed = threading.Event()
    find = leases.find

    def failing(session: object, name: str) -> object:
        if broken.is_set():
            failed.set()
            raise OSError("no route to host")
        return find(session, name)  # type: ignore[arg-type]

    monkeypatch.setattr(leases, "find", failing)
    runner = Runner(metastore, [job(run)])
    with structlog.testing.capture_logs() as logs:
        runner.start()
        assert failed.wait(PATIENCE)
        broken.clear()
        until(lambda: run.runs)
        runner.stop()
    assert "the lease of a job could not be looked at; it is tried again" in [entry["event"] for entry in logs]


def test_a_job_that_is_switched_off_does_not_run(make: Callable[..., Metastore]) -> None:
    off, on = Counting(), Counting()
    metastore = make(compactor_cleaner_interval=0.1, compactor_cleaner=False)
    runner = Runner(metastore, [job(off, "off", "compactor_cleaner"), job(on, "on")])
    runner.start()
    until(lambda: len(on.runs) > 2)
    runner.stop()
    assert off.runs == []
    nothing = Runner(metastore, [job(off, "off", "compactor_cleaner")])
    nothing.start()
    nothing.stop()


def test_statements_of_a_look_are_few(make: Callable[..., Metastore], request: pytest.FixtureRequest) -> None:
    metastore = make(compactor_cleaner_interval=0.1)
    leader, follower = Runner(metastore, [job(Counting())]), Runner(metastore, [job(Counting())])
    (state,), (waiting,) = leader._states, follower._states
    leader._lease(state)
    with counting(request, metastore.database) as counts:
        counts("keep a lease", lambda: leader._lease(state))
        assert counts("look at another's lease", lambda: follower._lease(waiting)) > 0
    assert (state.holds, waiting.holds) == (True, False)


def test_every_job_has_settings_and_a_name_of_its_own() -> None:
    config = Config()
    assert len({each.name for each in JOBS}) == len(JOBS)
    for each in JOBS:
        assert isinstance(getattr(config, each.interval), float)
        assert each.switch is None or isinstance(getattr(config, each.switch), bool)


def test_another_process_takes_over_when_the_leader_is_killed(database_url: str, tmp_path: Path) -> None:
    """Two servers with two workers each on one database: kill -9 the holders of the lease, one after another."""
    options = ("--workers", "2", "--db", database_url, "--set", "compactor_housekeeper_interval=0.5")
    database = Database(database_url)
    name = next(each.name for each in JOBS if each.interval == "compactor_housekeeper_interval")

    def pid() -> int | None:
        who = holder(database, name)
        return None if who is None else int(who.split(":")[1])

    with ExitStack() as stack:
        for number in range(2):
            stack.enter_context(serving(*options, home=tmp_path / str(number)))
        for _ in range(2):
            until(pid)
            leader = pid()
            assert leader is not None
            os.kill(leader, signal.SIGKILL)
            until(lambda gone=leader: pid() not in (None, gone))  # type: ignore[misc]
    assert pid() is None, "servers that end give their leases back"
    database.close()
