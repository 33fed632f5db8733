"""Turn rows of partitions into structs, and structs into rows. Parts that many partitions share are decoded and encoded once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import orjson

from metastore.idl import Partition, StorageDescriptor, Table
from metastore.places import indexed
from metastore.store.catalog import descriptors
from metastore.store.core.database import Database, Session
from metastore.store.drivers.contract import Row
from metastore.store.schema.model import partitions

PARTITION = partitions.c
FIELDS = (
    PARTITION.id,
    PARTITION.name,
    PARTITION.partition_values,
    PARTITION.location,
    PARTITION.columns_hash,
    PARTITION.storage_hash,
    PARTITION.parameters,
    PARTITION.create_time,
    PARTITION.last_access_time,
    PARTITION.write_id,
)
INSERTED = ("table_id", *(field.name for field in FIELDS[1:]), "place")
NAMES_OF_FIELDS = [field[1] for field in list(Partition.thrift_spec.values())[:10]]
"""The stored fields of a struct."""


class PartitionStructs:
    """Turns rows of one table's partitions into structs that share their column lists and storage formats."""

    def __init__(self, session: Session, table: Table) -> None:
        self._session = session
        self._table = table

    def structs(self, rows: Sequence[Row]) -> list[Partition]:
        """Return the partitions of rows with the fields `FIELDS`."""
        out = []
        for fields in self._fields(rows, descriptors.StorageFormat.at):
            struct = Partition.__new__(Partition)
            struct.__dict__ = dict(zip(NAMES_OF_FIELDS, fields, strict=True))
            out.append(struct)
        return out

    def tuples(self, rows: Sequence[Row]) -> list[Any]:
        """Return the fields of the partitions, in the order of their declaration: tuples in place of structs in a reply."""
        return self._fields(rows, descriptors.StorageFormat.row_at)

    def _fields(self, rows: Sequence[Row], described: Callable[..., Any]) -> list[Any]:
        decoded, base = self._load(rows)
        table, loads = self._table, orjson.loads
        database, name, catalog = table.dbName, table.tableName, table.catName
        out = []
        for _, _, values, place, columns, storage, parameters, created, accessed, write_id in rows:
            location = base + place[1:] if place is not None and place[:2] == "./" else place
            listed = decoded[columns] if columns is not None else None
            sd = described(decoded[storage], location, listed) if storage is not None else None
            out.append((loads(values), database, name, created, accessed, sd, loads(parameters), None, catalog, write_id))
        return out

    def _load(self, rows: Sequence[Row]) -> tuple[Mapping[int, Any], str]:
        """Return the decoded descriptors of rows, by hash, and the location of the table."""
        table = self._table
        assert table.id is not None
        hashes = {row[4] for row in rows} | {row[5] for row in rows}
        hashes.discard(None)
        decoded = descriptors.load(self._session, table.id, hashes)
        return decoded, (table.sd.location if table.sd is not None else None) or ""


Form = Callable[[PartitionStructs, Sequence[Row]], list[Any]]
"""`PartitionStructs.structs` or `PartitionStructs.tuples`."""


class _Descriptors:
    """The descriptors of partitions that are about to be written. Hundreds of consecutive partitions have the same: it is encoded once."""

    def __init__(self) -> None:
        self.by_hash: dict[int, str] = {}
        self._parts: tuple[Any, ...] = ()
        self._hashes: tuple[int | None, int] = None, 0
        self._columns: descriptors.Columns | None = None
        self._hash_of_columns: int | None = None

    def hashes(self, sd: StorageDescriptor) -> tuple[int | None, int]:
        """Return the hashes of the column list and of the storage format."""
        parts = descriptors.parts(sd)
        if parts != self._parts:
            if sd.cols != self._columns:
                self._columns = sd.cols
                self._hash_of_columns = None if sd.cols is None else self._add(descriptors.encode_columns(sd.cols))
            self._parts, self._hashes = parts, (self._hash_of_columns, self._add(descriptors.encode_storage(sd)))
        return self._hashes

    def _add(self, body: str) -> int:
        hash_ = descriptors.hash_of(body)
        self.by_hash[hash_] = body
        return hash_


def stored_location(base: str, name: str, location: str | None) -> tuple[str | None, str | None]:
    """Return the columns `location` and `place` of a partition of a table at `base`, which does not end in a slash."""
    stored = location
    if base and location is not None and location.startswith(base + "/"):
        stored = "." + location[len(base) :]
    return stored, (indexed(location) or "") if stored is not None and stored != f"./{name}" else None


def rows_of(session: Session, table: Table, named: Iterable[tuple[str, Partition]]) -> list[Row]:
    """Return the rows of partitions; their descriptors are stored where the table lacks them."""
    assert table.id is not None
    bodies = _Descriptors()
    place = table.sd.location if table.sd is not None else None
    base = place.rstrip("/") if place else ""
    rows: list[Row] = []
    for name, partition in named:
        sd = partition.sd
        location, columns, storage, where = None, None, None, None
        if sd is not None:
            location, where = stored_location(base, name, sd.location)
            columns, storage = bodies.hashes(sd)
        write_id = partition.writeId
        rows.append(
            (
                table.id,
                name,
                orjson.dumps(partition.values).decode(),
                location,
                columns,
                storage,
                orjson.dumps(partition.parameters or {}).decode(),
                partition.createTime or 0,
                partition.lastAccessTime or 0,
                -1 if write_id is None else write_id,
                where,
            )
        )
    if table.sd is not None:
        bodies.by_hash.pop(descriptors.hash_of(descriptors.encode_columns(table.sd.cols)), None)
        bodies.by_hash.pop(descriptors.hash_of(descriptors.encode_storage(table.sd)), None)
    descriptors.insert(session, table.id, bodies.by_hash.items())
    return rows


def share_columns(database: Database, changed: Iterable[Partition]) -> None:
    """Let partitions with equal columns share one list: the list of the stored partitions, where it is equal."""
    seen: dict[int, tuple[descriptors.Columns, descriptors.Columns]] = {}
    for partition in changed:
        if partition.sd is not None and partition.sd.cols is not None:
            columns = partition.sd.cols
            if id(columns) not in seen:
                seen[id(columns)] = columns, descriptors.share(database, columns)
            partition.sd.cols = seen[id(columns)][1]
