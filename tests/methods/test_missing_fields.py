"""A client may leave out any field, or send bytes that are not text. The errors of all methods describe that in words."""

from __future__ import annotations

import io
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs
from thriftpy2.thrift import TApplicationException, TException, TMessageType, TType

from metastore import idl
from metastore.app import build, close
from metastore.config import Config
from metastore.errors import MetastoreError
from metastore.listeners import EndFunctionListener, Listeners
from metastore.listeners.events import FunctionEnd
from metastore.methods import METHODS
from metastore.methods.interface.signatures import signature
from metastore.service.call.context import Client, Metastore
from metastore.service.catalog.catalogs import create_startup_objects
from metastore.store.core import migrate
from metastore.telemetry.telemetry import Telemetry
from metastore.wire.calls.dispatch import Dispatcher
from metastore.wire.messages.protocol import Dialect, Message, read_message, write_message
from metastore.wire.sockets.settings import WireSettings
from metastore.wire.sockets.transport import Feed
from tests.support.catalog.catalog import add_partitions, call_of, make_table

TEXTS = {
    **dict.fromkeys(("dbname", "db_name", "dbName", "databaseName"), "default"), **dict.fromkeys(("tbl_name", "tblName", "tableName"), "t"),
    **dict.fromkeys(("catName", "catalogName", "cat_name"), "hive"), "name": "x", "type": "int", "colType": "int",
}  # fmt: skip
DEPTH = 5
BINARY = Dialect("binary", framed=False)
Skipped = tuple[str, str]


class Ends(EndFunctionListener):
    """Keeps the error of the last call, None if it succeeded."""

    def __init__(self) -> None:
        super().__init__(Config())
        self.error: Exception | None = None

    def ended(self, function: FunctionEnd) -> None:
        self.error = function.error


@pytest.fixture(scope="module")
def metastore(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Metastore]:
    folder: Path = tmp_path_factory.mktemp("missing")
    config = Config(db=f"sqlite:///{folder}/metastore.db", warehouse=str(folder / "warehouse"), data_directory=str(folder / "data"))
    made = build(config, Listeners(end_function=[Ends()]))
    migrate.upgrade(made.database)
    create_startup_objects(made)
    add_partitions(call_of(made), make_table(call_of(made), "t", keys=[("k", "string")]), [["k"]])
    yield made
    close(made)


def filled(kind: int, extra: Any, name: str, depth: int, skipped: Skipped | None) -> Any:
    """Return a value of a field, with structs down to a depth."""
    if kind == TType.STRUCT:
        return struct(extra, depth - 1, skipped) if depth > 0 else extra()
    if kind in (TType.LIST, TType.SET):
        inner, more = extra if isinstance(extra, tuple) else (extra, None)
        return [filled(inner, more, name, depth, skipped)]
    if kind == TType.MAP:
        key, value = (each if isinstance(each, tuple) else (each, None) for each in extra)
        if key[0] == TType.LIST:
            return {}
        return {filled(key[0], key[1], "key", depth, skipped): filled(value[0], value[1], name, depth, skipped)}
    return {TType.STRING: TEXTS.get(name, "k"), TType.BINARY: b"k", TType.BOOL: True, TType.DOUBLE: 1.0}.get(kind, 1)


def struct(cls: Any, depth: int, skipped: Skipped | None) -> Any:
    """Return a struct with all fields except the skipped one, which is the name of a class and of its field."""
    out = cls()
    for field in cls.thrift_spec.values():
        if (cls.__name__, field[1]) != skipped:
            setattr(out, field[1], filled(field[0], field[2] if len(field) == 4 else None, field[1], depth, skipped))
    return out


@cache
def inner_classes(cls: Any) -> tuple[Any, ...]:
    """Return the structs that fields of a struct hold."""
    out, left = [], [field[2] for field in cls.thrift_spec.values()]
    while left:
        each = left.pop()
        if isinstance(each, tuple):
            left.extend(each)
        elif hasattr(each, "thrift_spec"):
            out.append(each)
    return tuple(out)


