"""Write ids of transactions that were opened together are one row, and every call answers as if each had a row of its own."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from random import Random
from typing import Any

import pytest

from metastore.errors import MetaError, NoSuchTransaction
from metastore.idl import TxnToWriteId, TxnType
from metastore.service.call.context import Call
from metastore.service.transactions import fast_paths, locks, transactions, write_ids
from metastore.store.catalog import dependents
from metastore.store.compaction import compaction_sources, compactions
from metastore.store.core.database import Session
from metastore.store.fast_paths import postgresql
from metastore.store.schema import model as schema
from metastore.store.transactions import house_keeping as house_keeping_rows
from metastore.store.transactions import transactions as transaction_rows
from metastore.store.transactions import write_ids as write_id_rows
from metastore.store.transactions.transactions import LOCKS, RANGES, WRITE_IDS
from metastore.store.transactions.write_id_snapshots import snapshot_query
from metastore.store.transactions.write_ids import Range, TableKey
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
    completed,
    component,
    count,
    holds,
    intended,
    ranges,
    rows,
    singles,
    valid,
    write,
)
from tests.support.servers.waiting import beside, waited_for

KEY = TableKey("hive", "db", "t")
STORED = (schema.write_ids, schema.write_id_ranges)


class TestAllocation:
    def test_a_batch_is_one_row_and_changes_no_transaction(self, call: Call) -> None:
        keys = begin(call, 40)
        assert allocate(call, [*reversed(keys)]) == {key: number for number, key in enumerate(keys, 1)}
        assert allocate(call, keys[5:9], "u") == {key: number for number, key in enumerate(keys[5:9], 1)}
        assert (ranges(call), ranges(call, "u")) == ([(keys[0], keys[-1], 1)], [(keys[5], keys[8], 1)])
        assert count(call, [schema.write_ids]) == {"write_ids": 0}
        assert holds(call, keys) == {RANGES}
        assert write_ids.max_allocated_write_id(call, "db", "t") == 40

    def test_a_batch_of_which_one_may_have_none_gets_none(self, call: Call) -> None:
        readers, keys = begin(call, 2, txn_type=TxnType.READ_ONLY), begin(call, 3)
        commit(call, keys[1])
        for wrong in (readers, [readers[1], keys[0]], keys):
            with pytest.raises(MetaError, match="not all input txns in open state or read-only"):
                allocate(call, wrong)
        assert count(call, [*STORED, schema.write_id_counters]) == {"write_ids": 0, "write_id_ranges": 0, "write_id_counters": 0}

    def test_several_batches_that_follow_each_other_are_one_row(self, call: Call) -> None:
        keys = [*begin(call, 2), *begin(call, 3)]
        allocate(call, keys)
        assert ranges(call) == [(keys[0], keys[-1], 1)]

    @pytest.mark.parametrize("kind", ["opened one by one", "with gaps", "one"])
    def test_others_have_a_row_each(self, call: Call, kind: str) -> None:
        keys = [begin_one(call) for _ in range(3)] if kind == "opened one by one" else begin(call, 5)[: 1 if kind == "one" else 5 : 2]
        numbers = allocate(call, keys)
        assert (singles(call), ranges(call)) == (list(numbers.items()), [])
        assert holds(call, keys) == {WRITE_IDS if kind == "opened one by one" else WRITE_IDS | RANGES}

    def test_each_gets_the_same_again_alone_and_with_others(self, call: Call) -> None:
        keys = begin(call, 10)
        given = allocate(call, keys[2:8])
        for wanted in (keys[2:8], keys[3:5], keys[4:5], keys[2:8:2]):
            assert allocate(call, wanted) == {key: given[key] for key in wanted}
        assert allocate(call, keys[:4]) == {keys[0]: 7, keys[1]: 8, keys[2]: 1, keys[3]: 2}
        assert allocate(call, keys) == {keys[0]: 7, keys[1]: 8, **given, keys[8]: 9, keys[9]: 10}
        assert ranges(call) == [(keys[0], keys[1], 7), (keys[2], keys[7], 1), (keys[8], keys[9], 9)]
        assert allocate(call, begin(call, 2)).popitem()[1] == 12

    def test_those_that_have_one_singly_keep_it(self, call: Call) -> None:
        keys = begin(call, 6)
        assert allocate(call, [keys[2]]) == {keys[2]: 1}
        assert allocate(call, keys) == {keys[0]: 2, keys[1]: 3, keys[2]: 1, keys[3]: 4, keys[4]: 5, keys[5]: 6}
        assert allocate(call, keys[3:]) == {keys[3]: 4, keys[4]: 5, keys[5]: 6}

    def test_an_earlier_batch_may_come_later(self, call: Call) -> None:
        early, late = begin(call, 3), begin(call, 3)
        assert list(allocate(call, late).values()) == [1, 2, 3]
        assert list(allocate(call, early).values()) == [4, 5, 6]
        assert ranges(call) == [(early[0], early[2], 4), (late[0], late[2], 1)]
        assert allocate(call, [*early, *late]) == {**dict(zip(early, (4, 5, 6), strict=True)), **dict(zip(late, (1, 2, 3), strict=True))}

    def test_one_of_a_batch_may_come_later_than_others(self, call: Call) -> None:
        keys = begin(call, 6)
        allocate(call, keys[4:])
        assert allocate(call, keys[1:2]) == {keys[1]: 3}
        assert allocate(call, keys[5:]) == {keys[5]: 2}

    def test_another_id_on_demand_leaves_those_of_the_others(self, call: Call) -> None:
        keys = begin(call, 7)
        allocate(call, keys)
        assert allocate(call, [keys[0], keys[3]], reallocate=True) == {keys[0]: 8, keys[3]: 9}
        assert allocate(call, keys[5:], reallocate=True) == {keys[5]: 10, keys[6]: 11}
        assert allocate(call, keys) == dict(zip(keys, (8, 2, 3, 9, 5, 10, 11), strict=True))
        assert ranges(call) == [(keys[1], keys[2], 2), (keys[4], keys[4], 5), (keys[5], keys[6], 10)]
        owners = [call.database.read(lambda session, number=number: write_id_rows.owner(session, KEY, number)) for number in range(13)]  # type: ignore[misc]
        assert owners == [None, None, keys[1], keys[2], None, keys[4], None, None, keys[0], keys[3], keys[5], keys[6], None]

    def test_a_range_that_loses_some_keeps_the_rest(self) -> None:
        whole = Range(10, 19, 100)
        assert list(whole.without([])) == [whole]
        assert list(whole.without([1, 10, 11, 14, 19, 30])) == [Range(12, 13, 102), Range(15, 18, 105)]
        assert list(whole.without(range(5, 25))) == []

    def test_replicated_ones_take_over_the_ids_of_their_source(self, call: Call) -> None:
        allocate(call, begin(call, 3, replPolicy="p", replSrcTxnIds=[11, 12, 13])[:2])
        keys = begin(call, 3, replPolicy="p", replSrcTxnIds=[41, 42, 43])
        sources = [TxnToWriteId(txnId=each, writeId=each) for each in (41, 42, 43)]
        for _ in range(2):
            given = allocate(call, [], replPolicy="p", srcTxnToWriteIdList=sources)
            assert given == dict(zip(keys, (41, 42, 43), strict=True))
        assert (singles(call), ranges(call)) == ([], [(keys[0], keys[2], 41)])

    def test_a_lock_notes_the_write_id_with_its_components(self, call: Call) -> None:
        keys = begin(call, 5)
        allocate(call, begin(call, 2))
        for table in ("t", "u"):
            allocate(call, [*keys[1:4]], table)
        wanted = [component(WRITE, table, operation=UPDATE) for table in ("t", "u", "v")]
        for key in keys:
            ask(call, *wanted, transaction=key)
        stored = rows(call, schema.transaction_components, "transaction_id", "table", "write_id")
        assert [number for key, table, number in stored if table == "t"] == [None, 3, 4, 5, None]
        assert [number for key, table, number in stored if table == "u"] == [None, 1, 2, 3, None]
        assert [number for key, table, number in stored if table == "v"] == [None] * 5


class TestTogether:
    """Allocations by several connections at the same time."""

    def test_all_get_the_same_for_any_requests_together(self, call: Call) -> None:
        random = Random(3)
        for _ in range(6):
            keys = begin(call, 12)
            wanted = [keys, keys[:7], keys[5:], keys[::3], keys[3:5], [keys[4]], [keys[11]], [keys[0]], [*keys[8:10], *keys[2:4]]]
            random.shuffle(wanted)
            with ThreadPoolExecutor(6) as pool:
                done = list(pool.map(lambda ids: allocate(call, ids), wanted))
            given = allocate(call, keys)
            assert all(each == {key: given[key] for key in each} for each in done)
            assert len(set(given.values())) == len(keys)
        last = write_ids.max_allocated_write_id(call, "db", "t")
        assert last == 6 * 12
        stored = [number for _, number in singles(call)]
        stored += [number for first, to, begins in ranges(call) for number in range(begins, begins + to - first + 1)]  # type: ignore[operator,call-overload]
        assert sorted(stored) == list(range(1, last + 1))  # type: ignore[type-var]

    def test_a_batch_waits_for_one_of_it_that_gets_its_own(self, call: Call) -> None:
        self.beside_one(call, lambda keys: allocate(call, keys), [2, 1, 3])

    def test_one_waits_for_its_batch(self, call: Call) -> None:
        def change(session: Session, keys: list[int]) -> None:
            write_id_rows.take(session, KEY, keys)
            write_id_rows.insert_ranges(session, KEY, [Range(keys[0], keys[-1], 1)])

        keys = begin(call, 3)
        assert beside(call, lambda session: change(session, keys), lambda: allocate(call, keys[1:2])) == {keys[1]: 2}

    def test_a_batch_waits_for_another_that_overlaps(self, call: Call) -> None:
        def change(session: Session, keys: list[int]) -> None:
            write_id_rows.take(session, KEY, keys)
            write_id_rows.insert_ranges(session, KEY, [Range(keys[0], keys[-1], 2)])

        allocate(call, [begin_one(call)])
        keys = begin(call, 4)
        done = beside(call, lambda session: change(session, keys[2:]), lambda: allocate(call, keys))
        assert done == dict(zip(keys, (4, 5, 2, 3), strict=True))

    def test_a_batch_that_waits_for_an_earlier_one_takes_one_statement_all_the_same(self, call: Call) -> None:
        if call.database.driver.name == "sqlite":
            pytest.skip("the others take more")
        allocate(call, [begin_one(call)])
        early, late = begin(call, 2), begin(call, 2)
        seen: list[str] = []

        def change(session: Session) -> None:
            write_id_rows.take(session, KEY, early)
            write_id_rows.insert_ranges(session, KEY, [Range(early[0], early[-1], 2)])

        def then() -> dict[int, int]:
            call.database.observer = seen.append
            return allocate(call, late)

        assert beside(call, change, then) == {late[0]: 4, late[1]: 5}
        call.database.observer = None
        assert not [text for text in seen if "FOR UPDATE" in text]

    def test_write_ids_of_others_are_read_while_none_can_be_allocated(self, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
        """On PostgreSQL a range is allocated without waiting for the rows of its transactions."""
        if call.database.driver.name == "sqlite":
            pytest.skip("the others wait for the rows of the transactions")
        keys = begin(call, 3)
        with ThreadPoolExecutor(1) as pool:
            started: list[Any] = []
            ask_for = write_id_rows.of_transactions

            def of_transactions(session: Session, key: TableKey, wanted: Sequence[int]) -> object:
                answer = ask_for(session, key, wanted)
                if list(wanted) != keys:  # the first allocation
                    assert answer() == {}
                    started.append(pool.submit(lambda: allocate(call, keys)))
                    while not waited_for(session):
                        assert not started[0].done()
                return answer

            monkeypatch.setattr(write_id_rows, "of_transactions", of_transactions)
            monkeypatch.setattr(fast_paths, "try_allocate", lambda *_: None)
            assert allocate(call, keys[:3:2]) == {keys[0]: 1, keys[2]: 2}
            assert started[0].result() == {keys[0]: 1, keys[1]: 3, keys[2]: 2}

    def beside_one(self, call: Call, then: Callable[[list[int]], dict[int, int]], expected: list[int]) -> None:
        keys = begin(call, 3)

        def change(session: Session) -> None:
            transaction_rows.lock_many(session, keys[1:2])()
            write_id_rows.take(session, KEY, keys[1:2])
            write_id_rows.insert(session, KEY, [(keys[1], 1)])
            transaction_rows.add_holds_of_many(session, keys[1:2], WRITE_IDS)

        assert beside(call, change, lambda: then(keys)) == dict(zip(keys, expected, strict=True))

    def test_an_abort_meanwhile_is_as_if_it_came_after(self, call: Call) -> None:
        if call.database.driver.name == "sqlite":
            pytest.skip("the others wait for the rows of the transactions")
        write(call, first := begin_one(call), INSERT)
        commit(call, first)
        keys = begin(call, 3)

        def work(session: Session) -> dict[int, int]:
            assert transaction_rows.lock(session, keys[1])()
            session.cursor.execute(f"UPDATE transactions SET state = 'a' WHERE id = {keys[1]}")
            with ThreadPoolExecutor(1) as pool:
                return pool.submit(lambda: allocate(call, keys)).result()

        assert call.database.write(work) == dict(zip(keys, (2, 3, 4), strict=True))
        assert valid(call) == (4, [2, 3, 4], {3}, 2)
        commit(call, keys[0])
        assert valid(call) == (4, [3, 4], {3}, 4)


class TestFollowing:
    def test_ranges_follow_a_table_and_go_with_it(self, call: Call) -> None:
        new, other = TableKey("hive", "other", "v"), TableKey("hive", "other", "w")
        keys = begin(call, 3)
        for table, database in (("t", "db"), ("v", "other"), ("w", "other")):
            allocate(call, keys, table, database)
        assert allocate(call, begin(call, 2)) == {keys[2] + 1: 4, keys[2] + 2: 5}
        call.database.write(lambda session: dependents.rename_table(session, KEY, new))
        assert ranges(call) == []
        assert ranges(call, "v") == [(keys[0], keys[2], 1), (keys[2] + 1, keys[2] + 2, 4)]
        assert allocate(call, keys, "v", "other") == dict(zip(keys, (1, 2, 3), strict=True))
        assert allocate(call, keys) == dict(zip(keys, (1, 2, 3), strict=True))
        call.database.write(lambda session: dependents.delete_table(session, new))
        assert [ranges(call, table) for table in "tvw"] == [[(keys[0], keys[2], 1)], [], [(keys[0], keys[2], 1)]]
        call.database.write(lambda session: dependents.delete_database(session, other.catalog, other.database))
        assert [ranges(call, table) for table in "tvw"] == [[(keys[0], keys[2], 1)], [], []]


class TestEnds:
    def test_a_committed_one_is_known_by_its_write_id(self, call: Call) -> None:
        empty, *keys = begin(call, 4)
        allocate(call, keys)
        for key in (empty, keys[1]):
            commit(call, key)
            commit(call, key)
        for key, text in ((empty, "No such transaction"), (keys[1], "is already committed")):
            for wrong in (
                lambda key=key: locks.heartbeat(call, 0, key),
                lambda key=key: ask(call, component(READ), transaction=key),
                lambda key=key: abort(call, key),
            ):
                with pytest.raises(NoSuchTransaction, match=text):
                    wrong()

    def test_those_of_a_batch_end_with_all_they_hold(self, call: Call) -> None:
        keys = begin(call, 6)
        allocate(call, keys)
        write(call, keys[0], INSERT)
        write(call, keys[1], UPDATE)
        ask(call, component(READ, "v"), transaction=keys[2])
        assert holds(call, keys[2:3]) == {RANGES | LOCKS}
        for key in keys[:3]:
            commit(call, key)
        assert transactions.abort_transactions(call, keys[3:]) == keys[3:]
        assert (intended(call, "id"), rows(call, schema.locks, "id")) == ([], [])
        assert completed(call, "transaction_id", "write_id") == [(keys[0], 1), (keys[1], 2)]
        assert valid(call) == (6, [4, 5, 6], {4, 5, 6}, None)


BY_TABLE: tuple[Any, ...] = (
    postgresql._allocating(True),
    postgresql._allocating_range(True),
    postgresql._locking(True, True, True),
    write_id_rows.OF_TRANSACTIONS,
    *write_id_rows.OF_TRANSACTION.values(),
    write_id_rows.OVERLAPPING,
    write_id_rows.OWNER,
    *write_id_rows.FORGET,
    *(snapshot_query(one=one, excepts=excepts) for one in (True, False) for excepts in (True, False)),
    *house_keeping_rows.DELETE_WRITE_IDS,
    compaction_sources.UNSETTLED,
    compactions.WATERMARK,
)


@pytest.mark.parametrize("analysed", [False, True])
def test_postgresql_finds_ranges_by_their_table(call: Call, analysed: bool) -> None:
    if call.database.driver.name != "postgresql":
        pytest.skip("the others do not plan by the size of tables that were never analysed")
    if analysed:
        for number in range(300):
            allocate(call, begin(call, 2), f"t{number % 100}")
        call.database.autocommit(lambda session: session.cursor.execute("ANALYZE write_id_ranges, write_id_counters, transactions"))

    def explain(session: Session, text: str) -> list[str]:
        names = list(dict.fromkeys(re.findall(r"%\((\w+)\)s", text)))
        cursor = session.cursor
        cursor.execute(f"PREPARE asked AS {text % {name: f'${number}' for number, name in enumerate(names, 1)}}")
        cursor.execute(f"EXPLAIN EXECUTE asked({', '.join(['NULL'] * len(names))})")
        found = [row[0] for row in cursor.fetchall()]
        cursor.execute("DEALLOCATE asked")
        return found

    scans = 0
    for statement in BY_TABLE:
        text, *_ = call.database.compiled[statement]
        plan = call.database.read(lambda session, text=text: explain(session, text))  # type: ignore[misc]
        assert not [line for line in plan if "Seq Scan" in line], plan
        for line, condition in pairwise(plan):
            if "Scan" in line and " on write_id_ranges" in line:
                scans += 1
                assert re.search(r'(Index|Recheck) Cond: .*catalog = .*database = .*"table" = ', condition), plan
    assert scans >= len(BY_TABLE) - 2
