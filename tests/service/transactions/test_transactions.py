import pytest

from metastore.errors import MetaError, NoSuchObject, NoSuchTransaction, TransactionAborted
from metastore.idl import (
    AbortTxnsRequest,
    CommitTxnKeyValue,
    DataOperationType,
    ReplLastIdInfo,
    TxnState,
    TxnType,
    WriteEventInfo,
)
from metastore.listeners.events import AbortTransactions, CommitTransaction, Event, OpenTransactions
from metastore.rules.transactions.snapshots import of_reply
from metastore.service.call.context import Call
from metastore.service.catalog import databases
from metastore.service.catalog.partitions import partitions
from metastore.service.catalog.tables import tables
from metastore.service.transactions import locks, replication, transactions
from metastore.service.transactions.commit import latest_in_conflict
from metastore.store.core.database import Session
from metastore.store.schema.model import transactions as transaction_rows
from metastore.store.transactions import transactions as transaction_store
from tests.support.acid.txns import (
    DELETE,
    INSERT,
    SELECT,
    UPDATE,
    abort,
    begin,
    begin_one,
    commit,
    completed,
    intended,
    judged_by,
    rows,
    write,
)
from tests.support.catalog.catalog import MetastoreMaker, add_partitions, call_of, make_table
from tests.support.catalog.recording import Remembering, Within, listening


def state(call: Call, key: int) -> str:
    return str(rows(call, transaction_rows, "state", id=key)[0][0])


def open_now(call: Call) -> tuple[int, list[int], list[int], int | None]:
    """Return mark, open and aborted ids and the lowest open one."""
    reply = transactions.get_open_transactions(call)
    seen = of_reply(reply)
    return seen.mark, [key for key in seen.exceptions if key not in seen.aborted], sorted(seen.aborted), reply.min_open_txn


def test_ids_follow_each_other_and_a_snapshot_lists_the_open_and_the_aborted(call: Call) -> None:
    assert open_now(call) == (0, [], [], None)
    assert begin(call, 3) == [1, 2, 3]
    assert begin(call) == [4]
    assert open_now(call) == (4, [1, 2, 3, 4], [], 1)
    commit(call, 1)
    abort(call, 3)
    assert open_now(call) == (4, [2, 4], [3], 2)
    for key in (2, 4):
        commit(call, key)
    assert open_now(call) == (4, [], [3], None)


@pytest.mark.parametrize("length", [5, 6])
def test_a_snapshot_that_the_database_cut_is_none(call: Call, length: int) -> None:
    if call.database.driver.name != "mysql":
        pytest.skip("the others cut no list")
    begin(call, 9)

    def work(session: Session) -> None:
        session.cursor.execute(f"SET SESSION group_concat_max_len = {length}")
        with pytest.raises(OverflowError, match="cut a list of 9 transactions: raise its max_allowed_packet"):
            transaction_store.exceptions(session)
        session.cursor.execute("SET SESSION group_concat_max_len = 1073741823")

    call.database.read(work)


def test_types_can_be_left_out_of_a_snapshot_but_not_of_its_lowest_open_id(call: Call) -> None:
    reader = begin_one(call, txn_type=TxnType.READ_ONLY)
    writer = begin_one(call)
    reply = transactions.get_open_transactions(call, [TxnType.READ_ONLY, TxnType.COMPACTION])
    assert (reply.open_txns, reply.min_open_txn, reply.txn_high_water_mark) == ([writer], reader, writer)


def test_a_batch_is_cut_to_its_limit_and_too_many_open_are_refused(make_metastore: MetastoreMaker) -> None:
    call = call_of(make_metastore(txn_max_open_batch=3, txn_max_open=5))
    assert begin(call, 10) == [1, 2, 3]
    with pytest.raises(MetaError, match="number of txns: 0"):
        begin(call, 0)
    commit(call, 2)
    assert begin(call, 3) == [4, 5, 6]
    with pytest.raises(MetaError, match=r"\(5\) has been reached: 5 are open"):
        begin(call)
    assert open_now(call)[0] == 6
    abort(call, 3)
    assert begin(call) == [7]


def test_commit_and_abort_are_idempotent_and_exclude_each_other(call: Call) -> None:
    committed, aborted, wrote = begin(call, 3)
    write(call, wrote)
    for _ in range(2):
        commit(call, committed)
        abort(call, aborted)
        commit(call, wrote)
    with pytest.raises(TransactionAborted, match=f"Transaction txnid:{aborted} already aborted"):
        commit(call, aborted)
    with pytest.raises(NoSuchTransaction, match=f"Transaction txnid:{wrote} is already committed"):
        abort(call, wrote)
    with pytest.raises(NoSuchTransaction, match=f"No such transaction txnid:{committed}"):
        abort(call, committed)
    for ask_again in (commit, abort):
        with pytest.raises(NoSuchTransaction, match="No such transaction txnid:99"):
            ask_again(call, 99)
    assert [state(call, key) for key in (committed, aborted, wrote)] == ["c", "a", "c"]


