from collections.abc import Collection, Sequence

import pytest

from metastore.errors import MetaError, NoSuchTransaction, TransactionAborted
from metastore.idl import AddDynamicPartitions, ReplTblWriteIdStateRequest, TxnToWriteId, TxnType
from metastore.listeners.events import AllocateWriteIds, Event
from metastore.rules.transactions.snapshots import format_transactions, of_reply
from metastore.service.call.context import Call
from metastore.service.transactions import replication, transactions, write_ids
from metastore.store.core.database import Session
from metastore.store.schema import model as schema
from metastore.store.transactions import write_id_snapshots
from metastore.store.transactions.write_ids import TableKey
from tests.support.acid.txns import (
    INSERT,
    READ,
    UPDATE,
    WRITE,
    abort,
    allocate,
    ask,
    begin,
    begin_one,
    commit,
    component,
    rows,
    valid,
    write,
)
from tests.support.catalog.catalog import Statements, call_of
from tests.support.catalog.recording import Remembering, Within, listening


def test_ids_count_from_one_in_each_table_and_stay_with_their_transaction(call: Call) -> None:
    first, second, third = begin(call, 3)
    assert allocate(call, [second]) == {second: 1}
    assert allocate(call, [first]) == {first: 2}
    assert allocate(call, [second, first, third]) == {first: 2, second: 1, third: 3}
    assert allocate(call, [third], "u") == {third: 1}
    assert allocate(call, [third], "t", "DB") == {third: 3}
    assert write_ids.max_allocated_write_id(call, "db", "T") == 3
    assert write_ids.max_allocated_write_id(call, "db", "none") == 0


def test_a_repeated_request_costs_no_id(call: Call) -> None:
    first, second, third, fourth = begin(call, 4)
    assert allocate(call, [second]) == {second: 1}
    assert allocate(call, [first, second, third]) == {first: 2, second: 1, third: 3}
    assert allocate(call, [third, first]) == {first: 2, third: 3}
    assert write_ids.max_allocated_write_id(call, "db", "t") == 3
    commit(call, third)
    with pytest.raises(MetaError, match="not all input txns in open state"):
        allocate(call, [third, fourth])
    assert allocate(call, [fourth]) == {fourth: 4}


def test_another_id_is_given_on_demand(call: Call) -> None:
    key = begin_one(call)
    assert allocate(call, [key]) == {key: 1}
    assert allocate(call, [key], reallocate=True) == {key: 2}
    assert allocate(call, [key]) == {key: 2}
    assert valid(call) == (2, [2], set(), 2)


def test_a_batch_gets_all_ids_or_none(call: Call) -> None:
    opened, committed, aborted = begin(call, 3)
    reader = begin_one(call, txn_type=TxnType.READ_ONLY)
    commit(call, committed)
    abort(call, aborted)
    for wrong in (committed, aborted, reader, 99):
        with pytest.raises(MetaError, match=r"Write ID allocation failed on db\.t as not all input txns in open state or read-only"):
            allocate(call, [opened, wrong])
    with pytest.raises(MetaError, match="needs transactions"):
        allocate(call, [])
    assert rows(call, schema.write_ids, "write_id") == []
    assert allocate(call, [opened]) == {opened: 1}


def test_a_snapshot_of_a_table_leaves_out_open_aborted_and_later_transactions(call: Call) -> None:
    assert valid(call) == (0, [], set(), None)
    one, two, three, four = begin(call, 4)
    for key in (one, two, three, four):
        write(call, key, INSERT)
    commit(call, one)
    abort(call, two)
    commit(call, four)
    assert valid(call) == (4, [2, 3], {2}, 3)
    commit(call, three)
    assert valid(call) == (4, [2], {2}, None)
    late = begin_one(call)
    write(call, late, INSERT)
    assert valid(call) == (5, [2, 5], {2}, 5)


def test_a_snapshot_of_transactions_is_honoured_after_later_ends(call: Call) -> None:
    one, two, three = begin(call, 3)
    for key in (one, two, three):
        write(call, key, INSERT)
    commit(call, one)
    then = format_transactions(of_reply(transactions.get_open_transactions(call)))
    commit(call, two)
    abort(call, three)
    write(call, begin_one(call), INSERT)
    assert valid(call, valid_transactions=then) == (3, [2, 3], set(), 2)
    assert valid(call, valid_transactions=f"{one}:{two}::") == (1, [], set(), None)
    assert valid(call, valid_transactions="") == (4, [], set(), None)


