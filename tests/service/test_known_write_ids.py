"""What a server remembers of the write ids of a table answers a snapshot as the database would."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from random import Random

import pytest

from metastore.service import house_keeping, locks, tables, write_ids
from metastore.service.alter_table import alter_table
from metastore.service.context import Call, Metastore
from metastore.service.names import TableName
from metastore.store import known_write_ids, schema
from metastore.store.write_ids import Key, Mark, Snapshot
from tests.support.catalog import MetastoreMaker, Statements, call_of, make_database, make_table
from tests.support.txns import INSERT, READ, abort, allocate, ask, begin, begin_one, commit, component, count, valid

Answer = tuple[int, list[int], set[int], int | None]
T = Key("hive", "db", "t")


@pytest.fixture
def other(call: Call, make_metastore: MetastoreMaker) -> Call:  # after the objects that the first one makes
    """A call to another server on the same database."""
    return call_of(make_metastore())


@pytest.fixture
def hasty(make_metastore: MetastoreMaker) -> Metastore:
    """A server that keeps nothing longer than it has to."""
    return make_metastore(txn_timeout=0.001)


class History:
    """Random allocations of a table and ends of their transactions, by two servers."""

    def __init__(self, seed: int, *calls: Call, oldest: int = 0) -> None:
        """With `oldest` so many of those that were opened first end together, in place of any one."""
        self.random, self.calls, self.oldest = Random(seed), calls, oldest
        self.opened: list[int] = []
        self.high = 1

    def step(self) -> None:
        call, random = self.random.choice(self.calls), self.random
        kind = random.random()
        if kind < 0.45 or not self.opened:
            keys = begin(call, random.choice((1, 1, 1, 3, 6)))
            self.high = keys[-1]
            self.opened += keys
            if random.random() < 0.8:
                allocate(call, sorted(random.sample(keys, random.randint(1, len(keys)))))
        elif kind < 0.55:
            allocate(call, sorted(random.sample(self.opened, min(3, len(self.opened)))))
        elif kind < 0.6:
            allocate(call, [random.choice(self.opened)], reallocate=True)
        else:
            for key in self.opened[: self.oldest] or [random.choice(self.opened)]:
                self.opened.remove(key)
                if random.random() < 0.3:
                    if not self.oldest:  # one that noted writes keeps its write ids until they are cleaned
                        ask(call, component(READ, operation=INSERT), transaction=key)
                    abort(call, key)
                else:
                    commit(call, key)

    def texts(self) -> list[str]:
        """Return snapshots that there might have been, and that of now."""
        found = [""]
        for _ in range(6):
            mark, share = self.random.randint(0, self.high + 2), self.random.choice((0.0, 0.05, 0.5, 1.0))
            exceptions = [key for key in range(1, self.high + 2) if self.random.random() < share]
            gone = {key for key in exceptions if self.random.random() < 0.4}
            opened, aborted = (",".join(str(key) for key in exceptions if (key in gone) is which) for which in (False, True))
            found.append(f"{mark}:{min(exceptions, default=mark + 1)}:{opened}:{aborted}")
        return found


def asked(call: Call, text: str) -> Answer:
    return valid(call, valid_transactions=text) if text else valid(call)


def looked_up(call: Call, text: str, monkeypatch: pytest.MonkeyPatch) -> Answer:
    """Return what the database answers without anything remembered."""
    with monkeypatch.context() as patch:
        patch.setattr(write_ids, "MOST_KNOWN", 0)
        return asked(call, text)


def seen_by(answer: Answer) -> set[int]:
    return set(range(1, answer[0] + 1)) - set(answer[1])


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("most", [1000, 12], ids=["all", "some"])
def test_it_answers_what_the_database_does(call: Call, other: Call, monkeypatch: pytest.MonkeyPatch, seed: int, most: int) -> None:
    monkeypatch.setattr(known_write_ids, "MOST", most)
    history = History(seed, call, other)
    remembered = 0
    for _ in range(40):
        history.step()
        for text in history.texts():
            assert asked(call, text) == looked_up(call, text, monkeypatch), text
        remembered += T in call.database.known_write_ids
    assert remembered > (20 if most > 12 else 5)


@pytest.mark.parametrize("seed", range(2))
def test_the_same_is_seen_after_house_keeping(
    call: Call, other: Call, hasty: Metastore, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """What went is seen by all that are open. A table of which nothing is left that is seen ends at what is not: nothing follows."""
    history = History(seed, call, other, oldest=4)
    gone = False
    for number in range(80):
        history.step()
        if number % 10 == 9:
            before = count(call, [schema.write_ids, schema.write_id_ranges])
            house_keeping.forget_ended(hasty)
            gone = gone or before != count(call, [schema.write_ids, schema.write_id_ranges])
        assert seen_by(asked(call, "")) == seen_by(looked_up(call, "", monkeypatch))
    assert gone


def test_what_is_new_and_gone_already_is_seen(call: Call, other: Call, hasty: Metastore) -> None:
    """House keeping took away the rows of later write ids before they were read: all see them."""
    first, second, reader = begin(call, 3)
    for key in (first, second):
        allocate(call, [key])
    assert valid(call) == (1, [1], set(), 1)
    assert T in call.database.known_write_ids
    for key in (first, second, reader):
        commit(call, key)
    for _ in range(2):
        key = begin_one(other)
        allocate(other, [key])
        commit(other, key)
    while count(call, [schema.write_ids, schema.write_id_ranges]) != {"write_ids": 0, "write_id_ranges": 0}:
        house_keeping.forget_ended(hasty)
    assert valid(call) == (4, [], set(), None)


def test_only_what_is_new_is_read(call: Call, statements: Statements) -> None:
    keys = begin(call, 3)
    for key in keys[:2]:
        allocate(call, [key])
    text = f"{keys[2]}:{keys[0]}:{keys[0]}:"
    assert valid(call, valid_transactions=text) == (2, [1], set(), 1)
    allocate(call, keys[2:])
    with statements() as seen:
        assert valid(call, valid_transactions=text) == (3, [1], set(), 1)
    assert len(seen) == 1
    assert "upto" in seen[0]
    with statements() as seen:
        found = write_ids.get_valid_write_ids(call, ["db.t", "db.u"], text)
    assert [each.writeIdHighWaterMark for each in found] == [3, 0]
    assert len(seen) == 2  # the other one has no counter


@pytest.mark.parametrize("how", ["rename", "drop"])
@pytest.mark.parametrize("locked", [True, False])
def test_a_later_table_of_the_name_begins_anew(call: Call, other: Call, how: str, locked: bool) -> None:
    make_database(call, "db")
    name = transactional(call)
    if locked:
        locks.unlock(call, ask(call, component(READ))[0])
    old = begin(call, 2)
    for key in old:
        allocate(call, [key])
    assert valid(call) == (1, [1], set(), 1)
    assert T in call.database.known_write_ids
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


def test_what_is_remembered_is_bounded(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_write_ids, "MOST_TABLES", 3)
    key = begin_one(call)
    for number in range(5):
        allocate(call, [key], f"t{number}")
        assert valid(call, f"db.t{number}") == (1, [1], set(), 1)
    assert len(call.database.known_write_ids) == 2
    assert valid(call, "db.t0") == (1, [1], set(), 1)


def test_a_large_table_is_read_by_its_exceptions(call: Call, statements: Statements, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_write_ids, "MOST", 5)
    for number in range(5):
        allocate(call, [begin_one(call)])
        assert valid(call) == ((1, [1], set(), 1))
        assert (T in call.database.known_write_ids) is True, number
    allocate(call, [begin_one(call)])
    for expected in (1, 1):
        assert valid(call) == (1, [1], set(), 1)
        assert len(call.database.known_write_ids) + len(call.database.written_tables) == expected
    with statements() as seen:
        valid(call, valid_transactions="100:101::")
    assert len(seen) == 1


def test_more_that_is_new_than_is_read_at_once(call: Call, other: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_write_ids, "MOST", 5)
    first = begin_one(call)
    allocate(call, [first])
    assert valid(call) == (1, [1], set(), 1)
    allocate(other, begin(other, 20))
    last = begin_one(other)
    allocate(other, [last])
    text = f"{last}:{first}:{first},{last}:"
    assert valid(call, valid_transactions=text) == (22, [1, 22], set(), 1)
    assert T in call.database.known_write_ids


def test_what_is_read_twice_or_late_is_known_once() -> None:
    """Readers beside each other are told the same, and one that asked earlier may be told later."""
    table = known_write_ids.KnownTable(0)
    rows = [(0, 2, 8, 0), (1, 2, 5, 0), (1, 1, 7, 0)]
    more = [*rows, (0, 6, 12, 0), (2, 3, 9, 12)]
    assert table.add(2, 8, rows)
    assert table.add(6, 12, more)
    assert table.add(2, 8, rows)
    made = Snapshot({}, {}, {})
    table.make(made, T, known_write_ids.View(6, [3], 2))
    assert made == Snapshot({T: Mark(6, 2, True, 12)}, {T: [(1, 7)]}, {T: [(9, 12, 3)]})


def test_readers_beside_each_other_and_a_writer_agree(call: Call, other: Call) -> None:
    first = begin_one(call)
    allocate(call, [first])

    def read(_: int) -> list[Answer]:
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
