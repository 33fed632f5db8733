"""The page of a table: its definition, its location, the privileges on it, and the activity on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from metastore.console.ddl import create_statement
from metastore.console.pages.asking import catalog_of, locks, unless_refused
from metastore.console.pages.compactions import FROM_THE_END, Compaction, compaction_of
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
    PrincipalType,
    SQLAllTableConstraints,
    Table,
)
from metastore.rules.catalog.table_kinds import is_transactional
from metastore.service.catalog.iceberg import LOCATION, is_iceberg


@dataclass(frozen=True, slots=True)
class Column:
    """A column, or a partition key."""

    name: str
    type: str
    comment: str | None


@dataclass(frozen=True, slots=True)
class Storage:
    """The location and format of the data."""

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
    """The target of a foreign key, the value of a default, the text of a check."""


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
    """A number as text: a browser would round it in JSON."""
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
        columns=columns_of(found.sd.cols if found.sd is not None else None),
        partition_keys=columns_of(found.partitionKeys),
        storage=storage_of(found),
        parameters=dict(sorted((found.parameters or {}).items())),
        ddl=create_statement(found),
        transactional=is_transactional(found),
        iceberg=_snapshots(visit, where, found) if is_iceberg(found) else None,
        constraints=unless_refused(lambda: _constraints(visit, where, found)),
        grants=unless_refused(lambda: _grants(visit, where, found)),
        locks=locks(visit, found.dbName, found.tableName) if where == visit.default_catalog else [],
        compactions=[compaction_of(entry) for entry in shown.rows] if shown is not None else [],
    )


def columns_of(columns: Any) -> list[Column]:
    """Return columns as pages show them."""
    return [Column(each.name, each.type, each.comment) for each in columns or ()]


def storage_of(found: Table | Partition) -> Storage | None:
    """Return the location of a table or partition; None for one without files."""
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