def test_a_mark_falls_to_the_lowest_unseen_id_when_everything_seen_is_compacted(call: Call) -> None:
    one, two = begin(call, 2)
    write(call, one, INSERT)
    write(call, two, INSERT)
    abort(call, one)
    assert valid(call) == (1, [1], {1}, 2)
    commit(call, two)
    assert valid(call) == (2, [1], {1}, None)


def test_a_snapshot_can_be_asked_for_by_a_write_id(call: Call) -> None:
    one, two, three = begin(call, 3)
    for key in (one, two, three):
        write(call, key, INSERT)
    commit(call, one)
    commit(call, three)
    mark, unseen, _, _ = valid(call, write_id=2)
    assert (mark, unseen) == (2, [])
    with pytest.raises(MetaError, match=r"invalid write id 9 for table db\.t"):
        valid(call, write_id=9)


def test_tables_are_answered_in_the_words_they_were_asked_for(call: Call) -> None:
    key = begin_one(call)
    allocate(call, [key], "t")
    allocate(call, [key], "u", "other")
    found = write_ids.get_valid_write_ids(call, ["DB.T", "hive.other.u", "db.u", "other.t"])
    assert [(each.fullTableName, each.writeIdHighWaterMark) for each in found] == [
        ("DB.T", 1),
        ("hive.other.u", 1),
        ("db.u", 0),
        ("other.t", 0),
    ]
    assert write_ids.get_valid_write_ids(call, []) == []
    for wrong in ("t", "a.b.c.d"):
        with pytest.raises(MetaError, match="not a name of a table"):
            valid(call, wrong)
    for wrong in ("x", "1:2:y", "1:2:3-z"):
        with pytest.raises(MetaError, match="snapshot"):
            valid(call, valid_transactions=wrong)


def test_a_table_goes_on_after_a_seed_once(call: Call) -> None:
    write_ids.seed_write_id(call, "DB", "t", 40)
    assert write_ids.max_allocated_write_id(call, "db", "t") == 40
    key = begin_one(call)
    assert allocate(call, [key]) == {key: 41}
    with pytest.raises(MetaError, match="can not begin after 50"):
        write_ids.seed_write_id(call, "db", "t", 50)


def test_partitions_found_while_writing_replace_the_table_as_a_whole(call: Call) -> None:
    key = begin_one(call)
    number = allocate(call, [key])[key]
    ask(
        call,
        component(WRITE, "t", "p=1", operation=INSERT, dynamic=True),
        component(WRITE, operation=UPDATE, dynamic=True),
        component(READ, "u", operation=INSERT, dynamic=True),
        transaction=key,
    )
    stored = ("table", "partition", "operation", "write_id")
    assert rows(call, schema.transaction_components, *stored) == [("t", None, "u", 1), ("u", None, "i", None)]
    request = AddDynamicPartitions(
        txnid=key,
        writeid=number,
        dbname="DB",
        tablename="T",
        partitionnames=["P=A", "p=b", "p=b"],
        operationType=INSERT,
    )
    write_ids.add_dynamic_partitions(call, request)
    assert rows(call, schema.transaction_components, *stored) == [("u", None, "i", None), ("t", "p=A", "i", 1), ("t", "p=b", "i", 1)]
    request = AddDynamicPartitions(txnid=key, writeid=number, dbname="db", tablename="u", partitionnames=["p=c"])
    write_ids.add_dynamic_partitions(call, request)
    assert rows(call, schema.transaction_components, *stored)[2:] == [("u", "p=c", "u", 1)]


def test_a_statement_that_met_no_row_writes_no_partition(call: Call) -> None:
    key = begin_one(call)
    number = write(call, key, UPDATE)
    request = AddDynamicPartitions(txnid=key, writeid=number, dbname="db", tablename="t", partitionnames=[], operationType=UPDATE)
    write_ids.add_dynamic_partitions(call, request)
    assert rows(call, schema.transaction_components, "partition") == []
    commit(call, key)


