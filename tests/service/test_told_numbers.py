"""What the log tells of transactions that are opened or get write ids together is the same in one round trip and on the long way."""

from __future__ import annotations

import base64
import gzip
from collections.abc import Callable, Sequence

import orjson
import pytest

from metastore.idl import NotificationEvent, NotificationEventRequest
from metastore.listeners.notifications.packing import ONE, compressed
from metastore.service import notifications
from metastore.service.alter_table import alter_table
from metastore.service.catalogs import create_startup_objects
from metastore.service.context import Call, Client
from metastore.service.tables import get_table
from metastore.store import at_once, schema
from metastore.store import notifications as log_rows
from metastore.store.at_once import AtOnce
from tests.support.catalog import MetastoreMaker, make_table
from tests.support.txns import allocate, begin, rows

Wanted = list[tuple[str, dict[str, object]]]


@pytest.fixture(params=["json-0.2", "gzip(json-2.0)"])
def logged(request: pytest.FixtureRequest, make_metastore: MetastoreMaker) -> Call:
    """A call to a server with each format of messages."""
    return Call(make_metastore(event_message_format=request.param), Client("127.0.0.1:1", user="alice"), "test")


@pytest.fixture(params=["one round trip", "the long way"])
def once(request: pytest.FixtureRequest, logged: Call, monkeypatch: pytest.MonkeyPatch) -> AtOnce:
    """What the server's database can do in one round trip, or nothing."""
    found = at_once.of(logged.database)
    if request.param == "the long way":
        monkeypatch.setattr(found, "most_opened", 0)
        monkeypatch.setattr(found, "most_allocated", 0)
    return found


@pytest.fixture
def was_done(once: AtOnce, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], bool]:
    """Tells whether the last call that opened or allocated was done in one round trip."""
    done: dict[str, object] = {}

    def note(name: str, work: Callable[..., object]) -> Callable[..., object]:
        def noting(*args: object, **options: object) -> object:
            done[name] = work(*args, **options)
            return done[name]

        return noting

    for name in ("open", "allocate"):
        monkeypatch.setattr(once, name, note(name, getattr(once, name)))
    return lambda name: bool(done.pop(name, None))


def text(event: NotificationEvent) -> bytes:
    return event.message.encode() if event.messageFormat == "json-0.2" else gzip.decompress(base64.b64decode(event.message))


def check(call: Call, after: int, wanted: Wanted) -> None:
    """Look that the log tells these messages, to the byte."""
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
    """Tell of each row of the log whether its message is made when it is read."""
    found = rows(call, schema.notifications, "sequence", "message", "events")
    assert {events for *_, events in found} == {1}
    return [message.startswith(ONE) for _, message, _ in sorted(found)]


Was = Callable[[str], bool]


@pytest.mark.parametrize("size", [1, 2, 101])
def test_opened_transactions(logged: Call, once: AtOnce, was_done: Was, size: int) -> None:
    first, keys = begin(logged, 1), begin(logged, size)
    assert was_done("open") == (size <= once.most_opened)
    check(logged, 0, [opened(first), opened(keys)])
    assert is_packed(logged) == [False, size > 1]


@pytest.mark.parametrize("size", [1, 2, 101])
def test_write_ids_of_consecutive_transactions(logged: Call, once: AtOnce, was_done: Was, size: int) -> None:
    wanted: Wanted = []
    for table in ("t", '"writeIdList":[-1'):  # a name that looks like the place of the write id
        first, keys = begin(logged, 1), begin(logged, size)
        allocate(logged, first, table)
        was_done("allocate")
        assert allocate(logged, keys, table) == dict(zip(keys, range(2, size + 2), strict=True))
        assert was_done("allocate") == (once.least_allocated <= size <= once.most_allocated)
        wanted += [opened(first), opened(keys), allocated(first, 1, table.lower()), allocated(keys, 2, table.lower())]
    check(logged, 0, wanted)
    assert is_packed(logged) == [False, size > 1] * 4


def test_write_ids_of_transactions_with_others_between(logged: Call, once: AtOnce, was_done: Was) -> None:
    first, keys = begin(logged, 1), begin(logged, 7)
    last = notifications.current_id(logged)
    allocate(logged, first)
    was_done("allocate")
    assert allocate(logged, keys[::3]) == {keys[0]: 2, keys[3]: 3, keys[6]: 4}
    assert was_done("allocate") == (logged.database.driver.name == "postgresql" and bool(once.most_allocated))
    assert [*allocate(logged, keys).items()] == [*zip(keys, (2, 5, 6, 3, 7, 8, 4), strict=True)]
    check(logged, last, [allocated(first, 1), allocated(keys[::3], 2), allocated([*keys[1:3], *keys[4:6]], 5)])
    assert is_packed(logged)[2:] == [False, True, True]


@pytest.mark.usefixtures("once")
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
    """As servers wrote them before: short ones as JSON in either format, and long ones compressed."""
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
