"""Writes that a lock request of a transaction announces, and which writes are in conflict. Never stores one.

Source: Hive's TxnHandler, CommitTxnFunction and InsertTxnComponentsCommand.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from metastore.idl import DataOperationType, LockType, TxnType

INSERT, UPDATE, DELETE, COMPACTION = "i", "u", "d", "c"
ROW_CHANGES = frozenset({UPDATE, DELETE})
"""Operations that conflict: only the first to commit wins."""

WITHOUT_CONFLICTS = frozenset({TxnType.READ_ONLY, TxnType.SOFT_DELETE, TxnType.COMPACTION, TxnType.REPL_CREATED})
"""Types whose writes conflict with none: they change no row, or were checked where they are replicated from."""

_OPERATIONS = {DataOperationType.INSERT: INSERT, DataOperationType.UPDATE: UPDATE, DataOperationType.DELETE: DELETE}
_WITHOUT_WRITES = frozenset({DataOperationType.SELECT, DataOperationType.NO_TXN})


class Intent(NamedTuple):
    """One object that a transaction writes to; `write_id` is None where none is allocated."""

    catalog: str
    database: str
    table: str | None
    partition: str | None
    operation: str
    write_id: int | None


class RowChange(NamedTuple):
    """One object that a committed transaction updated or deleted rows of."""

    catalog: str
    database: str
    table: str
    partition: str | None
    transaction: int
    commit_id: int
    operation: str


def operation_of(operation: int | None, lock_type: int) -> str | None:
    """Return the letter of a lock component's operation, None for one that writes nothing.

    Older clients do not send the field. For them the type of the lock decides: an insert has a reader's lock, any other write changes rows.
    """
    if operation in _WITHOUT_WRITES:
        return None
    return _OPERATIONS.get(operation or 0, INSERT if lock_type == LockType.SHARED_READ else UPDATE)


def conflict(transaction: int, wanted: Iterable[Intent], committed: Sequence[RowChange]) -> tuple[Intent, RowChange] | None:
    """Return the first pair of a change and one that was committed since the transaction began; None when it may commit.

    Two changes conflict on the same table and the same partition. Inserts never do.
    """
    by_object: dict[tuple[str | None, ...], RowChange] = {}
    for write in committed:
        if write.commit_id >= transaction != write.transaction and write.operation in ROW_CHANGES:
            by_object.setdefault(write[:4], write)
    for intent in wanted:
        if intent.operation in ROW_CHANGES and intent[:4] in by_object:
            return intent, by_object[intent[:4]]
    return None


def conflict_text(transaction: int, commit_id: int, mine: Intent, theirs: RowChange) -> str:
    """Return the reason why a transaction is aborted; clients recognise the text by its beginning."""
    name = "/".join(part for part in mine[1:4] if part is not None)
    return (
        f"Aborting [txnid:{transaction},{commit_id}] due to a write conflict on {name} "
        f"committed by [txnid:{theirs.transaction},{theirs.commit_id}] {mine.operation}/{theirs.operation}"
    )
