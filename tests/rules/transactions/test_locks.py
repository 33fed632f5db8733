import pytest
from hypothesis import given
from hypothesis import strategies as st

from metastore.rules.transactions.locks import (
    EXCLUSIVE,
    EXCLUSIVE_WRITE,
    READ,
    WRITE,
    Blocked,
    Component,
    Earlier,
    blocker,
    waited_for,
    waits,
)

TYPES = (READ, WRITE, EXCLUSIVE_WRITE, EXCLUSIVE)
WAIT, PASS = True, False
MATRIX = {
    READ: (PASS, PASS, PASS, WAIT),
    WRITE: (PASS, PASS, WAIT, WAIT),
    EXCLUSIVE_WRITE: (PASS, WAIT, WAIT, WAIT),
    EXCLUSIVE: (WAIT, WAIT, WAIT, WAIT),
}


def on(kind: int, table: str | None = None, partition: str | None = None, database: str = "db") -> Component:
    return Component("hive", database, table, partition, kind)


OBJECTS = st.sampled_from([(None, None), ("t", None), ("t", "p=1"), ("t", "p=2"), ("u", None), ("u", "p=1")])


@pytest.mark.parametrize("wanted", TYPES)
def test_types_on_one_table_wait_as_in_hive(wanted: int) -> None:
    assert tuple(waits(on(wanted, "t"), on(held, "t")) for held in TYPES) == MATRIX[wanted]


@given(st.sampled_from(TYPES), st.sampled_from(TYPES), OBJECTS)
def test_other_databases_and_other_objects_never_meet(wanted: int, held: int, thing: tuple[str | None, str | None]) -> None:
    assert not waits(on(wanted, *thing), on(held, *thing, database="other"))
    assert not waits(on(wanted, "t", "p=1"), on(held, "t", "p=2"))
    assert not waits(on(wanted, "t"), on(held, "u"))


@given(OBJECTS, OBJECTS)
def test_an_exclusive_lock_waits_for_everything_that_it_contains_or_lies_in(
    ours: tuple[str | None, str | None], theirs: tuple[str | None, str | None]
) -> None:
    meets = all(one is None or other is None or one == other for one, other in zip(ours, theirs, strict=True))
    assert waits(on(EXCLUSIVE, *ours), on(EXCLUSIVE, *theirs)) == meets


def test_readers_of_a_database_and_exclusive_locks_inside_it_pass_each_other() -> None:
    assert not waits(on(READ), on(EXCLUSIVE, "t"))
    assert not waits(on(EXCLUSIVE, "t"), on(READ))
    assert not waits(on(EXCLUSIVE, "t", "p=1"), on(READ))
    assert waits(on(READ), on(EXCLUSIVE))
    assert waits(on(READ, "t"), on(EXCLUSIVE))
    assert waits(on(EXCLUSIVE), on(READ, "t"))


@given(st.lists(st.sampled_from(TYPES), min_size=1, max_size=3), st.sampled_from(TYPES), OBJECTS, OBJECTS, st.booleans())
def test_nothing_waits_for_a_type_that_is_not_listed(
    wanted: list[int], held: int, ours: tuple[str | None, str | None], theirs: tuple[str | None, str | None], writers_wait: bool
) -> None:
    parts = [on(kind, *ours) for kind in wanted]
    types = waited_for(parts, writers_wait=writers_wait)
    if any(waits(part, on(held, *theirs), writers_wait=writers_wait) for part in parts):
        assert held in types
    assert (held in types) == any(waits(on(kind, "t"), on(held, "t"), writers_wait=writers_wait) for kind in wanted)


def test_the_first_blocker_is_named_and_the_own_transaction_is_none() -> None:
    earlier = [Earlier(3, 1, 0, on(READ, "t")), Earlier(4, 1, 7, on(EXCLUSIVE, "t")), Earlier(5, 1, 0, on(EXCLUSIVE, "t"))]
    assert blocker([on(READ, "x"), on(READ, "t")], 0, earlier) == Blocked(on(READ, "t"), earlier[1])
    assert blocker([on(READ, "t")], 7, earlier) == Blocked(on(READ, "t"), earlier[2])
    assert blocker([on(READ, "x")], 0, earlier) is None


def test_a_transaction_does_not_wait_behind_those_who_wait_for_it() -> None:
    held = Earlier(1, 1, 7, on(EXCLUSIVE_WRITE, "t"))
    direct = Earlier(2, 1, 8, on(EXCLUSIVE, "t"), is_waiting=True)
    behind_that = Earlier(3, 1, 9, on(READ, "t"), is_waiting=True)
    assert blocker([on(READ, "t")], 7, [held, direct]) is None
    assert blocker([on(EXCLUSIVE, "t")], 7, [held, direct, behind_that]) is None
    assert blocker([on(READ, "t")], 10, [held, direct]) == Blocked(on(READ, "t"), direct)  # another transaction takes its turn
    granted = Earlier(4, 1, 11, on(READ, "t"))
    assert blocker([on(EXCLUSIVE, "t")], 7, [held, direct, granted]) == Blocked(on(EXCLUSIVE, "t"), granted)
    elsewhere = Earlier(2, 1, 8, on(EXCLUSIVE, "u"), is_waiting=True)  # waits for a third transaction
    assert blocker([on(READ, "u")], 7, [held, elsewhere]) == Blocked(on(READ, "u"), elsewhere)
    both = [Earlier(2, number, 8, on(EXCLUSIVE, table), is_waiting=True) for number, table in enumerate(("s", "t"), 1)]
    assert blocker([on(READ, "s")], 7, [held, *both]) is None  # a request waits as a whole


def test_a_lock_behind_an_own_waiting_lock_is_waited_for() -> None:
    """A lock that waits may be given up. A lock that waits for it is then granted before its transaction ends."""
    own = Earlier(1, 1, 7, on(EXCLUSIVE_WRITE, "t"), is_waiting=True)
    other = Earlier(2, 1, 8, on(EXCLUSIVE, "t"), is_waiting=True)
    assert blocker([on(READ, "t")], 7, [own, other]) == Blocked(on(READ, "t"), other)


def test_before_hive_4_a_shared_write_waits_for_another() -> None:
    for wanted in TYPES:
        for held in TYPES:
            later = waits(on(wanted, "t"), on(held, "t"), writers_wait=True)
            assert later == (waits(on(wanted, "t"), on(held, "t")) or wanted == held == WRITE)
