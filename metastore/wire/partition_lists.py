"""Answer lists of partitions from encoded parts: what partitions of a table share is encoded once. Binary protocol only.

Encoding struct by struct costs 12 us for a partition with 20 columns, joining parts a third of that. It never changes a struct.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import Any

from thriftpy2.thrift import TType

from metastore.binary import to_bytes
from metastore.idl import Partition, StorageDescriptor
from metastore.wire.encoding import Encoded

FIELD = struct.Struct("!bh").pack
STRING_FIELD = struct.Struct("!bhi").pack
I32_FIELD = struct.Struct("!bhi").pack
I64_FIELD = struct.Struct("!bhq").pack
LIST_OF_STRINGS = struct.Struct("!bhbi").pack
MAP_OF_STRINGS = struct.Struct("!bhbbi").pack
STOP = b"\0"

PARTITION = {spec[1]: number for number, spec in Partition.thrift_spec.items()}
DESCRIPTOR = {spec[1]: number for number, spec in StorageDescriptor.thrift_spec.items()}
COMMON = frozenset(("values", "dbName", "tableName", "createTime", "lastAccessTime", "sd", "parameters", "catName", "writeId"))
"""The fields of a partition as the store returns it; one with others is encoded by the library."""
SHARED = tuple(name for name in DESCRIPTOR if name != "location")


class _Encoder:
    """Encodes the partitions of one reply; keeps what they share by the identity of the shared objects."""

    def __init__(self) -> None:
        self._texts: dict[str, bytes] = {}
        self._descriptors: dict[tuple[int, ...], tuple[bytes, bytes]] = {}
        self._tails: dict[tuple[Any, ...], bytes] = {}
        self._heads: dict[tuple[str, str, int, int], bytes] = {}

    def _text(self, text: str) -> bytes:
        found = self._texts.get(text)
        if found is None:
            raw = text.encode()
            found = self._texts[text] = len(raw).to_bytes(4, "big") + raw
        return found

    def _descriptor(self, sd: StorageDescriptor) -> tuple[bytes, bytes]:
        """Return the bytes of a storage descriptor before and behind its location."""
        fields = sd.__dict__
        key = tuple([id(fields[name]) for name in SHARED])
        found = self._descriptors.get(key)
        if found is None:
            columns = FIELD(TType.STRUCT, PARTITION["sd"]) + to_bytes(StorageDescriptor(cols=sd.cols))[:-1]
            rest = to_bytes(StorageDescriptor(**{**fields, "location": None, "cols": None}))
            found = self._descriptors[key] = (columns, rest)
        return found

    def add(self, part: Partition, out: list[bytes]) -> None:
        """Append the bytes of a partition."""
        fields = part.__dict__
        if fields.keys() != COMMON or part.sd is None or part.values is None:
            out.append(to_bytes(part))
            return
        texts, text = self._texts, self._text
        values, parameters, location = part.values, part.parameters, part.sd.location
        out.append(LIST_OF_STRINGS(TType.LIST, PARTITION["values"], TType.STRING, len(values)))
        out.extend([texts.get(value) or text(value) for value in values])
        before, behind = self._descriptor(part.sd)
        out.append(self._head(part))
        out.append(before)
        if location is not None:
            raw = location.encode()
            out.append(STRING_FIELD(TType.STRING, DESCRIPTOR["location"], len(raw)))
            out.append(raw)
        out.append(behind)
        out.append(MAP_OF_STRINGS(TType.MAP, PARTITION["parameters"], TType.STRING, TType.STRING, len(parameters)))
        for key, value in parameters.items():
            out.append(texts.get(key) or text(key))
            out.append(texts.get(value) or text(value))
        out.append(self._tail(part))

    def _head(self, part: Partition) -> bytes:
        """Return the bytes of names and times."""
        key = (part.dbName, part.tableName, part.createTime, part.lastAccessTime)
        found = self._heads.get(key)
        if found is None:
            found = self._heads[key] = b"".join(
                (
                    FIELD(TType.STRING, PARTITION["dbName"]),
                    self._text(part.dbName),
                    FIELD(TType.STRING, PARTITION["tableName"]),
                    self._text(part.tableName),
                    I32_FIELD(TType.I32, PARTITION["createTime"], part.createTime),
                    I32_FIELD(TType.I32, PARTITION["lastAccessTime"], part.lastAccessTime),
                )
            )
        return found

    def _tail(self, part: Partition) -> bytes:
        key = (part.catName, part.writeId)
        found = self._tails.get(key)
        if found is None:
            found = b""
            if part.catName is not None:
                found += FIELD(TType.STRING, PARTITION["catName"]) + self._text(part.catName)
            if part.writeId is not None:
                found += I64_FIELD(TType.I64, PARTITION["writeId"], part.writeId)
            found = self._tails[key] = found + STOP
        return found


def encoded(
    found: list[Partition], wrap: Callable[[list[Partition]], Any] | None = None, flags: Mapping[int, bool] | None = None
) -> Encoded:
    """Return the reply for a list of partitions; `wrap` puts it into the response struct, as its first field, where there is one.

    `flags` are the boolean fields that the struct has behind it, by number: all that it has but the list.
    """
    encoder = _Encoder()
    head = struct.pack("!bi", TType.STRUCT, len(found))
    parts = [FIELD(TType.LIST, 1) + head if wrap is not None else head]
    for partition in found:
        encoder.add(partition, parts)
    for number, value in (flags or {}).items():
        parts.append(FIELD(TType.BOOL, number) + bytes((value,)))
    if wrap is not None:
        parts.append(STOP)
    return Encoded(parts, lambda: found if wrap is None else wrap(found))
