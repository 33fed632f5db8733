"""Serve one connection: read a message, answer it, send the reply, until the client leaves.

This module never runs a method itself.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import struct
import threading
import time

from thriftpy2.thrift import TApplicationException, TMessageType

from metastore import log
from metastore.errors import MissingArgument
from metastore.service.context import Client
from metastore.wire.dispatch import Dispatcher
from metastore.wire.protocol import Dialect, Unreadable, read_message, recognise, write_message
from metastore.wire.settings import WireSettings
from metastore.wire.transport import CHUNK, EndOfStream, Feed, Malformed

_LINGER = 2.0
"""Seconds in which a client that sends too much may read why it is cut off."""
_HANDSHAKE = 30.0
"""Seconds for TLS to begin."""
_OUT_OF_TIME = (BlockingIOError, TimeoutError)
"""What a socket raises at the end of the time that the system, or Python, lets it wait."""


def _let_wait(sock: socket.socket, option: int, seconds: float) -> None:
    """Limit the time of each read or write: for a limit of Python's own it asks the system before each whether it would wait."""
    microseconds = max(1, int(seconds * 1e6))
    sock.setsockopt(socket.SOL_SOCKET, option, struct.pack("ll", *divmod(microseconds, 1_000_000)))


class Connection:
    """One client's socket; `serve` runs in a thread, the rest may be called from others."""

    def __init__(
        self, sock: socket.socket, address: str, dispatcher: Dispatcher, settings: WireSettings,
        tls: ssl.SSLContext | None,
    ) -> None:  # fmt: skip
        self.sock = sock
        self._dispatcher = dispatcher
        self._settings = settings
        self._tls = tls
        self._wait_once = min(settings.park_after, settings.idle_timeout)
        _let_wait(sock, socket.SO_RCVTIMEO, self._wait_once)
        _let_wait(sock, socket.SO_SNDTIMEO, settings.idle_timeout)
        sock.settimeout(None)
        self._client = Client(address)
        self._feed = Feed(self._receive)
        self._dialect: Dialect | None = None
        self._state = threading.Lock()
        self._between_messages = True
        self._stopping = False
        self._log = log.get("metastore.connection")

    def _receive(self, size: int) -> bytes:
        waited = 0.0
        while True:
            try:
                return self.sock.recv(size)
            except _OUT_OF_TIME:
                waited += self._wait_once
                if waited >= self._settings.idle_timeout:
                    raise

    def serve(self) -> bool:
        """Answer messages until the client is silent for `park_after` seconds or gone.

        Return True if it is silent: call again when it sends. It raises only what the log raises, with the socket closed.
        """
        silent = False
        try:
            silent = self._converse()
        except (EndOfStream, ConnectionError):
            self._log.debug("client left", client=self._client.address)
        except _OUT_OF_TIME:
            self._log.info("silent within a message, closed", client=self._client.address)
        except (Malformed, OSError) as error:
            self._log.warning("connection refused", client=self._client.address, reason=str(error))
        except Exception as error:  # noqa: BLE001  # one connection's trouble must not end the process
            self._log.error("connection failed", client=self._client.address, exc_info=error)
        finally:
            if not silent:
                self.close()
        return silent

    def _converse(self) -> bool:
        """Answer messages; return True when the client is silent, False when the connection is to end."""
        if self._tls is not None:
            self._start_tls(self._tls)
        while self._wait():
            if not self._serve_one():
                return False
        return not self._stopping

    def _start_tls(self, tls: ssl.SSLContext) -> None:
        self.sock.settimeout(min(self._settings.idle_timeout, _HANDSHAKE))
        self.sock = tls.wrap_socket(self.sock, server_side=True)
        self._tls = None
        self.sock.settimeout(self._wait_once)  # TLS goes on waiting at the end of the system's time

    def _send(self, data: bytes) -> None:
        if isinstance(self.sock, ssl.SSLSocket):
            self.sock.settimeout(self._settings.idle_timeout)
            self.sock.sendall(data)
            self.sock.settimeout(self._wait_once)
        else:
            self.sock.sendall(data)

    def _wait(self) -> bool:
        """Return whether bytes are here; False after `park_after` seconds of silence, or when stopping."""
        if not self._feed.pending:
            try:
                received = self.sock.recv(CHUNK)
            except _OUT_OF_TIME:
                return False
            if not received:
                raise EndOfStream
            self._feed.pending = received
        with self._state:
            if self._stopping:
                return False
            self._between_messages = False
            return True

    def _serve_one(self) -> bool:
        """Answer the next message; return whether the connection can go on."""
        try:
            if self._dialect is None:
                self._dialect = recognise(self._feed)
            message = read_message(self._feed, self._dialect, self._settings, self._dispatcher.choose)
        except Unreadable as error:
            assert self._dialect is not None
            return self._refuse(error, self._dialect)
        try:
            outcome = self._dispatcher.answer(message, self._client, self._dialect)
        except MissingArgument as error:
            self._log.warning("connection ended", client=self._client.address, method=message.name, reason=error.message)
            return False
        try:
            if outcome.reply is not None:
                self._send(outcome.reply)
        finally:
            self._dispatcher.record(self._client, outcome)
        with self._state:
            self._between_messages = True
            return not self._stopping

    def _refuse(self, error: Unreadable, dialect: Dialect) -> bool:
        self._log.warning("message refused", client=self._client.address, method=error.name[:300], reason=str(error)[:1000])
        body = TApplicationException(TApplicationException.PROTOCOL_ERROR, str(error))
        self._send(write_message(dialect, error.name, TMessageType.EXCEPTION, error.seqid, body))
        if error.resumable:
            with self._state:
                self._between_messages = True
                return not self._stopping
        self._linger()
        return False

    def _linger(self) -> None:
        """Take what the client still sends, so that it can read the reply before the connection is reset."""
        with contextlib.suppress(OSError):
            self.sock.shutdown(socket.SHUT_WR)
            self.sock.settimeout(_LINGER)
            until = time.monotonic() + _LINGER
            while self.sock.recv(1 << 20) and time.monotonic() < until:
                pass

    def stop(self) -> None:
        """End the connection: now if it is between two messages, else after the reply."""
        with self._state:
            self._stopping = True
            if self._between_messages:
                with contextlib.suppress(OSError):
                    self.sock.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close the socket."""
        with contextlib.suppress(OSError):
            self.sock.close()
