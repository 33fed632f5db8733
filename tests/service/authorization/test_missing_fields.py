"""A request without some of its fields is refused, or its object is hidden: no caller gets an error of Python's own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs
from thriftpy2.thrift import TApplicationException, TException, TMessageType

from metastore.app import build, close
from metastore.config import Config
from metastore.errors import MetastoreError
from metastore.listeners import Listeners
from metastore.methods import METHODS
from metastore.service.call.context import Client, Metastore
from metastore.service.catalog.catalogs import create_startup_objects
from metastore.store.core import migrate
from metastore.telemetry.telemetry import Telemetry
from metastore.wire.calls.dispatch import Dispatcher
from metastore.wire.messages.protocol import Message, write_message
from metastore.wire.sockets.settings import WireSettings
from tests.methods.test_missing_fields import BINARY, Ends, arguments
from tests.support.catalog.catalog import add_partitions, call_of, make_table


@pytest.fixture(scope="module")
def metastore(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Metastore]:
    folder: Path = tmp_path_factory.mktemp("missing")
    config = Config(
        db=f"sqlite:///{folder}/metastore.db",
        warehouse=str(folder / "warehouse"),
        data_directory=str(folder / "data"),
        authorization="grants",
    )
    made = build(config, Listeners(end_function=[Ends()]))
    migrate.upgrade(made.database)
    create_startup_objects(made)
    add_partitions(call_of(made), make_table(call_of(made), "t", keys=[("k", "string")]), [["k"]])
    yield made
    close(made)


@pytest.mark.parametrize("method", sorted(METHODS))
def test_a_caller_without_rights_gets_an_error_in_words(metastore: Metastore, method: str) -> None:
    dispatcher = Dispatcher(metastore, METHODS, WireSettings(port=0), Telemetry())
    (ends,) = metastore.listeners.end
    assert isinstance(ends, Ends)
    wrong = []
    for what, args in arguments(method):
        for user in ("alice", "bob", None):  # the owner of the table, somebody, and nobody
            ends.error = None
            raw = write_message(BINARY, method, TMessageType.CALL, 1, args) if METHODS[method].old_request is not None else b""
            with capture_logs():
                dispatcher.answer(Message(method, TMessageType.CALL, 1, args, raw), Client("127.0.0.1:1", user=user), BINARY)
            error = ends.error
            text = str(error.message) if isinstance(error, TApplicationException) else str(error)
            if not isinstance(error, MetastoreError | TException | None) or "'NoneType'" in text:
                wrong.append(f"{what} of {user}: {error!r}")
    assert not wrong
