"""Transactions, write ids and locks against a model in memory that is made of the same pure rules, on each database."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from metastore.errors import NoSuchLock, NoSuchTransaction, TransactionAborted, TransactionOpen
from metastore.idl import LockComponent, LockState
from metastore.rules.transactions.locks import Component, Earlier, blocker
from metastore.rules.transactions.snapshots import format_transactions, of_reply, snapshot
from metastore.rules.transactions.transactions import Intent, RowChange, conflict
from metastore.service.call.context import Call
from metastore.service.transactions import house_keeping, locks, transactions
from tests.support.acid.txns import (
    EXCL_WRITE,
    EXCLUSIVE,
    INSERT,
    READ,
    UPDATE,
    WRITE,
    abort,
    allocate,
    ask,
    begin,
    commit,
    component,
    valid,
)

TABLES = ("t", "u")
EMPTIED = (
    "transactions",
    "transaction_components",
    "write_ids",
    "write_id_ranges",
    "write_id_counters",
    "locks",
)
KINDS = {INSERT: "i", UPDATE: "u"}


@dataclass
class Txn:
    """A transaction, as the model has it."""

    state: str = "o"
    intents: list[Intent] = field(default_factory=list)
    write_ids: dict[str, int] = field(default_factory=dict)


@dataclass
class Model:
    """The expected transactions, row changes and locks, decided by `rules` alone."""

    txns: dict[int, Txn] = field(default_factory=dict)
    next_write_id: dict[str, int] = field(default_factory=lambda: dict.fromkeys(TABLES, 1))
    writes: list[RowChange] = field(default_factory=list)
    locks: dict[int, tuple[int, list[Component], bool]] = field(default_factory=dict)
    """Each lock by its id: its transaction or 0, its components, and whether it is granted."""

    def of(self, state: str) -> list[int]:
        return [key for key, each in self.txns.items() if each.state == state]

    def blocked(self, key: int, transaction: int, wanted: list[Component]) -> bool:
        earlier = [
            Earlier(other, number, owner, each, not granted)
            for other, (owner, components, granted) in sorted(self.locks.items())
            if other < key
            for number, each in enumerate(components, 1)
        ]
        return blocker(wanted, transaction, earlier) is not None

    def end(self, key: int, state: str) -> None:
        self.txns[key].state = state
        self.locks = {lock: each for lock, each in self.locks.items() if each[0] != key}


def machine(call: Call) -> type[RuleBasedStateMachine]:
    class Machine(RuleBasedStateMachine):
        @initialize()
        def empty(self) -> None:
            self.model = Model()
            self.offset = transactions.get_open_transactions(call).txn_high_water_mark
            for text in EMPTIED:
                call.database.write(lambda session, text=text: session.cursor.execute(f"DELETE FROM {text}"))  # type: ignore[misc]
            call.database.caches.discard_changed()  # no other code removes rows in this way

        def some(self, data: st.DataObject) -> int:
            """Draw a transaction, most often one that is open."""
            ended, opened = [*self.model.of("a"), *self.model.of("c")], self.model.of("o")
            return data.draw(st.sampled_from(opened * (1 + len(ended)) + ended))  # type: ignore[no-any-return]

        @rule(count=st.integers(2, 3))
        def open(self, count: int) -> None:
            ids = begin(call, count)
            last = max(self.model.txns, default=self.offset)
            assert ids == list(range(last + 1, last + 1 + count))
            self.model.txns.update({key: Txn() for key in ids})

        @precondition(lambda self: self.model.txns)
        @rule(data=st.data(), table=st.sampled_from(TABLES))
        def allocate(self, data: st.DataObject, table: str) -> None:
            key = self.some(data)
            txn = self.model.txns[key]
            if txn.state != "o":
                with pytest.raises(Exception, match="not all input txns in open state"):
                    allocate(call, [key], table)
                return
            if table not in txn.write_ids:
                txn.write_ids[table] = self.model.next_write_id[table]
                self.model.next_write_id[table] += 1
            assert allocate(call, [key], table) == {key: txn.write_ids[table]}

        @precondition(lambda self: len(self.model.of("o")) > 1)
        @rule(data=st.data(), table=st.sampled_from(TABLES), most=st.integers(2, 6))
        def allocate_many(self, data: st.DataObject, table: str, most: int) -> None:
            opened = self.model.of("o")
            first = data.draw(st.integers(0, len(opened) - 2))
            keys = opened[first : first + most]
            for key in keys:
                if table not in self.model.txns[key].write_ids:
                    self.model.txns[key].write_ids[table] = self.model.next_write_id[table]
                    self.model.next_write_id[table] += 1
            assert allocate(call, keys, table) == {key: self.model.txns[key].write_ids[table] for key in keys}

        @precondition(lambda self: self.model.txns)
        @rule(
            data=st.data(),
            table=st.sampled_from(TABLES),
            partition=st.sampled_from([None, "p=1", "p=2"]),
            kind=st.sampled_from([READ, WRITE, EXCL_WRITE, EXCLUSIVE]),
            operation=st.sampled_from([INSERT, UPDATE]),
            alone=st.sampled_from([False, False, False, True]),
        )
        def lock(self, data: st.DataObject, table: str, partition: str | None, kind: int, operation: int, alone: bool) -> None:
            key = 0 if alone else self.some(data)
            wanted: list[LockComponent] = [component(kind, table, partition, operation=operation)]
            if key and self.model.txns[key].state != "o":
                with pytest.raises((NoSuchTransaction, TransactionAborted)):
                    ask(call, *wanted, transaction=key)
                return
            components = [Component("hive", "db", table, partition, kind)]
            lock, state = ask(call, *wanted, transaction=key)
            free = not self.model.blocked(lock, key, components)
            assert state == (LockState.ACQUIRED if free else LockState.WAITING)
            self.model.locks[lock] = key, components, free
            if key:
                txn = self.model.txns[key]
                txn.intents.append(Intent("hive", "db", table, partition, KINDS[operation], txn.write_ids.get(table)))

        @precondition(lambda self: len(self.model.of("o")) > 1)
        @rule(data=st.data(), table=st.sampled_from(TABLES), partition=st.sampled_from([None, "p=1"]), end=st.booleans())
        def change_what_another_changes(self, data: st.DataObject, table: str, partition: str | None, end: bool) -> None:
            pair = data.draw(st.permutations(self.model.of("o")))[:2]
            for key in pair:
                lock, state = ask(call, component(READ, table, partition, operation=UPDATE), transaction=key)
                components = [Component("hive", "db", table, partition, READ)]
                assert state == (LockState.WAITING if self.model.blocked(lock, key, components) else LockState.ACQUIRED)
                self.model.locks[lock] = key, components, state == LockState.ACQUIRED
                txn = self.model.txns[key]
                txn.intents.append(Intent("hive", "db", table, partition, "u", txn.write_ids.get(table)))
            for key in pair if end else ():
                self.commit_one(key, judged=True)
            assert not end or any(self.model.txns[key].state == "a" for key in pair)

        @precondition(lambda self: self.model.locks)
        @rule(data=st.data())
        def check(self, data: st.DataObject) -> None:
            lock = data.draw(st.sampled_from(sorted(self.model.locks)))
            key, components, granted = self.model.locks[lock]
            free = granted or not self.model.blocked(lock, key, components)
            assert locks.check_lock(call, lock).state == (LockState.ACQUIRED if free else LockState.WAITING)
            self.model.locks[lock] = key, components, free

        @precondition(lambda self: self.model.locks)
        @rule(data=st.data())
        def unlock(self, data: st.DataObject) -> None:
            lock = data.draw(st.sampled_from(sorted(self.model.locks)))
            key, _, granted = self.model.locks[lock]
            if key and granted:
                with pytest.raises(TransactionOpen):
                    locks.unlock(call, lock)
                return
            locks.unlock(call, lock)
            del self.model.locks[lock]
            with pytest.raises(NoSuchLock):
                locks.check_lock(call, lock)

        @precondition(lambda self: self.model.txns)
        @rule(data=st.data(), judged=st.booleans())
        def commit(self, data: st.DataObject, judged: bool) -> None:
            self.commit_one(self.some(data), judged=judged)

        def commit_one(self, key: int, *, judged: bool) -> None:
            txn = self.model.txns[key]
            if txn.state == "a":
                with pytest.raises(TransactionAborted, match="already aborted"):
                    commit(call, key)
                return
            if txn.state == "c":
                commit(call, key)
                return
            if judged and conflict(key, txn.intents, self.model.writes) is not None:
                with pytest.raises(TransactionAborted, match="write conflict"):
                    commit(call, key)
                self.model.end(key, "a")
                return
            commit(call, key, exclWriteEnabled=not judged)
            commit_id = max(self.model.txns)
            self.model.writes += [
                RowChange("hive", "db", each.table or "", each.partition, key, commit_id, each.operation)
                for each in txn.intents
                if each.operation == "u"
            ]
            self.model.end(key, "c")

        @precondition(lambda self: self.model.txns)
        @rule(data=st.data())
        def abort(self, data: st.DataObject) -> None:
            key = self.some(data)
            if self.model.txns[key].state == "c":
                with pytest.raises(NoSuchTransaction):
                    abort(call, key)
                return
            abort(call, key)
            self.model.end(key, "a")

        @rule()
        def keep_house(self) -> None:
            house_keeping.keep_house(call.metastore)

        @invariant()
        def snapshots_agree(self) -> None:
            if not hasattr(self, "model"):
                return
            seen = of_reply(transactions.get_open_transactions(call))
            mark = max(self.model.txns, default=self.offset)
            assert seen == snapshot(mark, self.model.of("o"), self.model.of("a"), min(self.model.of("o"), default=None))
            for table in TABLES:
                owners = {number: key for key, txn in self.model.txns.items() for name, number in txn.write_ids.items() if name == table}
                high, unseen, gone, _ = valid(call, f"db.{table}", valid_transactions=format_transactions(seen))
                visible = {number for number, key in owners.items() if seen.is_valid(key)}
                assert visible == {number for number in visible if number <= high and number not in unseen}
                hidden = set(owners) - visible
                assert all(number in unseen or number > high for number in hidden)
                assert gone <= {number for number, key in owners.items() if self.model.txns[key].state == "a"}

        @invariant()
        def locks_agree(self) -> None:
            if not hasattr(self, "model"):
                return
            shown = {each.lockid: (each.txnid or 0, each.state == LockState.ACQUIRED) for each in locks.show_locks(call)}
            assert shown == {lock: (key, granted) for lock, (key, _, granted) in self.model.locks.items()}

    return Machine


@pytest.fixture
def run(call: Call) -> Callable[[int, int], None]:
    def once(examples: int, steps: int) -> None:
        run_state_machine_as_test(  # type: ignore[no-untyped-call]
            machine(call),
            settings=settings(max_examples=examples, stateful_step_count=steps, suppress_health_check=list(HealthCheck)),
        )

    return once


def test_locks_in_random_order(run: Callable[[int, int], None]) -> None:
    run(25, 30)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_locks_in_random_order_for_long(run: Callable[[int, int], None]) -> None:
    run(300, 50)
