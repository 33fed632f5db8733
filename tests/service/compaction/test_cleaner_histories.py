"""Random histories of a table: writers, compactors, readers and the cleaner, on real folders and with the real transactions.

After every step each open reader must find all rows of its snapshot once. At the end no useless directory is left.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from metastore.idl import CompactionInfoStruct, CompactionRequest, CompactionType, ShowCompactRequest, TxnType
from metastore.rules.transactions.acid_directories import (
    FolderEntry,
    FolderState,
    SeenWriteIds,
    Transactions,
    base_name,
    decide,
    delta_name,
    parse,
)
from metastore.rules.transactions.snapshots import aborted_of, of_reply
from metastore.service.call.context import Call
from metastore.service.catalog.tables.tables import drop_table
from metastore.service.compaction import compaction_workers, compactions
from metastore.service.compaction.abort_cleaner import clean_aborted
from metastore.service.compaction.cleaner import clean
from metastore.service.compaction.compaction_history import housekeep
from metastore.service.transactions.house_keeping import delete_ended
from metastore.service.transactions.transactions import get_open_transactions
from metastore.service.transactions.write_ids import get_valid_write_ids
from tests.service.compaction.test_initiator import acid_table
from tests.support.acid import txns
from tests.support.catalog.catalog import MetastoreMaker, call_of

Snapshot = tuple[SeenWriteIds, Transactions]
NUMBERS = iter(range(1_000_000))


def snapshot(call: Call, transaction: int) -> Snapshot:
    """Take the snapshot that a client with an open transaction takes."""
    seen = of_reply(get_open_transactions(call), transaction)
    (found,) = get_valid_write_ids(call, [f"default.{call.method}"])
    aborted = aborted_of(found.invalidWriteIds, found.abortedBits)
    opened = frozenset(found.invalidWriteIds) - aborted
    gone = frozenset(key for key in seen.exceptions if key in seen.aborted)
    return (
        SeenWriteIds(found.writeIdHighWaterMark, opened, aborted, f"default.{call.method}"),
        Transactions(seen.mark, frozenset(seen.exceptions) - gone, gone),
    )


class History:
    """A table in which each write id has one row: a file whose name is the write id."""

    def __init__(self, call: Call) -> None:
        table = f"t{next(NUMBERS)}"
        self.name, self.folder = acid_table(call, table)
        self.call = call_of(call.metastore, table)
        self.writing: dict[int, int] = {}
        self.committed: set[int] = set()
        self.readers: dict[int, tuple[Snapshot, set[int]]] = {}
        self.working: dict[int, CompactionInfoStruct] = {}
        self.marked: set[int] = set()

    def end(self) -> None:
        for key in (*self.writing, *self.readers, *self.working):
            txns.abort(self.call, key)
        self.everything_useless_goes()
        drop_table(self.call, self.name, delete_data=True)

    def rows_in(self, name: str) -> list[int]:
        return [int(path.name) for path in (self.folder / name).iterdir()]

    def decided(self, seen: Snapshot) -> FolderState:
        return decide([FolderEntry(path.name) for path in self.folder.iterdir()], *seen)

    def read(self, seen: Snapshot) -> list[int]:
        """Return the rows that a reader with a snapshot finds."""
        state = self.decided(seen)
        names = ([state.base.name] if state.base else []) + [delta.name for delta in state.deltas]
        return [row for name in names for row in self.rows_in(name) if seen[0].is_valid(row)]

    def fill(self, name: str, rows: list[int]) -> None:
        (self.folder / name).mkdir()
        for row in rows:
            (self.folder / name / str(row)).touch()

    def begin_writing(self, _: int) -> None:
        key = txns.begin_one(self.call)
        write_id = txns.write(self.call, key, txns.INSERT, self.name.table, database="default")
        self.fill(delta_name(write_id, write_id, 0), [write_id])
        self.writing[key] = write_id

    def end_writing(self, pick: int, *, commits: bool = True) -> None:
        if self.writing:
            key = pick_of(self.writing, pick)
            write_id = self.writing.pop(key)
            (txns.commit if commits else txns.abort)(self.call, key)
            if commits:
                self.committed.add(write_id)

    def begin_reading(self, _: int) -> None:
        key = txns.begin_one(self.call)
        self.readers[key] = snapshot(self.call, key), set(self.committed)

    def end_reading(self, pick: int) -> None:
        if self.readers:
            key = pick_of(self.readers, pick)
            del self.readers[key]
            txns.commit(self.call, key)

    def begin_compacting(self, pick: int) -> None:
        major = pick % 2 == 0
        kind = CompactionType.MAJOR if major else CompactionType.MINOR
        asked = compactions.compact(self.call, CompactionRequest(dbname="default", tablename=self.name.table, type=kind))
        if not asked.accepted:
            return
        info = compaction_workers.find_next(self.call, "worker")
        assert info is not None
        key = txns.begin_one(self.call, txn_type=TxnType.COMPACTION)
        write_ids, transactions = snapshot(self.call, key)
        view = write_ids.for_compaction()
        state = self.decided((view, transactions))
        if not state.deltas:
            compaction_workers.mark_refused(self.call, info)
            txns.commit(self.call, key)
            return
        info.highestWriteId = view.high_watermark
        compaction_workers.update_state(self.call, info, key)
        rows = [row for delta in state.deltas for row in self.rows_in(delta.name) if row in self.committed]
        if major and state.base is not None:
            rows += self.rows_in(state.base.name)
        low, high = min(delta.low for delta in state.deltas), view.high_watermark
        self.fill(base_name(high, key) if major else delta_name(low, max(d.high for d in state.deltas), visibility=key), rows)
        self.working[key] = info

    def mark_compacted(self, pick: int) -> None:
        """Mark a compaction as done, as a worker does just before it commits: readers may begin in between."""
        if self.working:
            key = pick_of(self.working, pick)
            if key not in self.marked:
                compaction_workers.mark_compacted(self.call, self.working[key])
                self.marked.add(key)

    def end_compacting(self, pick: int, outcome: str = "done") -> None:
        if not self.working:
            return
        key = pick_of(self.working, pick)
        if outcome == "failed" and key not in self.marked:
            txns.abort(self.call, key)
            compaction_workers.mark_failed(self.call, self.working.pop(key))
            return
        self.mark_compacted(pick)
        del self.working[key]
        (txns.commit if outcome == "done" else txns.abort)(self.call, key)

    def clean(self, _: int) -> None:
        clean(self.call.metastore)

    def clean_aborted(self, _: int) -> None:
        clean_aborted(self.call.metastore)

    def forget(self, _: int) -> None:
        delete_ended(self.call.metastore)
        housekeep(self.call.metastore)

    def every_reader_finds_what_its_snapshot_shows(self) -> None:
        for seen, committed in self.readers.values():
            assert sorted(self.read(seen)) == sorted(committed)

    def everything_useless_goes(self) -> None:
        """Without open readers and writers, cleaning leaves only the files that a new reader uses."""
        clean(self.call.metastore)
        for _ in range(2):
            clean_aborted(self.call.metastore)
        delete_ended(self.call.metastore)
        found = compactions.show(self.call, ShowCompactRequest(tbName=self.name.table))
        assert [each.errorMessage for each in found if each.state == "ready for cleaning"] == []
        key = txns.begin_one(self.call)
        seen = snapshot(self.call, key)
        assert sorted(self.read(seen)) == sorted(self.committed)
        state = self.decided(seen)
        txns.commit(self.call, key)
        used = {delta.name for delta in state.deltas} | ({state.base.name} if state.base else set())
        left = {path.name for path in self.folder.iterdir()} - used
        assert {name for name in left if parse(name)} == set(), "obsolete or aborted directories are left"


def pick_of(keys: Iterable[int], pick: int) -> int:
    found = sorted(keys)
    return found[pick % len(found)]


ACTIONS: dict[str, tuple[int, Callable[[History, int], object]]] = {
    "write": (6, lambda history, pick: (history.begin_writing(pick), history.end_writing(-1))),
    "begin writing": (2, History.begin_writing),
    "commit": (2, History.end_writing),
    "abort": (2, lambda history, pick: history.end_writing(pick, commits=False)),
    "begin reading": (3, History.begin_reading),
    "end reading": (2, History.end_reading),
    "begin compacting": (3, History.begin_compacting),
    "mark compacted": (2, History.mark_compacted),
    "end compacting": (3, History.end_compacting),
    "compact": (3, lambda history, pick: (history.begin_compacting(pick), history.end_compacting(-1))),
    "fail compacting": (1, lambda history, pick: history.end_compacting(pick, "failed")),
    "abort after compacting": (1, lambda history, pick: history.end_compacting(pick, "aborted after")),
    "clean": (4, History.clean),
    "clean aborted": (2, History.clean_aborted),
    "forget": (1, History.forget),
}
"""The actions of a history by name: a weight, and a function of the history and of a number that picks a transaction."""

NAMES = [name for name, (weight, _) in ACTIONS.items() for _ in range(weight)]


def steps_of(seed: int) -> list[tuple[str, int]]:
    """Return forty steps, drawn evenly, so that most histories are long. Lists of Hypothesis are not drawn evenly."""
    source = random.Random(seed)
    return [(source.choice(NAMES), source.randrange(100)) for _ in range(40)]


def replay(call: Call, seed: int) -> None:
    """Run one history, and check every reader after every step."""
    history = History(call)
    for name, pick in steps_of(seed):
        ACTIONS[name][1](history, pick)
        history.every_reader_finds_what_its_snapshot_shows()
    history.end()


@pytest.mark.on_one_database
@pytest.mark.parametrize("seed", [2144, 98098668, 41668573])
def test_histories_that_once_went_wrong(make_metastore: MetastoreMaker, call: Call, seed: int) -> None:
    """The faults: a second compaction beside an uncommitted one, and a cleaner that counted a commit which an open reader does not see."""
    replay(call_of(make_metastore(compactor_aborted_number=0)), seed)


def test_no_reader_misses_a_row_and_nothing_useless_stays(make_metastore: MetastoreMaker, database_kind: str, call: Call) -> None:
    eager = call_of(make_metastore(compactor_aborted_number=0))

    @settings(
        max_examples=30 if database_kind == "sqlite" else 10,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate],
    )
    @given(st.integers(0, 2**32))
    def run(seed: int) -> None:
        replay(eager, seed)

    run()
