"""Compile a filter to a predicate over partition values.

The predicate is exact for every key type: integers, decimals and floats compare as numbers, dates and timestamps as
times, char without its padding, booleans false before true. A value that is not of its key's type, the default
partition among them, is like SQL's null: no comparison with it holds, `!=` and `not in` included. Nothing here asks how
partitions are stored.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from metastore.errors import MetaError
from metastore.rules.filters.like import like_matcher
from metastore.rules.filters.nodes import And, Between, Comparison, Constant, In, Node, Or
from metastore.rules.filters.values import KeyType, key_type, text_of
from metastore.rules.partition_names import DEFAULT_PARTITION

Predicate = Callable[[Sequence[str]], bool]

_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_REMEMBERED = 10_000


def compile_partition_filter(
    node: Node | None, keys: Sequence[tuple[str, str]], default_name: str = DEFAULT_PARTITION
) -> Predicate:
    """Return the predicate of `node` over the values of a partition, in the order of `keys` (name, Hive type).

    None selects everything. MetaError for a key that the table is not partitioned by, a key type without an order, or a
    constant that can not be compared with its key.
    """
    if node is None:
        return lambda _: True
    return _Compiler(keys, default_name).compile(node)


class _Compiler:
    def __init__(self, keys: Sequence[tuple[str, str]], default_name: str) -> None:
        self.positions = {name.lower(): position for position, (name, _) in enumerate(keys)}
        self.types = [hive_type for _, hive_type in keys]
        self.default_name = default_name
        self.readers: dict[int, Callable[[str], Any]] = {}

    def compile(self, node: Node) -> Predicate:
        if isinstance(node, And | Or):
            parts = [self.compile(child) for child in node.children]
            if isinstance(node, And):
                return lambda values: all(part(values) for part in parts)
            return lambda values: any(part(values) for part in parts)
        if isinstance(node, Between):
            return self.between(node)
        if isinstance(node, In):
            return self.membership(node)
        return self.comparison(node)

    def position(self, key: str) -> int:
        found = self.positions.get(key.lower())
        if found is None:
            raise MetaError(f"Specified key <{key}> is not a partitioning key for the table")
        return found

    def reader(self, position: int, kind: KeyType) -> Callable[[str], Any]:
        """Return the reader of a key's values, which remembers: partitions share few values a key."""
        if position not in self.readers:
            read, default_name = kind.read_value, self.default_name
            if kind.name in {"string", "varchar"}:
                self.readers[position] = read
            else:
                self.readers[position] = _remember(lambda text: None if text == default_name else read(text))
        return self.readers[position]

    def comparison(self, node: Comparison) -> Predicate:
        position = self.position(node.key)
        if node.operator == "like":
            matches = like_matcher(text_of(node.value))
            return lambda values: matches(values[position])
        return self.compare(position, node.operator, node.value)

    def compare(self, position: int, sign: str, constant: Constant) -> Predicate:
        compare = _COMPARE[sign]
        if constant == self.default_name:
            default_name = self.default_name
            return lambda values: compare(values[position] or default_name, default_name)
        kind = key_type(self.types[position])
        wanted = kind.read_constant(constant)
        read = self.reader(position, kind)

        def predicate(values: Sequence[str]) -> bool:
            value = read(values[position])
            return value is not None and compare(value, wanted)

        return predicate

    def between(self, node: Between) -> Predicate:
        position = self.position(node.key)
        if node.negated:
            below = self.compare(position, "<", node.low)
            above = self.compare(position, ">", node.high)
            return lambda values: below(values) or above(values)
        from_low = self.compare(position, ">=", node.low)
        to_high = self.compare(position, "<=", node.high)
        return lambda values: from_low(values) and to_high(values)

    def membership(self, node: In) -> Predicate:
        position = self.position(node.key)
        kind = key_type(self.types[position])
        default = self.default_name if self.default_name in node.values else None
        wanted = {kind.read_constant(value) for value in node.values if value != default}
        read = self.reader(position, kind)
        negated = node.negated

        def predicate(values: Sequence[str]) -> bool:
            text = values[position]
            if default is not None and (text or default) == default:
                return not negated
            value = read(text)
            return value is not None and (value in wanted) != negated

        return predicate


def _remember(read: Callable[[str], Any]) -> Callable[[str], Any]:
    known: dict[str, Any] = {}

    def remembering(text: str) -> Any:
        try:
            return known[text]
        except KeyError:
            if len(known) >= _REMEMBERED:
                known.clear()
            value = known[text] = read(text)
            return value

    return remembering
