"""Decide which locks wait for which others. Never stores a lock.

Source: Hive 4's CheckLockFunction and LockInfo. Locks wait in the order of their ids: only an earlier one, granted or still waiting,
holds a later one back. Clients before Hive 4 have no EXCL_WRITE; to them a SHARED_WRITE waits for another. Unlike in Hive, a
transaction does not wait behind a lock that waits for this very transaction: neither would end.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

from metastore.idl import LockType

READ, WRITE, EXCLUSIVE, EXCLUSIVE_WRITE = LockType.SHARED_READ, LockType.SHARED_WRITE, LockType.EXCLUSIVE, LockType.EXCL_WRITE
WAITS_FOR: dict[int, frozenset[int]] = {
    READ: frozenset({EXCLUSIVE}),
    WRITE: frozenset({EXCLUSIVE_WRITE, EXCLUSIVE}),
    EXCLUSIVE_WRITE: frozenset({WRITE, EXCLUSIVE_WRITE, EXCLUSIVE}),
    EXCLUSIVE: frozenset({READ, WRITE, EXCLUSIVE_WRITE, EXCLUSIVE}),
}
"""For each requested type the types of earlier locks on the same object that it waits for."""


WAITS_FOR_WRITERS = {**WAITS_FOR, WRITE: frozenset({WRITE, EXCLUSIVE_WRITE, EXCLUSIVE})}
"""The same for locks of clients before Hive 4, where a SHARED_WRITE waits for another."""


def _waits_for(kind: int, *, writers_wait: bool) -> frozenset[int]:
    return (WAITS_FOR_WRITERS if writers_wait else WAITS_FOR)[kind]


class Component(NamedTuple):
    """One object to be locked: a partition; a table, with `partition` None; or a database, with `table` None too."""

    catalog: str
    database: str
    table: str | None
    partition: str | None
    type: int


class Earlier(NamedTuple):
    """A component of an earlier lock."""

    lock: int
    """The id of the lock."""
    number: int
    """The component's number within the lock."""
    transaction: int
    """The lock's transaction, 0 for a lock without one."""
    component: Component
    is_waiting: bool = False
    writers_wait: bool = False
    """Whether the lock's client is older than Hive 4, so that its SHARED_WRITE waits for others."""


class Blocked(NamedTuple):
    """A lock that is held back, and the one that holds it back."""

    component: Component
    by: Earlier


def waits(wanted: Component, held: Component, *, writers_wait: bool = False) -> bool:
    """Return whether the component `wanted` waits for the earlier one `held`. `writers_wait` is about the wanted lock, see `Earlier`.

    Objects overlap when one contains the other. Two exceptions: reading a database does not wait for an exclusive lock on something inside
    it, nor does an exclusive lock on something inside it wait for readers of the database.
    """
    if (wanted.catalog, wanted.database) != (held.catalog, held.database):
        return False
    for ours, theirs in ((wanted.table, held.table), (wanted.partition, held.partition)):
        if ours is not None and theirs is not None and ours != theirs:
            return False
    if held.type not in _waits_for(wanted.type, writers_wait=writers_wait):
        return False
    if wanted.type == READ and wanted.table is None and held.table is not None:
        return False
    return not (held.type == READ and held.table is None and wanted.type == EXCLUSIVE and wanted.table is not None)


def waited_for(wanted: Iterable[Component], *, writers_wait: bool = False) -> frozenset[int]:
    """Return the types of earlier components that any of these may wait for."""
    return frozenset().union(*(_waits_for(each.type, writers_wait=writers_wait) for each in wanted))


def blocker(wanted: Sequence[Component], transaction: int, earlier: Iterable[Earlier], *, writers_wait: bool = False) -> Blocked | None:
    """Return the component that holds a lock back, None when nothing does; `earlier` ascends by lock.

    A transaction's own locks never hold it back, nor do the locks of others that wait for its granted locks.
    """
    known = list(earlier)
    behind = _behind(transaction, known) if transaction else frozenset()
    for held in known:
        if (transaction and held.transaction == transaction) or held.lock in behind:
            continue
        for component in wanted:
            if waits(component, held.component, writers_wait=writers_wait):
                return Blocked(component, held)
    return None


def _behind(transaction: int, known: Sequence[Earlier]) -> frozenset[int]:
    """Return the locks that can not be granted before a transaction ends: they wait for its locks, or for such a lock."""
    found: set[int] = set()
    before: list[Earlier] = []
    for lock, parts in groupby(known, key=attrgetter("lock")):
        components = list(parts)
        if components[0].transaction == transaction:
            before += [each for each in components if not each.is_waiting]
        elif any(
            each.is_waiting and waits(each.component, held.component, writers_wait=each.writers_wait)
            for each in components
            for held in before
        ):
            found.add(lock)
            before += components
    return frozenset(found)
