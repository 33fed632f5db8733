"""Read exactly the rows of a snapshot of a transactional table, by the rules for directories and pyarrow alone."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyarrow import orc

from metastore.acid.buckets import buckets
from metastore.client import Client
from metastore.idl import GetValidWriteIdsRequest, Table
from metastore.rules.transactions.acid_directories import FolderEntry, SeenWriteIds, decide
from metastore.rules.transactions.snapshots import of_table_reply
from tests.streaming.conftest import folder

Event = dict[str, Any]


def snapshot(client: Client, table: Table) -> SeenWriteIds:
    name = f"{table.dbName}.{table.tableName}"
    seen = of_table_reply(client.get_valid_write_ids(GetValidWriteIdsRequest(fullTableNames=[name])).tblValidWriteIds[0])
    return SeenWriteIds(seen.mark, frozenset(seen.exceptions) - seen.aborted, seen.aborted, name)


def events(client: Client, table: Table, partition: str = "") -> list[Event]:
    """Return the events that a reader sees now, in the files' order."""
    write_ids = snapshot(client, table)
    place = folder(table) / partition
    state = decide([FolderEntry(path.name, path.is_dir()) for path in place.iterdir() if path.is_dir()], write_ids)
    found = []
    for delta in state.deltas:
        for path in sorted((place / delta.name).iterdir()):
            if buckets.of_file(path.name) is None:
                continue
            side = path.with_name(path.name + "_flush_length")
            data = path.read_bytes()
            if side.exists():
                data = data[: int.from_bytes(side.read_bytes()[-8:], "big")]
            if data:
                read = orc.ORCFile(pa.BufferReader(data)).read().to_pylist()
                found += [event for event in read if write_ids.is_valid(event["currentTransaction"])]
    return found


def rows(client: Client, table: Table, partition: str = "") -> list[Event]:
    return [event["row"] for event in events(client, table, partition)]
