"""Fork commands from a process that has imported the server: imports are four fifths of the CPU of a start, and tests start hundreds.

That process, one for each that runs tests, only imports and forks. After the fork `metastore` runs as if it had been started alone. A
process between the two waits for the command's end and reports it.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import IO, Any

IMPORTED = (
    "metastore.cli.common.options",
    "metastore.app",
    "metastore.store.core.all_tables",
    "metastore.telemetry.telemetry",
    "metastore.wire.connection.server",
    "metastore.wire.connection.worker",
    "alembic.config",
    "alembic.command",
    "pydantic.type_adapter",  # with which typer reads arguments
)
"""Modules whose imports are exactly the modules that every server imports at its start."""
PROGRAM = "from tests.support.servers.forking import run, until_forked; until_forked({number}); run()"


class Forked:
    """A command with the interface of `subprocess.Popen`. It is not a child of this process."""

    def __init__(self, arguments: Sequence[str], environment: Mapping[str, str], folder: Path, *, given: IO[Any], errors: IO[Any]) -> None:
        """Start a command in a folder. It reads `given` and writes its errors to `errors`."""
        self.args = arguments
        self.returncode: int | None = None
        read, written = os.pipe()
        self.stdout = os.fdopen(read)
        self._reports, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        request = json.dumps([list(arguments), dict(environment), str(folder)]).encode()
        with other:
            socket.send_fds(_parent(), [request], [given.fileno(), written, errors.fileno(), other.fileno()])
            os.close(written)
        answer = self._reports.recv(64)
        assert answer, "the process that forks has ended"
        self.pid = int(answer)

    def poll(self) -> int | None:
        """Return the status if the command has ended, else None."""
        return self._ended(0)

    def wait(self, timeout: float | None = None) -> int:
        """Return the status once the command has ended. TimeoutExpired after `timeout` seconds."""
        status = self._ended(timeout)
        if status is None:
            raise subprocess.TimeoutExpired(self.args, timeout or 0)
        return status

    def _ended(self, timeout: float | None) -> int | None:
        if self.returncode is None and select.select([self._reports], [], [], timeout)[0]:
            self.returncode = int(self._reports.recv(64) or -signal.SIGKILL)
            self._reports.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def run_forked(arguments: Sequence[str], environment: Mapping[str, str], folder: Path, text: str = "") -> subprocess.CompletedProcess[str]:
    """Run a command that reads a text, and return its output and its status."""
    with tempfile.TemporaryFile("w+") as given, tempfile.TemporaryFile("w+") as errors:
        given.write(text)
        given.seek(0)
        process = Forked(arguments, environment, folder, given=given, errors=errors)
        with process.stdout:
            output = process.stdout.read()
        status = process.wait()
        errors.seek(0)
        return subprocess.CompletedProcess(arguments, status, output, errors.read())


@cache
def _parent() -> socket.socket:
    """Start the process that forks; return the socket for requests to it."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    root = str(Path(__file__).parents[3])
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM.format(number=theirs.fileno())],
            stdout=subprocess.DEVNULL, pass_fds=[theirs.fileno()], cwd=root, env={**os.environ, "PYTHONPATH": root},
        )  # fmt: skip

    def end() -> None:
        ours.close()
        process.terminate()
        process.wait()

    atexit.register(end)
    return ours


def until_forked(number: int) -> None:
    """Import, and fork for each request that is received from a socket; return in the new process, which has the request's arguments.

    The process ends when the tests' process ends, and closes its end of the socket.
    """
    for name in IMPORTED:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(fileno=number) as requests:
        while True:
            message, files, *_ = socket.recv_fds(requests, 1 << 20, 4)
            if not message:
                sys.exit()
            if os.fork() == 0:
                break
            for file in files:
                os.close(file)
    *standard, report = files
    _wait_for_child(standard, report)
    for target, file in enumerate(standard):
        os.dup2(file, target)
        os.close(file)
    arguments, environment, folder = json.loads(message)
    sys.argv[1:] = arguments
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    time.tzset()


def run() -> None:
    """Run the command as `metastore` does, and end as Python ends, but without clearing all modules.

    Clearing would copy each page of memory that is shared with the parent: three quarters of a short command's CPU.
    """
    from metastore.cli import main

    try:
        main()
    except SystemExit as end:
        if not isinstance(end.code, int):
            raise
        threading._shutdown()  # type: ignore[attr-defined]  # waits for threads, as Python does
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(end.code)


def _wait_for_child(standard: list[int], report: int) -> None:
    """Fork: return in the child, and wait for its end in the parent. The parent reports the child's id, and at the end its status."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    pid = os.fork()
    if pid == 0:
        os.close(report)
        return
    for file in standard:
        os.close(file)
    with socket.socket(fileno=report) as reports, suppress(OSError):  # there may be no reader any more
        reports.send(str(pid).encode())
        reports.send(str(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])).encode())
    os._exit(0)
