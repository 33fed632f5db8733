import math

import orjson
import pytest

from metastore.errors import InvalidObject, MetaError, NoSuchObject
from metastore.idl import (
    BinaryColumnStatsData,
    BooleanColumnStatsData,
    ColumnStatisticsData,
    ColumnStatisticsObj,
    Date,
    DateColumnStatsData,
    Decimal,
    DecimalColumnStatsData,
    DoubleColumnStatsData,
    LongColumnStatsData,
    StringColumnStatsData,
    Timestamp,
    TimestampColumnStatsData,
)
from metastore.rules.statistics import statistics_validity
from metastore.service.call.context import Call
from metastore.service.call.names import TableName
from metastore.service.catalog.partitions.partitions import get_partition
from metastore.service.catalog.statistics import delete_statistics, statistics, write_statistics
from metastore.service.catalog.tables.tables import get_table
from metastore.store.schema.model import partition_statistics
from tests.support.catalog.catalog import Statements, add_partitions, make_table
from tests.support.catalog.column_statistics import column, numbers, of, texts, with_statistics
from tests.support.databases.statement_counts import StatementCounts

ALL = [
    column("boo", "boolean", booleanStats=BooleanColumnStatsData(numTrues=3, numFalses=4, numNulls=5, bitVectors=b"\x00\xff")),
    column("lon", "bigint", longStats=LongColumnStatsData(lowValue=-(2**63), highValue=2**63 - 1, numNulls=0, numDVs=9, bitVectors=b"HL")),
    column("dou", "double", doubleStats=DoubleColumnStatsData(lowValue=-math.inf, highValue=1.5, numNulls=1, numDVs=2, histogram=b"h")),
    column("str", "string", stringStats=StringColumnStatsData(maxColLen=7, avgColLen=2.0, numNulls=1, numDVs=2)),
    column("bin", "binary", binaryStats=BinaryColumnStatsData(maxColLen=7, avgColLen=2.5, numNulls=1)),
    column(
        "dec",
        "decimal(9,2)",
        decimalStats=DecimalColumnStatsData(
            lowValue=Decimal(unscaled=b"\xff\x01", scale=2), highValue=Decimal(unscaled=b"\x01", scale=0), numNulls=1, numDVs=2
        ),
    ),
    column("dat", "date", dateStats=DateColumnStatsData(lowValue=Date(-5), highValue=Date(19000), numNulls=1, numDVs=2)),
    column("tim", "timestamp", timestampStats=TimestampColumnStatsData(highValue=Timestamp(12), numNulls=1, numDVs=2)),
]


def test_statistics_of_every_type_come_back_as_they_were_written(call: Call) -> None:
    table = make_table(call, "t", [(each.colName, each.colType) for each in ALL])
    write_statistics.set_statistics(call, [of(table, *ALL)])
    found = statistics.get_table(call, table, [each.colName for each in ALL], "hive")
    assert found.statsObj == ALL
    assert found.statsDesc.lastAnalyzed is not None
    assert found.statsDesc.isTblLevel


def test_a_value_that_is_no_number_survives(call: Call) -> None:
    table = make_table(call, "t", [("d", "double")])
    data = DoubleColumnStatsData(lowValue=math.nan, highValue=math.nan, numNulls=0, numDVs=0)
    write_statistics.update_table(call, table, of(table, column("d", "double", doubleStats=data)))
    read = statistics.get_table(call, table, ["d"]).statsObj[0].statsData.doubleStats
    assert math.isnan(read.lowValue)


def test_a_column_without_statistics_is_left_out(call: Call) -> None:
    table = make_table(call, "t")
    write_statistics.set_statistics(call, [of(table, numbers("A", 1, 2))])
    assert [each.colName for each in statistics.get_table(call, table, ["a", "B", "zz"]).statsObj] == ["a"]
    with pytest.raises(NoSuchObject, match="column b"):
        statistics.get_table_column(call, table, "b")


def test_a_second_write_replaces_only_the_columns_that_it_names(call: Call) -> None:
    table = make_table(call, "t")
    write_statistics.set_statistics(call, [of(table, numbers("a", 1, 2), texts("b", 3, 1.5))])
    write_statistics.set_statistics(call, [of(table, numbers("a", 10, 20))])
    found = statistics.get_table(call, table, ["a", "b"]).statsObj
    assert found == [numbers("a", 10, 20), texts("b", 3, 1.5)]


