"""Snapshots of transactions and of a table's write ids, which a reader may see, and the texts that Hive's clients exchange. No I/O.

    transactions       mark:min_open:open,..:aborted,..                 runs of ids may be written as first-last
    one table          db.table:mark:min_open:open,..:aborted,..
    several tables     transaction$one table$one table..

An id is valid when it is not above the mark and not an exception; `acid_directories.py` applies that to directories.
Source: Hive's ValidReadTxnList, ValidReaderWriteIdList, ValidTxnWriteIdList.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

from metastore.errors import MetaError
from metastore.idl import GetOpenTxnsResponse, TableValidWriteIds

NEVER = 2**63 - 1
"""The lowest open id where none is open, and the mark of a snapshot that sees everything."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Visible ids: those up to `mark` without the `exceptions` (ascending), among which `aborted` will never be seen."""

    mark: int
    exceptions: Sequence[int] = ()
    aborted: frozenset[int] = frozenset()
    min_open: int = field(default=NEVER)
    """The lowest open id, NEVER if none is."""

    @property
    def settled(self) -> int:
        """The highest id up to which all are seen."""
        return min(self.mark, self.exceptions[0] - 1) if self.exceptions else self.mark

    def is_valid(self, id_: int) -> bool:
        """Return whether writes under an id are seen."""
        return id_ <= self.mark and not self._is_exception(id_)

    def is_aborted(self, id_: int) -> bool:
        """Return whether writes under an id will never be seen."""
        return id_ in self.aborted

    def _is_exception(self, id_: int) -> bool:
        place = bisect_left(self.exceptions, id_)
        return place < len(self.exceptions) and self.exceptions[place] == id_


@dataclass(frozen=True, slots=True)
class TableSnapshots:
    """A snapshot of the tables that a transaction reads, by `database.table`."""

    transaction: int
    tables: dict[str, Snapshot]


def snapshot(mark: int, opened: Iterable[int], aborted: Iterable[int], min_open: int | None = None) -> Snapshot:
    """Return a snapshot of ids in any order; without `min_open` the lowest of the open ones is taken."""
    opened, gone = list(opened), frozenset(aborted)
    return Snapshot(mark, tuple(sorted({*opened, *gone})), gone, min(opened, default=NEVER) if min_open is None else min_open)


def of_reply(reply: GetOpenTxnsResponse, current: int = 0) -> Snapshot:
    """Return an answer of `get_open_txns` as the snapshot of a transaction, 0 for none: it sees nothing above itself.

    Source: Hive's TxnCommonUtils.createValidReadTxnList.
    """
    aborted = aborted_of(reply.open_txns, reply.abortedBits or b"")
    below = [id_ for id_ in sorted(reply.open_txns) if not 0 < current <= id_]
    opened = [id_ for id_ in below if id_ not in aborted]
    mark = min(current, reply.txn_high_water_mark) if current > 0 else reply.txn_high_water_mark
    return snapshot(mark, opened, aborted.intersection(below), reply.min_open_txn)


def of_table_reply(reply: TableValidWriteIds) -> Snapshot:
    """Return one table of an answer of `get_valid_write_ids`."""
    aborted = aborted_of(reply.invalidWriteIds, reply.abortedBits or b"")
    opened = (id_ for id_ in reply.invalidWriteIds if id_ not in aborted)
    return snapshot(reply.writeIdHighWaterMark, opened, aborted, reply.minOpenWriteId)


def hidden_valid(last: int, invalid: Collection[int]) -> int | None:
    """Return the highest valid write id of a table above its lowest invalid one; None without one.

    A metastore that has the committed transaction of none of these takes an invalid write id as the last, and hides the valid ones above.
    Source: Hive's GetValidWriteIdsForTableFunction.
    """
    lowest = min(invalid, default=last)
    return next((number for number in range(last, lowest, -1) if number not in invalid), None)


