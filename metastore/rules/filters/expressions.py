"""Turn serialised expressions of Hive's clients into a small tree of columns, constants and calls. This module evaluates no partition.

A function that is not known here stays in the tree under the name of its class: its result is unknown, not wrong.
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from metastore.rules.filters.hive_classes import COLUMN, CONSTANT, FUNCTION
from metastore.rules.filters.kryo import Instance, NotUnderstood, read

MAXIMUM_SIZE = 200_000
"""The most nodes of an expression. A part counts as often as it is used: bytes can refer to one part many times."""

NULL_TYPE = "void"

_FUNCTIONS = {
    "OPEqual": "=", "OPNotEqual": "!=", "OPLessThan": "<", "OPEqualOrLessThan": "<=", "OPGreaterThan": ">", "OPEqualOrGreaterThan": ">=",
    "OPEqualNS": "<=>", "OPAnd": "and", "OPOr": "or", "OPNot": "not", "OPNull": "is null", "OPNotNull": "is not null",
    "OPTrue": "is true", "OPFalse": "is false", "OPNotTrue": "is not true", "OPNotFalse": "is not false", "In": "in",
    "Between": "between", "Struct": "struct",
    **dict.fromkeys(("ToDate", "Date", "Timestamp", "ToDecimal", "ToVarchar", "ToChar", "ToString"), "cast"),
}  # fmt: skip
_BRIDGED = {
    "UDFLike": "like",
    **dict.fromkeys((f"UDFTo{name}" for name in ("Byte", "Short", "Integer", "Long", "Float", "Double", "String")), "cast"),
}
"""Functions of Hive's older interface `UDF`, by their class."""


@dataclass(frozen=True, eq=False, slots=True)
class KeyColumn:
    """A partition key; `type` as Hive writes it."""

    name: str
    type: str


@dataclass(frozen=True, eq=False, slots=True)
class Constant:
    """A value as the evaluation compares it: text, int, float, bool, Decimal, date, (datetime, nanoseconds), a list of values, or None."""

    value: Any
    type: str


@dataclass(frozen=True, eq=False, slots=True)
class FunctionCall:
    """A function with its arguments; `cast` goes to `type`."""

    function: str
    arguments: tuple[Expression, ...]
    type: str


Expression = KeyColumn | Constant | FunctionCall


def read_expression(data: bytes) -> Expression:
    """Return the expression that Hive's client serialised. NotUnderstood; MetaError for bytes that are not an expression."""
    try:
        return _Converter().convert(read(data))
    except NotUnderstood:
        raise
    except (KeyError, AttributeError, TypeError, ValueError, ArithmeticError) as error:
        raise NotUnderstood("The partition expression is not understood: a part of it has another form than Hive writes") from error


class _Converter:
    """A converter that converts each object once, even if several others refer to it."""

    def __init__(self) -> None:
        self.done: dict[int, tuple[Expression, int]] = {}

    def convert(self, node: Instance) -> Expression:
        return self.sized(node)[0]

    def sized(self, node: Instance) -> tuple[Expression, int]:
        found = self.done.get(id(node))
        if found is None:
            found = self.done[id(node)] = self.made(node)
        return found

    def made(self, node: Instance) -> tuple[Expression, int]:
        fields = node.fields
        if node.kind == COLUMN:
            return KeyColumn(fields["column"].lower(), _type(fields["typeInfo"])), 1
        if node.kind == CONSTANT:
            return Constant(_plain(fields["value"]), _type(fields["typeInfo"])), 1
        if node.kind != FUNCTION:
            raise NotUnderstood(f"The partition expression is not understood: it holds {node.kind} where an expression belongs")
        parts = [self.sized(child) for child in fields["children"] or ()]
        size = 1 + sum(size for _, size in parts)
        if size > MAXIMUM_SIZE:
            raise NotUnderstood(f"The partition expression is not understood: it has more than {MAXIMUM_SIZE} parts")
        return FunctionCall(_function(fields["genericUDF"]), tuple(part for part, _ in parts), _type(fields["typeInfo"])), size


def _function(function: Instance) -> str:
    name = function.kind.rpartition(".GenericUDF")[2]
    if name == "Bridge":
        bridged: str = function.fields["udfClassName"].rpartition(".")[2]
        return _BRIDGED.get(bridged, bridged)
    return _FUNCTIONS.get(name, name)


def _type(info: Instance) -> str:
    if info.kind.endswith(".DecimalTypeInfo"):
        return f"decimal({info.fields['precision']},{info.fields['scale']})"
    if info.kind.endswith((".VarcharTypeInfo", ".CharTypeInfo")):
        name = "varchar" if "Varchar" in info.kind else "char"
        return f"{name}({info.fields['length']})"
    return info.fields.get("typeName") or "struct"


def _plain(value: Any) -> Any:
    """Return a constant's value in the form that `Constant` has."""
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if not isinstance(value, Instance):
        return value
    fields = value.fields
    if value.kind == "hive.common.type.HiveDecimal":
        digits = fields["fast2"] * 10**32 + fields["fast1"] * 10**16 + fields["fast0"]
        return Decimal(f"{fields['fastSignum'] * digits}e{-fields['fastScale']}")
    if value.kind in {"hive.common.type.HiveVarchar", "hive.common.type.HiveChar"}:
        return fields["value"]
    if value.kind == "hive.common.type.Date":
        return datetime.date(*fields["localDate"])
    if value.kind == "hive.common.type.Timestamp":
        *parts, nanos = fields["localDateTime"]
        return datetime.datetime(*parts), nanos  # noqa: DTZ001  # Hive's timestamps have no zone
    raise NotUnderstood(f"The partition expression is not understood: it holds a constant of the class {value.kind}")
