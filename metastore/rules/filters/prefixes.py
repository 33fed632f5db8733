"""Compute the ranges of partition names that contain all partitions which a filter selects.

Only equality (`=`, `in`) on leading keys of type string and varchar narrows: there the constant is the stored value, so
its escaped text is exact. The ranges may contain more partitions, but never fewer; the predicate decides.
"""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING

from metastore.rules.filters.nodes import And, Comparison, In, Node, Or
from metastore.rules.values.comparable import text_of
from metastore.rules.values.partition_names import DEFAULT_PARTITION, make_partition_name
from metastore.rules.values.types import type_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from metastore.rules.values.comparable import Constant

MAXIMUM_PREFIXES = 200


def leading_prefixes(node: Node | None, keys: Sequence[tuple[str, str]], default_name: str = DEFAULT_PARTITION) -> list[str] | None:
    """Return prefixes of partition names, one of which every selected partition has; None when nothing narrows.

    Ascending, at most MAXIMUM_PREFIXES. A prefix ends with a `/`, unless it names all keys: then it is a whole name, which longer names
    may begin with. No prefix begins with another, so that no partition has two. An empty list: no partition can match.
    """
    if node is None:
        return None
    rows: list[tuple[str, ...]] = [()]
    for name, hive_type in keys:
        if type_name(hive_type) not in {"string", "varchar"}:
            break
        values = _possible(node, name.lower(), default_name)
        if values is None or len(rows) * len(values) > MAXIMUM_PREFIXES:
            break
        rows = [(*row, value) for row in rows for value in values]
    if rows == [()]:
        return None
    names = [name for name, _ in keys]
    return _apart(make_partition_name(names[: len(row)], row, default_name) + ("" if len(row) == len(names) else "/") for row in rows)


def united_prefixes(many: Iterable[Sequence[str] | None]) -> list[str] | None:
    """Return the prefixes of all partitions that one of several filters selects; None when nothing narrows."""
    found: set[str] = set()
    for prefixes in many:
        if prefixes is None:
            return None
        found.update(prefixes)
    return _apart(found)


def _apart(found: Iterable[str]) -> list[str]:
    """Return prefixes, ascending, without those that begin with another."""
    prefixes: list[str] = []
    for prefix in sorted({*found}):
        if not prefixes or not prefix.startswith(prefixes[-1]):
            prefixes.append(prefix)
    return prefixes


def _possible(node: Node, key: str, default_name: str) -> frozenset[str] | None:
    """Return the values that `key` can have where `node` holds, None for any. An empty value is the default partition's, by its name."""
    if isinstance(node, And):
        known = [values for child in node.children if (values := _possible(child, key, default_name)) is not None]
        return frozenset.intersection(*known) if known else None
    if isinstance(node, Or):
        alternatives = [_possible(child, key, default_name) for child in node.children]
        if any(values is None for values in alternatives):
            return None
        return frozenset().union(*(values for values in alternatives if values is not None))
    if isinstance(node, Comparison) and node.operator == "=" and node.key.lower() == key:
        return _texts((node.value,), default_name)
    if isinstance(node, In) and not node.negated and node.key.lower() == key:
        return _texts(node.values, default_name)
    return None


def _texts(constants: tuple[Constant, ...], default_name: str) -> frozenset[str] | None:
    if not all(isinstance(constant, str | datetime.date) for constant in constants):
        return None
    return frozenset(text_of(constant) or default_name for constant in constants)
