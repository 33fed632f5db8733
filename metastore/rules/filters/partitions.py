"""Select partitions by a filter: each term is evaluated over all partitions.

The result of a term is two sets of partitions: those that match, and those that match or can not be evaluated. Sets are integers with a
bit for each partition, so a term costs the same few steps in any filter, and a thousand terms cost a thousand look-ups.

The comparison is exact for every key type: integers, decimals and floats compare as numbers, dates and timestamps as times, char without
its padding, booleans false before true. A number equals a text key if it is written in the same way; a text that is the same number in
another spelling (`07`) may match, since engines read such a key as a number. Whether a text is less than a number is unknown. The default
partition is like SQL's null: no comparison with it is true, `!=` and `not in` included; with a text key it compares by its name, as on
Java's server, so it may match. A value that is not of its key's type can not be evaluated: engines read it differently, and all of them
filter again. This module does not depend on the storage of partitions.
"""

from __future__ import annotations

import operator
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from functools import cached_property, reduce
from itertools import accumulate, chain
from typing import Any, NamedTuple

from metastore.errors import MetaError
from metastore.rules.filters.nodes import And, Between, In, Node, Or
from metastore.rules.filters.operators import COMPARE
from metastore.rules.like import like
from metastore.rules.values.comparable import Constant, KeyType, key_type, number_of, text_of
from metastore.rules.values.partition_names import DEFAULT_PARTITION
from metastore.rules.values.types import STRINGS

_FEW = 32
"""The most positions for which a set is made bit by bit."""
_BLOCKS = 64
"""The most blocks of a key's ascending values. The partitions of the first blocks are kept as sets, for ranges."""


class Selection(NamedTuple):
    """The partitions that a filter selects."""

    positions: list[int]
    """Positions of partitions that match or may match, ascending."""
    unjudged: Sequence[int] = ()
    """The partitions that can not be evaluated."""


def select_partitions(
    node: Node | None, keys: Sequence[tuple[str, str]], partitions: Sequence[Sequence[str]], default_name: str = DEFAULT_PARTITION
) -> Selection:
    """Return the partitions, given by their values in the order of `keys` (name, Hive type), that pass a filter; None selects all.

    MetaError, even without partitions, for a key that the table is not partitioned by, a key type without an order, or a constant that can
    not be compared with its key.
    """
    if node is None:
        return Selection([*range(len(partitions))])
    sure, possible = _Evaluation(keys, partitions, default_name).of(node)
    return Selection(_positions(possible), _positions(possible ^ sure))


class _Found(NamedTuple):
    """The partitions that match, and those that match or can not be evaluated."""

    sure: int
    possible: int


def _and(one: _Found, other: _Found) -> _Found:
    return _Found(one.sure & other.sure, one.possible & other.possible)


def _or(one: _Found, other: _Found) -> _Found:
    return _Found(one.sure | other.sure, one.possible | other.possible)


