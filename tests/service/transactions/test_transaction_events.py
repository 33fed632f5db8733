"""Events of the notification log about transactions that are opened, get write ids, or end."""

from __future__ import annotations

import base64
import gzip
from collections.abc import Sequence

import orjson
import pytest

from metastore.errors import MetaError
from metastore.idl import NotificationEvent, NotificationEventRequest, TxnType
from metastore.listeners.notifications.packing import ONE, compressed
from metastore.service.call.context import Call, Client
from metastore.service.catalog.catalogs import create_startup_objects
from metastore.service.catalog.tables.alter_table import alter_table
from metastore.service.catalog.tables.tables import get_table
from metastore.service.operations import notifications
from metastore.store.operations import notifications as log_rows
from metastore.store.schema import model as schema
from metastore.store.transactions.transactions import RANGES
from tests.support.acid.txns import INSERT, abort, allocate, begin, begin_one, commit, count, rows, write
from tests.support.catalog.catalog import MetastoreMaker, make_table

pytestmark = pytest.mark.on_one_database

ALLOCATED = (schema.write_ids, schema.write_id_ranges)
Wanted = list[tuple[str, dict[str, object]]]


@pytest.fixture(params=["json-0.2", "gzip(json-2.0)"])
def logged(request: pytest.FixtureRequest, make_metastore: MetastoreMaker) -> Call:
    """A call to a server with each format of messages."""
    return Call(make_metastore(event_message_format=request.param), Client("127.0.0.1:1", user="alice"), "test")


def text(event: NotificationEvent) -> bytes:
    return event.message.encode() if event.messageFormat == "json-0.2" else gzip.decompress(base64.b64decode(event.message))


def check(call: Call, after: int, wanted: Wanted) -> None:
    """Assert that the log has exactly these messages after an event, to the byte."""
    events = notifications.get_next(call, NotificationEventRequest(lastEvent=after))
    head = {"server": "", "servicePrincipal": ""}
    assert [(each.eventType, text(each)) for each in events] == [
        (kind, orjson.dumps({**head, "timestamp": each.eventTime, **fields})) for each, (kind, fields) in zip(events, wanted, strict=True)
    ]
    assert {each.messageFormat for each in events} == {call.config.event_message_format}


def opened(keys: Sequence[int]) -> tuple[str, dict[str, object]]:
    return "OPEN_TXN", {"txnIds": keys, "fromTxnId": keys[0], "toTxnId": keys[-1]}


def allocated(keys: Sequence[int], first: int, table: str = "t") -> tuple[str, dict[str, object]]:
    numbers = [*range(first, first + len(keys))]
    return "ALLOC_WRITE_ID", {"dbName": "db", "tableName": table, "txnIdList": keys, "writeIdList": numbers}


def is_packed(call: Call) -> list[bool]:
    """Return for each row of the log whether its message is made when it is read."""
    found = rows(call, schema.notifications, "sequence", "message", "events")
    assert {events for *_, events in found} == {1}
    return [message.startswith(ONE) for _, message, _ in sorted(found)]  # type: ignore[attr-defined]


@pytest.mark.parametrize("size", [1, 2, 101])
def test_opened_transactions(logged: Call, size: int) -> None:
    first, keys = begin(logged, 1), begin(logged, size)
    check(logged, 0, [opened(first), opened(keys)])
    assert is_packed(logged) == [False, size > 1]


@pytest.mark.parametrize("size", [1, 2, 101])
def test_write_ids_of_consecutive_transactions(logged: Call, size: int) -> None:
    wanted: Wanted = []
    for table in ("t", '"writeIdList":[-1'):  # a name that looks like the place of the write id
        first, keys = begin(logged, 1), begin(logged, size)
        allocate(logged, first, table)
        assert allocate(logged, keys, table) == dict(zip(keys, range(2, size + 2), strict=True))
        wanted += [opened(first), opened(keys), allocated(first, 1, table.lower()), allocated(keys, 2, table.lower())]
    check(logged, 0, wanted)
    assert is_packed(logged) == [False, size > 1] * 4


def test_write_ids_of_transactions_with_others_between(logged: Call) -> None:
    first, keys = begin(logged, 1), begin(logged, 7)
    last = notifications.current_id(logged)
    allocate(logged, first)
    assert allocate(logged, keys[::3]) == {keys[0]: 2, keys[3]: 3, keys[6]: 4}
    assert [*allocate(logged, keys).items()] == [*zip(keys, (2, 5, 6, 3, 7, 8, 4), strict=True)]
    check(logged, last, [allocated(first, 1), allocated(keys[::3], 2), allocated([*keys[1:3], *keys[4:6]], 5)])
    assert is_packed(logged)[2:] == [False, True, True]


