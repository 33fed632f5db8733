"""Look at storage on behalf of one call, and pass over what can not be reached where it is the client's affair. Never changes anything."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import structlog

from metastore.errors import MetaError
from metastore.warehouse.locations import parse

log = structlog.get_logger()
T = TypeVar("T")


class Unreachable(MetaError):
    """The server has no driver, no credentials or no way to a file system, or may not look at a place there."""


class Reach:
    """What is said of storage for one object; where the server need not reach it, each file system that it can not reach is reported
    once.
    """

    def __init__(self, subject: object, *, required: bool) -> None:
        self._subject = subject
        self._required = required
        self._lost: set[tuple[str, str]] = set()

    def look(self, work: Callable[[str], T], location: str, otherwise: T) -> T:
        """Return what `work` says of a location, or `otherwise` where that is not reached and need not be. MetaError."""
        if self._lost and parse(location).key[:2] in self._lost:
            return otherwise
        try:
            return work(location)
        except Unreachable as error:
            if self._required:
                raise
            protocol, authority, _ = parse(location).key
            if protocol != "file":
                self._lost.add((protocol, authority))
            what = "storage can not be reached, left to its clients"
            log.warning(what, object=str(self._subject), location=location, error=error.message)
            return otherwise
