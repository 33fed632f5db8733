"""Record the order in which a test writes through to the disk and calls a server: each `fsync` of the process, each call on the wire."""

from __future__ import annotations

import errno
import os
import re
import socket
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import pytest

CALLS = re.compile(rb"commit_txn|mark_compacted|drop_table")


class Synced(NamedTuple):
    """A file with its size in bytes, or a directory with the names in it, that was written through."""

    path: str
    size: int
    names: frozenset[str]


class Called(NamedTuple):
    """A call that was sent to the server."""

    method: str


class Disk:
    """The files written through and the methods called, in their order."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seen: list[Synced | Called] = []
        self.refuses: Callable[[str], int | None] = lambda _: None
        """A function that returns the number of the error with which the disk refuses to write a path through, or None."""
        self._real = os.fsync
        monkeypatch.setattr(os, "fsync", self._sync)

    def _sync(self, file: int) -> None:
        path = os.readlink(f"/proc/self/fd/{file}")
        if (number := self.refuses(path)) is not None:
            raise OSError(number, os.strerror(number))
        self._real(file)
        found = os.fstat(file)
        names = frozenset(os.listdir(path)) if stat.S_ISDIR(found.st_mode) else frozenset()
        self.seen.append(Synced(path, found.st_size, names))

    def before(self, method: str) -> list[Synced]:
        """Return the files and directories written through before the last call of a method."""
        last = max(place for place, each in enumerate(self.seen) if each == Called(method))
        return [each for each in self.seen[:last] if isinstance(each, Synced)]

    def assert_placed(self, directory: Path, top: Path, method: str) -> None:
        """Assert that before the last call of a method a directory was written through as it is now, and its parents with its name."""
        before = self.before(method)
        for file in directory.iterdir():
            assert any(each.path == str(file) and each.size == file.stat().st_size for each in before), f"{file} was not"
        here = frozenset(path.name for path in directory.iterdir())
        assert any(each.path == str(directory) and each.names == here for each in before), f"{directory} was not"
        for inner in (directory, *directory.parents):
            if inner == top:
                return
            assert any(each.path == str(inner.parent) and inner.name in each.names for each in before), f"{inner.parent} was not"


@contextmanager
def tapped(uri: str, disk: Disk) -> Iterator[str]:
    """Yield an address whose clients' bytes are passed on to a server. The disk notes calls before the server gets them."""
    host, _, port = uri.rpartition("/")[2].rpartition(":")
    listener = socket.create_server(("127.0.0.1", 0))

    def pump(source: socket.socket, target: socket.socket, *, watched: bool) -> None:
        last = b""
        with suppress(OSError):
            while data := source.recv(65536):
                if watched:
                    seen = last + data
                    disk.seen += [Called(match.group().decode()) for match in CALLS.finditer(seen) if match.end() > len(last)]
                    last = seen[-max(map(len, (b"mark_compacted",))) :]
                target.sendall(data)
        for each in (source, target):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def accept() -> None:
        with suppress(OSError):
            while True:
                client, _ = listener.accept()
                server = socket.create_connection((host, int(port)))
                for source, target, watched in ((client, server, True), (server, client, False)):
                    threading.Thread(target=pump, args=(source, target), kwargs={"watched": watched}, daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield f"thrift://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        listener.close()


DISK_ERRORS = [errno.EIO, errno.ENOSPC]