def test_a_merge_joins_old_and_new(call: Call) -> None:
    table = make_table(call, "t")
    write_statistics.set_statistics(call, [of(table, numbers("a", 1, 5, nulls=2, distinct=3))])
    write_statistics.set_statistics(call, [of(table, numbers("a", -4, 2, nulls=1, distinct=9))], merged=True)
    assert statistics.get_table(call, table, ["a"]).statsObj == [numbers("a", -4, 5, nulls=3, distinct=9)]


def test_engines_have_statistics_of_their_own(call: Call) -> None:
    table = make_table(call, "t")
    write_statistics.set_statistics(call, [of(table, numbers("a", 1, 2))])
    write_statistics.set_statistics(call, [of(table, numbers("a", 3, 4), engine="impala")])
    assert statistics.get_table(call, table, ["a"]).statsObj == [numbers("a", 1, 2)]
    assert statistics.get_table(call, table, ["a"], "impala").statsObj == [numbers("a", 3, 4)]
    delete_statistics.from_table(call, table, ["a"], "hive")
    assert statistics.get_table(call, table, ["a"]).statsObj == []
    assert statistics.get_table(call, table, ["a"], "impala").statsObj == [numbers("a", 3, 4)]


def test_errors_name_the_missing_object(call: Call) -> None:
    table = make_table(call, "t", keys=[("p", "string")])
    missing = TableName("hive", "default", "nope")
    with pytest.raises(NoSuchObject, match="nope"):
        write_statistics.set_statistics(call, [of(missing, numbers("a", 1, 2))])
    with pytest.raises(NoSuchObject, match="nope"):
        statistics.get_table(call, missing, ["a"])
    with pytest.raises(MetaError, match="Column zz doesn't exist"):
        write_statistics.set_statistics(call, [of(table, numbers("zz", 1, 2))])
    with pytest.raises(NoSuchObject, match="p=1"):
        write_statistics.set_statistics(call, [of(table, numbers("a", 1, 2), partition="p=1")])
    with pytest.raises(NoSuchObject, match="doesn't exist"):
        delete_statistics.from_table(call, table, ["a"])


def test_statistics_of_two_tables_or_twice_of_one_partition_are_refused(call: Call) -> None:
    table = make_table(call, "t", keys=[("p", "string")])
    other = make_table(call, "u", keys=[("p", "string")])
    add_partitions(call, table, [["1"]])
    one = of(table, numbers("a", 1, 2), partition="p=1")
    with pytest.raises(MetaError, match="several objects"):
        write_statistics.set_statistics(call, [one, of(other, numbers("a", 1, 2), partition="p=1")])
    with pytest.raises(MetaError, match="more than once"):
        write_statistics.set_statistics(call, [one, of(table, numbers("a", 1, 2), partition="P=1")])
    assert statistics.get_partitions(call, table, ["p=1"], ["a"]) == {}


def test_partitions_are_aggregated(call: Call) -> None:
    table = make_table(call, "t", keys=[("p", "string")])
    add_partitions(call, table, [["1"], ["2"], ["3"]])
    write_statistics.set_statistics(
        call,
        [
            of(table, numbers("a", 5, 9, nulls=1, distinct=4), texts("b", 3, 1.5, nulls=2, distinct=2), partition="p=1"),
            of(table, numbers("a", -1, 7, nulls=2, distinct=6), texts("b", 9, 1.0, nulls=3, distinct=3), partition="p=2"),
        ],
    )
    found = statistics.get_aggregated(call, table, ["p=1", "p=2", "p=3"], ["a", "B"])
    assert found.partsFound == 2
    joined = texts("b", 9, 1.5, nulls=5, distinct=3)
    joined.statsData.stringStats.bitVectors = None
    assert found.colStats == [numbers("a", -1, 9, nulls=3, distinct=6), joined]
    assert statistics.get_aggregated(call, table, [], ["a"]).partsFound == 0


@pytest.mark.parametrize("number", [1, 1000])
def test_a_thousand_partitions_take_as_many_statements_as_one(call: Call, counts: StatementCounts, number: int) -> None:
    table = make_table(call, "t", keys=[("p", "int")])
    add_partitions(call, table, [[str(number)] for number in range(1000)])
    new = [of(table, numbers("a", n, n + 1), texts("b", n, 1.0), partition=f"p={n}") for n in range(1000)]
    counts("first write", lambda: write_statistics.set_statistics(call, new[:1]))
    counts("write", lambda: write_statistics.set_statistics(call, new[-number:]))  # the table is remembered
    names = [f"p={n}" for n in range(1000)]
    found = counts("read", lambda: statistics.get_partitions(call, table, names[-number:], ["a", "b"]))
    assert found["p=999"].statsObj == [numbers("a", 999, 1000), texts("b", 999, 1.0)]
    assert len(found) == number


