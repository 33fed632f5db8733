"""Decode structs that other people's classes wrote, and encode them again, with the server's own protocols."""

from __future__ import annotations

import struct
import subprocess
from pathlib import Path
from typing import Any, BinaryIO

from metastore import idl
from metastore.wire.messages.protocol import Dialect, read_message, write_message
from metastore.wire.sockets.settings import WireSettings
from metastore.wire.sockets.transport import frame_feed

JAVA = Path(__file__).with_name("RoundTrip.java")


def our_class(name: str) -> Any:
    """Return our struct of that name, a method's `_args` or `_result` included; None if there is none."""
    return getattr(idl.service, name, None) or getattr(idl, name, None)


def again(data: bytes, cls: Any, protocol: str) -> bytes:
    """Return the struct in `data` as we write it after reading it. Both are wrapped into a message on the way."""
    dialect = Dialect(protocol, framed=False)
    empty = write_message(dialect, "x", 1, 1, idl.service.getName_args())[:-1]
    message = read_message(frame_feed(empty + data), dialect, WireSettings(), lambda *_: cls)
    return write_message(dialect, "x", 1, 1, message.body)[len(empty) :]


class JavaRun:
    """One run of RoundTrip.java, and its results."""

    def __init__(self, jars: list[Path], package: str, protocol: str) -> None:
        classpath = ":".join(map(str, jars))
        command = ["java", "-cp", classpath, str(JAVA), str(jars[0]), package, protocol]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as java:
            assert java.stdin is not None
            assert java.stdout is not None
            self.unknown: list[str] = []
            records = list(_records(java.stdout))
            for name, data in records:
                cls = our_class(name)
                if cls is None:
                    self.unknown.append(name)
                else:
                    data = again(data, cls, protocol)  # noqa: PLW2901  # the same record on its way back
                java.stdin.write(struct.pack("!H", len(name)) + name.encode() + struct.pack("!i", len(data)) + data)
            java.stdin.close()
            lines = java.stdout.read().decode().split()
        assert java.returncode == 0, command
        self.names = {name for name, _ in records}
        self.different = set(lines[1:])
        assert int(lines[0]) == len(records)


def _records(stream: BinaryIO) -> Any:
    while True:
        name = stream.read(*struct.unpack("!H", stream.read(2))).decode()
        if not name:
            return
        (size,) = struct.unpack("!i", stream.read(4))
        yield name, stream.read(size)
