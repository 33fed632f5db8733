#!/usr/bin/env python3
"""Measure the time and memory of calls on a table with very many partitions and a database with very many tables.

    python benchmarks/scale.py [--db URL] [--partitions 1000000] [--tables 100000] [--rounds 20] [--without-lists]

Starts `metastore serve` of this checkout with one worker on an empty database (SQLite in a temporary folder without --db), makes one
partition and one table through it, copies their rows in the database itself, and prints the median and the greatest time of each call
and the most memory that the worker held in it. Replies are read and not decoded. Linux only. A hundred million partitions
(`--partitions 100000000 --without-lists`) need PostgreSQL and 40 GB of disk.
"""

from __future__ import annotations

import argparse
import socket
import statistics
import struct
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

import sqlalchemy as sa  # noqa: E402
from thriftpy2.thrift import TMessageType  # noqa: E402

from metastore import idl  # noqa: E402
from metastore.client import Client, connect  # noqa: E402
from metastore.store.core.database import Database  # noqa: E402
from metastore.store.schema.model import partitions, tables  # noqa: E402
from metastore.wire.messages.protocol import Dialect, write_message  # noqa: E402
from tests.support.servers.servers import COMMAND, Server, serving  # noqa: E402

CHUNK = 20_000
"""Rows of one insert."""
GENERATED = 2_000_000
"""Rows of one insert that PostgreSQL makes itself."""
HOURS = 1000
"""Partitions of one day."""
BINARY = Dialect("binary", framed=False)


def storage() -> idl.StorageDescriptor:
    columns = [idl.FieldSchema(f"c{number}", "string", "a column") for number in range(20)]
    return idl.StorageDescriptor(
        cols=columns, inputFormat="in", outputFormat="out", serdeInfo=idl.SerDeInfo(serializationLib="lib", parameters={})
    )


def partition_of(number: int) -> tuple[str, int]:
    """Return the day and the hour of a partition."""
    day, hour = divmod(number, HOURS)
    return f"d{day:06d}", hour


def copy_rows(database: Database, table: sa.Table, rows: Callable[[int], dict[str, Any]], numbers: Iterable[int], name: str) -> None:
    """Insert copies of the row with the name `name`, one for each number, with the columns that `rows` changes."""
    columns = [column.name for column in table.columns if column.name != "id"]
    (row,) = database.read(lambda session: session.rows(sa.select(*(table.c[each] for each in columns)).where(table.c.name == name)))
    first, chunk = dict(zip(columns, row, strict=True)), list[tuple[Any, ...]]()
    for number in numbers:
        chunk.append(tuple({**first, **rows(number)}.values()))
        if len(chunk) == CHUNK:
            insert(database, table, columns, chunk)
            chunk = []
    insert(database, table, columns, chunk)


def generate_partitions(database: Database, count: int) -> None:
    """Let PostgreSQL copy the only partition, as `partition_of` names the copies."""
    day, hour = f"'d' || lpad((n / {HOURS})::text, 6, '0')", f"(n % {HOURS})::text"
    changed = {
        "name": f"'ds=' || {day} || '/hr=' || {hour}",
        "partition_values": f"'[\"' || {day} || '\",\"' || {hour} || '\"]'",
        "location": "NULL",
        "place": "NULL",
    }
    columns = [column.name for column in partitions.columns if column.name != "id"]
    values = ", ".join(changed.get(column, f"first.{column}") for column in columns)
    for begin in range(1, count, GENERATED):
        numbers = f"generate_series({begin}::bigint, {min(begin + GENERATED, count) - 1})"
        first = "(SELECT * FROM partitions ORDER BY id LIMIT 1) first"
        text = f"INSERT INTO partitions ({', '.join(columns)}) SELECT {values} FROM {first}, {numbers} n"
        database.autocommit(lambda session, text=text: session.execute(sa.text(text)))  # type: ignore[misc]  # bound now


def insert(database: Database, table: sa.Table, columns: list[str], rows: list[tuple[Any, ...]]) -> None:
    database.write(lambda session: session.insert_many(table, columns, rows))


def fill(client: Client, database: Database, args: argparse.Namespace) -> None:
    """Make the table with its partitions, and the database with its tables."""
    keys = [idl.FieldSchema("ds", "string"), idl.FieldSchema("hr", "int")]
    for name in ("scale", "many"):
        client.create_database(idl.Database(name=name))
    client.create_table(
        idl.Table(dbName="scale", tableName="t", sd=storage(), partitionKeys=keys, parameters={}, tableType="MANAGED_TABLE")
    )
    day, hour = partition_of(0)
    first = idl.Partition(dbName="scale", tableName="t", values=[day, str(hour)], sd=storage(), parameters={"numRows": "1"})
    client.add_partition(first)

    def partition(number: int) -> dict[str, Any]:
        day, hour = partition_of(number)
        name = f"ds={day}/hr={hour}"
        return {"name": name, "partition_values": f'["{day}","{hour}"]', "location": None, "place": None}

    if database.driver.name == "postgresql":
        generate_partitions(database, args.partitions)
    else:
        copy_rows(database, partitions, partition, range(1, args.partitions), f"ds={day}/hr={hour}")
    client.create_table(idl.Table(dbName="many", tableName="t0000000", sd=storage(), parameters={}, tableType="MANAGED_TABLE"))
    copy_rows(database, tables, lambda number: {"name": f"t{number:07d}", "place": None}, range(1, args.tables), "t0000000")
    if database.driver.name != "mysql":
        database.autocommit(lambda session: session.execute(sa.text("ANALYZE")))


