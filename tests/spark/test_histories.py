"""Random histories of a table by SQL, AcidTable, `hive_acid` and streams, while server and Spark compact it and processes are killed."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from metastore.client import connect
from metastore.idl import ShowCompactRequest
from metastore.spark import disable, enable, sql
from metastore.spark.compaction.compactor import Compactor
from metastore.spark.grammar.tokens import WrongStatement
from metastore.spark.transaction.readers import close_all
from tests.support.acid_histories import KINDS, WORDS, Action, Doors, History, statements
from tests.support.cluster import LAYOUTS, Cluster, Victim
from tests.support.waiting import until

pytest.importorskip("pyspark.sql.datasource", reason="Python data sources came with Spark 4")

from metastore.spark.data_source import register

pytestmark = pytest.mark.slow

POOL = "spark"


class Place:
    """A server that compacts, its table, and a session on it."""

    def __init__(self, cluster: Cluster, keys: str, columns: str, seed: object) -> None:
        self.cluster = cluster
        self.keys = keys
        cluster.make(keys, columns)
        self.session = cluster.spark
        doors = Doors(self.session, cluster.uri, "default.t", cluster.home)
        self.history = History(seed, doors.doors(), doors.readers(), partitioned=bool(keys))
        self.random = self.history.random

    def ask(self, pool: str | None = None) -> None:
        """Ask for a compaction in SQL; it is no fault that one is queued, or that the partition is not there yet."""
        partition = f" PARTITION (k = '{self.random.choice(WORDS)}')" if self.keys else ""
        kind = self.random.choice(("minor", "major"))
        with suppress(WrongStatement):
            sql(self.session, f"ALTER TABLE t{partition} COMPACT '{kind}'" + (f" POOL '{pool}'" if pool else "")).collect()
        self.history.done.append(f"compact {kind}{partition} {pool}")

    def compact_by_spark(self) -> None:
        self.ask(POOL)
        Compactor(self.session, self.cluster.uri, pool=POOL).run_once()

    def kill_the_compactor(self) -> None:
        self.ask()
        for pid in self.cluster.compactors():
            os.kill(pid, signal.SIGKILL)
        self.history.done.append("killed the server's compactor")

    def beside_the_death_of_the_server(self, work: Callable[[], None]) -> bool:
        """Kill the server while something is done, at a moment by chance; tell whether it ended well."""
        with ThreadPoolExecutor(1) as pool:
            running = pool.submit(work)
            wait([running], self.random.uniform(0, 3))
            self.cluster.kill_server()
            self.history.done.append("killed the server")
            return running.exception() is None

    def end(self) -> None:
        """Let all compactions end, and see that the rows stay."""
        worker = Compactor(self.session, self.cluster.uri, pool=POOL)
        close_all()
        until(lambda: worker.attempt() is None and self.cluster.kept(), missing="all is compacted and cleaned", seconds=180)
        self.history.compare()
        close_all()
        with connect(self.cluster.uri) as client:
            states = {each.state for each in client.show_compact(ShowCompactRequest()).compacts or []}
        assert states <= {"succeeded", "failed", "aborted"}, states
        assert not self.cluster.staging()


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> SparkSession:
    """A session of its own, whose metastore each test sets."""
    made = spark.newSession()
    register(made)
    return made


@pytest.fixture
def compacting(session: SparkSession, tmp_path: Path) -> Iterator[Cluster]:
    enable()
    made = Cluster(session, tmp_path, "compactor_worker_threads=1", "compactor_pool_timeout=1h")
    session.conf.set("spark.hadoop.hive.metastore.uris", made.uri)
    yield made
    disable()
    made.stop()


@pytest.mark.timeout(900)
@pytest.mark.parametrize(("keys", "columns"), LAYOUTS, ids=["plain", "partitioned"])
def test_a_short_history(compacting: Cluster, keys: str, columns: str) -> None:
    place = Place(compacting, keys, columns, f"short{keys}")
    for number in range(6):
        place.history.step()
        if number % 2:
            place.ask()
    place.end()


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", range(int(os.environ.get("METASTORE_TEST_HISTORIES", "2"))))
@pytest.mark.parametrize(("keys", "columns"), LAYOUTS, ids=["plain", "partitioned"])
def test_a_long_history(compacting: Cluster, keys: str, columns: str, seed: int) -> None:
    place = Place(compacting, keys, columns, f"{seed}{keys}")
    for _ in range(30):
        place.history.step(place.beside_the_death_of_the_server if place.random.random() < 0.15 else None)
        if (chance := place.random.random()) < 0.3:
            place.ask()
        elif chance < 0.45:
            place.compact_by_spark()
        elif chance < 0.6:
            place.kill_the_compactor()
    place.end()


@pytest.mark.timeout(900)
@pytest.mark.parametrize(("keys", "columns"), LAYOUTS, ids=["plain", "partitioned"])
def test_a_driver_of_sql_is_killed(compacting: Cluster, keys: str, columns: str) -> None:
    """At a moment by chance in each kind of statement; the driver's transaction is given up, and others go on."""
    place = Place(compacting, keys, columns, f"driver{keys}")
    place.history.step()
    for kind in (*KINDS[:4], "overwrite", "commit"):
        victim = Victim(sys.executable, "-m", "tests.spark.driver", compacting.uri, "default.t", cwd=compacting.home)
        try:
            assert victim.hear() == "ready", (compacting.home / "victim.log").read_text()[-2000:]
            victim.say(json.dumps(["sql", ["SELECT count(*) FROM default.t"]]))
            assert victim.hear() == "done"
            place.history.step_by(kind, partial(_killed, victim, place.random.uniform(0, 2)))
        finally:
            victim.kill()
        place.ask()
    place.end()


def _killed(victim: Victim, seconds: float, action: Action) -> bool:
    victim.say(json.dumps(["sql", statements(action, "default.t")]))
    return victim.hears_within(seconds) == "done"
