"""Listeners that the tests load into real servers by their settings: they stop a call at a chosen point until it is let go."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from metastore.listeners import PostEventListener, TransactionalListener
from metastore.listeners.events import AddPartitions, AlterPartitions, AlterTable, CreateDatabase, CreateTable, Event

FOLDER = "METASTORE_TEST_STOP"
"""Variable of the folder with the two pipes: `reached` gets the worker's process id, `go` lets it go on."""


def pipes(folder: Path) -> None:
    for name in ("reached", "go"):
        os.mkfifo(folder / name)


def stop(event: Event) -> None:
    """Wait when the event is about an object whose name begins with `victim`, or about partitions of a table that has `victim` set."""
    name, marked = "", False
    if isinstance(event, CreateDatabase):
        name = event.database.name
    elif isinstance(event, CreateTable):
        name = event.table.tableName
    elif isinstance(event, AlterTable):
        name = event.after.tableName
    elif isinstance(event, AddPartitions | AlterPartitions):
        marked = any("victim" in (partition.parameters or {}) for partition in getattr(event, "partitions", None) or event.after)  # type: ignore[union-attr]
    if name.startswith("victim") or marked:
        folder = Path(os.environ[FOLDER])
        (folder / "reached").write_text(f"{os.getpid()}\n")
        (folder / "go").read_text()


class StopWithin(TransactionalListener):
    """Stops when rows and directories are made and nothing is committed."""

    def within(self, event: Event, session: Any) -> None:  # noqa: ARG002
        stop(event)


class StopAfter(PostEventListener):
    """Stops when the change is committed and the client does not know."""

    def after(self, event: Event, error: Exception | None) -> None:  # noqa: ARG002
        stop(event)
