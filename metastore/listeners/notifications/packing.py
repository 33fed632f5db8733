"""Pack a change's events on many partitions or transactions into few rows, each with the data from which its messages are made at reading.

A message of one altered partition has 11 kB, nearly all of which the next one repeats: to write a thousand took longer than to alter the
partitions. The payload of a row is JSON. For partitions it has the table, the storage descriptors that partitions share, and the
differences of up to EVENTS partitions; for consecutive ids it has the first and the last. This module never decides the content of a
message: `messages.py` does, from the unpacked event.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from operator import attrgetter
from typing import Any

import orjson
from isal import igzip

from metastore.binary import from_bytes, list_from_bytes, to_bytes
from metastore.idl import (
    ColumnStatistics,
    ColumnStatisticsData,
    ColumnStatisticsDesc,
    ColumnStatisticsObj,
    Partition,
    StorageDescriptor,
    Table,
    TxnType,
)
from metastore.listeners.events import (
    AbortTransactions,
    AddPartitions,
    AllocateWriteIds,
    AlterPartitions,
    ClientInfo,
    Event,
    OpenTransactions,
    UpdateStatistics,
)
from metastore.listeners.notifications.messages import Notification
from metastore.store.catalog import descriptors

EVENTS = 100
"""The largest number of messages in one row: a reader of one of them makes all."""
ONE = "packed:"
"""The beginning of a packed row of one message. A row of one message with another beginning holds the message itself."""
LEVEL = 0
"""The level of ISA-L's compression: 11 kB of JSON take 10 us and become 2.0 kB; zlib's level 1 takes 42 us for 1.8 kB."""
AS_JSON = ("values", "parameters", "createTime", "lastAccessTime", "catName", "dbName", "tableName", "writeId")
"""The fields of a partition that JSON holds unchanged."""
UNPACKED = tuple(spec[1] for spec in Partition.thrift_spec.values() if spec[1] not in (*AS_JSON, "sd"))
"""The fields of a partition that are not packed: the server sets none of them, and hardly any request does."""
NONE_UNPACKED = (None,) * len(UNPACKED)
DESCRIPTION = tuple(spec[1] for spec in ColumnStatisticsDesc.thrift_spec.values())
OF_STATISTICS = tuple(spec[1] for spec in ColumnStatistics.thrift_spec.values() if spec[1] not in ("statsDesc", "statsObj"))
_as_json, _unpacked_fields = attrgetter(*AS_JSON), attrgetter(*UNPACKED)
_description, _of_statistics = attrgetter(*DESCRIPTION), attrgetter(*OF_STATISTICS)

NOBODY = ClientInfo("", None, (), "")
"""The client of events that are rebuilt: no message names it."""

Payload = tuple[int, str]
"""The number of messages, and the data from which they are made."""


def compressed(text: bytes) -> str:
    """Return a text in the form of Hive 4's stored messages: gzip as base64."""
    return b64encode(igzip.compress(text, LEVEL, mtime=0)).decode()


def decompressed(text: str) -> bytes:
    """Return the uncompressed data."""
    return igzip.decompress(b64decode(text))  # type: ignore[no-untyped-call, no-any-return]  # the package has stubs for some


def pack(event: Event) -> list[Payload]:
    """Return the payloads of the rows for all messages of an event; none where rows have to hold the messages."""
    if isinstance(event, AddPartitions) and len(event.partitions) > 1 and _can_be_read(event.table.sd):
        return _additions(event)
    if isinstance(event, AlterPartitions) and len(event.after) > 1 and _can_be_read(event.table.sd):
        return _alterations(event)
    if isinstance(event, UpdateStatistics) and len(event.statistics) > 1 and _can_be_read(event.table.sd):
        return list(_statistics(event))
    if isinstance(event, AbortTransactions) and len(event.transactions) > 1:
        return list(_aborts(event))
    if isinstance(event, OpenTransactions) and event.type != TxnType.READ_ONLY and _follow_each_other(event.transactions):
        return [_ids(event.transactions)]
    if isinstance(event, AllocateWriteIds) and _follow_each_other(event.write_ids):
        names = (event.catalog, event.database, event.table)
        return [_ids(event.transactions, names=names, writeIdList=[event.write_ids[0]])]
    return []


