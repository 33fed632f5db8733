"""Read from an ORC file's footer the parts that PyArrow hides: rows of each stripe, statistics of each column, the calendar. Reads no rows.

Source: the ORC specification and its orc_proto.proto.
"""

from __future__ import annotations

from typing import NamedTuple

from pyarrow import orc

from metastore.acid.orc.protobuf import fields, signed

TIMESTAMPS = (9, 18)
"""The kinds of columns of times, without and with a zone."""
DATE, CHAR = 15, 17
_FOOTER = 2
_STRIPES, _TYPES, _STATISTICS, _CALENDAR = 3, 4, 7, 11
_ROWS, _KIND = 5, 1
_VALUES, _INTEGERS, _DATES, _TIMES, _HAS_NULL = 1, 2, 7, 9, 10
_PROLEPTIC = 2


class FooterColumn(NamedTuple):
    """A column: its kind, the count of values that are not null, the least and greatest number, day or millisecond; None if unknown.

    `has_null` is true also where it is not known.
    """

    kind: int
    values: int | None = None
    least: int | None = None
    greatest: int | None = None
    has_null: bool = True


class Footer(NamedTuple):
    """An ORC footer; columns are in the order of ORC's numbers, column 0 is the whole row."""

    stripes: list[int]
    """Rows of each stripe."""
    columns: list[FooterColumn]
    is_proleptic: bool
    """Whether days before 1582-10-15 are in the proleptic Gregorian calendar; in files of Hive and Spark they are Julian."""


def footer_of(file: orc.ORCFile) -> Footer:
    """Read the footer of an open file, or of the end of one. NotAMessage."""
    (footer,) = (field.content for field in fields(file.reader.serialized_file_tail()) if field.number == _FOOTER)
    stripes, kinds, statistics = [], [], []
    is_proleptic = False
    for field in fields(footer):
        if field.number == _STRIPES:
            stripes.append(_number(field.content, _ROWS))
        elif field.number == _TYPES:
            kinds.append(_number(field.content, _KIND))
        elif field.number == _STATISTICS:
            statistics.append(field.content)
        elif field.number == _CALENDAR:
            is_proleptic = field.value == _PROLEPTIC
    if len(statistics) != len(kinds):
        return Footer(stripes, [FooterColumn(kind) for kind in kinds], is_proleptic)
    return Footer(stripes, [_column(kind, found) for kind, found in zip(kinds, statistics, strict=True)], is_proleptic)


def _number(message: bytes, number: int) -> int:
    return next((field.value for field in fields(message) if field.number == number), 0)


def _column(kind: int, statistics: bytes) -> FooterColumn:
    values, has_null = None, True
    bounds: dict[int, int] = {}
    for field in fields(statistics):
        if field.number == _VALUES:
            values = field.value
        elif field.number == _HAS_NULL:
            has_null = bool(field.value)
        elif field.number in (_INTEGERS, _DATES, _TIMES):
            bounds = {inner.number: signed(inner.value) for inner in fields(field.content)}
    # Times have two pairs: the first is of local times, the second, which older writers lack, of UTC.
    return FooterColumn(
        kind,
        values,
        bounds.get(3, bounds.get(1)) if kind in TIMESTAMPS else bounds.get(1),
        bounds.get(4, bounds.get(2)) if kind in TIMESTAMPS else bounds.get(2),
        has_null,
    )
