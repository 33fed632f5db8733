"""Decide which directories of a transactional table a reader uses, and which are obsolete or aborted. Never lists or deletes one.

A table or partition is a folder of `base_N[_vT]`, `delta_A_B[_S][_vT]` and `delete_delta_A_B[_S][_vT]`: N, A and B are write ids, S numbers
the statements of one transaction, T is the compactor's transaction, which must have committed before the directory counts. Files and other
directories are original ones, from before the table was transactional. Hidden names are ignored, except `-tmp.` before the name of a delta:
in such a directory Hive 4 lists the files of a statement's tasks; it stays when Hive is killed. Source: Hive's AcidUtils,
ValidReaderWriteIdList and ValidCompactorWriteIdList.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import NamedTuple

from metastore.hidden import TEMPORARY, is_hidden

NONE_OPEN = 2**63 - 1
"""The lowest open write id where none is open."""

CONVERTED = -(2**63)
"""The write id of a base that was made of original files alone."""

_NAME = re.compile(
    r"(?:base_(?P<base>-?\d+)|(?P<delete>delete_)?delta_(?P<low>-?\d+)_(?P<high>-?\d+)(?:_(?P<statement>\d+))?)(?:_v(?P<by>\d+))?",
    re.ASCII,
)

_STAGING = re.compile(r"\.staging_txn_(\d+)_", re.ASCII)


class Extent(Enum):
    """The part of a range of write ids for which something is true."""

    NONE = 0
    SOME = 1
    ALL = 2


class FolderEntry(NamedTuple):
    """A name in the folder. `compacted`: the directory has a file `_metadata_acid` with that mark, which only bases of Hive 3 need."""

    name: str
    is_directory: bool = True
    compacted: bool = False


class Base(NamedTuple):
    """A base: all rows up to a write id. `visibility` is the compactor's transaction, 0 where the name has none."""

    name: str
    write_id: int
    visibility: int
    compacted: bool


class Delta(NamedTuple):
    """Rows that the write ids `low` to `high` inserted or, `is_delete`, removed. `statement` is -1 where the name has none."""

    name: str
    low: int
    high: int
    statement: int
    is_delete: bool
    visibility: int


def parse(name: str, *, compacted: bool = False) -> Base | Delta | None:
    """Read a directory's name; None for one that is neither base nor delta."""
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    visibility = int(match["by"] or 0)
    if match["base"] is not None:
        return Base(name, int(match["base"]), visibility, compacted or visibility > 0)
    statement = -1 if match["statement"] is None else int(match["statement"])
    return Delta(name, int(match["low"]), int(match["high"]), statement, match["delete"] is not None, visibility)


def base_name(write_id: int, visibility: int = 0) -> str:
    """Return the name of a base; a compactor gives its transaction."""
    return f"base_{write_id:07d}{_by(visibility)}"


def delta_name(low: int, high: int, statement: int | None = None, *, is_delete: bool = False, visibility: int = 0) -> str:
    """Return the name of a delta; writers give their statement, a compactor its transaction."""
    middle = "" if statement is None else f"_{statement:04d}"
    return f"{'delete_' if is_delete else ''}delta_{low:07d}_{high:07d}{middle}{_by(visibility)}"


def _by(visibility: int) -> str:
    return f"_v{visibility:07d}" if visibility else ""


def staging_name(transaction: int, part: str) -> str:
    """Return the name of a folder in a table's own directory where a transaction writes before files are renamed to their places."""
    return f".staging_txn_{transaction}_{part}"


def stagers(entries: Iterable[FolderEntry]) -> set[int]:
    """Return the transactions that have staging folders."""
    return {int(match[1]) for entry in entries if (match := _STAGING.match(entry.name)) is not None}


def staging_of(transactions: Collection[int], entries: Iterable[FolderEntry]) -> list[str]:
    """Return the staging folders of transactions."""
    found = ((entry.name, _STAGING.match(entry.name)) for entry in entries)
    return [name for name, match in found if match is not None and int(match[1]) in transactions]