def _bits(positions: Iterable[int], size: int) -> int:
    """Return the set of these positions among `size` partitions."""
    positions = [*positions]
    if len(positions) <= _FEW:
        return reduce(operator.or_, (1 << position for position in positions), 0)
    octets = bytearray(size // 8 + 1)
    for position in positions:
        octets[position >> 3] |= 1 << (position & 7)
    return int.from_bytes(octets, "little")


def _positions(bits: int) -> list[int]:
    """Return the members of a set, ascending."""
    return [position for position, bit in enumerate(reversed(f"{bits:b}")) if bit == "1"]


class _Texts:
    """The partitions by their text of one key."""

    def __init__(self, texts: Iterable[str], size: int) -> None:
        self.size = size
        self.positions: dict[str, list[int]] = defaultdict(list)
        for position, text in enumerate(texts):
            self.positions[text].append(position)

    @cached_property
    def ordered(self) -> list[str]:
        return sorted(self.positions)

    def null(self, default_name: str) -> int:
        return self.at({"", default_name} & self.positions.keys())

    def at(self, texts: Iterable[str]) -> int:
        return _bits(chain.from_iterable(map(self.positions.__getitem__, texts)), self.size)


class _Values:
    """The partitions by the value of one key, read as its type.

    `null` is the set of a text key's partitions whose text stands for no value. `unjudged` are left out: their values can not be read.
    """

    def __init__(self, texts: _Texts, kind: KeyType, default_name: str) -> None:
        self.size = texts.size
        self.null = self.unjudged = 0
        if kind.name in {"string", "varchar"}:
            self.positions: Mapping[Any, list[int]] = texts.positions
            self.null = texts.null(default_name)
        else:
            self.positions, unjudged = self._read(texts, kind, default_name)
            self.unjudged = _bits(chain.from_iterable(unjudged), self.size)

    @staticmethod
    def _read(texts: _Texts, kind: KeyType, default_name: str) -> tuple[dict[Any, list[int]], list[list[int]]]:
        """Return the partitions by value, without those that have none, and those whose values can not be evaluated."""
        positions: dict[Any, list[int]] = {}
        unjudged: list[list[int]] = []
        for text, found in texts.positions.items():
            if text in ("", default_name):
                continue
            value = kind.read_value(text)
            if value is None or value != value:  # noqa: PLR0124  # a NaN, which has no place among numbers
                unjudged.append(found)
            elif value in positions:
                positions[value] = positions[value] + found
            else:
                positions[value] = found
        return positions, unjudged

    @cached_property
    def judged(self) -> int:
        return _bits(chain.from_iterable(self.positions.values()), self.size)

    @cached_property
    def by_number(self) -> dict[Any, int]:
        """The partitions of a text key by the number in their text, without those whose text is not a number."""
        found: dict[Any, int] = defaultdict(int)
        for text, positions in self.positions.items():
            if (number := number_of(text)) is not None:
                found[number] |= _bits(positions, self.size)
        return found

    @cached_property
    def ordered(self) -> list[Any]:
        return sorted(self.positions)

    @cached_property
    def block(self) -> int:
        return len(self.ordered) // _BLOCKS + 1

    @cached_property
    def blocks(self) -> list[int]:
        """The partitions of the least values: of no block of values, of one block, of two blocks .."""
        starts = range(0, len(self.ordered), self.block)
        return [*accumulate((self.among(start, start + self.block) for start in starts), operator.or_, initial=0)]

    def among(self, start: int, end: int) -> int:
        return _bits(chain.from_iterable(map(self.positions.__getitem__, self.ordered[start:end])), self.size)

    def least(self, count: int) -> int:
        """Return the partitions of the `count` least values."""
        whole = count // self.block
        return self.blocks[whole] | self.among(whole * self.block, count)

    def compared(self, sign: str, wanted: Any) -> int:
        """Return the partitions whose values compare by `sign` with the wanted one."""
        if sign in {"=", "!="}:
            equal = _bits(self.positions.get(wanted, ()), self.size)
            return equal if sign == "=" else self.judged ^ equal
        bisect = bisect_left if sign in {"<", ">="} else bisect_right
        least = self.least(bisect(self.ordered, wanted))
        return least if sign in {"<", "<="} else self.judged ^ least


class _Evaluation:
    def __init__(self, keys: Sequence[tuple[str, str]], partitions: Sequence[Sequence[str]], default_name: str) -> None:
        self.numbers = {name.lower(): number for number, (name, _) in enumerate(keys)}
        self.types = [hive_type for _, hive_type in keys]
        self.partitions = partitions
        self.default_name = default_name
        self.texts: dict[int, _Texts] = {}
        self.values: dict[int, tuple[KeyType, _Values]] = {}

    def of(self, node: Node) -> _Found:
        if isinstance(node, And | Or):
            return reduce(_and if isinstance(node, And) else _or, map(self.of, node.children))
        number = self.number(node.key)
        if isinstance(node, In):
            terms = [self.compared(number, "!=" if node.negated else "=", value) for value in node.values]
            return reduce(_and if node.negated else _or, terms)
        if isinstance(node, Between):
            low = self.compared(number, "<" if node.negated else ">=", node.low)
            high = self.compared(number, ">" if node.negated else "<=", node.high)
            return _or(low, high) if node.negated else _and(low, high)
        if node.operator in {"like", "not like"}:
            return self.like(number, text_of(node.value), negated=node.operator == "not like")
        return self.compared(number, node.operator, node.value)

    def number(self, key: str) -> int:
        found = self.numbers.get(key.lower())
        if found is None:
            raise MetaError(f"Specified key <{key}> is not a partitioning key for the table")
        return found

    def texts_of(self, number: int) -> _Texts:
        if number not in self.texts:
            self.texts[number] = _Texts((values[number] for values in self.partitions), len(self.partitions))
        return self.texts[number]

    def values_of(self, number: int) -> tuple[KeyType, _Values]:
        if number not in self.values:
            kind = key_type(self.types[number])
            self.values[number] = kind, _Values(self.texts_of(number), kind, self.default_name)
        return self.values[number]

    def like(self, number: int, pattern: str, *, negated: bool) -> _Found:
        texts = self.texts_of(number)
        sure, possible = map(texts.at, like(pattern, texts.ordered))
        if negated:
            every = (1 << texts.size) - 1
            sure, possible = every ^ possible, every ^ sure
        return _Found(sure & ~texts.null(self.default_name), possible)

    def compared(self, number: int, sign: str, constant: Constant) -> _Found:
        if constant == self.default_name:
            default_name, compare = self.default_name, COMPARE[sign]
            texts = self.texts_of(number)
            found = texts.at(text for text in texts.positions if compare(text or default_name, default_name))
            return _Found(found, found)
        kind, values = self.values_of(number)
        if kind.name in STRINGS and sign in {"=", "!="} and isinstance(constant, int | Decimal):
            written = values.compared("=", text_of(constant)) & ~values.null
            alike = written | values.by_number.get(constant, 0)
            return _Found(written, alike) if sign == "=" else _Found(values.judged & ~alike & ~values.null, values.judged & ~written)
        wanted = kind.read_constant(constant)
        if wanted is None:
            return _Found(0, values.judged | values.unjudged)
        found = values.compared(sign, wanted)
        return _Found(found & ~values.null, found | values.unjudged)
