"""Every reader of write ids gets the same answer, whether they are rows or within ranges. House keeping removes both in one order."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from random import Random

import pytest

from metastore.service.call.context import Call, Metastore
from metastore.service.call.names import TableName
from metastore.service.catalog.tables import tables
from metastore.service.catalog.tables.alter_table import alter_table
from metastore.service.compaction.compaction_view import write_ids as view
from metastore.service.transactions import house_keeping, locks, write_ids
from metastore.store.compaction import compactions
from metastore.store.compaction.compactions import CompactedObject
from metastore.store.schema import model as schema
from tests.support.acid.txns import (
    INSERT,
    READ,
    abort,
    allocate,
    ask,
    begin,
    begin_one,
    commit,
    component,
    count,
    ranges,
    rows,
    shown,
    singles,
    tick,
    valid,
    write,
)
from tests.support.catalog.catalog import MetastoreMaker, call_of, make_database, make_table

STORED = (schema.write_ids, schema.write_id_ranges)


class Twins:
    """A table whose write ids are in ranges where possible, and another one with the same write ids in a row each."""

    def __init__(self, call: Call, seed: int) -> None:
        self.call, self.random = call, Random(seed)
        self.keys: list[int] = []
        self.opened: list[int] = []
        for key in begin(call, 5):
            commit(call, key)

    def allocate(self) -> None:
        batches = [begin(self.call, self.random.randint(2, 8)) for _ in range(6)]
        self.random.shuffle(batches)
        for keys in batches:
            wanted = sorted(keys[self.random.randrange(2) :])
            if self.random.random() < 0.3:
                wanted = sorted(self.random.sample(keys, 2))
            given = allocate(self.call, wanted, "t")
            assert {key: allocate(self.call, [key], "u")[key] for key in sorted(given, key=lambda key: given[key])} == given
            self.keys += keys
            self.opened += keys

    def end(self, share: float) -> None:
        for key in [*self.opened]:
            if self.random.random() < share:
                self.opened.remove(key)
                if self.random.random() < 0.3:
                    ask(self.call, *(component(READ, table, operation=INSERT) for table in ("t", "u")), transaction=key)
                    abort(self.call, key)
                else:
                    commit(self.call, key)

    def texts(self) -> list[str]:
        """Return possible snapshots, with marks among the transactions and outside of them."""
        found = [""]
        low, high = min(self.keys) - 2, max(self.keys) + 3
        for _ in range(30):
            mark = self.random.randint(low, high)
            share = self.random.choice((0.02, 0.1, 0.5, 0.95, 1.0))
            exceptions = [key for key in range(low, high) if self.random.random() < share]
            aborted = {key for key in exceptions if self.random.random() < 0.4}
            opened, gone = (",".join(str(key) for key in exceptions if (key in aborted) is which) for which in (False, True))
            found.append(f"{mark}:{min(exceptions, default=mark + 1)}:{opened}:{gone}")
        return found

    def same(self, of: Callable[[str], object]) -> None:
        assert of("t") == of("u")


@pytest.fixture(params=[0, *(pytest.param(seed, marks=pytest.mark.on_one_database) for seed in (1, 2))])
def twins(call: Call, request: pytest.FixtureRequest) -> Twins:
    made = Twins(call, request.param)
    for share in (0.7, 0.4):
        made.allocate()
        made.end(share)
    assert ranges(call, "t") != []
    assert ranges(call, "u") == []
    last = singles(call, "u")[-1][0]
    assert rows(call, schema.write_id_counters, "table", "last_transaction") == [("t", last), ("u", last)]
    return made


class TestReaders:
    def test_snapshots_are_the_same(self, call: Call, twins: Twins, monkeypatch: pytest.MonkeyPatch) -> None:
        texts = twins.texts()
        answers = []
        for most, read in ((1000, 0), (1000, 1), (1000, 4), (1000, 1000), (0, 4)):
            monkeypatch.setattr(write_ids, "MAX_EXCEPTIONS", most)  # with the first of these the database judges all
            monkeypatch.setattr(write_ids, "READ_FOR_EXCEPTION", read)
            twins.same(lambda table: valid(call, f"db.{table}"))
            for text in texts:
                twins.same(lambda table, text=text: valid(call, f"db.{table}", valid_transactions=text))  # type: ignore[misc]
                first, second, none = write_ids.get_valid_write_ids(call, ["db.u", "db.t", "db.v"], text)
                assert shown(first) == shown(second)
                assert none.writeIdHighWaterMark == 0
                answers.append(shown(first))
        assert answers == answers[: len(texts)] * 5

    def test_snapshots_of_write_ids_are_the_same(self, call: Call, twins: Twins) -> None:
        for number in range(1, write_ids.max_allocated_write_id(call, "db", "t") + 1):
            twins.same(lambda table, number=number: valid(call, f"db.{table}", write_id=number))  # type: ignore[misc]
        with pytest.raises(Exception, match="invalid write id 1000"):
            valid(call, "db.t", write_id=1000)

    def test_compactions_see_the_same(self, call: Call, twins: Twins) -> None:
        def of(table: str) -> list[object]:
            where = CompactedObject("hive", "db", table, None)
            seen = [call.database.read(lambda session, high=high: view(session, where, high)) for high in (5, 20, 1000)]  # type: ignore[misc]
            return [call.database.read(lambda session: compactions.watermark(session, where)), [(each.open, each.aborted) for each in seen]]

        twins.same(of)
        for key in [*twins.opened]:
            commit(call, key)
            twins.same(of)

    def test_house_keeping_leaves_the_same_to_be_seen(self, call: Call, twins: Twins, make_metastore: MetastoreMaker) -> None:
        hasty = make_metastore(txn_timeout=0.001)
        before: dict[str, object] = {}
        while twins.opened:
            lowest = min(twins.opened)
            for table in ("t", "u"):
                before[table] = valid(call, f"db.{table}")
            delete_ended(hasty)
            for table in ("t", "u"):
                assert valid(call, f"db.{table}") == before[table]
            assert before["t"] == before["u"]
            twins.opened.remove(lowest)
            commit(call, lowest)


def delete_ended(hasty: Metastore) -> None:
    tick()  # its time-out has passed
    house_keeping.delete_ended(hasty)


class TestHouseKeeping:
    @pytest.fixture
    def hasty(self, make_metastore: MetastoreMaker) -> Metastore:
        return make_metastore(txn_timeout=0.001)

    def test_a_batch_is_kept_until_all_see_it_and_then_goes_as_a_whole(self, call: Call, hasty: Metastore) -> None:
        early, *keys = begin(call, 4)
        allocate(call, keys)
        reader = begin_one(call)
        seen = f"{reader}:{early}:{','.join(map(str, [early, *keys]))}:"
        for key in keys[:2]:
            commit(call, key)
        commit(call, early)
        delete_ended(hasty)
        assert valid(call, valid_transactions=seen) == (1, [1], set(), 1)
        commit(call, keys[2])
        delete_ended(hasty)
        delete_ended(hasty)
        assert valid(call, valid_transactions=seen) == (1, [1], set(), 1)
        assert ranges(call) == [(keys[0], keys[2], 1)]
        commit(call, reader)
        for _ in range(2):
            delete_ended(hasty)
        assert count(call, [*STORED, schema.transactions]) == {"write_ids": 0, "write_id_ranges": 0, "transactions": 0}
        assert valid(call) == (3, [], set(), None)

    def test_a_batch_is_kept_for_a_reader_that_saw_it_open(self, call: Call, hasty: Metastore) -> None:
        """Transactions whose only writes are in a range stay open to the reader, however long ago they committed."""
        keys = begin(call, 3)
        allocate(call, keys)
        reader = begin_one(call)
        for key in keys:
            commit(call, key)
        delete_ended(hasty)
        assert [key for (key,) in rows(call, schema.transactions, "id")] == [*keys, reader]
        commit(call, reader)
        delete_ended(hasty)
        delete_ended(hasty)
        assert count(call, [schema.transactions]) == {"transactions": 0}

    @pytest.mark.parametrize("ranged", [True, False])
    def test_none_goes_before_a_lower_one_that_stays(
        self, call: Call, hasty: Metastore, monkeypatch: pytest.MonkeyPatch, ranged: bool
    ) -> None:
        """A range and a row of earlier transactions with higher write ids wait for a row or a range of later ones with lower ids."""
        monkeypatch.setattr(house_keeping, "BATCH", 1)
        first, early, single, late = begin(call, 2), begin(call, 3), begin_one(call), begin(call, 3)
        allocate(call, first)
        allocate(call, late if ranged else late[1:2])
        allocate(call, early)
        allocate(call, [single])
        for key in (*first, *early, single):
            commit(call, key)
        write(call, late[1], INSERT)
        abort(call, late[1])
        for key in (late[0], late[2]):
            commit(call, key)
        expected = valid(call)
        delete_ended(hasty)
        assert valid(call) == expected
        assert expected[2] == {4 if ranged else 3}
        assert len(ranges(call)) == (2 if ranged else 1)
        assert len(singles(call)) == (1 if ranged else 2)
        call.database.write(lambda session: session.cursor.execute("DELETE FROM transaction_components"))
        for _ in range(3):
            delete_ended(hasty)
        assert count(call, STORED) == {"write_ids": 0, "write_id_ranges": 0}

    def test_a_batch_that_wrote_nothing_is_forgotten(self, call: Call, hasty: Metastore) -> None:
        committed, aborted = begin(call, 2)
        commit(call, committed)
        abort(call, aborted)
        for _ in range(2):
            delete_ended(hasty)
        assert count(call, [schema.transactions]) == {"transactions": 0}


@pytest.fixture
def other(call: Call, make_metastore: MetastoreMaker) -> Call:  # after the first server, which makes objects
    """A call to another server on the same database."""
    return call_of(make_metastore())


def test_write_ids_whose_rows_are_gone_are_seen(call: Call, other: Call, make_metastore: MetastoreMaker) -> None:
    """House keeping removed the rows of later write ids before they were read. All readers see these write ids."""
    hasty = make_metastore(txn_timeout=0.001)
    first, second, reader = begin(call, 3)
    for key in (first, second):
        allocate(call, [key])
    assert valid(call) == (1, [1], set(), 1)
    for key in (first, second, reader):
        commit(call, key)
    for _ in range(2):
        key = begin_one(other)
        allocate(other, [key])
        commit(other, key)
    while count(call, [schema.write_ids, schema.write_id_ranges]) != {"write_ids": 0, "write_id_ranges": 0}:
        house_keeping.delete_ended(hasty)
    assert valid(call) == (4, [], set(), None)


@pytest.mark.parametrize("how", ["rename", "drop"])
@pytest.mark.parametrize("locked", [True, False])
def test_a_later_table_of_the_name_begins_again(call: Call, other: Call, how: str, locked: bool) -> None:
    make_database(call, "db")
    name = transactional(call)
    if locked:
        locks.unlock(call, ask(call, component(READ))[0])
    old = begin(call, 2)
    for key in old:
        allocate(call, [key])
    assert valid(call) == (1, [1], set(), 1)
    if how == "rename":
        after = deepcopy(tables.get_table(other, name))
        after.tableName = "new"
        alter_table(other, name, after)
    else:
        tables.drop_table(other, name, delete_data=False)
    assert valid(call) == (0, [], set(), None)
    transactional(other)
    new = begin(other, 3)
    for key in new:
        allocate(other, [key])
    commit(other, new[1])
    assert valid(call) == (3, [1, 3], set(), 1)
    if how == "rename":
        assert valid(call, "db.new") == (1, [1], set(), 1)


def transactional(call: Call) -> TableName:
    return make_table(call, "t", database="db", parameters={"transactional": "true", "transactional_properties": "insert_only"})


def test_readers_beside_each_other_and_a_writer_agree(call: Call, other: Call) -> None:
    first = begin_one(call)
    allocate(call, [first])

    def read(_: int) -> list[tuple[int, list[int], set[int], int | None]]:
        return [valid(call, valid_transactions=f"1000000:{first}:{first}:") for _ in range(40)]

    def give() -> None:
        for key in begin(other, 60):
            allocate(other, [key])

    with ThreadPoolExecutor(4) as pool:
        writer = pool.submit(give)
        answers = list(pool.map(read, range(3)))
        writer.result()
    for found in answers:
        marks = [mark for mark, *_ in found]
        assert marks == sorted(marks)
        assert all(unseen == [1] for _, unseen, *_ in found)
    assert valid(call, valid_transactions=f"1000000:{first}:{first}:") == (61, [1], set(), 1)
