"""Short forms with which tests make databases, tables and partitions in a metastore of their own process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from copy import copy

from metastore.idl import Database, FieldSchema, Partition, SerDeInfo, StorageDescriptor, Table
from metastore.service.call.context import Call, Client, Metastore
from metastore.service.call.names import TableName

MetastoreMaker = Callable[..., Metastore]
Statements = Callable[[], AbstractContextManager[list[str]]]


def call_of(metastore: Metastore, method: str = "test", user: str = "alice") -> Call:
    """Return a call as the wire makes it."""
    return Call(metastore, Client("127.0.0.1:1", user=user), method)


def columns_of(*columns: tuple[str, str]) -> list[FieldSchema]:
    """Return columns without comments."""
    return [FieldSchema(name=name, type=kind) for name, kind in columns]


def make_database(call: Call, name: str) -> None:
    """Make a database at its default place."""
    from metastore.service.catalog.databases import create_database

    create_database(call, Database(name=name))


def make_table(
    call: Call,
    name: str,
    columns: Sequence[tuple[str, str]] = (("a", "int"), ("b", "string")),
    keys: Sequence[tuple[str, str]] = (),
    database: str = "default",
    kind: str = "MANAGED_TABLE",
    parameters: dict[str, str] | None = None,
    **options: object,
) -> TableName:
    """Make a table and return its full name; further options are those of `create_table`."""
    from metastore.service.catalog.tables.create_table import create_table

    sd = StorageDescriptor(
        cols=columns_of(*columns),
        inputFormat="in",
        outputFormat="out",
        serdeInfo=SerDeInfo(serializationLib="lib", parameters={}),
        parameters={},
    )
    table = Table(
        dbName=database,
        tableName=name,
        owner="alice",
        sd=sd,
        partitionKeys=columns_of(*keys),
        parameters=parameters or {},
        tableType=kind,
    )
    create_table(call, table, **options)  # type: ignore[arg-type]
    return TableName(call.config.default_catalog, database, name)


def add_partitions(call: Call, name: TableName, values: Sequence[Sequence[str]], parameters: dict[str, str] | None = None) -> None:
    """Add partitions that look like the table, at their default places."""
    from metastore.service.catalog.partitions.add_partitions import add_partitions as add
    from metastore.service.catalog.tables.tables import get_table

    sd = copy(get_table(call, name).sd)
    sd.location = None  # type: ignore[assignment]  # the default place
    add(
        call,
        name,
        [
            Partition(
                values=list(each),
                dbName=name.database,
                tableName=name.table,
                catName=name.catalog,
                parameters=dict(parameters or {}),
                sd=sd,
            )
            for each in values
        ],
    )
