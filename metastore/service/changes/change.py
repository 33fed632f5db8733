"""The frame of every change: pre-listeners, one transaction with its directories, post-listeners. Holds no rule of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

import structlog

from metastore.call_time import total
from metastore.errors import MetastoreError
from metastore.listeners.events import AddPartitions, DropPartitions, Event
from metastore.service.call.context import Call
from metastore.service.changes.deletion import Deletion
from metastore.service.changes.recovery import settle_later, take_back
from metastore.store.core.database import Session
from metastore.warehouse import MadeDirectories, Reach, Subject, Warehouse, asking_first

log = structlog.get_logger()
T = TypeVar("T")


class Change:
    """One change under way. `event` may be replaced by a fuller one inside the transaction, `further` are notified after it.

    `deletion` takes away, within the transaction, data that is to be deleted after it.
    """

    def __init__(self, call: Call, event: Event, made: MadeDirectories) -> None:
        self._call = call
        self._made = made
        self.deletion = Deletion(call.metastore)
        self.event = event
        self.further: Sequence[Event] = ()
        self._if_it_fails: list[Callable[[], None]] = []

    @property
    def warehouse(self) -> Warehouse:
        """The file systems."""
        return self._call.warehouse

    @property
    def subject(self) -> Subject:
        """The object that the change makes. The journal notes it, and by this note the change is taken back after a crash."""
        return self._made.subject

    @subject.setter
    def subject(self, subject: Subject) -> None:
        self._made.subject = subject

    def if_it_fails(self, work: Callable[[], None]) -> None:
        """Run `work` later if the transaction fails before its commit."""
        self._if_it_fails.append(work)

    def write(self, work: Callable[[Session], T]) -> T:
        """Run `work` and the transactional listeners in one transaction. `work` may run again after a conflict.

        Directories that it made or moved are taken back before a rollback, while the transaction still holds its rows: a change that waits
        for the same name then makes its own. After a failed commit the rows decide, since the database may have committed nevertheless.
        """
        ended = False

        def attempt(session: Session) -> T:
            nonlocal ended
            ended = False
            self._made.undo_moves()
            self.deletion.put_back()
            self._if_it_fails.clear()
            try:
                result = work(session)
                self._call.listeners.within([self.event, *self.further], session)
            except BaseException:
                self._made.undo()
                self.deletion.put_back()
                self._undo()
                raise
            ended = True
            return result

        try:
            return asking_first(lambda: self._call.database.write(attempt))
        except BaseException:
            if ended:
                self._settle()
            raise

    def _undo(self) -> None:
        for work in self._if_it_fails:
            try:
                work()
            except MetastoreError:
                log.exception("a file of a failed call was left")

    def _settle(self) -> None:
        """Undo the work on directories after a failed commit, unless it was done nevertheless; try until that is known."""
        made, directories, moves = self._made, self._made.made, self._made.moved

        def settle() -> None:
            if directories or moves:
                take_back(self._call.metastore, self.subject, directories, moves)
            self.deletion.settle()
            self.deletion.finish()

        try:
            settle()
        except MetastoreError:
            log.exception("directories of a failed commit could not be taken back; it is tried again")
            made.leave(noted=True)
            settle_later(settle)
        else:
            made.leave(noted=False)

    def make_directories(self, locations: Sequence[str], reach: Reach | None = None) -> list[bool]:
        """Make directories, which are removed if the change fails; return for each whether it was missing. MetaError unless `reach` passes
        it.
        """
        return self._made.make(locations, reach)

    def move_directory(self, source: str, target: str) -> None:
        """Move a directory, which is moved back if the change fails. MetaError when the target is there."""
        self._made.move([(source, target)])

    def move_directories(self, moves: Sequence[tuple[str, str]]) -> None:
        """Move many directories (from, to); all are moved back if one can not move or the change fails."""
        self._made.move(moves)


@contextmanager
def change(call: Call, event: Event, subject: Subject = ()) -> Iterator[Change]:
    """Ask the pre-listeners, run the body, notify the post-listeners of success or failure.

    `subject` is the object that the journal notes.
    """
    with MadeDirectories(call.warehouse, call.metastore.journal, subject) as made:
        current = Change(call, event, made)
        try:
            call.listeners.before(event)
            yield current
        except Exception as error:
            call.listeners.after(current.event, error)
            raise
    for each in (current.event, *current.further):
        if isinstance(each, AddPartitions):
            total.added_partitions += len(each.partitions)
        elif isinstance(each, DropPartitions):
            total.dropped_partitions += len(each.partitions)
        call.listeners.after(each, None)
    current.deletion.finish()
