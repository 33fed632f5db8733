"""Drivers, compactors and the server are killed in the middle of their work: the table holds what was acknowledged, and no file is left.

Of the operation in which something was killed nobody was told: it has happened as a whole, or not at all.
"""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from metastore.client import connect
from metastore.idl import CreateTableRequest, ShowCompactRequest
from metastore.spark import AcidTable
from metastore.spark.catalog import CAPABILITIES
from metastore.spark.compactor import Compactor, Outcome
from metastore.spark.table import CanNotChange
from tests.servers import COMMAND, ROOT, Server, serving
from tests.spark import driver
from tests.spark.conftest import definition

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
PATIENCE = 120
SETTINGS = (
    "txn_timeout=4s", "txn_reaper_interval=1s", "compactor_check_interval=1s", "compactor_cleaner_interval=1s",
    "compactor_housekeeper_interval=1s", "compactor_worker_timeout=4s", "compactor_aborted_number=0",
)
Row = tuple[int, int, str]
Model = dict[int, Row]


def until(condition: Callable[[], bool], what: str) -> None:
    """Wait until a condition holds."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, f"it never came: {what}"


class Cluster:
    """A server that can be killed and started again, and one table on it."""

    def __init__(self, spark: SparkSession, home: Path) -> None:
        self.spark = spark
        self.home = home
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.uri = f"thrift://127.0.0.1:{self.port}"
        self._running = ExitStack()
        self.server = self._start()

    def _start(self) -> Server:
        options = [part for setting in SETTINGS for part in ("--set", setting)]
        return self._running.enter_context(serving(
            "--port", str(self.port), "--db", f"sqlite:///{self.home}/m.db", "--warehouse", str(self.home / "warehouse"), *options,
            home=self.home,
        ))

    def kill_server(self) -> None:
        """Kill the server and start it again on the same port."""
        self.server.process.kill()
        self.server.process.wait()
        self.server = self._start()

    def stop(self) -> None:
        self._running.close()

    def make(self, keys: str, columns: str) -> None:
        table = definition("t", columns, keys, parameters={"no_auto_compaction": "true"})
        with connect(self.uri) as client:
            client.create_table_req(CreateTableRequest(table=table, processorCapabilities=CAPABILITIES, processorIdentifier="tests"))
            self.root = Path(client.get_table("default", "t").sd.location.removeprefix("file:"))
        self.table = AcidTable.forName(self.spark, "default.t", self.uri)

    def directories(self) -> set[str]:
        """Return the directories in the table and its partitions."""
        out: set[str] = set()
        for folder, inner, _ in os.walk(self.root):  # what vanishes meanwhile is passed over
            out.update(str(Path(folder, name).relative_to(self.root)) for name in inner if not name.startswith("k="))
            inner[:] = [name for name in inner if name.startswith("k=")]
        return out

    def staging(self) -> set[str]:
        return {path.name for path in self.root.glob(".staging*")}

    def read(self) -> Model:
        found = {row.id: (row.id, row.v, row.k) for row in self.table.toDF().collect()}
        self.table.close()
        return found

    def kept(self) -> bool:
        """Whether nothing is open or waits any more."""
        with connect(self.uri) as client:
            opened = client.get_open_txns_info().open_txns
            waiting = client.show_compact(ShowCompactRequest()).compacts or []
        return not opened and not [each for each in waiting if each.state in ("initiated", "working", "ready for cleaning")]


@pytest.fixture
def cluster(spark: SparkSession, tmp_path: Path) -> Iterator[Cluster]:
    made = Cluster(spark, tmp_path)
    yield made
    made.stop()


class Victim:
    """A process with children, such as Java's, that is killed at once with them."""

    def __init__(self, *command: str, cwd: Path) -> None:
        with (cwd / "victim.log").open("a") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, start_new_session=True, cwd=cwd,
                env={**os.environ, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable},
            )

    def say(self, text: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(text + "\n")
        self._process.stdin.flush()

    def hear(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    @property
    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


def changed(model: Model, action: str, what: object) -> Model:
    """Return what an operation of the driver makes of a table."""
    if action == "update":
        return {key: (key, row[1] + 1, row[2]) if row[1] == what else row for key, row in model.items()}
    assert isinstance(what, list)
    return {**model, **{row[0]: tuple(row) for row in what}}


def some(random_: random.Random, model: Model) -> list[Row]:
    """Return new rows."""
    start = max(model, default=0) + 1
    return [(start + number, random_.randrange(4), f"k{random_.randrange(3)}") for number in range(random_.randrange(200, 400))]


LAYOUTS = [("", "id int, v int, k string"), ("k string", "id int, v int")]


@pytest.mark.parametrize(("keys", "columns"), LAYOUTS, ids=["plain", "partitioned"])
@pytest.mark.parametrize("action", ["insert", "update", "merge"])
def test_a_driver_is_killed(cluster: Cluster, keys: str, columns: str, action: str) -> None:
    random_ = random.Random(action + keys)
    cluster.make(keys, columns)
    model: Model = {}
    for moment in ("staging", "moved"):
        victim = Victim(sys.executable, "-m", "tests.spark.driver", cluster.uri, "default.t", cwd=cluster.home)
        try:
            assert victim.hear() == "ready", (cluster.home / "victim.log").read_text()[-2000:]
            for _ in range(2):
                new = some(random_, model)
                victim.say(json.dumps(["insert", new]))
                assert victim.hear() == "done"
                model = changed(model, "insert", new)
            known = cluster.directories()
            changes = [(key, 9, row[2]) for key, row in model.items() if key % 3 == 0] + some(random_, model)
            what: object = random_.randrange(4) if action == "update" else some(random_, model) if action == "insert" else changes
            victim.say(json.dumps([action, what]))
            until(partial(_reached, cluster, moment, known), moment)
        finally:
            victim.kill()
        found, after = cluster.read(), changed(model, action, what)
        assert found in (model, after)
        happened, model = found == after, found
        until(cluster.kept, "the driver's transaction is given up")
        if not happened:
            until(partial(_holds, cluster, known), f"only {known}")
        assert not cluster.staging()
        assert cluster.read() == model


def _reached(cluster: Cluster, moment: str, known: set[str]) -> bool:
    """Tell whether something is in a staging folder, or has been moved out of it."""
    staged = cluster.staging()
    return bool(staged if moment == "staging" else cluster.directories() - staged - known)


def _holds(cluster: Cluster, names: set[str]) -> bool:
    return cluster.directories() == names


@pytest.mark.parametrize(("keys", "columns"), LAYOUTS, ids=["plain", "partitioned"])
@pytest.mark.parametrize("kind", ["minor", "major"])
def test_a_compactor_is_killed_and_another_does_its_work(cluster: Cluster, keys: str, columns: str, kind: str) -> None:
    random_ = random.Random(kind)
    cluster.make(keys, columns)
    model: Model = {}
    for _ in range(3):
        new = [(key, v, "k0") for key, v, _ in some(random_, model)]
        driver.do(cluster.spark, cluster.table, "insert", new)
        model = changed(model, "insert", new)
    cluster.table.update("v = 1", {"v": "v + 1"})
    model = changed(model, "update", 1)
    known = cluster.directories()
    key = cluster.table.compact(kind, "k=k0" if keys else None)
    options = ("--uri", cluster.uri, "--master", "local[1]", "--conf", "spark.ui.enabled=false", "--interval", "0.1")
    victim = Victim(*COMMAND, "compactor", *options, cwd=cluster.home)
    try:
        until(lambda: cluster.directories() != known or victim.has_ended, "the compactor writes")
        assert not victim.has_ended, (cluster.home / "victim.log").read_text()[-2000:]
    finally:
        victim.kill()
    assert cluster.read() == model
    outcomes: list[Outcome] = []

    def taken_over() -> bool:
        outcome = Compactor(cluster.spark, cluster.uri).run_once()
        outcomes.extend([] if outcome is None else [outcome])
        return outcome is not None

    until(taken_over, "the work is given to another worker")
    (outcome,) = outcomes
    assert (outcome.entry.id, outcome.state) == (key, "compacted"), outcome
    until(cluster.kept, "cleaned")
    assert cluster.read() == model
    names = set(outcome.detail.split(", "))
    until(lambda: {name.rpartition("/")[2] for name in cluster.directories()} == names, f"only {names}")
    with connect(cluster.uri) as client:
        assert [each.state for each in client.show_compact(ShowCompactRequest()).compacts] == ["succeeded"]


@pytest.mark.parametrize(("keys", "columns"), LAYOUTS, ids=["plain", "partitioned"])
def test_the_server_is_killed(cluster: Cluster, keys: str, columns: str) -> None:
    """At a moment of each operation, seeded, the server is killed and started again; the operation fails, or it does not notice."""
    random_ = random.Random(7)
    cluster.make(keys, columns)
    model: Model = {}
    for action in ("insert", "merge"):
        started = time.monotonic()
        model = _done(cluster, model, action, some(random_, model), keys)
    span = time.monotonic() - started  # of one that is not disturbed
    for _ in range(6):
        action = random_.choice(["insert", "update", "merge", "compact"])
        what: object = random_.randrange(4) if action == "update" else some(random_, model)
        after = model if action == "compact" else changed(model, action, what)
        done = _beside_a_restart(cluster, random_.uniform(0, 1.2) * span, partial(_do, cluster, action, what, keys))
        found = cluster.read()
        assert found in ((after,) if done else (model, after))
        model = found
    worker = Compactor(cluster.spark, cluster.uri)
    until(lambda: worker.attempt() is None and cluster.kept(), "all is given up or done")
    model = _done(cluster, model, "merge", some(random_, model), keys)
    until(lambda: not cluster.staging(), "no staging folders")
    cluster.table.compact("major", "k=k0" if keys else None)
    outcome = worker.run_once()
    assert outcome is not None
    assert outcome.state in ("compacted", "nothing to do"), outcome
    until(cluster.kept, "cleaned")
    assert cluster.read() == model
    until(lambda: len([name for name in cluster.directories() if not keys or name.startswith("k=k0")]) == 1, "one base")


def _do(cluster: Cluster, action: str, what: object, keys: str) -> None:
    if action == "compact":
        with suppress(CanNotChange):
            cluster.table.compact("major", "k=k0" if keys else None)
        Compactor(cluster.spark, cluster.uri).run_once()
    else:
        driver.do(cluster.spark, cluster.table, action, what)


def _done(cluster: Cluster, model: Model, action: str, what: object, keys: str) -> Model:
    _do(cluster, action, what, keys)
    after = changed(model, action, what)
    assert cluster.read() == after
    return after


def _beside_a_restart(cluster: Cluster, seconds: float, work: Callable[[], None]) -> bool:
    """Do work while the server is killed after so many seconds, or once it is done; tell whether it ended well."""
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(work)
        wait([running], seconds)
        cluster.kill_server()
        return running.exception() is None
