"""Find the rows of files that a snapshot sees: their write ids are valid, and no valid delete event names them. This module opens delete
deltas only.

Ids are compared by runs of rows with one write id and bucket number, of which sorted files have few.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from metastore.acid.orc.orc_files import IDENTITY, open_orc
from metastore.rules.transactions.acid_directories import SeenWriteIds

WRITER = "currentTransaction"
"""The column of the write id that wrote an event."""
PORTION = 100_000
"""Rows that are handed on at a time."""


def ids_of(batch: pa.RecordBatch) -> tuple[Any, Any, Any]:
    """Return the write ids, bucket numbers and row numbers of events as numpy arrays."""
    write_ids, numbers, rows = (batch.column(name).to_numpy(zero_copy_only=False) for name in IDENTITY)
    return write_ids, numbers, rows


def is_seen(batch: pa.RecordBatch, write_ids: SeenWriteIds) -> Any:
    """Return for each event whether its write id is valid, as a numpy array of booleans."""
    writers = batch.column(WRITER).to_numpy(zero_copy_only=False)
    begins = _runs(writers)
    found, places = np.unique(writers[begins], return_inverse=True)
    valid = np.array([write_ids.is_valid(int(write_id)) for write_id in found], dtype=bool)
    return np.repeat(valid[places], np.diff([*begins, len(writers)]))


class Deleted:
    """Ids of deleted rows."""

    def __init__(self, batches: Iterable[pa.RecordBatch]) -> None:
        parts = [ids_of(batch) for batch in batches]
        self._rows: dict[tuple[int, int], Any] = {}
        if not parts:
            return
        write_ids, numbers, rows = (np.concatenate(column) for column in zip(*parts, strict=True))
        order = np.lexsort((rows, numbers, write_ids))
        write_ids, numbers, rows = write_ids[order], numbers[order], rows[order]
        for begin, end in pairwise([*_runs(write_ids, numbers), len(rows)]):
            self._rows[int(write_ids[begin]), int(numbers[begin])] = rows[begin:end]

    @classmethod
    def read(cls, paths: Sequence[str], write_ids: SeenWriteIds) -> Deleted:
        """Read the delete events of files as far as a snapshot sees them."""
        return cls(_seen_ids(paths, write_ids))

    def __len__(self) -> int:
        return sum(map(len, self._rows.values()))

    def names(self, batch: pa.RecordBatch) -> Any:
        """Return for each row whether it is deleted, as a numpy array of booleans."""
        out = np.zeros(batch.num_rows, dtype=bool)
        if not self._rows or not batch.num_rows:
            return out
        write_ids, numbers, rows = ids_of(batch)
        for begin, end in pairwise([*_runs(write_ids, numbers), len(rows)]):
            gone = self._rows.get((int(write_ids[begin]), int(numbers[begin])))
            if gone is not None:
                here = rows[begin:end]
                out[begin:end] = gone.take(np.searchsorted(gone, here), mode="clip") == here
        return out


def _seen_ids(paths: Sequence[str], write_ids: SeenWriteIds) -> Iterator[pa.RecordBatch]:
    for path in paths:
        file = open_orc(path)
        for number in range(file.nstripes):
            events = file.read_stripe(number, columns=[*IDENTITY, WRITER])
            yield events.filter(pa.array(is_seen(events, write_ids)))


def kept(batches: Iterable[pa.RecordBatch], gone: Deleted, write_ids: SeenWriteIds) -> Iterator[pa.RecordBatch]:
    """Keep the events that the snapshot sees and no delete event names, in portions: a stripe is freed before the next one is read."""
    for batch in batches:
        keep = is_seen(batch, write_ids) & ~gone.names(batch)
        for begin in range(0, batch.num_rows, PORTION):
            yield batch.slice(begin, PORTION).filter(pa.array(keep[begin : begin + PORTION]))
        del batch


def _runs(*columns: Any) -> Any:
    """Return the places where runs of equal values begin."""
    if not len(columns[0]):
        return np.zeros(0, dtype=np.int64)
    differs = np.logical_or.reduce([column[1:] != column[:-1] for column in columns])
    return np.concatenate(([0], np.flatnonzero(differs) + 1))
