"""The pool of connections: the order in which it lends them, the callers that wait, and broken connections."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event

import pytest
import sqlalchemy as sa
import structlog

from metastore.errors import MetaError
from metastore.store.core import pool
from metastore.store.core.database import Database
from metastore.store.core.pool import Pool


class Connection:
    def __init__(self) -> None:
        self.closed = False

    def close(self) -> None:
        self.closed = True


def test_the_one_that_came_back_last_goes_out_first() -> None:
    lent = Pool(Connection, 3)
    first, second = lent.take(), lent.take()
    assert first is not second
    lent.give(second)
    lent.give(first)
    assert lent.take() is first
    assert lent.take() is second


def test_a_thread_that_finds_all_lent_waits_until_one_comes_back() -> None:
    lent = Pool(Connection, 1)
    only = lent.take()
    with ThreadPoolExecutor(1) as other:
        waiting = other.submit(lent.take)
        while not lent.waiting:
            assert not waiting.done()
        lent.give(only)
        assert waiting.result(60) is only


def test_the_longest_waiting_thread_is_served_first() -> None:
    lent = Pool(Connection, 1)
    only, order = lent.take(), list[int]()

    def wait(number: int) -> None:
        taken = lent.take()
        order.append(number)
        lent.give(taken)

    with ThreadPoolExecutor(20) as others:
        for number in range(20):
            others.submit(wait, number)
            while lent.waiting <= number:
                pass
        lent.give(only)
    assert order == list(range(20))
    assert lent.take() is only


def test_a_newcomer_does_not_pass_the_threads_that_wait() -> None:
    lent = Pool(Connection, 1)
    only = lent.take()
    with ThreadPoolExecutor(1) as other:
        waiting = other.submit(lent.take)
        while not lent.waiting:
            pass
        lent._idle.append(only)  # idle for a moment, as after its return
        with ThreadPoolExecutor(1) as late:
            second = late.submit(lent.take)
            first = waiting.result(60)
            assert first is only
            lent.give(first)
            assert second.result(60) is only


def test_a_wait_that_is_too_long_ends_with_an_error_that_names_the_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "PATIENCE", 0.0)
    lent = Pool(Connection, 1)
    lent.take()
    with pytest.raises(TimeoutError, match="database_pool_size"):
        lent.take()


def test_when_one_breaks_all_that_were_open_then_are_closed() -> None:
    lent = Pool(Connection, 3)
    broken, lying, out = lent.take(), lent.take(), lent.take()
    lent.give(lying)
    lent.distrust(broken)
    assert lying.closed
    for each in (broken, out):
        lent.give(each)
        assert each.closed
    fresh = [lent.take() for _ in range(3)]
    assert not {*fresh} & {broken, lying, out}
    lent.distrust(broken)  # a late report of a lost connection: the new ones stay
    lent.give(fresh[0])
    assert lent.take() is fresh[0]


def test_a_connection_that_can_not_be_opened_takes_no_room() -> None:
    answers = iter([OSError("refused"), Connection()])

    def connect() -> Connection:
        answer = next(answers)
        if isinstance(answer, OSError):
            raise answer
        return answer  # type: ignore[return-value]

    lent = Pool(connect, 1)
    with pytest.raises(OSError, match="refused"):
        lent.take()
    assert not lent.take().closed


def test_no_two_threads_have_one_connection_and_there_are_never_more_than_the_size() -> None:
    made: list[Connection] = []

    def connect() -> Connection:
        made.append(Connection())
        return made[-1]

    lent, threads, begin, failed = Pool(connect, 3), 8, Barrier(8), Event()
    used: set[Connection] = set()

    def run(_: int) -> None:
        begin.wait()
        for _ in range(2000):
            connection = lent.take()
            if connection in used:
                failed.set()
            used.add(connection)
            used.discard(connection)
            lent.give(connection)

    with ThreadPoolExecutor(threads) as together:
        list(together.map(run, range(threads)))
    assert not failed.is_set()
    assert len(made) <= 3


def test_a_call_that_found_no_idle_connection_does_not_wait_again(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """A call without an idle connection does not wait as for a lost database, and does not report a loss: the database works."""
    monkeypatch.setattr(pool, "PATIENCE", 0.0)
    database.read(lambda session: session.rows(sa.select(sa.literal(1))))
    held = [database.pool.take() for _ in range(database.pool.size)]
    with structlog.testing.capture_logs() as said, pytest.raises(MetaError, match="raise database_pool_size"):
        database.read(lambda session: session.rows(sa.select(sa.literal(1))))
    assert database.pool.waits == len(held) + 1, "waited for once"
    assert said == []
    for each in held:
        database.pool.give(each)
