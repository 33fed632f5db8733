"""An S3 server for tests, moto in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

SERVE = """
import sys
from moto.moto_server.threaded_moto_server import ThreadedMotoServer

server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
server.start()
print(server.get_host_and_port()[1], flush=True)
sys.stdin.read()
"""


@contextmanager
def serving_s3() -> Iterator[dict[str, Any]]:
    """Run the server on a free port of loopback; yield the options of fsspec's driver for it. It ends when its standard input is closed."""
    process = subprocess.Popen([sys.executable, "-c", SERVE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    with process:
        assert process.stdout is not None
        port = int(process.stdout.readline())
        yield {"endpoint_url": f"http://127.0.0.1:{port}", "key": "k", "secret": "s"}
