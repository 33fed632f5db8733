"""A store that accepts connections and requests, and answers none. When a test releases it, it closes them."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass
class Stalling:
    """A TCP server on loopback that never answers."""

    port: int
    reached: threading.Event = field(default_factory=threading.Event)
    """Set once a client has sent something."""
    go: threading.Event = field(default_factory=threading.Event)

    @property
    def s3(self) -> dict[str, object]:
        """The setting `filesystem_options` for an S3 client of it, which tries once and waits long."""
        config = {"retries": {"max_attempts": 1}, "connect_timeout": 600, "read_timeout": 600}
        return {"s3": {"endpoint_url": f"http://127.0.0.1:{self.port}", "key": "k", "secret": "s", "config_kwargs": config}}


@contextmanager
def stalling() -> Iterator[Stalling]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        made = Stalling(listener.getsockname()[1])

        def serve(connection: socket.socket) -> None:
            with connection:
                if connection.recv(1):
                    made.reached.set()
                made.go.wait(600)

        def accept() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                threading.Thread(target=serve, args=(connection,), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        try:
            yield made
        finally:
            made.go.set()
            listener.shutdown(socket.SHUT_RDWR)
