"""The frame of every change: pre-listeners, one transaction with its directories, post-listeners. Holds no rule of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from metastore.listeners.events import Event
from metastore.service.context import Call
from metastore.store.database import Session
from metastore.warehouse import MadeDirectories

T = TypeVar("T")


class Change:
    """One change under way. `event` may be replaced by a fuller one inside the transaction."""

    def __init__(self, call: Call, event: Event, made: MadeDirectories) -> None:
        self._call = call
        self._made = made
        self.event = event

    def write(self, work: Callable[[Session], T]) -> T:
        """Run `work` and the transactional listeners in one transaction; it may run again after a conflict.

        Directories that it made are removed before a rollback, while the transaction still holds its rows: whoever waits for the
        same name then makes its own.
        """

        def attempt(session: Session) -> T:
            try:
                result = work(session)
                self._call.listeners.within(self.event, session)
            except BaseException:
                self._made.undo()
                raise
            return result

        return self._call.database.write(attempt)

    def make_directories(self, locations: Sequence[str]) -> list[bool]:
        """Make directories that go again if the change fails; tell for each whether it was missing."""
        return self._made.make(locations)


@contextmanager
def change(call: Call, event: Event, subject: Sequence[str | list[str]] = ()) -> Iterator[Change]:
    """Ask the pre-listeners, run the body, tell the post-listeners of success or failure.

    `subject` is what the journal notes: ("table", catalog, database, name), ("partitions", catalog, database, table, [names]) ...
    """
    with MadeDirectories(call.warehouse, call.metastore.journal, subject) as made:
        current = Change(call, event, made)
        try:
            call.listeners.before(event)
            yield current
        except Exception as error:
            call.listeners.after(current.event, error)
            raise
    call.listeners.after(current.event, None)
