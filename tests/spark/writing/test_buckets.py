"""Rows of a bucketed table are in the bucket of Hive's hash, after inserts, changes and compactions."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812  # the name that everyone gives it

from metastore.acid.buckets import buckets
from metastore.acid.buckets.hashing import CanNotHash, buckets_of
from metastore.client import Client
from metastore.spark import AcidTable
from metastore.spark.compaction.compactor import Compactor
from metastore.spark.session.catalog import AcidTableInfo
from metastore.spark.writing.hashing import bucket_of
from tests.support.acid.acid_tables import TableMaker

VERSIONS = pytest.mark.parametrize("version", ["1", "2"])
COUNT = 5


def bucket(values: list[object], arrow: list[pa.DataType], kinds: list[str], version: str) -> int:
    columns = [(pa.array([value], kind), name) for value, kind, name in zip(values, arrow, kinds, strict=True)]
    return int(buckets_of(columns, COUNT, int(version), zone=str(datetime.now().astimezone().tzinfo))[0])


def placed(spark: SparkSession, table: AcidTable) -> dict[int, set[tuple[int, str]]]:
    """Return the (id, name) of the rows by the number in the name of their file, over all visible directories. Bucket columns must agree.

    The server's cleaner may delete directories meanwhile: the others are then read again.
    """
    root = Path(table.detail().first().location.removeprefix("file:"))
    while True:
        paths = sorted(root.rglob("bucket_*"))
        try:
            return read_placed(spark, paths)
        except (AnalysisException, Py4JJavaError):  # the first if the path is deleted before Spark looks, the second if later
            if all(path.exists() for path in paths):
                raise


def read_placed(spark: SparkSession, paths: list[Path]) -> dict[int, set[tuple[int, str]]]:
    found: dict[int, set[tuple[int, str]]] = {}
    for path in paths:
        number = buckets.of_file(path.name)
        assert number is not None
        for row in spark.read.orc(str(path)).collect():
            assert buckets.decode(row.bucket) == number
            if row.row is not None:
                found.setdefault(number, set()).add((row.row.id, row.row.name))
    return found


def expected(rows: set[tuple[int, str]], version: str) -> dict[int, set[tuple[int, str]]]:
    out: dict[int, set[tuple[int, str]]] = {}
    for row in rows:
        number = bucket([row[0], row[1]], [pa.int32(), pa.string()], ["int", "string"], version)
        out.setdefault(number, set()).add(row)
    return out


def compact(spark: SparkSession, table: AcidTable, kind: str) -> None:
    table.compact(kind)
    outcome = Compactor(spark, table._uri).run_once()
    assert outcome is not None
    assert outcome.state == "compacted", outcome


@pytest.mark.slow
@pytest.mark.parametrize(("version", "compaction"), [("1", "minor"), ("2", "major")])
def test_rows_stay_in_their_buckets(spark: SparkSession, make_table: TableMaker, version: str, compaction: str) -> None:
    table = make_table(
        "id int, name string, left int", buckets=COUNT, bucketed_by=("id", "name"), parameters={"bucketing_version": version}
    )
    names = {number: f"n{number % 11}-ä" for number in range(300)}
    rows = [(number, name, 0) for number, name in names.items()]
    table.insert(spark.createDataFrame(rows, "id int, name string, left int").repartition(3))
    wanted = set(names.items())
    assert placed(spark, table) == expected(wanted, version)
    assert table.update("id % 4 = 0", {"left": "1"}) == 75
    assert table.delete("id % 10 = 7") == 30
    changes = spark.createDataFrame([(number, names.get(number, "new"), 5) for number in range(290, 310)], "id int, name string, left int")
    table.merge(changes, "target.id = source.id").whenMatchedUpdate(set={"left": "source.left"}).whenNotMatchedInsertAll().execute()
    wanted |= {(number, "new") for number in range(300, 310)}
    assert placed(spark, table) == expected(wanted, version)
    alive = {(row.id, row.name) for row in table.toDF().collect()}
    compact(spark, table, compaction)
    found = placed(spark, table)  # without the deleted rows once the cleaner has come
    assert set().union(*found.values()) >= alive
    assert all(rows <= expected(wanted, version)[number] for number, rows in found.items())
    assert {(row.id, row.name) for row in table.toDF().collect()} == alive
    table.close()


TYPES = (
    ("boolean", pa.bool_(), True), ("tinyint", pa.int8(), -3), ("smallint", pa.int16(), 30000), ("int", pa.int32(), -1),
    ("bigint", pa.int64(), 2**62 + 1), ("float", pa.float32(), 1.5), ("double", pa.float64(), float("nan")), ("string", pa.string(), "ä b"),
    ("char(4)", pa.string(), "ab  "), ("varchar(3)", pa.string(), "abc"), ("binary", pa.binary(), b"\xff\0"),
    ("date", pa.date32(), date(1812, 3, 4)), ("decimal(20,4)", pa.decimal128(20, 4), Decimal("-7.2500")),
    ("timestamp", pa.timestamp("us"), datetime(2024, 7, 1, 12, 30, 0, 123456)),  # noqa: DTZ001  # no zone, as in Hive
)  # fmt: skip


@VERSIONS
def test_types_and_nulls(spark: SparkSession, client: Client, make_table: TableMaker, version: str) -> None:
    """Each type's values among nulls have the right hash: pandas must not convert them to other numbers."""
    names = [f"k{place}" for place in range(len(TYPES))]
    columns = ", ".join(f"{name} {kind}" for name, (kind, *_) in zip(names, TYPES, strict=True))
    table = make_table(f"id int, {columns}", buckets=COUNT, bucketed_by=("k0",), parameters={"bucketing_version": version})
    info = AcidTableInfo.load(client, *table.name.split("."))
    values = [value for *_, value in TYPES]
    rows = spark.createDataFrame([(1, *values), (2, *([None] * len(TYPES))), (3, *values)], info.columns)
    buckets_by = []
    for name in names:
        of_column = AcidTableInfo.load(client, *table.name.split("."))
        of_column.table.sd.bucketCols = [name]
        assert of_column.bucket_columns == [name]
        buckets_by.append(bucket_of(of_column, rows).alias(name))
    found = rows.select("id", *buckets_by).orderBy("id").collect()
    for name, (kind, arrow, value) in zip(names, TYPES, strict=True):
        assert [row[name] for row in found] == [bucket([each], [arrow], [kind], version) for each in (value, None, value)], kind


