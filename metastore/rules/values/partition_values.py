"""Name the value of a partition column as Hive does, and read it back. This module knows no locations.

A value that Hive, Spark or a client may spell in several ways (`1.10`, `05`, `TRUE`) has one text that is Hive's own:

    tinyint .. bigint   5                 no leading zeros
    decimal             1.1               no zeros at the end, never an exponent
    float, double       1.0, 1.0E20       as Java's toString
    boolean             true
    date                2024-07-01
    timestamp           2024-07-01 00:30:00.12    wall-clock time, no zeros at the end of the fraction
    timestamp with local time zone        likewise, in UTC, with ` UTC` behind it
    char(5)             'ab   '           padded
    string, varchar     as it is

Source: the partitions that Hive 4.0.1 makes by dynamic and static inserts (`tests/hive4/test_partition_values.py`).
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from metastore.errors import MetaError
from metastore.rules.values import types
from metastore.rules.values.comparable import key_type
from metastore.rules.values.partition_names import DEFAULT_PARTITION, make_partition_name

WITH_ZONE = "timestamp with time zone"
"""The name of Hive's `timestamp with local time zone` in `rules/values/types.py`."""
_PLAIN_FROM, _PLAIN_TO = 1e-3, 1e7
"""Between these Java writes a number without exponent."""


def read_value(kind: str, text: str) -> Any:
    """Return the Python value of a text: an int, float, Decimal, bool, date, (datetime, nanoseconds) or str.

    None for the default partition, for a text that is not a value of the type, and for a type that no partition is compared by.
    """
    if text == DEFAULT_PARTITION:
        return None
    try:
        return key_type(kind).read_value(text)
    except MetaError:
        return None


def can_hold(kind: str, text: str) -> bool:
    """Return whether a text is a value of a partition key's type; any text is one of a type that no partition is compared by."""
    try:
        key_type(kind)
    except MetaError:
        return True
    value = read_value(kind, text)
    if value is None:
        return text == DEFAULT_PARTITION
    return types.type_name(kind) not in types.INTEGERS or value == int(value)


def text_of(kind: str, value: Any) -> str:
    """Return Hive's text of a value: one of `read_value`, or a datetime of wall-clock time. None and "" are the default partition."""
    if value is None or value == "":
        return DEFAULT_PARTITION
    if isinstance(value, bool):
        return "true" if value else "false"
    name = types.type_name(kind)
    if name in types.FLOATS:
        return _java_number(float(value), single=name == "float")
    if isinstance(value, Decimal):
        plain = f"{value:f}"
        return "0" if value == 0 else plain.rstrip("0").rstrip(".") if "." in plain else plain
    if isinstance(value, datetime):
        return _time(value, value.microsecond * 1000, kind)
    if isinstance(value, tuple):
        moment, nanoseconds = value
        return _time(moment, nanoseconds, kind)
    if isinstance(value, date):
        return value.isoformat()
    if name == "char":
        return str(value).ljust(types.parse_type(kind).parameters[0])
    return str(value)


def canonical(kind: str, text: str) -> str:
    """Return Hive's own text of the value that a text means; a text that is not a value of the type is not changed."""
    value = read_value(kind, text)
    return text if value is None else text_of(kind, value)


def hive_name(keys: Sequence[tuple[str, str]], texts: Sequence[str]) -> str:
    """Return the name `k=v/..` that Hive gives the partition of some values, however these are spelled; `keys` are (name, type)."""
    values = [canonical(kind, text) for (_, kind), text in zip(keys, texts, strict=True)]
    return make_partition_name([key for key, _ in keys], values)


def has_several_texts(kind: str) -> bool:
    """Return whether a value of the type can be spelled in several ways."""
    return types.type_name(kind) not in {"string", "varchar"}


def _time(moment: datetime, nanoseconds: int, kind: str) -> str:
    fraction = f".{nanoseconds:09d}".rstrip("0").rstrip(".")
    return f"{moment.date().isoformat()} {moment:%H:%M:%S}{fraction}{' UTC' if types.type_name(kind) == WITH_ZONE else ''}"


def _java_number(value: float, *, single: bool) -> str:
    """Return a number as Java's Double.toString or, for a `float`, Float.toString writes it."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    sign, digits, exponent = Decimal(_shortest(value, single=single)).as_tuple()
    text = "".join(map(str, digits)).rstrip("0") or "0"
    power = len(digits) + int(exponent) - 1 if value else 0
    before = "-" if sign else ""
    if value and not _PLAIN_FROM <= abs(value) < _PLAIN_TO:
        return f"{before}{text[0]}.{text[1:] or '0'}E{power}"
    if power < 0:
        return f"{before}0.{'0' * (-power - 1)}{text}"
    return f"{before}{text[: power + 1].ljust(power + 1, '0')}.{text[power + 1 :] or '0'}"


def _shortest(value: float, *, single: bool) -> str:
    """Return the fewest digits that identify a number among those of its width."""
    if not single:
        return repr(value)
    packed = struct.pack("f", value)
    return next(text for digits in range(1, 10) if struct.pack("f", float(text := f"{value:.{digits}g}")) == packed)
