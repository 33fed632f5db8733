"""Take back what a killed process made: empty directories, and moves, that no row knows of. Never deletes a file.

Recovery goes by what the rows say, not by what the process wanted: a call that was committed keeps all, one that was not keeps nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from typing import TYPE_CHECKING

import structlog

from metastore.errors import MetastoreError
from metastore.places import place_of
from metastore.service.occupants import occupants
from metastore.store import places
from metastore.store.database import Session

if TYPE_CHECKING:
    from metastore.service.context import Metastore

log = structlog.get_logger()


def recover(metastore: Metastore) -> int:
    """Take back what the dead processes of this server left in its journal; return how many directories were removed or moved back.

    What can not be looked at now, because the database or a file system does not answer, stays in the journal for the next time.
    """
    if metastore.journal is None:
        return 0
    count = 0
    with closing(metastore.journal.abandoned()) as entries:
        try:
            for entry in entries:
                found = take_back(metastore, entry.subject, entry.directories, entry.moves)
                log.warning("took back what a killed process had begun", subject=entry.subject, directories=found)
                count += found
        except MetastoreError:
            log.exception("what a killed process had begun could not be taken back; the next start tries again")
    return count


def take_back(
    metastore: Metastore, subject: Sequence[str | list[str]], directories: Sequence[str], moves: Sequence[tuple[str, str]] = ()
) -> int:
    """Remove those of the directories that are empty and at which no row lies, and move back what rows still have at its old place.

    The rows are read while nobody else can be making the object of `subject`. Returns how many directories changed; MetaError.
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

    return metastore.database.write(work)


def _removed(metastore: Metastore, place: str) -> bool:
    was_there = metastore.warehouse.is_directory(place)
    metastore.warehouse.remove_if_empty(place)
    return was_there and not metastore.warehouse.is_directory(place)