def test_a_nested_bucket_column_is_refused(spark: SparkSession, client: Client, make_table: TableMaker) -> None:
    table = make_table("id int, k array<int>", buckets=COUNT, bucketed_by=("k",))
    with pytest.raises(CanNotHash, match=r"bucketed by k, which is array<int>"):
        table.insert(spark.createDataFrame([(1, [1])], "id int, k array<int>"))


@pytest.mark.parametrize("file_format", ["orc", pytest.param("text", marks=pytest.mark.slow)])
def test_compactions_of_insert_only_tables_keep_buckets(spark: SparkSession, make_table: TableMaker, file_format: str) -> None:
    """For a query of one bucket, Hive reads only that bucket's files."""
    table = make_table("id int, name string", buckets=COUNT, bucketed_by=("id",), insert_only=True, file_format=file_format)
    for first in (0, 50):
        table.insert(spark.sql(f"select cast(id as int) id, 'n' name from range({first}, {first + 50})"))
    found = compacted_files(spark, table)
    expected_buckets = {number: bucket([number], [pa.int32()], ["int"], "2") for number in range(100)}
    assert found == {each: {number for number, place in expected_buckets.items() if place == each} for each in range(COUNT)}


def compacted_files(spark: SparkSession, table: AcidTable) -> dict[int, set[int]]:
    """Compact; return the ids in each file of the base by the number in its name."""
    compact(spark, table, "major")
    found: dict[int, set[int]] = {}
    for row in table.toDF().withColumn("file", F.input_file_name()).collect():
        directory, name = row.file.split("/")[-2:]
        assert directory.startswith("base_")
        found.setdefault(buckets.of_original(name), set()).add(row.id)
    table.close()
    return found
