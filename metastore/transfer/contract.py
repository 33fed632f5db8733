"""The two sides of a move: a reader yields records, a writer takes them. Moves and comparisons of metadata consist of the two."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, Protocol

from metastore.transfer.records import Key, Record
from metastore.transfer.selection import EVERYTHING, Selection


class Changes(NamedTuple):
    """The events of a log after another one: the id of the last, and the tables (catalog, database, name) that they name."""

    last: int
    tables: frozenset[Key]

    @classmethod
    def of(cls, last: int, names: Iterable[tuple[str | None, str | None, str | None]]) -> Changes:
        """Return the changes of events with these names of catalog, database and table."""
        return cls(last, frozenset((catalog or "hive", database, table) for catalog, database, table in names if database and table))


class Reader(Protocol):
    """A source of records; it is never changed."""

    name: str
    """The name of the source for people, without passwords."""

    @property
    def skipped(self) -> list[str]:
        """Return the things that were not yielded, each with the reason."""

    @property
    def kinds(self) -> frozenset[str]:
        """The kinds whose records are all yielded: only these can be compared."""

    @property
    def seen(self) -> Callable[[Record], Record] | None:
        """Return the function that reduces a record to the parts that this source can read; None where it reads all."""

    def close(self) -> None:
        """Close connections."""

    def partitions(self) -> int:
        """Count the partitions, to show the progress of a move; 0 where that takes too long."""

    def tables(self, selection: Selection) -> set[Key]:
        """Return catalog, database and name of the tables that are wanted and not done yet."""

    def changes(self, after: int) -> Changes | None:
        """Return the changes in the log after an event; None without a log, or if it begins later."""

    def records(self, selection: Selection) -> Iterator[Record]:
        """Yield the wanted records in the order of `records.KINDS`. They are of one moment where the source can do that.

        MetastoreError when the source refuses or is not a metastore.
        """


class Writer(Protocol):
    """A target of records."""

    name: str
    skipped: list[str]
    """Records that were not written, each with the reason."""
    wrote: Callable[[int], None]
    """A function that is called after each batch with its number of records."""

    def close(self) -> None:
        """Close connections, and remove an unfinished result that can not be resumed."""

    def begin(self, selection: Selection = EVERYTHING, *, resume: bool = False) -> frozenset[Key]:
        """Prepare the target for the records of a selection; return its complete tables.

        MetastoreError for a target that is not empty, unless the move is resumed.
        """

    def write(self, records: Iterable[Record]) -> None:
        """Write records that come in the order of `records.KINDS`."""
