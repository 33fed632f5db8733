"""Compare two sources record by record with flat memory: sums first, then only the records where the sums differ. Changes nothing."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Collection, Iterator
from functools import partial
from hashlib import blake2b
from typing import Any, NamedTuple

from metastore.errors import InvalidOperation
from metastore.transfer.contract import Reader
from metastore.transfer.records import DEFINITIONS, KINDS, Key, Record, key_text, line
from metastore.transfer.selection import Selection

PLACES = 1 << 14
"""The number of sums for each kind: a hash of a record's key chooses its sum."""
HELD = 100_000
"""Records of one side that are held at once."""
REPORTED = 5000
_MASK = (1 << 64) - 1


class Difference(NamedTuple):
    """A record that only one side has, or that differs; `words` name the differences."""

    record: str
    words: str
    key: Key


class Comparison(NamedTuple):
    """The numbers of records of each kind on both sides, the first differences, whether there may be more, and the kinds that could not be
    compared.
    """

    counts: dict[str, tuple[int, int]]
    differences: list[Difference]
    is_cut: bool
    left_out: list[str]
    """Kinds whose records one side does not have completely."""

    @property
    def equal(self) -> bool:
        """Return whether both sides hold the same."""
        return not self.differences and not self.is_cut


class _Sums:
    """The sums of one side."""

    def __init__(self) -> None:
        self.sums = {kind: array("Q", bytes(8 * PLACES)) for kind in KINDS}
        self.counts = {kind: array("Q", bytes(8 * PLACES)) for kind in KINDS}

    def add(self, record: Record) -> None:
        place = _place(record.key)
        sums = self.sums[record.kind]
        sums[place] = (sums[place] + int.from_bytes(blake2b(line(record), digest_size=8).digest(), "big")) & _MASK
        self.counts[record.kind][place] += 1


def differing_keys(one: Reader, other: Reader, selection: Selection, kinds: Collection[str]) -> set[Key]:
    """Return the names of the tables, the first three parts of the keys, of the records that are not the same in two sources."""
    found = compare(one, other, selection._replace(kinds=frozenset(kinds) & selection.kinds), most=HELD)
    if found.is_cut:
        raise InvalidOperation(f"{one.name} and {other.name} differ in too many objects to continue: import again")
    return {each.key[:3] for each in found.differences}


def _without(names: frozenset[str], record: Record) -> Record:
    body = {name: value for name, value in record.body.items() if name not in names}
    if isinstance(body.get("parameters"), dict):
        body["parameters"] = {name: value for name, value in body["parameters"].items() if name not in names}
    return record._replace(body=body)


def _place(key: Key) -> int:
    return int.from_bytes(blake2b(repr(key).encode(), digest_size=2).digest(), "big") % PLACES


def compare(
    one: Reader,
    other: Reader,
    selection: Selection,
    *,
    most: int = 100,
    without_fields: Collection[str] = (),
    step: Callable[[int], None] = lambda _: None,
) -> Comparison:
    """Compare the wanted records of two sources, and return at most `most` differences.

    Fields and parameters with names in `without_fields` are left out.
    """
    left_out = sorted(selection.kinds - (one.kinds & other.kinds))
    selection = selection._replace(kinds=selection.kinds & one.kinds & other.kinds)
    seen = [each.seen for each in (one, other) if each.seen is not None]
    if without_fields:
        seen.append(partial(_without, frozenset(without_fields)))
    sides = []
    for reader in (one, other):
        sums = _Sums()
        for number, record in enumerate(_compared(reader, selection, seen), 1):
            sums.add(record)
            if number % REPORTED == 0:
                step(REPORTED)
        sides.append(sums)
    first, second = sides
    counts = {kind: (sum(first.counts[kind]), sum(second.counts[kind])) for kind in KINDS}
    places, is_cut, held = set(), False, 0
    for kind in KINDS:
        if kind in DEFINITIONS or (first.sums[kind] == second.sums[kind] and first.counts[kind] == second.counts[kind]):
            continue
        for place in range(PLACES):
            if first.sums[kind][place] != second.sums[kind][place] or first.counts[kind][place] != second.counts[kind][place]:
                size = max(first.counts[kind][place], second.counts[kind][place])
                is_cut = is_cut or held + size > HELD
                if not is_cut:
                    places.add((kind, place))
                    held += size
    differences = list(_differences(one, other, selection, places, seen)) if places else []
    return Comparison(
        {kind: pair for kind, pair in counts.items() if any(pair) and kind not in DEFINITIONS},
        differences[:most],
        is_cut or len(differences) > most,
        left_out,
    )


Seen = list[Callable[[Record], Record]]


def _compared(reader: Reader, selection: Selection, seen: Seen) -> Iterator[Record]:
    for record in reader.records(selection):
        if record.kind not in DEFINITIONS:
            for see in seen:
                record = see(record)  # noqa: PLW2901 # each sees the result of the one before
            yield record


def _differences(one: Reader, other: Reader, selection: Selection, places: set[tuple[str, int]], seen: Seen) -> Iterator[Difference]:
    kinds = {kind for kind, _ in places}
    chosen = selection._replace(kinds=frozenset(kinds | {"table"}) & selection.kinds)
    found: list[dict[tuple[str, Key], list[Record]]] = []
    for reader in (one, other):
        side: dict[tuple[str, Key], list[Record]] = {}
        for record in _compared(reader, chosen, seen):
            if (record.kind, _place(record.key)) in places:
                side.setdefault((record.kind, record.key), []).append(record)
        found.append(side)
    for key in sorted({*found[0], *found[1]}, key=lambda key: (list(KINDS).index(key[0]), repr(key[1]))):
        left, right = (sorted(side.get(key, ()), key=line) for side in found)
        if left == right:
            continue
        name = key_text((left or right)[0])
        if not right:
            yield Difference(name, f"only in {one.name}", key[1])
        elif not left:
            yield Difference(name, f"only in {other.name}", key[1])
        elif len(left) != len(right):
            yield Difference(name, f"{len(left)} times in {one.name}, {len(right)} times in {other.name}", key[1])
        else:
            words = [text for a, b in zip(left, right, strict=True) for text in in_words(a.body, b.body)]
            yield Difference(name, "; ".join(words), key[1])


def in_words(one: Any, other: Any, path: str = "") -> Iterator[str]:
    """Yield the differences of two values of JSON, by the paths of their parts."""
    if isinstance(one, dict) and isinstance(other, dict):
        for name in sorted({*one, *other}):
            where = f"{path}.{name}" if path else name
            if name not in one:
                yield f"{where} is only in the second: {other[name]!r}"
            elif name not in other:
                yield f"{where} is only in the first: {one[name]!r}"
            else:
                yield from in_words(one[name], other[name], where)
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for number, (left, right) in enumerate(zip(one, other, strict=True)):
            yield from in_words(left, right, f"{path}[{number}]")
    elif one != other:
        yield f"{path} is {one!r} in the first, {other!r} in the second"
