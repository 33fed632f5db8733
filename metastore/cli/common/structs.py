"""Turn JSON into Thrift values and back, by the declarations of the interface. Never opens a connection.

A struct is an object with the names of its fields, an enum its name or number, binary data is base64.
"""

from __future__ import annotations

import base64
from typing import Any

from thriftpy2.thrift import TPayload, TType

_WHOLE = (TType.BYTE, TType.I16, TType.I32, TType.I64)


class Misfit(Exception):
    """A JSON value does not fit the declared type; the message has the place, the type and the value."""


def to_thrift(kind: int, detail: Any, value: Any, place: str) -> Any:
    """Convert a JSON value to a Thrift type; `detail` is thriftpy2's declaration of the type, `place` names the value in errors."""
    if kind == TType.STRUCT:
        return _to_struct(detail, value, place)
    if kind in {TType.LIST, TType.SET}:
        _check(isinstance(value, list), value, "a list", place)
        return [to_thrift(*_split(detail), item, f"{place}[{index}]") for index, item in enumerate(value)]
    if kind == TType.MAP:
        _check(isinstance(value, dict), value, "an object", place)
        key, item = detail
        return {to_thrift(*_split(key), name, place): to_thrift(*_split(item), inner, f"{place}.{name}") for name, inner in value.items()}
    if kind in _WHOLE:
        if detail is not None and isinstance(value, str):
            numbers = detail._NAMES_TO_VALUES  # noqa: SLF001 - thriftpy2 has no public name for it
            _check(value in numbers, value, f"one of {', '.join(numbers)}", place)
            return numbers[value]
        _check(isinstance(value, int) and not isinstance(value, bool), value, "a whole number", place)
    elif kind == TType.DOUBLE:
        _check(isinstance(value, int | float) and not isinstance(value, bool), value, "a number", place)
        return float(value)
    elif kind == TType.BOOL:
        _check(isinstance(value, bool), value, "true or false", place)
    elif kind == TType.BINARY:
        _check(isinstance(value, str), value, "base64", place)
        return base64.b64decode(value)
    else:
        _check(isinstance(value, str), value, "a text", place)
    return value


def _to_struct(declared: type[TPayload], value: Any, place: str) -> Any:
    _check(isinstance(value, dict), value, f"an object of {declared.__name__}", place)
    fields = {spec[1]: spec for spec in declared.thrift_spec.values()}
    made = declared()
    for name, item in value.items():
        if name not in fields:
            raise Misfit(f"{place}: {declared.__name__} has no field {name}; it has {', '.join(fields)}")
        if item is not None:
            setattr(made, name, to_thrift(fields[name][0], _detail(fields[name]), item, f"{place}.{name}"))
    return made


def to_json(value: Any) -> Any:
    """Convert a Thrift value to a form that `json` can write; fields that are not set are left out."""
    if isinstance(value, TPayload):
        items = ((spec, getattr(value, spec[1])) for spec in value.thrift_spec.values())
        return {spec[1]: _named(spec, item) for spec, item in items if item is not None}
    if isinstance(value, dict):
        return {key if isinstance(key, str) else str(to_json(key)): to_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [to_json(item) for item in value]
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return value


def _named(spec: tuple[Any, ...], item: Any) -> Any:
    detail = _detail(spec)
    if spec[0] == TType.I32 and detail is not None:
        return detail._VALUES_TO_NAMES.get(item, item)  # noqa: SLF001 - as above
    return to_json(item)


def _detail(spec: tuple[Any, ...]) -> Any:
    """Return a field's element type, struct or enum; None for plain types, whose declarations in thriftpy2 have none."""
    return spec[2] if len(spec) == 4 else None


def _split(detail: Any) -> tuple[int, Any]:
    return detail if isinstance(detail, tuple) else (detail, None)


def _check(fits: bool, value: Any, expected: str, place: str) -> None:
    if not fits:
        raise Misfit(f"{place}: expected {expected}, got {value!r}")
