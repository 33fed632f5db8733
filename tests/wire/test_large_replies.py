"""Lists that are longer than a page are sent page by page: what comes is what a list would be, and little memory is held."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from thriftpy2.thrift import TApplicationException, TMessageType

from metastore import idl
from metastore.app import build, close
from metastore.client import Client, connect
from metastore.config import Config
from metastore.service import partitions
from metastore.service.catalogs import create_startup_objects
from metastore.service.context import Call
from metastore.service.long_lists import LongList, Taker
from metastore.service.names import TableName
from metastore.service.tables import drop_table
from metastore.store import partitions as rows
from metastore.store import schema
from metastore.wire import large_replies
from metastore.wire.protocol import Dialect, write_message
from metastore.wire.server import ServerThread
from metastore.wire.settings import WireSettings
from tests.support.catalog import add_partitions, call_of, make_table

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


@pytest.fixture
def server(call: Call) -> Iterator[ServerThread]:
    with ServerThread(WireSettings(port=0), call.metastore) as started:
        yield started


def paged(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(partitions, "PAGE", size)
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
        assert client.get_partitions("default", "t", 5) == expected[:5]
        assert client.getStatus() == 2  # the next message begins where the reply ended
    assert len(expected) == COUNT


def test_all_pages_are_of_one_snapshot(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    paged(monkeypatch, 10)
    found = partitions.get_partitions_in_pages(call, T)
    assert isinstance(found, LongList)
    seen: list[str] = []

    class Changing:
        def begin(self) -> None:
            seen.clear()

        def take(self, page: list[Any]) -> None:
            seen.extend(each.values[0] for each in page)
            if len(page) == 10:
                add_partitions(call, T, [[f"9{len(seen)}"]])

    found.read(Changing())
    assert seen == [f"{number:02d}" for number in range(COUNT)]
    assert len(partitions.get_partitions(call, T)) == COUNT + 3


def test_pages_that_are_read_anew_replace_those_that_were_taken() -> None:
    def encode(page: list[Any]) -> bytes:
        result = idl.service.get_all_tables_result(success=page)
        return write_message(Dialect("binary", framed=False), "get_all_tables", TMessageType.REPLY, 7, result)

    def read(taker: Taker) -> None:
        for first in ("x", "a"):  # as where a conflict lets the reading begin again
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

    def broken(session: Any, table: Any, after: str, size: int) -> Any:
        if after:
            raise RuntimeError("the second page")
        return page(session, table, after, size)

    monkeypatch.setattr(rows, "page", broken)
    with connect(server.uri) as client:
        with pytest.raises(idl.MetaException, match="the second page"):
            client.get_partitions("default", "t", -1)
        assert client.getStatus() == 2


def test_a_table_that_is_dropped_before_its_pages_are_read_is_missing(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    paged(monkeypatch, 10)
    found = partitions.get_partitions_in_pages(call, T)
    assert isinstance(found, LongList)
    drop_table(call, T, delete_data=False)
    reply = large_replies.LargeReply("binary", lambda _: b"", framed=False)
    with pytest.raises(Exception, match="table not found"):
        found.read(reply)


def test_partitions_that_all_go_before_their_pages_are_read_are_none(
    server: ServerThread, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    paged(monkeypatch, 10)
    listing = rows.listing

    def then_dropped(*args: Any) -> Any:
        found = listing(*args)
        database = call.database
        database.write(lambda session: session.execute(sa.delete(schema.partitions)))
        return found

    monkeypatch.setattr(rows, "listing", then_dropped)
    with connect(server.uri) as client:
        assert client.get_partitions("default", "t", -1) == []
        assert client.getStatus() == 2


def test_what_is_too_long_for_a_frame_is_told(server: ServerThread, monkeypatch: pytest.MonkeyPatch) -> None:
    paged(monkeypatch, 10)
    monkeypatch.setattr(large_replies, "MAX_FRAME", 5000)

    def ask(client: Client) -> int:
        return len(client.get_partitions("default", "t", -1))

    with connect(server.uri, framed=True) as client, pytest.raises(TApplicationException, match="too long for a frame"):
        ask(client)
    with connect(server.uri) as client:
        assert ask(client) == COUNT
