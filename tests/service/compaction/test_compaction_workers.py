"""Workers take entries of the queue, and end them."""

import threading

import pytest

from metastore.errors import MetaError, NoSuchTransaction, TransactionAborted
from metastore.idl import CompactionInfoStruct, CompactionRequest, CompactionType, TxnType
from metastore.service.call.context import Call
from metastore.service.compaction import compaction_workers as workers
from metastore.service.compaction import compactions
from metastore.service.compaction.compaction_history import housekeep
from metastore.store.schema import model as schema
from tests.support.acid import acid_steps as acid
from tests.support.acid import txns
from tests.support.acid.compaction_queue import MINOR, ask, shown, states, take
from tests.support.catalog.catalog import MetastoreMaker, call_of


def test_a_compaction_that_commits_is_no_write_to_its_table_and_one_that_aborts_is_cleaned_up(call: Call) -> None:
    left = {}
    for table, end in (("t", txns.commit), ("u", txns.abort)):
        ask(call, table)
        info = take(call)
        info.highestWriteId = 7
        left[table] = txns.begin_one(call, txn_type=TxnType.COMPACTION)
        workers.update_state(call, info, left[table])
        workers.mark_compacted(call, info)
        end(call, left[table])
    assert txns.rows(call, schema.transaction_components, "transaction_id", "table", "operation") == [(left["u"], "u", "c")]


@pytest.mark.parametrize("outcome", ["c", "a", None])
def test_the_next_transaction_is_known_once_the_workers_is_over(call: Call, outcome: str | None) -> None:
    key = ask(call).id
    info = take(call)
    if outcome is not None:
        transaction = acid.begin(call.metastore)
        workers.update_state(call, info, transaction)
        acid.begin(call.metastore)
        acid.end(call.metastore, transaction, outcome)
        acid.begin(call.metastore)
    else:
        acid.begin(call.metastore)
    workers.mark_compacted(call, info)
    (row,) = shown(call, id=key)
    assert row.nextTxnId == {"c": 3, "a": 4, None: 2}[outcome]


@pytest.mark.parametrize("marked_first", [True, False])
@pytest.mark.parametrize("kind", [TxnType.COMPACTION, TxnType.REBALANCE_COMPACTION])
def test_the_commit_is_noted_at_once(call: Call, kind: int, marked_first: bool) -> None:
    """The commit is noted before the cleaner runs, as in 4.0.1 (which names the last transaction that does not see the commit)."""
    key, info = ask(call).id, take(call)
    transaction = txns.begin_one(call, txn_type=kind)
    workers.update_state(call, info, transaction)
    others = [txns.begin_one(call) for _ in range(2)]
    if marked_first:
        workers.mark_compacted(call, info)
    (row,) = shown(call, id=key)
    assert (row.nextTxnId, row.commitTime) == (0, 0)
    txns.commit(call, transaction)
    (row,) = shown(call, id=key)
    noted = (others[-1] + 1, row.commitTime)
    assert (row.nextTxnId, row.commitTime) == noted
    assert row.commitTime > 0
    txns.begin_one(call)
    if not marked_first:
        workers.mark_compacted(call, info)
    (row,) = shown(call, id=key)
    assert (row.state, row.nextTxnId, row.commitTime) == ("ready for cleaning", *noted)


def test_the_commit_of_a_soft_delete_is_noted(call: Call) -> None:
    transaction = txns.begin_one(call, txn_type=TxnType.SOFT_DELETE)
    request = CompactionRequest(dbname="db", tablename="t", type=CompactionType.MAJOR, properties={"location": "file:/nowhere"})
    compactions.submit_for_cleanup(call, request, 0, transaction)
    other = txns.begin_one(call)
    txns.commit(call, transaction)
    (row,) = shown(call)
    assert (row.nextTxnId, row.commitTime > 0) == (other + 1, True)


def test_a_compaction_that_is_done_again_forgets_the_commit_before(call: Call) -> None:
    """Else the cleaner would delete files that readers from before the new commit still need."""
    key, info = ask(call).id, take(call)
    transaction = txns.begin_one(call, txn_type=TxnType.COMPACTION)
    workers.update_state(call, info, transaction)
    txns.commit(call, transaction)
    info.state = "i"
    workers.update_state(call, info, transaction)
    (row,) = shown(call, id=key)
    assert (row.state, row.nextTxnId, row.commitTime) == ("initiated", 0, 0)


def test_an_object_is_not_queued_again_before_its_workers_transaction_ends(call: Call) -> None:
    """A second worker would not see the first one's files, and would write the same rows once more."""
    key = ask(call).id
    info = take(call)
    transaction = acid.begin(call.metastore)
    info.highestWriteId = 1
    workers.update_state(call, info, transaction)
    workers.mark_compacted(call, info)
    assert ask(call, initiatorId="i").errormessage == f"Compaction is already scheduled with state='ready for cleaning' and id={key}"
    acid.end(call.metastore, transaction)
    assert ask(call, initiatorId="i").accepted


