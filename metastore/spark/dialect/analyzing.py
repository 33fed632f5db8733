"""ANALYZE TABLE: count the rows and values of a transactional table and store the counts, for Hive's optimizer and `count(*)`.

The counts are marked exact only if nobody has committed to the table in between: a lock at the end holds all others back during that check.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from functools import partial
from typing import Any, NamedTuple

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F  # noqa: N812  # the name that everyone gives it

from metastore import idl
from metastore.acid.folders.selecting import Selected
from metastore.client import Client
from metastore.idl import DataOperationType, LockType, Partition
from metastore.rules.transactions.snapshots import format_table, snapshot
from metastore.spark.dialect.session import SqlSession
from metastore.spark.dialect.sources import in_quotes
from metastore.spark.grammar.statements import Analyze
from metastore.spark.grammar.tokens import WrongStatement
from metastore.spark.reading.reading import rows
from metastore.spark.session.catalog import AcidTableInfo
from metastore.spark.transaction.readers import give_way
from metastore.spark.transaction.spark_transaction import SparkTransaction

_INTEGERS = ("tinyint", "smallint", "int", "bigint")
_ACCURATE = "COLUMN_STATS_ACCURATE"
_EPOCH = date(1970, 1, 1)


class _Counted(NamedTuple):
    """The counts of the table, or of one partition of it."""

    selected: Selected
    row: Row | None
    """The row of `_measures`; None where nothing was read."""


def analyze(session: SqlSession, client: Client, info: AcidTableInfo, statement: Analyze) -> DataFrame:
    """Count, and store the counts. WrongStatement for missing columns and partitions."""
    session.outside("ANALYZE TABLE")
    names = _columns(info, statement)
    transaction = SparkTransaction(session.spark, session.uri)
    with transaction.txn:
        transaction.lock_to_read([info])
        transaction.pin([info])
        seen = transaction.snapshot(info)
        counted = []
        for selected in _chosen(transaction, info, statement):
            frame = None if statement.no_scan else rows(session.spark, info, [selected], seen, row_id=False)
            counted.append(_Counted(selected, None if frame is None else frame.agg(*_measures(info, names)).first()))
        give_way(session.spark, session.uri, info)
        transaction.lock(info, LockType.EXCLUSIVE, DataOperationType.NO_TXN)
        transaction.pin([])
        is_exact = transaction.snapshot(info).write_ids == seen.write_ids
        _store(transaction, transaction.load(info.database, info.name), counted, names, is_exact=is_exact)
    return session.nothing()


def _columns(info: AcidTableInfo, statement: Analyze) -> list[str]:
    """Return the columns whose values are counted: none where only rows are counted."""
    if statement.columns is None:
        return []
    if unknown := [name for name in statement.columns if name not in info.columns.names]:
        raise WrongStatement(
            f"{info.full_name} has no column {', '.join(unknown)} to be counted; its columns are {', '.join(info.columns.names)}"
        )
    return [name for name in statement.columns or info.columns.names if _field(info.kinds[name]) is not None]


def _chosen(transaction: SparkTransaction, info: AcidTableInfo, statement: Analyze) -> list[Selected]:
    given = {name: value for name, value in (statement.partition or {}).items() if value is not None}
    keys = info.partition_columns.names
    if unknown := [name for name in statement.partition or {} if name not in keys]:
        raise WrongStatement(f"{info.full_name} is not partitioned by {', '.join(unknown)}")
    found = [
        each
        for each in transaction.selected(info, transaction.snapshot(info))
        if all(dict(zip(keys, each.folder.values, strict=True))[name] == value for name, value in given.items())
    ]
    if given and not found:
        raise WrongStatement(f"{info.full_name} has no partition with {', '.join(f'{name}={value}' for name, value in given.items())}")
    return found


def _field(kind: str) -> str | None:
    """Return the field of ColumnStatisticsData for a type of Hive, None for one that has no statistics."""
    if kind in _INTEGERS:
        return "longStats"
    if kind.startswith("decimal"):
        return "decimalStats"
    if kind == "string" or kind.startswith(("char", "varchar")):
        return "stringStats"
    return {"float": "doubleStats", "double": "doubleStats", "date": "dateStats", "boolean": "booleanStats", "binary": "binaryStats"}.get(
        kind
    )


def _measures(info: AcidTableInfo, names: Sequence[str]) -> list[Column]:
    out = [F.count(F.lit(1)).alias("rows")]
    for place, name in enumerate(names):
        column, field = F.col(in_quotes(name)), _field(info.kinds[name])
        out.append(F.sum(F.when(column.isNull(), 1).otherwise(0)).alias(f"nulls{place}"))
        if field == "booleanStats":
            out += [F.count_if(column).alias(f"trues{place}"), F.count_if(~column).alias(f"falses{place}")]
            continue
        if field in ("stringStats", "binaryStats"):
            length = F.length(column)
            out += [F.max(length).alias(f"longest{place}"), F.avg(length).alias(f"average{place}")]
        else:
            out += [F.min(column).alias(f"low{place}"), F.max(column).alias(f"high{place}")]
        if field != "binaryStats":
            out.append(F.approx_count_distinct(column).alias(f"distinct{place}"))
    return out


def _statistics(info: AcidTableInfo, names: Sequence[str], row: Row) -> list[idl.ColumnStatisticsObj]:
    made: dict[str, Any] = {
        "longStats": idl.LongColumnStatsData,
        "doubleStats": idl.DoubleColumnStatsData,
        "decimalStats": idl.DecimalColumnStatsData,
        "dateStats": idl.DateColumnStatsData,
    }
    out = []
    for place, name in enumerate(names):
        kind = info.kinds[name]
        field, values = str(_field(kind)), row.asDict()
        nulls = int(values[f"nulls{place}"] or 0)
        if field == "booleanStats":
            data: Any = idl.BooleanColumnStatsData(numTrues=values[f"trues{place}"], numFalses=values[f"falses{place}"], numNulls=nulls)
        elif field in ("stringStats", "binaryStats"):
            lengths: dict[str, Any] = {
                "maxColLen": int(values[f"longest{place}"] or 0),
                "avgColLen": float(values[f"average{place}"] or 0),
                "numNulls": nulls,
            }
            data = (
                idl.BinaryColumnStatsData(**lengths)
                if field == "binaryStats"
                else idl.StringColumnStatsData(**lengths, numDVs=values[f"distinct{place}"])
            )
        else:
            low, high = (_value(kind, values[f"{end}{place}"]) for end in ("low", "high"))
            data = made[field](lowValue=low, highValue=high, numNulls=nulls, numDVs=values[f"distinct{place}"])
        out.append(idl.ColumnStatisticsObj(colName=name, colType=kind, statsData=idl.ColumnStatisticsData(**{field: data})))
    return out


def _value(kind: str, value: Any) -> Any:
    """Return a value as statistics hold it."""
    if isinstance(value, Decimal):
        scale = max(0, -int(value.as_tuple().exponent))
        unscaled = int(value.scaleb(scale))
        return idl.Decimal(unscaled=unscaled.to_bytes(unscaled.bit_length() // 8 + 1, "big", signed=True), scale=scale)
    if isinstance(value, date):
        return idl.Date(daysSinceEpoch=(value - _EPOCH).days)
    return value


def _store(
    transaction: SparkTransaction, info: AcidTableInfo, counted: Sequence[_Counted], names: Sequence[str], *, is_exact: bool
) -> None:
    """Store the counts under the transaction's write id: a table's or partition's basic statistics, then its column statistics."""
    write_id = transaction.txn.write_id(info.database, info.name)
    seen = transaction.snapshot(info).write_ids
    text = format_table(info.full_name, snapshot(seen.high_watermark, seen.open, seen.aborted))
    named = [each.selected.folder.name for each in counted if each.selected.folder.name]
    listed = transaction.txn.call(lambda client: client.get_partitions_by_names(info.database, info.name, named) if named else [])
    partitions = {info.folder(each).name: each for each in listed}
    for each in counted:
        partition = partitions.get(each.selected.folder.name)
        target = info.table if partition is None else partition
        target.parameters = _parameters(target.parameters or {}, each, is_exact=is_exact)
        transaction.txn.call(partial(_alter, info=info, partition=partition, write_id=write_id, seen=text))
        if names and each.row is not None and is_exact:
            place = idl.ColumnStatisticsDesc(
                isTblLevel=partition is None,
                dbName=info.database,
                tableName=info.name,
                partName=None if partition is None else each.selected.folder.name,
                catName="hive",
            )
            statistics = idl.ColumnStatistics(statsDesc=place, statsObj=_statistics(info, names, each.row), engine="hive")
            request = idl.SetPartitionsStatsRequest(
                colStats=[statistics], needMerge=False, writeId=write_id, validWriteIdList=text, engine="hive"
            )
            method = "update_table_column_statistics_req" if partition is None else "update_partition_column_statistics_req"
            transaction.txn.call(lambda client, method=method, request=request: client.call(method, request))  # type: ignore[misc]  # mypy infers no lambda with defaults