def test_only_the_unit_of_work_of_a_heartbeat_does_not_wait_for_the_disk(call: Call) -> None:
    if call.database.driver.name != "postgresql":
        pytest.skip("the other databases have no such choice")
    key = begin_one(call)
    shown: list[str] = []

    def look(session: Session) -> None:
        shown.extend(text for (text,) in session.cursor.execute("SHOW synchronous_commit").fetchall())

    def beat(session: Session) -> None:
        assert transaction_store.heartbeat(session, key, 5)
        look(session)

    call.database.read(lambda session: session.cursor.execute("SET synchronous_commit = on"))
    call.database.write(beat)
    call.database.read(look)
    assert shown == ["off", "on"]


def test_heartbeats_report_the_fate_of_a_transaction(call: Call) -> None:
    opened, committed, aborted = begin(call, 3)
    write(call, committed)
    commit(call, committed)
    abort(call, aborted)
    before = rows(call, transaction_rows, "heartbeat_ms", id=opened)
    while rows(call, transaction_rows, "heartbeat_ms", id=opened) == before:
        locks.heartbeat(call, 0, opened)
    with pytest.raises(NoSuchTransaction, match="already committed"):
        locks.heartbeat(call, 0, committed)
    with pytest.raises(TransactionAborted):
        locks.heartbeat(call, 0, aborted)
    with pytest.raises(NoSuchTransaction, match="txnid:77"):
        locks.heartbeat(call, 0, 77)
    answer = transactions.heartbeat_range(call, opened, 5)
    assert (answer.aborted, answer.nosuch) == ([aborted], [committed, 4, 5])
    answer = transactions.heartbeat_range(call, opened, opened)
    assert (answer.aborted, answer.nosuch) == ([], [])
    with pytest.raises(MetaError, match="at most 1000000"):
        transactions.heartbeat_range(call, 1, 10**12)


def test_many_are_aborted_at_once_and_ended_ones_left_alone(call: Call) -> None:
    keys = begin(call, 5)
    commit(call, keys[0])
    abort(call, keys[1])
    assert transactions.abort_transactions(call, AbortTxnsRequest(txn_ids=[*reversed(keys), 99]).txn_ids) == keys[2:]
    assert [state(call, key) for key in keys] == ["c", "a", "a", "a", "a"]
    assert transactions.abort_transactions(call, []) == []


def test_the_openers_of_transactions_are_shown(call: Call) -> None:
    first, second, third = begin(call, 3, agentInfo="tests")
    commit(call, second)
    abort(call, third)
    info = transactions.get_open_transactions_info(call)
    assert info.txn_high_water_mark == third
    assert [(each.id, each.state) for each in info.open_txns] == [(first, TxnState.OPEN), (third, TxnState.ABORTED)]
    shown = info.open_txns[0]
    assert (shown.user, shown.hostname, shown.agentInfo) == ("alice", "here", "tests")
    assert shown.startedTime == shown.lastHeartbeatTime is not None


@pytest.mark.parametrize(
    ("mine", "theirs", "loses"),
    [
        (UPDATE, UPDATE, True),
        (UPDATE, DELETE, True),
        (DELETE, DELETE, True),
        (INSERT, UPDATE, False),
        (UPDATE, INSERT, False),
        (INSERT, INSERT, False),
        (SELECT, UPDATE, False),
    ],
)
def test_of_two_changes_of_one_object_the_first_to_commit_wins(call: Call, mine: int, theirs: int, loses: bool) -> None:
    first, second = begin(call, 2)
    write(call, first, theirs, partition="p=1")
    write(call, second, mine, partition="p=1")
    commit(call, first)
    if not loses:
        commit(call, second)
        assert state(call, second) == "c"
        return
    letters = {UPDATE: "u", DELETE: "d"}
    text = (
        rf"Aborting \[txnid:{second},{second}\] due to a write conflict on db/t/p=1 "
        rf"committed by \[txnid:{first},{second}\] {letters[mine]}/{letters[theirs]}"
    )
    with pytest.raises(TransactionAborted, match=text):
        commit(call, second)
    assert state(call, second) == "a"
    assert locks.show_locks(call, transaction=second) == []
    with pytest.raises(TransactionAborted, match="already aborted"):
        commit(call, second)


