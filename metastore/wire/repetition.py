"""Decode once what a list says again and again: structs but for their texts and numbers, or columns, serde and parameters of storage.

A thousand partitions that are added or altered carry a thousand times the same column list; decoding one takes as long as all the
rest of its partition. Only for methods that take a list of partitions or of their statistics. Parts of a storage descriptor, and statistics
of a column, may be shared, and are never changed in place; all else is a struct's own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from functools import cache
from itertools import islice
from typing import Any

from thriftpy2.thrift import TPayload, TType

from metastore.idl import Partition, StorageDescriptor
from metastore.wire.likeness import WIDTH, Likeness, Likenesses, Runs
from metastore.wire.outline import IN_LONG_LISTS, Alike, Outline, Repeated
from metastore.wire.templates import Template, template

WORTH = 64
"""Structs from which on it is worth to make a template of them."""
Decode = Callable[[type[TPayload], bytes], TPayload]
Path = tuple[str, ...]
"""The names of fields, from a struct to what it holds."""


@cache
def list_path(cls: type[TPayload]) -> tuple[Path, type[TPayload]] | None:
    """Return where an argument struct holds its only list of structs that may be alike, and their class; None if it has none.

    It holds nothing else that has a storage descriptor.
    """
    for spec in cls.thrift_spec.values():
        if spec[0] == TType.LIST and isinstance(spec[2], tuple) and spec[2][1] in IN_LONG_LISTS:
            return (spec[1],), spec[2][1]
        if spec[0] == TType.STRUCT and spec[2].__name__.endswith("Request"):
            inner = list_path(spec[2])
            if inner is not None:
                return (spec[1], *inner[0]), inner[1]
    return None


def decoded(cls: type[TPayload], data: bytes, outline: Outline, begin: int, decode: Decode, memory: Likenesses) -> Any:
    """Return the struct of the message `data`, which stands there from `begin` on; None when it repeats nothing that can be shared.

    `memory` is left with what most of its structs have in common. Whatever `decode` raises; UnicodeDecodeError for text that is no UTF-8.
    """
    found = list_path(cls) if outline.alike or outline.repeated else None
    if found is None or len(outline.lists) > 1:
        return None
    (*steps, last), kind = found
    count_of = Counter[Likeness]()
    for each in outline.alike:
        count_of[each.like] += len(each.places)
    alike = count_of.most_common()
    remembered = memory.get(kind)
    templates = {like: _template(kind, like, decode) for like, count in alike if count >= WORTH or like is remembered}
    made: list[tuple[Alike, Template]] = []
    repeated = list(outline.repeated)
    for each in outline.alike:
        if (known := templates.get(each.like)) is not None:
            made.append((each, known))
        elif each.like is not remembered:
            repeated += each.repeated()
    new = [(like.runs, known) for like, known in templates.items() if known is not None and like is not remembered]
    body: Any = decode(cls, _without(data, begin, outline.lists, [each for each, _ in made], repeated))
    holder = body
    for step in steps:
        holder = getattr(holder, step)
    structs = getattr(holder, last) or []
    if made and len(structs) + _count([each for each, _ in made]) != _size(data, outline.lists):
        return None
    if kind is Partition and not _share_storage(structs, outline.descriptors, new, made, repeated):
        return None
    if remembered in templates:
        del memory[kind]
    if made:
        setattr(holder, last, _together(structs, data, made))
        memory[kind] = next(like for like, _ in alike if templates.get(like) is not None)
    return body


def _template(kind: type[TPayload], like: Likeness, decode: Decode) -> Template | None:
    """Return what makes structs of what they have in common by now. Whatever `decode` raises."""
    known: Template | None = like.template
    if known is None or known.runs is not like.runs:
        known = like.template = template(kind, like.runs, decode)
    return known


def _share_storage(
    partitions: list[Partition], count: int, new: list[tuple[Runs, Template]], made: list[tuple[Alike, Template]],
    repeated: list[Repeated],
) -> bool:  # fmt: skip
    """Give the partitions that were decoded, and new templates, what was left out; False when the message has descriptors elsewhere."""
    numbers = {number for each, _ in made for number in each.descriptors}
    descriptors = [partition.sd for partition in partitions if partition.sd is not None]
    if len(descriptors) + len(numbers) != count:
        return False
    by_number = dict(zip((number for number in range(count) if number not in numbers), descriptors, strict=True))
    for runs, known in new:
        if known.model.sd is not None:
            for _, (earlier, fields, _, _) in runs.pieces:
                _share(by_number[earlier], known.model.sd, fields)
    for number, earlier, fields, _, _ in repeated:
        _share(by_number[earlier], by_number[number], fields)
    return True


def _without(data: bytes, begin: int, lists: list[int], made: list[Alike], repeated: list[Repeated]) -> bytes:
    """Return the message's struct without what is made otherwise; its list says how many structs are left."""
    parts: list[bytes] = []
    if made:
        left = _size(data, lists) - _count(made)
        parts += (data[begin : lists[0]], left.to_bytes(WIDTH, "big"))
        begin = lists[0] + WIDTH
    for start, end in sorted([*((each.places[0][0], each.places[-1][-1]) for each in made), *(each[-2:] for each in repeated)]):
        if start > begin:
            parts.append(data[begin:start])
        begin = end
    parts.append(data[begin:])
    return b"".join(parts)


def _size(data: bytes, lists: list[int]) -> int:
    return int.from_bytes(data[lists[0] : lists[0] + WIDTH], "big")


def _together(decoded: list[Any], data: bytes, made: list[tuple[Alike, Template]]) -> list[Any]:
    """Return all structs in their order: those that were decoded, and those that are made."""
    rest = iter(decoded)
    out: list[Any] = []
    for each, known in made:
        out += islice(rest, each.number - len(out))
        out += [known.make(data, places) for places in each.places]
    out += rest
    return out


def _count(alike: Iterable[Alike]) -> int:
    return sum(len(each.places) for each in alike)


def _share(given: StorageDescriptor, taking: StorageDescriptor, fields: tuple[str, ...]) -> None:
    """Give a descriptor what another one has."""
    for name in fields:
        taking.__dict__[name] = given.__dict__[name]
