"""Delete the data of dropped or truncated objects, except data that other objects need, which the log names.

Data is taken away within the transaction, while the rows are locked, and deleted after its commit: objects that are made, renamed or moved
meanwhile have other directories (`warehouse/taken.py`). A row in the same transaction records whether the call was committed, so that the
data of a killed one is put back or deleted. Data of a dropped object that can not be taken away stays, and the log names it.
"""

from __future__ import annotations

import secrets
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import structlog

from metastore.errors import MetaError, MetastoreError
from metastore.idl import Table
from metastore.places import above, place_of
from metastore.service.call.clock import now_ms
from metastore.service.call.names import TableName
from metastore.service.changes.occupants import NOBODY, Occupant, Own, named, occupants
from metastore.store.catalog.places import deletions
from metastore.warehouse import JournalEntry, StorageUnreachable, TakenAway, asking_first

if TYPE_CHECKING:
    from metastore.service.call.context import Call, Metastore
    from metastore.store.core.database import Session

log = structlog.get_logger()
T = TypeVar("T")

MAX_NAMED_OBJECTS = 10
"""Objects that one entry of the log names."""
KEPT_FOR = 7 * 24 * 3600 * 1000
"""Milliseconds for which the row of a committed call is kept. A killed server that is started later leaves the data where it is."""
SKEW = 24 * 3600 * 1000
"""Milliseconds by which clocks of servers may differ, at the most."""
Batch = tuple[Sequence[str], bool]
"""Locations, and whether their data is deleted without the trash."""


@dataclass(frozen=True)
class Doomed:
    """The data to delete of an object: locations, and the parts that stay."""

    subject: str
    batches: Sequence[Batch]
    below: str | None = None
    own: Own = NOBODY
    """The arguments `below` and `own` of `occupants`."""
    kept: Iterable[Occupant] = ()
    """Occupants whose data stays although their rows are gone."""


class Deletion:
    """The data that one change takes away."""

    def __init__(self, metastore: Metastore) -> None:
        self._metastore = metastore
        self._taken: TakenAway | None = None
        self._asked_again: list[Doomed] = []
        self._subjects: dict[str, str] = {}

    def take(self, session: Session, doomed: Doomed) -> None:
        """Take away the data of an object whose rows this transaction has removed.

        Every directory that a remaining row (or `kept`) uses stays with its content. The deletion leaves such directories out, also inside
        other directories.
        """
        wanted = list(dict.fromkeys(location for locations, _ in doomed.batches for location in locations))
        if not wanted:
            return
        remaining = occupants(session, wanted, below=doomed.below, own=doomed.own)
        inside = by_holder([*remaining, *doomed.kept])
        if remaining:
            self._asked_again.append(doomed)  # another call may be dropping that, too
        for locations, purge in doomed.batches:
            free = [location for location in dict.fromkeys(locations) if place_of(location) not in inside]
            for location in dict.fromkeys(locations):
                if found := inside.get(place_of(location) or ""):
                    free += self._rest(doomed.subject, location, found)
            for location, error in self._take(session, doomed.subject, free, doomed.below, purge=purge).items():
                _report(doomed.subject, location, error)

    def alone(self, session: Session, work: Callable[[Session], T]) -> T:
        """Run `work`, which takes data away, as all work of a transaction. Put the data back if it fails."""
        self.put_back()
        try:
            return work(session)
        except BaseException:
            self.put_back()
            raise

    def empty(self, session: Session, subject: str, chosen: Mapping[str, Sequence[str]], below: str | None, *, purge: bool) -> None:
        """Take away the content of directories except the locations given with each. The directories stay. MetaError: then nothing is
        removed.
        """
        whole = [location for location, kept in chosen.items() if not kept]
        parts = [part for location, kept in chosen.items() if kept for part in self._metastore.warehouse.parts_but(location, kept)]
        for locations, empties in ((whole, True), (parts, False)):
            for error in self._take(session, subject, locations, below, purge=purge, empties=empties).values():
                raise error

    def _take(
        self, session: Session, subject: str, locations: Sequence[str], below: str | None, *, purge: bool, empties: bool = False
    ) -> dict[str, MetastoreError]:
        if not locations:
            return {}
        taken = self._taken or TakenAway(self._metastore.warehouse, self._metastore.journal, f"{now_ms():013d}-{secrets.token_hex(8)}")
        self._taken, had_data = taken, taken.has_data  # noted first: a half-taken directory is put back after a failure
        errors = taken.take(locations, purge=purge, below=below, empties=empties)
        self._subjects.update(dict.fromkeys(locations, subject))
        if taken.has_data and not had_data:
            deletions.insert(session, taken.number)
        return errors

    def _rest(self, subject: str, location: str, found: Sequence[Occupant]) -> list[str]:
        """Return the parts to delete of a directory that contains other objects' locations; none if the directory itself is one."""
        names = sorted({each.label for each in found})
        kept = names[:MAX_NAMED_OBJECTS] + ([f"and {len(names) - MAX_NAMED_OBJECTS} more"] if len(names) > MAX_NAMED_OBJECTS else [])
        if any(each.place == place_of(location) for each in found):
            log.warning("data of a dropped object stays, other objects are there", object=subject, location=location, kept=kept)
            return []
        places = sorted({each.location for each in found})
        log.warning(
            "data in a dropped object's directory stays, other objects are in it",
            object=subject,
            location=location,
            kept=kept,
            places=places,
        )
        try:
            return self._metastore.warehouse.parts_but(location, places)
        except MetastoreError as error:
            _report(subject, location, error)
            return []

    def put_back(self) -> None:
        """Put taken data back, before the transaction is rolled back."""
        self._asked_again.clear()
        if self._taken is not None:
            self._taken.put_back()
            self._taken = None

    def settle(self) -> None:
        """After a failed commit, put back the data that the call took away. If it was committed nevertheless, leave the data to `finish`.
        MetaError.
        """
        if self._taken is not None and not _write(self._metastore, partial(_settled, taken=self._taken)):
            self._taken = None

    def leave(self) -> None:
        """Leave taken data to the next start."""
        if self._taken is not None:
            self._taken.leave()
            self._taken = None

    def finish(self) -> dict[str, MetastoreError]:
        """Delete the data that a committed change took away; return the failures for the log, by location."""
        errors = self._taken.delete() if self._taken is not None else {}
        self._taken = None
        for location, error in errors.items():
            _report(self._subjects.get(location, ""), location, error)
        asked_again, self._asked_again = self._asked_again, []
        for doomed in asked_again:
            _take_rest(self._metastore, doomed)
        return errors


