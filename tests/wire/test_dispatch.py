"""Calls of Thrift and queries of the console run in the same frame: both are noted, reported and remembered in the same way."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from thriftpy2.thrift import TApplicationException, TMessageType

from metastore import errors, idl
from metastore.methods.interface.signatures import signature
from metastore.service.call.context import Call, Client, Metastore
from metastore.telemetry.telemetry import Telemetry
from metastore.wire.calls.dispatch import Dispatcher
from metastore.wire.messages.protocol import Dialect, Message
from metastore.wire.sockets.settings import WireSettings
from tests.support.catalog.methods import entries
from tests.support.servers.stub_server import Stub


def _missing(_call: Call, _args: Any) -> None:
    raise errors.NoSuchObject("there is none")


def _refused(_call: Call, _args: Any) -> None:
    raise TApplicationException(0, "no other way") from errors.PermissionDenied("you may not")


HANDLERS = entries({
    "drop_database": lambda _call, _args: None,
    "get_database": lambda _call, _args: idl.Database(name="d"),
    "drop_table": _missing,
    "drop_type": _refused,
})  # fmt: skip


def call(dispatcher: Dispatcher, client: Client, method: str, way: str) -> None:
    """Call a method with no arguments, by Thrift or as the console does."""
    if way == "console":
        dispatcher.run(client, method)
    else:
        message = Message(method, TMessageType.CALL, 1, signature(method).args(), b"")
        dispatcher.record(client, dispatcher.answer(message, client, Dialect("binary", framed=False)))


@pytest.fixture
def stub() -> Stub:
    made = Stub()
    made.replica = SimpleNamespace(staleness=1000.0)  # type: ignore[assignment]
    return made


@pytest.fixture
def dispatcher(stub: Stub) -> Dispatcher:
    return Dispatcher(cast(Metastore, stub), HANDLERS, WireSettings(port=0), Telemetry())


@pytest.mark.parametrize("way", ["Thrift", "console"])
def test_a_client_reads_its_own_change_from_the_primary(dispatcher: Dispatcher, way: str) -> None:
    client = Client("127.0.0.1:1")
    call(dispatcher, client, "get_database", way)
    assert client.reads_primary_until == 0
    call(dispatcher, client, "drop_database", way)
    assert client.reads_primary_until > 0


@pytest.mark.parametrize("way", ["Thrift", "console"])
def test_a_call_that_failed_may_have_changed_something_too(dispatcher: Dispatcher, stub: Stub, way: str) -> None:
    client = Client("127.0.0.1:1")
    if way == "console":
        with pytest.raises(errors.NoSuchObject, match="there is none"):
            call(dispatcher, client, "drop_table", way)
    else:
        call(dispatcher, client, "drop_table", way)
    assert client.reads_primary_until > 0
    assert (client.calls, client.last_method, client.running) == (1, "drop_table", "")
    assert isinstance(stub.ends.seen[-1].error, errors.NoSuchObject)


def test_the_console_gets_a_refusal_as_such(dispatcher: Dispatcher, stub: Stub) -> None:
    with pytest.raises(errors.PermissionDenied, match="you may not"):
        call(dispatcher, Client("127.0.0.1:1"), "drop_type", "console")
    assert isinstance(stub.ends.seen[-1].error, errors.PermissionDenied)
