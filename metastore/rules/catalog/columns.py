"""Interpret a change of a table's columns: the renamed ones, the removed ones, and the effect on everything that names columns.

A column that has another name at the same place, as after Hive's `CHANGE`, was renamed if neither name is elsewhere. If one column was
removed and one was added, as after `CHANGE .. FIRST`, that is a rename, too. The types have to be compatible. Names are compared as they
are stored: in lower case. Source: Hive's HiveAlterHandler, where bucket columns and constraints do not follow. This module reads nothing
stored.
"""

from __future__ import annotations

import re
from copy import copy
from typing import TYPE_CHECKING, NamedTuple

from metastore.idl import Order
from metastore.rules.names import normalize
from metastore.rules.values.types import is_compatible_change

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from metastore.idl import FieldSchema, StorageDescriptor

_PART_OF_EXPRESSION = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`(?:[^`]|``)*`|\d[\w.]*|\w+""", re.DOTALL)


class ColumnsDifference(NamedTuple):
    """The columns that were renamed and dropped; names are normalised."""

    renamed: Mapping[str, str]
    dropped: frozenset[str]

    @property
    def gone(self) -> list[str]:
        """The names that no column has any more."""
        return [*self.renamed, *sorted(self.dropped)]

    def of(self, names: Sequence[str | None]) -> list[str | None] | None:
        """Return columns under their new names; None when one of them was dropped."""
        if not self.dropped.isdisjoint(name for name in names if name is not None):
            return None
        return [name if name is None else self.renamed.get(name, name) for name in names]


def difference(old: Sequence[FieldSchema], new: Sequence[FieldSchema]) -> ColumnsDifference:
    """Compare two lists of columns."""
    before, after = [normalize(column.name) for column in old], [normalize(column.name) for column in new]
    gone, come = set(before) - set(after), set(after) - set(before)
    renamed = {
        was: now
        for was, now, one, other in zip(before, after, old, new, strict=False)
        if was in gone and now in come and is_compatible_change(one.type or "", other.type or "")
    }
    if not renamed and len(gone) == len(come) == 1 and len(before) == len(after):
        was, now = gone.pop(), come.pop()
        if is_compatible_change(old[before.index(was)].type or "", new[after.index(now)].type or ""):
            return ColumnsDifference({was: now}, frozenset())
        gone.add(was)
    return ColumnsDifference(renamed, frozenset(gone - renamed.keys()))


def lost_columns(old: Sequence[FieldSchema] | None, new: Sequence[FieldSchema] | None) -> list[str]:
    """Return the columns that were removed or have another type: their statistics are no longer valid."""
    kept = {(normalize(column.name), column.type) for column in new or ()}
    return [normalize(column.name) for column in old or () if (normalize(column.name), column.type) not in kept]


def repeated_column(columns: Sequence[FieldSchema], keys: Sequence[FieldSchema] | None = None) -> str | None:
    """Return the first name that two of the columns and partition keys have, None when there is none."""
    seen: set[str] = set()
    for column in (*columns, *(keys or ())):
        name = normalize(column.name or "")
        if name in seen:
            return name
        seen.add(name)
    return None


def without_keys(columns: Sequence[FieldSchema], keys: Sequence[FieldSchema]) -> list[FieldSchema]:
    """Return the columns that have not the name of a partition key."""
    names = {normalize(key.name) for key in keys}
    return [column for column in columns if column.name is None or column.type is None or normalize(column.name) not in names]


def is_clustered(sd: StorageDescriptor) -> bool:
    """Return whether a storage descriptor names columns, as bucket, sort or skew columns."""
    return bool(sd.bucketCols or sd.sortCols or (sd.skewedInfo is not None and sd.skewedInfo.skewedColNames))


def strangers(sd: StorageDescriptor | None, *before: StorageDescriptor | None) -> list[str]:
    """Return the bucket, sort and skew columns that the table lacks; none where the serde defines the columns.

    Columns that were missing `before`, in existing storage, are left out.
    """
    if sd is None or not is_clustered(sd) or not sd.cols:
        return []
    known = {normalize(column.name) for column in sd.cols}
    skewed = (sd.skewedInfo.skewedColNames if sd.skewedInfo is not None else None) or ()
    named = [*(sd.bucketCols or ()), *(order.col for order in sd.sortCols or ()), *skewed]
    found = dict.fromkeys(str(name) for name in named if name is None or normalize(name) not in known)
    return [name for name in found if not any(name in strangers(each) for each in before)]


def follow(sd: StorageDescriptor, renamed: Mapping[str, str]) -> StorageDescriptor:
    """Return a storage descriptor whose bucket, sort and skew columns have their new names; the same object if none was renamed."""
    if not renamed or not is_clustered(sd):
        return sd

    def now(name: str) -> str:
        return renamed.get(normalize(name or ""), name)

    sd = copy(sd)
    sd.bucketCols = [now(name) for name in sd.bucketCols or ()]
    sd.sortCols = [Order(col=now(order.col), order=order.order) for order in sd.sortCols or ()]
    if sd.skewedInfo is not None and sd.skewedInfo.skewedColNames:
        sd.skewedInfo = copy(sd.skewedInfo)
        sd.skewedInfo.skewedColNames = [now(name) for name in sd.skewedInfo.skewedColNames]
    return sd


def renamed_in(expression: str, difference: ColumnsDifference) -> str | None:
    """Return the expression of a constraint with the columns' new names; None when it needs a column that was dropped.

    Words are columns unless they are quoted or called as functions.
    """
    needs_dropped = False

    def now(match: re.Match[str]) -> str:
        nonlocal needs_dropped
        text = match[0]
        if text[0] in "'\"" or expression[match.end() :].lstrip().startswith("("):
            return text
        quoted = text[0] == "`"
        name = normalize(text[1:-1].replace("``", "`") if quoted else text)
        needs_dropped = needs_dropped or name in difference.dropped
        if name not in difference.renamed:
            return text
        new = difference.renamed[name]
        return f"`{new.replace('`', '``')}`" if quoted or not new.isidentifier() else new

    out = _PART_OF_EXPRESSION.sub(now, expression)
    return None if needs_dropped else out
