"""A metastore on each database, and what the tests of its services share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from copy import copy
from pathlib import Path

import pytest

from metastore.app import build, close
from metastore.config import Config
from metastore.idl import Database, FieldSchema, Partition, SerDeInfo, StorageDescriptor, Table
from metastore.service.catalogs import create_startup_objects
from metastore.service.context import Call, Client, Metastore
from metastore.service.names import TableName

MetastoreMaker = Callable[..., Metastore]
Statements = Callable[[], AbstractContextManager[list[str]]]


@pytest.fixture
def make_metastore(database_url: str, tmp_path: Path) -> Iterator[MetastoreMaker]:
    """Make further servers on one database; options are settings."""
    made: list[Metastore] = []

    def make(**settings: object) -> Metastore:
        config = Config(
            **{
                "db": database_url,
                "warehouse": str(tmp_path / "warehouse"),
                "data_directory": str(tmp_path / "data"),
                **settings,
            }
        )  # type: ignore[arg-type]  # names of settings
        made.append(build(config))
        return made[-1]

    yield make
    for metastore in made:
        close(metastore)


@pytest.fixture
def metastore(make_metastore: MetastoreMaker) -> Metastore:
    """A metastore with its startup objects and nothing else; its warehouse lies in tmp_path."""
    made = make_metastore()
    create_startup_objects(made)
    return made


def call_of(metastore: Metastore, method: str = "test", user: str = "alice") -> Call:
    """Return a call as the wire makes it."""
    return Call(metastore, Client("127.0.0.1:1", user=user), method)


@pytest.fixture
def call(metastore: Metastore) -> Call:
    """A call of the user alice."""
    return call_of(metastore)


@pytest.fixture
def logged(make_metastore: MetastoreMaker) -> Call:
    """A call to a server whose messages of the notification log are plain."""
    return call_of(make_metastore(event_message_format="json-0.2"))


@pytest.fixture
def statements(metastore: Metastore) -> Statements:
    """Make a context in which the texts of all statements are collected in a list."""

    @contextmanager
    def collect() -> Iterator[list[str]]:
        seen: list[str] = []
        metastore.database.observer = seen.append
        try:
            yield seen
        finally:
            metastore.database.observer = None

    return collect


def columns_of(*columns: tuple[str, str]) -> list[FieldSchema]:
    """Return columns without comments."""
    return [FieldSchema(name=name, type=kind) for name, kind in columns]


def make_database(call: Call, name: str) -> None:
    """Make a database at its default place."""
    from metastore.service.databases import create_database

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
    from metastore.service.create_table import create_table

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
    from metastore.service.add_partitions import add_partitions as add
    from metastore.service.tables import get_table

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
