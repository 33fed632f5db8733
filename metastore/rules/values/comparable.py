"""Turn partition values and filter constants into Python values that compare as the column's type does.

Every key type has a reader for stored values and one for constants (MetaError for a constant that can never be compared). None means that a
value can not be evaluated here: engines read `2020-01` or `+10000-01-01` as different dates, or as none. This module never compares.

Source for the pairs that Hive itself compares: MetaStoreDirectSql's PartitionFilterGenerator. Hive refuses decimal,
boolean, float and, on some databases, timestamp keys; here they work.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

from metastore.errors import MetaError
from metastore.rules.values import types

Constant = str | int | Decimal | datetime.date | datetime.datetime
"""A quoted string (without its quotes, escapes kept), `true` or `false`, a number, a `DATE` or a `TIMESTAMP` literal.

A date or time of a year that Python does not have is a text.
"""

Reader = Callable[[str], Any]

_INTEGER = re.compile(r"\s*[+-]?\d{1,1000}\s*", re.ASCII)
_NUMBER = re.compile(r"\s*[+-]?(?:\d{1,1000}\.?\d{0,1000}|\.\d{1,1000})(?:[eE][+-]?\d{1,6})?\s*", re.ASCII)
_LIKE_A_TIME = re.compile(r"\s*[+-]?\d.*", re.ASCII | re.DOTALL)
_TIMESTAMP = re.compile(r"\s*(\d{4})-(\d{1,2})-(\d{1,2})(?:[ T](\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d{1,9}))?)?)?\s*", re.ASCII)


@dataclass(frozen=True)
class KeyType:
    """The readers of one partition key's values and of the constants that they are compared with."""

    name: str
    read_value: Reader
    read_constant: Callable[[Constant], Any]


def number_of(text: str) -> Decimal | int | None:
    """Return the number in a text, None if it is not a number."""
    if _INTEGER.fullmatch(text):
        return int(text)
    if _NUMBER.fullmatch(text):
        try:
            return Decimal(text.strip())
        except InvalidOperation:
            return None
    return None


def _float(text: str) -> float | None:
    stripped = text.strip()
    special = {"nan": "nan", "infinity": "inf", "+infinity": "inf", "-infinity": "-inf", "inf": "inf", "-inf": "-inf"}
    if stripped.lower() in special:
        return float(special[stripped.lower()])
    return float(stripped) if _NUMBER.fullmatch(stripped) else None


def _boolean(text: str) -> bool | None:
    return {"true": True, "false": False}.get(text.strip().lower())


def _time(text: str) -> tuple[datetime.datetime, int] | None:
    """Return a time to the second and its nanoseconds."""
    match = _TIMESTAMP.fullmatch(text)
    if not match:
        return None
    *fields, fraction = match.groups()
    try:
        moment = datetime.datetime(*(int(field or 0) for field in fields))  # type: ignore[arg-type] # noqa: DTZ001 # Hive's timestamps have no zone; six numbers
    except ValueError:
        return None
    return moment, int((fraction or "").ljust(9, "0"))


def _date(text: str) -> datetime.date | None:
    """Return the day; a time after it is cut off, as some writers store dates with a midnight."""
    read = _time(text)
    return read[0].date() if read else None


def _padded(text: str) -> str:
    return text.rstrip(" ")


def _plain(text: str) -> str:
    return text


def text_of(constant: Constant) -> str:
    """Return a constant as the text that a partition value would hold."""
    if isinstance(constant, datetime.datetime):
        return constant.isoformat(" ")
    return constant.isoformat() if isinstance(constant, datetime.date) else str(constant)


def _constant_reader(
    hive_type: str, accepted: tuple[type, ...], read: Reader, unsure: re.Pattern[str] | None = None
) -> Callable[[Constant], Any]:
    """Return a reader of constants. It returns None for a text that `unsure` matches and `read` can not read. MetaError."""

    def read_constant(constant: Constant) -> Any:
        # In Python a datetime is a date, too, but it is accepted only where times are.
        fits = isinstance(constant, accepted) and (not isinstance(constant, datetime.datetime) or datetime.datetime in accepted)
        value = read(text_of(constant)) if fits else None
        if value is None and not (unsure is not None and isinstance(constant, str) and unsure.fullmatch(constant)):
            raise MetaError(
                f"Cannot push down filter for {hive_type} column and value {text_of(constant)[:100]!r} of type {type(constant).__name__}: "
                "Filtering is supported only on partition keys of type string, or by values of the key's type"
            )
        return value

    return read_constant


def _strict_date(text: str) -> datetime.date | None:
    read = _time(text)
    return read[0].date() if read and read == (datetime.datetime.combine(read[0].date(), datetime.time()), 0) else None


def key_type(hive_type: str) -> KeyType:
    """Return the readers for a partition key of type `hive_type`; MetaError for a type that has no order here."""
    name = types.type_name(hive_type)
    strings = (str, datetime.date, datetime.datetime)
    if name in {"string", "varchar"}:
        return KeyType(name, _plain, _constant_reader(hive_type, strings, _plain))
    if name == "char":
        return KeyType(name, _padded, _constant_reader(hive_type, strings, _padded))
    if name in types.INTEGERS or name == "decimal":
        return KeyType(name, number_of, _constant_reader(hive_type, (int, Decimal, str), number_of))
    if name in types.FLOATS:
        return KeyType(name, _float, _constant_reader(hive_type, (int, Decimal, str), _float))
    if name == "boolean":
        return KeyType(name, _boolean, _constant_reader(hive_type, (str,), _boolean))
    if name == "date":
        return KeyType(name, _date, _constant_reader(hive_type, (str, datetime.date), _strict_date, _LIKE_A_TIME))
    if name in {"timestamp", "datetime"}:
        return KeyType(name, _time, _constant_reader(hive_type, strings, _time, _LIKE_A_TIME))
    raise MetaError(f"Filter pushdown not supported for type {hive_type}")