def reachable(cls: Any, depth: int) -> set[Any]:
    return {cls} if depth == 0 else {cls}.union(*(reachable(each, depth - 1) for each in inner_classes(cls)))


def arguments(method: str) -> Iterator[tuple[str, Any]]:
    """Yield a method's argument struct with a text about it: empty, filled to several depths, and complete except for one field."""
    cls = getattr(idl.service, f"{method}_args")
    yield "nothing", cls()
    for depth in range(3):
        yield f"{depth} levels", struct(cls, depth, None)
    for each in sorted(reachable(cls, 4), key=lambda each: str(each.__name__)):
        for field in each.thrift_spec.values():
            yield f"all but {each.__name__}.{field[1]}", struct(cls, DEPTH, (each.__name__, field[1]))


@pytest.mark.parametrize("method", sorted(METHODS))
def test_every_missing_field_is_reported_in_words(metastore: Metastore, method: str) -> None:
    dispatcher = Dispatcher(metastore, METHODS, WireSettings(port=0), Telemetry())
    (ends,) = metastore.listeners.end
    assert isinstance(ends, Ends)
    wrong = []
    empty = write_message(BINARY, method, TMessageType.REPLY, 1, signature(method).result())
    for what, args in arguments(method):
        ends.error = None
        raw = write_message(BINARY, method, TMessageType.CALL, 1, args) if METHODS[method].old_request is not None else b""
        message = Message(method, TMessageType.CALL, 1, args, raw)
        with capture_logs():
            outcome = dispatcher.answer(message, Client("127.0.0.1:1", user="alice"), BINARY)
        error = ends.error
        text = str(error)
        if isinstance(error, TApplicationException):
            text = str(error.message)
            if text == f"Internal error processing {method}":
                wrong.append(f"{what}: {error.__cause__!r}")
        if signature(method).returns and outcome.reply == empty:
            wrong.append(f"{what}: an empty result")
        if not isinstance(error, MetastoreError | TException | None) or "'NoneType'" in text:
            wrong.append(f"{what}: {error!r}")
    assert not wrong


MARK = "no_UTF_8_"
"""The mark in place of a text whose bytes are then made invalid UTF-8."""


def marked(value: Any, path: str) -> Iterator[str]:
    """Put the mark in place of each text below a value in turn. Yield the path of each while the mark is there."""
    if isinstance(value, dict):
        for key in [key for key in value if isinstance(key, str)]:
            value[MARK] = value.pop(key)
            yield f"{path}.key"
            value[key] = value.pop(MARK)
        places: Any = list(value)
    elif isinstance(value, list):
        places = range(len(value))
    else:
        value, places = value.__dict__, list(value.__dict__)
    for place in places:
        inner = value[place]
        if isinstance(inner, str):
            value[place] = MARK
            yield f"{path}.{place}"
            value[place] = inner
        elif isinstance(inner, list | dict) or hasattr(inner, "thrift_spec"):
            yield from marked(inner, f"{path}.{place}")


@pytest.mark.parametrize("method", sorted(METHODS))
def test_text_that_is_no_utf_8_is_refused_wherever_it_stands(metastore: Metastore, method: str) -> None:
    dispatcher = Dispatcher(metastore, METHODS, WireSettings(port=0), Telemetry())
    (ends,) = metastore.listeners.end
    assert isinstance(ends, Ends)
    called = signature(method)
    args, wrong = struct(called.args, 3, None), list[str]()
    for path in marked(args, method):
        raw = write_message(BINARY, method, TMessageType.CALL, 1, args).replace(MARK.encode(), b"\xff\xfe" + MARK[2:].encode())
        message = read_message(Feed(io.BytesIO(raw).read), BINARY, WireSettings(port=0), lambda *_: called.args)
        ends.error = None
        with capture_logs():
            reply = dispatcher.answer(message, Client("127.0.0.1:1", user="alice"), BINARY).reply
        shown = str(getattr(ends.error, "message", ""))
        if "is not UTF-8; send text as UTF-8" not in shown or (reply is not None and b"is not UTF-8" not in reply):
            wrong.append(f"{path}: {ends.error!r}, {reply!r}")
    assert not wrong
