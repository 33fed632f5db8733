"""Lists that are too long to be held at once: whoever sends one away reads it page by page, all in one snapshot of the database."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

PAGE = 10_000
"""Elements of a page; a list that is not longer is a list."""


class Taker(Protocol):
    """Takes the pages of a list, one after the other."""

    def begin(self) -> None:
        """Forget what was taken: the first page comes, perhaps again, for the reading may be tried anew."""

    def take(self, page: list[Any]) -> None:
        """Take the next page."""


class LongList:
    """A long list, which is read when it is asked for its pages."""

    def __init__(self, read: Callable[[Taker], None]) -> None:
        self.read = read
        """Gives all pages to a taker."""