def delete_parts(
    metastore: Metastore, subject: str, location: str, parts: Sequence[str], check: Callable[[Session], object]
) -> dict[str, MetastoreError]:
    """Delete parts of a folder without the trash; return the errors of the parts that could not be deleted, by location.

    `check` locks the rows and raises if the folder is no longer the same. MetaError, and the errors of `check`: then nothing is removed.
    """
    deletion = Deletion(metastore)

    def work(session: Session) -> dict[str, MetastoreError]:
        check(session)
        return deletion._take(session, subject, parts, location, purge=True)  # noqa: SLF001  # of this module

    errors = _write(metastore, partial(deletion.alone, work=work))
    return {**errors, **deletion.finish()}


def _take_rest(metastore: Metastore, doomed: Doomed) -> None:
    """Delete data that stayed for others, if the last of them was dropped at the same time."""
    wanted = [location for locations, _ in doomed.batches for location in locations]
    try:
        if metastore.database.read(lambda session: occupants(session, wanted, below=doomed.below, own=doomed.own)):
            return
        deletion = Deletion(metastore)
        _write(metastore, partial(deletion.alone, work=lambda session: deletion.take(session, doomed)))
    except MetastoreError as error:
        _report(doomed.subject, wanted[0], error)
    else:
        deletion.finish()


def recover(metastore: Metastore, entry: JournalEntry) -> None:
    """Put back or delete the data that a dead process took away. MetaError when that can not be done now."""
    taken = TakenAway.of_entry(metastore.warehouse, entry)
    if now_ms() - int(taken.number.partition("-")[0]) > KEPT_FOR:
        log.error(
            "data that a killed process took away is left where it is: whether it was dropped is not known any more", moves=entry.moves
        )
        return

    def work(session: Session) -> bool:
        if not _settled(session, taken=taken):
            return False
        for location in entry.directories:
            if others := occupants(session, [location]):
                log.warning(
                    "data of a dropped object stays, other objects are there",
                    location=location,
                    kept=sorted({each.label for each in others}),
                )
            else:
                taken.list_files(location, purge=entry.subject[-1] == "purge")
        return True

    if _write(metastore, work):
        for error in taken.delete().values():
            raise error


def _write(metastore: Metastore, work: Callable[[Session], T]) -> T:
    return asking_first(lambda: metastore.database.write(work))


def _settled(session: Session, taken: TakenAway) -> bool:
    """Return whether the call that took data away was committed; if not, put it back."""
    if deletions.was_committed(session, taken.number):
        return True
    used = {each.place for each in occupants(session, taken.sources)}
    taken.put_back(lambda location: place_of(location) in used)
    return False


def delete_old(metastore: Metastore, _: int | None = None) -> None:
    """Remove the rows of calls that were committed long ago."""
    before = f"{now_ms() - KEPT_FOR - SKEW:013d}"
    metastore.database.write(lambda session: deletions.delete_before(session, before))


def by_holder(found: Iterable[Occupant]) -> Mapping[str, list[Occupant]]:
    """Return the occupants at or inside each place."""
    out: dict[str, list[Occupant]] = defaultdict(list)
    for each in found:
        for place in (*above(each.place), each.place):
            out[place].append(each)
    return out


def to_empty(
    call: Call, session: Session, name: TableName, table: Table, places: Sequence[tuple[str | None, str]], *, wholly: bool = False
) -> dict[str, list[str]]:
    """Return the directories of a table or of partitions that are to be emptied, each with other objects' locations in it.

    MetaError for a directory that can not be emptied, before anything is changed.
    """
    names = frozenset(each for each, _ in places if each is not None)
    emptied = {*names, None} if wholly or not names else names

    def is_other(each: Occupant) -> bool:
        return each.table_id != table.id or each.partition not in emptied

    base = table.sd.location if table.sd is not None else None
    found = occupants(session, [place for _, place in places], below=base, own=(table.id, names))
    inside = by_holder(filter(is_other, found))
    out: dict[str, list[str]] = {}
    for _, location in places:
        others = inside.get(place_of(location) or "", ())
        if shared := [each for each in others if each.place == place_of(location)]:
            raise MetaError(f"{name} can not be truncated: {location} is the directory of {named(call, table, shared)} too")
        if others:
            log.warning(
                "data in a truncated directory stays, other objects are in it",
                object=f"table {name}",
                location=location,
                kept=sorted({each.label for each in others}),
            )
        out[location] = [each.location for each in others]
    return out


def _report(subject: str, location: str, error: MetastoreError) -> None:
    report = log.warning if isinstance(error, StorageUnreachable) else log.error
    report("data of a dropped object was not deleted", object=subject, location=location, error=error.message)
