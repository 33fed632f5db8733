"""Decode once what a list of partitions says again and again: partitions but for their texts, or columns, serde and parameters of storage.

A thousand partitions that are added or altered carry a thousand times the same column list; decoding one takes as long as all the
rest of its partition. Only for methods that take a list of partitions. What is part of a storage descriptor is shared, and never changed
in place; all else is a partition's own.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from thriftpy2.thrift import TPayload, TType

from metastore.idl import Partition, StorageDescriptor
from metastore.wire.likeness import WIDTH
from metastore.wire.outline import Alike, Outline, Repeated
from metastore.wire.templates import Template, template

PARTITIONS = (TType.STRUCT, Partition)
Decode = Callable[[type[TPayload], bytes], TPayload]


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


def decoded(cls: type[TPayload], data: bytes, outline: Outline, begin: int, decode: Decode) -> Any:
    """Return the struct of the message `data`, which stands there from `begin` on; None when it repeats nothing that can be shared.

    Whatever `decode` raises; UnicodeDecodeError for text that is no UTF-8.
    """
    path = partitions_path(cls) if outline.alike or outline.repeated else None
    if path is None or len(outline.lists) > 1:
        return None
    templates = {runs: template(Partition, runs, decode) for runs in {each.runs for each in outline.alike}}
    made: list[tuple[Alike, Template]] = []
    repeated = list(outline.repeated)
    for each in outline.alike:
        if (known := templates[each.runs]) is not None:
            made.append((each, known))
        else:
            repeated += each.repeated()
    body: Any = decode(cls, _without(data, begin, outline.lists, [each for each, _ in made], repeated))
    *steps, last = path
    holder = body
    for step in steps:
        holder = getattr(holder, step)
    partitions = getattr(holder, last) or []
    numbers = {each.descriptor for each, _ in made} - {None}
    descriptors = [partition.sd for partition in partitions if partition.sd is not None]
    if len(descriptors) + len(numbers) != outline.descriptors:
        return None  # they are not all of the list
    by_number = dict(zip((number for number in range(outline.descriptors) if number not in numbers), descriptors, strict=True))
    for runs, known in templates.items():
        if known is not None and known.model.sd is not None:
            for _, (earlier, fields, _, _) in runs.pieces:
                _share(by_number[earlier], known.model.sd, fields)
    for number, earlier, fields, _, _ in repeated:
        _share(by_number[earlier], by_number[number], fields)
    if made:
        setattr(holder, last, _together(partitions, data, made))
    return body


def _without(data: bytes, begin: int, lists: list[int], made: list[Alike], repeated: list[Repeated]) -> bytes:
    """Return the message's struct without what is made otherwise; its list says how many partitions are left."""
    parts: list[bytes] = []
    if made:
        (at,) = lists
        left = int.from_bytes(data[at : at + WIDTH], "big") - len(made)
        parts += (data[begin:at], left.to_bytes(WIDTH, "big"))
        begin = at + WIDTH
    for start, end in sorted([*((each.places[0], each.places[-1]) for each in made), *(each[-2:] for each in repeated)]):
        if start > begin:
            parts.append(data[begin:start])
        begin = end
    parts.append(data[begin:])
    return b"".join(parts)


def _together(decoded: list[Partition], data: bytes, made: list[tuple[Alike, Template]]) -> list[Partition]:
    """Return all partitions in their order: those that were decoded, and those that are made."""
    rest = iter(decoded)
    out: list[Partition] = []
    for (number, runs, places, _), (_, make) in made:
        while len(out) < number:
            out.append(next(rest))
        texts = zip(places, runs.before, places[1:], strict=False)
        out.append(make([data[begin + skipped : end].decode() for begin, skipped, end in texts]))
    out.extend(rest)
    return out


def _share(given: StorageDescriptor, taking: StorageDescriptor, fields: tuple[str, ...]) -> None:
    """Give a descriptor what another one has."""
    for name in fields:
        taking.__dict__[name] = given.__dict__[name]
