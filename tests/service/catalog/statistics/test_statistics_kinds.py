"""Statistics of times are stored in one kind, whichever client wrote them, and returned in the kind that the reading client knows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson
import pytest

from metastore.errors import InvalidObject
from metastore.idl import (
    ClientCapabilities,
    ClientCapability,
    ColumnStatistics,
    ColumnStatisticsData,
    ColumnStatisticsObj,
    Date,
    DateColumnStatsData,
    DecimalColumnStatsData,
    DoubleColumnStatsData,
    LongColumnStatsData,
    Timestamp,
    TimestampColumnStatsData,
    service,
)
from metastore.methods import METHODS
from metastore.rules.statistics.statistics_validity import exact_columns
from metastore.service.call.context import Call
from metastore.service.call.names import TableName
from metastore.service.catalog.partitions.partitions import get_partition
from metastore.service.catalog.statistics import statistics, write_statistics
from metastore.service.catalog.tables.tables import get_table
from metastore.service.operations import notifications
from metastore.store.catalog import statistics as rows
from metastore.store.catalog.partitions import partitions
from metastore.store.catalog.tables import tables
from tests.support.catalog.catalog import add_partitions, make_table
from tests.support.catalog.column_statistics import column, numbers, of, texts
from tests.support.catalog.event_log import events, message
from tests.support.catalog.replies import in_structs

pytestmark = pytest.mark.on_one_database

COLUMNS = [("a", "int"), ("b", "string"), ("z", "timestamp"), ("d", "date")]
RELEASES: dict[str, list[tuple[str, tuple[object, ...]]]] = {
    "2.3": [("get_table", ("db", "t"))],
    "3": [("get_database", ("@hive#db",))],
    "4": [("get_database_req", (None,))],
    "unknown": [],
}


def longs(name: str, low: int, high: int, nulls: int = 0, *, of_type: str = "timestamp") -> ColumnStatisticsObj:
    return column(name, of_type, longStats=LongColumnStatsData(lowValue=low, highValue=high, numNulls=nulls, numDVs=1))


def timestamps(low: int, high: int, nulls: int = 0) -> ColumnStatisticsObj:
    data = TimestampColumnStatsData(lowValue=Timestamp(low), highValue=Timestamp(high), numNulls=nulls, numDVs=1)
    return column("z", "timestamp", timestampStats=data)


def dates(low: int, high: int) -> ColumnStatisticsObj:
    return column("d", "date", dateStats=DateColumnStatsData(lowValue=Date(low), highValue=Date(high), numNulls=0, numDVs=1))


def answer(call: Call, method: str, **request: Any) -> Any:
    """Call a method whose only argument is a request, or which has several."""
    args = getattr(service, f"{method}_args")
    fields = list(args.thrift_spec.values())
    given = args(**{fields[0][1]: fields[0][2](**request)}) if len(fields) == 1 else args(**request)
    return in_structs(method, METHODS[method].handler(call, given))


def of_release(call: Call, release: str) -> Call:
    for method, arguments in RELEASES[release]:
        if (sign := METHODS[method].sign) is not None:
            call.client.release.note(sign, arguments)
    return call


READS: dict[str, Callable[[Call, dict[str, Any]], ColumnStatisticsObj]] = {
    "get_table_statistics_req": lambda call, engine: answer(
        call, "get_table_statistics_req", dbName="default", tblName="t", colNames=["z"], **engine
    ).tableStats[0],
    "get_partitions_statistics_req": lambda call, engine: answer(
        call, "get_partitions_statistics_req", dbName="default", tblName="p", colNames=["z"], partNames=["k=1"], **engine
    ).partStats["k=1"][0],
    "get_aggr_stats_for": lambda call, engine: answer(
        call, "get_aggr_stats_for", dbName="default", tblName="p", colNames=["z"], partNames=["k=1"], **engine
    ).colStats[0],
    "get_table_req": lambda call, engine: answer(
        call, "get_table_req", dbName="default", tblName="t", getColumnStats=True,
        capabilities=ClientCapabilities([ClientCapability.INSERT_ONLY_TABLES]), **engine,
    ).table.colStats.statsObj[0],
    "get_partitions_by_names_req": lambda call, engine: answer(
        call, "get_partitions_by_names_req", db_name="default", tbl_name="p", names=["k=1"], get_col_stats=True, **engine
    ).partitions[0].colStats.statsObj[0],
    "get_table_column_statistics": lambda call, _: answer(
        call, "get_table_column_statistics", db_name="default", tbl_name="t", col_name="z"
    ).statsObj[0],
    "get_partition_column_statistics": lambda call, _: answer(
        call, "get_partition_column_statistics", db_name="default", tbl_name="p", part_name="k=1", col_name="z"
    ).statsObj[0],
}  # fmt: skip


def put(call: Call, name: TableName, partition: str | None, *columns: ColumnStatisticsObj) -> None:
    """Store statistics as they are given, as the server did before."""

    def work(session: Any) -> None:
        key = tables.key(session, *name)
        assert key is not None
        encoded: rows.Encoded = {each.colName: [each.colType, 1, text] for each, text in zip(columns, rows.encode(columns), strict=True)}
        if partition is None:
            rows.write_table(session, key, "hive", encoded)
        else:
            (place,) = rows.locked(partitions.Locking(session, get_table(call, name), [partition]).rows() or ())
            rows.write_partitions(session, key, "hive", {place.key: rows.stored(encoded)})

    call.database.write(work)


def write(call: Call, name: TableName, partition: str | None, *columns: ColumnStatisticsObj, merged: bool = False) -> None:
    write_statistics.set_statistics(call, [of(name, *columns, partition=partition)], merged=merged)


@pytest.mark.parametrize("before", [False, True], ids=["written", "written before"])
@pytest.mark.parametrize("written", [longs("z", 1, 9, 2), timestamps(1, 9, 2)], ids=["longs", "timestamps"])
@pytest.mark.parametrize("method", READS)
def test_each_release_reads_timestamps_in_its_kind(call: Call, method: str, written: ColumnStatisticsObj, before: bool) -> None:
    plain, parted = make_table(call, "t", COLUMNS), make_table(call, "p", COLUMNS, keys=[("k", "string")])
    add_partitions(call, parted, [["1"]])
    for name, partition in ((plain, None), (parted, "k=1")):
        write(call, name, partition, written)
        if before:
            put(call, name, partition, written)
    wanted = {
        ("2.3", "hive"): longs("z", 1, 9, 2),
        ("3", "hive"): longs("z", 1, 9, 2),
        ("4", "hive"): timestamps(1, 9, 2),
        ("4", None): timestamps(1, 9, 2),
        ("unknown", None): longs("z", 1, 9, 2),
        ("unknown", "hive"): longs("z", 1, 9, 2) if method.endswith("column_statistics") else timestamps(1, 9, 2),
    }
    for (release, engine), right in wanted.items():
        call.client.release = type(call.client.release)()
        found = READS[method](of_release(call, release), {} if engine is None else {"engine": engine})
        assert found == right, (release, engine)


def test_impala_reads_longs_beside_any_other_call(call: Call) -> None:
    name = make_table(call, "t", COLUMNS)
    write_statistics.set_statistics(call, [of(name, timestamps(1, 9), engine="impala")])
    of_release(call, "4")
    assert statistics.get_table(call, name, ["z"], "impala").statsObj == [longs("z", 1, 9)]


@pytest.mark.parametrize("release", RELEASES)
def test_dates_come_back_as_dates(call: Call, release: str) -> None:
    name = make_table(call, "t", COLUMNS)
    write(call, name, None, longs("d", 5, 7, of_type="date"))
    of_release(call, release)
    for engine in (None, "hive"):
        assert statistics.get_table(call, name, ["d"], engine).statsObj == [dates(5, 7)]


PAIRS = pytest.mark.parametrize(
    ("old", "new"),
    [(longs("z", 1, 2, 1), timestamps(5, 9, 1)), (timestamps(1, 2, 1), longs("z", 5, 9, 1)), (longs("z", 1, 2, 1), longs("z", 5, 9, 1))],
    ids=["longs, timestamps", "timestamps, longs", "longs, longs"],
)
BEFORE = pytest.mark.parametrize("before", [False, True], ids=["written", "written before"])


@BEFORE
@PAIRS
def test_a_merge_joins_both_kinds(call: Call, old: ColumnStatisticsObj, new: ColumnStatisticsObj, before: bool) -> None:
    plain, parted = make_table(call, "t", COLUMNS), make_table(call, "p", COLUMNS, keys=[("k", "string")])
    add_partitions(call, parted, [["1"]])
    for name, partition in ((plain, None), (parted, "k=1")):
        write(call, name, partition, old)
        if before:
            put(call, name, partition, old)
        write(call, name, partition, new, merged=True)
    assert statistics.get_table(call, plain, ["z"], "hive").statsObj == [timestamps(1, 9, 2)]
    assert statistics.get_partitions(call, parted, ["k=1"], ["z"], "hive")["k=1"].statsObj == [timestamps(1, 9, 2)]
    for parameters in (get_table(call, plain).parameters, get_partition(call, parted, ["1"]).parameters):
        assert exact_columns(parameters) == {"z"}


@BEFORE
@PAIRS
def test_partitions_of_both_kinds_are_joined(call: Call, old: ColumnStatisticsObj, new: ColumnStatisticsObj, before: bool) -> None:
    name = make_table(call, "p", COLUMNS, keys=[("k", "string")])
    add_partitions(call, name, [["1"], ["2"]])
    write(call, name, "k=1", old)
    write(call, name, "k=2", new)
    if before:
        put(call, name, "k=1", old)
        put(call, name, "k=2", new)
    found = statistics.get_aggregated(call, name, ["k=1", "k=2"], ["z"], "hive")
    assert (found.colStats, found.partsFound) == ([timestamps(1, 9, 2)], 2)
    assert statistics.get_aggregated(call, name, ["k=1", "k=2"], ["z"]).colStats == [longs("z", 1, 9, 2)]


def test_a_partition_whose_column_is_of_another_kind_is_missing_among_the_joined(call: Call) -> None:
    """The column was a number when the partition was made, and is a text in the other partitions."""
    name = make_table(call, "p", COLUMNS, keys=[("k", "string")])
    add_partitions(call, name, [["1"], ["2"], ["3"]])
    for value, new in (("1", texts("b", 3, 1.5)), ("2", texts("b", 4, 2.0))):
        write(call, name, f"k={value}", numbers("a", 1, 2), new)
    write(call, name, "k=3", numbers("a", 5, 6), numbers("b", 1, 2))
    found = statistics.get_aggregated(call, name, ["k=1", "k=2", "k=3"], ["a", "b"])
    assert found.partsFound == 2
    assert [each.colName for each in found.colStats] == ["a", "b"]
    assert found.colStats[0].statsData.longStats.highValue == 6
    assert found.colStats[1].statsData.stringStats.maxColLen == 4


def test_statistics_that_can_not_be_merged_are_no_longer_exact(call: Call) -> None:
    plain, parted = make_table(call, "t", COLUMNS), make_table(call, "p", COLUMNS, keys=[("k", "string")])
    add_partitions(call, parted, [["1"]])
    old = column("b", "string", longStats=LongColumnStatsData(numNulls=1, numDVs=1))
    for name, partition in ((plain, None), (parted, "k=1")):
        write(call, name, partition, numbers("a", 1, 2), texts("b", 3, 1.5))
        put(call, name, partition, numbers("a", 1, 2), old)
        write(call, name, partition, numbers("a", 5, 6), texts("b", 4, 2.0), merged=True)
    for parameters in (get_table(call, plain).parameters, get_partition(call, parted, ["1"]).parameters):
        assert exact_columns(parameters) == {"a"}
    assert statistics.get_table(call, plain, ["a", "b"]).statsObj == [numbers("a", 1, 6), old]
    assert statistics.get_partitions(call, parted, ["k=1"], ["a", "b"])["k=1"].statsObj == [numbers("a", 1, 6), old]


@pytest.mark.parametrize("partition", [None, "k=1"])
def test_statistics_that_no_client_reads_of_the_type_are_refused(call: Call, partition: str | None) -> None:
    name = make_table(call, "t", COLUMNS, keys=[("k", "string")])
    add_partitions(call, name, [["1"]])
    for wrong, pattern in (
        (column("b", "string", longStats=LongColumnStatsData(numNulls=1, numDVs=1)), "column b are longStats.* set statsData.stringStats"),
        (column("z", "", dateStats=DateColumnStatsData(numNulls=1, numDVs=1)), "column z are dateStats.* set statsData.timestampStats"),
    ):
        with pytest.raises(InvalidObject, match=pattern):
            write(call, name, partition, numbers("a", 1, 2), wrong)
    assert statistics.get_table(call, name, ["a"]).statsObj == []
    assert statistics.get_partitions(call, name, ["k=1"], ["a"]) == {}


def test_numbers_come_back_in_the_kind_of_the_column_s_type(call: Call) -> None:
    name = make_table(call, "t", [("c", "decimal(9,2)"), ("e", "double")])
    double = DoubleColumnStatsData(lowValue=-1.5, highValue=0.1, numNulls=1, numDVs=2)
    write(call, name, None, column("c", "", doubleStats=double), column("e", "DOUBLE", longStats=LongColumnStatsData(1, 2, 1, 2)))
    decimal, other = statistics.get_table(call, name, ["c", "e"]).statsObj
    assert decimal.colType == "decimal(9,2)"
    data: DecimalColumnStatsData = decimal.statsData.decimalStats  # type: ignore[assignment]
    assert [(int.from_bytes(each.unscaled, "big", signed=True), each.scale) for each in (data.lowValue, data.highValue)] == [
        (-15, 1),
        (1, 1),
    ]
    assert other.statsData == ColumnStatisticsData(doubleStats=DoubleColumnStatsData(1.0, 2.0, 1, 2))


def test_events_have_timestamps_as_hive_4_reads_them(call: Call) -> None:
    plain, parted = make_table(call, "t", COLUMNS), make_table(call, "p", COLUMNS, keys=[("k", "string")])
    add_partitions(call, parted, [["1"], ["2"]])
    last = notifications.current_id(call)
    given = [longs("Z", 1, 9), longs("d", 1, 9, of_type="date")]
    write(call, plain, None, *given)
    write_statistics.set_statistics(call, [of(parted, *given, partition=f"k={number}") for number in (1, 2)])
    found = events(call, last)
    assert len(found) == 3
    for event in found:
        columns = orjson.loads(message(event)["colStatsJson"])["2"]["lst"][2:]
        assert [(each["1"]["str"], list(each["3"]["rec"])) for each in columns] == [("z", ["8"]), ("d", ["7"])], (
            "name, and number of the kind"
        )
    assert (given[0].colName, given[0].statsData.timestampStats) == ("Z", None), "the request is as it was"


def test_statistics_that_a_new_partition_brings_are_stored_in_the_same_kind(call: Call) -> None:
    name = make_table(call, "p", COLUMNS, keys=[("k", "string")])
    add_partitions(call, name, [["1"]])
    brought: ColumnStatistics = of(name, longs("z", 1, 9), partition="k=1")
    write_statistics.check_brought(call, get_table(call, name), [brought])
    write_statistics.write_brought(call, name, [(brought, None)])
    assert statistics.get_partitions(call, name, ["k=1"], ["z"], "hive")["k=1"].statsObj == [timestamps(1, 9)]