@dataclass(frozen=True)
class SeenWriteIds:
    """The write ids of one table that a snapshot sees: those up to the high-water mark that are neither open nor aborted.

    `whole_ranges` is the compactor's view: a range is seen when it is below the mark, with or without aborted write ids.
    """

    high_watermark: int
    open: frozenset[int] = frozenset()
    aborted: frozenset[int] = frozenset()
    table: str = ""
    whole_ranges: bool = False

    @cached_property
    def lowest_open(self) -> int:
        return min(self.open, default=NONE_OPEN)

    @cached_property
    def _aborted(self) -> list[int]:
        return sorted(self.aborted)

    @cached_property
    def _unseen(self) -> list[int]:
        return sorted(number for number in self.open | self.aborted if number <= self.high_watermark)

    def for_compaction(self) -> SeenWriteIds:
        """Return the view of a compactor that starts now: everything below the first open write id, by whole ranges."""
        mark = min(self.high_watermark, self.lowest_open - 1)
        return SeenWriteIds(
            mark, frozenset(), frozenset(number for number in self.aborted if number <= mark), self.table, whole_ranges=True
        )

    def is_valid(self, write_id: int) -> bool:
        """Return whether the snapshot sees the rows of a write id."""
        return write_id <= self.high_watermark and write_id not in self.open and write_id not in self.aborted

    def is_valid_base(self, write_id: int) -> bool:
        """Return whether a compactor's base holds only rows that the snapshot may see: its write ids can no longer be separated."""
        return write_id <= self.high_watermark and write_id < self.lowest_open

    def valid_range(self, low: int, high: int) -> Extent:
        """Return the part of a range that the snapshot sees."""
        if self.whole_ranges:
            return Extent.ALL if high <= self.high_watermark else Extent.NONE
        top = min(high, self.high_watermark)
        seen = max(0, top - low + 1) - _count(self._unseen, low, top)
        return _portion(seen, low, high)

    def aborted_range(self, low: int, high: int) -> Extent:
        """Return the part of a range that was aborted."""
        if low > self.high_watermark:
            return Extent.NONE
        return _portion(_count(self._aborted, low, high), low, high)


def _count(numbers: Sequence[int], low: int, high: int) -> int:
    return max(0, bisect_right(numbers, high) - bisect_left(numbers, low))


def _portion(count: int, low: int, high: int) -> Extent:
    return Extent.NONE if count <= 0 else Extent.ALL if count > high - low else Extent.SOME


@dataclass(frozen=True)
class Transactions:
    """The transactions that a snapshot sees as committed. They decide which directories of compactors it reads."""

    high_watermark: int = NONE_OPEN
    open: Collection[int] = frozenset()
    aborted: Collection[int] = frozenset()

    def is_valid(self, transaction: int) -> bool:
        """Return whether a transaction has committed in the snapshot; 0 always has."""
        return transaction <= self.high_watermark and transaction not in self.open and transaction not in self.aborted


EVERYTHING = Transactions()


class NotEnoughHistory(Exception):
    """The oldest base is a compactor's, and it holds write ids that the snapshot must not see: the snapshot can not be read."""


@dataclass
class FolderState:
    """The content of a folder as a snapshot sees it; each list holds names, in the order in which they apply."""

    base: Base | None = None
    deltas: list[Delta] = field(default_factory=list)
    """Inserting and deleting deltas that are read after the base."""
    originals: list[str] = field(default_factory=list)
    """Files and directories from before the table was transactional, read when there is no base."""
    obsolete: list[str] = field(default_factory=list)
    """Directories that neither this snapshot nor a newer one reads, since other directories hold the same rows."""
    aborted: list[str] = field(default_factory=list)
    """Directories that only aborted transactions wrote."""
    aborted_write_ids: set[int] = field(default_factory=set)
    """The write ids of the aborted directories."""
    partly_aborted: list[Delta] = field(default_factory=list)
    """Deltas that hold aborted rows beside others; only a compaction removes those."""


