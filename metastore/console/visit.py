"""The visitor of a page: the door through which the page asks, and the visitor's rights. It decides nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from metastore.service.operations.observations import Observation

UI = "/ui"
"""Where the pages are."""


@dataclass(frozen=True, slots=True)
class CallCount:
    """The counts of one method by all worker processes since the server's start."""

    method: str
    calls: int
    failed: int
    seconds: float
    """The seconds of all calls together."""


@dataclass(frozen=True, slots=True)
class ServerState:
    """How the server does."""

    seen: Observation | None
    """None where the database could not be asked."""
    calls: list[CallCount]
    connections: int


@dataclass(frozen=True, slots=True)
class Visit:
    """One request of a browser, or of a program."""

    run: Callable[..., Any]
    """A function that runs a method of the interface or a console query as the visitor: `run(name, **arguments)`. Raises their errors."""
    user: str | None
    mechanism: str
    """How the visitor logged in, "" for one who did not."""
    is_admin: bool
    """Whether the visitor may administer the server as a whole."""
    may_act: bool
    """Whether actions are offered: to those who logged in, and on a server that is open, from its own machine."""
    can_log_in: bool
    default_catalog: str
    version: str
    look: Callable[[], ServerState]
    clients: Callable[[], Iterable[Any]]
    slow_calls: Callable[[], Iterable[Any]]
