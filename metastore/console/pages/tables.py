"""Pages of a table: what it is, its partitions, its statistics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from metastore.console.ddl import create_statement
from metastore.console.pages.asking import ROWS, catalog_of, locks, on_wire, unless_refused
from metastore.console.pages.compactions import FROM_THE_END, Compaction, compaction_of
from metastore.console.pages.statistics import ColumnStatistics, statistics_of
from metastore.console.visit import Visit
from metastore.console.waits import Lock
from metastore.errors import MetastoreError
from metastore.idl import (
    AllTableConstraintsRequest,
    ClientCapabilities,
    ClientCapability,
    GetTableRequest,
    HiveObjectRef,
    HiveObjectType,
    Partition,
    PartitionsStatsRequest,
    PrincipalType,
    SQLAllTableConstraints,
    Table,
    TableStatsRequest,
)
from metastore.rules.table_kinds import is_transactional
from metastore.service.browsing import PartitionPage
from metastore.service.iceberg import LOCATION, is_iceberg


@dataclass(frozen=True, slots=True)
class Column:
    """A column, or a partition key."""

    name: str
    type: str
    comment: str | None


@dataclass(frozen=True, slots=True)
class Storage:
    """Where and in which format the data lies."""

    location: str | None
    input_format: str | None
    output_format: str | None
    serde: str | None
    serde_parameters: dict[str, str]
    buckets: int
    bucket_columns: list[str]


@dataclass(frozen=True, slots=True)
class Constraint:
    """A constraint of the table."""

    kind: str
    name: str
    columns: list[str]
    detail: str
    """What a foreign key refers to, a default's value, what is checked."""


