"""Statistics of columns as clients write them, and the columns or partitions that have any."""

from __future__ import annotations

from metastore.idl import (
    ColumnStatistics,
    ColumnStatisticsData,
    ColumnStatisticsDesc,
    ColumnStatisticsObj,
    LongColumnStatsData,
    StringColumnStatsData,
)
from metastore.service.call.context import Call
from metastore.service.call.names import TableName
from metastore.service.catalog.statistics import statistics


def column(name: str, kind: str, **data: object) -> ColumnStatisticsObj:
    return ColumnStatisticsObj(colName=name, colType=kind, statsData=ColumnStatisticsData(**data))


def numbers(name: str, low: int | None, high: int | None, nulls: int = 0, distinct: int = 1) -> ColumnStatisticsObj:
    return column(name, "int", longStats=LongColumnStatsData(lowValue=low, highValue=high, numNulls=nulls, numDVs=distinct))


def texts(name: str, length: int, average: float, nulls: int = 0, distinct: int = 1) -> ColumnStatisticsObj:
    data = StringColumnStatsData(maxColLen=length, avgColLen=average, numNulls=nulls, numDVs=distinct, bitVectors=b"HL\xff")
    return column(name, "string", stringStats=data)


def of(name: TableName, *columns: ColumnStatisticsObj, partition: str | None = None, **options: object) -> ColumnStatistics:
    description = ColumnStatisticsDesc(
        isTblLevel=partition is None, dbName=name.database, tableName=name.table, partName=partition, catName=name.catalog
    )
    return ColumnStatistics(statsDesc=description, statsObj=list(columns), **options)


def with_statistics(call: Call, name: TableName, *names: str) -> list[str]:
    """Return ["a"] if the table has statistics of column `a`; with names of partitions, those with such statistics."""
    if not names:
        return [each.colName for each in statistics.get_table(call, name, ["a"]).statsObj]
    return sorted(statistics.get_partitions(call, name, names, ["a"]))
