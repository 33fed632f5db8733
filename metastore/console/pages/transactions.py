"""Pages of transactions and locks: owners, waits between them, and those that hold up the others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from metastore.console import waits
from metastore.console.pages.asking import ROWS, locks
from metastore.console.visit import Visit
from metastore.console.waits import Holder, Lock
from metastore.errors import NoSuchLock
from metastore.idl import TxnType
from metastore.rules.transactions.transactions import DELETE, INSERT, UPDATE
from metastore.service.operations.browsing import TransactionRow, TransactionView

STATES = {"o": "open", "a": "aborted", "c": "committed"}
LETTERS = {name: letter for letter, name in STATES.items()}
OPERATIONS = {INSERT: "insert", UPDATE: "update", DELETE: "delete", "c": "compaction", "p": "clean-up"}
MOST_LOCKS = 500
"""Locks that one page lists, waiting ones first."""


@dataclass(frozen=True, slots=True)
class Transaction:
    """A transaction; times in milliseconds."""

    id: int
    state: str
    type: str
    user: str | None
    host: str | None
    agent: str | None
    started: int
    heartbeat: int
    ended: int | None


@dataclass(frozen=True, slots=True)
class ListedTransaction:
    """A transaction, and how many wait for it."""

    transaction: Transaction
    holds_up: int


@dataclass(frozen=True, slots=True)
class Transactions:
    """A page of transactions, the oldest first."""

    state: str
    rows: list[ListedTransaction]
    next: int | None


def transaction_of(row: TransactionRow) -> Transaction:
    kind = TxnType._VALUES_TO_NAMES.get(row.type, str(row.type)).lower().replace("_", " ")  # noqa: SLF001  # thriftpy2 has no public name
    return Transaction(
        row.id, STATES.get(row.state, row.state), kind, row.user, row.host, row.agent, row.started, row.heartbeat, row.ended
    )  # fmt: skip


def transactions(visit: Visit, state: Literal["open", "aborted"] = "open", after: int = 0) -> Transactions:
    """List open or aborted transactions, the oldest first: all of them to an administrator, to others their own."""
    page = visit.run("show_transactions_page", state=LETTERS[state], user=None, after=after, most=ROWS)
    found = waits.holders(locks(visit)) if state == "open" else {}
    held = {holder.transaction: len(holder.holds_up) for holder in found.values()}
    return Transactions(state, [ListedTransaction(transaction_of(row), held.get(row.id, 0)) for row in page.rows], page.next)


@dataclass(frozen=True, slots=True)
class Write:
    """One write of a transaction."""

    catalog: str
    database: str
    table: str | None
    partition: str | None
    operation: str
    write_id: int | None


@dataclass(frozen=True, slots=True)
class OneTransaction:
    """A transaction with its writes and locks, the ones that it waits for and the ones that it holds up."""

    transaction: Transaction
    writes: list[Write]
    locks: list[Lock]
    waits_for: list[Holder]
    holds_up: list[Holder]
    near: list[Holder]
    """The holders to draw: the transaction and the holders of the two lists before it. Empty where none waits."""


def transaction(visit: Visit, id: int) -> OneTransaction:  # noqa: A002  # the name in the path
    """Show a transaction: its writes and locks, the ones that it waits for and the ones that it holds up."""
    view: TransactionView = visit.run("show_transaction", id=id)
    all_locks = locks(visit)
    found = waits.holders(all_locks)
    own = found.get(f"transaction-{id}")
    near = [found[key] for key in ([*own.waits_for, own.key, *own.holds_up] if own is not None else ())]
    return OneTransaction(
        transaction=transaction_of(view.row),
        writes=[Write(*write[:4], OPERATIONS.get(write.operation, write.operation), write.write_id) for write in view.writes],
        locks=[lock for lock in all_locks if lock.transaction == id],
        waits_for=[found[key] for key in own.waits_for] if own is not None else [],
        holds_up=[found[key] for key in own.holds_up] if own is not None else [],
        near=near if len(near) > 1 else [],
    )


@dataclass(frozen=True, slots=True)
class Locks:
    """The locks, the holders that hold up others, and the waits between them."""

    database: str
    table: str
    rows: list[Lock]
    number: int
    """The number of all locks that match; `rows` has the first of them."""
    blocking: list[Holder]
    involved: list[Holder]
    """All holders that wait or hold up others."""


def all_locks(visit: Visit, database: str = "", table: str = "") -> Locks:
    """List locks, waiting ones first, and show the waits between them; of a database or a table if one is given."""
    everything = locks(visit)
    found = waits.holders(everything)
    rows = [lock for lock in everything if database in ("", lock.database) and table in ("", lock.table)]
    keys = {lock.holder for lock in rows}
    blocking = [each for each in waits.roots(found) if not (database or table) or keys & {each.key, *each.holds_up}]
    near = {key for each in blocking for key in (each.key, *each.holds_up)}
    return Locks(
        database=database,
        table=table,
        rows=sorted(rows, key=lambda lock: (lock.state != "waiting", lock.id))[:MOST_LOCKS],
        number=len(rows),
        blocking=blocking,
        involved=[each for each in waits.involved(found) if each.key in near],
    )


@dataclass(frozen=True, slots=True)
class OneLock:
    """A lock with its components, and the ones that it holds up."""

    id: int
    locks: list[Lock]
    waits_for: list[Holder]
    holds_up: list[Holder]


def lock(visit: Visit, id: int) -> OneLock:  # noqa: A002  # the name in the path
    """Show a lock: its components, the lock that it waits for, and the ones that it holds up."""
    everything = locks(visit)
    own = [each for each in everything if each.id == id]
    if not own:
        raise NoSuchLock(f"There is no lock {id}: it was released, or it expired")
    found = waits.holders(everything)
    holder = found[own[0].holder]
    return OneLock(id, own, [found[key] for key in holder.waits_for], [found[key] for key in holder.holds_up])
