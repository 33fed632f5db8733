"""Executors of their own, as on a cluster: one is killed in the middle of each operation, and Spark does its tasks again."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import pyspark
import pytest

from metastore.cli.transactions import compactor
from metastore.client import connect
from metastore.idl import ShowCompactRequest
from tests.support.servers.cluster import LAYOUTS, Cluster, Model, Victim, changed, some
from tests.support.servers.waiting import until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
MASTER = "local-cluster[2,1,1024]"
EXECUTOR = b"CoarseGrainedExecutorBackend"
HERE = {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_LOCAL_HOSTNAME": "127.0.0.1"}


@pytest.fixture(autouse=True)
def _clean() -> Iterator[None]:
    """Remove the files that Spark's workers leave in its own folder."""
    folder = Path(pyspark.__file__).parent / "work"
    before = set(folder.glob("*"))
    yield
    for each in set(folder.glob("*")) - before:
        shutil.rmtree(each)
    with suppress(OSError):
        folder.rmdir()


def executors(victim: Victim) -> list[int]:
    """Return the executors that a program has."""
    found = []
    for each in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if os.getsid(int(each.name)) == victim.pid and EXECUTOR in (each / "cmdline").read_bytes():
                found.append(int(each.name))
    return sorted(found)


def kill_one(victim: Victim) -> None:
    """Kill an executor once there is one; Spark starts another."""
    until(lambda: bool(executors(victim)), missing="executors")
    with suppress(ProcessLookupError):
        os.kill(executors(victim)[0], signal.SIGKILL)


def writes(cluster: Cluster, known: set[str]) -> bool:
    """Return whether a staging folder or a new directory is there."""
    return bool(cluster.staging()) or cluster.directories() != known


@pytest.mark.parametrize(("keys", "columns"), LAYOUTS, ids=["plain", "partitioned"])
def test_executors_are_killed(cluster: Cluster, keys: str, columns: str) -> None:
    random_ = random.Random(keys)
    cluster.make(keys, columns)
    model: Model = {}
    victim = Victim(sys.executable, "-m", "tests.spark.programs.driver", cluster.uri, "default.t", MASTER, cwd=cluster.home, variables=HERE)
    try:
        assert victim.hear() == "ready", (cluster.home / "victim.log").read_text()[-2000:]
        for action in ("insert", "insert", "merge", "update"):
            changes = [(key, 9, row[2]) for key, row in model.items() if key % 3 == 0] + some(random_, model)
            what: object = 1 if action == "update" else changes if action == "merge" else some(random_, model)
            known = cluster.directories()
            victim.say(json.dumps([action, what]))
            until(partial(writes, cluster, known), missing="a task writes")
            kill_one(victim)
            assert victim.hear() == "done", (cluster.home / "victim.log").read_text()[-2000:]
            model = changed(model, action, what)
            assert cluster.read() == model
    finally:
        victim.kill()
    assert not cluster.staging()
    known = cluster.directories()
    cluster.table.compact("major", "k=k0" if keys else None)
    submit = str(Path(sys.executable).with_name("spark-submit"))
    options = ("--master", MASTER, "--conf", "spark.ui.enabled=false", str(compactor.__file__), "--uri", cluster.uri, "--once")
    victim = Victim(submit, *options, cwd=cluster.home, variables=HERE)
    try:
        until(lambda: cluster.directories() != known or victim.has_ended, missing="the compactor writes")
        kill_one(victim)
        assert victim.wait() == 0, (cluster.home / "victim.log").read_text()[-2000:]
    finally:
        victim.kill()
    until(cluster.unsettled, lambda found: not found)
    with connect(cluster.uri) as client:
        assert [each.state for each in client.show_compact(ShowCompactRequest()).compacts] == ["succeeded"]
    assert cluster.read() == model
    until(lambda: len([name for name in cluster.directories() if not keys or name.startswith("k=k0")]) == 1, missing="one base")
