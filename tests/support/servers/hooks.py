"""Listeners that the tests load into real servers by their settings: they stop a call at a chosen point until a test releases it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from metastore.listeners import PostEventListener, TransactionalListener
from metastore.listeners.events import (
    AddPartitions,
    AlterPartitions,
    AlterTable,
    CreateDatabase,
    CreateTable,
    DropDatabase,
    DropPartitions,
    DropTable,
    Event,
)

FOLDER = "METASTORE_TEST_STOP"
"""Variable of the folder with the two pipes: the worker writes its process id to `reached`, and continues after it has read `go`."""


def pipes(folder: Path) -> None:
    for name in ("reached", "go"):
        os.mkfifo(folder / name)


def stop(event: Event) -> None:
    """Wait when the event is about an object whose name begins with `victim`, or about partitions of a table that has `victim` set.

    `doomed` in place of `victim` stops drops and alterations only.
    """
    words = ("victim",) if isinstance(event, CreateDatabase | CreateTable | AddPartitions) else ("victim", "doomed")
    name, marks = "", set[str]()
    if isinstance(event, CreateDatabase | DropDatabase):
        name = event.database.name
    elif isinstance(event, CreateTable | DropTable):
        name = event.table.tableName
    elif isinstance(event, AlterTable):
        name = event.after.tableName
    elif isinstance(event, AddPartitions | DropPartitions | AlterPartitions):
        partitions = event.after if isinstance(event, AlterPartitions) else event.partitions
        marks = {key for partition in partitions for key in partition.parameters or {}}
    if name.startswith(words) or marks.intersection(words):
        folder = Path(os.environ[FOLDER])
        (folder / "reached").write_text(f"{os.getpid()}\n")
        (folder / "go").read_text()


class StopWithin(TransactionalListener):
    """Stops a call when its rows and directories are made and nothing is committed."""

    def within(self, event: Event, session: Any) -> None:  # noqa: ARG002
        stop(event)


class StopAfter(PostEventListener):
    """Stops a call when its change is committed and the client has no reply."""

    def after(self, event: Event, error: Exception | None) -> None:  # noqa: ARG002
        stop(event)
