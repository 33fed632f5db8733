"""The column statistics of a request for a table or its partitions: checked, in the kinds that the column types need, and encoded."""

from __future__ import annotations

import time
from collections.abc import Hashable, Iterator, Mapping, Sequence
from copy import copy
from itertools import islice
from operator import is_
from typing import TypeVar

from metastore.errors import InvalidObject, MetaError
from metastore.idl import ColumnStatistics, ColumnStatisticsObj, Table
from metastore.rules.names import normalize
from metastore.rules.statistics.statistics import are_joinable
from metastore.rules.statistics.statistics_kinds import in_kind, kind_for, kind_of, missing_field, with_data
from metastore.store.catalog import statistics

Group = TypeVar("Group", bound=Hashable)
"""A place, or another key for the written columns of one place."""


class WrittenColumns:
    """Written columns: structs with normalised names and types, and as they are stored."""

    def __init__(self, structs: Sequence[ColumnStatisticsObj], texts: Iterator[str], now: int) -> None:
        self.structs = structs
        self.data = list(islice(texts, len(structs)))
        """The ColumnStatisticsData of each struct."""
        self.encoded: statistics.Encoded = {
            column.colName: [column.colType, now, text] for column, text in zip(structs, self.data, strict=True)
        }
        self.names = tuple(self.encoded)
        self._stored: statistics.Stored | None = None

    def of_other_kinds(self, there: statistics.Encoded) -> list[str]:
        """Return the columns whose stored statistics, `there`, can not be joined with the written ones."""
        return [
            column.colName
            for column in self.structs
            if column.colName in there
            and statistics.kind_of(there[column.colName]) != kind_of(column.statsData)
            and not are_joinable(statistics.decode(column.colName, there[column.colName]), column)
        ]

    def stored(self) -> statistics.Stored:
        """Return the written columns in stored form, for a place without other statistics."""
        if self._stored is None:
            self._stored = statistics.stored(self.encoded)
        return self._stored


def checked(
    table: Table, new: Sequence[ColumnStatistics]
) -> tuple[list[tuple[int, ...]], dict[tuple[int, ...], Sequence[ColumnStatisticsObj]]]:
    """Return a key for each place, and by these keys the written columns: places with the same structs share them. MetaError."""
    columns = table.sd.cols if table.sd is not None else []
    types = {column.name: column.type for column in (*columns, *(table.partitionKeys or ()))}
    fitting: dict[tuple[str, str], str | None] = {}
    keys = [tuple(map(id, each.statsObj or ())) for each in new]
    distinct = dict(zip(keys, new, strict=True))
    return keys, {key: _normalized(table, types, fitting, each) for key, each in distinct.items()}


def with_columns(new: ColumnStatistics, columns: Sequence[ColumnStatisticsObj]) -> ColumnStatistics:
    """Return statistics with columns in their stored form; the same object if it has these columns already."""
    if all(map(is_, new.statsObj or (), columns)):
        return new
    written = copy(new)
    written.statsObj = list(columns)
    return written


def encoded(structs: Mapping[Group, Sequence[ColumnStatisticsObj]]) -> dict[Group, WrittenColumns]:
    """Return the written columns of structs, by the keys of the structs. InvalidObject for empty or incomplete statistics."""
    columns = [column for each in structs.values() for column in each]
    texts, now = statistics.encode(columns), int(time.time())
    if statistics.EMPTY in texts:
        column = columns[texts.index(statistics.EMPTY)]
        raise InvalidObject(f"Statistics of the column {column.colName} are empty: set the member of statsData for its type")
    for column in columns:
        if lacking := missing_field(column.statsData):
            raise InvalidObject(f"Statistics of the column {column.colName} lack {lacking}, without which no client reads them: set it")
    left = iter(texts)
    return {key: WrittenColumns(each, left, now) for key, each in structs.items()}


def _normalized(
    table: Table, types: Mapping[str, str], fitting: dict[tuple[str, str], str | None], new: ColumnStatistics
) -> Sequence[ColumnStatisticsObj]:
    """Return statistics with lower-case names and types, of the kinds that the types need; check that the table has the columns.

    `types` are the types of the table's columns. `fitting` holds the kinds for names and types of columns that need no change; hundreds of
    partitions of one request have the same. InvalidObject, MetaError.
    """
    for column in new.statsObj or ():
        known = (column.colName, column.colType)
        if known not in fitting or column.statsData is None or not _is_of_kind(column, fitting[known]):
            break
    else:
        return new.statsObj or ()
    out = []
    for column in new.statsObj:
        if column.colName is None or column.statsData is None:
            raise InvalidObject(f"Statistics of {table.dbName}.{table.tableName} without colName or statsData can not be stored")
        name = column.colName if column.colName in types else normalize(column.colName)
        if name not in types:
            raise MetaError(f"Column {name} doesn't exist in table {table.tableName} in database {table.dbName}")
        column_type = (column.colType or types[name] or "").lower()
        kind = kind_for(column_type)
        if (name, column_type) == (column.colName, column.colType):
            fitting[name, column_type] = kind
            stored = column
        else:
            stored = ColumnStatisticsObj(colName=name, colType=column_type, statsData=column.statsData)
        out.append(stored if _is_of_kind(stored, kind) else _in_kind(stored, kind))
    return out


def _is_of_kind(column: ColumnStatisticsObj, kind: str | None) -> bool:
    return kind is None or getattr(column.statsData, kind) is not None


def _in_kind(column: ColumnStatisticsObj, kind: str | None) -> ColumnStatisticsObj:
    """Return statistics in the kind that their column's type needs: clients fail on another. InvalidObject if it does not fit.

    Incomplete ones are returned unchanged.
    """
    given = kind_of(column.statsData)
    if given is None or missing_field(column.statsData):
        return column
    data = in_kind(column.statsData, kind)
    if data is None:
        raise InvalidObject(
            f"Statistics of the column {column.colName} are {given}, which no client reads for {column.colType}: set statsData.{kind}"
        )
    return with_data(column, data)


def columns_of(table: Table, new: Sequence[ColumnStatistics]) -> list[WrittenColumns]:
    """Return the written columns of each place. InvalidObject, MetaError."""
    keys, structs = checked(table, new)
    made = encoded(structs)
    return [made[key] for key in keys]
