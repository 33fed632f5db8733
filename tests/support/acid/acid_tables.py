"""Definitions of transactional tables as Hive's clients send them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from metastore.client import Client
from metastore.idl import ClientCapabilities, ClientCapability, FieldSchema, GetTableRequest, SerDeInfo, StorageDescriptor, Table
from metastore.spark import AcidTable

FORMATS = {
    "orc": (
        "org.apache.hadoop.hive.ql.io.orc.OrcInputFormat",
        "org.apache.hadoop.hive.ql.io.orc.OrcOutputFormat",
        "org.apache.hadoop.hive.ql.io.orc.OrcSerde",
    ),
    "parquet": (
        "org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat",
        "org.apache.hadoop.hive.ql.io.parquet.MapredParquetOutputFormat",
        "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe",
    ),
    "text": (
        "org.apache.hadoop.mapred.TextInputFormat",
        "org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat",
        "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe",
    ),
    "json": (
        "org.apache.hadoop.mapred.TextInputFormat",
        "org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat",
        "org.apache.hadoop.hive.serde2.JsonSerDe",
    ),
}
TableMaker = Callable[..., AcidTable]


def definition(
    name: str,
    columns: str,
    keys: str = "",
    *,
    insert_only: bool = False,
    file_format: str = "orc",
    buckets: int = 0,
    bucketed_by: tuple[str, ...] = (),
    location: Path | None = None,
    parameters: dict[str, str] | None = None,
) -> Table:
    """Return a transactional table of the database `default`."""
    input_format, output_format, serde = FORMATS[file_format]
    kind = "insert_only" if insert_only else "default"
    return Table(
        dbName="default",
        tableName=name,
        owner="tests",
        tableType="MANAGED_TABLE",
        partitionKeys=_fields(keys),
        parameters={"transactional": "true", "transactional_properties": kind, "bucketing_version": "2", **(parameters or {})},
        sd=StorageDescriptor(
            cols=_fields(columns),
            inputFormat=input_format,
            outputFormat=output_format,
            numBuckets=buckets or -1,  # with 0, Hive on MapReduce runs its deletes without reducers
            bucketCols=list(bucketed_by),
            serdeInfo=SerDeInfo(serializationLib=serde, parameters={}),
            parameters={},
            sortCols=[],
            location=None if location is None else str(location),
        ),
    )


def _fields(text: str) -> list[FieldSchema]:
    """Read `a int, b struct<c:string,d:int>`: columns are separated by comma and space, types have no spaces."""
    return [FieldSchema(*part.split(" ", 1)) for part in text.split(", ")] if text else []


def stored_table(client: Client, name: str, database: str = "default") -> Table:
    """Return a table of any kind as it is stored: the request has the client's capability for transactional tables."""
    known = ClientCapabilities(values=[ClientCapability.INSERT_ONLY_TABLES])
    found: Table = client.get_table_req(GetTableRequest(dbName=database, tblName=name, capabilities=known)).table
    return found