def test_statistics_of_no_columns_leave_a_partition_without_any(call: Call) -> None:
    table = make_table(call, "t", keys=[("p", "int")])
    add_partitions(call, table, [["1"], ["2"]])
    write_statistics.set_statistics(call, [of(table, partition="p=1"), of(table, numbers("a", 1, 2), partition="p=2")])
    assert set(statistics.get_partitions(call, table, ["p=1", "p=2"], ["a"])) == {"p=2"}
    rows = call.database.read(lambda session: session.rows(partition_statistics.select()))
    assert len(rows) == 1


def test_columns_that_others_wrote_are_read_and_kept(call: Call, statements: Statements) -> None:
    """Statistics of the same columns are overwritten unread. Statistics of other columns are read in the same number of statements."""
    table = make_table(call, "t", keys=[("p", "int")])
    add_partitions(call, table, [[str(number)] for number in range(1000)])
    others = [of(table, texts("b", n, 1.0), partition=f"p={n}") for n in range(0, 1000, 2)]
    write_statistics.set_statistics(call, others)
    counts = []
    for number in (1, 1000):
        new = [of(table, numbers("a", n, n + 1), partition=f"p={n}") for n in range(number)]
        for _ in range(2):
            with statements() as seen:
                write_statistics.set_statistics(call, new)
            counts.append(len(seen))
    with statements() as same:
        write_statistics.set_statistics(call, [of(table, texts("b", 0, 1.0), numbers("a", 0, 1), partition="p=0")])
    assert counts[:2] == counts[2:] == [counts[1] + 1, counts[1]]  # the marks exist at the second calls
    assert counts[1] == len(same)
    found = statistics.get_partitions(call, table, [f"p={n}" for n in range(1000)], ["a", "b"])
    for n in range(1000):
        assert found[f"p={n}"].statsObj == [numbers("a", n, n + 1), *([] if n % 2 else [texts("b", n, 1.0)])]


def test_columns_that_went_are_no_longer_known(call: Call) -> None:
    table = make_table(call, "t", keys=[("p", "int")])
    add_partitions(call, table, [["1"]])
    both, one = of(table, numbers("a", 1, 2), texts("b", 1, 1.0), partition="p=1"), of(table, texts("b", 2, 2.0), partition="p=1")
    for delete_first in (False, True):
        write_statistics.set_statistics(call, [both])
        if delete_first:
            delete_statistics.delete(call, table, ["p=1"], ["a"])
        write_statistics.set_statistics(call, [one])
        found = statistics.get_partitions(call, table, ["p=1"], ["a", "b"])["p=1"].statsObj
        assert found == [*([] if delete_first else [numbers("a", 1, 2)]), texts("b", 2, 2.0)]


def test_the_marker_of_accurate_statistics_follows(call: Call) -> None:
    table = make_table(call, "t", keys=[("p", "string")])
    add_partitions(call, table, [["1"]])
    write_statistics.set_statistics(call, [of(table, numbers("a", 1, 2))])
    write_statistics.set_statistics(call, [of(table, texts("b", 1, 2.0), partition="p=1")])
    assert get_table(call, table).parameters["COLUMN_STATS_ACCURATE"] == '{"COLUMN_STATS":{"a":"true"}}'
    assert get_partition(call, table, ["1"]).parameters["COLUMN_STATS_ACCURATE"] == '{"COLUMN_STATS":{"b":"true"}}'
    delete_statistics.delete(call, table, None, ["a"])
    delete_statistics.delete(call, table, ["p=1"], None)
    assert "COLUMN_STATS_ACCURATE" not in get_table(call, table).parameters
    assert "COLUMN_STATS_ACCURATE" not in get_partition(call, table, ["1"]).parameters
    assert statistics.get_partitions(call, table, ["p=1"], ["a", "b"]) == {}