def test_a_message_keeps_the_name_that_the_table_had(logged: Call) -> None:
    create_startup_objects(logged.metastore)
    name = make_table(logged, "t")
    first, keys = begin(logged, 1), begin(logged, 3)
    for each in (first, keys):
        allocate(logged, each, "t", "default")
    table = get_table(logged, name)
    table.tableName = "u"
    alter_table(logged, name, table)
    request = NotificationEventRequest(lastEvent=0, eventTypeList=["ALLOC_WRITE_ID"])
    found = notifications.get_next(logged, request)[-1]
    assert (found.tableName, found.messageFormat) == ("t", logged.config.event_message_format)
    assert orjson.loads(text(found))["tableName"] == "t"


def test_rows_that_hold_their_messages_are_read(logged: Call) -> None:
    """Earlier servers wrote such rows: short messages as JSON in either format, and long ones compressed."""
    format_, keys = logged.config.event_message_format, [*range(5, 205)]
    head = {"server": "", "servicePrincipal": "", "timestamp": 9}
    texts = [orjson.dumps({**head, **fields}) for _, fields in (opened(keys), allocated(keys, 3))]
    old = [
        log_rows.LogRow(9, kind, "hive", "db", "t", text.decode() if format_ == "json-0.2" or plain else compressed(text), format_)
        for plain in (True, False)
        for kind, text in zip(("OPEN_TXN", "ALLOC_WRITE_ID"), texts, strict=True)
    ]
    logged.database.write(lambda session: log_rows.insert(session, old))
    check(logged, 0, [opened(keys), allocated(keys, 3)] * 2)


def allocations(call: Call) -> list[tuple[list[int], list[int]]]:
    events = notifications.get_next(call, NotificationEventRequest(lastEvent=0, eventTypeList=["ALLOC_WRITE_ID"]))
    messages = [orjson.loads(text(each)) for each in events]
    return [(each["txnIdList"], each["writeIdList"]) for each in messages]


def test_the_message_has_the_facts_that_only_the_statement_has(logged: Call) -> None:
    keys = begin(logged, 3)
    table = '"writeIdList":[-1]'  # a name that looks like the place of the write id
    allocate(logged, keys[:1], table)
    write(logged, keys[1], INSERT)
    commit(logged, keys[1])
    abort(logged, keys[2])
    reader = begin(logged, 1, txn_type=TxnType.READ_ONLY)[0]
    commit(logged, reader)
    events = notifications.get_next(logged, NotificationEventRequest(lastEvent=0))
    messages = [(each.eventType, orjson.loads(text(each))) for each in events]
    wanted: list[tuple[str, dict[str, object]]] = [
        ("OPEN_TXN", {"txnIds": keys, "fromTxnId": keys[0], "toTxnId": keys[2]}),
        ("ALLOC_WRITE_ID", {"dbName": "db", "tableName": table.lower(), "txnIdList": keys[:1], "writeIdList": [1]}),
        ("ALLOC_WRITE_ID", {"dbName": "db", "tableName": "t", "txnIdList": keys[1:2], "writeIdList": [1]}),
        ("COMMIT_TXN", {"txnid": keys[1]}),
        ("ABORT_TXN", {"txnid": keys[2], "dbsUpdated": []}),
    ]
    assert [kind for kind, _ in messages] == [kind for kind, _ in wanted]
    for (_, message), (_, part) in zip(messages, wanted, strict=True):
        assert part.items() <= message.items()


@pytest.mark.parametrize("size", [1, 2, 12])
def test_many_get_write_ids_in_their_order(logged: Call, size: int) -> None:
    keys = begin(logged, size)
    other = allocate(logged, begin(logged, 1))
    numbers = allocate(logged, [*reversed(keys), *keys])
    assert numbers == {key: number for number, key in enumerate(keys, 2)}
    assert allocate(logged, keys) == numbers
    more = begin(logged, 1)
    assert allocate(logged, [keys[0], *more]) == {keys[0]: 2, more[0]: size + 2}
    assert allocations(logged) == [(list(other), [1]), (keys, list(numbers.values())), (more, [size + 2])]


@pytest.mark.parametrize("kind", ["aborted", "read-only", "unknown"])
def test_when_one_may_have_no_write_id_none_gets_one(logged: Call, kind: str) -> None:
    keys = begin(logged, 3)
    bad = {"aborted": keys[2], "unknown": keys[2] + 1000}.get(kind) or begin_one(logged, txn_type=TxnType.READ_ONLY)
    if kind == "aborted":
        abort(logged, bad)
    with pytest.raises(MetaError, match="not all input txns in open state"):
        allocate(logged, [*keys[:2], bad])
    assert allocations(logged) == []
    assert count(logged, ALLOCATED) == {"write_ids": 0, "write_id_ranges": 0}
    assert allocate(logged, keys[:2]) == {keys[0]: 1, keys[1]: 2}
    assert set(rows(logged, schema.transactions, "holds", id=keys[0])) == {(RANGES,)}
