"""Undo the work of a killed process: remove its empty directories, move others back, and put back or delete the data that it took away.

The rows decide, not the intent of the process: a committed call keeps all its work, an uncommitted one nothing.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import TYPE_CHECKING

import structlog

from metastore.errors import MetastoreError
from metastore.places import place_of
from metastore.service.changes import deletion
from metastore.service.changes.occupants import occupants
from metastore.store.catalog.places import places
from metastore.store.core.database import Session
from metastore.warehouse import DELETION, asking_first

if TYPE_CHECKING:
    from metastore.service.call.context import Metastore

log = structlog.get_logger()

PATIENCE = 10.0
"""Seconds for which a start waits for processes that are being killed, and for the undoing of their work."""
LONGEST_PAUSE = 30.0
"""Seconds between two tries to undo the work of a failed commit."""


def recover(metastore: Metastore) -> int:
    """Undo the work of dead processes by this server's journal; return the number of directories that were removed or moved back.

    An entry that can not be settled now, because the database or a file system does not answer, stays in the journal for the next time.
    """
    return _recover(metastore, 0.0)[0]


def _recover(metastore: Metastore, patience: float) -> tuple[int, bool]:
    """Return the number of directories that were removed or moved back, and whether nothing is left to do.

    For processes that are being killed it waits `patience` seconds.
    """
    count = 0
    if metastore.journal is None:
        return count, True
    with closing(metastore.journal.abandoned(patience)) as entries:
        try:
            for entry in entries:
                if entry.subject[:1] == (DELETION,):
                    deletion.recover(metastore, entry)
                    log.warning("settled the deletions of a killed process", moves=entry.moves, directories=entry.directories)
                else:
                    found = take_back(metastore, entry.subject, entry.directories, entry.moves)
                    count += found
                    log.warning("took back the unfinished change of a killed process", subject=entry.subject, directories=found)
        except MetastoreError:
            log.exception("the unfinished changes of killed processes could not be taken back; it is tried again")
            return count, False
    return count, True


def recover_before_serving(metastore: Metastore) -> None:
    """Undo the work of a killed server before a new one answers. After a time limit, the rest is left to its workers."""
    until = time.monotonic() + PATIENCE
    while not _recover(metastore, PATIENCE)[1] and time.monotonic() < until:
        time.sleep(1.0)


def settle_later(work: Callable[[], None]) -> None:
    """Try `work` in the background until it raises no MetastoreError any more, or the process ends."""

    def loop() -> None:
        pause = 1.0
        while True:
            time.sleep(pause)
            try:
                work()
            except MetastoreError as error:
                log.warning("directories of a failed commit could not be taken back yet", error=error.message)
                pause = min(2 * pause, LONGEST_PAUSE)
            else:
                return

    threading.Thread(target=loop, name="settle", daemon=True).start()


def take_back(
    metastore: Metastore, subject: Sequence[str | list[str]], directories: Sequence[str], moves: Sequence[tuple[str, str]] = ()
) -> int:
    """Delete empty directories that no row refers to; undo moves whose rows still have the old place.

    The rows are read while nobody else can be making the object of `subject`. Returns the number of directories that changed; MetaError.
    """
    warehouse = metastore.warehouse

    def work(session: Session) -> int:
        places.claim(session, subject)
        used = {each.place for each in occupants(session, [*directories, *(place for move in moves for place in move)])}
        count = 0
        for source, target in reversed(moves):
            if place_of(target) in used or not warehouse.exists(target):
                continue
            if not warehouse.exists(source) and place_of(source) in used:
                warehouse.rename(target, source)
                count += 1
            elif warehouse.is_empty(target):
                count += _removed(metastore, target)
        for place in sorted(directories, key=len, reverse=True):
            if place_of(place) not in used:
                count += _removed(metastore, place)
        return count

    return asking_first(lambda: metastore.database.write(work))


def _removed(metastore: Metastore, place: str) -> bool:
    was_there = metastore.warehouse.is_directory(place)
    metastore.warehouse.remove_if_empty(place)
    return was_there and not metastore.warehouse.is_directory(place)
