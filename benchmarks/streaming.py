#!/usr/bin/env python3
"""Measure a stream's commits: rows in a second into a transactional table, against writing the same ORC file without transactions.

    python benchmarks/streaming.py [--rows 500000] [--commit 10000] [--runs 3]

Starts a server of this checkout on SQLite. The same Arrow batches, of as many rows as a commit has, are written once into one plain ORC
file of the same six columns with `pyorc`, whose rows are made in the same way, and once through batches of 100 transactions. Prints medians
and their ratio. Never touches a server that it did not start.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from itertools import repeat
from pathlib import Path

import pyarrow as pa
import pyorc

from metastore.acid.rewriting.bucket_files import as_numbers, event_type
from metastore.client import connect
from metastore.idl import CreateTableRequest, FieldSchema, SerDeInfo, StorageDescriptor, Table
from metastore.streaming import StreamingConnection

ROOT = Path(__file__).parents[1]
READY = "ready on "
COLUMNS = [("id", "bigint"), ("kind", "int"), ("name", "string"), ("amount", "double")]
ORC = "org.apache.hadoop.hive.ql.io.orc.Orc"
CAPABILITIES = ["HIVEFULLACIDWRITE", "HIVEMANAGEDINSERTWRITE", "EXTWRITE"]


def batches(rows: int, size: int) -> list[pa.RecordBatch]:
    """Return the rows of the measurement."""
    out = []
    for first in range(0, rows, size):
        ids = range(first, min(first + size, rows))
        out.append(
            pa.record_batch(
                {
                    "id": pa.array(ids, pa.int64()),
                    "kind": pa.array([number % 1000 for number in ids], pa.int32()),
                    "name": [f"name-{number}" for number in ids],
                    "amount": [number * 1.5 for number in ids],
                }
            )
        )
    return out


def plain(data: list[pa.RecordBatch], path: Path) -> float:
    """Write one ORC file; return the seconds it took."""
    began = time.perf_counter()
    with path.open("wb") as file, pyorc.Writer(file, event_type(COLUMNS), compression=pyorc.CompressionKind.SNAPPY) as writer:
        for batch in data:
            values = zip(*(as_numbers(column) for column in batch.columns), strict=True)
            writer.writerows(zip(repeat(0), repeat(1), repeat(1 << 29), range(len(batch)), repeat(1), values, strict=False))
    return time.perf_counter() - began


def streamed(data: list[pa.RecordBatch], uri: str, name: str) -> float:
    """Write into a new table with a commit for each batch; return the seconds it took."""
    parameters = {"transactional": "true", "transactional_properties": "default"}
    sd = StorageDescriptor(
        cols=[FieldSchema(*column) for column in COLUMNS],
        inputFormat=f"{ORC}InputFormat",
        outputFormat=f"{ORC}OutputFormat",
        serdeInfo=SerDeInfo(serializationLib=f"{ORC}Serde", parameters={}),
        parameters={},
        bucketCols=[],
        sortCols=[],
    )
    table = Table(dbName="default", tableName=name, owner="b", tableType="MANAGED_TABLE", partitionKeys=[], parameters=parameters, sd=sd)
    with connect(uri) as client:
        client.create_table_req(CreateTableRequest(table=table, processorCapabilities=CAPABILITIES, processorIdentifier="benchmark"))
    began = time.perf_counter()
    with StreamingConnection(uri, f"default.{name}") as connection:
        for first in range(0, len(data), 100):
            some = data[first : first + 100]
            with connection.batch(len(some)) as batch:
                for rows in some:
                    with batch.transaction():
                        batch.write(rows)
    return time.perf_counter() - began


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument("--commit", type=int, default=10_000, help="rows of a commit")
    parser.add_argument("--runs", type=int, default=3)
    given = parser.parse_args()
    data = batches(given.rows, given.commit)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        environment = {key: value for key, value in os.environ.items() if not key.startswith("METASTORE_")}
        command = [
            sys.executable,
            "-c",
            "from metastore.cli import main; main()",
            "serve",
            "--port",
            "0",
            "--db",
            f"sqlite:///{folder}/m.db",
            "--warehouse",
            str(folder / "warehouse"),
            "--set",
            f"data_directory={folder}",
        ]
        with (folder / "log").open("w") as log:
            server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, env={**environment, "PYTHONPATH": str(ROOT)})
        try:
            assert server.stdout is not None
            line = server.stdout.readline().strip()
            if not line.startswith(READY):
                sys.exit(f"the server did not start: {line}\n{(folder / 'log').read_text()[-2000:]}")
            times = [(plain(data, folder / f"{run}.orc"), streamed(data, line.removeprefix(READY), f"t{run}")) for run in range(given.runs)]
        finally:
            server.terminate()
            server.wait()
    alone, stream = (given.rows / statistics.median(column) for column in zip(*times, strict=True))
    print(f"{given.rows} rows, a commit every {given.commit}, median of {given.runs} runs")
    print(f"plain ORC   {alone:10,.0f} rows/s")
    print(f"stream      {stream:10,.0f} rows/s")
    print(f"ratio       {stream / alone:10.2f}")


if __name__ == "__main__":
    main()