@dataclass(frozen=True, slots=True)
class Grant:
    """A privilege on the table that somebody holds."""

    principal: str
    kind: str
    privilege: str
    grant_option: bool
    grantor: str | None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A snapshot of an Iceberg table; time in milliseconds."""

    id: str
    """A number that JSON of a browser would round."""
    parent: str | None
    time: int
    operation: str | None
    summary: dict[str, str]
    current: bool
    refs: list[str]


@dataclass(frozen=True, slots=True)
class Snapshots:
    """The last snapshots of an Iceberg table, or why they can not be shown."""

    metadata: str | None
    number: int
    rows: list[Snapshot]
    problem: str


@dataclass(frozen=True, slots=True)
class TablePage:
    """A table; None for parts that the visitor may not see."""

    catalog: str
    database: str
    name: str
    type: str
    owner: str | None
    created: int
    """In milliseconds."""
    columns: list[Column]
    partition_keys: list[Column]
    storage: Storage | None
    parameters: dict[str, str]
    ddl: str
    transactional: bool
    iceberg: Snapshots | None
    """None for tables of another kind."""
    constraints: list[Constraint] | None
    grants: list[Grant] | None
    locks: list[Lock]
    compactions: list[Compaction]


def find(visit: Visit, catalog: str, database: str, name: str) -> Table:
    """Return a table."""
    everything = ClientCapabilities(values=[ClientCapability.INSERT_ONLY_TABLES])
    found: Any = visit.run("get_table_req", req=GetTableRequest(dbName=database, tblName=name, catName=catalog, capabilities=everything))
    table: Table = found.table
    return table


def table(visit: Visit, database: str, name: str, catalog: str = "") -> TablePage:
    """Show a table: columns, storage, parameters, statement, constraints, grants, locks, compactions."""
    where = catalog_of(visit, catalog)
    found = find(visit, where, database, name)
    own = {"catalog": where, "database": found.dbName, "table": found.tableName}
    shown: Any = visit.run("show_compactions_page", filters=own, before=FROM_THE_END, most=10) if is_transactional(found) else None
    return TablePage(
        catalog=where,
        database=found.dbName,
        name=found.tableName,
        type=found.tableType,
        owner=found.owner,
        created=(found.createTime or 0) * 1000,
        columns=_columns(found.sd.cols if found.sd is not None else None),
        partition_keys=_columns(found.partitionKeys),
        storage=_storage(found),
        parameters=dict(sorted((found.parameters or {}).items())),
        ddl=create_statement(found),
        transactional=is_transactional(found),
        iceberg=_snapshots(visit, where, found) if is_iceberg(found) else None,
        constraints=unless_refused(lambda: _constraints(visit, where, found)),
        grants=unless_refused(lambda: _grants(visit, where, found)),
        locks=locks(visit, found.dbName, found.tableName) if where == visit.default_catalog else [],
        compactions=[compaction_of(entry) for entry in shown.rows] if shown is not None else [],
    )


def _columns(columns: Any) -> list[Column]:
    return [Column(each.name, each.type, each.comment) for each in columns or ()]


def _storage(found: Table | Partition) -> Storage | None:
    sd = found.sd
    if sd is None:
        return None
    serde = sd.serdeInfo
    return Storage(
        location=sd.location,
        input_format=sd.inputFormat,
        output_format=sd.outputFormat,
        serde=serde.serializationLib if serde is not None else None,
        serde_parameters=dict(sorted((serde.parameters or {}).items())) if serde is not None else {},
        buckets=max(sd.numBuckets or 0, 0),
        bucket_columns=list(sd.bucketCols or ()),
    )


MOST_SNAPSHOTS = 50


def _snapshots(visit: Visit, where: str, found: Table) -> Snapshots:
    place = (found.parameters or {}).get(LOCATION)
    try:
        every = visit.run("show_snapshots", catalog=where, database=found.dbName, table=found.tableName)
    except MetastoreError as error:
        return Snapshots(place, 0, [], error.message)
    rows = [Snapshot(str(each.id), None if each.parent is None else str(each.parent), *each[2:]) for each in every[:MOST_SNAPSHOTS]]
    return Snapshots(place, len(every), rows, "")


def _constraints(visit: Visit, where: str, found: Table) -> list[Constraint]:
    request = AllTableConstraintsRequest(dbName=found.dbName, tblName=found.tableName, catName=where)
    answer: Any = visit.run("get_all_table_constraints", request=request)
    every: SQLAllTableConstraints = answer.allTableConstraints
    out: dict[tuple[str, str], Constraint] = {}

    def add(kind: str, name: str, column: str, detail: str = "") -> None:
        out.setdefault((kind, name), Constraint(kind, name, [], detail)).columns.append(column)

    for primary in every.primaryKeys or ():
        add("primary key", primary.pk_name, primary.column_name)
    for foreign in every.foreignKeys or ():
        add("foreign key", foreign.fk_name, foreign.fkcolumn_name, f"{foreign.pktable_db}.{foreign.pktable_name} ({foreign.pkcolumn_name})")
    for unique in every.uniqueConstraints or ():
        add("unique", unique.uk_name, unique.column_name)
    for present in every.notNullConstraints or ():
        add("not null", present.nn_name, present.column_name)
    for default in every.defaultConstraints or ():
        add("default", default.dc_name, default.column_name, default.default_value or "")
    for check in every.checkConstraints or ():
        add("check", check.dc_name, check.column_name, check.check_expression or "")
    return list(out.values())


def _grants(visit: Visit, where: str, found: Table) -> list[Grant]:
    ref = HiveObjectRef(objectType=HiveObjectType.TABLE, dbName=found.dbName, objectName=found.tableName, catName=where)
    held: Any = visit.run("list_privileges", principal_name=None, principal_type=None, hiveObject=ref)
    kinds = {PrincipalType.USER: "user", PrincipalType.GROUP: "group", PrincipalType.ROLE: "role"}
    return [
        Grant(
            each.principalName,
            kinds.get(each.principalType, str(each.principalType)),
            each.grantInfo.privilege,
            bool(each.grantInfo.grantOption),
            each.grantInfo.grantor,
        )
        for each in held
    ]


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
        keys=_columns(page.table.partitionKeys),
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
    """Show a partition: where it lies, its parameters, its columns and their statistics."""
    where = catalog_of(visit, catalog)
    found: Partition = visit.run("get_partition_by_name", db_name=on_wire(visit, where, database), tbl_name=table, part_name=name)

    def statistics() -> list[ColumnStatistics]:
        names = [column.name for column in found.sd.cols or ()] if found.sd is not None else []
        asked = PartitionsStatsRequest(dbName=database, tblName=table, colNames=names, partNames=[name], catName=where)
        answer: Any = visit.run("get_aggr_stats_for", request=asked)
        return statistics_of(answer.colStats)

    return PartitionPageOfOne(
        catalog=where,
        database=database,
        table=table,
        name=name,
        created=(found.createTime or 0) * 1000,
        storage=_storage(found),
        parameters=dict(sorted((found.parameters or {}).items())),
        columns=_columns(found.sd.cols if found.sd is not None else None),
        transactional=is_transactional(find(visit, where, database, table)),
        statistics=unless_refused(statistics),
    )


@dataclass(frozen=True, slots=True)
class Statistics:
    """What is known of the columns of a table; of one with partitions, each of them has its own."""

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
    request = TableStatsRequest(dbName=found.dbName, tblName=found.tableName, colNames=names, catName=where)
    answer: Any = visit.run("get_table_statistics_req", request=request)
    counts = {name: value for name in COUNTS if (value := (found.parameters or {}).get(name)) is not None}
    return Statistics(where, found.dbName, found.tableName, bool(found.partitionKeys), counts, statistics_of(answer.tableStats))
