"""The visitor of a page: the function for the page's calls, and the visitor's rights. It decides nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from metastore.service.operations.observations import Observation

UI = "/ui"
"""The path of the pages."""


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
    """The state of the server."""

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
    """The mechanism of the visitor's login, "" without a login."""
    is_admin: bool
    """Whether the visitor may administer the server as a whole."""
    may_act: bool
    """Whether actions are offered: to visitors with a login, and on a server without authorization also to ones from its own machine."""
    can_log_in: bool
    default_catalog: str
    version: str
    look: Callable[[], ServerState]
    clients: Callable[[], Iterable[Any]]
    slow_calls: Callable[[], Iterable[Any]]
