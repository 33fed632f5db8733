"""Transactional tables are made as Hive makes them; a failure leaves no table."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from metastore import idl
from metastore.acid.folders.table import NotTransactional
from metastore.acid.values.constraints import ConstraintViolated
from metastore.client import Client
from metastore.spark import AcidTable
from metastore.spark.definition.tables import WrongDefinition
from metastore.spark.session.assignment import DoesNotFit
from tests.support.acid.acid_tables import stored_table


@pytest.fixture
def name(client: Client, request: pytest.FixtureRequest) -> Iterator[str]:
    name = "".join(letter if letter.isalnum() else "_" for letter in request.node.name).lower()
    yield name
    client.drop_table("default", name, True) if name in client.get_all_tables("default") else None


def rows(table: AcidTable) -> list[tuple[object, ...]]:
    with table:
        return sorted((tuple(row) for row in table.toDF().collect()), key=repr)


def test_a_table_is_as_requested(spark: SparkSession, client: Client, name: str) -> None:
    table = AcidTable.create(
        spark,
        f"default.{name}",
        "id bigint NOT NULL, name varchar(3) DEFAULT 'ab' COMMENT 'who', price decimal(7,2), code char(2), "
        "CONSTRAINT k PRIMARY KEY (id) DISABLE",
        partitioned_by="day date, hour int",
        clustered_by=["id"],
        buckets=2,
        comment="a table",
        properties={"orc.compress": "ZLIB"},
    )
    made = stored_table(client, name)
    assert [(each.name, each.type, each.comment) for each in made.sd.cols] == [
        ("id", "bigint", None),
        ("name", "varchar(3)", "who"),
        ("price", "decimal(7,2)", None),
        ("code", "char(2)", None),
    ]
    assert [(each.name, each.type) for each in made.partitionKeys] == [("day", "date"), ("hour", "int")]
    assert (made.tableType, made.sd.numBuckets, made.sd.bucketCols) == ("MANAGED_TABLE", 2, ["id"])
    wanted = {"transactional": "true", "transactional_properties": "default", "bucketing_version": "2", "comment": "a table"}
    assert wanted.items() <= made.parameters.items()
    assert made.parameters["orc.compress"] == "ZLIB"
    keys = client.get_primary_keys(idl.PrimaryKeysRequest("default", name, None, "hive")).primaryKeys
    assert [(each.pk_name, each.column_name, each.enable_cstr) for each in keys] == [("k", "id", False)]
    table.insert(spark.sql("select 1L id, 1.5 price, 'x' code, date '2024-01-01' day, 3 hour"))
    assert [(row[0], row[1], str(row[2]), row[3]) for row in rows(table)] == [(1, "ab", "1.50", "x")]
    with pytest.raises(ConstraintViolated):
        table.insert(spark.sql("select null id, date '2024-01-01' day, 3 hour"))
    with pytest.raises(DoesNotFit):
        table.insert(spark.sql("select 2 id, 'long' name, date '2024-01-01' day, 3 hour"))


@pytest.mark.parametrize("file_format", ["orc", "parquet", "textfile", "jsonfile"])
def test_insert_only_tables_of_any_format(spark: SparkSession, client: Client, name: str, file_format: str) -> None:
    table = AcidTable.create(
        spark, f"default.{name}", "id int, day string", partitioned_by=["day"], insert_only=True, file_format=file_format
    )
    assert stored_table(client, name).parameters["transactional_properties"] == "insert_only"
    table.insert(spark.sql("select 1 id, 'x' day"))
    assert rows(table) == [(1, "x")]


def test_a_builder_says_the_same(spark: SparkSession, client: Client, name: str) -> None:
    builder = (
        AcidTable.builder(spark)
        .tableName(f"default.{name}")
        .addColumn("id", "int", nullable=False)
        .addColumn("we ird`", "string", comment="it's")
        .addColumns(StructType().add("n", "long"))
        .addColumn("day", "date")
        .partitionedBy("day")
        .clusterBy("id", buckets=2)
        .property("k", "v")
        .comment("built")
    )
    builder.create()
    made = stored_table(client, name)
    assert [(each.name, each.type, each.comment) for each in made.sd.cols] == [
        ("id", "int", None),
        ("we ird`", "string", "it's"),
        ("n", "bigint", None),
    ]
    assert ([key.name for key in made.partitionKeys], made.sd.numBuckets, made.parameters["k"]) == (["day"], 2, "v")
    with pytest.raises(idl.AlreadyExistsException):
        builder.create()
    assert builder.createIfNotExists().name == f"default.{name}"


WRONG = [
    ({"schema": "id int, ID string"}, "the column id is given twice"),
    ({"schema": "id int, day string", "partitioned_by": "month"}, "partition column month is not among the columns"),
    ({"schema": "day string", "partitioned_by": "day"}, "no column is left"),
    ({"schema": "id uniontype<int,string>"}, "is not a type"),
    ({"schema": "id varchar"}, "varchar is not a type"),
    ({"schema": "id int", "clustered_by": ["x"], "buckets": 2}, "no column x"),
    ({"schema": "id int", "clustered_by": ["id"]}, "belong together"),
    ({"schema": "id int", "clustered_by": ["id"], "buckets": 2, "sorted_by": ["id"]}, "leave SORTED BY out"),
    ({"schema": "id int", "file_format": "parquet"}, "full ACID tables are ORC"),
    ({"schema": "id int", "file_format": "sequencefile", "insert_only": True}, "not kept in the format"),
    ({"schema": "id int, PRIMARY KEY (id) ENABLE"}, "can not be enforced"),
    ({"schema": "id int, PRIMARY KEY (x)"}, "is not a column"),
]


@pytest.mark.parametrize(("arguments", "message"), WRONG)
def test_impossible_tables_are_refused(spark: SparkSession, client: Client, arguments: dict[str, object], message: str) -> None:
    with pytest.raises(WrongDefinition, match=message):
        AcidTable.create(spark, "default.never", **arguments)  # type: ignore[arg-type]  # rows of a table
    assert "never" not in client.get_all_tables("default")


def test_a_table_of_rows_is_there_with_them_or_not_at_all(spark: SparkSession, client: Client, name: str, tmp_path: Path) -> None:
    frame = spark.sql("select 1 id, cast(1.5 as decimal(3,1)) d, 'x' p, timestamp_ntz '2024-01-01 00:00:00' t")
    table = AcidTable.createFrom(frame, f"default.{name}", partitioned_by="p")
    assert [(row[0], row[3]) for row in rows(table)] == [(1, "x")]
    assert AcidTable.createFrom(frame, f"default.{name}", if_not_exists=True).name == f"default.{name}"
    assert len(rows(table)) == 1
    failing = spark.range(3).selectExpr("id", "raise_error('no') v")
    with pytest.raises(Exception, match="no"):
        AcidTable.createFrom(failing.selectExpr("id", "cast(v as string) v"), f"default.{name}_2")
    with pytest.raises(WrongDefinition, match="cast the null"):
        AcidTable.createFrom(spark.sql("select 1 id, null n"), f"default.{name}_2")
    with pytest.raises(idl.AlreadyExistsException):
        AcidTable.createFrom(frame, f"default.{name}")
    (tmp_path / "file").write_text("kept")
    with pytest.raises(WrongDefinition, match="holds files already"):
        AcidTable.createFrom(frame, f"default.{name}_2", location=f"file:{tmp_path}")
    assert f"{name}_2" not in client.get_all_tables("default")
    assert (tmp_path / "file").read_text() == "kept"
    warehouse = Path(stored_table(client, name).sd.location.removeprefix("file:")).parent
    assert not (warehouse / f"{name}_2").exists()


def test_a_table_is_replaced_in_one_transaction(spark: SparkSession, client: Client, name: str) -> None:
    frame = spark.sql("select 1 id, 'a' p union all select 2, 'b'")
    table = AcidTable.createFrom(frame, f"default.{name}", partitioned_by="p", properties={"k": "old"})
    again = frame.where("id = 1").selectExpr("id + 10 id", "p")
    table = AcidTable.createFrom(again, f"default.{name}", partitioned_by="p", properties={"k": "new"}, replace=True)
    assert rows(table) == [(11, "a")]
    assert stored_table(client, name).parameters["k"] == "new"
    AcidTable.create(spark, f"default.{name}", "id int", partitioned_by="p string", replace=True)
    assert rows(table) == []
    with pytest.raises(WrongDefinition, match="drop it first"):
        AcidTable.create(spark, f"default.{name}", "id bigint", partitioned_by="p string", replace=True)


def test_a_plain_table_is_left_alone(spark: SparkSession, client: Client, name: str) -> None:
    table = stored_table(client, AcidTable.create(spark, f"default.{name}", "id int").name.partition(".")[2])
    client.drop_table("default", name, True)
    table.parameters = {}
    table.id = None
    client.create_table_req(idl.CreateTableRequest(table=table))
    for how in ({"if_not_exists": True}, {"replace": True}):
        with pytest.raises(NotTransactional):
            AcidTable.create(spark, f"default.{name}", "id int", **how)


def test_an_overwrite_empties_partitions_that_it_names(spark: SparkSession, client: Client, name: str) -> None:
    table = AcidTable.createFrom(spark.sql("select 1 id, 'a' p union all select 2, 'b'"), f"default.{name}", partitioned_by="p")
    none = spark.sql("select 9 id, 'a' p where false")
    table.insert_overwrite(none, partitions=["p=a", "p=new"])
    assert rows(table) == [(2, "b")]
    assert client.get_partition_names("default", name, -1) == ["p=a", "p=b", "p=new"]
