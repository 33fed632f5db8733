"""Take data away so that it can still be put back: it is renamed or, where that is not possible, its files are listed.

Data that is aside has a hidden name, `.deleted-NUMBER-0`, beside its directory or beside one above that. The files of a directory that can
not be renamed (one of an object store, a mount point, a directory in a layer of an image) are listed with their stamps, and exactly those
that are still the same are deleted later.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar

import structlog

from metastore.errors import MetastoreError
from metastore.warehouse.directories import Warehouse
from metastore.warehouse.journal import Journal, JournalEntry
from metastore.warehouse.local import CanNotRename
from metastore.warehouse.locations import is_below, join, parse

log = structlog.get_logger()
T = TypeVar("T")

DELETION = "deletion"
"""The first part of the subject of a deletion's entry in the journal: ("deletion", NUMBER, "purge" or "trash")."""
ASIDE = ".deleted-"


class Taken(NamedTuple):
    """A directory that was taken away."""

    source: str
    aside: str | None
    """Its present location; None where its files were listed, or where it was empty and has been removed."""
    files: Mapping[str, object] | None
    """Stamps of the listed files, by path; None where it was renamed or removed."""
    purge: bool
    """Whether it is deleted without the trash."""
    is_emptied: bool = False
    """Whether the directory itself stays, where its files were listed."""


