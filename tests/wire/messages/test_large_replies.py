"""Lists longer than a page are sent page by page: the client gets the same bytes as for a list, and the server holds little memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from thriftpy2.thrift import TApplicationException, TMessageType

from metastore import idl
from metastore.app import build, close
from metastore.client import Client, connect
from metastore.config import Config
from metastore.errors import MetaError, RequestTooLarge
from metastore.service.call.context import Call
from metastore.service.call.long_lists import LongList, Taker
from metastore.service.call.names import TableName
from metastore.service.catalog.catalogs import create_startup_objects
from metastore.service.catalog.partitions import expressions, partition_queries, partitions
from metastore.service.catalog.partitions.expressions import Dropped
from metastore.service.catalog.tables.tables import drop_table
from metastore.store.catalog.partitions import partitions as rows
from metastore.store.schema import model as schema
from metastore.wire.connection.server import ServerThread
from metastore.wire.messages import large_replies
from metastore.wire.messages.protocol import Dialect, write_message
from metastore.wire.sockets.settings import WireSettings
from tests.support.catalog.catalog import add_partitions, call_of, make_table

pytestmark = pytest.mark.on_one_database

COUNT = 37
T = TableName("hive", "default", "t")


@pytest.fixture
def call(database_url: str, tmp_path: Path) -> Iterator[Call]:
    metastore = build(Config(db=database_url, warehouse=str(tmp_path / "warehouse"), data_directory=str(tmp_path / "data")))
    create_startup_objects(metastore)
    made = call_of(metastore)
    add_partitions(made, make_table(made, "t", keys=[("k", "string")]), [[f"{number:02d}"] for number in range(COUNT)])
    yield made
    close(metastore)


class Taken:
    """Takes pages into a list."""

    def __init__(self, into: list[Any]) -> None:
        self._into = into

    def begin(self) -> None:
        self._into.clear()

    def take(self, page: list[Any]) -> None:
        self._into.extend(page)


@pytest.fixture
def server(call: Call) -> Iterator[ServerThread]:
    with ServerThread(WireSettings(port=0), call.metastore) as started:
        yield started


def paged(monkeypatch: pytest.MonkeyPatch, size: int, at_once: int | None = None) -> None:
    monkeypatch.setattr(partition_queries, "PAGE", size)
    monkeypatch.setattr(partition_queries, "AT_ONCE", at_once or size)
    monkeypatch.setattr(large_replies, "BLOCK", 1000)


@pytest.mark.parametrize("size", [1, 10, 36, 37, 38])
@pytest.mark.parametrize(
    ("framed", "protocol", "http"), [(False, "binary", False), (True, "binary", False), (False, "compact", False), (False, "binary", True)]
)
def test_a_paged_list_is_the_list(
    server: ServerThread, size: int, framed: bool, protocol: str, http: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri = server.uri.replace("thrift://", "http://") + "/metastore" if http else server.uri
    with connect(uri, **({} if http else {"framed": framed, "protocol": protocol})) as client:
        expected = client.get_partitions("default", "t", -1)
        paged(monkeypatch, size)
        assert client.get_partitions("default", "t", -1) == expected
        for limit in (0, 5, 36, 38):
            assert client.get_partitions("default", "t", limit) == expected[:limit]
        assert client.getStatus() == 2  # the next message begins where the reply ended
    assert len(expected) == COUNT


WHERE = {"db_name": "default", "tbl_name": "two"}
REQUEST = {"dbName": "default", "tblName": "two"}
UNCERTAIN = {**REQUEST, "expr": b"n > 7", "maxParts": -1}
CERTAIN = {**REQUEST, "expr": b"n > 7 and k < 'm'", "maxParts": -1}
LISTINGS: dict[str, tuple[str, dict[str, Any]]] = {
    "of a principal": ("get_partitions_with_auth", {**WHERE, "max_parts": -1, "user_name": "a", "group_names": []}),
    "any values": ("get_partitions_ps_with_auth", {**WHERE, "part_vals": ["", ""], "max_parts": -1, "user_name": "a", "group_names": []}),
    "by the first key": ("get_partitions_ps", {**WHERE, "part_vals": ["b", ""], "max_parts": -1}),
    "by the second key": ("get_partitions_ps", {**WHERE, "part_vals": ["", "7"], "max_parts": -1}),
    "by filter": ("get_partitions_by_filter", {**WHERE, "filter": "n > 7", "max_parts": -1}),
    "by filter, with a limit": ("get_partitions_by_filter", {**WHERE, "filter": "n > 7", "max_parts": 11}),
    "by filter, in two ranges": ("get_partitions_by_filter", {**WHERE, "filter": "k = 'c' or k = 'a'", "max_parts": -1}),
    "by filter, none": ("get_partitions_by_filter", {**WHERE, "filter": "n = 99 and k < 'm'", "max_parts": -1}),
    "request": ("get_partitions_req", {"req": idl.PartitionsRequest(**REQUEST)}),
    "request without columns": ("get_partitions_req", {"req": idl.PartitionsRequest(**REQUEST, skipColumnSchemaForPartition=True)}),
    "request without parameters": ("get_partitions_req", {"req": idl.PartitionsRequest(**REQUEST, excludeParamKeyPattern="%")}),
    "request by filter": ("get_partitions_by_filter_req", {"req": idl.GetPartitionsByFilterRequest(**REQUEST, filter="n > 7")}),
    "request by values": ("get_partitions_ps_with_auth_req", {"req": idl.GetPartitionsPsWithAuthRequest(**REQUEST, partVals=["a"])}),
    "by expression": ("get_partitions_by_expr", {"req": idl.PartitionsByExprRequest(**CERTAIN)}),
    "by expression, not certain": ("get_partitions_by_expr", {"req": idl.PartitionsByExprRequest(**UNCERTAIN)}),
    "specs by expression": ("get_partitions_spec_by_expr", {"req": idl.PartitionsByExprRequest(**UNCERTAIN)}),
    "specs": ("get_partitions_pspec", {**WHERE, "max_parts": -1}),
    "specs by filter": ("get_part_specs_by_filter", {**WHERE, "filter": "n > 7", "max_parts": -1}),
}
FACTS: dict[str, tuple[str, dict[str, Any]]] = {
    "number": ("get_num_partitions_by_filter", {**WHERE, "filter": "n > 7"}),
    "names": ("get_partition_names_req", {"req": idl.PartitionsByExprRequest(**UNCERTAIN, order="1,0:-+")}),
    "values": (
        "get_partition_values",
        {"request": idl.PartitionValuesRequest(**REQUEST, partitionKeys=[idl.FieldSchema("n", "int")], filter="n > 7")},
    ),
}


@pytest.fixture
def two_keys(call: Call) -> None:
    """A table of 37 partitions. No filter on `n` can decide whether the last one passes."""
    name = make_table(call, "two", keys=[("k", "string"), ("n", "int")])
    add_partitions(call, name, [*([key, str(number)] for key in "abc" for number in range(12)), ["z", "x"]])


@pytest.fixture
def sent_in_pages(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The protocols of the replies that were made of pages."""
    made: list[str] = []

    class Noted(large_replies.LargeReply):
        def __init__(self, protocol: str, *args: Any, **more: Any) -> None:
            made.append(protocol)
            super().__init__(protocol, *args, **more)

    monkeypatch.setattr(large_replies, "LargeReply", Noted)
    return made


