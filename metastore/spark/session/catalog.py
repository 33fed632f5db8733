"""A transactional table as the metastore describes it, in Spark's terms: columns, partitions, kind, format. Never reads data."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property

from pyspark.sql import SparkSession
from pyspark.sql.types import (
    ArrayType,
    DataType,
    MapType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
    _parse_datatype_string,
)

from metastore.acid.folders.table import Folder, NotTransactional, TableInfo
from metastore.acid.partitions import found
from metastore.acid.values.exact import Changed, named_once
from metastore.client import Client
from metastore.errors import InvalidObject, MetaError
from metastore.idl import Partition
from metastore.rules.values.partition_names import canonical_name, partition_values, values_for_keys
from metastore.rules.values.partition_values import can_hold, hive_name
from metastore.rules.values.types import HiveType, parse_type, written

URI_SETTINGS = ("spark.hadoop.hive.metastore.uris", "spark.hive.metastore.uris")
_NAME_PART = re.compile(r"`((?:[^`]|``)+)`|([^`.]+)")
_NAME = re.compile(rf"(?:{_NAME_PART.pattern})(?:\.(?:{_NAME_PART.pattern}))*")
_CONSTANT = re.compile(r"""(?P<quote>['"])(?:[^'"\\]|\\.|(?!(?P=quote))['"]|(?P=quote){2})*(?P=quote)|`(?:[^`]|``)*`""", re.DOTALL)

FORMATS: tuple[tuple[str, str], ...] = (
    ("parquet", "parquet"),
    ("orc", "orc"),
    ("avro", "avro"),
    ("json", "json"),
    ("opencsv", "csv"),
    ("lazysimple", "text"),
)
"""Part of a serde's class name, in lower case, and Spark's name for the format."""


class WrongColumns(ValueError):
    """The rows or values that were given do not fit the table's columns."""


class NeedsSpark4(ImportError):
    """The installed release of Spark has no Python data sources."""


def as_hive_writes(partition_filter: str) -> str:
    """Return a filter on partition columns whose texts with quotes in them are in the other quotes: Hive's filters allow no other way.

    SQL writes the quote twice, or a backslash before it. WrongColumns for a text with quotes of both kinds.
    """

    def constant(match: re.Match[str]) -> str:
        quote, text = match["quote"], match[0]
        if quote is None or quote not in text[1:-1]:
            return text
        content, other = text[1:-1].replace(quote * 2, quote).replace(f"\\{quote}", quote), "\"'"[quote == '"']
        if other in content:
            raise WrongColumns(f"{text}: a filter of the metastore can not hold both kinds of quotes; use toDF().where(..)")
        return other + content + other

    return _CONSTANT.sub(constant, partition_filter)


def metastore_uri(spark: SparkSession) -> str:
    """Return the address of the metastore that a Spark session uses. ValueError when none is set, and for a session of Spark Connect."""
    if ".connect." in type(spark).__module__:
        raise ValueError(
            "a session of Spark Connect has no JVM, in which transactional tables are read and written: use format('hive_acid') there, "
            "or a session without Spark Connect"
        )
    for name in URI_SETTINGS:
        if uri := spark.conf.get(name, None):
            return uri
    uri = spark._jsc.hadoopConfiguration().get("hive.metastore.uris")  # noqa: SLF001  # where hive-site.xml and spark.hadoop.* end
    if not uri:
        raise ValueError("The session of Spark has no metastore: set spark.hadoop.hive.metastore.uris=thrift://HOST:9083")
    return str(uri)


def name_parts(name: str) -> list[str]:
    """Return the parts of a name that dots divide; a part may be in back quotes, within which dots do not divide it. ValueError."""
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name!r} is not a name: separate its parts by dots, and put a part with other characters in back quotes")
    return [inner.replace("``", "`") or plain for inner, plain in _NAME_PART.findall(name)]


def split_table_name(name: str) -> tuple[str | None, str]:
    """Return database, if named, and table of `table`, `database.table` or `spark_catalog.database.table`, in lower case. ValueError."""
    parts = name_parts(name)
    if len(parts) > 3 or (len(parts) == 3 and parts[0].lower() != "spark_catalog"):
        raise ValueError(f"{name!r} names no table of the metastore: give database.table")
    return parts[-2].lower() if len(parts) > 1 else None, parts[-1].lower()


def table_name(spark: SparkSession, name: str) -> tuple[str, str]:
    """Return database and table that a name means in a session. ValueError."""
    database, table = split_table_name(name)
    return database or spark.catalog.currentDatabase().lower(), table


def ddl_type(text: str) -> str:
    """Return one of Hive's types as Spark writes it, for any kind of timestamp in the session; char and varchar are strings."""
    try:
        return written(parse_type(text), _primitive)
    except MetaError:  # Spark names the fault
        return text


