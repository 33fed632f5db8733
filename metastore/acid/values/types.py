"""Hive's types, as tables write them, in terms of Arrow. This module converts no values."""

from __future__ import annotations

import re

import pyarrow as pa

_SIMPLE = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "integer": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
}
_QUOTED = re.compile(r"`((?:[^`]|``)+)`\s*:(.*)", re.DOTALL)
_TEXT = re.compile(r"(?:var)?char\s*\(\s*\d+\s*\)")
_DECIMAL = re.compile(r"decimal(?:\s*\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\))?")


class UnknownType(ValueError):
    """A type that has no counterpart here, such as a union."""


def parts(kind: str) -> list[tuple[str, str]]:
    """Return (name, type) of each type within `array<..>`, `map<..>` or `struct<name:..>`; names only in a struct."""
    inner = kind[kind.index("<") + 1 : kind.rindex(">")]
    if not inner:
        return []
    out, depth, start, quoted = [], 0, 0, False
    for place, letter in enumerate(inner):
        quoted ^= letter == "`"
        if quoted:
            continue
        depth += (letter in "<(") - (letter in ">)")
        if letter == "," and depth == 0:
            out.append(inner[start:place])
            start = place + 1
    out.append(inner[start:])
    if not kind.strip().lower().startswith("struct"):
        return [("", part.strip()) for part in out]
    return [_field(part.strip()) for part in out]


def _field(text: str) -> tuple[str, str]:
    """Read `name:type`. ORC writes names with other characters than letters and digits in back quotes."""
    if match := _QUOTED.match(text):
        return match[1].replace("``", "`"), match[2].strip()
    name, _, kind = text.partition(":")
    return name.strip(), kind.strip()


def decimal_of(kind: str) -> tuple[int, int] | None:
    """Return (precision, scale) of a decimal, None for other types."""
    match = _DECIMAL.fullmatch(kind.strip().lower())
    return None if match is None else (int(match[1] or 10), int(match[2] or 0))


def arrow_type(kind: str) -> pa.DataType:
    """Return the Arrow type that holds a Hive type's values; timestamps have microseconds and no zone. UnknownType."""
    text = kind.strip().lower()
    if (found := _SIMPLE.get(text)) is not None:
        return found
    if _TEXT.fullmatch(text):
        return pa.string()
    if (decimal := decimal_of(text)) is not None:
        return pa.decimal128(*decimal)
    outer = text.partition("<")[0].strip()
    if outer == "array":
        return pa.list_(arrow_type(parts(kind)[0][1]))
    if outer == "map":
        (_, key), (_, value) = parts(kind)
        return pa.map_(arrow_type(key), arrow_type(value))
    if outer == "struct":
        return pa.struct([(name, arrow_type(inner)) for name, inner in parts(kind)])
    raise UnknownType(f"values of type {kind} can not be written")


def with_timestamps(kind: pa.DataType, wanted: pa.DataType) -> pa.DataType:
    """Return a type, nested or not, that has `wanted` in the place of timestamps."""
    if pa.types.is_timestamp(kind):
        return wanted
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(with_timestamps(field.type, wanted)) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(with_timestamps(kind.key_type, wanted), with_timestamps(kind.item_type, wanted))
    return pa.list_(with_timestamps(kind.value_type, wanted)) if pa.types.is_list(kind) else kind
