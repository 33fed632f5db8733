"""Start PgBouncer in front of the PostgreSQL server of the tests, on a port of this machine."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from sqlalchemy.engine import URL

from tests.support.servers.servers import free_port

PROGRAM = shutil.which("pgbouncer", path="/usr/sbin:" + os.environ.get("PATH", ""))

_CONFIGURATION = """
[databases]
* = host={host} port={server_port}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = trust
auth_file = {folder}/users
pool_mode = {mode}
default_pool_size = 20
"""


@contextmanager
def pooler(server: URL, mode: str) -> Iterator[URL]:
    """Start a pooler whose `pool_mode` is `session`, `transaction` or `statement`; yield the server's URL through it, and end it."""
    assert PROGRAM is not None
    port = free_port()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "users").write_text(f'"{server.username}" ""\n')
        (folder / "ini").write_text(_CONFIGURATION.format(host=server.host, server_port=server.port, port=port, folder=folder, mode=mode))
        other = pwd.getpwnam("nobody").pw_uid if os.getuid() == 0 else None  # it refuses to run as root
        if other is not None:
            for each in (folder, *folder.iterdir()):
                os.chown(each, other, -1)
        process = subprocess.Popen([PROGRAM, "-q", str(folder / "ini")], user=other, stderr=subprocess.DEVNULL)
        try:
            _await(process, port)
            yield server.set(host="127.0.0.1", port=port)
        finally:
            process.terminate()
            process.wait()


def _await(process: subprocess.Popen[bytes], port: int) -> None:
    for _ in range(600):
        assert process.poll() is None, "PgBouncer ended at once"
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.05)
    raise AssertionError("PgBouncer does not answer")
