"""Columns of tables and partitions in every call: names are unique, and bucket, sort and skew columns follow a rename."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy

import pytest

from metastore.errors import InvalidObject, InvalidOperation, MetaError, NoSuchObject
from metastore.idl import (
    ColumnStatistics,
    ColumnStatisticsData,
    ColumnStatisticsDesc,
    ColumnStatisticsObj,
    FieldSchema,
    LongColumnStatsData,
    Order,
    Partition,
    SerDeInfo,
    SkewedInfo,
    StorageDescriptor,
    Table,
)
from metastore.service.call.context import Call
from metastore.service.call.names import TableName
from metastore.service.catalog.partitions import partitions
from metastore.service.catalog.partitions.add_partitions import add_partitions as add
from metastore.service.catalog.partitions.alter_partitions import alter_partitions, rename_partition
from metastore.service.catalog.statistics import statistics, write_statistics
from metastore.service.catalog.tables import tables
from metastore.service.catalog.tables.alter_table import alter_table
from metastore.service.catalog.tables.create_table import create_table, dry_run
from tests.support.catalog.catalog import add_partitions, columns_of, make_table

pytestmark = pytest.mark.on_one_database

NAME = TableName("hive", "default", "t")


def described(
    columns: Sequence[tuple[str, str]], keys: Sequence[tuple[str, str]] = (), kind: str = "MANAGED_TABLE", **storage: object
) -> Table:
    sd = StorageDescriptor(
        cols=columns_of(*columns),
        inputFormat="in",
        outputFormat="out",
        serdeInfo=SerDeInfo(serializationLib="lib", parameters={}),
        parameters={},
        **storage,
    )  # type: ignore[arg-type]  # fields of a storage descriptor
    return Table(dbName="default", tableName="t", owner="alice", sd=sd, partitionKeys=columns_of(*keys), parameters={}, tableType=kind)


def changed(call: Call, change: Callable[[Table], object], name: TableName = NAME, **options: object) -> None:
    table = deepcopy(tables.get_table(call, name))
    change(table)
    alter_table(call, name, table, **options)  # type: ignore[arg-type]


def renamed(old: str, new: str) -> Callable[[Table], None]:
    def change(table: Table) -> None:
        next(column for column in table.sd.cols if column.name == old).name = new

    return change


@pytest.mark.parametrize("kind", ["MANAGED_TABLE", "EXTERNAL_TABLE", "VIRTUAL_VIEW", "MATERIALIZED_VIEW"])
@pytest.mark.parametrize(
    ("columns", "keys"),
    [
        ([("a", "int"), ("b", "int"), ("a", "int")], []), ([("a", "int"), ("A", "string")], []),
        ([("a", "int")], [("k", "int"), ("K", "int")]),
        ([("a", "int")], [("A", "int")]), ([("ä", "int"), ("Ä", "int")], []),
    ],
)  # fmt: skip
def test_no_table_has_a_column_twice(call: Call, kind: str, columns: list[tuple[str, str]], keys: list[tuple[str, str]]) -> None:
    with pytest.raises(InvalidObject):
        create_table(call, described(columns, keys, kind))
    with pytest.raises(InvalidObject):
        dry_run(call, described(columns, keys, kind), capabilities=None, identifier=None)
    with pytest.raises(NoSuchObject):
        tables.get_table(call, NAME)


@pytest.mark.parametrize("options", [{}, {"cascade": True}, {"environment": {"allow_partition_key_change": "true"}}])
def test_no_alter_gives_a_table_a_column_twice(call: Call, options: dict[str, object]) -> None:
    make_table(call, "t", keys=[("k", "string")])
    for change in (
        lambda table: table.sd.cols.append(FieldSchema("A", "string")),
        lambda table: table.sd.cols.append(FieldSchema("K", "int")),
        renamed("a", "B"),
        renamed("a", "k"),
    ):
        with pytest.raises(InvalidOperation, match="twice"):
            changed(call, change, **options)
    assert [column.name for column in tables.get_schema(call, NAME)] == ["a", "b", "k"]


@pytest.mark.parametrize("blank", ["", " ", "\t\n"])
def test_no_column_is_without_a_name(call: Call, blank: str) -> None:
    for columns, keys in (([("a", "int"), (blank, "int")], [("k", "int")]), ([("a", "int")], [("k", "int"), (blank, "int")])):
        for make in (create_table, lambda call, table: dry_run(call, table, capabilities=None, identifier=None)):
            with pytest.raises(MetaError, match="needs a name and a type"):
                make(call, described(columns, keys))
    create_table(call, described([("a", "int"), ("b", "int")], [("k", "int")]))
    add_partitions(call, NAME, [["1"]])
    with pytest.raises(MetaError, match="needs a name and a type"):
        changed(call, renamed("b", blank))
    partition = deepcopy(partitions.get_partition(call, NAME, ["1"]))
    partition.sd.cols[1].name = blank
    with pytest.raises(MetaError, match="needs a name and a type"):
        alter_partitions(call, NAME, [partition])
    partition.values, partition.sd.location = ["2"], None  # type: ignore[assignment]  # the default place
    with pytest.raises(MetaError, match="needs a name and a type"):
        add(call, NAME, [partition])


def test_no_partition_has_a_column_twice_or_of_an_unknown_type(call: Call) -> None:
    name = make_table(call, "t", keys=[("k", "string")])
    add_partitions(call, name, [["there"]])
    there = deepcopy(partitions.get_partition(call, name, ["there"]))
    for wrong in ([("a", "int"), ("A", "int")], [("k", "int"), ("a", "int"), ("K", "int")], [("a", "foo")], [("b", "varchr(5)")]):
        new = Partition(values=["1"], dbName="default", tableName="t", parameters={}, sd=deepcopy(there.sd))
        new.sd.location, new.sd.cols = None, columns_of(*wrong)  # type: ignore[assignment]  # the default place
        good = deepcopy(new)
        good.values, good.sd.cols = ["0"], columns_of(("a", "int"))
        with pytest.raises(InvalidObject, match=r"column .* (twice|in partition \[1\])"):
            add(call, name, [good, new])
        altered = deepcopy(there)
        altered.sd.cols = columns_of(*wrong)
        with pytest.raises(InvalidOperation, match=r"column .* (twice|in partition \[there\])"):
            alter_partitions(call, name, [altered])
        altered.values = ["other"]
        with pytest.raises(InvalidOperation, match="column"):
            rename_partition(call, name, ["there"], altered)
    assert partitions.get_partition_names(call, name) == ["k=there"]
    assert [column.name for column in partitions.get_partition(call, name, ["there"]).sd.cols] == ["a", "b"]


def test_a_partition_s_columns_may_name_its_keys_as_hive_s_clients_do(call: Call) -> None:
    name = make_table(call, "t", keys=[("k", "string")])
    add_partitions(call, name, [["there"]])
    partition = deepcopy(partitions.get_partition(call, name, ["there"]))
    partition.values, partition.sd.location = ["1"], None  # type: ignore[assignment]  # the default place
    partition.sd.cols = columns_of(("K", "xyz"), ("a", "int"), ("b", "string"))
    add(call, name, [partition])
    alter_partitions(call, name, [partitions.get_partition(call, name, ["1"])])
    assert next((column.name, column.type) for column in partitions.get_partition(call, name, ["1"]).sd.cols) == ("k", "xyz")


STORAGES: list[dict[str, object]] = [
    {"bucketCols": ["nope"], "numBuckets": 4},
    {"bucketCols": ["a", "nope"], "numBuckets": 4},
    {"bucketCols": ["a"], "numBuckets": 4, "sortCols": [Order(col="nope", order=1)]},
    {"skewedInfo": SkewedInfo(skewedColNames=["nope"], skewedColValues=[["1"]])},
]


@pytest.mark.parametrize("storage", STORAGES)
def test_bucket_sort_and_skew_columns_exist(call: Call, storage: dict[str, object]) -> None:
    with pytest.raises(InvalidObject, match="nope"):
        create_table(call, described([("a", "int")], **storage))
    name = make_table(call, "t", keys=[("k", "string")])
    add_partitions(call, name, [["1"]])
    table = deepcopy(tables.get_table(call, name))
    partition = deepcopy(partitions.get_partition(call, name, ["1"]))
    for sd in (table.sd, partition.sd):
        for field, value in storage.items():
            setattr(sd, field, value)
    with pytest.raises(InvalidOperation, match="nope"):
        alter_table(call, name, table)
    with pytest.raises(InvalidOperation, match="nope"):
        alter_partitions(call, name, [partition])
    partition.values, partition.sd.location = ["2"], None  # type: ignore[assignment]  # the default place
    with pytest.raises(InvalidObject, match="nope"):
        add(call, name, [partition])


def clustered(columns: Sequence[tuple[str, str]] = (("Id", "int"), ("v", "string")), keys: Sequence[tuple[str, str]] = ()) -> Table:
    return described(
        columns,
        keys,
        bucketCols=["ID"],
        numBuckets=4,
        sortCols=[Order(col="id", order=1), Order(col="v", order=0)],
        skewedInfo=SkewedInfo(skewedColNames=["id"], skewedColValues=[["1"]]),
    )


def named(sd: StorageDescriptor) -> tuple[list[str], list[str], list[str], list[str]]:
    return [column.name for column in sd.cols], sd.bucketCols, [order.col for order in sd.sortCols], sd.skewedInfo.skewedColNames


def test_bucket_sort_and_skew_columns_follow_a_rename(call: Call) -> None:
    create_table(call, clustered())
    changed(call, lambda table: table.parameters.update(x="y"))
    changed(call, renamed("v", "w"))
    assert named(tables.get_table(call, NAME).sd) == (["id", "w"], ["ID"], ["id", "w"], ["id"])
    changed(call, renamed("id", "id2"))
    assert named(tables.get_table(call, NAME).sd) == (["id2", "w"], ["id2"], ["id2", "w"], ["id2"])
    with pytest.raises(InvalidOperation, match=r"would have no columns \['w'\]"):
        changed(call, lambda table: table.sd.cols.pop())
    with pytest.raises(InvalidOperation, match="would have no columns"):
        changed(call, lambda table: table.sd.sortCols.append(Order(col="id", order=1)))
    assert named(tables.get_table(call, NAME).sd) == (["id2", "w"], ["id2"], ["id2", "w"], ["id2"])


def test_they_follow_in_partitions_with_cascade_and_by_alter(call: Call) -> None:
    create_table(call, clustered(keys=[("k", "string")]))
    add_partitions(call, NAME, [["1"], ["2"]])
    changed(call, renamed("v", "w"))
    assert [named(each.sd)[2] for each in partitions.get_partitions(call, NAME)] == [["id", "v"]] * 2
    partition = deepcopy(partitions.get_partition(call, NAME, ["1"]))
    partition.sd.cols[1].name = "w"
    alter_partitions(call, NAME, [partition])
    assert named(partitions.get_partition(call, NAME, ["1"]).sd)[2] == ["id", "w"]
    changed(call, renamed("id", "id2"), cascade=True)
    assert [named(each.sd)[1] for each in partitions.get_partitions(call, NAME)] == [["id2"]] * 2


@pytest.mark.parametrize("later", ["column", "comment", "rename"])
def test_with_cascade_they_follow_from_the_columns_that_a_partition_had(call: Call, later: str) -> None:
    create_table(call, clustered(keys=[("k", "string")]))
    add_partitions(call, NAME, [["1"]])
    changed(call, renamed("id", "id2"))
    add_partitions(call, NAME, [["2"]])
    changes: dict[str, Callable[[Table], object]] = {
        "column": lambda table: table.sd.cols.append(FieldSchema("z", "int")),
        "comment": lambda table: setattr(table.sd.cols[0], "comment", "c"),
        "rename": renamed("id2", "id3"),
    }
    changed(call, changes[later], cascade=True)
    table, found = tables.get_table(call, NAME), partitions.get_partitions(call, NAME)
    assert [each.sd.cols for each in found] == [table.sd.cols] * 2
    assert [named(each.sd) for each in found] == [named(table.sd)] * 2
    alter_partitions(call, NAME, found)


def test_a_cascade_that_takes_a_column_by_which_a_partition_is_bucketed_is_refused(call: Call) -> None:
    name = make_table(call, "t", columns=[("v", "string"), ("w", "string"), ("id", "int")], keys=[("k", "string")])
    add_partitions(call, name, [["1"]])
    partition = deepcopy(partitions.get_partition(call, name, ["1"]))
    partition.sd.bucketCols, partition.sd.numBuckets = ["id"], 4
    alter_partitions(call, name, [partition])
    before = tables.get_table(call, name), partitions.get_partitions(call, name)
    with pytest.raises(InvalidOperation, match=r"Partition k=1 of default\.t would have no columns \['id'\]"):
        changed(call, lambda table: table.sd.cols.pop(), cascade=True)
    assert (tables.get_table(call, name), partitions.get_partitions(call, name)) == before


@pytest.mark.parametrize("at_once", [False, True])
def test_with_cascade_nothing_is_known_of_a_column_of_another_type(call: Call, at_once: bool) -> None:
    name = make_table(call, "t", columns=[("a", "int"), ("b", "int")], keys=[("k", "string")])
    add_partitions(call, name, [["1"]])
    analyzed(call, name, ["a", "b"], "k=1")
    changed(call, lambda table: setattr(table.sd.cols[0], "type", "bigint"), cascade=at_once)
    if not at_once:
        assert list(statistics.get_partitions(call, name, ["k=1"], ["a"])) == ["k=1"]
        changed(call, lambda table: table.sd.cols.append(FieldSchema("z", "int")), cascade=True)
    found = statistics.get_partitions(call, name, ["k=1"], ["a", "b"])
    assert [column.colName for each in found.values() for column in each.statsObj] == ["b"]
    assert partitions.get_partition(call, name, ["1"]).parameters["COLUMN_STATS_ACCURATE"] == '{"COLUMN_STATS":{"b":"true"}}'


@pytest.mark.parametrize("kind", ["variant", "unknown", "struct<v:variant,u:unknown>", "array<unknown>", "VARIANT"])
def test_types_of_hive_4_2_and_iceberg_are_known(call: Call, kind: str) -> None:
    name = make_table(call, "t", columns=[("a", "int"), ("v", kind)], keys=[("k", "string")])
    add_partitions(call, name, [["1"]])
    changed(call, lambda table: table.sd.cols.append(FieldSchema("w", kind)), cascade=True)
    assert [column.type for column in tables.get_table(call, name).sd.cols][1:] == [kind, kind]
    assert [column.type for column in partitions.get_partitions(call, name)[0].sd.cols][1:] == [kind, kind]


@pytest.mark.parametrize(
    "parameters",
    [
        {"table_type": "ICEBERG"},
        {"table_type": "iceberg"},
        {"TABLE_TYPE": "Paimon"},
        {"spark.sql.sources.provider": "delta"},
        {"spark.sql.sources.provider": "DELTA"},
        {"spark.sql.sources.provider": "hudi"},
        {"table_type": "HUDI"},
        {"storage_handler": "org.apache.iceberg.mr.hive.HiveIcebergStorageHandler"},
        {"storage_handler": "org.apache.paimon.hive.PaimonStorageHandler"},
    ],
)
def test_formats_with_columns_of_their_own_change_them_in_any_way(call: Call, parameters: dict[str, str]) -> None:
    name = make_table(call, "t", columns=[("a", "bigint"), ("b", "string"), ("c", "int")], keys=[("k", "string")], parameters=parameters)
    check_that_columns_change_in_any_way(call, name)


@pytest.mark.parametrize(
    "known_by",
    [
        {"inputFormat": "org.apache.hudi.hadoop.HoodieParquetInputFormat"},
        {"inputFormat": "org.apache.hudi.hadoop.realtime.HoodieParquetRealtimeInputFormat"},
        {"inputFormat": "com.uber.hoodie.hadoop.HoodieInputFormat"},
        {"inputFormat": "io.delta.hive.DeltaInputFormat"},
        {"inputFormat": "org.apache.paimon.hive.mapred.PaimonInputFormat"},
        {"inputFormat": "org.apache.iceberg.mr.hive.HiveIcebergInputFormat"},
        {"serdeInfo": SerDeInfo(serializationLib="org.apache.iceberg.mr.hive.HiveIcebergSerDe", parameters={})},
        {"serdeInfo": SerDeInfo(serializationLib="io.delta.hive.DeltaStorageHandler", parameters={})},
    ],
)
def test_formats_are_known_by_the_classes_that_read_them(call: Call, known_by: dict[str, object]) -> None:
    table = described([("a", "bigint"), ("b", "string"), ("c", "int")], [("k", "string")])
    table.sd.__dict__.update(known_by)
    create_table(call, table)
    check_that_columns_change_in_any_way(call, NAME)


def check_that_columns_change_in_any_way(call: Call, name: TableName) -> None:
    add_partitions(call, name, [["1"]])
    changed(call, lambda table: table.sd.cols.pop(1))
    changed(call, lambda table: table.sd.cols.reverse())
    partition = deepcopy(partitions.get_partition(call, name, ["1"]))
    partition.sd.cols.pop(1)
    alter_partitions(call, name, [partition])
    assert [column.name for column in tables.get_table(call, name).sd.cols] == ["c", "a"]
    assert [column.name for column in partitions.get_partition(call, name, ["1"]).sd.cols] == ["a", "c"]


@pytest.mark.parametrize("parameters", [{}, {"spark.sql.sources.provider": "parquet"}, {"table_type": "x"}, {"comment": "iceberg"}])
@pytest.mark.parametrize("input_format", ["in", "com.example.DeltaInputFormat", "org.apache.hadoop.mapred.TextInputFormat"])
def test_other_tables_do_not(call: Call, parameters: dict[str, str], input_format: str) -> None:
    table = described([("a", "bigint"), ("b", "string"), ("c", "int")])
    table.parameters, table.sd.inputFormat = parameters, input_format
    create_table(call, table)
    with pytest.raises(InvalidOperation, match="incompatible"):
        changed(call, lambda table: table.sd.cols.pop(1))


def analyzed(call: Call, name: TableName, columns: Sequence[str], partition: str | None = None) -> None:
    data = ColumnStatisticsData(longStats=LongColumnStatsData(numNulls=0, numDVs=1))
    structs = [ColumnStatisticsObj(colName=column, colType="int", statsData=data) for column in columns]
    description = ColumnStatisticsDesc(isTblLevel=partition is None, dbName=name.database, tableName=name.table, partName=partition)
    write_statistics.set_statistics(call, [ColumnStatistics(statsDesc=description, statsObj=structs, engine="hive")])


def of_table(call: Call, columns: Sequence[str]) -> list[str]:
    return [column.colName for column in statistics.get_table(call, NAME, columns).statsObj]


@pytest.mark.parametrize("cascade", [False, True])
def test_nothing_is_known_of_a_column_under_a_name_that_it_has_no_more(call: Call, cascade: bool) -> None:
    name = make_table(call, "t", columns=[("a", "int"), ("b", "int")], keys=[("k", "string")])
    add_partitions(call, name, [["1"]])
    analyzed(call, name, ["a", "b"])
    analyzed(call, name, ["a", "b"], "k=1")
    changed(call, renamed("a", "c"), cascade=cascade)
    changed(call, lambda table: table.sd.cols.append(FieldSchema("a", "int")), cascade=cascade)
    assert of_table(call, ["a", "b", "c"]) == ["b"]
    found = statistics.get_partitions(call, name, ["k=1"], ["a", "b", "c"])
    assert [column.colName for each in found.values() for column in each.statsObj] == ["b"]
    assert tables.get_table(call, name).parameters["COLUMN_STATS_ACCURATE"] == '{"COLUMN_STATS":{"b":"true"}}'
    if cascade:
        assert partitions.get_partition(call, name, ["1"]).parameters["COLUMN_STATS_ACCURATE"] == '{"COLUMN_STATS":{"b":"true"}}'


def test_a_partition_s_own_change_of_columns_takes_the_mark_of_their_statistics(call: Call) -> None:
    name = make_table(call, "t", columns=[("a", "int"), ("b", "int")], keys=[("k", "string")])
    add_partitions(call, name, [["1"]])
    analyzed(call, name, ["a", "b"], "k=1")
    partition = deepcopy(partitions.get_partition(call, name, ["1"]))
    partition.sd.cols[0].name = "c"
    alter_partitions(call, name, [partition], environment={"DO_NOT_UPDATE_STATS": "true"})
    assert partitions.get_partition(call, name, ["1"]).parameters["COLUMN_STATS_ACCURATE"] == '{"COLUMN_STATS":{"b":"true"}}'