def test_only_an_open_transaction_may_report_its_writes(call: Call) -> None:
    committed, aborted = begin(call, 2)
    write(call, committed, INSERT)
    commit(call, committed)
    abort(call, aborted)
    for key, error in ((committed, NoSuchTransaction), (aborted, TransactionAborted), (99, NoSuchTransaction)):
        with pytest.raises(error):
            write_ids.add_dynamic_partitions(
                call, AddDynamicPartitions(txnid=key, writeid=1, dbname="db", tablename="t", partitionnames=["p=1"])
            )
        with pytest.raises(MetaError, match=f"txnid:{key}"):
            write_ids.add_to_history(call, key, {"db.t": 1})
    assert rows(call, schema.transaction_components, "transaction_id", "partition") == [(committed, None)]


def test_the_history_of_a_reader_goes_with_it(call: Call) -> None:
    reader, other = begin(call, 2)
    write_ids.add_to_history(call, reader, {"db.t": 3, "DB.u": 4})
    write_ids.add_to_history(call, other, {"db.t": 5})
    write_ids.add_to_history(call, other, {"db.t": 9})
    write_ids.add_to_history(call, other, {})
    stored = ("transaction_id", "database", "table", "write_id")
    assert rows(call, schema.min_history, *stored) == [(reader, "db", "t", 3), (reader, "db", "u", 4), (other, "db", "t", 5)]
    commit(call, reader)
    abort(call, other)
    assert rows(call, schema.min_history, *stored) == []


class TestReplication:
    def test_ids_are_taken_over_from_the_source(self, call: Call) -> None:
        keys = begin(call, 2, replPolicy="p", replSrcTxnIds=[41, 42])
        sources = [TxnToWriteId(txnId=41, writeId=7), TxnToWriteId(txnId=42, writeId=8)]
        for _ in range(2):
            assert allocate(call, [], replPolicy="p", srcTxnToWriteIdList=sources) == {keys[0]: 7, keys[1]: 8}
        assert allocate(call, [], replPolicy="p", srcTxnToWriteIdList=[TxnToWriteId(txnId=99, writeId=9)]) == {}
        assert write_ids.max_allocated_write_id(call, "db", "t") == 8

    def test_write_ids_that_do_not_fit_the_source_are_forgotten(self, call: Call) -> None:
        early = begin_one(call, replPolicy="p", replSrcTxnIds=[40])
        allocate(call, [], replPolicy="p", srcTxnToWriteIdList=[TxnToWriteId(txnId=40, writeId=1)])
        late = begin_one(call, replPolicy="p", replSrcTxnIds=[41])
        assert allocate(call, [], replPolicy="p", srcTxnToWriteIdList=[TxnToWriteId(txnId=41, writeId=5)]) == {late: 5}
        assert rows(call, schema.write_ids, "transaction_id", "write_id") == [(late, 5)]
        assert early < late

    def test_a_table_goes_on_where_its_source_stands(self, call: Call) -> None:
        request = ReplTblWriteIdStateRequest(
            validWriteIdlist="db.t:10:9:9:4,6",
            user="alice",
            hostName="here",
            dbName="db",
            tableName="T",
            partNames=["p=1", "p=2"],
        )
        for _ in range(2):
            replication.set_write_id_state(call, request)
        assert write_ids.max_allocated_write_id(call, "db", "t") == 10
        assert rows(call, schema.compactions, "database", "table", "partition") == [("db", "t", "p=1"), ("db", "t", "p=2")]
        assert rows(call, schema.transaction_components, "partition", "write_id") == [("p=1", 4), ("p=2", 4), ("p=1", 6), ("p=2", 6)]
        assert rows(call, schema.write_ids, "write_id") == [(4,), (6,), (8,)]
        assert len(rows(call, schema.transactions, "id")) == 2
        assert valid(call) == (8, [4, 6], {4, 6}, None)
        assert rows(call, schema.write_id_counters, "last_transaction") == rows(call, schema.write_ids, "transaction_id")[-1:]
        key = begin_one(call)
        assert write(call, key, INSERT) == 11
        commit(call, key)
        assert valid(call) == (11, [4, 6], {4, 6}, None)


