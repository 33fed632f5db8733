"""Serve the connections of clients, each in a thread, with TLS and logins like the server, until a signal arrives."""

from __future__ import annotations

import selectors
import signal
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from itertools import count
from typing import Any

from metastore.config import Config
from metastore.shadow.asking import Beside
from metastore.shadow.relay import Both, Relay
from metastore.shadow.upstream import Upstream
from metastore.telemetry.telemetry import Telemetry
from metastore.wire.auth.authenticator import Authenticator
from metastore.wire.connection.connection import Connection
from metastore.wire.connection.worker import listen
from metastore.wire.sockets.settings import WireSettings
from metastore.wire.sockets.tls import certificates

TICK = 1.0


class Proxy:
    """Serves until SIGTERM or SIGINT. It answers Thrift on sockets, not over HTTP."""

    def __init__(self, config: Config, settings: WireSettings, primary: Upstream, beside: Beside, both: Both | None = None) -> None:
        """`both` is given if changes are sent to the secondary too.

        Raises ConfigError for a login that needs a database, and for certificates that can not be read.
        """
        self._settings = replace(settings, admin_port=0, park_after=min(30.0, settings.idle_timeout))
        self._primary = primary
        self._beside = beside
        self._both = both
        self._authenticator = Authenticator(config, None)
        self._tls = certificates(settings)
        self._telemetry = Telemetry()
        self._numbers = count()
        self._connections: set[Connection] = set()
        self._changed = threading.Condition()
        self._wake, self._waker = socket.socketpair()
        self._stopped = False

    def run(self, ready: Callable[[str, int], None]) -> None:
        """Serve; `ready` gets the address. Raises OSError for an address on which the proxy can not listen."""
        with listen(self._settings).thrift as listener, selectors.DefaultSelector() as selector:
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, self._stop)
            selector.register(listener, selectors.EVENT_READ)
            selector.register(self._wake, selectors.EVENT_READ)
            ready(*listener.getsockname()[:2])
            while not self._stopped:
                for key, _ in selector.select(TICK):
                    if key.fileobj is listener:
                        self._accept(listener)
                self._beside.send_dropped()
        self._drain()

    def _stop(self, *_: Any) -> None:
        self._stopped = True
        with suppress(OSError):
            self._waker.send(b"\0")

    def _accept(self, listener: socket.socket) -> None:
        try:
            sock, address = listener.accept()
        except OSError:
            time.sleep(0.05)  # no descriptor is free: the client stays in the listener's queue
            return
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        relay = Relay(next(self._numbers), self._primary, self._beside, self._both)
        connection = Connection(
            sock, f"{address[0]}:{address[1]}", relay, self._settings, self._authenticator, None, self._telemetry, self._tls
        )
        with self._changed:
            self._connections.add(connection)
        threading.Thread(target=self._serve, args=(connection, relay), daemon=True).start()

    def _serve(self, connection: Connection, relay: Relay) -> None:
        silent_since = time.monotonic()
        try:
            while connection.serve():
                if relay.spoke:
                    silent_since, relay.spoke = time.monotonic(), False
                if time.monotonic() >= min(connection.silent_until, silent_since + self._settings.idle_timeout):
                    break
        finally:
            connection.close()
            relay.close()
            with self._changed:
                self._connections.discard(connection)
                self._changed.notify_all()

    def _drain(self) -> None:
        with self._changed:
            for connection in self._connections:
                connection.stop()
            self._changed.wait_for(lambda: not self._connections, self._settings.drain_timeout)
