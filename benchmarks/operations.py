#!/usr/bin/env python3
"""Measure the time of calls through a real server, beside the floor: a bare round trip, and one with a commit.

    python benchmarks/operations.py [--db URL ...] [--rounds 20] [--partitions 1000] [--json FILE]

Starts `metastore serve` of this checkout on each database (SQLite in a temporary folder without --db; use an empty database) and prints
medians in ms and the mean CPU time of the server's processes per call. Only ratios of one run hold on a busy machine. It never
touches a server that it did not start.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from metastore.client import Client, connect  # noqa: E402
from metastore.idl import (  # noqa: E402
    AddPartitionsRequest,
    Database,
    DropPartitionsRequest,
    FieldSchema,
    Partition,
    RequestPartsSpec,
    SerDeInfo,
    StorageDescriptor,
    Table,
)
from tests.support.servers.servers import COMMAND, serving  # noqa: E402

Operation = Callable[[], object]
DATABASE = "bench"


def storage() -> StorageDescriptor:
    """Return a descriptor with 20 columns, as the benchmarks of Hive's own server use it."""
    return StorageDescriptor(
        cols=[FieldSchema(f"c{number}", "string", "a column") for number in range(20)],
        inputFormat="in",
        outputFormat="out",
        numBuckets=-1,
        serdeInfo=SerDeInfo(serializationLib="lib", parameters={"a": "b"}),
        bucketCols=[],
        sortCols=[],
        parameters={},
    )


def table(name: str) -> Table:
    """Return a table with two partition keys and eleven parameters."""
    return Table(
        dbName=DATABASE,
        tableName=name,
        owner="bench",
        tableType="MANAGED_TABLE",
        sd=storage(),
        partitionKeys=[FieldSchema("dt", "string"), FieldSchema("hr", "int")],
        parameters={f"key{number}": "value" for number in range(11)},
    )


def new_partitions(name: str, count: int) -> list[Partition]:
    """Return partitions with six parameters each, 24 of a day."""
    return [
        Partition(
            values=[f"2024-{number // 24:04d}", str(number % 24)],
            dbName=DATABASE,
            tableName=name,
            sd=storage(),
            parameters={f"key{each}": "value" for each in range(6)},
        )
        for number in range(count)
    ]


def operations(client: Client, count: int) -> Iterator[tuple[str, Operation]]:
    """Yield the operations in the order in which they can run round after round."""
    partitions = new_partitions("t", count)
    names: list[str] = []

    def add() -> None:
        client.add_partitions_req(AddPartitionsRequest(dbName=DATABASE, tblName="t", parts=partitions, ifNotExists=False, needResult=False))

    def list_names() -> None:
        names[:] = client.get_partition_names(DATABASE, "t", -1)

    def alter() -> None:
        client.alter_partitions(DATABASE, "t", [*partitions])

    def rename(old: str, new: str) -> None:
        renamed = deepcopy(client.get_table(DATABASE, old))
        renamed.tableName = new
        client.alter_table(DATABASE, old, renamed)

    def drop() -> None:
        request = DropPartitionsRequest(
            dbName=DATABASE, tblName="t", parts=RequestPartsSpec(names=names), deleteData=True, ifExists=True, needResult=False
        )
        client.drop_partitions_req(request)

    yield "getStatus (the floor of a read)", client.getStatus
    yield "create_table (one commit)", lambda: client.create_table(table("t"))
    yield "get_table", lambda: client.get_table(DATABASE, "t")
    yield f"add_partitions {count}", add
    yield f"get_partition_names {count}", list_names
    yield f"get_partitions {count}", lambda: client.get_partitions(DATABASE, "t", -1)
    yield f"get_partitions_by_filter 24 of {count}", lambda: client.get_partitions_by_filter(DATABASE, "t", "dt = '2024-0000'", -1)
    yield f"alter_partitions {count}", alter
    yield "rename table there", lambda: rename("t", "u")
    yield "rename table back", lambda: rename("u", "t")
    yield f"drop_partitions {count}", drop
    yield "drop_table", lambda: client.drop_table(DATABASE, "t", True)


def cpu_seconds(process: int) -> float:
    """Return the CPU time of a process and its children so far."""
    children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") + sum(cpu_seconds(int(child)) for child in children)


@contextmanager
def server(database: str | None, folder: Path) -> Iterator[tuple[Client, int]]:
    """Start a server and connect to it; yield also its process."""
    options = ["--warehouse", f"file:{folder}/warehouse", "--set", "log_level=warning", *(["--db", database] if database else [])]
    with serving(*options, home=folder, command=COMMAND) as running, connect(running.uri) as client:
        client.create_database(Database(name=DATABASE))
        yield client, running.process.pid
        client.drop_database(DATABASE, True, True)


def measure(database: str | None, rounds: int, count: int) -> dict[str, dict[str, float]]:
    """Return the median ms and the mean CPU ms of each operation."""
    times: dict[str, list[float]] = {}
    cpu: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder, server(database, Path(folder)) as (client, process):
        for _ in range(rounds):
            for name, operation in operations(client, count):
                before, started = cpu_seconds(process), time.perf_counter()
                operation()
                times.setdefault(name, []).append((time.perf_counter() - started) * 1000)
                cpu[name] = cpu.get(name, 0) + (cpu_seconds(process) - before) * 1000
    return {name: {"median_ms": statistics.median(values), "cpu_ms": cpu[name] / rounds} for name, values in times.items()}


def main() -> None:
    """Read the options, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--db", action="append", default=[], help="URL of an empty database; may be given more than once")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--partitions", type=int, default=1000)
    parser.add_argument("--json", type=Path, help="write the results here")
    options = parser.parse_args()
    found = {url or "sqlite": measure(url, options.rounds, options.partitions) for url in options.db or [None]}
    for database, results in found.items():
        print(f"{database}\n{'':45} median ms   CPU ms of the server")
        for name, values in results.items():
            print(f"{name:45} {values['median_ms']:9.2f} {values['cpu_ms']:9.2f}")
    if options.json:
        options.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
