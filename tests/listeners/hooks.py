"""Listeners that the tests load into real servers. They write their events to the file of METASTORE_TEST_SEEN."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

from metastore.config import Config
from metastore.errors import AlreadyExists, InvalidObject, InvalidOperation, MetaError, NoSuchObject
from metastore.listeners import (
    EndFunctionListener,
    InitListener,
    PostEventListener,
    PreEventListener,
    TransactionalListener,
)
from metastore.listeners.events import Event, FunctionEnd

SEEN = "METASTORE_TEST_SEEN"
ERRORS: dict[str, Exception] = {
    "already_exists": AlreadyExists("vetoed"), "invalid_object": InvalidObject("vetoed"), "invalid_operation": InvalidOperation("vetoed"),
    "no_such_object": NoSuchObject("vetoed"), "meta": MetaError("vetoed"), "other": RuntimeError("vetoed"),
}  # fmt: skip
_LOCK = threading.Lock()


def note(*parts: object) -> None:
    with _LOCK, Path(os.environ[SEEN]).open("a") as file:
        file.write(" ".join(map(str, parts)) + "\n")


class All(InitListener, PreEventListener, TransactionalListener, PostEventListener, EndFunctionListener):
    """Notes every call of its methods."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        note("made", os.getpid())

    def started(self) -> None:
        note("started", os.getpid())

    def before(self, event: Event) -> None:
        note("before", type(event).__name__)

    def within(self, event: Event, session: Any) -> None:  # noqa: ARG002
        note("within", type(event).__name__)

    def after(self, event: Event, error: Exception | None) -> None:
        note("after", type(event).__name__, type(error).__name__, event.client.user, event.client.method, dict(event.environment))

    def ended(self, function: FunctionEnd) -> None:
        note("ended", function.client.method, function.object, function.success, type(function.error).__name__)


class Veto(PreEventListener):
    """Refuses calls for an object whose name is `veto_` and the key of an error, with that error."""

    def before(self, event: Event) -> None:
        struct = getattr(event, "table", None) or getattr(event, "database", None)
        name = getattr(struct, "tableName", None) or getattr(struct, "name", None) or ""
        if name.startswith("veto_"):
            raise ERRORS[name.removeprefix("veto_")]


class Failing(PostEventListener, EndFunctionListener):
    """Raises in every call after a change or a function."""

    def after(self, event: Event, error: Exception | None) -> None:  # noqa: ARG002
        raise RuntimeError("post-event listener is broken")

    def ended(self, function: FunctionEnd) -> None:  # noqa: ARG002
        raise RuntimeError("end-function listener is broken")


class NotStarting(InitListener):
    def started(self) -> None:
        raise RuntimeError("init listener says no")


class NotMade(InitListener):
    def __init__(self, config: Config) -> None:
        raise ValueError(f"no {config.port}")


def function(config: Config) -> All:
    return All(config)
