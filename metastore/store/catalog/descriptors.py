"""Column lists and storage formats: stored once per table under a hash of their content, decoded once per process.

A descriptor never changes, so its decoded form is kept in the caches, and shared by all structs that are returned: its lists and dicts can
not be changed in place, and its structs must not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from hashlib import blake2b
from operator import attrgetter
from typing import Any

import orjson
import sqlalchemy as sa

from metastore.errors import MetaError
from metastore.idl import FieldSchema, Order, SerDeInfo, SkewedInfo, StorageDescriptor
from metastore.store.core.caches import FrozenDict, FrozenList, frozen
from metastore.store.core.clauses import Among
from metastore.store.core.database import Database, Session
from metastore.store.drivers.contract import Retry
from metastore.store.schema.model import descriptors

BODIES = sa.select(descriptors.c.hash, descriptors.c.body).where(
    descriptors.c.table_id == sa.bindparam("table_id"), Among(descriptors.c.hash, "hashes")
)

Columns = list[FieldSchema]
PARTS = tuple(field[1] for field in StorageDescriptor.thrift_spec.values() if field[1] != "location")
parts: Callable[[StorageDescriptor], tuple[Any, ...]] = attrgetter(*PARTS)
"""A function that returns the part that consecutive partitions share: a storage descriptor without its location."""


def encode_columns(columns: Iterable[FieldSchema]) -> str:
    """Return the body of a column list; names are stored in lower case. MetaError for a column without name."""
    listed = list(columns)
    for column in listed:
        if column.name is None:
            raise MetaError(f"A column of type {column.type} has no name: set FieldSchema.name")
    return orjson.dumps([[column.name.lower(), column.type, column.comment] for column in listed]).decode()


def encode_storage(sd: StorageDescriptor) -> str:
    """Return the body of a storage descriptor without its columns and location; absent containers become empty ones."""
    serde = sd.serdeInfo or SerDeInfo()
    skew = sd.skewedInfo or SkewedInfo()
    return orjson.dumps(
        {
            "input": sd.inputFormat,
            "output": sd.outputFormat,
            "compressed": bool(sd.compressed),
            "buckets": sd.numBuckets or 0,
            "serde": [
                serde.name,
                serde.serializationLib,
                serde.parameters or {},
                serde.description,
                serde.serializerClass,
                serde.deserializerClass,
                serde.serdeType,
            ],
            "bucket_columns": sd.bucketCols or [],
            "sort_columns": [[order.col, order.order] for order in sd.sortCols or []],
            "parameters": sd.parameters or {},
            "skew": [
                skew.skewedColNames or [],
                skew.skewedColValues or [],
                [[list(key), value] for key, value in (skew.skewedColValueLocationMaps or {}).items()],
            ],
            "subdirectories": bool(sd.storedAsSubDirectories),
        }
    ).decode()


def hash_of(body: str) -> int:
    """Return 63 bits of a hash of a body."""
    return int.from_bytes(blake2b(body.encode(), digest_size=8).digest(), "big") >> 1


def insert(session: Session, table_id: int, bodies: Iterable[tuple[int, str]]) -> None:
    """Store (hash, body) pairs that the table does not have yet."""
    rows = [{"table_id": table_id, "hash": hash_, "body": body} for hash_, body in sorted(bodies)]
    if rows:
        session.insert_missing(descriptors, rows)


def columns(database: Database, hash_: int, body: str) -> Columns:
    """Return the decoded column list, shared."""
    found: Columns | None = database.caches.columns.get(hash_)
    if found is None:
        found = FrozenList(FieldSchema(name, type_, comment) for name, type_, comment in orjson.loads(body))
        database.caches.columns.put(hash_, found)
    return found


def share(database: Database, listed: Columns) -> Columns:
    """Return the one list in this process that equals a list of columns, so that equal lists are compared by identity."""
    body = encode_columns(listed)
    return columns(database, hash_of(body), body)


class StorageFormat:
    """A decoded storage format from which storage descriptors are made; its parts are shared by all of them."""

    __slots__ = ("_fields", "_rest")

    def __init__(self, body: str) -> None:
        raw: dict[str, Any] = frozen(orjson.loads(body))
        name, library, parameters, description, serializer, deserializer, kind = raw["serde"]
        names, values, places = raw["skew"]
        self._fields = {
            "cols": None,
            "location": None,
            "inputFormat": raw["input"],
            "outputFormat": raw["output"],
            "compressed": raw["compressed"],
            "numBuckets": raw["buckets"],
            "serdeInfo": SerDeInfo(name, library, parameters, description, serializer, deserializer, kind),
            "bucketCols": raw["bucket_columns"],
            "sortCols": FrozenList(Order(column, order) for column, order in raw["sort_columns"]),
            "parameters": raw["parameters"],
            "skewedInfo": SkewedInfo(names, values, FrozenDict((tuple(key), value) for key, value in places)),
            "storedAsSubDirectories": raw["subdirectories"],
        }
        self._rest = tuple(self._fields.values())[2:]

    def row_at(self, location: str | None, columns: Columns | None) -> tuple[Any, ...]:
        """Return the fields of a storage descriptor of this format, in the order of their declaration."""
        return columns, location, *self._rest

    def at(self, location: str | None, columns: Columns | None) -> StorageDescriptor:
        """Return a storage descriptor of this format."""
        sd = StorageDescriptor.__new__(StorageDescriptor)
        fields = sd.__dict__ = self._fields.copy()
        fields["cols"], fields["location"] = columns, location
        return sd


def storage(database: Database, hash_: int, body: str) -> StorageFormat:
    """Return the decoded storage format, shared."""
    found: StorageFormat | None = database.caches.storage_formats.get(hash_)
    return database.caches.storage_formats.put(hash_, StorageFormat(body)) if found is None else found


def load(session: Session, table_id: int, hashes: Iterable[int]) -> dict[int, Any]:
    """Return decoded descriptors of a table by their hashes: column lists and storage formats; one query for those that are not cached.

    Raises Retry when the table was dropped since its partitions were read.
    """
    caches = session.caches
    found: dict[int, Any] = {}
    for hash_ in hashes:
        value = caches.columns.get(hash_)
        found[hash_] = caches.storage_formats.get(hash_) if value is None else value
    missing = [hash_ for hash_, value in found.items() if value is None]
    if missing:
        rows = session.rows(BODIES, table_id=table_id, hashes=missing)
        for hash_, body in rows:
            found[hash_] = (columns if body.startswith("[") else storage)(session.database, hash_, body)
        if len(rows) < len(missing):
            raise Retry(f"table {table_id} lacks descriptors that its partitions name")
    return found
