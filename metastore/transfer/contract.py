"""The two sides of a move: a reader yields records, a writer takes them. Whatever moves or compares metadata is made of the two."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, Protocol

from metastore.transfer.records import Key, Record
from metastore.transfer.selection import Selection


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
    """For people, without passwords."""

    @property
    def skipped(self) -> list[str]:
        """Return the things that were not yielded, each with the reason."""

    @property
    def kinds(self) -> frozenset[str]:
        """The kinds of which all are yielded: only these can be compared."""

    @property
    def seen(self) -> Callable[[Record], Record] | None:
        """Return what makes of a record as much as this source knows of such records; None where it knows all."""

    def close(self) -> None:
        """Close connections."""

    def partitions(self) -> int:
        """Count the partitions, for whoever shows how far a move has come; 0 where that takes too long."""

    def tables(self, selection: Selection) -> set[Key]:
        """Return catalog, database and name of the tables that are wanted and not done yet."""

    def changes(self, after: int) -> Changes | None:
        """Return what the log says of the time after an event; None where there is no log, or it begins later."""

    def records(self, selection: Selection) -> Iterator[Record]:
        """Yield the records that are wanted, in the order of `records.KINDS`, as they were at one moment where the source can do that.

        MetastoreError when the source refuses or is not what it should be.
        """


class Writer(Protocol):
    """A target of records."""

    name: str
    skipped: list[str]
    """Records that were not written, each with the reason."""
    wrote: Callable[[int], None]
    """Is told after each batch how many records it held."""

    def close(self) -> None:
        """Close connections, and remove what was not finished and can not be gone on with."""

    def begin(self, *, resume: bool = False) -> frozenset[Key]:
        """Make ready; return the tables that are there whole. MetastoreError for a target that holds something if nobody said to go on."""

    def write(self, records: Iterable[Record]) -> None:
        """Write records that come in the order of `records.KINDS`."""
