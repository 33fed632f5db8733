"""Pages of a table's partitions, and of statistics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from metastore.console.pages.asking import ROWS, catalog_of, on_wire, unless_refused
from metastore.console.pages.statistics import ColumnStatistics, statistics_of
from metastore.console.pages.tables import Column, Storage, columns_of, find, storage_of
from metastore.console.visit import Visit
from metastore.idl import Partition, PartitionsStatsRequest, TableStatsRequest
from metastore.rules.catalog.table_kinds import is_transactional
from metastore.service.operations.browsing import PartitionPage


@dataclass(frozen=True, slots=True)
class ListedPartition:
    """A partition in a list; times in milliseconds, sizes in bytes, None where nobody counted."""

    name: str
    location: str | None
    created: int
    rows: int | None
    files: int | None
    size: int | None


@dataclass(frozen=True, slots=True)
class Partitions:
    """A page of a table's partitions, ascending by name."""

    catalog: str
    database: str
    table: str
    keys: list[Column]
    filter: str
    search: str
    rows: list[ListedPartition]
    next: str | None
    """The name after which the next page begins. A page may be short: it looks at a limited number of partitions."""


def partitions(
    visit: Visit,
    database: str,
    table: str,
    catalog: str = "",
    filter: str = "",  # noqa: A002  # the name of the parameter
    search: str = "",
    after: str = "",
) -> Partitions:
    """List a table's partitions that pass a filter such as `ds > '2026-01-01' and hr = 7`, and whose names contain the search."""
    where = catalog_of(visit, catalog)
    page: PartitionPage = visit.run(
        "show_partitions_page",
        catalog=where,
        database=database.strip().lower(),
        table=table.strip().lower(),
        text=filter.strip(),
        part=search.strip(),
        after=after,
        most=ROWS,
    )
    return Partitions(
        catalog=where,
        database=page.table.dbName,
        table=page.table.tableName,
        keys=columns_of(page.table.partitionKeys),
        filter=filter,
        search=search,
        rows=[_listed(name, each) for name, each in page.rows],
        next=page.next,
    )


def _listed(name: str, each: Partition) -> ListedPartition:
    counts = each.parameters or {}
    rows, files, size = (_number(counts.get(key)) for key in ("numRows", "numFiles", "totalSize"))
    return ListedPartition(name, each.sd.location if each.sd is not None else None, (each.createTime or 0) * 1000, rows, files, size)


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isascii() and text.isdigit() and len(text) < 19 else None


@dataclass(frozen=True, slots=True)
class PartitionPageOfOne:
    """A partition; statistics are None where the visitor may not see them."""

    catalog: str
    database: str
    table: str
    name: str
    created: int
    storage: Storage | None
    parameters: dict[str, str]
    columns: list[Column]
    transactional: bool
    statistics: list[ColumnStatistics] | None


def partition(visit: Visit, database: str, table: str, name: str, catalog: str = "") -> PartitionPageOfOne:
    """Show a partition: its location, its parameters, its columns and their statistics."""
    where = catalog_of(visit, catalog)
    found: Partition = visit.run("get_partition_by_name", db_name=on_wire(visit, where, database), tbl_name=table, part_name=name)

    def statistics() -> list[ColumnStatistics]:
        names = [column.name for column in found.sd.cols or ()] if found.sd is not None else []
        asked = PartitionsStatsRequest(dbName=database, tblName=table, colNames=names, partNames=[name], catName=where, engine="hive")
        answer: Any = visit.run("get_aggr_stats_for", request=asked)
        return statistics_of(answer.colStats)

    return PartitionPageOfOne(
        catalog=where,
        database=database,
        table=table,
        name=name,
        created=(found.createTime or 0) * 1000,
        storage=storage_of(found),
        parameters=dict(sorted((found.parameters or {}).items())),
        columns=columns_of(found.sd.cols if found.sd is not None else None),
        transactional=is_transactional(find(visit, where, database, table)),
        statistics=unless_refused(statistics),
    )


@dataclass(frozen=True, slots=True)
class Statistics:
    """The known facts of the columns of a table; of one with partitions, each of them has its own."""

    catalog: str
    database: str
    table: str
    partitioned: bool
    counts: dict[str, str]
    columns: list[ColumnStatistics]


COUNTS = ("numRows", "numFiles", "totalSize", "rawDataSize", "COLUMN_STATS_ACCURATE")


def statistics(visit: Visit, database: str, table: str, catalog: str = "") -> Statistics:
    """Show the statistics of a table and its columns. They need SELECT."""
    where = catalog_of(visit, catalog)
    found = find(visit, where, database, table)
    names = [column.name for column in found.sd.cols or ()] if found.sd is not None else []
    request = TableStatsRequest(dbName=found.dbName, tblName=found.tableName, colNames=names, catName=where, engine="hive")
    answer: Any = visit.run("get_table_statistics_req", request=request)
    counts = {name: value for name in COUNTS if (value := (found.parameters or {}).get(name)) is not None}
    return Statistics(where, found.dbName, found.tableName, bool(found.partitionKeys), counts, statistics_of(answer.tableStats))
