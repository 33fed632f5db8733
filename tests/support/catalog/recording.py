"""Listeners for tests in one process: they remember events, refuse them, or run a function of the test."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from metastore.config import Config
from metastore.listeners import Listeners, PostEventListener, PreEventListener, TransactionalListener
from metastore.listeners.events import Event
from metastore.service.call.context import Metastore


class Before(PreEventListener):
    def __init__(self, work: Callable[[Event], None]) -> None:
        super().__init__(Config())
        self.work = work

    def before(self, event: Event) -> None:
        self.work(event)


class Within(TransactionalListener):
    def __init__(self, work: Callable[[Event, Any], None]) -> None:
        super().__init__(Config())
        self.work = work

    def within(self, event: Event, session: Any) -> None:
        self.work(event, session)


class Remembering(PostEventListener):
    """Keeps (event, error)."""

    def __init__(self) -> None:
        super().__init__(Config())
        self.seen: list[tuple[Any, Exception | None]] = []

    def after(self, event: Event, error: Exception | None) -> None:
        self.seen.append((event, error))


def listening(metastore: Metastore, *listeners: Before | Within | Remembering) -> Metastore:
    """Return a server with the same parts and other listeners."""
    return replace(metastore, listeners=Listeners(
        pre=[each for each in listeners if isinstance(each, Before)],
        transactional=[each for each in listeners if isinstance(each, Within)],
        post=[each for each in listeners if isinstance(each, Remembering)],
    ))  # fmt: skip
