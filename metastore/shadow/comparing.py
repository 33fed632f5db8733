"""Compare the replies of two metastores to one call, field by field. Never asks, never counts.

Values between which Java's clients can not distinguish count as the same: a field that is not set and an empty list, an unset number and 0.
Lists without a promised order are compared by the names of their elements, lists of columns by their order, and errors by their kind.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from typing import Any, NamedTuple

from thriftpy2.thrift import TApplicationException, TPayload

from metastore import idl
from metastore.methods import METHODS
from metastore.shadow.ignored import FIELDS, NUMBERS, PARAMETERS, PARAMETERS_STAND_FOR, STANDS_FOR

_NAMES = (
    "catName", "dbName", "dbname", "tableName", "tblName", "tablename", "partitionname", "objectName", "functionName", "roleName",
    "scheduleName", "name", "colName", "values", "principalName", "fullTableName", "poolPath", "triggerName", "entityName",
)  # fmt: skip
"""Fields that identify an element of a list."""
_UNORDERED = (idl.ColumnStatisticsObj, idl.WMPool, idl.WMMapping, idl.WMTrigger, idl.WMPoolTrigger)
"""Structs whose lists have no order at any depth."""


class Difference(NamedTuple):
    """A field in which two replies differ: its path, "" for the kind of the reply, and both values."""

    path: str
    primary: Any
    secondary: Any


class _Outcome(NamedTuple):
    kind: str
    """"success", or the name of the error."""
    value: Any


def differences(method: str, one: Any, other: Any, *, same_numbers: bool = False) -> list[Difference]:
    """Return the fields in which two replies of a method differ; each reply is its result struct, or TApplicationException.

    `same_numbers`: both sides had the same changes, so that their numbers (`NUMBERS`) are compared too.
    """
    left, right = _outcome(one), _outcome(other)
    if left.kind != right.kind:
        return [Difference("", _text(left), _text(right))]
    if left.kind != "success":
        return []
    left_out = FIELDS if same_numbers else FIELDS | NUMBERS
    return list(_differ("success", left.value, right.value, left_out, loose=0 if METHODS[method].ordered else 2))


def is_unknown(reply: Any) -> bool:
    """Return whether a server has answered that it has no such method."""
    return isinstance(reply, TApplicationException) and reply.type == TApplicationException.UNKNOWN_METHOD


def _outcome(reply: Any) -> _Outcome:
    if isinstance(reply, TApplicationException):
        return _Outcome(f"TApplicationException {reply.type}", reply.message)
    for field in reply.thrift_spec.values():
        if field[1] != "success" and (error := getattr(reply, field[1])) is not None:
            return _Outcome(type(error).__name__, getattr(error, "message", None))
    return _Outcome("success", getattr(reply, "success", None))


def _text(outcome: _Outcome) -> Any:
    return "an answer" if outcome.kind == "success" else f"{outcome.kind}: {outcome.value}"


def _differ(path: str, one: Any, other: Any, left_out: Container[str], loose: int) -> Iterator[Difference]:
    """Yield the differences of two values. A list has no order if it is less than `loose` structs deep and not inside another list."""
    if isinstance(one, TPayload) and isinstance(other, TPayload):
        for field in one.thrift_spec.values():
            name = field[1]
            if name not in left_out and f"{type(one).__name__}.{name}" not in left_out:
                yield from _differ(f"{path}.{name}", _value(one, name), _value(other, name), left_out, loose - 1)
    elif _is_blank(one) and _is_blank(other):
        return
    elif isinstance(one, dict) and isinstance(other, dict):
        ignored, stands_for = (PARAMETERS, PARAMETERS_STAND_FOR) if path.endswith(".parameters") else ((), {})
        for key in sorted({*one, *other}.difference(ignored), key=str):
            left, right = (each.get(key, stands_for.get(key)) for each in (one, other))
            yield from _differ(f"{path}[{_label(key)}]", left, right, left_out, loose)
    elif isinstance(one, list | tuple) and isinstance(other, list | tuple):
        yield from _lists(path, one, other, left_out, loose)
    elif one != other:
        yield Difference(path, one, other)


def _value(struct: TPayload, name: str) -> Any:
    value = getattr(struct, name)
    return STANDS_FOR.get(name) if value is None else value


def _lists(path: str, one: Sequence[Any], other: Sequence[Any], left_out: Container[str], loose: int) -> Iterator[Difference]:
    has_no_order = (loose > 0 and not path.endswith(".values")) or any(isinstance(each, _UNORDERED) for each in one)
    if has_no_order and not any(isinstance(each, idl.FieldSchema) for each in (*one, *other)):
        left, right = ({_identity(each): each for each in side} for side in (one, other))
        if len(left) == len(one) and len(right) == len(other):
            for key in sorted(left.keys() | right.keys(), key=str):
                if key not in left or key not in right or not isinstance(key, str):
                    yield from _differ(f"{path}[{_label(key)}]", left.get(key), right.get(key), left_out, 0)
            return
        one, other = sorted(one, key=str), sorted(other, key=str)
    if len(one) != len(other):
        yield Difference(f"{path}.size", len(one), len(other))
    for number, (left_one, right_one) in enumerate(zip(one, other, strict=False)):
        yield from _differ(f"{path}[{number}]", left_one, right_one, left_out, 0)


def _identity(element: Any) -> Any:
    """Return a text unchanged, and for any other element a tuple that identifies it."""
    if isinstance(element, TPayload):
        found = ((name, _value(element, name)) for name in _NAMES if hasattr(element, name))
        return tuple((name, str(value)) for name, value in found if value is not None)
    return element if isinstance(element, str) else (str(element),)


def _label(key: Any) -> str:
    if isinstance(key, tuple):
        return ".".join(str(part[1] if isinstance(part, tuple) else part) for part in key)
    return str(key)


def _is_blank(value: Any) -> bool:
    """Return whether Java's clients can not distinguish a value from one that is not set. They can distinguish an empty text."""
    return value is None or (not isinstance(value, str) and not isinstance(value, TPayload) and not value)
