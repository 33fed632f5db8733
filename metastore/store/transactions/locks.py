"""Rows of locks. One function per statement; `service.transactions.locks` decides whether a lock is granted.

Requests on one database take their turn by locking its row in `lock_queues` first. Ids are issued while that row is held, so their order is
the order in which the requests of a database see each other, not the order in which their transactions commit: once a lock exists, none
with a smaller id can appear before it. The components of a lock are removed with it, by their foreign key.

On MariaDB every added exclusive lock, of any kind, raises `changes` of that row. Readers and shared writers that had no lock to wait for
have none as long as `changes` stay the same, and do not look again: the region `lock_queues` of the caches notes this. The other databases
look in the statement that adds the lock.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

import sqlalchemy as sa

from metastore.idl import LockType
from metastore.store.core.caches import QuietQueue
from metastore.store.core.clauses import Among, constant, unsynced
from metastore.store.core.database import Database, Session
from metastore.store.drivers.answer import Answer
from metastore.store.drivers.contract import Row
from metastore.store.schema.model import lock_components, lock_queues, locks, transactions
from metastore.store.transactions import components
from metastore.store.transactions.components import Intent
from metastore.store.transactions.write_ids import TableKey

LOCK, COMPONENT, QUEUE, TRANSACTION = locks.c, lock_components.c, lock_queues.c, transactions.c
ACQUIRED, WAITING = "a", "w"
COUNTED = frozenset({LockType.EXCLUSIVE, LockType.EXCL_WRITE})
"""Types of components that raise `changes` of their queue."""
QUEUES = sa.select(QUEUE.name).where(Among(QUEUE.name, "names")).order_by(QUEUE.name).with_for_update()
RAISE_CHANGES = sa.update(lock_queues).where(Among(QUEUE.name, "names")).values(changes=QUEUE.changes + constant(1))
FIELDS = (
    *LOCK,
    *(column for column in COMPONENT if column is not COMPONENT.lock_id),
    TRANSACTION.state,
    TRANSACTION.type,
    TRANSACTION.heartbeat_ms,
)
"""The columns of `Held`."""
JOINED = locks.join(lock_components, COMPONENT.lock_id == LOCK.id).outerjoin(transactions, TRANSACTION.id == LOCK.transaction_id)
ALL = sa.select(*FIELDS).select_from(JOINED)
"""Without an order, as the statements below: MariaDB 10.11 has crashed on the table that it makes to sort such a join."""
_OF_TYPES = (Among(COMPONENT.database, "databases"), Among(COMPONENT.type, "types"))
_WITHIN = sa.or_(COMPONENT.table.is_(None), Among(COMPONENT.table, "tables"))
IN_DATABASES = ALL.where(*_OF_TYPES)
ON_TABLES = IN_DATABASES.where(_WITHIN)
_IS_BEFORE = COMPONENT.lock_id < sa.bindparam("key")
BEFORE_IN_DATABASES, BEFORE_ON_TABLES = IN_DATABASES.where(_IS_BEFORE), ON_TABLES.where(_IS_BEFORE)
OF = ALL.where(COMPONENT.lock_id == sa.bindparam("key"))
COMPONENT_COLUMNS = ("lock_id", "number", "catalog", "database", "table", "partition", "type")
HEARTBEAT = unsynced(sa.update(locks).where(LOCK.id == sa.bindparam("key")).values(heartbeat_ms=sa.bindparam("now")))
ACQUIRE = (
    sa.update(locks)
    .where(LOCK.id == sa.bindparam("key"))
    .values(state=constant("a"), heartbeat_ms=sa.bindparam("now"), acquired_ms=sa.bindparam("now"))
)
WAITS = sa.select(LOCK.id, LOCK.acquired_ms).where(LOCK.state == constant("w"), LOCK.acquired_ms.is_not(None))
EXISTS = sa.select(LOCK.id).where(LOCK.id == sa.bindparam("key"))
RELEASE = unsynced(
    sa.delete(locks).where(LOCK.id == sa.bindparam("key"), sa.or_(LOCK.transaction_id == constant(0), LOCK.state == constant("w")))
)
"""A lock that reappears after a crash of the database is removed when its heartbeat is missed."""
EXPIRED = (
    sa.select(LOCK.id)
    .where(LOCK.transaction_id == constant(0), LOCK.heartbeat_ms < sa.bindparam("since"))
    .order_by(LOCK.id)
    .limit(sa.bindparam("most"))
)
LOCK_SILENT = (
    sa.select(LOCK.id).where(Among(LOCK.id, "keys"), LOCK.heartbeat_ms < sa.bindparam("since")).order_by(LOCK.id).with_for_update()
)
DELETE = sa.delete(locks).where(Among(LOCK.id, "keys"))
ORPHANS = (
    sa.select(LOCK.id)
    .select_from(locks.outerjoin(transactions, TRANSACTION.id == LOCK.transaction_id))
    .where(LOCK.transaction_id > constant(0), sa.or_(TRANSACTION.id.is_(None), TRANSACTION.state != constant("o")))
    .order_by(LOCK.id)
    .limit(sa.bindparam("most"))
)


class Held(NamedTuple):
    """A component of a lock together with its lock and its transaction; times in milliseconds, `type` is a LockType of the interface."""

    id: int
    transaction: int
    state: str
    user: str | None
    host: str | None
    agent: str | None
    heartbeat: int
    acquired: int | None
    """The time of the grant, or the beginning of the wait of a lock that waits; None for a waiting lock that an older server added."""
    writers_wait: int
    number: int
    catalog: str
    database: str
    table: str | None
    partition: str | None
    type: int
    transaction_state: str | None
    transaction_type: int | None
    transaction_heartbeat: int | None


def _held(rows: Iterable[Row]) -> list[Held]:
    return sorted((Held(*row) for row in rows), key=attrgetter("id", "number"))


class NewLock(NamedTuple):
    """A lock without its id; times in milliseconds, `writers_wait` is 0 or 1."""

    transaction_id: int
    state: str
    user: str | None
    host: str | None
    agent: str | None
    heartbeat_ms: int
    acquired_ms: int
    """The time of the grant, or the beginning of the wait of a lock that waits."""
    writers_wait: int


Component = tuple[str, str, str | None, str | None, int]
"""Catalog, database, table, partition, LockType of the interface."""


class OverlapScope(NamedTuple):
    """The reach of components: the queues of their databases, whether all are on tables, and the parameters of `in_reach`."""

    queues: list[str]
    within_tables: bool
    values: dict[str, Any]


def reach(parts: Collection[Component], types: Collection[int]) -> OverlapScope:
    """Return the scope of the components of these types that some components may overlap."""
    tables = {each[2] for each in parts}
    within = None not in tables
    values: dict[str, Any] = {"databases": sorted({each[1] for each in parts}), "types": sorted(types)}
    return OverlapScope(
        sorted({queue(*part[:2]) for part in parts}),
        within,
        {**values, "tables": sorted(tables, key=str)} if within else values,
    )


class KnownWriteId(NamedTuple):
    """A write id of a transaction, and the state of its database's lock queue that was seen last before."""

    write_id: int
    seen: QuietQueue | None


