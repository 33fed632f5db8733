"""A metastore for the tests of other projects: with pytest the fixture `metastore_server`, elsewhere `with serving() as server`.

The server is a process of its own on SQLite, with a warehouse in a directory that is deleted with it. Nothing of the server is imported
here.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from metastore.client import Client

_READY = "ready on "
_SECONDS_TO_END = 30


@dataclass(frozen=True)
class RunningServer:
    """A server that accepts calls."""

    uri: str
    """Its address, `thrift://127.0.0.1:PORT`: Spark's `hive.metastore.uris`, Trino's `hive.metastore.uri`, PyIceberg's `uri`."""
    warehouse: Path
    """The directory of the databases and tables."""
    log: Path
    """The file of its log, a line of JSON for each call that changes something or fails."""

    def connect(self) -> Client:
        """Return a client, which the caller has to close."""
        from metastore.client import connect

        return connect(self.uri)


@contextmanager
def serving(directory: Path | str | None = None, **settings: object) -> Iterator[RunningServer]:
    """Start a server, yield it when it is ready, and end it.

    `directory` keeps its database, warehouse and log; without one they are deleted with the server. `settings` are the server's by name
    (`docs/settings.md`), such as `authorization="grants"`. Raises RuntimeError with the log's end if it does not start.
    """
    home = Path(tempfile.mkdtemp(prefix="metastore-") if directory is None else directory)
    home.mkdir(parents=True, exist_ok=True)
    try:
        yield from _run(home, settings)
    finally:
        if directory is None:
            shutil.rmtree(home, ignore_errors=True)


def _run(home: Path, settings: dict[str, object]) -> Iterator[RunningServer]:
    log, warehouse = home / "server.log", home / "warehouse"
    fixed: dict[str, object] = {"db": f"sqlite:///{home / 'metastore.db'}", "warehouse": warehouse, "data_directory": home / "data"}
    options = [part for name, value in {**fixed, **settings}.items() for part in ("--set", f"{name}={_text(value)}")]
    command = [sys.executable, "-c", "from metastore.cli import main; main()", "serve", "--host", "127.0.0.1", "--port", "0", *options]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("METASTORE_")}
    with log.open("w") as written:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=written, text=True, env=environment, cwd=home)  # noqa: S603  # our own command
    assert process.stdout is not None
    try:
        line = process.stdout.readline().strip()
        if not line.startswith(_READY):
            raise RuntimeError(f"The metastore did not start; its log ends with:\n{log.read_text()[-3000:]}")
        yield RunningServer(line.removeprefix(_READY), warehouse, log)
    finally:
        process.terminate()
        try:
            process.wait(_SECONDS_TO_END)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()


def _text(value: object) -> str:
    """Return a setting as the command line takes it."""
    if isinstance(value, (list, tuple)):
        return ",".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(value)
