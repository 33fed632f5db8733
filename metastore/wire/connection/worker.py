"""Accept connections on the listening sockets and give each active one a thread; the silent ones wait in one selector.

This module never forks: `server.py` runs one `Worker` in each process.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import selectors
import socket
import threading
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from metastore import log
from metastore.methods.forms.entry import Method
from metastore.service.call.context import Metastore
from metastore.telemetry.telemetry import Telemetry
from metastore.wire.auth.authenticator import Authenticator
from metastore.wire.calls.dispatch import Dispatcher
from metastore.wire.connection.connection import Connection
from metastore.wire.http.pages import Pages
from metastore.wire.sockets.descriptors import SCARCE, Accepting
from metastore.wire.sockets.settings import WireSettings
from metastore.wire.sockets.tls import Certificates

if TYPE_CHECKING:
    from metastore.telemetry.traces import Traces

_TICK = 1.0
_STACK_SIZE = 4 << 20
"""The stack of a connection's thread, in bytes: much less than the system's default, and enough for the deepest message."""


class Sockets(NamedTuple):
    """The sockets that a server listens on."""

    thrift: socket.socket
    """The socket for Thrift and the pages."""
    admin: socket.socket | None
    """The socket for the pages alone, None without `admin_port`."""

    def close(self) -> None:
        """Close them."""
        for each in self:
            if each is not None:
                each.close()


def listen(settings: WireSettings) -> Sockets:
    """Return listening sockets. Raises OSError that names the address."""
    thrift = _listen(settings.host, settings.port, settings.backlog)
    if not settings.admin_port:
        return Sockets(thrift, None)
    try:
        return Sockets(thrift, _listen(settings.admin_host, settings.admin_port, settings.backlog))
    except OSError:
        thrift.close()
        raise


def _listen(host: str, port: int, backlog: int) -> socket.socket:
    family, _, _, _, address = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(address)
        sock.listen(backlog)
        sock.setblocking(False)
    except OSError as error:
        sock.close()
        raise OSError(error.errno, f"Can not listen on {host}:{port}: {error.strerror}") from error
    return sock


def _traces(metastore: Metastore) -> Traces | None:
    """Return the maker of spans, None without a collector."""
    config = metastore.config
    if config.traces_endpoint is None:
        return None
    from metastore.telemetry.traces import Traces

    return Traces(config.traces_endpoint, config.traces_ratio, urlsplit(metastore.config.db), metastore.database.driver.name)


class Worker:
    """The accept loop of one process. `run` blocks; `stop` may be called from a signal handler or another thread."""

    def __init__(
        self, sockets: Sockets, settings: WireSettings, metastore: Metastore, methods: Mapping[str, Method],
        tls: Certificates | None, telemetry: Telemetry,
    ) -> None:  # fmt: skip
        self._sockets = sockets
        self._metastore = metastore
        self._settings = settings
        self._admin_settings = replace(settings, serves_thrift=False)
        self._tls = tls
        self._traces = _traces(metastore)
        self._dispatcher = Dispatcher(metastore, methods, settings, telemetry, self._traces)
        self._telemetry = telemetry
        self._authenticator = Authenticator(metastore.config, metastore)
        self._pages = Pages(metastore, telemetry, lambda: self._ends_at is not None)
        self._selector = selectors.DefaultSelector()
        self._wake, self._waker = socket.socketpair()
        self._wake.setblocking(False)
        self._waker.setblocking(False)
        self._silent: deque[Connection] = deque()
        self._parked: dict[Connection, float] = {}
        """The silent connections, which have no threads, with the times at which they are closed."""
        self._look_at = 0.0
        """The time at which the silent connections are checked next."""
        self._active: set[Connection] = set()
        self._changed = threading.Condition()
        self._accepting = Accepting()
        self._publish_at = 0.0
        self._ends_at: float | None = None
        """When the loop ends, by the monotonic clock; None before `stop`."""
        self._log = log.get("metastore.worker")

    def run(self, parent: int | None = None, watchdog: bool = False) -> None:
        """Serve until `stop`, or until the pipe `parent` closes; then let the calls in flight finish.

        `watchdog` ends the whole process when this thread does not run for `watchdog_timeout` seconds.
        """
        threading.stack_size(_STACK_SIZE)
        self._listen()
        self._selector.register(self._wake, selectors.EVENT_READ)
        if parent is not None:
            self._selector.register(parent, selectors.EVENT_READ)
        while self._ends_at is None or time.monotonic() < self._ends_at:
            if watchdog:
                faulthandler.dump_traceback_later(self._settings.watchdog_timeout, exit=True)
            for key, _ in self._selector.select(self._until_next_look()):
                if key.fileobj in self._sockets:
                    self._accept(key.fileobj)
                elif key.fileobj is self._wake:
                    with contextlib.suppress(BlockingIOError):
                        self._wake.recv(4096)
                elif key.fileobj == parent:
                    self._ends_at = 0.0
                else:
                    self._resume(key.data)
            self._park()
            self._publish()
        if watchdog:
            faulthandler.cancel_dump_traceback_later()
        self._drain()

    def _listen(self) -> None:
        for listener in self._sockets:
            if listener is not None:
                self._selector.register(listener, selectors.EVENT_READ)

    def _turn_away(self) -> None:
        """Leave clients in the queue of the listening sockets, from where other workers may take them."""
        for listener in self._sockets:
            if listener is not None:
                self._selector.unregister(listener)

    def _until_next_look(self) -> float:
        """Return the seconds for which only the sockets need attention; accept again when a pause is over."""
        resumes_at = self._accepting.resumes_at
        if resumes_at is None:
            return _TICK
        left = resumes_at - time.monotonic()
        if left <= 0:
            self._accepting.resumes_at = None
            self._listen()
            return _TICK
        return min(left, _TICK)

    def _publish(self) -> None:
        """Publish every second the figures of this worker for the others."""
        now = time.monotonic()
        if now >= self._publish_at:
            self._publish_at = now + _TICK
            self._telemetry.publish(self._metastore.database)

    def stop(self) -> None:
        """Let `run` end, after `drain_notice` seconds in which only `/readyz` shows it."""
        if self._ends_at is None:
            self._ends_at = time.monotonic() + self._settings.drain_notice
        self._poke()

    def _poke(self) -> None:
        with contextlib.suppress(OSError):
            self._waker.send(b"\0")

    def _accept(self, listener: Any) -> None:
        try:
            sock, address = listener.accept()
        except (BlockingIOError, ConnectionAbortedError, InterruptedError):
            return
        except OSError as error:
            if error.errno not in SCARCE:
                self._log.error("accept failed", reason=str(error))
                return
            self._telemetry.counts.not_accepted()
            if self._accepting.resumes_at is None:  # else the other socket has begun the pause
                self._turn_away()
            self._accepting.fail(str(error), len(self._active) + len(self._parked))
            return
        self._accepting.succeed()
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        except OSError:  # on some systems, of a connection that was reset meanwhile
            sock.close()
            return
        client = f"{address[0]}:{address[1]}"
        settings = self._admin_settings if listener is self._sockets.admin else self._settings
        self._start(Connection(sock, client, self._dispatcher, settings, self._authenticator, self._pages, self._telemetry, self._tls))

    def _start(self, connection: Connection) -> None:
        with self._changed:
            self._active.add(connection)
        try:
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()
        except RuntimeError as error:
            self._log.error("no thread for a connection, closed", reason=str(error))
            connection.close()
            with self._changed:
                self._active.discard(connection)

    def _serve(self, connection: Connection) -> None:
        silent = False
        try:
            silent = connection.serve()
        finally:
            with self._changed:
                if silent:
                    self._silent.append(connection)
                self._active.discard(connection)
                self._changed.notify_all()
        if silent:
            self._poke()

    def _park(self) -> None:
        """Take over the connections whose threads gave them back; close those that are silent for too long."""
        now = time.monotonic()
        while self._silent:
            connection = self._silent.popleft()
            self._selector.register(connection.sock, selectors.EVENT_READ, connection)
            self._parked[connection] = connection.silent_until
        if now >= self._look_at:
            self._look_at = now + _TICK
            for connection in [each for each, until in self._parked.items() if now >= until or each.was_proved_otherwise()]:
                self._unpark(connection)
                connection.close()

    def _unpark(self, connection: Connection) -> None:
        self._selector.unregister(connection.sock)
        del self._parked[connection]

    def _resume(self, connection: Connection) -> None:
        self._unpark(connection)
        self._start(connection)

    def _drain(self) -> None:
        if self._accepting.resumes_at is None:
            self._turn_away()
        self._sockets.close()
        with self._changed:
            waiting = [*self._parked, *self._silent]
            active = list(self._active)
        for connection in waiting:
            connection.close()
        for connection in active:
            connection.stop()
        with self._changed:
            if not self._changed.wait_for(lambda: not self._active, self._settings.drain_timeout):
                self._log.warning("calls cut off", number=len(self._active), setting="drain_timeout")
        for connection in list(self._silent):
            connection.close()
        self._selector.close()
        self._wake.close()
        self._waker.close()
        if self._traces is not None:
            self._traces.close()
        self._log.info("worker drained", pid=os.getpid())