MARK = '{"COLUMN_STATS":{"a":"true"}}'
WITH_MARK = orjson.dumps({"COLUMN_STATS_ACCURATE": MARK}).decode()


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"k": WITH_MARK},
        {"k": WITH_MARK[1:-1]},
        {WITH_MARK: "v"},
        {WITH_MARK[1:-1]: "v"},
        {f'k":"v",{WITH_MARK[1:-1]},"l': ""},
        {"COLUMN_STATS_ACCURATE": '{"COLUMN_STATS":{"b":"true"}}'},
        {"COLUMN_STATS_ACCURATE": MARK, "k": 'v"'},
    ],
)
def test_the_marker_is_not_taken_from_other_texts(call: Call, parameters: dict[str, str]) -> None:
    """Partitions whose parameters have the same marker as another's are passed over without being decoded."""
    table = make_table(call, "t", keys=[("p", "int")])
    add_partitions(call, table, [["1"]], {"COLUMN_STATS_ACCURATE": MARK})
    add_partitions(call, table, [["2"]], parameters)
    write_statistics.set_statistics(call, [of(table, numbers("a", 1, 2), partition=f"p={number}") for number in (1, 2)])
    assert get_partition(call, table, ["1"]).parameters["COLUMN_STATS_ACCURATE"] == MARK
    found = get_partition(call, table, ["2"]).parameters
    columns = {"a", *({"b"} if '"b"' in parameters.get("COLUMN_STATS_ACCURATE", "") else ())}
    assert statistics_validity.exact_columns(found) == columns
    assert {key: found[key] for key in parameters if key != "COLUMN_STATS_ACCURATE"} == {
        key: value for key, value in parameters.items() if key != "COLUMN_STATS_ACCURATE"
    }


def test_partitions_may_share_the_statistics_of_their_columns(call: Call) -> None:
    table = make_table(call, "t", keys=[("p", "int")])
    add_partitions(call, table, [[str(number)] for number in range(5)])
    shared, upper = [numbers("a", 1, 2), texts("b", 3, 1.5)], column("A", "INT", longStats=LongColumnStatsData(5, 6, 0, 1))
    columns = [shared, shared[:1], [upper], shared, shared[::-1]]
    write_statistics.set_statistics(call, [of(table, *each, partition=f"p={number}") for number, each in enumerate(columns)])
    found = statistics.get_partitions(call, table, [f"p={number}" for number in range(5)], ["a", "b"])
    both, lower = [numbers("a", 1, 2), texts("b", 3, 1.5)], [numbers("a", 5, 6)]
    assert [found[f"p={number}"].statsObj for number in range(5)] == [both, both[:1], lower, both, both]
    assert (upper.colName, upper.colType) == ("A", "INT")


@pytest.mark.parametrize("merged", [False, True])
def test_statistics_that_say_nothing_are_refused_and_none_are_written(call: Call, merged: bool) -> None:
    columns = [("a", "int"), ("b", "int")]
    plain, parted = make_table(call, "t", columns), make_table(call, "p", columns, keys=[("k", "int")])
    add_partitions(call, parted, [["1"], ["2"]])
    empty = column("b", "int")
    for new in (
        [of(plain, numbers("a", 1, 9), empty)],
        [of(parted, numbers("a", 1, 9), partition="k=1"), of(parted, empty, partition="k=2")],
        [of(parted, numbers("a", 1, 9), empty, partition="k=1")],
    ):
        with pytest.raises(InvalidObject, match="Statistics of the column b are empty"):
            write_statistics.set_statistics(call, new, merged=merged)
    assert with_statistics(call, plain) == []
    assert with_statistics(call, parted, "k=1", "k=2") == []


@pytest.mark.parametrize(
    ("data", "lacking"),
    [
        (ColumnStatisticsData(longStats=LongColumnStatsData()), "longStats.numNulls"),
        (ColumnStatisticsData(longStats=LongColumnStatsData(numNulls=1)), "longStats.numDVs"),
        (ColumnStatisticsData(stringStats=StringColumnStatsData()), "stringStats.maxColLen"),
        (ColumnStatisticsData(binaryStats=BinaryColumnStatsData(maxColLen=1, avgColLen=1.0)), "binaryStats.numNulls"),
        (ColumnStatisticsData(booleanStats=BooleanColumnStatsData()), "booleanStats.numTrues"),
        (ColumnStatisticsData(dateStats=DateColumnStatsData(numNulls=0, numDVs=1, lowValue=Date())), "dateStats.lowValue.daysSinceEpoch"),
    ],
)
def test_statistics_that_no_client_could_read_are_refused(call: Call, data: ColumnStatisticsData, lacking: str) -> None:
    plain, parted = make_table(call, "t", [("a", "int")]), make_table(call, "p", [("a", "int")], keys=[("k", "int")])
    add_partitions(call, parted, [["1"]])
    wrong = ColumnStatisticsObj(colName="a", colType="int", statsData=data)
    for new in (of(plain, wrong), of(parted, wrong, partition="k=1")):
        with pytest.raises(InvalidObject, match=f"Statistics of the column a lack {lacking}"):
            write_statistics.set_statistics(call, [new])
    assert with_statistics(call, plain) == with_statistics(call, parted, "k=1") == []
