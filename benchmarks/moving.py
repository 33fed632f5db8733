#!/usr/bin/env python3
"""Measure the time and memory of a restore and an import of very many partitions.

    python benchmarks/moving.py --to URL [--hive URL [--over-thrift]] [--tables 1000] [--partitions 1000]

With --to alone it writes a dump and measures `metastore restore` of it into that empty database. With --hive it makes Hive's schema
4.0.0 in that empty PostgreSQL database, fills it, and measures `metastore import` from there, or from Java's server 4.0.1 on it. Each
partition has six parameters and statistics of two columns. Databases are not emptied. Linux only.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from sqlalchemy.engine import make_url  # noqa: E402

from metastore import binary, idl  # noqa: E402
from metastore.transfer.dumps import DumpWriter  # noqa: E402
from metastore.transfer.records import Record, content_hash  # noqa: E402
from metastore.transfer.thrift import structs  # noqa: E402
from tests.support.engines.java_metastore import java_metastore, make_schema  # noqa: E402
from tests.support.engines.large_hive import CREATED, fill  # noqa: E402

COLUMNS = [["id", "bigint", None], ["name", "string", None]]
STORAGE = structs.storage(
    idl.StorageDescriptor(inputFormat="in", outputFormat="out", serdeInfo=idl.SerDeInfo(serializationLib="lib", parameters={}))
)
PARAMETERS = ("numFiles", "totalSize", "numRows", "rawDataSize", "transient_lastDdlTime", "COLUMN_STATS_ACCURATE")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--to", required=True, help="URL of an empty database of this project")
    parser.add_argument("--hive", help="URL of an empty PostgreSQL database for Hive's schema")
    parser.add_argument("--over-thrift", action="store_true", help="import from Java's server on that database")
    parser.add_argument("--tables", type=int, default=1000)
    parser.add_argument("--partitions", type=int, default=1000, help="partitions of each table")
    given = parser.parse_args()
    if given.over_thrift:
        with tempfile.TemporaryDirectory() as folder, java_metastore(given.hive, Path(folder, "java")) as uri:
            fill(given.hive, given.tables, given.partitions, PARAMETERS)
            measure("import", uri, "--db", given.to)
        return
    if given.hive:
        began = time.monotonic()
        make_schema(make_url(given.hive), "4.0.0")
        fill(given.hive, given.tables, given.partitions, PARAMETERS)
        print(f"fill: {time.monotonic() - began:.0f} s", flush=True)
        measure("import", given.hive, "--db", given.to)
        return
    with tempfile.TemporaryDirectory() as folder:
        path, began = Path(folder) / "dump", time.monotonic()
        writer = DumpWriter(path)
        writer.begin()
        writer.write(records(given.tables, given.partitions))
        writer.close()
        print(f"dump: {time.monotonic() - began:.0f} s, {path.stat().st_size / 1e6:.0f} MB", flush=True)
        measure("restore", str(path), "--db", given.to)


def measure(*command: str) -> None:
    """Run a command, and print its time and the most memory that it held."""
    began = time.monotonic()
    process = subprocess.Popen([sys.executable, "-c", "from metastore.cli import main; main()", *command], cwd=ROOT)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    seconds = time.monotonic() - began
    print(f"{command[0]}: {seconds:.0f} s, at most {usage.ru_maxrss / 1024:.0f} MB, status {process.returncode}", flush=True)


def records(tables: int, partitions: int) -> Iterator[Record]:
    """Yield a database of tables with partitions."""
    yield Record("catalog", ("hive",), {"description": None, "location": "s3a://b", "create_time": CREATED})
    database: dict[str, Any] = {
        "description": None, "location": "s3a://b/big.db", "managed_location": None, "parameters": {}, "owner_name": "etl",
        "owner_type": 1, "create_time": CREATED, "type": 1, "connector_name": None, "remote_name": None,
    }  # fmt: skip
    yield Record("database", ("hive", "big"), database)
    columns, storage = content_hash(COLUMNS), content_hash(STORAGE)
    for table in range(tables):
        names, place = ("hive", "big", f"t{table:05d}"), f"s3a://b/big.db/t{table:05d}"
        body = {
            "type": "EXTERNAL_TABLE", "owner": "etl", "owner_type": 1, "create_time": CREATED, "last_access_time": 0, "retention": 0,
            "location": place, "view_original_text": None, "view_expanded_text": None, "rewrite_enabled": 0, "write_id": -1,
            "partition_keys": [["ds", "string", None]], "parameters": {"EXTERNAL": "TRUE"}, "creation_metadata": None,
            "columns": COLUMNS, "storage": STORAGE, "statistics": {},
        }  # fmt: skip
        yield Record("table", names, body)
        yield Record("descriptor", (*names, columns), {"content": COLUMNS})
        yield Record("descriptor", (*names, storage), {"content": STORAGE})
        for number in range(partitions):
            name = f"ds={number:06d}"
            found = {column[0]: [column[1], CREATED, statistics(number)] for column in COLUMNS}
            content = {
                "values": [f"{number:06d}"], "location": f"{place}/{name}", "columns": columns, "storage": storage,
                "parameters": {key: str(number) for key in PARAMETERS}, "create_time": CREATED, "last_access_time": 0, "write_id": -1,
                "statistics": {"hive": found},
            }  # fmt: skip
            yield Record("partition", (*names, name), content)


def statistics(number: int) -> str:
    data = idl.ColumnStatisticsData(longStats=idl.LongColumnStatsData(lowValue=0, highValue=number, numNulls=0, numDVs=number))
    return b64encode(binary.to_bytes(data)).decode()


if __name__ == "__main__":
    main()
