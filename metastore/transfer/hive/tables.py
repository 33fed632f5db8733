"""Tables and partitions of a Java metastore as records. Partitions of one table are read a page at a time, by their numbers."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from metastore.idl import PrincipalType
from metastore.store.drivers.contract import Row
from metastore.transfer.hive import statistics
from metastore.transfer.hive.schema import PAGE, HiveSchema, flag
from metastore.transfer.hive.storage import Content, Described, Storage
from metastore.transfer.records import Record
from metastore.transfer.selection import Selection

_TBLS = (
    "TBL_NAME", "SD_ID", "TBL_TYPE", "OWNER", "OWNER_TYPE", "CREATE_TIME", "LAST_ACCESS_TIME", "RETENTION", "VIEW_ORIGINAL_TEXT",
    "VIEW_EXPANDED_TEXT", "IS_REWRITE_ENABLED", "WRITE_ID",
)  # fmt: skip
_PARTITIONS = ("PART_NAME", "SD_ID", "CREATE_TIME", "LAST_ACCESS_TIME", "WRITE_ID")
TABLES_OF_PAGE = 500
Names = tuple[str, str, str]


def principal_type(name: str | None) -> int | None:
    """Return the number of USER, ROLE or GROUP; None for none."""
    return None if name is None else PrincipalType._NAMES_TO_VALUES.get(name.upper())  # noqa: SLF001  # thriftpy2 has no public name for it


class Tables:
    """Reads the tables of databases, and remembers their names by their numbers."""

    def __init__(self, schema: HiveSchema, databases: Mapping[int, tuple[str, str]]) -> None:
        self._schema, self._databases = schema, databases
        self._storage = Storage(schema)
        self._views = _views(schema, databases)

    def records(self, selection: Selection) -> Iterator[Record]:
        """Yield the records of all wanted tables, ascending by catalog and database, each with its dependent records."""
        for number, (catalog, database) in sorted(self._databases.items(), key=lambda pair: pair[1]):
            if not selection.wants_database(catalog, database):
                continue
            rows = list(self._schema.among("TBLS", "DB_ID", [number], "TBL_ID", *_TBLS))
            wanted = [row[1:] for row in sorted(rows, key=lambda row: str(row[2])) if _wants(selection, (catalog, database, row[2]))]
            for begin in range(0, len(wanted), TABLES_OF_PAGE):
                yield from self._page(selection, (catalog, database), wanted[begin : begin + TABLES_OF_PAGE])

    def _page(self, selection: Selection, where: tuple[str, str], rows: Sequence[Row]) -> Iterator[Record]:
        schema, keys = self._schema, [row[0] for row in rows]
        described = self._storage.load(row[2] for row in rows)
        parameters = schema.maps("TABLE_PARAMS", "TBL_ID", keys)
        partition_keys = schema.grouped("PARTITION_KEYS", "TBL_ID", keys, "PKEY_NAME", "PKEY_TYPE", "PKEY_COMMENT", order="INTEGER_IDX")
        found = statistics.load(schema, "TAB_COL_STATS", "TBL_ID", keys)
        for key, name, sd, kind, owner, owner_type, created, accessed, retention, original, expanded, rewrite, write_id in rows:
            names = (*where, name)
            storage = described.get(sd)
            body = {
                "type": kind,
                "owner": owner,
                "owner_type": principal_type(owner_type) or (None if owner is None else PrincipalType.USER),
                "create_time": created,
                "last_access_time": accessed,
                "retention": retention,
                "location": None if storage is None else storage.location,
                "view_original_text": original,
                "view_expanded_text": expanded,
                "rewrite_enabled": int(flag(rewrite)),
                "write_id": -1 if write_id is None else write_id,
                "partition_keys": [[each[0].lower(), *each[1:]] for each in partition_keys.get(key, ())],
                "parameters": parameters.get(key, {}),
                "creation_metadata": self._views.get(names),
                "columns": None if storage is None else storage.columns.content if storage.columns is not None else [],
                "storage": None if storage is None else storage.storage.content,
                "statistics": found.get(key, {}),
            }
            if selection.wants("table"):
                yield Record("table", names, body)
            if key in partition_keys and selection.wants("partition"):
                yield from self._partitions(names, key)

    def _partitions(self, names: Names, table: int) -> Iterator[Record]:
        numbers = array("q", (row[0] for row in self._schema.numbers("PARTITIONS", "PART_ID", "TBL_ID", table)))
        numbers = array("q", sorted(numbers))
        known: set[str] = set()
        for begin in range(0, len(numbers), PAGE):
            keys = numbers[begin : begin + PAGE]
            rows = list(self._schema.among("PARTITIONS", "PART_ID", keys, *_PARTITIONS))
            described = self._storage.load(row[2] for row in rows)
            yield from _definitions(names, described, known)
            yield from self._page_of_partitions(names, rows, described)

    def _page_of_partitions(self, names: Names, rows: Sequence[Row], described: Mapping[int, Described]) -> Iterator[Record]:
        schema, keys = self._schema, [row[0] for row in rows]
        values = schema.lists("PARTITION_KEY_VALS", "PART_ID", keys, "PART_KEY_VAL")
        parameters = schema.maps("PARTITION_PARAMS", "PART_ID", keys)
        found = statistics.load(schema, "PART_COL_STATS", "PART_ID", keys)
        for key, name, sd, created, accessed, write_id in rows:
            storage = described.get(sd)
            body = {
                "values": values.get(key, []),
                "location": None if storage is None else storage.location,
                "columns": None if storage is None or storage.columns is None else storage.columns.hash,
                "storage": None if storage is None else storage.storage.hash,
                "parameters": parameters.get(key, {}),
                "create_time": created,
                "last_access_time": accessed,
                "write_id": write_id or -1,
                "statistics": found.get(key, {}),
            }
            yield Record("partition", (*names, name), body)


def _wants(selection: Selection, names: Names) -> bool:
    return selection.wants_table(*names) and names not in selection.done


def _definitions(names: Names, described: Mapping[int, Described], known: set[str]) -> Iterator[Record]:
    for each in described.values():
        parts: tuple[Content | None, ...] = (each.columns, each.storage)
        for part in parts:
            if part is not None and part.hash not in known:
                known.add(part.hash)
                yield Record("descriptor", (*names, part.hash), {"content": part.content})


def _views(schema: HiveSchema, databases: Mapping[int, tuple[str, str]]) -> dict[Names, dict[str, Any]]:
    """Return the sources of each materialized view."""
    columns = ("CAT_NAME", "DB_NAME", "TBL_NAME", "TXN_LIST", "MATERIALIZATION_TIME")
    views = {row[0]: row[1:] for rows in schema.pages("MV_CREATION_METADATA", "MV_CREATION_METADATA_ID", *columns) for row in rows}
    counts = ("INSERTED_COUNT", "UPDATED_COUNT", "DELETED_COUNT")
    used = schema.grouped("MV_TABLES_USED", "MV_CREATION_METADATA_ID", views, "TBL_ID", *counts)
    tables = {
        row[0]: row[1:] for row in schema.among("TBLS", "TBL_ID", (row[0] for rows in used.values() for row in rows), "DB_ID", "TBL_NAME")
    }
    found = {}
    for key, (catalog, database, name, transactions, time) in views.items():
        sources = sorted(
            (*databases[tables[row[0]][0]], tables[row[0]][1], *(count or 0 for count in row[1:]))
            for row in used.get(key, ())
            if row[0] in tables
        )
        raw = {
            "catName": catalog,
            "dbName": database,
            "tblName": name,
            "tablesUsed": [".".join(source[1:3]) for source in sources],
            "validTxnList": transactions,
            "materializationTime": time,
            "sourceTables": [list(source) for source in sources],
        }
        found[catalog, database, name] = {field: value for field, value in raw.items() if value is not None}
    return found
