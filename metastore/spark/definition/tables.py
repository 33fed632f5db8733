"""Describe a transactional table that is to be made, and ask the metastore for it as Hive does. This module writes no row.

defined("db", "t", "id bigint, name varchar(20)", partitioned_by="day date", clustered_by=["id"], buckets=4)
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.sql.types import DataType, NullType, StructType

from metastore.acid.folders.table import CAPABILITIES
from metastore.client import Client
from metastore.idl import CreateTableRequest, FieldSchema, Order, SerDeInfo, StorageDescriptor, Table
from metastore.rules.catalog.transactional import ORC_INPUT, ORC_OUTPUT, ORC_SERDE
from metastore.spark.definition.constraints import constraints_of
from metastore.spark.grammar.columns import Column, Columns, Constraint, columns
from metastore.spark.session.catalog import AcidTableInfo, hive_type

_TEXT = "org.apache.hadoop.mapred.TextInputFormat"
_TEXT_OUT = "org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat"
_PARQUET = "org.apache.hadoop.hive.ql.io.parquet"
_AVRO = "org.apache.hadoop.hive"
FORMATS = {
    "orc": (ORC_INPUT, ORC_OUTPUT, ORC_SERDE),
    "parquet": (f"{_PARQUET}.MapredParquetInputFormat", f"{_PARQUET}.MapredParquetOutputFormat", f"{_PARQUET}.serde.ParquetHiveSerDe"),
    "textfile": (_TEXT, _TEXT_OUT, "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe"),
    "avro": (
        f"{_AVRO}.ql.io.avro.AvroContainerInputFormat",
        f"{_AVRO}.ql.io.avro.AvroContainerOutputFormat",
        f"{_AVRO}.serde2.avro.AvroSerDe",
    ),
    "jsonfile": (_TEXT, _TEXT_OUT, "org.apache.hadoop.hive.serde2.JsonSerDe"),
}
"""Input format, output format and serde of the formats that Spark reads, by Hive's names for them."""
_NAMES = {"text": "textfile", "json": "jsonfile", "orcfile": "orc", "parquetfile": "parquet", "avrofile": "avro"}
_KIND = re.compile(
    r"(?:tiny|small|big)?int|boolean|float|double|string|binary|date|timestamp.*|decimal\(\d+,\d+\)|(?:var)?char\(\d+\)"
    r"|(?:array|map|struct)<(?!.*uniontype<).*>"
)
TRANSACTIONAL = ("transactional", "transactional_properties")


class WrongDefinition(ValueError):
    """A table can not be made as it was described; the text has the remedy."""


@dataclass(frozen=True)
class Definition:
    """A transactional table that is to be made."""

    database: str
    name: str
    columns: tuple[Column, ...]
    partition_columns: tuple[Column, ...] = ()
    constraints: tuple[Constraint, ...] = ()
    clustered_by: tuple[str, ...] = ()
    sorted_by: tuple[tuple[str, bool], ...] = ()
    """Columns to sort by, and whether each ascends."""
    buckets: int = 0
    comment: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    location: str | None = None
    insert_only: bool = False
    classes: tuple[str, str, str] = FORMATS["orc"]
    """Input format, output format, serde."""
    serde_properties: Mapping[str, str] = field(default_factory=dict)

    @property
    def full_name(self) -> str:
        return f"{self.database}.{self.name}"


def classes_of(file_format: str) -> tuple[str, str, str]:
    """Return input format, output format and serde of a format by its name, Hive's or Spark's. WrongDefinition."""
    name = file_format.lower()
    found = FORMATS.get(_NAMES.get(name, name))
    if found is None:
        raise WrongDefinition(f"transactional tables are not kept in the format {file_format!r}; use one of {', '.join(FORMATS)}")
    return found


