"""`df.write` and `df.writeTo` for transactional tables; each function returns False where Spark is to do it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import Column, DataFrame

from metastore.spark.definition.tables import WrongDefinition
from metastore.spark.dialect.session import Names, SqlSession
from metastore.spark.dialect.sources import in_quotes
from metastore.spark.grammar.tokens import WrongStatement
from metastore.spark.session.catalog import AcidTableInfo, WrongColumns, name_parts
from metastore.spark.session.connections import connected
from metastore.spark.table import AcidTable
from metastore.spark.transaction.spark_transaction import SparkTransaction

_FORMATS = (None, "orc", "hive", "hive_acid")


@dataclass
class Said:
    """The settings of a writer so far."""

    table: str = ""
    mode: str | None = None
    format: str | None = None
    options: dict[str, str] = field(default_factory=dict)
    partitioned_by: list[str] = field(default_factory=list)
    clustered_by: list[str] = field(default_factory=list)
    buckets: int = 0

    def is_transactional(self) -> bool:
        """Return whether a table that the writer makes is to be transactional."""
        return any(name.lower() == "transactional" and str(value).lower() == "true" for name, value in self.options.items())


def column_name(column: Column | str) -> str:
    """Return the name of a column. WrongDefinition for an expression that is more than a column, such as `days(d)`."""
    java: Any = column
    text = column if isinstance(column, str) else str(java._jc.toString())  # noqa: SLF001  # PySpark shows it no other way
    try:
        (name,) = name_parts(text)
    except ValueError as error:
        raise WrongDefinition(f"transactional tables are partitioned by columns, not by {text}: add a column with its value") from error
    return name


@contextmanager
def _target(frame: DataFrame, name: str) -> Iterator[tuple[SqlSession, AcidTableInfo | None]]:
    """Yield the session, and the transactional table of a name, None where it is none."""
    session = SqlSession.of(frame.sparkSession)
    with connected(session.uri) as client:
        yield session, Names(session, client).transactional(name_parts(name))


def _table(transaction: SparkTransaction, info: AcidTableInfo) -> AcidTable:
    return AcidTable.within(transaction, info.database, info.name)


def insert_into(frame: DataFrame, name: str, *, overwrite: bool) -> bool:
    """Insert rows by position; with `overwrite` they replace others."""
    with _target(frame, name) as (session, info):
        if info is None:
            return False
        columns = info.schema.names
        if len(columns) != len(frame.columns):
            raise WrongColumns(
                f"{info.full_name} has the columns {', '.join(columns)}, and the rows have {len(frame.columns)} columns: "
                "insertInto matches columns by position"
            )
        rows = frame.toDF(*columns)
        with session.writing() as transaction:
            (_table(transaction, info).insert_overwrite if overwrite else _table(transaction, info).insert)(rows)
    return True


def save_as_table(frame: DataFrame, said: Said) -> bool:
    """Make a transactional table of the rows, or add them to one that is there, or replace its rows."""
    with _target(frame, said.table) as (session, info):
        mode = (said.mode or "error").lower()
        if info is None:
            if not said.is_transactional():
                return False
            _create(session, frame, said, if_not_exists=mode == "ignore")
        elif mode == "append":
            with session.writing() as transaction:
                _table(transaction, info).insert(frame)
        elif mode != "ignore":
            _create(session, frame, said, replace=mode == "overwrite", there=info)
    return True


def _create(
    session: SqlSession,
    frame: DataFrame,
    said: Said,
    *,
    if_not_exists: bool = False,
    replace: bool = False,
    there: AcidTableInfo | None = None,
) -> None:
    session.outside("the creation of a table")
    options = {
        name: value for name, value in said.options.items() if name.lower() not in ("transactional", "transactional_properties", "path")
    }
    kinds = [str(value).lower() for name, value in said.options.items() if name.lower() == "transactional_properties"]
    insert_only = kinds == ["insert_only"] or (there is not None and not kinds and there.is_insert_only)
    if not insert_only and (said.format or "").lower() not in ("", *filter(None, _FORMATS)):
        raise WrongDefinition(
            f"{said.table}: full ACID tables are ORC, not {said.format}: leave the format out, or write "
            "transactional_properties=insert_only"
        )
    keys, buckets = said.partitioned_by, (said.clustered_by, said.buckets)
    if there is not None:  # partition and bucket columns that are not given stay, if the rows have them
        columns = {name.lower() for name in frame.columns}
        keys = keys or [name for name in there.partition_columns.names if name in columns]
        if not said.buckets and columns.issuperset(there.bucket_columns):
            buckets = there.bucket_columns, there.buckets
    AcidTable.createFrom(
        frame,
        said.table,
        clustered_by=buckets[0],
        buckets=buckets[1],
        properties=options,
        location=next((value for name, value in said.options.items() if name.lower() == "path"), None),
        insert_only=insert_only,
        file_format=said.format if insert_only and said.format not in _FORMATS else "orc",
        if_not_exists=if_not_exists,
        replace=replace,
        uri=session.uri,
        partitioned_by=[in_quotes(name) for name in keys],
    )


def create(frame: DataFrame, said: Said, *, replace: bool, must_be_there: bool) -> bool:
    """Do `create`, `createOrReplace` (`replace`) or `replace` (`must_be_there` too) of `writeTo`."""
    with _target(frame, said.table) as (session, info):
        if info is None and not said.is_transactional():
            return False
        if info is None and must_be_there:
            raise WrongStatement(f"{said.table} does not exist and can not be replaced: create() or createOrReplace() creates it")
        _create(session, frame, said, replace=replace, there=info)
    return True


def append(frame: DataFrame, name: str) -> bool:
    """Insert by name."""
    with _target(frame, name) as (session, info):
        if info is None:
            return False
        with session.writing() as transaction:
            _table(transaction, info).insert(frame)
    return True


def overwrite_partitions(frame: DataFrame, name: str) -> bool:
    """Replace the rows of the partitions of the new rows."""
    with _target(frame, name) as (session, info):
        if info is None:
            return False
        with session.writing() as transaction:
            _table(transaction, info).insert_overwrite(frame)
    return True


def overwrite(frame: DataFrame, name: str, condition: Column) -> bool:
    """Replace the rows for which a condition holds."""
    with _target(frame, name) as (session, info):
        if info is None:
            return False
        with session.writing(steps=2) as transaction:
            table = _table(transaction, info)
            table.delete(condition)
            table.insert(frame)
    return True


def flat(names: Sequence[Any]) -> list[str]:
    """Return names that were given one by one or as one list."""
    return [str(name) for name in (names[0] if len(names) == 1 and isinstance(names[0], (list, tuple)) else names)]
