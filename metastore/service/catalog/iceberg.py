"""Snapshots of an Iceberg table by its own metadata. It reads one file, in the table's directory, and changes nothing.

Source: the Iceberg table specification (snapshots, refs, snapshot-log).
"""

from __future__ import annotations

import zlib
from typing import Any, NamedTuple

import orjson

from metastore.errors import InvalidOperation, MetaError
from metastore.idl import Table
from metastore.rules.catalog.table_kinds import parameter, table_label
from metastore.service.call.context import Call
from metastore.service.call.names import TableName
from metastore.service.catalog.tables.tables import find_table

LOCATION = "metadata_location"
LARGEST = 32 << 20
"""The largest metadata file that is read, in bytes, compressed or not. A file with ten thousand snapshots has about ten million bytes."""


class IcebergSnapshot(NamedTuple):
    """A snapshot; time in milliseconds."""

    id: int
    parent: int | None
    time: int
    operation: str | None
    summary: dict[str, str]
    is_current: bool
    refs: list[str]
    """Names of the branches and tags that point to it."""


def is_iceberg(table: Table) -> bool:
    """Return whether a table is Iceberg's."""
    return (parameter(table.parameters, "table_type") or "").lower() == "iceberg"


def snapshots(call: Call, name: TableName) -> list[IcebergSnapshot]:
    """Return the snapshots of an Iceberg table, the last first.

    NoSuchObject for a missing table; InvalidOperation for a table of another kind, and where its metadata is outside of its directory: it
    could be any file that the server can read. MetaError for metadata that is missing, too large, or not understood.
    """
    table = find_table(call, name)
    place = (table.parameters or {}).get(LOCATION)
    if not is_iceberg(table) or not place:
        raise InvalidOperation(f"{table_label(table)} is not an Iceberg table, or has no {LOCATION}")
    own = table.sd.location if table.sd is not None else None
    if not own or not call.warehouse.is_below(place, own):
        raise InvalidOperation(f"The metadata of {table_label(table)} is at {place}, outside of {own}: it is not read")
    found = _read(call, place)
    try:
        names: dict[int, list[str]] = {}
        for ref, target in (found.get("refs") or {}).items():
            names.setdefault(target["snapshot-id"], []).append(ref)
        listed = [_snapshot(each, found.get("current-snapshot-id"), names) for each in found.get("snapshots") or ()]
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise MetaError(f"{place} is not metadata of an Iceberg table: {error!r}") from error
    return sorted(listed, key=lambda each: each.time, reverse=True)


def _snapshot(each: dict[str, Any], current: int | None, names: dict[int, list[str]]) -> IcebergSnapshot:
    summary = {str(key): str(value) for key, value in (each.get("summary") or {}).items()}
    key = int(each["snapshot-id"])
    operation = summary.pop("operation", None)
    refs = sorted(names.get(key, []))
    return IcebergSnapshot(key, each.get("parent-snapshot-id"), int(each["timestamp-ms"]), operation, summary, key == current, refs)


def _read(call: Call, place: str) -> dict[str, Any]:
    data = call.warehouse.read(place, LARGEST + 1)
    if data is None:
        raise MetaError(f"{place} is not there")
    if place.endswith((".gz.metadata.json", ".metadata.json.gz")):
        data = _unpacked(place, data)
    if len(data) > LARGEST:
        raise MetaError(f"{place} is larger than {LARGEST} bytes: it is not read")
    try:
        found = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise MetaError(f"{place} is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise MetaError(f"{place} is not metadata of an Iceberg table")
    return found


def _unpacked(place: str, data: bytes) -> bytes:
    try:
        return zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(data, LARGEST + 1)
    except zlib.error as error:
        raise MetaError(f"{place} can not be unpacked: {error}") from error