@pytest.mark.parametrize("protocol", ["binary", "compact"])
@pytest.mark.parametrize("listing", LISTINGS)
@pytest.mark.usefixtures("two_keys")
def test_every_listing_of_partitions_is_paged(
    server: ServerThread, listing: str, protocol: str, sent_in_pages: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    method, arguments = LISTINGS[listing]
    with connect(server.uri, protocol=protocol) as client:
        expected = getattr(client, method)(*arguments.values())
        assert not sent_in_pages
        paged(monkeypatch, 5)
        assert getattr(client, method)(*arguments.values()) == expected
        assert sent_in_pages == [protocol]
    if method.endswith("_by_expr"):
        assert expected.hasUnknownPartitions == (b"k < 'm'" not in arguments["req"].expr)


@pytest.mark.parametrize(("at_once", "is_paged"), [(COUNT, False), (COUNT - 1, True)])
@pytest.mark.usefixtures("two_keys")
def test_rows_that_are_not_too_many_are_read_at_once(
    server: ServerThread, at_once: int, is_paged: bool, sent_in_pages: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with connect(server.uri) as client:
        expected = client.get_partitions_by_filter("default", "two", "n > 7", -1)
        paged(monkeypatch, 5, at_once)
        assert client.get_partitions_by_filter("default", "two", "n > 7", -1) == expected
    assert bool(sent_in_pages) == is_paged


@pytest.mark.parametrize("kind", FACTS)
@pytest.mark.usefixtures("two_keys")
def test_facts_are_gathered_page_by_page(server: ServerThread, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    method, arguments = FACTS[kind]
    with connect(server.uri) as client:
        expected = getattr(client, method)(*arguments.values())
        paged(monkeypatch, 5)
        assert getattr(client, method)(*arguments.values()) == expected


@pytest.mark.usefixtures("two_keys")
def test_partitions_that_expressions_select_on_many_pages_are_dropped(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    paged(monkeypatch, 5)
    name = TableName("hive", "default", "two")
    with pytest.raises(MetaError, match="Unexpected unknown partitions to drop"):
        expressions.drop_partitions_by_expressions(call, name, [Dropped(UNCERTAIN["expr"])], delete_data=False, if_exists=False)
    dropped = expressions.drop_partitions_by_expressions(call, name, [Dropped(CERTAIN["expr"])], delete_data=False, if_exists=False)
    assert len(dropped) == 12
    assert len(partitions.get_partition_names(call, name)) == 25


def test_more_than_the_settings_allow_is_refused_between_pages(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    call = call_of(replace(call.metastore, config=replace(call.config, limit_partition_request=20)))
    paged(monkeypatch, 5)
    found = partitions.get_partitions_in_pages(call, T, partitions.by_filter("k > '09'")).items
    assert isinstance(found, LongList)
    taken: list[Any] = []
    with pytest.raises(RequestTooLarge, match=r"\(=25\) on table 't' exceeds limit \(=20\)"):
        found.read(Taken(taken))
    assert len(partitions.get_partitions(call, T, partitions.by_filter("k > '20'"))) == 16


def test_all_pages_are_of_one_snapshot(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    paged(monkeypatch, 10)
    found = partitions.get_partitions_in_pages(call, T, partitions.EVERY).items
    assert isinstance(found, LongList)
    taken: list[Any] = []

    class Changing(Taken):
        def take(self, page: list[Any]) -> None:
            super().take(page)
            if len(page) == 10:
                add_partitions(call, T, [[f"9{len(taken)}"]])

    found.read(Changing(taken))
    assert [each.values[0] for each in taken] == [f"{number:02d}" for number in range(COUNT)]
    assert len(partitions.get_partitions(call, T)) == COUNT + 3


def test_pages_that_are_read_again_replace_the_earlier_ones() -> None:
    def encode(page: list[Any]) -> bytes:
        result = idl.service.get_all_tables_result(success=page)
        return write_message(Dialect("binary", framed=False), "get_all_tables", TMessageType.REPLY, 7, result)

    def read(taker: Taker) -> None:
        for first in ("x", "a"):  # reads again from the beginning, as after a conflict
            taker.begin()
            taker.take([first] * 3)
            taker.take(["b"])

    reply = large_replies.encoded(LongList(read), "binary", encode, framed=False)
    size = len(reply)
    sent = b"".join(reply.blocks())
    assert sent == encode(["a", "a", "a", "b"])
    assert len(sent) == size == len(reply)


def test_an_error_between_pages_is_an_answer(server: ServerThread, monkeypatch: pytest.MonkeyPatch) -> None:
    paged(monkeypatch, 10)
    page = rows.page

    def broken(session: Any, table: Any, prefix: str, after: str, size: int) -> Any:
        if after:
            raise RuntimeError("the second page")
        return page(session, table, prefix, after, size)

    monkeypatch.setattr(rows, "page", broken)
    with connect(server.uri) as client:
        with pytest.raises(idl.MetaException, match="the second page"):
            client.get_partitions("default", "t", -1)
        assert client.getStatus() == 2


def test_a_table_that_is_dropped_before_its_pages_are_read_is_missing(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    paged(monkeypatch, 10)
    found = partitions.get_partitions_in_pages(call, T, partitions.EVERY).items
    assert isinstance(found, LongList)
    drop_table(call, T, delete_data=False)
    reply = large_replies.LargeReply("binary", lambda _: b"", framed=False)
    with pytest.raises(Exception, match="table not found"):
        found.read(reply)


def test_partitions_that_all_go_before_their_pages_are_read_are_none(
    server: ServerThread, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    paged(monkeypatch, 10)
    page = rows.page

    def then_dropped(*args: Any) -> Any:
        found = page(*args)
        database = call.database
        database.write(lambda session: session.execute(sa.delete(schema.partitions)))
        return found

    monkeypatch.setattr(rows, "page", then_dropped)
    with connect(server.uri) as client:
        assert client.get_partitions("default", "t", -1) == []
        assert client.getStatus() == 2


def test_a_reply_that_is_too_long_for_a_frame_is_an_error(server: ServerThread, monkeypatch: pytest.MonkeyPatch) -> None:
    paged(monkeypatch, 10)
    monkeypatch.setattr(large_replies, "MAX_FRAME", 5000)

    def ask(client: Client) -> int:
        return len(client.get_partitions("default", "t", -1))

    with connect(server.uri, framed=True) as client, pytest.raises(TApplicationException, match="too long for a frame"):
        ask(client)
    with connect(server.uri) as client:
        assert ask(client) == COUNT