@pytest.mark.parametrize("by_another", [("t", "u"), ("t",), ("u",), ()])
def test_a_conflict_is_found_whichever_of_its_clients_asked_for_the_lock(call: Call, by_another: tuple[str, ...]) -> None:
    first, second = begin(call, 2)
    write(call, first, table="u")
    another = call_of(call.metastore)
    for table in ("t", "u"):
        write(another if table in by_another else call, second, table=table)
    commit(call, first)
    with pytest.raises(TransactionAborted, match="write conflict on db/u"):
        commit(call, second)
    third = begin_one(call)
    for table in ("u", "t"):
        write(another if table in by_another else call, third, table=table)
    commit(call, third)
    assert sorted(judged_by(call, "table", "commit_id", transaction_id=third)) == [("t", third), ("u", third)]


def test_changes_of_other_partitions_and_of_transactions_one_after_the_other_do_not_meet(call: Call) -> None:
    first, second, third = begin(call, 3)
    for key, partition in ((first, "p=1"), (second, "p=2"), (third, None)):
        write(call, key, partition=partition)
    for key in (first, second, third):
        commit(call, key)
    late = begin_one(call)
    write(call, late, partition="p=1")
    commit(call, late)


def test_a_client_that_holds_exclusive_locks_is_not_judged_but_others_are_by_it(call: Call) -> None:
    first, second, third = begin(call, 3)
    for key in (first, second, third):
        write(call, key)
    commit(call, first)
    commit(call, second, exclWriteEnabled=True)
    with pytest.raises(TransactionAborted, match=rf"committed by \[txnid:{first},"):
        commit(call, third, exclWriteEnabled=False)


def test_the_highest_transaction_in_conflict_is_returned(call: Call) -> None:
    first, second, mine = begin(call, 3)
    for key in (first, second, mine):
        write(call, key)
    assert latest_in_conflict(call, mine) == 0
    commit(call, first)
    commit(call, second, exclWriteEnabled=True)
    assert latest_in_conflict(call, mine) == second
    assert latest_in_conflict(call, begin_one(call)) == 0


@pytest.mark.parametrize("kind", [TxnType.SOFT_DELETE, TxnType.COMPACTION])
def test_types_that_are_not_judged(call: Call, kind: int) -> None:
    first, second = begin_one(call), begin_one(call, txn_type=kind)
    write(call, first)
    write(call, second)
    commit(call, first)
    commit(call, second)
    assert judged_by(call, "transaction_id") == [(first,)]


def test_a_commit_completes_the_writes_and_an_abort_leaves_them_for_the_cleaner(call: Call) -> None:
    committed, aborted = begin(call, 2)
    write(call, committed, UPDATE, "t", "p=1")
    write(call, committed, INSERT, "u")
    write(call, aborted, INSERT, "u")
    commit(call, committed)
    abort(call, aborted)
    assert completed(call, "transaction_id", "table", "partition", "write_id", "operation") == [
        (committed, "t", "p=1", 1, "u"),
        (committed, "u", None, 1, "i"),
    ]
    assert judged_by(call, "transaction_id", "table", "commit_id", "operation") == [(committed, "t", aborted, "u")]
    assert intended(call, "transaction_id", "table", "operation", "write_id") == [(aborted, "u", "i", 2)]
    assert locks.show_locks(call) == []


def test_a_commit_sets_a_parameter_of_a_table_and_a_lost_one_does_not(call: Call) -> None:
    name = make_table(call, "t", parameters={"_meta_version": "1"})
    key = tables.get_table(call, name).id
    first, second = begin(call, 2)
    for each in (first, second):
        write(call, each)
    commit(call, first, keyValue=CommitTxnKeyValue(tableId=key, key="_meta_version", value="2"))
    assert tables.get_table(call, name).parameters["_meta_version"] == "2"
    with pytest.raises(TransactionAborted):
        commit(call, second, keyValue=CommitTxnKeyValue(tableId=key, key="_meta_version", value="3"))
    third = begin_one(call)
    for wrong in (
        CommitTxnKeyValue(tableId=key, key="other", value="3"),
        CommitTxnKeyValue(tableId=key, key="_meta_new", value="3"),
        CommitTxnKeyValue(tableId=77, key="_meta_version", value="3"),
    ):
        with pytest.raises(MetaError, match="can not set parameter"):
            commit(call, third, keyValue=wrong)
    assert state(call, third) == "o"
    assert tables.get_table(call, name).parameters["_meta_version"] == "2"


def test_the_next_id_can_be_seeded_above_all_ids_only(call: Call) -> None:
    begin(call, 3)
    transactions.seed_transaction_id(call, 100)
    assert begin(call) == [100]
    with pytest.raises(MetaError, match="Invalid txnId seed 50, the highWaterMark is 100"):
        transactions.seed_transaction_id(call, 50)
    assert begin(call) == [101]


