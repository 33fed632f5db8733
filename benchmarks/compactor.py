"""Measure compactions by a process of the server beside Spark's worker, as ratios in one run: time, and resident memory.

    python benchmarks/compactor.py [--rows 1500000] [--times 3]

Starts a server on SQLite with one compaction process, and a Spark session of one core. Both compact the same: ten deltas of one bucket and
three delete deltas with a tenth of the rows. Each time is the best, from the moment when a worker takes the entry until it is compacted.
CPU seconds and the peak of resident memory are measured for the process, and for the JVM with Spark's Python workers. The process has a low
priority: on a machine with other load, compare the CPU seconds.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from pyspark.sql import SparkSession  # noqa: E402  # the project's folder must be known first

from benchmarks.acid import make_table, rows  # noqa: E402
from metastore.client import Client, connect  # noqa: E402
from metastore.idl import CompactionRequest, CompactionType, ShowCompactRequest  # noqa: E402
from metastore.spark import AcidTable  # noqa: E402
from metastore.spark.compaction.compactor import Compactor  # noqa: E402
from tests.support.servers.servers import COMMAND, serving  # noqa: E402

POOL = "spark"
"""The pool of entries that only Spark's worker takes."""


def status(pid: int, name: str) -> int:
    """Return a number of kilobytes of a process; 0 where it has ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith(f"{name}:")), 0)


def children(pid: int) -> list[int]:
    """Return the processes below one, started by any of its threads."""
    found: list[int] = []
    for thread in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            found += [int(each) for each in thread.read_text().split()]
    return found + [below for each in found for below in children(each)]


def cpu(pids: list[int]) -> float:
    """Return the CPU seconds that some processes have taken."""
    ticks = 0
    for pid in pids:
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def nice(top: int) -> list[int]:
    """Return the processes below one that have a lower priority."""
    return [pid for pid in children(top) if Path(f"/proc/{pid}").exists() and os.getpriority(os.PRIO_PROCESS, pid) == 10]


class Memory:
    """A context that notes the most memory that some processes have together."""

    def __init__(self, top: int, *, nice_only: bool = False) -> None:
        self._top = top
        self._nice_only = nice_only
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self.most = 0

    def __enter__(self) -> Memory:  # noqa: PYI034  # Self needs Python 3.11
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._ended.wait(0.05):
            found = nice(self._top) if self._nice_only else children(self._top)
            self.most = max(self.most, sum(status(pid, "VmRSS") for pid in found))


def changed(spark: SparkSession, uri: str, name: str, count: int) -> AcidTable:
    table = make_table(uri, spark, name)
    for part in range(10):
        table.insert(rows(spark, count // 10, part * (count // 10)).coalesce(1))
    for digit in (3, 5, 7):
        table.delete(f"id % 30 = {digit}")
    table.close()
    return table


def queue(client: Client, table: AcidTable, pool: str | None) -> int:
    database, name = table.name.split(".")
    request = CompactionRequest(dbname=database, tablename=name, type=CompactionType.MAJOR, poolName=pool, initiatorId="benchmark")
    return int(client.compact2(request).id)


def taken(client: Client, key: int) -> float:
    """Wait until an entry is compacted; return the seconds for which a worker had it."""
    while (entry := client.show_compact(ShowCompactRequest(id=key)).compacts[0]).state in ("initiated", "working"):
        time.sleep(0.01)
    assert entry.state in ("ready for cleaning", "succeeded"), entry
    return time.time() - entry.start / 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_500_000)
    parser.add_argument("--times", type=int, default=3)
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="metastore-benchmark-"))
    settings = [part for each in ("compactor_initiator=false", "compactor_worker_threads=1") for part in ("--set", each)]
    try:
        with serving(
            "--db", f"sqlite:///{folder}/m.db", "--warehouse", str(folder / "warehouse"), *settings, home=folder, command=COMMAND
        ) as server:
            os.environ["PYSPARK_PYTHON"] = sys.executable
            builder = SparkSession.builder.master("local[1]").appName("benchmark").config("spark.ui.enabled", "false")
            spark = builder.config("spark.hadoop.hive.metastore.uris", server.uri).config("spark.sql.shuffle.partitions", 1).getOrCreate()
            spark.sparkContext.setLogLevel("ERROR")
            own, sparks, own_cpu, sparks_cpu = [], [], [], []
            with connect(server.uri) as client, Memory(server.process.pid, nice_only=True) as own_memory:
                for number in range(options.times):
                    table = changed(spark, server.uri, f"own{number}", options.rows)
                    size = table.detail().first().sizeInBytes  # type: ignore[union-attr]  # there is one row
                    before = cpu(nice(server.process.pid))
                    own.append(taken(client, queue(client, table, None)))
                    own_cpu.append(cpu(nice(server.process.pid)) - before)
            with connect(server.uri) as client:
                for number in range(options.times):
                    table = changed(spark, server.uri, f"spark{number}", options.rows)
                    key = queue(client, table, POOL)
                    with Memory(os.getpid()) as spark_memory:
                        begun, before = time.perf_counter(), cpu(children(os.getpid()))
                        outcome = Compactor(spark, server.uri, pool=POOL).run_once()
                        sparks.append(time.perf_counter() - begun)
                        sparks_cpu.append(cpu(children(os.getpid())) - before)
                    assert outcome is not None
                    assert (outcome.entry.id, outcome.state) == (key, "compacted"), outcome
            spark.stop()
        megabytes = size / 1e6
        print(f"{options.rows:,} rows, {megabytes:.0f} MB, one bucket, major; {os.cpu_count()} cores")
        print(f"{'':24} {'server':>10} {'Spark':>10}  server / Spark")
        print(f"{'seconds':24} {min(own):10.2f} {min(sparks):10.2f}  {min(own) / min(sparks):5.2f}x")
        print(f"{'CPU seconds':24} {min(own_cpu):10.2f} {min(sparks_cpu):10.2f}  {min(own_cpu) / min(sparks_cpu):5.2f}x")
        print(f"{'MB/s':24} {megabytes / min(own):10.1f} {megabytes / min(sparks):10.1f}  {min(sparks) / min(own):5.2f}x")
        most = own_memory.most / 1024, spark_memory.most / 1024
        print(f"{'most resident, MB':24} {most[0]:10.0f} {most[1]:10.0f}  {most[0] / most[1]:5.2f}x")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
