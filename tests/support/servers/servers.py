"""Run `metastore serve` as a process of its own, for tests that need a real server. Never waits for a fixed time."""

from __future__ import annotations

import atexit
import json
import os
import random
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tests.support.databases.databases import Migrated
from tests.support.servers.forking import Forked, run_forked
from tests.support.servers.processes import children, niceness
from tests.support.servers.waiting import until

READY = "ready on "
COMMAND = (sys.executable, "-c", "from metastore.cli import main; main()")
ROOT = Path(__file__).parents[3]


def free_port() -> int:
    """Return a port that is free now, below the ports that the system assigns: it stays free while a server is started again."""
    while True:
        port = random.randrange(10_000, 32_000)  # below Linux's ephemeral ports
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def listens(port: int) -> bool:
    """Return whether a connection to a port of this machine is accepted."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@dataclass(frozen=True)
class Server:
    """A server that accepts calls."""

    process: subprocess.Popen[str] | Forked
    uri: str
    log: Path

    def kill(self) -> None:
        """Kill the server, and wait until its workers have ended too."""
        self.process.kill()
        self.process.wait()
        port = int(self.uri.rpartition(":")[2])
        until(lambda: not listens(port), missing="the end of its workers")

    def lines(self) -> list[dict[str, Any]]:
        """Return the log's lines. Stacks and incomplete lines are skipped."""
        return [json.loads(line) for line in self.log.read_text().splitlines() if line.startswith("{") and line.endswith("}")]

    def children(self) -> list[int]:
        """Return its processes that run: workers, jobs, compactors."""
        return children(self.process.pid)

    def compactors(self) -> list[int]:
        """Return the processes in which the server compacts: their niceness is higher than the server's."""
        usual = os.getpriority(os.PRIO_PROCESS, self.process.pid)
        return [pid for pid in self.children() if (found := niceness(pid)) is not None and found > usual]

    def logged(self, **values: Any) -> list[dict[str, Any]]:
        """Return the lines that have these values, once there is one: a call is logged after its reply is sent."""
        return until(lambda: [line for line in self.lines() if values.items() <= line.items()], missing=f"a line with {values}")


def environment(home: Path, changes: Mapping[str, str] | None = None) -> dict[str, str]:
    """The variables for a server whose data is below `home`. Of the settings in the tests' own environment only the codec is kept."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("METASTORE_") or name == "METASTORE_CODEC"}
    return {
        **inherited,
        "HOME": str(home),
        "XDG_DATA_HOME": str(home / "data"),
        "PYTHONPATH": str(ROOT),
        **(changes or {}),
    }


def run_command(
    *arguments: str, home: Path, text: str = "", variables: Mapping[str, str] | None = None, cwd: Path = ROOT
) -> subprocess.CompletedProcess[str]:
    """Run a command of `metastore`, such as `users add`, which reads a text, and return its output and its status."""
    return run_forked(arguments, environment(home, variables), cwd, text)


@cache
def _migrated() -> Migrated:
    """Return a SQLite database with the schema."""
    folder = Path(tempfile.mkdtemp(prefix="migrated-"))
    atexit.register(shutil.rmtree, folder)
    return Migrated("sqlite", f"sqlite:///{folder}/metastore.db")


def _make_schema(options: Sequence[str], home: Path) -> None:
    """Copy a database with the schema to the server's default place, unless a setting names another: it saves half of a start's CPU."""
    url = next((options[place + 1] for place, option in enumerate(options) if option == "--db"), None)
    if url is None and any(option.startswith(("--config", "db=", "data_directory=")) for option in options):
        return
    path = home / "data" / "metastore" / "metastore.db" if url is None else Path(url.removeprefix("sqlite:///"))
    if (url is None or url.startswith("sqlite:///")) and not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        _migrated().copy_to(path)


@contextmanager
def serving(
    *options: str,
    home: Path,
    command: Sequence[str] | None = None,
    variables: Mapping[str, str] | None = None,
    cwd: Path = ROOT,
    new: bool = False,
) -> Iterator[Server]:
    """Start a server on a free port, yield it when it is ready, and end it; its log is in `Server.log`.

    A SQLite database that is not there yet is a copy of one with the schema, unless it is to be `new` or there are variables.

    It is forked from a process that has imported it, unless there is a command, or variables that may affect imports. A forked server is
    slower than one started by users, since it copies shared memory as it runs: measurements use `COMMAND`.
    """
    home.mkdir(parents=True, exist_ok=True)
    number, name = tempfile.mkstemp(prefix="server-", suffix=".log", dir=home)
    arguments = ["serve", "--port", "0", *options]
    if not (command or variables or new):
        _make_schema(options, home)
    process: subprocess.Popen[str] | Forked
    with os.fdopen(number, "w") as log:
        if command is None and all(each.startswith("METASTORE_TEST_") for each in variables or ()):
            with open(os.devnull) as nothing:
                process = Forked(arguments, environment(home, variables), cwd, given=nothing, errors=log)
        else:
            process = subprocess.Popen(
                [*(command or COMMAND), *arguments],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env=environment(home, variables),
                cwd=cwd,
            )
    assert process.stdout is not None
    try:
        line = process.stdout.readline().strip()
        assert line.startswith(READY), f"the server is not ready: {line!r}\n{Path(name).read_text()[-3000:]}"
        yield Server(process, line.removeprefix(READY), Path(name))
    finally:
        process.terminate()
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
        finally:
            process.stdout.close()