def queue(catalog: str, database: str) -> str:
    """Return the name of the queue of a database."""
    return f"{catalog}.{database}"


def last_seen(database: Database, key: TableKey) -> QuietQueue | None:
    """Return the last seen state of the lock queue of a table's database."""
    return database.caches.lock_queues.get(queue(key.catalog, key.database))


def quiet(database: Database, wanted: OverlapScope) -> QuietQueue | None:
    """Return the last seen state of the only queue if there was no lock to wait for; None for several queues, or if there may be one."""
    seen = database.caches.lock_queues.get(wanted.queues[0]) if len(wanted.queues) == 1 else None
    return seen if seen is not None and seen.is_quiet(_reached(wanted)) else None


def saw_quiet(database: Database, wanted: OverlapScope, changes: int) -> None:
    """Note for the `changes` of its only queue that there is no lock to wait for, if this is true as long as they stay the same."""
    (name,) = wanted.queues
    seen = database.caches.lock_queues.get(name)
    if seen is None or seen.changes != changes:
        seen = database.caches.lock_queues.put(name, QuietQueue(changes))
    if COUNTED.issuperset(wanted.values["types"]):
        seen.note(_reached(wanted), quiet=True)


def forget_quiet(database: Database, wanted: OverlapScope) -> None:
    """Let the next request look again for locks to wait for."""
    seen = database.caches.lock_queues.get(wanted.queues[0])
    if seen is not None:
        seen.note(_reached(wanted), quiet=False)


def _reached(wanted: OverlapScope) -> Hashable:
    return (tuple(wanted.values["types"]), tuple(wanted.values["tables"]) if wanted.within_tables else None)


def raise_changes(session: Session, queues: Collection[str]) -> None:
    """Raise `changes` of queues, so that their seen states become invalid."""
    session.insert_missing(lock_queues, [{"name": name, "changes": 0} for name in sorted(queues)])
    session.enqueue(RAISE_CHANGES, names=sorted(queues))


def _note_counted(session: Session, parts: Collection[Component]) -> None:
    """Count the components that are about to be added as changes of their queues, together with the next statement."""
    if session.notes_changes and (counted := {queue(*part[:2]) for part in parts if part[-1] in COUNTED}):
        session.enqueue(RAISE_CHANGES, names=sorted(counted))


