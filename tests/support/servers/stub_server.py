"""A server in a thread with a few handlers of its own, so that the wire is tested without a catalog."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any, cast

import pytest

from metastore import errors, idl
from metastore.config import Config
from metastore.listeners.contract import EndFunctionListener
from metastore.listeners.events import FunctionEnd
from metastore.listeners.registry import Listeners
from metastore.methods.forms.rules import Handler
from metastore.methods.operations import fb303
from metastore.service.call.context import Call, Metastore
from metastore.store.core.database import Database
from metastore.wire.connection.server import ServerThread
from metastore.wire.sockets.settings import WireSettings
from tests.support.catalog.methods import entries


class Ends(EndFunctionListener):
    """Remembers the ends of the calls."""

    def __init__(self) -> None:
        self.seen: list[FunctionEnd] = []

    def ended(self, function: FunctionEnd) -> None:
        self.seen.append(function)


class Stub:
    """The parts of a metastore that the wire uses, and the arguments that its handlers got."""

    def __init__(self) -> None:
        self.authorizer = None
        self.config = Config()
        self.database = Database("sqlite:////nowhere/metastore.db")
        self.ends = Ends()
        self.listeners = Listeners(end_function=[self.ends])
        self.replica = None
        self.seen: list[Any] = []
        self.clients: list[Any] = []
        self.entered = threading.Event()
        self.release = threading.Event()


def _raise(error: Exception) -> Handler:
    def handler(_call: Call, _args: Any) -> Any:
        raise error

    return handler


def _keep(call: Call, args: Any) -> None:
    cast(Any, call.metastore).seen.append(args)


def _fire(call: Call, args: Any) -> Any:
    _keep(call, args)
    return idl.FireEventResponse(eventIds=[])


def _get_table(call: Call, args: Any) -> Any:
    _keep(call, args)
    if args.tbl_name == "missing":
        raise errors.NoSuchObject(f"Table {args.dbname}.{args.tbl_name} is not there")
    return idl.Table(dbName=args.dbname, tableName=args.tbl_name, parameters={"k": "v"})


def _normalising(_call: Call, args: Any) -> None:
    args.database.name = args.database.name.lower()


def _wait(call: Call, _args: Any) -> list[str]:
    stub = cast(Any, call.metastore)
    stub.entered.set()
    stub.release.wait(30)
    return ["waited"]


HANDLERS = {each.name: each for each in fb303.METHODS} | entries({
    "get_table": _get_table,
    "get_table_req": lambda _call, _args: idl.GetTableResult(table=idl.Table()),
    "create_table": _keep,
    "create_database": _normalising,
    "alter_table": _raise(ValueError("a bug")),
    "get_databases": lambda _call, _args: [42],
    "get_all_databases": _wait,
    "get_role_names": lambda _call, _args: ["a=1", "a=2"],
    "allocate_table_write_ids": lambda _call, _args: idl.AllocateTableWriteIdsResponse(txnToWriteIds=[(7, 1), (8, 2)]),
    "get_partition_names": _raise(errors.MetaError("no names")),
    "get_open_txns": lambda _call, _args: idl.GetOpenTxnsResponse(txn_high_water_mark=7, open_txns=[3, 5], abortedBits=b""),
    "create_ischema": _raise(errors.NoSuchObject("no database")),
    "add_dynamic_partitions": _keep,
    "fire_listener_event": _fire,
    "get_config_value": _raise(errors.NoSuchObject("undeclared there")),
    "get_metastore_db_uuid": _raise(errors.NoSuchObject("undeclared there")),
    "heartbeat": _raise(errors.InvalidInput("undeclared, and no MetaException either")),
})  # fmt: skip


@pytest.fixture
def stub() -> Iterator[Stub]:
    stub = Stub()
    yield stub
    stub.release.set()


Start = Callable[..., ServerThread]


@pytest.fixture
def start(stub: Stub) -> Iterator[Start]:
    """Start a server with the given settings on a free port."""
    running: list[ServerThread] = []

    def start(**settings: Any) -> ServerThread:
        wire = WireSettings(**{"port": 0, "drain_timeout": 10.0, **settings})
        server = ServerThread(wire, cast(Metastore, stub), HANDLERS)
        running.append(server.__enter__())
        return server

    yield start
    stub.release.set()
    for server in running:
        server.stop()


@pytest.fixture
def server(start: Start) -> ServerThread:
    return start()


@pytest.fixture
def raw(server: ServerThread) -> Iterator[socket.socket]:
    """A bare socket to the server."""
    with socket.create_connection((server.host, server.port), 10) as sock:
        yield sock