class Raw:
    """A connection that sends calls and only counts the bytes of their replies."""

    def __init__(self, uri: str) -> None:
        host, port = uri.removeprefix("thrift://").split(":")
        self._socket = socket.create_connection((host, int(port)), 600)

    def call(self, method: str, **arguments: Any) -> int:
        """Return the number of bytes of a reply. The reply to a further call marks its end."""
        args = getattr(idl.service, f"{method}_args")(**arguments)
        end = write_message(BINARY, "getStatus", TMessageType.CALL, 0x7EAD, idl.service.getStatus_args())
        self._socket.sendall(write_message(BINARY, method, TMessageType.CALL, 1, args) + end)
        mark, received, tail = struct.pack(">i", 9) + b"getStatus" + struct.pack(">i", 0x7EAD), 0, b""
        while mark not in tail:
            part = self._socket.recv(1 << 20)
            if not part:
                raise EOFError(f"{method}: the server closed the connection")
            received += len(part)
            tail = (tail + part)[-200:] if len(part) < 200 else part[-200:]
        return received


def peak(process: int) -> int:
    """Return the most memory, in MB, that a process has held since `forget`."""
    return int(Path(f"/proc/{process}/status").read_text().partition("VmHWM:")[2].split()[0]) // 1000


def forget(process: int) -> None:
    Path(f"/proc/{process}/clear_refs").write_text("5")


def calls(uri: str, args: argparse.Namespace) -> Iterator[tuple[str, Callable[[int], object], int]]:
    """Yield the measured calls: a name, a function that makes the call of a round by its number, and the number of rounds."""
    raw, client, last = Raw(uri), connect(uri, timeout=600), args.partitions - 1
    where = {"db_name": "scale", "tbl_name": "t"}
    spread = [number * last // args.rounds for number in range(args.rounds + 1)]

    def name(number: int) -> str:
        day, hour = partition_of(spread[number])
        return f"ds={day}/hr={hour}"

    def values(number: int) -> list[str]:
        day, hour = partition_of(spread[number])
        return [day, str(hour)]

    def added(number: int) -> idl.Partition:
        return idl.Partition(dbName="scale", tableName="t", values=["new", str(number)], sd=storage(), parameters={})

    def alter(number: int) -> None:
        table = client.get_table("scale", "t")
        table.parameters["comment"] = str(number)
        client.alter_table("scale", "t", table)

    def rename(number: int) -> None:
        table = client.get_table("scale", "t" if number % 2 == 0 else "u")
        old, table.tableName = table.tableName, "u" if number % 2 == 0 else "t"
        client.alter_table("scale", old, table)

    rounds = args.rounds - args.rounds % 2
    yield "get_table", lambda _: client.get_table("scale", "t"), rounds
    yield "get_partition", lambda number: client.get_partition("scale", "t", values(number)), rounds
    yield "get_partitions_by_names, 10", lambda number: raw.call("get_partitions_by_names", **where, names=[name(number)] * 10), rounds
    yield (
        "names by leading key, 1,000",
        lambda number: raw.call("get_partition_names_ps", **where, part_vals=[values(number)[0], ""], max_parts=-1),
        rounds,
    )
    yield (
        "selective filter",
        lambda number: raw.call(
            "get_partitions_by_filter", **where, filter=f'ds = "{values(number)[0]}" and hr = {values(number)[1]}', max_parts=-1
        ),
        rounds,
    )
    yield "add_partitions, 1", lambda number: client.add_partitions([added(number)]), rounds
    yield "drop_partition", lambda number: client.drop_partition("scale", "t", ["new", str(number)], False), rounds
    yield "alter_table", alter, rounds
    yield "rename the table", rename, rounds
    if args.without_lists:
        return
    yield "all names", lambda _: raw.call("get_partition_names", **where, max_parts=-1), 2
    yield "all partitions", lambda _: raw.call("get_partitions", **where, max_parts=-1), 2
    every = {"part_vals": ["", ""], "max_parts": -1, "user_name": "user", "group_names": []}
    yield "all partitions, as Spark asks", lambda _: raw.call("get_partitions_ps_with_auth", **where, **every), 2
    yield "a filter that looks at all", lambda _: raw.call("get_partitions_by_filter", **where, filter="hr = 7", max_parts=-1), 2
    yield "all tables", lambda _: raw.call("get_all_tables", db_name="many"), 3
    yield "metas of all tables", lambda _: raw.call("get_table_meta", db_patterns="many", tbl_patterns="*", tbl_types=[]), 3


def measure(server: Server, args: argparse.Namespace) -> None:
    worker = int(Path(f"/proc/{server.process.pid}/task/{server.process.pid}/children").read_text().split()[0])
    print(f"\n| {args.partitions:,} partitions, {args.tables:,} tables | median, ms | greatest, ms | memory, MB |\n|---|---|---|---|")
    for name, call, rounds in calls(server.uri, args):
        forget(worker)
        times = []
        for number in range(rounds):
            began = time.perf_counter()
            call(number)
            times.append((time.perf_counter() - began) * 1000)
        print(f"| {name} | {statistics.median(times):,.1f} | {max(times):,.1f} | {peak(worker):,} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--db", default="", help="URL of an empty database")
    parser.add_argument("--partitions", type=int, default=1_000_000)
    parser.add_argument("--tables", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--without-lists", action="store_true", help="leave out the calls that return everything")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        url = args.db or f"sqlite:///{folder}/metastore.db"
        options = ("--db", url, "--workers", "1", "--warehouse", str(folder / "warehouse"), "--set", f"data_directory={folder}")
        with serving(*options, home=folder, command=COMMAND) as server, connect(server.uri) as client:
            database = Database(url)
            began = time.perf_counter()
            fill(client, database, args)
            database.close()
            print(f"filled in {time.perf_counter() - began:.0f} s")
            measure(server, args)


if __name__ == "__main__":
    main()