def aborted_bits(exceptions: Sequence[int], aborted: frozenset[int]) -> bytes:
    """Return a little-endian set of the places in `exceptions` that are aborted, without zero bytes at its end."""
    bits = "".join(["1" if id_ in aborted else "0" for id_ in reversed(exceptions)])
    return int(bits or "0", 2).to_bytes((len(exceptions) + 7) // 8, "little").rstrip(b"\0")


def aborted_of(exceptions: Sequence[int], bits: bytes) -> frozenset[int]:
    """Undo `aborted_bits`."""
    known = min(len(exceptions), len(bits) * 8)
    return frozenset(exceptions[place] for place in range(known) if bits[place >> 3] >> (place & 7) & 1)


def parse_transactions(text: str | None) -> Snapshot:
    """Read the text of a snapshot of transactions; an empty one sees everything. MetaError."""
    if not text:
        return Snapshot(NEVER)
    return _parse(text.split(":"), text)


def parse_table(text: str) -> tuple[str, Snapshot]:
    """Read the text of one table's snapshot; return its name too. MetaError."""
    name, *parts = text.split(":")
    if not parts:
        raise MetaError(f"snapshot {text!r} of a table has no high water mark: write db.table:mark:min_open:open,..:aborted,..")
    return name, _parse(parts, text)


def parse_write_ids(text: str) -> TableSnapshots:
    """Read the text of the snapshots of several tables. MetaError."""
    transaction, *tables = text.split("$")
    try:
        number = int(transaction)
    except ValueError as error:
        raise MetaError(f"snapshot {text!r} of write ids does not begin with a transaction: write txn$db.table:..$db.table:..") from error
    return TableSnapshots(number, dict(parse_table(each) for each in tables if each))


def format_transactions(seen: Snapshot, *, runs: bool = True) -> str:
    """Return the text of a snapshot of transactions; clients before Hive 4 do not read `runs`."""
    return f"{seen.mark}:{seen.min_open}:{_ids(seen, runs)}"


def format_table(name: str, seen: Snapshot) -> str:
    """Return the text of one table's snapshot."""
    return f"{name}:{seen.mark}:{seen.min_open}:{_ids(seen, runs=False)}"


def _ids(seen: Snapshot, runs: bool) -> str:
    write = _with_runs if runs else lambda ids: ",".join(map(str, ids))
    opened = [id_ for id_ in seen.exceptions if id_ not in seen.aborted]
    return f"{write(opened)}:{write([id_ for id_ in seen.exceptions if id_ in seen.aborted])}"


def _with_runs(ids: Sequence[int]) -> str:
    parts: list[str] = []
    place = 0
    while place < len(ids):
        end = place
        while end + 1 < len(ids) and ids[end + 1] == ids[end] + 1:
            end += 1
        parts.append(str(ids[place]) if end == place else f"{ids[place]}-{ids[end]}")
        place = end + 1
    return ",".join(parts)


def _parse(parts: Sequence[str], text: str) -> Snapshot:
    try:
        mark, min_open = int(parts[0]), int(parts[1]) if len(parts) > 1 and parts[1] else NEVER
        opened, aborted = (_read(parts[place]) if len(parts) > place else [] for place in (2, 3))
    except ValueError as error:
        raise MetaError(f"snapshot {text[:200]!r} is not of the form mark:min_open:open,..:aborted,..") from error
    return snapshot(mark, opened, aborted, min_open)


LARGEST_RUN = 10_000_000
"""The most ids that a run of a text may stand for: a text must not grow into more memory than the server has."""


def _read(text: str) -> list[int]:
    if "-" not in text:
        return list(map(int, text.split(","))) if text else []
    ids: list[int] = []
    for part in text.split(","):
        first, dash, last = part.partition("-")
        if not dash:
            ids.append(int(first))
        elif int(last) - int(first) + len(ids) > LARGEST_RUN:
            raise ValueError(part)
        else:
            ids.extend(range(int(first), int(last) + 1))
    return ids