class TakenAway:
    """The data that one change takes away. `number` names the deletion in the database."""

    def __init__(self, warehouse: Warehouse, journal: Journal | None, number: str) -> None:
        self.number = number
        self._warehouse = warehouse
        self._journal = journal
        self._taken: list[Taken] = []
        self._writable: dict[str, bool] = {}
        self._entries: list[int] = []
        self._count = 0

    @classmethod
    def of_entry(cls, warehouse: Warehouse, entry: JournalEntry) -> TakenAway:
        """Return the data of an entry in the journal of a dead process, which had renamed it or was about to."""
        _, number, how = entry.subject
        out = cls(warehouse, None, str(number))
        out._taken = [Taken(source, aside, None, how == "purge") for source, aside in entry.moves]
        return out

    @property
    def has_data(self) -> bool:
        """Whether there is data that is not deleted yet."""
        return any(each.aside is not None or each.files is not None for each in self._taken)

    @property
    def sources(self) -> list[str]:
        """The locations from which data was taken aside."""
        return [each.source for each in self._taken if each.files is None]

    def take(self, locations: Sequence[str], *, purge: bool, below: str | None = None, empties: bool = False) -> dict[str, MetastoreError]:
        """Take away the data at locations. Return the errors by location; missing locations are ignored.

        Data in the directory `below` is put beside that directory, which may be renamed while the data is being deleted. With `empties` the
        directories at the locations are made again.
        """
        errors: dict[str, MetastoreError] = {}
        allowed = self._allowed(dict.fromkeys(locations), errors)
        moves: list[tuple[str, str]] = []
        listed: list[str] = []
        for location in self._there(allowed, errors):
            if self._warehouse.can_rename(location):
                moves.append((location, self._aside(location, below)))
            else:
                listed.append(location)
        if not moves and not listed:
            return errors
        if self._journal is not None:
            self._entries.append(self._journal.begin((DELETION, self.number, "purge" if purge else "trash"), listed, moves))

        def aside(move: tuple[str, str]) -> None:
            source, target = move
            try:
                renamed = self._warehouse.set_aside(source, target, purge=purge)
            except CanNotRename:
                self._list(source, errors, purge=purge, is_emptied=empties)
            except MetastoreError as error:
                errors[source] = error
            else:
                if renamed is not None:  # else it is missing, or was taken with another one that contained it
                    self._taken.append(Taken(source, target if renamed else None, None, purge))
                    if empties:
                        self._warehouse.make(source)

        self._each(aside, moves, lambda move: move[0])
        self._each(lambda source: self._list(source, errors, purge=purge, is_emptied=empties), listed, str)
        return errors

    def list_files(self, location: str, *, purge: bool, is_emptied: bool = False) -> None:
        """Take away the files of a directory by a list of them. MetaError."""
        self._taken.append(Taken(location, None, self._warehouse.stamps(location), purge, is_emptied))

    def _list(self, location: str, errors: dict[str, MetastoreError], *, purge: bool, is_emptied: bool) -> None:
        try:
            self.list_files(location, purge=purge, is_emptied=is_emptied)
        except MetastoreError as error:
            errors[location] = error

    def _allowed(self, locations: Iterable[str], errors: dict[str, MetastoreError]) -> list[str]:
        known: dict[str, str] = {}
        out = []
        for location in locations:
            try:
                self._warehouse.refuse_roots(location, known)
                out.append(location)
            except MetastoreError as error:
                errors[location] = error
        return out

    def _there(self, locations: Sequence[str], errors: dict[str, MetastoreError]) -> list[str]:
        def look(location: str) -> bool:
            try:
                return parse(location).protocol == "file" or self._warehouse.exists(location)  # a missing local one is found by the rename
            except MetastoreError as error:
                errors[location] = error
                return False

        found = self._each(look, locations, str)
        return [location for location, is_there in zip(locations, found, strict=True) if is_there]

    def _aside(self, location: str, below: str | None) -> str:
        """Return a name for the data of a location: beside it, or beside `below` where the server may write there."""
        folder = _parent(location)
        if below is not None and is_below(location, below):
            outer = _parent(below)
            if outer not in self._writable:
                self._writable[outer] = self._warehouse.is_writable(outer)
            folder = outer if self._writable[outer] else folder
        self._count += 1
        return join(folder, f"{ASIDE}{self.number}-{self._count - 1}")

    def _each(self, work: Callable[[T], object], items: Sequence[T], location: Callable[[T], str]) -> list[object]:
        """Return the values of `work` for many items, in order. Items on the same kind of file system run in parallel."""
        groups: dict[str, list[int]] = defaultdict(list)
        for index, item in enumerate(items):
            groups[parse(location(item)).protocol].append(index)
        out: list[object] = [None] * len(items)
        for indexes in groups.values():
            found = self._warehouse.each(work, [items[index] for index in indexes], location(items[indexes[0]]))
            for index, each in zip(indexes, found, strict=True):
                out[index] = each
        return out

    def put_back(self, is_used: Callable[[str], bool] = lambda _: False) -> None:
        """Put everything back. Data that can not be put back now stays in the journal.

        A removed empty directory is made again. It is not known which ones a dead process removed: missing ones are made if `is_used`.
        """
        failed = False
        for each in sorted(self._taken, key=lambda each: len(each.source)):  # an outer directory before its content
            if each.files is not None:
                continue
            try:
                if each.aside is not None:
                    self._warehouse.put_back(each.aside, each.source)
                if each.aside is None or (is_used(each.source) and not self._warehouse.exists(each.source)):
                    self._warehouse.make(each.source)
            except MetastoreError:
                log.exception("data of a failed call was not put back; the next start tries again", location=each.source, aside=each.aside)
                failed = True
        self._end(keep_entries=failed)

    def delete(self) -> dict[str, MetastoreError]:
        """Delete the taken data. Return the errors by location; the next start tries these locations again."""
        errors: dict[str, MetastoreError] = {}

        def one(each: Taken) -> None:
            try:
                if each.files is not None:
                    self._warehouse.delete_files(each.source, each.files, purge=each.purge, keep=each.is_emptied)
                elif each.aside is not None:
                    self._warehouse.delete_aside(each.aside, each.source, purge=each.purge)
            except MetastoreError as error:
                errors[each.source] = error

        self._each(one, self._taken, lambda each: each.source)
        self._end(keep_entries=bool(errors))
        return errors

    def leave(self) -> None:
        """Leave taken data in its present place, and the journal's entries for the next start."""
        self._taken.clear()
        self._entries.clear()

    def _end(self, *, keep_entries: bool) -> None:
        if self._journal is not None and not keep_entries:
            for number in self._entries:
                self._journal.end(number)
        self._taken.clear()
        self._entries.clear()


def _parent(location: str) -> str:
    return location.rstrip("/").rpartition("/")[0]
