import itertools
import threading
from collections.abc import Sequence

import pytest

from metastore.errors import InvalidOperation, MetaError, TransactionAborted
from metastore.idl import (
    ColumnStatistics,
    ColumnStatisticsData,
    ColumnStatisticsDesc,
    ColumnStatisticsObj,
    CompactionInfoStruct,
    CompactionMetricsDataRequest,
    CompactionMetricsDataStruct,
    CompactionMetricsMetricType,
    CompactionRequest,
    CompactionResponse,
    GetLatestCommittedCompactionInfoRequest,
    LongColumnStatsData,
)
from metastore.rules.transactions.compactions import read_properties
from metastore.service.call.context import Call
from metastore.service.catalog.statistics.write_statistics import set_statistics
from metastore.service.compaction import compaction_workers as workers
from metastore.service.compaction import compactions
from metastore.service.compaction.compaction_history import housekeep
from metastore.service.transactions import compactors
from metastore.store.compaction import compactions as store
from tests.service.compaction.test_initiator import acid_table
from tests.support.acid import acid_steps as acid
from tests.support.acid import txns
from tests.support.acid.compaction_queue import MAJOR, MINOR, T, ask, shown, states, take
from tests.support.catalog.catalog import MetastoreMaker, add_partitions, call_of, make_table
from tests.support.databases.statement_counts import StatementCounts


def test_a_compaction_goes_from_the_queue_into_the_history(call: Call) -> None:
    answer = ask(call, "T", "P=Q", MINOR, runas="alice", initiatorId="i", initiatorVersion="v", properties={"a": "1", "bc": ""})
    assert (answer.accepted, answer.state, answer.errormessage) == (True, "initiated", None)
    info = take(call)
    assert (info.id, info.dbname, info.tablename, info.partitionname, info.type) == (answer.id, "db", "t", "p=Q", MINOR)
    assert (info.state, info.workerId, info.runas) == ("w", "w1", "alice")
    assert read_properties(info.properties) == {"a": "1", "bc": ""}
    transaction = acid.begin(call.metastore)
    info.highestWriteId = 7
    workers.update_state(call, info, transaction)
    workers.set_job(call, info.id, "job_1")
    (row,) = shown(call)
    assert (row.state, row.workerid, row.workerVersion, row.hadoopJobId, row.txnId) == ("working", "w1", "4.0.1", "job_1", transaction)
    assert (row.hightestWriteId, row.hightestTxnId, row.runAs, row.initiatorId) == (7, 7, "alice", "i")
    assert (row.initiatorVersion, row.endTime, row.poolName, row.cleanerStart) == ("v", None, "default", None)
    (component,) = acid.rows(call.metastore, acid.COMPONENTS)
    assert {key: component[key] for key in ("transaction_id", "table", "partition", "operation", "write_id")} == {
        "transaction_id": transaction,
        "table": "t",
        "partition": "p=Q",
        "operation": "c",
        "write_id": 7,
    }
    workers.mark_compacted(call, info)
    (row,) = shown(call)
    assert (row.state, row.workerid, row.nextTxnId) == ("ready for cleaning", None, 0)
    workers.mark_cleaned(call, info)
    (row,) = shown(call)
    assert (row.state, row.errorMessage) == ("succeeded", None)
    assert row.endTime >= row.start >= row.enqueueTime


def test_an_object_is_queued_once(call: Call) -> None:
    first = ask(call).id
    before_hive_4 = ask(call, kind=MINOR)
    assert (before_hive_4.id, before_hive_4.accepted, before_hive_4.state) == (first, False, "initiated")
    again = ask(call, kind=MINOR, initiatorId="here-manual")
    assert (again.id, again.accepted, again.state) == (-1, False, "refused")
    assert again.errormessage == f"Compaction is already scheduled with state='initiated' and id={first}"
    assert ask(call, partition="p=1").accepted
    assert ask(call, table="u").accepted
    take(call)
    assert ask(call).errormessage == f"Compaction is already scheduled with state='working' and id={first}"