def decide(
    entries: Iterable[FolderEntry], write_ids: SeenWriteIds, transactions: Transactions = EVERYTHING, *, strict: bool = True
) -> FolderState:
    """Return the directories of a folder by their use in a snapshot. NotEnoughHistory, unless `strict` is off, as for a cleaner."""
    state = FolderState()
    bases: list[Base] = []
    deltas: list[Delta] = []
    for entry in entries:
        if is_hidden(entry.name):
            if _is_left_behind(entry.name, write_ids):
                state.aborted.append(entry.name)
            continue
        parsed = parse(entry.name, compacted=entry.compacted) if entry.is_directory else None
        if parsed is None:
            state.originals.append(entry.name)
        elif not transactions.is_valid(parsed.visibility):
            if parsed.visibility in transactions.aborted:
                state.aborted.append(entry.name)
        elif isinstance(parsed, Base):
            _sort_base(parsed, write_ids, state, bases)
        else:
            _sort_delta(parsed, write_ids, state, deltas)
    _choose_base(bases, write_ids, state, strict=strict)
    _choose_deltas(deltas, write_ids, state)
    state.originals.sort()
    return state


def _is_left_behind(name: str, write_ids: SeenWriteIds) -> bool:
    parsed = parse(name.removeprefix(TEMPORARY)) if name.startswith(TEMPORARY) else None
    return isinstance(parsed, Delta) and write_ids.aborted_range(parsed.low, parsed.high) is Extent.ALL


def _sort_base(base: Base, write_ids: SeenWriteIds, state: FolderState, bases: list[Base]) -> None:
    if not base.compacted and base.write_id in write_ids.aborted:
        state.aborted.append(base.name)
        state.aborted_write_ids.add(base.write_id)
    else:
        bases.append(base)


def _sort_delta(delta: Delta, write_ids: SeenWriteIds, state: FolderState, deltas: list[Delta]) -> None:
    aborted = write_ids.aborted_range(delta.low, delta.high)
    if aborted is Extent.ALL:
        state.aborted.append(delta.name)
        state.aborted_write_ids.update(range(delta.low, delta.high + 1))
        return
    if aborted is Extent.SOME:
        state.partly_aborted.append(delta)
    if write_ids.valid_range(delta.low, delta.high) is not Extent.NONE:
        deltas.append(delta)


def _is_readable(base: Base, write_ids: SeenWriteIds) -> bool:
    if base.write_id == CONVERTED:
        return True
    return write_ids.is_valid_base(base.write_id) if base.compacted else write_ids.is_valid(base.write_id)


def _choose_base(bases: Sequence[Base], write_ids: SeenWriteIds, state: FolderState, *, strict: bool) -> None:
    """Take the newest base that the snapshot may read: of two with one write id the compactor's, of two compactors the later."""
    readable = sorted((base.write_id, base.compacted, base.visibility, base.name, base) for base in bases if _is_readable(base, write_ids))
    if readable:
        state.base = readable.pop()[-1]
        state.obsolete += [each[-1].name for each in readable]
        state.obsolete += state.originals
        state.originals = []
    elif strict and bases:
        oldest = min(bases, key=lambda base: base.write_id)
        if oldest.compacted:
            raise NotEnoughHistory(
                f"{write_ids.table or 'the table'}: a snapshot up to write id {write_ids.high_watermark}, lowest open write id "
                f"{min(write_ids.open | write_ids.aborted, default='none')}, can not read {oldest.name}; take a new snapshot and read again"
            )


def _order(delta: Delta) -> tuple[int, int, int, int, str]:
    """Return a key that sorts wide ranges before the narrow ones in them, and a compactor's directories before its sources."""
    return delta.low, -delta.high, delta.statement, -delta.visibility, delta.name


def _choose_deltas(deltas: Iterable[Delta], write_ids: SeenWriteIds, state: FolderState) -> None:
    """Take the widest deltas that follow on the base and on each other; those inside them are obsolete."""
    current = state.base.write_id if state.base is not None else 0
    last: Delta | None = None
    for delta in sorted(deltas, key=_order):
        if delta.high > current:
            if write_ids.valid_range(current + 1, delta.high) is not Extent.NONE:
                state.deltas.append(delta)
                current, last = delta.high, delta
        elif last is not None and delta.high == current and _belongs_to(delta, last):
            state.deltas.append(delta)
        else:
            state.obsolete.append(delta.name)


def _belongs_to(delta: Delta, last: Delta) -> bool:
    """Return whether a delta belongs to the same writer as `last`: its deletes, or another statement of the same transaction."""
    if last.statement >= 0:
        return True
    return (delta.low, delta.statement, delta.visibility) == (last.low, last.statement, last.visibility)
