"""Make the graph of waits from locks: holders that wait for each other, and the holders that hold up others. It reads nothing.

A holder is a transaction with all its locks, or a lock without one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from metastore.idl import LockState, LockType, ShowLocksResponseElement

TYPES = {
    LockType.SHARED_READ: "shared read",
    LockType.SHARED_WRITE: "shared write",
    LockType.EXCL_WRITE: "exclusive write",
    LockType.EXCLUSIVE: "exclusive",
}


@dataclass(frozen=True, slots=True)
class Lock:
    """A component of a lock; times in milliseconds."""

    id: int
    transaction: int | None
    database: str
    table: str | None
    partition: str | None
    type: str
    state: str
    """"acquired" or "waiting"."""
    user: str | None
    host: str | None
    agent: str | None
    acquired: int | None
    heartbeat: int | None
    """None where the lock lives with its transaction."""
    waits_for: int | None
    """The id of the lock that holds it back."""
    waiting: int | None = None
    """The time since which it waits; None if it does not wait."""

    @property
    def object(self) -> str:
        """The locked object, as one text."""
        return ".".join(part for part in (self.database, self.table, self.partition) if part)

    @property
    def holder(self) -> str:
        """The key of its holder."""
        return f"transaction-{self.transaction}" if self.transaction else f"lock-{self.id}"


def lock_of(each: ShowLocksResponseElement, since: int | None = None) -> Lock:
    """Return a component as pages show it. `since`: from when it waits, in milliseconds."""
    return Lock(
        id=each.lockid,
        transaction=each.txnid or None,
        database=each.dbname,
        table=each.tablename,
        partition=each.partname,
        type=TYPES.get(each.type, str(each.type)),
        state="acquired" if each.state == LockState.ACQUIRED else "waiting",
        user=each.user,
        host=each.hostname,
        agent=each.agentInfo,
        acquired=each.acquiredat,
        heartbeat=each.lastheartbeat or None,
        waits_for=each.blockedByExtId,
        waiting=since,
    )


@dataclass(slots=True)
class Holder:
    """A holder of locks, or one that waits for them."""

    key: str
    transaction: int | None
    lock: int
    """The first lock of the holder."""
    user: str | None
    host: str | None
    objects: list[str] = field(default_factory=list)
    """The objects that it has locked, or waits for, each once."""
    waits_for: list[str] = field(default_factory=list)
    """The keys of the holders that it waits for."""
    holds_up: list[str] = field(default_factory=list)
    """Keys of all that wait for it, directly or not."""
    contended: list[str] = field(default_factory=list)
    """The objects that it holds and others wait for."""

    @property
    def name(self) -> str:
        return f"Transaction {self.transaction}" if self.transaction else f"Lock {self.lock}"


def holders(locks: Iterable[Lock]) -> dict[str, Holder]:
    """Return all holders by their keys, with the waits between them."""
    found: dict[str, Holder] = {}
    by_lock: dict[int, str] = {}
    listed = list(locks)
    for lock in listed:
        holder = found.setdefault(lock.holder, Holder(lock.holder, lock.transaction, lock.id, lock.user, lock.host))
        by_lock[lock.id] = lock.holder
        if lock.object not in holder.objects:
            holder.objects.append(lock.object)
    for lock in listed:
        blocker = by_lock.get(lock.waits_for or 0)
        if blocker is not None and blocker != lock.holder:
            _add(found[lock.holder].waits_for, blocker)
            _add(found[blocker].contended, lock.object)
    waiters = _waiters(found)
    for key in waiters:
        found[key].holds_up = _reached(key, waiters)
    return found


def _add(items: list[str], item: str) -> None:
    if item not in items:
        items.append(item)


def _waiters(found: dict[str, Holder]) -> dict[str, list[str]]:
    out: dict[str, list[str]] = {}
    for key, holder in found.items():
        for other in holder.waits_for:
            out.setdefault(other, []).append(key)
    return out


def _reached(key: str, waiters: dict[str, list[str]]) -> list[str]:
    """Return the holders that wait for one, directly or through others. The one itself is left out, even in a circle."""
    seen: dict[str, None] = {}
    left = list(waiters.get(key, ()))
    while left:
        each = left.pop(0)
        if each not in seen and each != key:
            seen[each] = None
            left += waiters.get(each, ())
    return list(seen)


def roots(found: dict[str, Holder]) -> list[Holder]:
    """Return the holders that hold up others and wait for none, the one that holds up most first. Of a circle, all are returned."""
    blocking = [each for each in found.values() if each.holds_up]
    free = [each for each in blocking if not each.waits_for]
    held_up = {key for each in free for key in each.holds_up}
    circles = [each for each in blocking if each.waits_for and each.key not in held_up and _in_circle(each, found)]
    return sorted([*free, *circles], key=lambda each: (-len(each.holds_up), each.key))


def _in_circle(holder: Holder, found: dict[str, Holder]) -> bool:
    return any(other in holder.holds_up for other in holder.waits_for if other in found)


def involved(found: dict[str, Holder]) -> Sequence[Holder]:
    """Return the holders that wait or hold up others."""
    return [each for each in found.values() if each.waits_for or each.holds_up]