def defined(
    database: str,
    name: str,
    schema: str | StructType,
    *,
    partitioned_by: str | Sequence[str] = (),
    clustered_by: str | Sequence[str] = (),
    buckets: int = 0,
    sorted_by: str | Sequence[str] = (),
    comment: str | None = None,
    properties: Mapping[str, str] | None = None,
    location: str | None = None,
    insert_only: bool = False,
    file_format: str = "orc",
) -> Definition:
    """Return the definition that the arguments of `AcidTable.create` describe. WrongDefinition, WrongStatement."""
    given = columns(schema) if isinstance(schema, str) else of_schema(schema)
    data, keys = divided(given.columns, _keys(partitioned_by))
    return checked(
        Definition(
            database,
            name,
            tuple(data),
            tuple(keys),
            tuple(given.constraints),
            tuple(each.lower() for each in _several(clustered_by)),
            tuple(_order(each) for each in _several(sorted_by)),
            buckets,
            comment,
            dict(properties or {}),
            location,
            insert_only,
            classes_of(file_format),
        )
    )


def _several(names: str | Sequence[str]) -> list[str]:
    return [part.strip() for part in names.split(",")] if isinstance(names, str) and names else list(names)


def _order(text: str) -> tuple[str, bool]:
    name, _, direction = text.partition(" ")
    if direction.strip().lower() not in ("", "asc", "desc"):
        raise WrongDefinition(f"sorted_by: {text!r} is not a column with `asc` or `desc`")
    return name.lower(), direction.strip().lower() != "desc"


def _keys(partitioned_by: str | Sequence[str]) -> list[Column]:
    text = partitioned_by if isinstance(partitioned_by, str) else ", ".join(partitioned_by)
    return columns(text, types=False).columns if text else []


def of_schema(schema: StructType) -> Columns:
    """Return the columns of a schema of Spark; comments are kept, nullability is not. WrongDefinition."""
    return Columns(
        [Column(each.name.lower(), _hive_type(each.name, each.dataType), (each.metadata or {}).get("comment")) for each in schema]
    )


def _has_no_type(kind: DataType) -> bool:
    if isinstance(kind, StructType):
        return any(_has_no_type(each.dataType) for each in kind)
    inner = [getattr(kind, name) for name in ("elementType", "keyType", "valueType") if hasattr(kind, name)]
    return isinstance(kind, NullType) or any(map(_has_no_type, inner))


def _hive_type(name: str, kind: DataType) -> str:
    if _has_no_type(kind):
        raise WrongDefinition(f"column {name} has no type: cast the null, as in cast(null as string)")
    return hive_type(kind)


def divided(given: Sequence[Column], keys: Sequence[Column]) -> tuple[list[Column], list[Column]]:
    """Return data and partition columns; a key that is named alone is one of the columns that were given. WrongDefinition."""
    there = {column.name: column for column in given}
    named = [key.name for key in keys if not key.kind]
    if unknown := [name for name in named if name not in there]:
        raise WrongDefinition(f"the partition column {', '.join(unknown)} is not among the columns and has no type: write `name type`")
    return [each for each in given if each.name not in named], [key if key.kind else there[key.name] for key in keys]


def checked(definition: Definition) -> Definition:
    """Return a definition that is sound in itself. WrongDefinition."""
    what = definition.full_name
    names = [column.name for column in [*definition.columns, *definition.partition_columns]]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise WrongDefinition(f"{what}: the column {', '.join(twice)} is given twice")
    if not definition.columns:
        raise WrongDefinition(f"{what}: no column is left besides the partition columns: give at least one")
    for column in (*definition.columns, *definition.partition_columns):
        if not _KIND.fullmatch(column.kind):
            raise WrongDefinition(f"{what}: column {column.name}: {column.kind} is not a type that transactional tables on Spark have")
    data = {column.name for column in definition.columns}
    if unknown := [name for name in (*definition.clustered_by, *(name for name, _ in definition.sorted_by)) if name not in data]:
        raise WrongDefinition(f"{what}: there is no column {', '.join(unknown)} to cluster or sort by; the columns are {', '.join(data)}")
    if bool(definition.clustered_by) != (definition.buckets > 0):
        raise WrongDefinition(f"{what}: columns to cluster by and the number of buckets belong together: give both, or neither")
    if definition.sorted_by and not definition.clustered_by:
        raise WrongDefinition(f"{what}: rows are sorted within buckets: give columns to cluster by, and how many buckets")
    if definition.sorted_by and not definition.insert_only:
        raise WrongDefinition(
            f"{what}: files of full ACID tables are sorted by row ids: leave SORTED BY out, or make the table insert-only"
        )
    if not definition.insert_only and definition.classes[:2] != (ORC_INPUT, ORC_OUTPUT):
        raise WrongDefinition(f"{what}: full ACID tables are ORC: write STORED AS ORC, or make the table insert-only")
    _check_constraints(definition, set(names))
    return definition


