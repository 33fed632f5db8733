#!/usr/bin/env python3
"""Measure the growth of the times of calls, pages of the console and jobs with the size of a database.

    python benchmarks/moving.py --to SMALL --tables 10                 # 10,000 partitions
    python benchmarks/moving.py --to LARGE --tables 10000              # 10,000,000 partitions
    python benchmarks/growth.py --small SMALL --large LARGE [--rounds 40]

SMALL and LARGE are URLs of databases that `moving.py` filled. A server with one worker is started on each; each round does everything on
both, in turn, and the medians in ms and their ratio are printed. New objects are deleted again. Linux only.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import tempfile
import time
import urllib.request
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import quote

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

import sqlalchemy as sa  # noqa: E402

from metastore import idl  # noqa: E402
from metastore.acid.transactions import Transaction  # noqa: E402
from metastore.app import build, close  # noqa: E402
from metastore.client import connect  # noqa: E402
from metastore.config import Config  # noqa: E402
from metastore.jobs import JOBS  # noqa: E402
from tests.support.servers.servers import COMMAND, serving  # noqa: E402

Work = Callable[[], object]
PARTITIONS = 1000
"""Partitions of each table, as `moving.py` makes them."""
PER_ROUND = 10
"""Transactions, dropped partitions and compactions that a round leaves to the jobs."""


class Side:
    """One database, with a server on it and the parts of a process in which its jobs run."""

    def __init__(self, url: str, folder: Path, stack: ExitStack) -> None:
        folder.mkdir()
        settings = {"warehouse": str(folder / "warehouse"), "data_directory": str(folder)}
        options = [part for name, value in {"db": url, **settings}.items() for part in ("--set", f"{name}={value}")]
        server = stack.enter_context(serving("--workers", "1", *options, home=folder, command=COMMAND))
        self.uri = server.uri
        self.client = stack.enter_context(connect(server.uri, timeout=600))
        self.metastore = build(Config(db=url, **settings))  # type: ignore[arg-type]
        stack.callback(close, self.metastore)
        self.metastore.database.autocommit(lambda session: session.execute(sa.text("ANALYZE")))
        self.tables = self.client.get_all_tables("big")
        self.client.create_database(idl.Database("made", locationUri=f"file:{folder}/made"))
        stack.callback(self.client.drop_database, "made", True, True)
        for name, parameters in (("t", {}), ("acid", {"transactional": "true"})):
            keys = [idl.FieldSchema("ds", "string")]
            self.client.create_table(
                idl.Table(name, "made", sd=storage(), partitionKeys=keys, parameters=parameters, tableType="MANAGED_TABLE")
            )

    def page(self, path: str) -> None:
        with urllib.request.urlopen(f"{self.uri.replace('thrift:', 'http:')}/ui{path}", timeout=60) as reply:
            reply.read()


def storage() -> idl.StorageDescriptor:
    return idl.StorageDescriptor(
        cols=[idl.FieldSchema("id", "bigint")],
        inputFormat="org.apache.hadoop.hive.ql.io.orc.OrcInputFormat",
        outputFormat="org.apache.hadoop.hive.ql.io.orc.OrcOutputFormat",
        serdeInfo=idl.SerDeInfo(serializationLib="org.apache.hadoop.hive.ql.io.orc.OrcSerde", parameters={}),
    )


def partition(table: str, value: str) -> idl.Partition:
    return idl.Partition([value], "made", table, sd=storage(), parameters={"numRows": "1"})


def calls(side: Side, number: int) -> Iterator[tuple[str, Work]]:
    """Yield the point calls of a round, on tables and partitions taken at random."""
    client, chosen = side.client, random.Random(number)
    table = chosen.choice(side.tables)
    values = [f"{chosen.randrange(PARTITIONS):06d}" for _ in range(10)]
    names, value = [f"ds={each}" for each in values], values[0]
    yield "get_table", lambda: client.get_table("big", table)
    yield "get_partition", lambda: client.get_partition("big", table, [value])
    yield "get_partitions_by_names, 10", lambda: client.get_partitions_by_names("big", table, names)
    yield "get_partitions_by_filter, one found", lambda: client.get_partitions_by_filter("big", table, f'ds = "{value}"', -1)
    yield "get_partition_names, 1,000", lambda: client.get_partition_names("big", table, -1)
    yield "get_num_partitions_by_filter, all", lambda: client.get_num_partitions_by_filter("big", table, "")
    yield (
        "get_partitions_statistics_req, 10",
        lambda: client.get_partitions_statistics_req(idl.PartitionsStatsRequest("big", table, ["id", "name"], names)),
    )
    yield "get_aggr_stats_for, 10", lambda: client.get_aggr_stats_for(idl.PartitionsStatsRequest("big", table, ["id", "name"], names))
    made = partition("t", str(number))
    yield "add_partition", lambda: client.add_partition(made)
    yield "alter_partition", lambda: client.alter_partition("made", "t", made)
    yield "drop_partition", lambda: client.drop_partition("made", "t", [str(number)], True)
    another = idl.Table("another", "made", sd=storage(), partitionKeys=[], parameters={}, tableType="MANAGED_TABLE")
    yield "create_table", lambda: client.create_table(another)
    yield "drop_table", lambda: client.drop_table("made", "another", True)

    def write() -> None:
        with Transaction.begin(side.uri) as txn:
            txn.write_id("made", "acid")

    yield "a transaction with a write id", write
    yield "get_valid_write_ids", lambda: client.get_valid_write_ids(idl.GetValidWriteIdsRequest(["made.acid"]))


def pages(side: Side, number: int) -> Iterator[tuple[str, Work]]:
    """Yield the pages of a round."""
    chosen = random.Random(number)
    table, value = chosen.choice(side.tables), f"{chosen.randrange(PARTITIONS):06d}"
    of_table = f"database=big&table={table}"
    for name, path in {
        "overview": "/",
        "catalog": "/catalog",
        "search": "/catalog?search=" + quote(table[-3:]),
        "database": "/database?database=big",
        "table": f"/table?database=big&name={table}",
        "partitions": f"/partitions?{of_table}",
        "partitions, filter": f"/partitions?{of_table}&filter=" + quote(f"ds > '{value}'"),
        "partition": f"/partition?{of_table}&name=ds%3D{value}",
        "statistics": f"/statistics?{of_table}",
        **{each: f"/{each}" for each in ("transactions", "locks", "compactions", "events", "jobs")},
    }.items():
        yield f"page: {name}", lambda path=path: side.page(path)  # type: ignore[misc]  # bound now


def jobs(side: Side, number: int) -> Iterator[tuple[str, Work]]:
    """Leave a round's work to the jobs, and yield them."""
    client = side.client
    for each in range(PER_ROUND):
        value = f"{number}-{each}"
        client.add_partition(partition("t", value))
        client.drop_partition("made", "t", [value], True)
        client.add_partition(partition("acid", value))
        txn = Transaction.begin(side.uri)
        txn.write_id("made", "acid")
        (txn.commit if each % 2 else txn.abort)()
        client.compact2(idl.CompactionRequest("made", "acid", f"ds={value}", type=idl.CompactionType.MAJOR))
        taken = client.find_next_compact("benchmark").ci
        client.mark_compacted(taken)
    for job in JOBS:
        yield f"job: {job.name}", lambda job=job: job.run(side.metastore, 0)  # type: ignore[misc]  # bound now


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", required=True, help="URL of the database with few partitions")
    parser.add_argument("--large", required=True, help="URL of the database with many")
    parser.add_argument("--rounds", type=int, default=40)
    given = parser.parse_args()
    taken: dict[str, tuple[list[float], list[float]]] = defaultdict(lambda: ([], []))
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        sides = [Side(url, Path(folder, name), stack) for name, url in (("small", given.small), ("large", given.large))]
        for number in range(given.rounds):
            for kind in (calls, pages, jobs):
                for small, large in zip(kind(sides[0], number), kind(sides[1], number), strict=True):
                    for place in random.sample((0, 1), 2):
                        began = time.perf_counter()
                        (small, large)[place][1]()
                        taken[small[0]][place].append((time.perf_counter() - began) * 1000)
    print("| | small, ms | large, ms | ratio |\n|---|---|---|---|")
    for name, times in taken.items():
        small_ms, large_ms = (statistics.median(each) for each in times)
        print(f"| {name} | {small_ms:.2f} | {large_ms:.2f} | {large_ms / small_ms:.2f} |")


if __name__ == "__main__":
    main()
