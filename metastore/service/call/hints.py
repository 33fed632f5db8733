"""Requests of a connection's client in the transactions that it opened.

Only `service.transactions.fast_paths` reads them, to choose the path to try. It is a hint, never a fact: another
connection may have asked for more in the same transaction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from metastore.idl import TxnType
from metastore.rules.transactions.transactions import ROW_CHANGES, Intent
from metastore.store.fast_paths import PLAIN, Hint
from metastore.store.transactions.locks import KnownWriteId
from metastore.store.transactions.transactions import RANGES
from metastore.store.transactions.write_ids import TableKey

MAX_TRANSACTIONS = 256
"""The most transactions of one connection with hints."""


@dataclass(slots=True)
class TransactionHint:
    """The requests in one transaction."""

    type: int = TxnType.DEFAULT
    holds: int = 0
    """Bits of `store.transactions`."""
    intents: list[Intent] = field(default_factory=list)
    row_changes: frozenset[TableKey] = frozenset()
    """The tables of which it updates or deletes rows: the commit has conflicts to look for."""
    write_ids: dict[TableKey, KnownWriteId] = field(default_factory=dict)

    def summary(self) -> Hint:
        """Return the hint for the database's fast paths."""
        intent = self._only_intent()
        row_changes = bool(self.row_changes) if intent is None else intent.operation in ROW_CHANGES
        return Hint(self.type, self.holds, len(self.intents), intent, row_changes)

    def _only_intent(self) -> Intent | None:
        """Return the one object that it writes to, with the write id that the client was given; None for none or several."""
        if len(self.intents) != 1:
            return None
        (intent,) = self.intents
        given = self.write_ids.get(TableKey.of(intent))
        return intent if given is None else intent._replace(write_id=given.write_id)


class Hints:
    """The hints of one connection, by transaction."""

    def __init__(self) -> None:
        self._by_id: dict[int, TransactionHint] = {}

    def __len__(self) -> int:
        return len(self._by_id)

    def opened(self, transactions: Sequence[int], kind: int) -> None:
        """Note transactions that the client opened."""
        if len(self._by_id) + len(transactions) > MAX_TRANSACTIONS:
            self._by_id.clear()
        holds = RANGES if len(transactions) > 1 else 0
        self._by_id.update((key, TransactionHint(kind, holds)) for key in transactions[:MAX_TRANSACTIONS])

    def find(self, transaction: int) -> TransactionHint | None:
        """Return the hint of a transaction; None if the client did not open it on this connection, or did so long ago."""
        return self._by_id.get(transaction)

    def of(self, transaction: int) -> TransactionHint:
        """Return the hint of a transaction. Without one it gets a hint by which anything may have been requested."""
        found = self._by_id.get(transaction)
        if found is None:
            self.opened([transaction], TxnType.DEFAULT)
            found = self._by_id[transaction]
            found.holds = PLAIN
        return found

    def ended(self, transaction: int) -> None:
        """Forget a transaction."""
        self._by_id.pop(transaction, None)
