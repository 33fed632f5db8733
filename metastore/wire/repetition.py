"""Leave out what a list of partitions says again and again, so that it is decoded once and shared: columns, serde, parameters.

A thousand partitions that are added or altered carry a thousand times the same column list; decoding one takes as long as all the
rest of its partition. Only for methods that take a list of partitions; the structs that share a part are never changed in place.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from thriftpy2.thrift import TPayload, TType

from metastore.idl import Partition
from metastore.wire.outline import Outline

PARTITIONS = (TType.STRUCT, Partition)


@cache
def partitions_path(cls: type[TPayload]) -> tuple[str, ...] | None:
    """Return where an argument struct holds its only list of partitions, and nothing else a storage descriptor: None if it does not."""
    for spec in cls.thrift_spec.values():
        if spec[0] == TType.LIST and spec[2] == PARTITIONS:
            return (spec[1],)
        if spec[0] == TType.STRUCT and spec[2].__name__.endswith("Request"):
            inner = partitions_path(spec[2])
            if inner is not None:
                return (spec[1], *inner)
    return None


def without_repetition(data: bytes, outline: Outline, begin: int) -> bytes:
    """Return the message's struct, which stands from `begin` on in `data`, without the fields that repeat another descriptor's."""
    parts = []
    for _, _, _, repeated, end in outline.repeated:
        parts.append(data[begin:repeated])
        begin = end
    parts.append(data[begin:])
    return b"".join(parts)


def share_repeated(body: TPayload, path: tuple[str, ...], outline: Outline) -> bool:
    """Give the decoded partitions what was left out; False when the message's descriptors are not those of the list."""
    found: Any = body
    for step in path:
        found = getattr(found, step)
    descriptors = [partition.sd for partition in found or () if partition.sd is not None]
    if len(descriptors) != outline.descriptors:
        return False
    for number, earlier, fields, _, _ in outline.repeated:
        found, given = descriptors[number].__dict__, descriptors[earlier].__dict__
        for name in fields:
            found[name] = given[name]
    return True
