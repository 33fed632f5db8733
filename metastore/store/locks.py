"""Rows of locks. One function per statement; what may be granted is not decided here.

Requests on one database take their turn by locking its row in `lock_queues` first. Ids are given out while that row is held, so their
order is the order in which the requests of a database see each other, whatever order their transactions commit in.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import sqlalchemy as sa

from metastore.store.database import Among, Session
from metastore.store.drivers import Row
from metastore.store.schema import lock_components, lock_queues, locks

L, C, Q = locks.c, lock_components.c, lock_queues.c
ACQUIRED, WAITING = "a", "w"
QUEUES = sa.select(Q.name).where(Among(Q.name, "names")).order_by(Q.name).with_for_update()
FIELDS = (
    L.id, L.transaction_id, L.state, L.user, L.host, L.agent, L.heartbeat_ms, L.acquired_ms, C.number, C.catalog, C.database, C.table,
    C.partition, C.type,
)
JOINED = locks.join(lock_components, C.lock_id == L.id)
BEFORE = (
    sa.select(*FIELDS).select_from(JOINED)
    .where(Among(C.database, "databases"), C.lock_id < sa.bindparam("before"))
    .order_by(L.id, C.number)
)
ONE = sa.select(*FIELDS).select_from(JOINED).where(L.id == sa.bindparam("key")).order_by(C.number)
ALL = sa.select(*FIELDS).select_from(JOINED).order_by(L.id, C.number)
INSERT = sa.insert(locks).values({
    name: sa.bindparam(name) for name in ("transaction_id", "state", "user", "host", "agent", "heartbeat_ms", "acquired_ms")
})
COMPONENT_COLUMNS = ("lock_id", "number", "catalog", "database", "table", "partition", "type")
HEARTBEAT = sa.update(locks).where(L.id == sa.bindparam("key")).values(heartbeat_ms=sa.bindparam("now"))
ACQUIRE = sa.update(locks).where(L.id == sa.bindparam("key")).values(
    state=sa.literal_column("'a'"), heartbeat_ms=sa.bindparam("now"), acquired_ms=sa.bindparam("now")
)
DELETE = sa.delete(locks).where(L.id == sa.bindparam("key"))
DELETE_COMPONENTS = sa.delete(lock_components).where(C.lock_id == sa.bindparam("key"))
EXPIRE = sa.delete(locks).where(Among(L.id, "keys"), L.heartbeat_ms < sa.bindparam("since"))
EXPIRE_COMPONENTS = sa.delete(lock_components).where(
    Among(C.lock_id, "keys"), ~sa.exists(sa.select(sa.literal_column("1")).where(L.id == C.lock_id))
)


class Held(NamedTuple):
    """A component of a lock together with its lock; times in milliseconds, `type` is a LockType of the interface."""

    id: int
    transaction: int
    state: str
    user: str | None
    host: str | None
    agent: str | None
    heartbeat: int
    acquired: int | None
    number: int
    catalog: str
    database: str
    table: str | None
    partition: str | None
    type: int


def _held(rows: Iterable[Row]) -> list[Held]:
    return [Held(*row) for row in rows]


def queue(session: Session, names: Sequence[str]) -> None:
    """Wait for the turn in the queues of databases (catalog.database) and keep it until the transaction ends."""
    wanted = sorted(set(names))
    found = session.rows(QUEUES, names=wanted)
    if len(found) < len(wanted):
        session.insert_missing(lock_queues, [{"name": name} for name in wanted])
        session.rows(QUEUES, names=wanted)


def before(session: Session, databases: Sequence[str], key: int) -> list[Held]:
    """Return the components in databases of these names of all locks with a smaller id, ascending."""
    return _held(session.rows(BEFORE, databases=sorted(set(databases)), before=key))


def find(session: Session, key: int) -> list[Held]:
    """Return the components of a lock; none when it is not there."""
    return _held(session.rows(ONE, key=key))


def all_of(session: Session) -> list[Held]:
    """Return the components of all locks, ascending by id."""
    return _held(session.rows(ALL))


def insert(
    session: Session, transaction: int, state: str, who: tuple[str | None, str | None, str | None], now: int,
    components: Sequence[tuple[str, str, str | None, str | None, int]],
) -> int:
    """Add a lock of `who` (user, host, agent) with components (catalog, database, table, partition, type); return its id."""
    user, host, agent = who
    key = session.insert(
        INSERT, transaction_id=transaction, state=state, user=user, host=host, agent=agent, heartbeat_ms=now,
        acquired_ms=now if state == ACQUIRED else None,
    )
    rows = [(key, number, *component) for number, component in enumerate(components, 1)]
    session.insert_many(lock_components, COMPONENT_COLUMNS, rows)
    return key


def heartbeat(session: Session, key: int, now: int) -> bool:
    """Note that a lock's owner lives; tell whether the lock is there."""
    return session.execute(HEARTBEAT, key=key, now=now) > 0


def acquire(session: Session, key: int, now: int) -> bool:
    """Grant a lock; tell whether it is there."""
    return session.execute(ACQUIRE, key=key, now=now) > 0


def delete(session: Session, key: int) -> None:
    """Remove a lock if it is there."""
    session.execute(DELETE, key=key)
    session.execute(DELETE_COMPONENTS, key=key)


def expire(session: Session, keys: Sequence[int], since: int) -> None:
    """Remove those of the locks whose last heartbeat is still older than `since`: one that came meanwhile saves its lock."""
    session.execute(EXPIRE, keys=list(keys), since=since)
    session.execute(EXPIRE_COMPONENTS, keys=list(keys))
