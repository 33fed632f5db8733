"""The canonical form of a metastore's objects: records of a kind, a key and a body, the same from every source.

Two metastores hold the same where they yield the same records. Objects are named by their names, never by the numbers of a database's rows.
Texts without data are None, containers that are absent are empty, enums are the numbers of the Thrift interface. State that changes without
a change of an object is left out: heartbeats, locks, leases, tokens, the events of the log and histories.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import Any, NamedTuple

import orjson

Key = tuple[Any, ...]


class Record(NamedTuple):
    """One object; `KINDS` has the parts of the key by kind: texts or numbers, None for an absent one."""

    kind: str
    key: Key
    body: dict[str, Any]


_TABLE = ("catalog", "database", "table")
KINDS: dict[str, tuple[str, ...]] = {
    "server": ("name",),
    "role": ("name",),
    "catalog": ("name",),
    "connector": ("name",),
    "database": ("catalog", "name"),
    "table": _TABLE,
    "descriptor": (*_TABLE, "hash"),
    "partition": (*_TABLE, "name"),
    "constraint": (*_TABLE, "name"),
    "index": (*_TABLE, "name"),
    "function": ("catalog", "database", "name"),
    "procedure": ("catalog", "database", "name"),
    "package": ("catalog", "database", "name"),
    "type": ("name",),
    "role_grant": ("role", "principal_type", "principal"),
    "privilege": (  # a data connector is in the place of the table
        "object_type", *_TABLE, "partition", "column", "principal_type", "principal", "privilege", "grantor_type", "grantor", "authorizer",
    ),
    "location_grant": ("principal_type", "principal", "location"),
    "credential": ("user", "kind", "hash"),
    "resource_plan": ("namespace", "name"),
    "schema": ("catalog", "database", "name"),
    "schema_version": ("catalog", "database", "schema", "version"),
    "serde": ("name",),
    "scheduled_query": ("namespace", "name"),
    "property": ("map", "name"),
    "position": ("name",),
    "transaction": ("id",),
    "replicated_transaction": ("policy", "source_id"),
    "transaction_component": ("transaction", *_TABLE, "partition", "operation", "write_id"),
    "write_id_position": _TABLE,
    "write_id": (*_TABLE, "write_id"),
    "min_history": ("transaction", *_TABLE),
    "compaction": ("id",),
}  # fmt: skip
"""The parts of the keys by the kind, in the order of the records. A table's descriptors and partitions follow it at once."""

OF_TABLES = ("table", "descriptor", "partition")
"""The kinds whose records are read and written table by table."""
DEFINITIONS = ("descriptor",)
"""The kinds that other records refer to by a hash of the content: they hold nothing of their own."""

OPEN, ABORTED, COMMITTED = "o", "a", "c"
"""The states of transactions; one without a record is committed."""

POSITIONS = ("transaction", "notification")
"""The names of positions: the last transaction id that was given out, and the last event's."""


def line(record: Record) -> bytes:
    """Return a record as one line of JSON, the same for equal records, with its end."""
    return orjson.dumps({"kind": record[0], "key": record[1], "body": record[2]}, option=orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE)


def record_of(text: bytes) -> Record:
    """Return the record of a line. ValueError or KeyError for any other line."""
    raw = orjson.loads(text)
    return Record(raw["kind"], tuple(raw["key"]), raw["body"])


def key_text(record: Record) -> str:
    """Return a record's kind and key for people."""
    return f"{record.kind} {'.'.join('' if part is None else str(part) for part in record.key)}".rstrip()


def ids_text(ids: Sequence[int]) -> str:
    """Return the first ids of a list for people."""
    return ", ".join(map(str, sorted(ids)[:10])) + (" .." if len(ids) > 10 else "")


def content_hash(content: Any) -> str:
    """Return 64 bits of a hash of JSON, by which partitions name their column lists and storage formats."""
    return blake2b(orjson.dumps(content, option=orjson.OPT_SORT_KEYS), digest_size=8).hexdigest()
