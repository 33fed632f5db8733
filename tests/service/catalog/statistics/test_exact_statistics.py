"""Statistics of transactional tables hold only for queries that see the write which made them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from metastore.errors import MetaError
from metastore.idl import (
    ClientCapabilities,
    ClientCapability,
    ColumnStatisticsObj,
    EnvironmentContext,
    ObjectDictionary,
    service,
)
from metastore.methods import METHODS
from metastore.rules.statistics.statistics_validity import ACCURATE, NOBODY, StatisticsWriter, writer
from metastore.rules.transactions.snapshots import Snapshot, snapshot
from metastore.service.call.context import Call
from metastore.service.call.names import TableName
from metastore.service.catalog.partitions.alter_partitions import alter_partitions
from metastore.service.catalog.partitions.partitions import get_partition
from metastore.service.catalog.statistics import statistics, write_statistics
from metastore.service.catalog.tables.alter_table import alter_table
from metastore.service.catalog.tables.create_table import create_table
from metastore.service.catalog.tables.tables import drop_table, get_table
from tests.support.catalog.catalog import add_partitions, make_table
from tests.support.catalog.column_statistics import numbers, of
from tests.support.catalog.replies import in_structs
from tests.support.databases.statement_counts import StatementCounts

pytestmark = pytest.mark.on_one_database

KIND = {"transactional": "true", "transactional_properties": "insert_only"}
BASIC = '{"BASIC_STATS":"true"}'
EXACT = '{"BASIC_STATS":"true","COLUMN_STATS":{"a":"true"}}'
ONE, TWO = numbers("a", 1, 5), numbers("a", -4, 2)
BOTH = numbers("a", -4, 5)


def up_to(mark: int, *unseen: int, aborted: tuple[int, ...] = ()) -> Snapshot:
    return snapshot(mark, unseen, aborted)


def made(call: Call, partition: bool, parameters: dict[str, str] | None = None) -> tuple[TableName, str | None]:
    """Return a transactional table of which all statistics are exact, and its partition or None."""
    given = {ACCURATE: EXACT} if parameters is None else parameters
    name = make_table(call, "t", keys=[("p", "string")] if partition else [], parameters=KIND if partition else {**KIND, **given})
    if partition:
        add_partitions(call, name, [["1"]], parameters=given)
    return name, "p=1" if partition else None


def write(
    call: Call, where: tuple[TableName, str | None], new: ColumnStatisticsObj, by: StatisticsWriter = NOBODY, *, merged: bool = False
) -> bool:
    return write_statistics.set_statistics(call, [of(where[0], new, partition=where[1])], by=by, merged=merged)


def read(call: Call, where: tuple[TableName, str | None], seen: Snapshot | None = None) -> list[ColumnStatisticsObj]:
    name, partition = where
    if partition is None:
        return list(statistics.get_table(call, name, ["a"], seen=seen).statsObj)
    found = statistics.get_partitions(call, name, [partition], ["a"], seen=seen)
    stored = statistics.get_stored(call, name, [partition], ["a"], seen=seen)
    joined = statistics.get_aggregated(call, name, [partition], ["a"], seen=seen)
    assert bool(found) == bool(stored) == bool(joined.colStats) == bool(joined.partsFound)
    return list(found[partition].statsObj) if found else []


def state(call: Call, where: tuple[TableName, str | None]) -> tuple[str | None, int]:
    name, partition = where
    found = get_table(call, name) if partition is None else get_partition(call, name, [partition.removeprefix("p=")])
    return found.parameters.get(ACCURATE), found.writeId  # type: ignore[return-value]


partitioned = pytest.mark.parametrize("partition", [False, True])


@partitioned
def test_statistics_are_for_queries_that_see_the_write(call: Call, partition: bool) -> None:
    where = made(call, partition)
    assert write(call, where, ONE, StatisticsWriter(3, up_to(3)))
    assert state(call, where) == (EXACT, 3)
    assert read(call, where) == read(call, where, up_to(3)) == read(call, where, up_to(7, 5)) == [ONE]
    assert read(call, where, up_to(2)) == read(call, where, up_to(4, 3)) == read(call, where, up_to(4, aborted=(3,))) == []


@partitioned
def test_statistics_beside_a_number_of_rows_that_is_not_exact_are_for_nobody_with_a_snapshot(call: Call, partition: bool) -> None:
    where = made(call, partition, {})
    write(call, where, ONE, StatisticsWriter(3, up_to(3)))
    assert read(call, where) == [ONE]
    assert read(call, where, up_to(3)) == []


@partitioned
def test_a_writer_that_does_not_see_the_last_write_leaves_nothing_exact(call: Call, partition: bool) -> None:
    where = made(call, partition)
    write(call, where, ONE, StatisticsWriter(3, up_to(3)))
    assert write(call, where, TWO, StatisticsWriter(4, up_to(4, 3)))
    assert state(call, where) == (None, 4)
    assert read(call, where, up_to(4)) == []


@partitioned
def test_leavings_of_an_aborted_writer_may_be_replaced(call: Call, partition: bool) -> None:
    where = made(call, partition)
    write(call, where, ONE, StatisticsWriter(3, up_to(3)))
    write(call, where, TWO, StatisticsWriter(4, up_to(4, aborted=(3,))))
    assert state(call, where) == (EXACT, 4)
    assert read(call, where, up_to(4)) == [TWO]


@partitioned
def test_a_merge_joins_the_statistics_that_the_writer_sees(call: Call, partition: bool) -> None:
    where = made(call, partition)
    write(call, where, ONE, StatisticsWriter(3, up_to(3)))
    assert write(call, where, TWO, StatisticsWriter(4, up_to(4)), merged=True)
    assert read(call, where, up_to(4)) == [BOTH]
    assert state(call, where) == (EXACT, 4)


@partitioned
def test_a_merge_with_statistics_that_the_writer_does_not_see_leaves_nothing_exact(call: Call, partition: bool) -> None:
    where = made(call, partition)
    write(call, where, ONE, StatisticsWriter(3, up_to(3)))
    assert not write(call, where, TWO, StatisticsWriter(4, up_to(4, 3)), merged=True)
    assert state(call, where) == (None, 4)
    assert read(call, where) == [ONE]


@partitioned
@pytest.mark.parametrize("transactional", [False, True])
def test_a_part_is_not_merged_into_statistics_that_are_not_exact(call: Call, partition: bool, transactional: bool) -> None:
    name = make_table(call, "t", keys=[("p", "string")] if partition else [], parameters=KIND if transactional else {})
    if partition:
        add_partitions(call, name, [["1"]])
    where = (name, "p=1" if partition else None)
    assert write(call, where, TWO, merged=True)
    assert read(call, where) == []
    assert state(call, where)[0] is None


@partitioned
def test_without_a_transaction_no_statistics_become_exact(call: Call, partition: bool) -> None:
    where = made(call, partition)
    with pytest.raises(MetaError, match=r"Cannot change stats state for a transactional table .*default\.t"):
        write(call, where, ONE)
    write(call, where, ONE, StatisticsWriter(3, up_to(3)))
    with pytest.raises(MetaError, match="send writeId and validWriteIdList"):
        write(call, where, TWO)
    assert read(call, where) == [ONE]


def test_without_a_transaction_statistics_are_stored_where_no_number_of_rows_is_exact(call: Call) -> None:
    where = made(call, False, {})
    write(call, where, ONE)
    assert read(call, where) == [ONE]
    assert state(call, where) == ('{"COLUMN_STATS":{"a":"true"}}', -1)
    write(call, where, ONE, StatisticsWriter(3, up_to(3)))
    write(call, where, TWO)
    assert state(call, where) == (None, 3)


@pytest.mark.parametrize("kind", [{}, {"transactional": "false"}])
def test_other_tables_have_no_write_ids(call: Call, kind: dict[str, str]) -> None:
    name = make_table(call, "t", parameters={**kind, ACCURATE: EXACT})
    write(call, (name, None), ONE, StatisticsWriter(3, up_to(3)))
    assert state(call, (name, None))[1] == -1
    assert read(call, (name, None), up_to(1)) == [ONE]


@pytest.mark.parametrize("seen", [None, up_to(3)], ids=["without", "with"])
def test_snapshots_cost_no_statement(call: Call, counts: StatementCounts, seen: Snapshot | None) -> None:
    name, _ = made(call, partition=True)
    write_statistics.set_statistics(call, [of(name, ONE, partition="p=1")], by=StatisticsWriter(3, up_to(3)))
    counts("read of partitions", lambda: statistics.get_stored(call, name, ["p=1"], ["a"], seen=seen))
    counts("read of a table", lambda: statistics.get_table(call, name, ["a"], seen=seen))
    counts("aggregate", lambda: statistics.get_aggregated(call, name, ["p=1"], ["a"], seen=seen))


def alter(call: Call, where: tuple[TableName, str | None], parameters: dict[str, str], by: StatisticsWriter = NOBODY) -> None:
    name, partition = where
    if partition is None:
        table = get_table(call, name)
        table.parameters = {**KIND, **parameters}
        alter_table(call, name, table, environment={"DO_NOT_UPDATE_STATS": "true"}, by=by)
    else:
        found = get_partition(call, name, [partition.removeprefix("p=")])
        found.parameters = dict(parameters)
        alter_partitions(call, name, [found], environment={"DO_NOT_UPDATE_STATS": "true"}, by=by)


@partitioned
def test_an_insert_sends_its_write_id_with_its_number_of_rows(call: Call, partition: bool) -> None:
    where = made(call, partition, {"numRows": "0", ACCURATE: BASIC})
    alter(call, where, {"numRows": "4", ACCURATE: BASIC}, StatisticsWriter(1, up_to(1)))
    assert state(call, where) == (BASIC, 1)
    alter(call, where, {"numRows": "9", ACCURATE: BASIC}, StatisticsWriter(2, up_to(2, 1)))
    assert state(call, where) == (None, 2)


@partitioned
def test_without_a_transaction_the_mark_may_stay_or_go(call: Call, partition: bool) -> None:
    where = made(call, partition, {"numRows": "4"})
    alter(call, where, {"numRows": "4", "k": "v", ACCURATE: BASIC, "numFiles": "1"}, StatisticsWriter(3, up_to(3)))
    assert state(call, where) == (None, 3)
    alter(call, where, {"numRows": "5", ACCURATE: BASIC}, StatisticsWriter(4, up_to(4)))
    with pytest.raises(MetaError, match="without providing the transactional write state"):
        alter(call, where, {"numRows": "6", ACCURATE: EXACT})
    alter(call, where, {"numRows": "5", "k": "v", ACCURATE: BASIC})
    assert state(call, where) == (BASIC, 4)
    alter(call, where, {"k": "v"})
    assert state(call, where) == (None, 4)
    with pytest.raises(MetaError, match="without providing the transactional write state"):
        alter(call, where, {"numRows": "6", ACCURATE: BASIC})


def test_nothing_is_exact_in_a_table_that_becomes_transactional(call: Call) -> None:
    name = make_table(call, "t", parameters={"numRows": "4", ACCURATE: BASIC})
    alter(call, (name, None), {"numRows": "4", ACCURATE: BASIC})
    assert state(call, (name, None)) == (None, -1)


@pytest.mark.parametrize(
    ("asked", "exact"),
    [
        (b'{"enabled":true,"columnNames":["a"]}', EXACT),
        (b'{"enabled":true}', '{"BASIC_STATS":"true","COLUMN_STATS":{"a":"true","b":"true"}}'),
        (b'{"enabled":false,"columnNames":["a"]}', None),
        (b"no JSON", None),
        (None, None),
    ],
)
@pytest.mark.parametrize("empty", [True, False])
def test_all_is_exact_in_a_table_that_is_created_empty_if_the_client_asks_for_it(
    call: Call, asked: bytes | None, exact: str | None, empty: bool
) -> None:
    first = make_table(call, "t", parameters=KIND)
    table = get_table(call, first)
    drop_table(call, first, delete_data=False)
    folder = Path(table.sd.location.removeprefix("file:"))
    assert folder.is_dir()
    if not empty:
        (folder / "delta_0000001_0000001").mkdir()
        (folder / "delta_0000001_0000001" / "file").touch()
    if asked is not None:
        table.dictionary = ObjectDictionary({"setStatsStateForCreateTable": [asked]})
    create_table(call, table)
    found = get_table(call, first)
    assert found.parameters.get(ACCURATE) == (exact if empty else None)
    assert found.parameters.get("numRows") == ("0" if exact and empty else None)
    assert found.dictionary is None


def answer(call: Call, method: str, **fields: object) -> Any:
    """Answer a request method as the wire does, from bytes to bytes."""
    arguments = getattr(service, f"{method}_args")()
    (spec,) = arguments.thrift_spec.values()
    setattr(arguments, spec[1], spec[2](**fields))
    return in_structs(method, METHODS[method].handler(call, arguments))


def test_a_table_is_exact_for_queries_that_see_its_last_write(call: Call) -> None:
    name, _ = where = made(call, False, {"numRows": "0", ACCURATE: BASIC})
    alter(call, where, {"numRows": "4", ACCURATE: BASIC}, StatisticsWriter(2, up_to(2)))
    for text, exact in (
        (None, None),
        ("default.t:2:9:", True),
        ("default.t:3:9:", True),
        ("default.t:1:9:", False),
        ("default.t:2:2:2", False),
    ):
        table = answer(
            call,
            "get_table_req",
            dbName=name.database,
            tblName=name.table,
            validWriteIdList=text,
            capabilities=ClientCapabilities([ClientCapability.INSERT_ONLY_TABLES]),
        ).table
        assert table.isStatsCompliant is exact
        assert (ACCURATE in table.parameters) == (exact is not False)
        assert table.parameters["numRows"] == "4"


@pytest.mark.parametrize(
    ("method", "database", "more"),
    [
        ("get_partitions_by_names_req", "db_name", {"tbl_name": "t", "names": ["p=1", "p=2"]}),
        ("get_partitions_req", "dbName", {"tblName": "t", "maxParts": -1}),
        ("get_partitions_ps_with_auth_req", "dbName", {"tblName": "t", "maxParts": -1}),
    ],
)
def test_partitions_are_exact_for_queries_that_see_their_last_write(
    call: Call, method: str, database: str, more: dict[str, object]
) -> None:
    name, _ = where = made(call, True, {"numRows": "0", ACCURATE: BASIC})
    add_partitions(call, name, [["2"]], parameters={"numRows": "0", ACCURATE: BASIC})
    alter(call, where, {"numRows": "4", ACCURATE: BASIC}, StatisticsWriter(2, up_to(2)))
    for text, exact in ((None, True), ("default.t:2:9:", True), ("default.t:1:9:", False)):
        one, two = answer(call, method, **{database: name.database, "validWriteIdList": text}, **more).partitions
        assert (ACCURATE in one.parameters, ACCURATE in two.parameters) == (exact, True)


def test_requests_say_in_which_transaction_they_are_made(call: Call) -> None:
    name, _ = where = made(call, True, {"numRows": "0", ACCURATE: BASIC})
    table, partition = get_table(call, name), get_partition(call, name, ["1"])
    partition.parameters = {"numRows": "4", ACCURATE: BASIC}
    common: dict[str, Any] = {
        "dbName": name.database,
        "tableName": name.table,
        "validWriteIdList": "default.t:3:9:",
        "environmentContext": EnvironmentContext(properties={"DO_NOT_UPDATE_STATS": "true"}),
    }
    answer(call, "alter_partitions_req", **common, partitions=[partition], writeId=3)
    assert state(call, where) == (BASIC, 3)
    partition.writeId = 4
    partition.parameters["numRows"] = "5"
    answer(call, "alter_partitions_req", **{**common, "validWriteIdList": "default.t:4:9:"}, partitions=[partition])
    assert state(call, where) == (BASIC, 4)
    table.writeId = 5
    answer(call, "alter_table_req", **common, table=table)
    assert state(call, (name, None))[1] == 5
    new = [of(name, ONE, partition="p=1")]
    reply = answer(
        call, "update_partition_column_statistics_req", colStats=new, writeId=6, validWriteIdList="default.t:6:9:", engine="hive"
    )
    assert reply.result
    assert state(call, where) == (EXACT, 6)
    request = {"dbName": name.database, "tblName": name.table, "colNames": ["a"], "partNames": ["p=1"], "engine": "hive"}
    for text, found in (("default.t:6:9:", 1), ("default.t:5:9:", 0)):
        assert len(answer(call, "get_aggr_stats_for", **request, validWriteIdList=text).colStats) == found


def test_statistics_of_columns_come_with_a_table_that_is_asked_for_with_them(call: Call) -> None:
    name = make_table(call, "plain")
    write_statistics.set_statistics(call, [of(name, ONE)])
    asked: dict[str, Any] = {"dbName": "default", "tblName": "plain", "engine": "hive"}

    def read_with(**more: Any) -> Any:
        return answer(call, "get_table_req", **asked, **more).table.colStats

    assert read_with() is None
    assert read_with(getColumnStats=True).statsObj == [ONE]
    where = made(call, partition=False)
    write(call, where, ONE, StatisticsWriter(3, up_to(3)))
    asked |= {"tblName": "t", "capabilities": ClientCapabilities(values=[ClientCapability.INSERT_ONLY_TABLES])}
    assert read_with(getColumnStats=True, validWriteIdList="default.t:3:9223372036854775807::").statsObj == [ONE]
    assert read_with(getColumnStats=True, validWriteIdList="default.t:2:9223372036854775807::") is None


def test_statistics_of_columns_come_with_partitions_that_are_asked_for_with_them(call: Call) -> None:
    name = make_table(call, "plain", keys=[("p", "string")])
    add_partitions(call, name, [["1"], ["2"], ["3"]])
    write_statistics.set_statistics(call, [of(name, ONE, partition="p=1"), of(name, numbers("b", 0, 1), partition="p=2")])

    def read_with(**more: Any) -> list[Any]:
        asked = {"db_name": "default", "tbl_name": "plain", "names": ["p=1", "p=2", "p=3"]}
        found = [each.colStats for each in answer(call, "get_partitions_by_names_req", **asked, **more).partitions]
        return [None if each is None else (each.statsDesc.partName, each.statsObj) for each in found]

    assert read_with() == [None] * 3
    assert read_with(get_col_stats=True, engine="hive") == [("p=1", [ONE]), ("p=2", [numbers("b", 0, 1)]), None]
    assert read_with(get_col_stats=True, engine="impala") == [None] * 3


def test_a_text_that_is_no_snapshot_is_refused() -> None:
    assert writer(3, "db.t:7:5:5:6") == StatisticsWriter(3, up_to(7, 5, aborted=(6,)))
    assert writer(None, None) == NOBODY
    with pytest.raises(MetaError, match="no high water mark"):
        writer(3, "db.t")
