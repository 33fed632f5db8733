"""The transactions of a server at one moment, and the write ids of its tables as readers of that moment see them. It changes nothing.

No method returns the transactions of write ids. Write ids that no reader may see are assigned to uncommitted transactions, in their order:
they are as invisible as with their own transactions. Open transactions count as aborted: their write ids stay unseen.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

from metastore import idl
from metastore.rules.transactions.snapshots import hidden_valid
from metastore.transfer.records import ABORTED, Record
from metastore.transfer.thrift.calls import Calls
from metastore.transfer.thrift.tables import Names, prefixed

INSERT = "i"
TABLES = 500
"""Tables of one call."""


class Transactions:
    """The transactions and write ids of a server."""

    def __init__(self, calls: Calls, tables: Sequence[Names]) -> None:
        """`tables` are those whose write ids are wanted. MetaError when the call fails."""
        self._calls, self._tables = calls, tables
        reply = calls.ask("get_open_txns_info")
        self.last: int = reply.txn_high_water_mark
        """The last transaction id."""
        self._ended = sorted(reply.open_txns, key=lambda each: each.id)

    def opened(self) -> list[int]:
        """Return the open transactions."""
        return [each.id for each in self._ended if each.state == idl.TxnState.OPEN]

    def transactions(self) -> Iterator[Record]:
        """Yield the transactions that are not committed, as aborted ones."""
        for each in self._ended:
            started = each.startedTime or 0
            body = {
                "state": ABORTED, "type": 0, "user": each.user, "host": each.hostname, "agent": each.agentInfo, "started_ms": started,
                "ended_ms": each.lastHeartbeatTime or started, "commit_id": None,
            }  # fmt: skip
            yield Record("transaction", (each.id,), body)

    def components(self) -> Iterator[Record]:
        """Yield a component for each invisible write id: without it, the transaction would have no writes and would be removed."""
        for names, found in self._found:
            for write_id, owner in self._owners(found):
                yield Record("transaction_component", (owner, *names, None, INSERT, write_id), {"committed_ms": None, "commit_id": None})

    def positions(self) -> Iterator[Record]:
        """Yield the next write ids."""
        for names, found in self._found:
            body = {"next": found.writeIdHighWaterMark + 1, "last_transaction": self.last, "last_change": self.last}
            yield Record("write_id_position", names, body)

    def write_ids(self) -> Iterator[Record]:
        """Yield the invisible write ids, and of each table a visible one above them: see `hidden_valid`."""
        ids = {each.id for each in self._ended}
        committed = next((each for each in range(self.last, 0, -1) if each not in ids), None)
        for names, found in self._found:
            seen = hidden_valid(found.writeIdHighWaterMark, set(found.invalidWriteIds))
            if seen is not None and committed is not None:
                yield Record("write_id", (*names, seen), {"transaction_id": committed})
            for write_id, owner in self._owners(found):
                yield Record("write_id", (*names, write_id), {"transaction_id": owner})

    @cached_property
    def _found(self) -> list[tuple[Names, Any]]:
        """The tables with write ids, each with its part of the answer of `get_valid_write_ids`."""
        text = f"{self.last}:{2**63 - 1}::{','.join(str(each.id) for each in self._ended)}"
        found: list[tuple[Names, Any]] = []
        for begin in range(0, len(self._tables), TABLES):
            page = {f"{prefixed(*names[:2])}.{names[2]}": names for names in self._tables[begin : begin + TABLES]}
            reply = self._calls.ask("get_valid_write_ids", idl.GetValidWriteIdsRequest(fullTableNames=list(page), validTxnList=text))
            states = reply.tblValidWriteIds if reply is not None else ()
            found += [(page[each.fullTableName], each) for each in states if each.writeIdHighWaterMark]
        return found

    def _owners(self, found: Any) -> Iterator[tuple[int, int]]:
        """Yield the invisible write ids of a table, each with the transaction that it is given to."""
        return zip(sorted(found.invalidWriteIds), (each.id for each in self._ended), strict=False)