def test_listeners_are_called_for_new_ids_only(call: Call) -> None:
    within: list[Event] = []
    after = Remembering()
    loud = call_of(listening(call.metastore, Within(lambda event, _: within.append(event)), after))
    first, second = begin(loud, 2)
    allocate(loud, [first])
    allocate(loud, [first, second])
    allocate(loud, [first, second])
    for events in (within, [event for event, _ in after.seen]):
        found = [event for event in events if isinstance(event, AllocateWriteIds)]
        assert [[(each.txnId, each.writeId) for each in event.allocated] for event in found] == [[(first, 1)], [(second, 2)]]
        assert {(event.catalog, event.database, event.table) for event in found} == {("hive", "db", "t")}


def test_after_one_round_trip_listeners_get_the_same_event(call: Call) -> None:
    after = Remembering()
    loud = call_of(listening(call.metastore, after))
    allocate(loud, begin(loud, 3)[:1])
    keys = begin(loud, 3)
    allocate(loud, keys)
    event, error = after.seen[-1]
    assert (event.catalog, event.database, event.table, error) == ("hive", "db", "t", None)
    assert event.allocated == [TxnToWriteId(txnId=key, writeId=number) for number, key in enumerate(keys, 2)]


def test_many_exceptions_of_a_snapshot_change_the_way_and_not_the_answer(call: Call) -> None:
    writers = begin(call, 6)
    for key in writers:
        allocate(call, [key])
    commit(call, writers[0])
    abort(call, writers[1])
    few, many = (f"10000:{writers[2]}:{writers[2]},{writers[4]}{more}:{writers[1]}" for more in ("", ",5000-9000"))
    found = valid(call, valid_transactions=many)
    assert found == valid(call, valid_transactions=few)
    assert found == (6, [2, 3, 5], {2}, 3)


def test_very_high_ids_are_exact(call: Call) -> None:
    write_ids.seed_write_id(call, "db", "t", 2**60)
    transactions.seed_transaction_id(call, 2**61)
    keys, single = begin(call, 3), begin_one(call)
    assert keys == [2**61 + number for number in range(3)]
    assert allocate(call, keys) == {key: 2**60 + number for number, key in enumerate(keys, 1)}
    assert allocate(call, [single]) == {single: 2**60 + 4}
    for _ in range(3):
        ask(call, component(READ, operation=INSERT), transaction=single)
    assert set(rows(call, schema.transaction_components, "write_id")) == {(2**60 + 4,)}
    commit(call, keys[0])
    assert valid(call) == (2**60 + 4, [2**60 + 2, 2**60 + 3, 2**60 + 4], set(), 2**60 + 2)


def test_only_exceptions_far_below_the_others_are_looked_for_by_the_database(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bool] = []
    snapshot = write_id_snapshots.snapshot

    def asking(session: Session, keys: Collection[TableKey], mark: int, exceptions: Sequence[int]) -> write_id_snapshots.SeenTables:
        asked.append(any(each <= mark for each in exceptions))
        return snapshot(session, keys, mark, exceptions)

    monkeypatch.setattr(write_id_snapshots, "snapshot", asking)
    old, *others = begin(call, 300)
    allocate(call, [old, *others[-5:]])
    opened = [each for each in others[-30:] if each % 3]
    for unseen, are_asked_for in ((opened, False), ([old, *opened], True), ([old], True), ([], False)):
        asked.clear()
        valid(call, valid_transactions=f"{others[-1]}:{old}:{','.join(map(str, unseen))}:")
        assert asked == ([are_asked_for] if unseen else [])


def test_a_table_of_which_all_write_ids_are_seen_is_only_asked_for_its_last_one(call: Call, statements: Statements) -> None:
    old, writer, later = (begin_one(call) for _ in range(3))
    for key in (writer, later):
        allocate(call, [key])
    commit(call, writer)
    commit(call, later)
    all_seen = f"{later}:{later + 1}::"
    for text, queries, mark, unseen in (
        (all_seen, 1, 2, []),
        (f"{later}:{later}:{later}:", 2, 2, [2]),
        (f"{writer}:{later}::", 2, 1, []),
        (f"{later}:{old}:{old}:", 2, 2, []),
    ):
        with statements() as seen:
            assert valid(call, valid_transactions=text)[:2] == (mark, unseen)
        assert len(seen) == queries