def wait_turn(session: Session, queues: Sequence[str]) -> Answer:
    """Wait for the turn in queues, with the next statement; the answer has the existing ones. The turn ends with the transaction."""
    return session.enqueue(QUEUES, names=list(queues))


def in_reach(*, within_tables: bool) -> tuple[sa.ColumnElement[bool], ...]:
    """Return the conditions of the components in a `reach`."""
    return (*_OF_TYPES, _WITHIN) if within_tables else _OF_TYPES


def overlapping(session: Session, parts: Collection[Component], types: Collection[int]) -> list[Held]:
    """Wait for the turn in the databases' queues; return the components of these types, of all locks, that may overlap some.

    They ascend. The turn lasts until the transaction ends.
    """
    wanted = reach(parts, types)
    turn = wait_turn(session, wanted.queues)
    found = _overlapping(session, wanted)
    if len(turn.rows) < len(wanted.queues):
        session.insert_missing(lock_queues, [{"name": name, "changes": 0} for name in wanted.queues])
        wait_turn(session, wanted.queues)
        found = _overlapping(session, wanted)
    return _held(found)


def _overlapping(session: Session, wanted: OverlapScope, before: int | None = None) -> Sequence[Row]:
    """Return the rows of the components that may overlap, of all locks or of the locks with an id below `before`."""
    if before is None:
        return session.rows(ON_TABLES if wanted.within_tables else IN_DATABASES, **wanted.values)
    return session.rows(BEFORE_ON_TABLES if wanted.within_tables else BEFORE_IN_DATABASES, key=before, **wanted.values)


def of(session: Session, key: int) -> list[Held]:
    """Return the components of a lock; none when it is not there."""
    return _held(session.rows(OF, key=key))


def before(session: Session, key: int, parts: Collection[Component], types: Collection[int]) -> list[Held]:
    """Return the components of these types, of the locks with a smaller id, that may overlap some, ascending."""
    return _held(_overlapping(session, reach(parts, types), key))


def all_of(session: Session) -> list[Held]:
    """Return the components of all locks, ascending by id."""
    return _held(session.rows(ALL))


def insert(session: Session, lock: NewLock, parts: Sequence[Component], intents: Sequence[Intent]) -> Answer:
    """Add a lock with its components and its transaction's intents, together with the next statement; the answer has its id.

    The caller has the turn in the databases' queues.
    """
    _note_counted(session, parts)
    answer = session.insert_keyed(locks, **lock._asdict())
    insert_below(session, answer, lock, parts, intents)
    return answer


def insert_below(session: Session, answer: Answer, lock: NewLock, parts: Sequence[Component], intents: Sequence[Intent]) -> None:
    """Add the components of a lock that was added just before."""
    session.insert_below(answer, lock_components, COMPONENT_COLUMNS, [(number, *part) for number, part in enumerate(parts, 1)])
    components.insert(session, ((lock.transaction_id, intent) for intent in intents))


def heartbeat(session: Session, key: int, now: int) -> bool:
    """Note a heartbeat of a lock, in a transaction of its own; return whether the lock exists."""
    return session.execute(HEARTBEAT, key=key, now=now) > 0


def acquire(session: Session, key: int, now: int) -> bool:
    """Grant a lock; return whether it exists."""
    return session.execute(ACQUIRE, key=key, now=now) > 0


def exists(session: Session, key: int) -> bool:
    """Return whether a lock exists."""
    return session.exists(EXISTS, key=key)


def release(session: Session, key: int) -> bool:
    """Remove a lock that waits or belongs to no transaction, in a transaction of its own; return whether it existed."""
    return session.execute(RELEASE, key=key) > 0


def waiting(session: Session) -> list[tuple[int, int]]:
    """Return the ids of locks that wait, and the beginning of each wait in milliseconds."""
    return [(key, since) for key, since in session.rows(WAITS)]


def expired(session: Session, since: int, most: int) -> list[int]:
    """Return locks without transaction whose last heartbeat is before `since`, the lowest first."""
    return session.column(EXPIRED, since=since, most=most)


def orphans(session: Session, most: int) -> list[int]:
    """Return locks of transactions that are not open, the lowest first."""
    return session.column(ORPHANS, most=most)


def expire(session: Session, keys: Sequence[int], since: int) -> int:
    """Remove the locks whose last heartbeat is still before `since`: a new one saves its lock. Return the number of removed ones."""
    held = session.column(LOCK_SILENT, keys=list(keys), since=since)
    if held:
        session.enqueue(DELETE, keys=held)
    return len(held)
