"""Lists that are too long to be held at once: they are read page by page while they are sent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

Element = TypeVar("Element")
T = TypeVar("T")


class Taker(Protocol):
    """Takes the pages of a list, one after the other."""

    def begin(self) -> None:
        """Forget all pages: the first page follows, perhaps again, because reading may be tried again."""

    def take(self, page: list[Any]) -> None:
        """Take the next page."""


class LongList:
    """A long list, alone or in the struct that a method returns, which is read when it is asked for its pages."""

    def __init__(self, read: Callable[[Taker], None], make: Callable[[list[Any]], Any] = lambda page: page) -> None:
        self.read = read
        """Gives all pages to a taker."""
        self.make = make
        """A function from a list of elements to the method's value. The fields beside the list may be known when all is read."""


def made_of(found: list[Element] | LongList, make: Callable[[list[Element]], T]) -> T | LongList:
    """Return the method's value for a list, and for a long list when it is read."""
    return LongList(found.read, make) if isinstance(found, LongList) else make(found)