def test_racing_workers_never_get_the_same_entry(call: Call, make_metastore: MetastoreMaker) -> None:
    for number in range(20):
        ask(call, f"t{number}")
    calls = [call, *(call_of(make_metastore()) for _ in range(3))]
    got: list[int] = []

    def work(each: Call, worker: str) -> None:
        while (found := workers.find_next(each, worker)) is not None:
            got.append(found.id)

    threads = [threading.Thread(target=work, args=(each, f"w{number}")) for number, each in enumerate(calls)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(got) == len(set(got))
    while (found := workers.find_next(call, "last")) is not None:
        got.append(found.id)
    assert sorted(got) == sorted(states(call))


def test_workers_get_the_work_of_their_pool(call: Call, make_metastore: MetastoreMaker) -> None:
    pooled, free, other = ask(call, "a", poolName="p").id, ask(call, "b", poolName=" ").id, ask(call, "c", poolName="p2").id
    assert take(call).id == free
    assert workers.find_next(call, "w") is None
    assert workers.find_next(call, "w", None, "p3") is None
    assert take(call, pool="p").id == pooled
    assert [each.poolName for each in shown(call, poolName="p")] == ["p"]
    patient = call_of(make_metastore(compactor_pool_timeout=0))
    while workers.find_next(patient, "w") is None:
        pass
    assert states(call)[other] == "working"


def test_entries_end_failed_and_refused_with_the_reason(call: Call) -> None:
    ask(call)
    info = take(call)
    info.errorMessage = "no memory"
    workers.mark_failed(call, info)
    with pytest.raises(MetaError, match=f"Compaction {info.id} of hive.db.t is failed: it can not be marked as failed"):
        workers.mark_failed(call, info)
    ask(call)
    second = take(call)
    second.errorMessage = "nothing to do"
    workers.mark_refused(call, second)
    assert {each.state: each.errorMessage for each in shown(call)} == {"failed": "no memory", "refused": "nothing to do"}
    workers.mark_failed(call, CompactionInfoStruct(id=0, dbname="db", tablename="t", type=MINOR, errorMessage="no disk"))
    (row,) = shown(call, state="a")
    assert (row.state, row.errorMessage, row.type) == ("did not initiate", "no disk", MINOR)


def test_a_worker_that_lost_its_work_can_not_go_on(call: Call, make_metastore: MetastoreMaker) -> None:
    key = ask(call).id
    slow = take(call, "slow")
    impatient = make_metastore(compactor_worker_timeout=0.001)
    while states(call)[key] != "initiated":
        housekeep(impatient)
    (row,) = shown(call)
    assert (row.workerid, row.start) == (None, None)
    for change in (
        workers.mark_compacted,
        lambda call, info: workers.update_state(call, info, acid.begin(call.metastore)),
    ):
        with pytest.raises(MetaError, match=f"Compaction {key} of hive.db.t is initiated"):
            change(call, slow)
    fast = take(call, "fast")
    for change in (
        workers.mark_compacted,
        workers.mark_failed,
        workers.mark_refused,
        workers.mark_cleaned,
    ):
        with pytest.raises(MetaError, match=f"Compaction {key} of hive.db.t is worked on by fast: .* by slow"):
            change(call, slow)
    workers.mark_compacted(call, fast)
    assert states(call) == {key: "ready for cleaning"}


def test_a_worker_keeps_its_work_while_its_transaction_beats(call: Call, make_metastore: MetastoreMaker) -> None:
    key = ask(call).id
    info = take(call)
    transaction = acid.begin(call.metastore)
    workers.update_state(call, info, transaction)
    acid.beat(call.metastore, transaction, acid.now_ms() + 60_000)
    impatient = make_metastore(compactor_worker_timeout=0.001)
    before = acid.now_ms() + 2
    while acid.now_ms() < before:
        pass
    housekeep(impatient)
    assert states(call) == {key: "working"}
    acid.end(call.metastore, transaction, "a")
    housekeep(impatient)
    assert states(call) == {key: "initiated"}


def test_a_worker_needs_an_open_transaction(call: Call) -> None:
    ask(call)
    info = take(call)
    with pytest.raises(NoSuchTransaction, match="txnid:99"):
        workers.update_state(call, info, 99)
    transaction = acid.begin(call.metastore)
    acid.end(call.metastore, transaction, "a")
    with pytest.raises(TransactionAborted, match=f"txnid:{transaction}"):
        workers.update_state(call, info, transaction)
    assert acid.rows(call.metastore, acid.COMPONENTS) == []
    with pytest.raises(MetaError, match="No compaction with id 77"):
        workers.update_state(call, CompactionInfoStruct(id=77), acid.begin(call.metastore))
    with pytest.raises(MetaError, match="Compaction 77 is not worked on"):
        workers.set_job(call, 77, "j")
