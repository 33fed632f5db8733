"""Compile a filter to a predicate over tables, for `get_table_names_by_filter`.

Keys are the constants of the interface: `hive_filter_field_owner__`, `hive_filter_field_last_access__`,
`hive_filter_field_params__<name>` and, since 4.0, `hive_filter_field_tableName__` and `hive_filter_field_tableType__`.
LIKE is a regular expression over the whole text here, as in Hive's ExpressionTree (generateJDOFilterOverTables). A
table that lacks the parameter or owner matches no comparison with it. Nothing here reads a table.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from metastore.errors import MetaError
from metastore.rules.filters.nodes import And, Between, Comparison, In, Node, Or
from metastore.rules.filters.operators import COMPARE
from metastore.rules.patterns import compile_expression
from metastore.rules.values.comparable import text_of

OWNER = "hive_filter_field_owner__"
LAST_ACCESS = "hive_filter_field_last_access__"
PARAMETERS = "hive_filter_field_params__"
TABLE_NAME = "hive_filter_field_tableName__"
TABLE_TYPE = "hive_filter_field_tableType__"

_BARE_PARAMETER = re.compile(PARAMETERS + r"[^\s=<>!(),'\"`]+")
# Hive's grammar allows a dot in quoted keys alone, which only 4.x clients can write.
_SPELLED_OUT = {"discover__partitions": "discover.partitions"}


@dataclass(frozen=True)
class TableFacts:
    """The facts of a table that a filter can ask about; `last_access` in seconds."""

    name: str
    type: str
    owner: str | None = None
    last_access: int = 0
    parameters: Mapping[str, str] = field(default_factory=dict)


TablePredicate = Callable[[TableFacts], bool]


def keys_in(text: str) -> list[str]:
    """Return the keys of parameters that are unquoted in a filter, with any characters in the parameter's name."""
    return list(dict.fromkeys(_BARE_PARAMETER.findall(text)))


def compile_table_filter(node: Node | None) -> TablePredicate:
    """Return the predicate of `node` over tables; None selects all. MetaError for an unknown key or wrong operator."""
    if node is None:
        return lambda _: True
    if isinstance(node, And | Or):
        parts = [compile_table_filter(child) for child in node.children]
        if isinstance(node, And):
            return lambda facts: all(part(facts) for part in parts)
        return lambda facts: any(part(facts) for part in parts)
    if isinstance(node, Between):
        low = Comparison(node.key, "<" if node.negated else ">=", node.low)
        high = Comparison(node.key, ">" if node.negated else "<=", node.high)
        return compile_table_filter((Or if node.negated else And)((low, high)))
    if isinstance(node, In):
        comparisons = tuple(Comparison(node.key, "!=" if node.negated else "=", value) for value in node.values)
        return compile_table_filter((And if node.negated else Or)(comparisons))
    return _comparison(node)


def _comparison(node: Comparison) -> TablePredicate:
    if node.key == LAST_ACCESS:
        return _last_access(node)
    read: Callable[[TableFacts], str | None]
    if node.key == OWNER:
        read = _owner
    elif node.key == TABLE_NAME:
        read = _name
    elif node.key == TABLE_TYPE:
        read = _type
    elif node.key.startswith(PARAMETERS):
        if node.operator not in {"=", "!=", "like", "not like"}:
            raise MetaError(f"Only [=, <>, !=, [NOT] LIKE] are supported operators for {node.key}, not {node.operator}")
        name = node.key[len(PARAMETERS) :]
        name = _SPELLED_OUT.get(name, name)

        def read(facts: TableFacts) -> str | None:
            return facts.parameters.get(name)
    else:
        raise MetaError(
            f"Invalid key name in filter: {node.key}. Use {OWNER}, {LAST_ACCESS}, {PARAMETERS}<name>, {TABLE_NAME} or {TABLE_TYPE}"
        )
    wanted = text_of(node.value)
    if node.operator in {"like", "not like"}:
        matches, wants = compile_expression(wanted), node.operator == "like"
        return lambda facts: (text := read(facts)) is not None and matches(text) is wants
    compare = COMPARE[node.operator]
    return lambda facts: (text := read(facts)) is not None and compare(text, wanted)


def _last_access(node: Comparison) -> TablePredicate:
    if node.operator in {"like", "not like"}:
        raise MetaError("Like is not supported for HIVE_FILTER_FIELD_LAST_ACCESS")
    try:
        wanted = int(text_of(node.value))
    except ValueError as error:
        raise MetaError(f"{LAST_ACCESS} is a number of seconds, not {text_of(node.value)[:100]!r}") from error
    compare = COMPARE[node.operator]
    return lambda facts: compare(facts.last_access, wanted)


def _owner(facts: TableFacts) -> str | None:
    return facts.owner


def _name(facts: TableFacts) -> str | None:
    return facts.name


def _type(facts: TableFacts) -> str | None:
    return facts.type
