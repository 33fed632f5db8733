"""The tree of a parsed filter. Nodes never evaluate themselves.

`And` and `Or` hold two or more children, none of them of the same kind: a chain of a thousand terms is flat.
"""

from __future__ import annotations

from dataclasses import dataclass

from metastore.rules.values.comparable import Constant


@dataclass(frozen=True)
class Comparison:
    """`key operator value`, the key always on the left; operators are = != < <= > >= like, and not like."""

    key: str
    operator: str
    value: Constant


@dataclass(frozen=True)
class Between:
    """`key [not] between low and high`, both ends included."""

    key: str
    low: Constant
    high: Constant
    negated: bool = False


@dataclass(frozen=True)
class In:
    """`(key) [not] in (values)`."""

    key: str
    values: tuple[Constant, ...]
    negated: bool = False


@dataclass(frozen=True)
class And:
    children: tuple[Node, ...]


@dataclass(frozen=True)
class Or:
    children: tuple[Node, ...]


Node = And | Or | Comparison | Between | In
