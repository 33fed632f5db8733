"""Lists that are too long to be held at once: they are read page by page while they are sent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

Element = TypeVar("Element")
T = TypeVar("T")


class Taker(Protocol):
    """Takes the pages of a list, one after the other."""

    def begin(self) -> None:
        """Forget all pages: the first page follows. This may happen again, because the reading may be tried again."""

    def take(self, page: list[Any]) -> None:
        """Take the next page."""


class LongList:
    """A long list, alone or in the struct that a method returns. It is read when its pages are requested."""

    def __init__(self, read: Callable[[Taker], None], make: Callable[[list[Any]], Any] = lambda page: page) -> None:
        self.read = read
        """Gives all pages to a taker."""
        self.make = make
        """A function from a list of elements to the method's value. Other fields of the value may be known only after the last page."""


def made_of(found: list[Element] | LongList, make: Callable[[list[Element]], T]) -> T | LongList:
    """Return the method's value for a list; for a long list, one that makes the value when it is read."""
    return LongList(found.read, make) if isinstance(found, LongList) else make(found)