def _parameters(old: dict[str, str], counted: _Counted, *, is_exact: bool) -> dict[str, str]:
    selected = counted.selected
    files = len(selected.inserts) + len(selected.deletes) + len(selected.originals) + len(selected.growing)
    out = {key: value for key, value in old.items() if key not in (_ACCURATE, "numRows")}
    out |= {"numFiles": str(files), "totalSize": str(selected.bytes)}
    if counted.row is not None:
        out["numRows"] = str(counted.row["rows"])
        out["rawDataSize"] = old.get("rawDataSize", "0")
        if is_exact:
            out[_ACCURATE] = '{"BASIC_STATS":"true"}'
    return out


def _alter(client: Client, *, info: AcidTableInfo, partition: Partition | None, write_id: int, seen: str) -> None:
    gathered = idl.EnvironmentContext(properties={"STATS_GENERATED": "TASK", "DO_NOT_UPDATE_STATS": "true"})
    if partition is None:
        client.alter_table_req(
            idl.AlterTableRequest(
                dbName=info.database,
                tableName=info.name,
                table=info.table,
                environmentContext=gathered,
                writeId=write_id,
                validWriteIdList=seen,
            )
        )
        return
    client.alter_partitions_req(
        idl.AlterPartitionsRequest(
            dbName=info.database,
            tableName=info.name,
            partitions=[partition],
            environmentContext=gathered,
            writeId=write_id,
            validWriteIdList=seen,
        )
    )