def _primitive(kind: HiveType) -> str:
    if kind.name in ("timestamp", "timestamp with time zone"):
        return "timestamp_ltz"
    if kind.name in ("char", "varchar"):
        return "string"
    return f"{kind.name}({','.join(map(str, kind.parameters))})" if kind.parameters else kind.name


def spark_type(text: str) -> DataType:
    """Return Spark's type for one of Hive's. ParseException for a union."""
    return _parse_datatype_string(ddl_type(text))


def hive_type(kind: DataType) -> str:
    """Return one of Spark's types as Hive writes it."""
    if isinstance(kind, StructType):
        return f"struct<{','.join(f'{field.name}:{hive_type(field.dataType)}' for field in kind)}>"
    if isinstance(kind, MapType):
        return f"map<{hive_type(kind.keyType)},{hive_type(kind.valueType)}>"
    if isinstance(kind, ArrayType):
        return f"array<{hive_type(kind.elementType)}>"
    return "timestamp" if isinstance(kind, TimestampType | TimestampNTZType) else kind.simpleString()


class AcidTableInfo(TableInfo):
    """A transactional table as the metastore describes it, in Spark's terms."""

    @cached_property
    def columns(self) -> StructType:
        """The data columns."""
        return StructType([StructField(column.name, spark_type(column.type)) for column in self.table.sd.cols])

    @cached_property
    def partition_columns(self) -> StructType:
        return StructType([StructField(key.name, spark_type(key.type)) for key in self.table.partitionKeys or []])

    @cached_property
    def schema(self) -> StructType:
        """Data columns, then partition columns, as Hive shows them."""
        return StructType([*self.columns.fields, *self.partition_columns.fields])

    @cached_property
    def format(self) -> tuple[str, dict[str, str]]:
        """Spark's format of an insert-only table's files, with options. NotTransactional for one that Spark does not read."""
        serde = self.table.sd.serdeInfo
        library, parameters = serde.serializationLib or "", serde.parameters or {}
        for part, name in FORMATS:
            if part in library.lower():
                return name, _csv_options(parameters) if name == "csv" else {}
        raise NotTransactional(f"{self.full_name}: Spark has no reader for {library}")

    def given(self, names: Sequence[str]) -> dict[str, str]:
        """Return the columns of rows that are to be written, by their names in lower case. WrongColumns for one that is there twice."""
        try:
            return named_once([(name.lower(), name) for name in names])
        except Changed as error:
            raise WrongColumns(f"{self.full_name}: the column {error} by the rows") from error

    def folders(self, client: Client, partition_filter: str | None = None) -> list[Folder]:
        """Return the folders of the rows; `partition_filter`, as in get_partitions_by_filter, selects partitions. MetaException."""
        if not self.table.partitionKeys:
            return [Folder(self.location)]
        if partition_filter:
            text = as_hive_writes(partition_filter)
            partitions: Sequence[Partition] = client.get_partitions_by_filter(self.database, self.name, text, -1)
        else:
            partitions = client.get_partitions(self.database, self.name, -1)
        return [self.folder(partition) for partition in partitions]

    def partition_name(self, name: str) -> str:
        """Return Hive's name of the partition that a name `k=v/..` means. WrongColumns for any other text."""
        keys = [(key.name, key.type) for key in self.table.partitionKeys or []]
        try:
            return hive_name(keys, values_for_keys([key for key, _ in keys], canonical_name(name)))
        except (MetaError, InvalidObject) as error:
            raise WrongColumns(f"{self.full_name}: {name} is not a name of a partition: {error}") from error

    def new_partition_name(self, name: str) -> str:
        """Return Hive's name of a partition to be made. WrongColumns for a value that its key can not hold, and for any other text."""
        hives = self.partition_name(name)
        for key, text in zip(self.table.partitionKeys or [], partition_values(hives), strict=True):
            if not can_hold(key.type, text):
                raise WrongColumns(f"{self.full_name}: the partition key {key.name} is {key.type} and can not hold '{text}'")
        return hives

    def existing_partition(self, client: Client, name: str) -> str:
        """Return the metastore's name of the partition that a name `k=v/..` means. WrongColumns where there is none."""
        hives = self.partition_name(name)
        partition = found(client, self.table, [hives]).get(hives)
        if partition is None:
            raise WrongColumns(f"{self.full_name} has no partition {name}")
        return self.folder(partition).name


def _csv_options(parameters: dict[str, str]) -> dict[str, str]:
    names = {"sep": ("separatorChar", ","), "quote": ("quoteChar", '"'), "escape": ("escapeChar", "\\")}
    blanks = {"ignoreLeadingWhiteSpace": "false", "ignoreTrailingWhiteSpace": "false"}
    return {**blanks, **{option: parameters.get(name, default) for option, (name, default) in names.items()}}
