"""Guess the release of a Hive client from the methods that it calls: no message says it.

Source: the methods that HiveMetaStoreClient calls in 2.3.10, 3.1.3 and 4.0.1. Clients of other kinds are of no release.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

HIVE = "hive"
"""The engine whose statistics are meant where none is named."""

_REQUESTS_OF_2_3 = frozenset(
    {
        "add_partitions_req",
        "drop_partitions_req",
        "get_partitions_statistics_req",
        "get_table_objects_by_name_req",
        "get_table_statistics_req",
    }
)
"""The `_req` methods that a 2.3 client calls too."""

_REQUESTS_OF_3 = _REQUESTS_OF_2_3 | {"get_table_req"}

_REPLACED_BY_4 = frozenset(
    {
        "alter_database",
        "drop_database",
        "get_database",
        "get_partition",
        "get_partition_names",
        "get_partitions",
        "get_tables",
        "truncate_table",
    }
)
"""Methods for which 4.0's client calls others, and to which 3's sends `@catalog#database`."""


@dataclass(slots=True)
class ReleaseTraces:
    """What the calls of one connection told of its client's release."""

    get_table: bool = False
    request_methods: bool = False
    """Whether it called one that came after 2.3."""
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
    def tells_keys_by_case(self) -> bool:
        """Hive's own clients since 3 expect that a partition's name with keys in another case is that of none."""
        return self.is_3 or self.is_4

    def reads_timestamp_statistics(self, engine: str | None) -> bool:
        """Tell whether the client reads `timestampStats`, which only Hive 4 does, and by the engine that a request names.

        4's client names `hive` in each request for statistics; Impala, which reads `longStats`, names itself.
        """
        if self.is_2_3 or self.is_3:
            return False
        return engine == HIVE or (engine is None and self.is_4)

    def ends(self, method: str) -> bool:
        """Tell whether the client takes the end of the connection for the answer where an argument is missing."""
        return self.is_3 or (self.is_4 and method == "get_partitions_pspec")

    def note(self, method: str, arguments: Iterable[object]) -> None:
        """Remember what a call of a method that `tells_release` tells."""
        if method == "get_table":
            self.get_table = True
        elif method in _REPLACED_BY_4:
            self.marked_catalog = self.marked_catalog or any(isinstance(each, str) and each.startswith("@") for each in arguments)
        else:
            self.request_methods = True
            self.is_4 = self.is_4 or method not in _REQUESTS_OF_3


def tells_release(method: str) -> bool:
    """Tell whether a call of a method tells something of its client's release."""
    return method == "get_table" or method in _REPLACED_BY_4 or (method.endswith("_req") and method not in _REQUESTS_OF_2_3)
