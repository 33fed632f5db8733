"""Return Arrow arrays in the types of a table's columns as they are, or refuse them: nothing is cut, rounded, lost or made null.

Floats are an exception by their nature: they take the nearest number to a decimal or a wider float, but no other whole number, and no
infinity for a finite number.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from metastore.acid.values.characters import fitted
from metastore.acid.values.nested import lists, maps, structs
from metastore.acid.values.types import arrow_type, parts

FIRST_DAY, LAST_DAY = -719162, 2932896
"""0001-01-01 and 9999-12-31, Hive's first and last day, in days since 1970."""
_DAY = 86_400_000_000


class Changed(ValueError):
    """A value would change. The text has the value."""


def named_once(pairs: Sequence[tuple[Any, Any]]) -> dict[Any, Any]:
    """Return pairs of name and value as a dict. Changed for a name that occurs twice: one value would be lost."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise Changed(f"{', '.join(sorted({str(name) for name in names if names.count(name) > 1}))} is given twice")
    return found


def exact(values: Any, kind: str) -> Any:
    """Return values of any type as values of a Hive type. Changed, TooLong, ArrowException."""
    there, wanted = values.type, arrow_type(kind)
    if pa.types.is_dictionary(there):
        return exact(values.dictionary_decode(), kind)
    if pa.types.is_null(there):
        return pa.nulls(len(values), wanted)
    if pa.types.is_nested(wanted):
        return _nested(values, kind, wanted)
    if pa.types.is_nested(there) or not _is_of_one_sort(there, wanted):
        raise Changed(f"a value of type {there} is not a {kind}")
    return checked(values.cast(wanted), kind, values)


def checked(values: Any, kind: str, before: Any = None) -> Any:
    """Return an array of the Arrow type of a Hive type in the form to write; `before` is the array before its cast. Changed, TooLong."""
    if pa.types.is_nested(values.type):
        return _nested(values, kind, values.type)
    if pa.types.is_floating(values.type) and before is not None:
        _check(pc.and_(pc.is_inf(values), pc.invert(_is_infinite(before))), before, kind)
    if pa.types.is_date32(values.type):
        days = values.cast(pa.int32())
        _check(pc.or_(pc.less(days, FIRST_DAY), pc.greater(days, LAST_DAY)), days, kind)
    if pa.types.is_timestamp(values.type):
        moments = values.cast(pa.int64())
        _check(pc.or_(pc.less(moments, FIRST_DAY * _DAY), pc.greater_equal(moments, (LAST_DAY + 1) * _DAY)), moments, kind)
    return fitted(values, kind)


def _is_infinite(values: Any) -> Any:
    if pa.types.is_floating(values.type):
        return pc.is_inf(values)
    return pc.match_substring(pc.utf8_lower(values), "inf") if _is_text(values.type) else pa.repeat(False, len(values))


def _check(wrong: Any, values: Any, kind: str) -> None:
    if pc.any(wrong).as_py():
        raise Changed(f"{values.filter(pc.fill_null(wrong, False))[0]} is out of the range of {kind}")


def _nested(values: Any, kind: str, wanted: pa.DataType) -> Any:
    there, inner = values.type, parts(kind)
    if pa.types.is_struct(wanted) and pa.types.is_struct(there):
        given = named_once([(there.field(place).name.lower(), place) for place in range(there.num_fields)])
        if unknown := sorted(given.keys() - {name.lower() for name, _ in inner}):
            raise Changed(f"there is no field {', '.join(unknown)}; the fields are {', '.join(name for name, _ in inner)}")
        fields = [
            exact(values.field(given[name.lower()]), each) if name.lower() in given else pa.nulls(len(values), arrow_type(each))
            for name, each in inner
        ]
        return structs(values, fields, wanted)
    if pa.types.is_map(wanted) and pa.types.is_map(there):
        return maps(values, exact(values.keys, inner[0][1]), exact(values.items, inner[1][1]), wanted)
    if pa.types.is_list(wanted) and (pa.types.is_list(there) or pa.types.is_large_list(there)):
        listed = values.cast(pa.list_(there.value_type))
        return lists(listed, exact(listed.values, inner[0][1]), wanted)
    raise Changed(f"a value of type {there} is not a {kind}")


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _is_of_one_sort(there: pa.DataType, wanted: pa.DataType) -> bool:
    """Return whether values of a type may be values of another; Arrow itself refuses the values that do not fit, except floats."""
    if there == wanted:
        return True
    if pa.types.is_timestamp(wanted):
        return pa.types.is_date(there) or _is_text(there) or (pa.types.is_timestamp(there) and there.tz is None)
    if pa.types.is_date(wanted):
        return bool(pa.types.is_date(there) or _is_text(there))
    if pa.types.is_integer(wanted):
        return bool(pa.types.is_integer(there) or pa.types.is_floating(there) or pa.types.is_decimal(there))
    if pa.types.is_floating(wanted):
        return bool(pa.types.is_integer(there) or pa.types.is_floating(there) or pa.types.is_decimal(there))
    if pa.types.is_decimal(wanted):
        return bool(pa.types.is_integer(there) or pa.types.is_decimal(there) or _is_text(there))
    if pa.types.is_string(wanted):
        return _is_text(there)
    return bool(pa.types.is_binary(wanted) and (pa.types.is_binary(there) or pa.types.is_large_binary(there) or _is_text(there)))
