"""Run CREATE TABLE for transactional tables: with columns, AS a query, LIKE another table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from metastore.rules.catalog.table_kinds import is_insert_only, is_transactional
from metastore.rules.catalog.transactional import ORC_SERDE
from metastore.spark.definition.making import make, make_from
from metastore.spark.definition.tables import Definition, WrongDefinition, checked, classes_of, divided, of_schema
from metastore.spark.dialect.session import Names, SqlSession
from metastore.spark.grammar.columns import Column
from metastore.spark.grammar.creating import CreateTable
from metastore.spark.session.catalog import AcidTableInfo

AS_ACID = "metastore.create.as.acid"
"""Setting of a session, as Hive 4 has it: a CREATE TABLE that names no other format makes a transactional table."""


def create(session: SqlSession, names: Names, statement: CreateTable, run: Callable[[str], DataFrame]) -> DataFrame | None:
    """Make a transactional table; None where the statement asks for another kind. `run` runs a query. WrongStatement, WrongDefinition."""
    place = names.place(statement.table)
    like = None if statement.like is None else names.find(statement.like)
    copies = isinstance(like, AcidTableInfo) and is_transactional(like.table)
    as_acid = str(session.spark.conf.get(AS_ACID, "false")).lower() == "true" and (statement.file_format or "orc").lower() == "orc"
    if place is None or not (statement.is_transactional or copies or (as_acid and not _refuses(statement))):
        return None
    session.outside("CREATE TABLE")
    options = {"if_not_exists": statement.if_not_exists, "replace": statement.replace}
    if isinstance(like, AcidTableInfo):
        make(session.spark, session.uri, checked(_like(statement, place, like)), **options)
    elif statement.query is None:
        make(session.spark, session.uri, _defined(statement, place, None), **options)
    else:
        rows = run(statement.query)
        make_from(session.spark, session.uri, _defined(statement, place, rows.schema), rows, **options)
    return session.nothing()


def _refuses(statement: CreateTable) -> bool:
    """Return whether a statement sets the property `transactional` itself: the session's setting does not apply then."""
    return any(name.lower() == "transactional" for name in statement.properties)


def _is_insert_only(statement: CreateTable) -> bool:
    kinds = [value.lower() for name, value in statement.properties.items() if name.lower() == "transactional_properties"]
    return kinds == ["insert_only"]


def _defined(statement: CreateTable, place: tuple[str, str], schema: StructType | None) -> Definition:
    """Return the definition that the statement describes; the columns are a query's where there is one."""
    if schema is not None and statement.columns.columns:
        raise WrongDefinition(f"{'.'.join(place)}: the columns of CREATE TABLE .. AS are those of its query: leave them out")
    given = statement.columns if schema is None else of_schema(schema)
    if schema is not None and any(column.kind for column in statement.keys.columns):
        raise WrongDefinition(f"{'.'.join(place)}: the columns of CREATE TABLE .. AS have their types: write PARTITIONED BY (name)")
    data, keys = divided(given.columns, statement.keys.columns)
    return checked(
        Definition(
            *place,
            tuple(data),
            tuple(keys),
            (*given.constraints, *statement.keys.constraints),
            tuple(statement.clustered_by),
            tuple(statement.sorted_by),
            statement.buckets,
            statement.comment,
            statement.properties,
            statement.location,
            _is_insert_only(statement),
            _classes(statement),
            statement.serde_properties,
        )
    )


def _classes(statement: CreateTable) -> tuple[str, str, str]:
    if statement.classes is None:
        input_format, output_format, serde = classes_of(statement.file_format or "orc")
        return input_format, output_format, statement.serde or serde
    return *statement.classes[:2], statement.serde or ORC_SERDE


def _like(statement: CreateTable, place: tuple[str, str], like: AcidTableInfo) -> Definition:
    """Return the definition of a table with the columns, partitions and buckets of another one."""
    sd = like.table.sd
    own = (
        {name: value for name, value in like.parameters.items() if name.startswith(("orc.", "compactor"))}
        if statement.is_transactional
        else {}
    )
    definition = Definition(
        *place,
        tuple(Column(each.name, each.type, each.comment) for each in sd.cols),
        tuple(Column(each.name, each.type, each.comment) for each in like.table.partitionKeys or []),
        clustered_by=tuple(like.bucket_columns),
        buckets=like.buckets,
        comment=statement.comment,
        properties={**own, **statement.properties},
        location=statement.location,
        insert_only=_is_insert_only(statement) or (is_insert_only(like.table) and "transactional_properties" not in statement.properties),
    )
    has_format = statement.file_format is not None or statement.classes is not None or not is_transactional(like.table)
    classes = _classes(statement) if has_format else (sd.inputFormat, sd.outputFormat, sd.serdeInfo.serializationLib)
    return replace(definition, classes=classes)
