"""Tables and partitions over Thrift: some tables, or pages of one, are read ahead by other connections."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

from metastore import idl
from metastore.rules.values.partition_names import make_partition_name, partition_values
from metastore.transfer.records import Record
from metastore.transfer.selection import Selection
from metastore.transfer.thrift import structs
from metastore.transfer.thrift.calls import Calls

PAGE = 1000
"""Partitions of one call."""
ENGINES = ("hive", "impala")
"""Engines whose statistics are asked for; no method lists them."""
CAPABILITIES = (
    "HIVEFULLACIDWRITE", "HIVEFULLACIDREAD", "HIVEMANAGEDINSERTREAD", "HIVEMANAGEDINSERTWRITE", "HIVECACHEINVALIDATE", "HIVEMQT", "HIVESQL",
    "HIVEBUCKET2", "EXTREAD", "EXTWRITE", "CONNECTORREAD", "CONNECTORWRITE", "MANAGERAWMETADATA",
)  # fmt: skip
"""All of Hive's capabilities: a server hides tables that a client could not use."""
Names = tuple[str, str, str]


class Read(NamedTuple):
    """A table, the names of its partitions, and the records of the first of them."""

    record: Record
    partitions: Sequence[str]
    first: list[Record]


def prefixed(catalog: str, database: str) -> str:
    """Return a database's name for methods that have no place for the catalog's."""
    return database if catalog == "hive" else f"@{catalog}#{database}"


class Tables:
    """Reads tables of one server."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self.keys: dict[Names, list[str]] = {}
        """The partition keys of the tables that were read and have some."""

    def names(self, selection: Selection, databases: Sequence[tuple[str, str]]) -> list[Names]:
        """Return the tables that are wanted, ascending in each database."""
        listed = self._calls.each(lambda where: (where, self._calls.find("get_all_tables", prefixed(*where), absent=())), databases)
        return [(*where, name) for where, found in listed for name in sorted(found) if selection.wants_table(*where, name)]

    def records(self, selection: Selection, names: Sequence[Names]) -> Iterator[Record]:
        """Yield the records of tables, each with its dependent records. A table that was dropped meanwhile is left out."""
        wanted = [each for each in names if each not in selection.done]
        for read in self._calls.each(lambda each: self._read(each, partitions=selection.wants("partition")), wanted):
            if read is None:
                continue
            if selection.wants("table"):
                yield read.record
            known: set[str] = set()
            yield from _once(read.first, known)
            rest = [read.partitions[begin : begin + PAGE] for begin in range(PAGE, len(read.partitions), PAGE)]
            for page in self._calls.each(partial(self._page, read.record), rest):
                yield from _once(page, known)

    def keys_of(self, names: Names) -> list[str]:
        """Return the partition keys of a table."""
        if names not in self.keys:
            self._read(names, partitions=False)
        return self.keys.get(names, [])

    def _read(self, names: Names, *, partitions: bool) -> Read | None:
        catalog, database, name = names
        request = idl.GetTableRequest(
            dbName=database, tblName=name, catName=catalog, capabilities=idl.ClientCapabilities([1, 2]),
            processorCapabilities=list(CAPABILITIES),
        )  # fmt: skip
        reply = self._calls.find("get_table_req", request)
        table = reply.table if reply is not None else None
        if table is None and not self._calls.knows("get_table_req"):
            table = self._calls.find("get_table", prefixed(catalog, database), name)
        if table is None:
            return None
        record = Record("table", names, structs.table(table, self._statistics(names, table)))
        if table.partitionKeys:
            self.keys[names] = [each[0] for each in record.body["partition_keys"]]
        if not partitions or not table.partitionKeys:
            return Read(record, (), [])
        listed = self._calls.find("get_partition_names", prefixed(catalog, database), name, -1)
        if listed is None:
            return None
        listed.sort()
        return Read(record, listed, self._page(record, listed[:PAGE]))

    def _statistics(self, names: Names, table: Any) -> dict[str, Any]:
        columns = [field.name for field in (table.sd.cols if table.sd is not None else None) or ()]
        found = {}
        if columns and table.tableType != "VIRTUAL_VIEW":
            for engine in self._engines():
                request = idl.TableStatsRequest(names[1], names[2], columns, catName=names[0], engine=engine)
                reply = self._calls.find("get_table_statistics_req", request)
                if reply is not None and reply.tableStats:
                    found[engine] = structs.statistics_of(reply.tableStats, 0)
        return found

    def _engines(self) -> Sequence[str]:
        """Return the engines to ask for. Releases before 4 have the same statistics for all engines, and would return them twice."""
        return ENGINES if self._calls.ask("get_dataconnectors") is not None else ENGINES[:1]

    def _page(self, table: Record, names: Sequence[str]) -> list[Record]:
        if not names:
            return []
        catalog, database, name = table.key
        keys, columns = [each[0] for each in table.body["partition_keys"]], [each[0] for each in table.body["columns"] or ()]
        listed = self._calls.find("get_partitions_by_names", prefixed(catalog, database), name, list(names), absent=())
        statistics: dict[str, dict[str, Any]] = {}
        for engine in self._engines():
            request = idl.PartitionsStatsRequest(database, name, columns, list(names), catName=catalog, engine=engine)
            reply = self._calls.find("get_partitions_statistics_req", request)
            for partition, objects in (reply.partStats if reply is not None else {}).items():
                if objects:
                    statistics.setdefault(partition, {})[engine] = structs.statistics_of(objects, 0)
        contents, found = structs.Contents(), []
        spelled = {tuple(partition_values(each)): each for each in names}
        for partition in listed:
            own = spelled.get(tuple(partition.values)) or make_partition_name(keys, partition.values)
            found.append(Record("partition", (*table.key, own), structs.partition(partition, contents, statistics.get(own, {}))))
        found.sort(key=lambda record: record.key)
        return [*(Record("descriptor", (*table.key, hash_), {"content": each}) for hash_, each in contents.found.items()), *found]


def _once(records: Sequence[Record], known: set[str]) -> Iterator[Record]:
    """Yield the records of a page without the descriptors that pages before had."""
    for record in records:
        if record.kind != "descriptor" or record.key[3] not in known:
            if record.kind == "descriptor":
                known.add(record.key[3])
            yield record
