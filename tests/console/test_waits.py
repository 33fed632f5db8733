"""Locks that wait for each other, and their drawing: chains, forks, circles, many."""

from __future__ import annotations

from metastore.console.drawing import MOST, draw
from metastore.console.waits import Lock, holders, involved, roots


def lock(key: int, transaction: int | None, waits_for: int | None = None, table: str = "t") -> Lock:
    state = "waiting" if waits_for else "acquired"
    return Lock(key, transaction, "d", table, None, "exclusive", state, f"u{key}", "h", None, None, None, waits_for)


def names(found: list[str]) -> list[str]:
    return [each.replace("transaction-", "t").replace("lock-", "l") for each in found]


def test_a_lock_behind_one_that_waits_is_held_up_by_both() -> None:
    found = holders([lock(1, 10), lock(2, 20, 1), lock(3, 30, 2), lock(4, None, 1), lock(5, 50)])
    assert names(found["transaction-10"].holds_up) == ["t20", "l4", "t30"]
    assert names(found["transaction-20"].holds_up) == ["t30"]
    assert found["lock-4"].name == "Lock 4"
    assert [each.name for each in roots(found)] == ["Transaction 10"]
    assert [each.key for each in involved(found)] == ["transaction-10", "transaction-20", "transaction-30", "lock-4"]


def test_one_transaction_is_one_holder_however_many_locks_it_has() -> None:
    found = holders([lock(1, 10, table="a"), lock(2, 10, table="b"), lock(3, 20, 1, "a"), lock(4, 20, 2, "b"), lock(5, 10, 1)])
    assert found["transaction-10"].objects == ["d.a", "d.b", "d.t"]
    assert found["transaction-10"].contended == ["d.a", "d.b"]
    assert found["transaction-20"].waits_for == ["transaction-10"]
    assert found["transaction-10"].waits_for == [], "nobody waits for oneself"


def test_a_lock_behind_a_hidden_one_has_no_known_holder() -> None:
    found = holders([lock(7, 70, 3)])
    assert found["transaction-70"].waits_for == []
    assert roots(found) == []


def test_locks_that_wait_for_each_other_are_all_shown() -> None:
    found = holders([lock(1, 10, table="a"), lock(2, 20, table="b"), lock(3, 10, 2, "b"), lock(4, 20, 1, "a"), lock(5, 30, 3, "b")])
    assert [each.name for each in roots(found)] == ["Transaction 10", "Transaction 20"]
    assert set(names(found["transaction-10"].holds_up)) == {"t20", "t30"}
    drawn = draw(involved(found))
    assert drawn is not None
    assert len(drawn.boxes) == 3
    assert len(drawn.arrows) == 3


def test_a_waiter_is_drawn_to_the_right_of_its_blocker() -> None:
    found = holders([lock(1, 10), lock(2, 20, 1), lock(3, 30, 2), lock(4, 40, 1)])
    drawn = draw(involved(found))
    assert drawn is not None
    places = {box.holder.transaction: (box.x, box.y) for box in drawn.boxes}
    assert places[10][0] < places[20][0] == places[40][0] < places[30][0]
    assert places[20][1] != places[40][1]
    assert all(0 < x < drawn.width and 0 < y < drawn.height for x, y in places.values())
    assert {(arrow.waiter, arrow.blocker) for arrow in drawn.arrows} == {
        ("transaction-20", "transaction-10"), ("transaction-30", "transaction-20"), ("transaction-40", "transaction-10"),
    }  # fmt: skip
    assert drawn.boxes[0].lines == ("Transaction 10", "u1@h", "d.t")


def test_nobody_and_too_many_are_not_drawn() -> None:
    assert draw([]) is None
    found = holders([lock(1, 10), *(lock(key, key, 1) for key in range(11, 11 + MOST))])
    assert draw(involved(found)) is None


def test_long_names_are_cut_to_their_box() -> None:
    long = Lock(1, 10, "d", "t" * 200, None, "exclusive", "acquired", "u" * 200, "h" * 200, None, None, None, None)
    drawn = draw(involved(holders([long, lock(2, 20, 1)])))
    assert drawn is not None
    assert all(len(line) <= 30 for box in drawn.boxes for line in box.lines)
