"""A call that is the last one of its method again is not walked over again, and is what it would be without a memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from thriftpy2.thrift import TPayload

from metastore import idl
from metastore.wire import protocol
from metastore.wire.memory import SHORT, Memory
from metastore.wire.outline import Outline
from metastore.wire.protocol import Dialect, Message, Unreadable, read_message, write_message
from metastore.wire.settings import WireSettings
from metastore.wire.transport import Feed
from tests.wire.test_transport import pieces

DIALECT = Dialect("binary", framed=False)
FRAMED = Dialect("binary", framed=True)
CALL, ONEWAY = 1, 4


def choose(method: str, _kind: int) -> type[TPayload]:
    cls: type[TPayload] = getattr(idl.service, f"{method}_args")
    return cls


def arguments(database: str | None, patterns: list[str] | None) -> Any:
    return idl.service.get_table_meta_args(db_patterns=database, tbl_patterns="*", tbl_types=patterns)


def message(seqid: int, body: Any, dialect: Dialect = DIALECT, kind: int = CALL) -> bytes:
    return write_message(dialect, "get_table_meta", kind, seqid, body)


def without_version(data: bytes) -> bytes:
    """Return a message as clients with an old binary protocol send it: name, type, sequence id."""
    name = 4 + 4 + len("get_table_meta")
    return data[4:name] + bytes([CALL]) + data[name:]


def ahead(data: bytes) -> Feed:
    """Return a feed in which the bytes are here already, as they are when a connection has waited for them."""
    feed = Feed(lambda _: b"")
    feed.unread(data)
    return feed


def read(feed: Feed, memory: Memory, dialect: Dialect = DIALECT) -> Message:
    return read_message(feed, dialect, WireSettings(), choose, memory)


@pytest.fixture
def walks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that grows by one for each message that is walked over."""
    walked: list[int] = []

    def walk(*args: Any) -> Outline:
        walked.append(1)
        return Outline(*args)

    monkeypatch.setattr(protocol, "Outline", walk)
    return walked


@pytest.mark.parametrize("dialect", [DIALECT, FRAMED])
def test_a_call_that_comes_again_is_walked_over_once(walks: list[int], dialect: Dialect) -> None:
    memory, body = Memory(), arguments("d", ["VIEW"])
    for seqid in (1, 2, -3):
        data = message(seqid, body, dialect)
        found = read(ahead(data), memory, dialect)
        assert (found.name, found.type, found.seqid, found.body) == ("get_table_meta", CALL, seqid, body)
        assert found.raw == message(seqid, body)
    assert len(walks) == 1


def test_what_is_done_to_its_struct_is_not_seen_in_the_next_one() -> None:
    memory = Memory()
    for _ in range(3):
        found = read(ahead(message(1, arguments("d", ["VIEW"]))), memory).body
        assert found == arguments("d", ["VIEW"])
        found.tbl_types.append("more")
        found.db_patterns = "other"


def test_another_call_of_the_method_takes_its_place(walks: list[int]) -> None:
    memory = Memory()
    for number, database in enumerate(["a", "b", "b", "a", "abc", "abc"]):
        assert read(ahead(message(number, arguments(database, None))), memory).body == arguments(database, None)
    assert len(walks) == 4


def test_calls_of_several_methods_are_remembered_beside_each_other(walks: list[int]) -> None:
    memory = Memory()
    tables = idl.service.get_all_tables_args(db_name="d")
    for seqid in range(3):
        assert read(ahead(message(seqid, arguments("d", None))), memory).body == arguments("d", None)
        assert read(ahead(write_message(DIALECT, "get_all_tables", CALL, seqid, tables)), memory).body == tables
    assert len(walks) == 2


def test_one_behind_which_the_next_one_stands_is_walked_over(walks: list[int]) -> None:
    memory, body = Memory(), arguments("d", None)
    data = message(1, body)
    read(ahead(data), memory)
    feed = ahead(data + data)
    assert [read(feed, memory).body for _ in range(2)] == [body, body]
    assert len(walks) == 2  # the first one, and the one before another; the last one is alone again
    assert not feed.pending


@pytest.mark.parametrize("here", [1, 8, 12, len("get_table_meta") + 8, len("get_table_meta") + 12, -1])
def test_one_that_is_not_here_wholly_is_waited_for(here: int) -> None:
    memory, body = Memory(), arguments("d", ["VIEW"])
    data = message(1, body)
    read(ahead(data), memory)
    rest = iter([data[here:]])
    feed = Feed(lambda _: next(rest, b""))
    feed.unread(data[:here])
    assert read(feed, memory).body == body


def test_one_with_another_end_is_refused_as_ever() -> None:
    memory = Memory()
    data = message(1, arguments("d", ["VIEW"]))
    read(ahead(data), memory)
    bad = data.replace((1).to_bytes(4, "big") + (4).to_bytes(4, "big") + b"VIEW", (-1).to_bytes(4, "big", signed=True) + b"\0\0\0\4VIEW")
    assert bad != data
    with pytest.raises(Unreadable, match="-1 elements"):
        read(ahead(bad), memory)


def test_text_that_is_no_utf_8_is_noted_each_time() -> None:
    memory = Memory()
    data = message(1, arguments("database", None)).replace(b"database", b"data\xffase")
    assert [read(ahead(data), memory).invalid_text for _ in range(3)] == ["get_table_meta_args.db_patterns"] * 3


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(lambda: message(1, arguments("d" * SHORT, None)), id="long"),
        pytest.param(lambda: message(1, arguments("d", None), kind=ONEWAY), id="oneway"),
        pytest.param(lambda: without_version(message(1, arguments("d", None))), id="no version"),
    ],
)  # fmt: skip
def test_others_are_not_remembered(walks: list[int], sent: Callable[[], bytes]) -> None:
    memory, data = Memory(), sent()
    first = read(ahead(data), memory)
    assert read(ahead(data), memory) == first
    assert first.name == "get_table_meta"
    assert len(walks) == 2


BODIES = st.builds(arguments, st.sampled_from(["", "d", "e", "a longer name"]), st.sampled_from([None, [], ["VIEW"], ["TABLE", "VIEW"]]))


@given(
    bodies=st.lists(st.tuples(BODIES, st.integers(-5, 5)), min_size=1, max_size=12), framed=st.booleans(),
    sizes=st.lists(st.sampled_from([1, 7, 30, 60, 100, 10_000]), min_size=1, max_size=4),
)  # fmt: skip
def test_messages_are_what_they_are_without_a_memory(bodies: list[tuple[Any, int]], framed: bool, sizes: list[int]) -> None:
    dialect, memory = Dialect("binary", framed), Memory()
    encoded = [message(seqid, body, dialect) for body, seqid in bodies]
    cut, whole = pieces(b"".join(encoded), sizes), Memory()
    for data, (body, seqid) in zip(encoded, bodies, strict=True):
        for found in (read(cut, memory, dialect), read(ahead(data), whole, dialect)):
            assert (found.name, found.seqid, found.body) == ("get_table_meta", seqid, body)