def subject(event: Event) -> Notification:
    """Return type and object of a packed event's messages, without their fields: to make one message takes longer than to pack ten."""
    if isinstance(event, AddPartitions):
        return _on("ADD_PARTITION", event.table)
    if isinstance(event, AlterPartitions):
        return _on("ALTER_PARTITION", event.table)
    if isinstance(event, UpdateStatistics):
        return _on("UPDATE_PARTITION_COLUMN_STAT", event.table)
    if isinstance(event, AllocateWriteIds):
        return Notification("ALLOC_WRITE_ID", event.catalog, event.database, event.table, {})
    return Notification("OPEN_TXN" if isinstance(event, OpenTransactions) else "ABORT_TXN", None, None, None, {})


def _on(kind: str, table: Table) -> Notification:
    return Notification(kind, table.catName, table.dbName, table.tableName, {})


def unpack(event_type: str, payload: str) -> Event:
    """Rebuild the event, or the part of an event, from one packed row."""
    text = payload.removeprefix(ONE)
    packed = orjson.loads(text if text.startswith("{") else decompressed(text))
    return UNPACK[event_type](packed)


def _payload(count: int, fields: dict[str, Any]) -> Payload:
    return count, compressed(orjson.dumps(fields))


def _ids(transactions: Sequence[int], **fields: Any) -> Payload:
    """Return the data of one message about transactions. It is not compressed: a statement may put numbers into it."""
    which: dict[str, Any] = {"transactions": list(transactions)}
    if _follow_each_other(transactions):
        which = {"first": transactions[0], "last": transactions[-1]}
    return 1, ONE + orjson.dumps({**which, **fields}).decode()


def _follow_each_other(ids: Sequence[int]) -> bool:
    """Return whether ids are several, and each is one above the one before."""
    return len(ids) > 1 and list(ids) == [*range(ids[0], ids[0] + len(ids))]


def _packed_table(table: Table) -> str:
    return b64encode(to_bytes(table)).decode()


def _table(packed: dict[str, Any]) -> Table:
    return from_bytes(Table, b64decode(packed["table"]))


