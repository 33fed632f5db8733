"""Guess the release of a Hive client from the methods that it calls: no message contains it.

Source: the methods that HiveMetaStoreClient calls in 2.3.10, 3.1.3 and 4.0.1. Clients of other kinds have no release.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

HIVE = "hive"
"""The engine whose statistics are meant where none is named."""


class Sign(Enum):
    """The sign that a call of a method gives of its client's release."""

    READS_TABLE = "2.3's client reads tables by it"
    MARKS_CATALOG = "3's client sends `@catalog#database` to it, 4.0's client calls another method"
    SINCE_3 = "clients since 3 call it"
    SINCE_4 = "clients since 4 call it"


@dataclass(slots=True)
class ReleaseTraces:
    """The signs that the calls of one connection gave of its client's release."""

    get_table: bool = False
    request_methods: bool = False
    """Whether it called a method that was added after 2.3."""
    is_4: bool = False
    """Whether it called a request method that only 4's client calls."""
    marked_catalog: bool = False
    """Whether it named a catalog as 3's client does, in a method that 4's does not call."""

    @property
    def is_2_3(self) -> bool:
        """2.3's client reads tables with `get_table` and calls none of the request methods that came later."""
        return self.get_table and not self.request_methods

    @property
    def is_3(self) -> bool:
        """3's client marks catalogs in names, and calls none of the request methods that came later."""
        return self.marked_catalog and not self.is_4

    @property
    def knows_keys_by_case(self) -> bool:
        """Hive's own clients since 3 expect that a partition's name with keys in another case names no partition."""
        return self.is_3 or self.is_4

    def reads_timestamp_statistics(self, engine: str | None) -> bool:
        """Return whether the client reads `timestampStats`, as only Hive 4 does: by its release and the engine that a request names.

        4's client names `hive` in each request for statistics; Impala, which reads `longStats`, names itself.
        """
        if self.is_2_3 or self.is_3:
            return False
        return engine == HIVE or (engine is None and self.is_4)

    def ends(self, *, for_4: bool) -> bool:
        """Return whether the client expects the end of the connection as the answer to a missing argument. 4's does only with `for_4`."""
        return self.is_3 or (self.is_4 and for_4)

    def note(self, sign: Sign, arguments: Iterable[object]) -> None:
        """Remember the sign that a call gives."""
        if sign is Sign.READS_TABLE:
            self.get_table = True
        elif sign is Sign.MARKS_CATALOG:
            self.marked_catalog = self.marked_catalog or any(isinstance(each, str) and each.startswith("@") for each in arguments)
        else:
            self.request_methods = True
            self.is_4 = self.is_4 or sign is Sign.SINCE_4