def test_a_table_that_waits_for_the_cleaner_is_queued_again_when_there_is_more(call: Call) -> None:
    writer = acid.begin(call.metastore)
    assert acid.allocate(call.metastore, T, writer) == 1
    acid.end(call.metastore, writer)
    key = ask(call).id
    info = take(call)
    info.highestWriteId = 1
    workers.mark_compacted(call, info)
    assert ask(call).errormessage == f"Compaction is already scheduled with state='ready for cleaning' and id={key}"
    late = acid.begin(call.metastore)
    acid.allocate(call.metastore, T, late)
    assert not ask(call).accepted
    acid.end(call.metastore, late)
    assert ask(call).accepted


def test_racing_requests_for_one_object_queue_it_once(call: Call, make_metastore: MetastoreMaker) -> None:
    calls = [call, *(call_of(make_metastore()) for _ in range(3))]
    accepted: list[bool] = []

    def many(each: Call) -> None:
        accepted.extend(ask(each, f"t{number}").accepted for number in range(5))

    threads = [threading.Thread(target=many, args=(each,)) for each in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (accepted.count(True), len(accepted)) == (5, 20)
    assert len(shown(call)) == 5


def test_compactions_that_never_started_stay_in_the_history_until_they_are_old(call: Call, make_metastore: MetastoreMaker) -> None:
    aborted = ask(call).id
    compactors.abort_compactions(call, [aborted])
    done = ask(call).id
    workers.mark_compacted(call, take(call))
    workers.mark_cleaned(call, CompactionInfoStruct(id=done))
    housekeep(call.metastore)
    assert states(call) == {aborted: "aborted", done: "succeeded"}
    forgetful = make_metastore(compactor_history_time=0)
    while aborted in states(call):
        housekeep(forgetful)
    assert states(call) == {done: "succeeded"}


def test_waiting_entries_can_be_aborted(call: Call) -> None:
    waiting, other = ask(call).id, ask(call, "u").id
    working = take(call).id
    assert working == waiting
    replies = compactors.abort_compactions(call, [waiting, other, 999])
    assert {key: (each.status, each.message) for key, each in replies.items()} == {
        waiting: ("Error", "Error while aborting compaction as compaction is in state-working"),
        other: ("Success", "Successfully aborted compaction"),
        999: ("Error", "No Such Compaction Id Available"),
    }
    assert states(call) == {waiting: "working", other: "aborted"}
    assert compactors.abort_compactions(call, []) == {}
    assert ask(call, "u").accepted


def test_entries_are_filtered_ordered_and_limited(call: Call) -> None:
    wanted = (("b", MAJOR, None), ("a", MINOR, "p"), ("c", MAJOR, "p"))
    keys = [ask(call, table, kind=kind, poolName=pool).id for table, kind, pool in wanted]
    ask(call, "a", "k=1")

    def ids(**filters: object) -> list[int]:
        return [each.id for each in shown(call, **filters)]  # type: ignore[misc]

    assert ids() == [*sorted(keys), keys[-1] + 1]
    assert take(call).id == keys[0]
    assert ids()[0] == keys[0], "what changed last comes first"
    assert ids(dbName="DB", tbName="A") == [keys[1], keys[2] + 1]
    assert ids(dbName="db", tbName="a", partName="K=1") == [keys[2] + 1]
    assert ids(dbName="other") == []
    assert ids(type=MINOR) == [keys[1]]
    assert ids(state="w") == [keys[0]]
    assert ids(poolName="p") == keys[1:]
    assert ids(id=keys[1]) == [keys[1]]
    assert ids(order='"CC_TABLE" desc, "CC_ID" desc', limit=3) == [keys[2], keys[0], keys[2] + 1]
    assert ids(order="tabname", poolName="p") == keys[1:]
    for wrong in ("1; DROP TABLE compactions", "tabname sideways", "tabname,", "salary"):
        with pytest.raises(MetaError, match="Compactions can not be ordered by"):
            ids(order=wrong)


def test_entries_come_in_one_order_with_and_without_a_limit(call: Call) -> None:
    """Hive's order is made by the database if it selects the first entries, and by the server if all entries are returned."""
    where, times = store.CompactedObject("hive", "db", "t", None), list(itertools.product((None, 10, 20), repeat=3))
    for number, (started, committed, ended) in enumerate(times):
        values = {"enqueued_ms": number % 2, "started_ms": started, "committed_ms": committed, "ended_ms": ended}
        call.database.write(lambda session, values=values: store.insert(session, where, "a", "s", values))  # type: ignore[misc]
    ids = [each.id for each in shown(call)]
    assert ids == [each.id for each in shown(call, limit=99)] != sorted(ids)
    assert ids[:5] == [each.id for each in shown(call, limit=5)]
    latest = [max(time or -1 for time in times[key - min(ids)]) for key in ids]
    assert latest == sorted(latest, reverse=True), "what changed last comes first"


def test_changes_that_an_open_transaction_is_judged_by_outlive_a_compaction(call: Call) -> None:
    first, second = txns.begin_one(call), txns.begin_one(call)
    for key in (first, second):
        txns.write(call, key, partition="p=1")
    txns.commit(call, first)

    def compact() -> None:
        ask(call, "t", "p=1")
        info = take(call)
        info.highestWriteId = 2
        workers.mark_compacted(call, info)
        workers.mark_cleaned(call, info)

    compact()
    with pytest.raises(TransactionAborted, match="write conflict on db/t/p=1"):
        txns.commit(call, second)
    compact()
    assert txns.completed(call, "transaction_id") == []


def test_the_latest_readable_compaction_of_each_partition_is_returned(call: Call) -> None:
    done = []
    for partition in ("p=1", "p=2", "p=1"):
        ask(call, partition=partition)
        info = take(call)
        workers.mark_compacted(call, info)
        done.append(info)
        if partition == "p=1":
            workers.mark_cleaned(call, info)
    ask(call, partition="p=3")

    def latest(names: Sequence[str] | None = None, after: int | None = None) -> list[tuple[int, str | None]]:
        request = GetLatestCommittedCompactionInfoRequest(
            dbname="db", tablename="T", partitionnames=None if names is None else list(names), lastCompactionId=after
        )
        return [(each.id, each.partitionname) for each in compactions.latest_committed(call, request)]

    assert latest() == [(done[2].id, "p=1"), (done[1].id, "p=2")]
    assert latest(["P=2", "p=3"]) == [(done[1].id, "p=2")]
    assert latest(after=done[1].id) == [(done[2].id, "p=1")]


def test_metrics_are_kept_while_they_reach_their_threshold(call: Call) -> None:
    kind = CompactionMetricsMetricType.NUM_DELTAS

    def update(value: int, partition: str | None = None, type_: int = kind) -> bool:
        return workers.update_metrics(
            call,
            CompactionMetricsDataStruct(
                dbname="db",
                tblname="t",
                partitionname=partition,
                type=type_,
                metricvalue=value,
                version=1,
                threshold=5,
            ),
        )

    assert [update(4), update(5), update(9), update(9, "p=1"), update(2), update(2)] == [True] * 6
    workers.remove_metrics(call, CompactionMetricsDataRequest(dbName="db", tblName="t", partitionName="p=1", type=kind))
    workers.remove_metrics(call, CompactionMetricsDataRequest(dbName="db", tblName="t", type=kind))
    with pytest.raises(InvalidOperation, match="Unexpected metric type 77: use one of"):
        update(9, None, 77)


def test_the_columns_with_statistics_are_returned(call: Call) -> None:
    name = make_table(call, "stats", keys=[("k", "string")])
    add_partitions(call, name, [["1"], ["2"]])

    def of(partition: str | None, table: str = "stats") -> list[str]:
        return workers.columns_with_statistics(call, CompactionInfoStruct(dbname="default", tablename=table, partitionname=partition))

    for partition, column in ((None, "a"), ("k=1", "a")):
        data = ColumnStatisticsData(longStats=LongColumnStatsData(numNulls=0, numDVs=1))
        set_statistics(
            call,
            [
                ColumnStatistics(
                    statsDesc=ColumnStatisticsDesc(isTblLevel=partition is None, dbName="default", tableName="stats", partName=partition),
                    statsObj=[ColumnStatisticsObj(colName=column, colType="int", statsData=data)],
                )
            ],
        )
    assert (of(None), of("k=1"), of("k=2"), of("k=3"), of(None, "nothing")) == (["a"], ["a"], [], [], [])


@pytest.mark.parametrize(
    "request_",
    [
        CompactionRequest(dbname="db", tablename="t"),
        CompactionRequest(dbname="db", tablename="t", type=99),
        CompactionRequest(dbname="db", type=MAJOR),
        CompactionRequest(tablename="t", type=MAJOR),
    ],
)
def test_incomplete_requests_are_refused_and_leave_nothing(call: Call, request_: CompactionRequest) -> None:
    for ask_for in (compactions.compact, lambda call, request: compactions.submit_for_cleanup(call, request, 1, 1)):
        with pytest.raises(MetaError, match=r"Unexpected compaction type|cannot be null"):
            ask_for(call, request_)
    assert shown(call) == []


def test_statements_of_the_queue(call: Call, counts: StatementCounts) -> None:
    ask(call, "first")
    counts("compact", lambda: ask(call))
    counts("show", lambda: shown(call, dbName="db"))
    counts("find_next", lambda: take(call))
    info = take(call)
    counts("find_nothing", lambda: workers.find_next(call, "w"))
    transaction = acid.begin(call.metastore)
    counts("update_state", lambda: workers.update_state(call, info, transaction))
    counts("set_job", lambda: workers.set_job(call, info.id, "j"))
    counts("mark_compacted", lambda: workers.mark_compacted(call, info))
    info.highestWriteId = 3
    counts("mark_cleaned", lambda: workers.mark_cleaned(call, info))
    counts("abort", lambda: compactors.abort_compactions(call, [1, 2, 3]))
    counts("latest", lambda: compactions.latest_committed(call, GetLatestCommittedCompactionInfoRequest(dbname="db", tablename="t")))


def test_tables_that_can_not_be_compacted_are_refused_with_the_reason(call: Call) -> None:
    make_table(call, "plain")
    parted, _ = acid_table(call, "parted", keys=(("k", "string"),))
    add_partitions(call, parted, [["1"]])
    acid_table(call, "whole")

    def of_default(table: str, partition: str | None = None) -> CompactionResponse:
        return compactions.compact(call, CompactionRequest(dbname="default", tablename=table, partitionname=partition, type=MAJOR))

    add_partitions(call, make_table(call, "plain_parts", keys=(("k", "string"),)), [["1"]])
    for table, partition, reason in (
        ("plain", None, "is not transactional"), ("plain", "k=1", "is not transactional"), ("plain_parts", "k=1", "is not transactional"),
        ("parted", None, "has partitions"), ("whole", "k=1", "has no partitions"),
    ):  # fmt: skip
        answer = of_default(table, partition)
        assert (answer.accepted, answer.state) == (False, "refused")
        assert reason in answer.errormessage
    assert shown(call) == []
    assert of_default("parted", "k=1").accepted
    assert of_default("whole").accepted
    assert of_default("missing").accepted, "as by Hive's server"
    make_table(call, "lake", kind="EXTERNAL_TABLE", parameters={"EXTERNAL": "TRUE", "table_type": "ICEBERG"})
    assert of_default("lake").accepted, "its engine compacts it"
    assert of_default("plain_parts", "k=9").accepted, "so of a partition that is not there"