def _parts(count: int) -> Iterator[slice]:
    """Return the slices of events for as few rows as there may be, of about equal size: a row of one event would be its message."""
    rows = -(-count // EVENTS)
    ends = [count * row // rows for row in range(rows + 1)]
    return map(slice, ends, ends[1:])


def _additions(event: AddPartitions) -> list[Payload]:
    """Return one payload; none when a partition has a field that a payload can not store."""
    storage = _Storage()
    added = storage.packed(event.partitions)
    if not storage.holds_all:
        return []
    _, payload = _payload(1, {"table": _packed_table(event.table), "added": added, "storage": storage.bodies})
    return [(1, ONE + payload)]


def _alterations(event: AlterPartitions) -> list[Payload]:
    """Return the payloads; none when a partition has a field that a payload can not store."""
    table = _packed_table(event.table)
    payloads = []
    for part in _parts(len(event.after)):
        storage = _Storage()
        sides = [storage.packed(side[part]) for side in (event.before, event.after)]
        if not storage.holds_all:
            return []
        payloads.append(_payload(len(sides[0]), {"table": table, "sides": sides, "storage": storage.bodies, "truncates": event.truncates}))
    return payloads


def _statistics(event: UpdateStatistics) -> Iterator[Payload]:
    table = _packed_table(event.table)
    columns: dict[tuple[int, ...], list[tuple[str, str, str]]] = {}
    """The packed columns by their structs, which partitions may share."""
    for part in _parts(len(event.statistics)):
        packed = []
        for each, data in zip(event.statistics[part], event.data[part], strict=True):
            structs = each.statsObj or ()
            key = tuple(map(id, structs))
            if key not in columns:
                columns[key] = [(of.colName, of.colType, text) for of, text in zip(structs, data, strict=True)]
            packed.append((_description(each.statsDesc), _of_statistics(each), columns[key]))
        yield _payload(len(packed), {"table": table, "statistics": packed})


def _aborts(event: AbortTransactions) -> Iterator[Payload]:
    for part in _parts(len(event.transactions)):
        keys = list(event.transactions[part])
        yield _payload(len(keys), {"transactions": keys, "databases": {str(key): event.databases.get(key, ()) for key in keys}})


def _can_be_read(sd: StorageDescriptor | None) -> bool:
    """Return False for a map whose keys are lists: thriftpy2 writes such maps and can not read them."""
    return sd is None or sd.skewedInfo is None or not sd.skewedInfo.skewedColValueLocationMaps


class _Storage:
    """The storage descriptors of a payload, without their locations. Hundreds of consecutive partitions have the same one."""

    def __init__(self) -> None:
        self.bodies: list[str] = []
        self.holds_all = True
        self._places: dict[tuple[int, ...], int] = {}

    def packed(self, partitions: Sequence[Partition]) -> list[tuple[Any, ...]]:
        self.holds_all = self.holds_all and all(map(NONE_UNPACKED.__eq__, map(_unpacked_fields, partitions)))
        out: list[tuple[Any, ...]] = []
        last: tuple[Any, ...] = ()
        place = None
        for each, fields in zip(partitions, map(_as_json, partitions), strict=True):
            sd = each.sd
            if sd is None:
                out.append((*fields, None, None))
                continue
            parts = descriptors.parts(sd)
            if parts != last:
                last, place = parts, self._find(sd, tuple(map(id, parts)))
            out.append((*fields, place, sd.location))
        return out

    def _find(self, sd: StorageDescriptor, key: tuple[int, ...]) -> int:
        found = self._places.get(key)
        if found is None:
            self.holds_all = self.holds_all and _can_be_read(sd)
            rest = copy(sd)
            rest.location = None  # type: ignore[assignment]  # each partition has its own
            found = self._places[key] = len(self.bodies)
            self.bodies.append(b64encode(to_bytes(rest)).decode())
        return found


def _unpacked(packed: Sequence[Any], storage: Sequence[StorageDescriptor]) -> Partition:
    *fields, place, location = packed
    partition = Partition(**dict(zip(AS_JSON, fields, strict=True)))
    if place is not None:
        partition.sd = copy(storage[place])
        partition.sd.location = location
    return partition


def _storage(packed: dict[str, Any]) -> list[StorageDescriptor]:
    return [from_bytes(StorageDescriptor, b64decode(body)) for body in packed["storage"]]


def _added(packed: dict[str, Any]) -> Event:
    storage = _storage(packed)
    return AddPartitions(client=NOBODY, table=_table(packed), partitions=[_unpacked(each, storage) for each in packed["added"]])


def _altered(packed: dict[str, Any]) -> Event:
    storage = _storage(packed)
    before, after = ([_unpacked(each, storage) for each in side] for side in packed["sides"])
    truncates = packed.get("truncates", False)  # rows of earlier code have the method's name in its place
    return AlterPartitions(client=NOBODY, table=_table(packed), before=before, after=after, truncates=truncates)


def _updated(packed: dict[str, Any]) -> Event:
    data = [[text for *_, text in columns] for *_, columns in packed["statistics"]]
    decoded = iter(list_from_bytes(ColumnStatisticsData, [b64decode(text) for each in data for text in each]))
    found = [
        ColumnStatistics(
            statsDesc=ColumnStatisticsDesc(*description),
            **dict(zip(OF_STATISTICS, fields, strict=True)),
            statsObj=[ColumnStatisticsObj(name, kind, next(decoded)) for name, kind, _ in columns],
        )
        for description, fields, columns in packed["statistics"]
    ]
    return UpdateStatistics(client=NOBODY, table=_table(packed), statistics=found, data=data)


def _aborted(packed: dict[str, Any]) -> Event:
    databases = {int(key): names for key, names in packed["databases"].items()}
    return AbortTransactions(client=NOBODY, transactions=packed["transactions"], databases=databases)


def _transactions(packed: dict[str, Any]) -> Sequence[int]:
    return range(packed["first"], packed["last"] + 1) if "first" in packed else packed["transactions"]


def _opened(packed: dict[str, Any]) -> Event:
    return OpenTransactions(client=NOBODY, transactions=_transactions(packed), type=TxnType.DEFAULT)


def _allocated(packed: dict[str, Any]) -> Event:
    catalog, database, table = packed["names"]
    transactions, (first,) = _transactions(packed), packed["writeIdList"]
    return AllocateWriteIds(
        client=NOBODY,
        catalog=catalog,
        database=database,
        table=table,
        transactions=transactions,
        write_ids=range(first, first + len(transactions)),
    )


UNPACK: dict[str, Callable[[dict[str, Any]], Event]] = {
    "ADD_PARTITION": _added,
    "ALTER_PARTITION": _altered,
    "UPDATE_PARTITION_COLUMN_STAT": _updated,
    "ABORT_TXN": _aborted,
    "OPEN_TXN": _opened,
    "ALLOC_WRITE_ID": _allocated,
}
