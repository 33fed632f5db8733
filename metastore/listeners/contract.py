"""The five kinds of hooks. This module never calls one itself.

A listener derives from one of them, takes the server's settings and is named in the settings as `package.module:Class`.
Classes may derive from several kinds; each kind is switched on by its own setting. One object serves all threads of a process.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from metastore.config import Config
    from metastore.listeners.events import Event, FunctionEnd


class Listener:
    """Base of all kinds: made once in each worker process."""

    def __init__(self, config: Config) -> None:
        self.config = config


class PreEventListener(Listener):
    """Looks at a change before anything is done, and may refuse it."""

    def before(self, event: Event) -> None:
        """Raise an error of `metastore.errors` to refuse: the client gets it as the exception that the method declares.

        Any other exception reaches the client as a MetaException. Only this method gets ReadDatabase and ReadTable events.
        """


class TransactionalListener(Listener):
    """Writes into the same database transaction as the change."""

    def within(self, event: Event, session: Any) -> None:
        """Use `session` (a `metastore.store.core.database.Session`) only; raise to roll the change back.

        The transaction may be begun again after a conflict, so this may run more than once; only the last run is committed.
        """

    def within_all(self, changes: Sequence[Event], session: Any) -> Sequence[int]:
        """Handle the changes of one transaction together. Return the ids that notifications got, which only the notification log does."""
        for event in changes:
            self.within(event, session)
        return ()


class PostEventListener(Listener):
    """A listener that is notified of the outcome of a change, which it can no longer prevent."""

    def after(self, event: Event, error: Exception | None) -> None:
        """Handle the outcome of a change: `error` is None after a commit, else the reason for which nothing was changed."""


class EndFunctionListener(Listener):
    """A listener that is notified of the end of every call, reads included."""

    def ended(self, function: FunctionEnd) -> None:
        """Handle the end of a call: after the outcome is known, and before the reply is sent."""


class InitListener(Listener):
    """Runs once in each worker process before it serves."""

    def started(self) -> None:
        """Raise to stop the server from serving."""