def _check_constraints(definition: Definition, names: set[str]) -> None:
    for each in definition.constraints:
        said = f"{definition.full_name}: the constraint {each.kind} ({each.text or ', '.join(each.columns)})"
        if unknown := [name for name in each.columns if name not in names]:
            raise WrongDefinition(f"{said} is on {', '.join(unknown)}, which is not a column")
        if each.enable and each.kind in ("PRIMARY", "UNIQUE", "FOREIGN"):
            raise WrongDefinition(f"{said} can not be enforced: write DISABLE NOVALIDATE behind it")


def table_of(definition: Definition, owner: str) -> Table:
    """Return the table that the metastore is asked to make."""
    properties = {key: value for key, value in definition.properties.items() if key.lower() not in TRANSACTIONAL}
    properties |= {"transactional": "true", "transactional_properties": "insert_only" if definition.insert_only else "default"}
    if definition.comment is not None:
        properties["comment"] = definition.comment
    input_format, output_format, serde = definition.classes
    return Table(
        dbName=definition.database,
        tableName=definition.name,
        owner=owner,
        tableType="MANAGED_TABLE",
        partitionKeys=[_field(column) for column in definition.partition_columns],
        parameters={"bucketing_version": "2", **properties},
        sd=StorageDescriptor(
            cols=[_field(column) for column in definition.columns],
            location=definition.location,
            inputFormat=input_format,
            outputFormat=output_format,
            compressed=False,
            numBuckets=definition.buckets or -1,
            bucketCols=list(definition.clustered_by),
            sortCols=[Order(col=name, order=1 if ascending else 0) for name, ascending in definition.sorted_by],
            serdeInfo=SerDeInfo(serializationLib=serde, parameters={"serialization.format": "1", **definition.serde_properties}),
            parameters={},
        ),
    )


def _field(column: Column) -> FieldSchema:
    return FieldSchema(name=column.name, type=column.kind, comment=column.comment)


def create(client: Client, definition: Definition, owner: str) -> None:
    """Create a table. AlreadyExistsException, NoSuchObjectException for its database, and other errors of create_table."""
    request = CreateTableRequest(
        table=table_of(definition, owner), processorCapabilities=CAPABILITIES, processorIdentifier="metastore-spark"
    )
    for kind, listed in constraints_of(definition.database, definition.name, definition.constraints).items():
        setattr(request, kind, listed)
    client.create_table_req(request)


def check_replaceable(definition: Definition, there: AcidTableInfo) -> None:
    """Raise WrongDefinition where a definition can not replace an existing table without a drop."""
    old = there.table
    wanted = table_of(definition, "")
    same = (
        [(each.name, each.type) for each in old.sd.cols] == [(each.name, each.type) for each in wanted.sd.cols]
        and [(each.name, each.type) for each in old.partitionKeys or []] == [(each.name, each.type) for each in wanted.partitionKeys]
        and there.bucket_columns == list(definition.clustered_by)
        and there.buckets == definition.buckets
        and old.sd.serdeInfo.serializationLib == definition.classes[2]
        and there.is_insert_only == definition.insert_only
        and not definition.constraints
        and definition.location in (None, old.sd.location)
    )
    if not same:
        raise WrongDefinition(
            f"{there.full_name} has other columns, partition columns, buckets, constraints, location or format than the new table, so "
            "it can not be replaced: drop it first"
        )


def replaced(definition: Definition, there: AcidTableInfo) -> Table:
    """Return an existing table with the properties and comment of the definition that replaces it."""
    wanted = table_of(definition, "").parameters
    table = there.table
    kept = {key: value for key, value in there.parameters.items() if key in TRANSACTIONAL or key.startswith("_meta")}
    table.parameters = {**wanted, **kept}
    return table
