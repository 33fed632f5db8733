"""Drivers, compactors and the server are killed in the middle of their work: acknowledged rows are in the table, and no file is left.

An operation that a kill interrupted was not acknowledged: it has happened as a whole, or not at all.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from functools import partial

import pytest

from metastore.acid.compaction.worker import CompactionOutcome
from metastore.client import connect
from metastore.idl import ShowCompactRequest
from metastore.spark.compaction.compactor import Compactor
from metastore.spark.transaction.spark_transaction import CanNotChange
from tests.spark.programs import driver
from tests.support.servers.cluster import LAYOUTS, Cluster, Model, Victim, changed, some
from tests.support.servers.servers import COMMAND, ROOT, free_port
from tests.support.servers.waiting import until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


def test_a_single_run_reports_that_no_metastore_answers() -> None:
    ended = subprocess.run(
        [*COMMAND, "compactor", "--uri", f"thrift://127.0.0.1:{free_port()}", "--master", "local[1]", "--once"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ended.returncode == 1
    assert "no compaction could be taken from thrift://127.0.0.1" in ended.stderr
    assert "Connection refused" in ended.stderr


@pytest.mark.parametrize(("keys", "columns"), LAYOUTS, ids=["plain", "partitioned"])
@pytest.mark.parametrize("action", ["insert", "update", "merge"])
def test_a_driver_is_killed(cluster: Cluster, keys: str, columns: str, action: str) -> None:
    random_ = random.Random(action + keys)
    cluster.make(keys, columns)
    model: Model = {}
    for moment in ("staging", "moved"):
        victim = Victim(sys.executable, "-m", "tests.spark.programs.driver", cluster.uri, "default.t", cwd=cluster.home)
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
            until(partial(_reached, cluster, moment, known), missing=moment)
        finally:
            victim.kill()
        found, after = cluster.read(), changed(model, action, what)
        assert found in (model, after)
        happened, model = found == after, found
        until(cluster.unsettled, lambda found: not found)
        if not happened:
            until(partial(_holds, cluster, known), missing=f"only {known}")
        assert not cluster.staging()
        assert cluster.read() == model


def _reached(cluster: Cluster, moment: str, known: set[str]) -> bool:
    """Return whether something is in a staging folder, or has been moved out of it."""
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
        until(lambda: cluster.directories() != known or victim.has_ended, missing="the compactor writes")
        assert not victim.has_ended, (cluster.home / "victim.log").read_text()[-2000:]
    finally:
        victim.kill()
    assert cluster.read() == model
    outcomes: list[CompactionOutcome] = []

    def taken_over() -> bool:
        outcome = Compactor(cluster.spark, cluster.uri).run_once()
        outcomes.extend([] if outcome is None else [outcome])
        return outcome is not None

    until(taken_over, missing="the work is given to another worker")
    (outcome,) = outcomes
    assert (outcome.entry.id, outcome.state) == (key, "compacted"), outcome
    until(cluster.unsettled, lambda found: not found)
    assert cluster.read() == model
    names = set(outcome.detail.split(", "))
    until(lambda: {name.rpartition("/")[2] for name in cluster.directories()} == names, missing=f"only {names}")
    with connect(cluster.uri) as client:
        assert [each.state for each in client.show_compact(ShowCompactRequest()).compacts] == ["succeeded"]


@pytest.mark.parametrize(("keys", "columns"), LAYOUTS, ids=["plain", "partitioned"])
def test_the_server_is_killed(cluster: Cluster, keys: str, columns: str) -> None:
    """The server is killed and started again at a seeded moment of each operation; the operation fails, or succeeds in spite of it."""
    random_ = random.Random(7)
    cluster.make(keys, columns)
    model: Model = {}
    for action in ("insert", "merge"):
        started = time.monotonic()
        model = _done(cluster, model, action, some(random_, model), keys)
    span = time.monotonic() - started  # the duration of an operation that is not disturbed
    for _ in range(6):
        action = random_.choice(["insert", "update", "merge", "compact"])
        what: object = random_.randrange(4) if action == "update" else some(random_, model)
        after = model if action == "compact" else changed(model, action, what)
        done = _beside_a_restart(cluster, random_.uniform(0, 1.2) * span, partial(_do, cluster, action, what, keys))
        found = cluster.read()
        assert found in ((after,) if done else (model, after))
        model = found
    worker = Compactor(cluster.spark, cluster.uri)
    until(lambda: (worker.attempt(), cluster.unsettled()), lambda found: found == (None, []))
    model = _done(cluster, model, "merge", some(random_, model), keys)
    until(lambda: not cluster.staging(), missing="no staging folders")
    cluster.table.compact("major", "k=k0" if keys else None)
    outcome = worker.run_once()
    assert outcome is not None
    assert outcome.state in ("compacted", "nothing to do"), outcome
    until(cluster.unsettled, lambda found: not found)
    assert cluster.read() == model
    until(lambda: len([name for name in cluster.directories() if not keys or name.startswith("k=k0")]) == 1, missing="one base")


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
    """Run the work, and kill the server after some seconds or after the work; return whether the work succeeded."""
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(work)
        wait([running], seconds)
        cluster.kill_server()
        return running.exception() is None