class TestReplication:
    def test_transactions_are_opened_once_for_each_id_at_their_source(self, call: Call) -> None:
        begin(call, 2)
        opened = begin(call, 3, replPolicy="p.*", replSrcTxnIds=[41, 42, 43], txn_type=TxnType.REPL_CREATED)
        assert opened == [3, 4, 5]
        assert begin(call, 3, replPolicy="p.*", replSrcTxnIds=[41, 42, 43], txn_type=TxnType.REPL_CREATED) == opened
        assert begin(call, 1, replPolicy="other.*", replSrcTxnIds=[41]) == [6]
        assert replication.replayed_transactions(call, "p.*") == {41: 3, 42: 4, 43: 5}
        assert rows(call, transaction_rows, "type", id=6) == [(TxnType.REPL_CREATED,)]

    def test_they_end_by_the_id_at_their_source(self, call: Call) -> None:
        committed, aborted = begin(call, 2, replPolicy="p", replSrcTxnIds=[41, 42])
        for _ in range(2):
            commit(
                call,
                41,
                replPolicy="p",
                txn_type=TxnType.REPL_CREATED,
                writeEventInfos=[
                    WriteEventInfo(writeId=7, database="db", table="t", partition="p=1", files=""),
                ],
            )
            abort(call, 42, replPolicy="p")
        assert [state(call, key) for key in (committed, aborted)] == ["c", "a"]
        assert replication.replayed_transactions(call, "p") == {}
        assert completed(call, "transaction_id", "database", "table", "partition", "write_id") == [
            (committed, "db", "t", "p=1", 7),
        ]

    def test_a_policy_on_an_ordinary_transaction_is_no_replay(self, call: Call) -> None:
        key = begin_one(call, replPolicy="p")
        commit(call, key, replPolicy="p", txn_type=TxnType.DEFAULT)
        assert state(call, key) == "c"

    def test_the_last_event_is_noted_with_the_commit(self, call: Call) -> None:
        name = make_table(call, "t", keys=[("k", "string")])
        add_partitions(call, name, [["1"], ["2"]])
        key = begin_one(call)
        info = ReplLastIdInfo(database="default", lastReplId=17, table="t", partitionList=["k=2"])
        commit(call, key, replLastIdInfo=info)
        assert databases.get_database(call, "hive", "default").parameters["repl.last.id"] == "17"
        assert tables.get_table(call, name).parameters["repl.last.id"] == "17"
        found = {each.values[0]: each.parameters.get("repl.last.id") for each in partitions.get_partitions(call, name)}
        assert found == {"1": None, "2": "17"}

    @pytest.mark.parametrize(
        "info",
        [
            ReplLastIdInfo(database="none", lastReplId=1),
            ReplLastIdInfo(database="default", lastReplId=1, table="none"),
            ReplLastIdInfo(database="default", lastReplId=1, table="t", partitionList=["k=9"]),
        ],
    )
    def test_an_event_on_a_missing_object_leaves_the_transaction_open(self, call: Call, info: ReplLastIdInfo) -> None:
        make_table(call, "t", keys=[("k", "string")])
        key = begin_one(call)
        with pytest.raises(NoSuchObject):
            commit(call, key, replLastIdInfo=info)
        assert state(call, key) == "o"
        assert "repl.last.id" not in (databases.get_database(call, "hive", "default").parameters or {})


def test_listeners_are_called_inside_and_after_each_change(call: Call) -> None:
    within: list[Event] = []
    after = Remembering()
    loud = call_of(listening(call.metastore, Within(lambda event, _: within.append(event)), after))
    first, second, third, fourth = begin(loud, 4)
    for key in (first, second, third):
        write(loud, key)
    commit(loud, first)
    with pytest.raises(TransactionAborted):
        commit(loud, second)
    abort(loud, third)
    transactions.abort_transactions(loud, [third, fourth])
    commit(loud, begin_one(loud, replPolicy="p"), replPolicy="p", txn_type=TxnType.DEFAULT)

    def described(events: list[Event]) -> list[tuple[object, ...]]:
        out: list[tuple[object, ...]] = []
        for event in events:
            if isinstance(event, OpenTransactions | AbortTransactions):
                out.append((type(event), list(event.transactions)))
            elif isinstance(event, CommitTransaction):
                out.append((type(event), event.transaction))
        return out

    inside = described(within)
    assert inside == [
        (OpenTransactions, [1, 2, 3, 4]),
        (CommitTransaction, 1),
        (AbortTransactions, [2]),
        (AbortTransactions, [3]),
        (AbortTransactions, [4]),
        (OpenTransactions, [5]),
    ]
    assert described([event for event, _ in after.seen]) == [*inside, (CommitTransaction, 5)]
    lost = next(event for event in within if isinstance(event, AbortTransactions))
    assert lost.databases == {second: ["db"]}


def test_operations_of_clients_before_the_field_are_taken_at_their_lock(call: Call) -> None:
    key = begin_one(call)
    write(call, key, DataOperationType.UNSET)
    assert intended(call, "operation") == [("u",)]
    commit(call, key)
    assert (intended(call, "operation"), judged_by(call, "operation")) == ([], [("u",)])
