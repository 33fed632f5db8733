"""Entries that a worker puts back wait for workers of another version. Entries of dead workers, and aborted ones, are free at once."""

from __future__ import annotations

import pytest

from metastore.errors import MetaError
from metastore.idl import CompactionInfoStruct, OpenTxnRequest, TxnState, TxnType
from metastore.rules.transactions.compactions import INITIATED, SERVERS_OWN
from metastore.service.call.context import Call
from metastore.service.compaction import compaction_workers as workers
from metastore.service.transactions import compactors, transactions
from metastore.store.schema import model as schema
from tests.support.acid import txns
from tests.support.acid.compaction_queue import ask, shown, states, take

REASON = "bucket 3 has times before 1678"


def taken(call: Call, version: str = SERVERS_OWN, worker: str = "own") -> CompactionInfoStruct | None:
    return workers.find_next(call, worker, version)


def put_back(call: Call, info: CompactionInfoStruct, reason: str | None) -> None:
    info.state, info.errorMessage = INITIATED, reason
    workers.update_state(call, info, 0)


def began(call: Call, info: CompactionInfoStruct, agent: str = "own") -> int:
    """Open a transaction of a worker, note it in the worker's entry, and return it."""
    request = OpenTxnRequest(num_txns=1, user="u", hostname="h", agentInfo=agent, txn_type=TxnType.COMPACTION)
    (transaction,) = transactions.open_transactions(call, request)
    workers.update_state(call, info, transaction)
    return transaction


def still_open(call: Call) -> set[int]:
    """Return the transactions that are open."""
    return {each.id for each in transactions.get_open_transactions_info(call).open_txns if each.state == TxnState.OPEN}


def test_workers_of_the_same_version_do_not_get_it_again(call: Call) -> None:
    key = ask(call).id
    info = taken(call)
    assert info is not None
    began(call, info)
    put_back(call, info, REASON)
    (row,) = shown(call, id=key)
    assert (row.state, row.errorMessage, row.workerVersion, row.workerid, row.txnId) == ("initiated", REASON, SERVERS_OWN, None, 0)
    assert taken(call) is None
    other = ask(call, "u").id
    found = taken(call)
    assert found is not None
    assert found.id == other
    assert take(call).id == key


def test_without_a_reason_any_worker_gets_it(call: Call) -> None:
    key = ask(call).id
    for _ in range(2):
        info = taken(call)
        assert info is not None
        assert info.id == key
        put_back(call, info, None)
    assert shown(call, id=key)[0].errorMessage is None


def test_only_its_worker_puts_an_entry_back(call: Call) -> None:
    ask(call)
    info = taken(call)
    assert info is not None
    info.workerId = "another"
    with pytest.raises(MetaError, match="is worked on by own: it can not be put back by another"):
        put_back(call, info, REASON)
    info.workerId = "own"
    workers.mark_compacted(call, info)
    with pytest.raises(MetaError, match="is ready for cleaning: it can not be put back"):
        put_back(call, info, REASON)


def test_work_that_spark_then_does_no_longer_has_a_reason(call: Call) -> None:
    key = ask(call).id
    info = taken(call)
    assert info is not None
    put_back(call, info, REASON)
    workers.mark_compacted(call, take(call))
    assert shown(call, id=key)[0].errorMessage is None


def test_a_worker_that_died_is_buried(call: Call) -> None:
    """After the death of a third worker, the entry has failed."""
    key = ask(call).id
    former: set[int] = set()
    for number in range(3):
        info = taken(call)
        assert info is not None
        assert info.id == key
        began(call, info)
        txns.begin_one(call, agentInfo="own", txn_type=TxnType.COMPACTION)
        others = txns.begin_one(call, agentInfo="another", txn_type=TxnType.COMPACTION)
        compactors.bury(call, "own", "its worker was killed by signal 9 (out of memory?)")
        assert still_open(call) == {others, *former}
        former = still_open(call)
        assert states(call) == {key: "initiated" if number < 2 else "failed"}
        assert shown(call, id=key)[0].errorMessage == "its worker was killed by signal 9 (out of memory?)"
    assert taken(call) is None


def test_deaths_are_forgotten_once_an_entry_is_done(call: Call) -> None:
    ask(call)
    info = taken(call)
    assert info is not None
    compactors.bury(call, "own", "died")
    info = taken(call)
    assert info is not None
    workers.mark_compacted(call, info)
    retries = txns.rows(call, schema.compactions, "retries", "error")
    assert retries == [(0, None)]


def test_the_servers_own_workers_lose_an_entry_that_is_aborted(call: Call) -> None:
    own, foreign, waiting = (ask(call, name).id for name in "tuv")
    info = taken(call)
    assert info is not None
    transaction = began(call, info)
    take(call)
    answers = compactors.abort_compactions(call, [own, foreign, waiting])
    assert {key: answer.status for key, answer in answers.items()} == {own: "Success", foreign: "Error", waiting: "Success"}
    assert states(call) == {own: "aborted", foreign: "working", waiting: "aborted"}
    assert transaction not in still_open(call)
    with pytest.raises(MetaError, match="is aborted: it can not be marked as compacted"):
        workers.mark_compacted(call, info)
    with pytest.raises(MetaError, match="is not worked on"):
        workers.set_job(call, own, "3 of 4 rows")
