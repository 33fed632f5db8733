"""Serve one connection: read a message, answer it, send the reply, until the client leaves.

This module never runs a method itself.
"""

from __future__ import annotations

import contextlib
import math
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from thriftpy2.thrift import TApplicationException, TMessageType, TPayload

from metastore import log
from metastore.service.call.context import Client
from metastore.service.call.identity import Login
from metastore.telemetry.clients import Presence
from metastore.telemetry.telemetry import Telemetry
from metastore.wire.auth.authenticator import Authenticator, Peer
from metastore.wire.auth.negotiation import START, Frames, negotiate
from metastore.wire.auth.sasl import ClientRefused
from metastore.wire.calls.dispatch import Dispatcher, Outcome
from metastore.wire.http.pages import Pages
from metastore.wire.messages.large_replies import LargeReply
from metastore.wire.messages.protocol import Dialect, Message, Unreadable, read_message, recognise, write_message
from metastore.wire.sockets.settings import WireSettings
from metastore.wire.sockets.tls import Certificates
from metastore.wire.sockets.transport import CHUNK, EndOfStream, Feed, Malformed

_LINGER = 2.0
"""Seconds for a client that sends too much to read the reason before it is cut off."""
_HANDSHAKE = 30.0
"""Seconds for the handshake of TLS, and for the login where clients must log in."""
_RECHECK = 5.0
"""Seconds after which a login by a credential that can be revoked is checked again."""
_MAX_UNKNOWN = 1 << 16
"""The most bytes of the first message of a client that has not logged in."""
_TLS_HANDSHAKE = b"\x16"
_OUT_OF_TIME = (BlockingIOError, TimeoutError)
"""Errors that a socket raises at the end of the time that the system, or Python, lets it wait."""


def _let_wait(sock: socket.socket, option: int, seconds: float) -> None:
    """Let the system limit the time of each read or write: for a limit of Python's own, Python makes another system call before each."""
    microseconds = max(1, int(seconds * 1e6))
    sock.setsockopt(socket.SOL_SOCKET, option, struct.pack("ll", *divmod(microseconds, 1_000_000)))


class Answering(Protocol):
    """The part that answers messages: the dispatcher of a server, or a relay to one."""

    def choose(self, method: str, kind: int, /) -> type[TPayload] | None:
        """Return the class of a message's struct; None to keep its bytes alone."""

    def answer(self, message: Message, client: Client, dialect: Dialect, /) -> Outcome:
        """Return the outcome of a message."""

    def record(self, client: Client, outcome: Outcome, /) -> None:
        """Record the outcome of a message after its reply is sent."""


class Connection:
    """One client's socket; `serve` runs in a thread, the rest may be called from others."""

    def __init__(
        self, sock: socket.socket, address: str, dispatcher: Answering, settings: WireSettings,
        authenticator: Authenticator, pages: Pages | None, telemetry: Telemetry, tls: Certificates | None,
    ) -> None:  # fmt: skip
        self.sock = sock
        self._pages = pages
        self._counts = telemetry.counts
        self._clients = telemetry.clients
        self._presence: Presence | None = None
        self._dispatcher = dispatcher
        self._settings = settings
        self._authenticator = authenticator
        self._tls = tls
        self._wait_once = min(settings.park_after, settings.idle_timeout)
        self._patience = min(_HANDSHAKE, settings.idle_timeout)
        _let_wait(sock, socket.SO_RCVTIMEO, self._wait_once)
        _let_wait(sock, socket.SO_SNDTIMEO, settings.idle_timeout)
        sock.settimeout(None)
        self._client = Client(address)
        self._peer = Peer(address)
        self._received = Feed(self._receive)
        self._feed = self._received
        self._frames: Frames | None = None
        self._speak: Callable[[], bool] | None = None
        self._counted: tuple[str, str] | None = None
        """The transport and the mechanism under which the connection is counted as open."""
        self._dialect: Dialect | None = None
        self._log_in_by = math.inf if authenticator.anonymous else time.monotonic() + min(_HANDSHAKE, settings.idle_timeout)
        """The time at which a client without a login is cut off."""
        self._recheck_at = math.inf
        self._ends_at = math.inf
        """The time at which even a busy connection is closed, so that its client logs in again."""
        self._proved_by: tuple[Certificates, ssl.SSLContext] | None = None
        """The files and the context by which the client's certificate was accepted, where it is the login."""
        self._state = threading.Lock()
        self._between_messages = True
        self._stopping = False
        self._log = log.get("metastore.connection")

    @property
    def silent_until(self) -> float:
        """The time at which the connection is to be closed if it stays silent."""
        return min(self._log_in_by, self._ends_at, time.monotonic() + self._settings.idle_timeout)

    def _receive(self, size: int) -> bytes:
        waited = 0.0
        while True:
            if time.monotonic() > self._log_in_by:
                raise TimeoutError
            try:
                return self.sock.recv(size)
            except _OUT_OF_TIME:
                waited += self._wait_once
                if waited >= self._patience:
                    raise

    def serve(self) -> bool:
        """Answer messages until the client is silent for `park_after` seconds or gone.

        Return True if it is silent: call again when it sends. Only errors of the log are raised, with the socket closed.
        """
        silent = False
        try:
            silent = self._converse()
        except (EndOfStream, ConnectionError):
            self._log.debug("client left", client=self._client.address)
        except _OUT_OF_TIME:
            self._log.info("silent within a message, closed", client=self._client.address)
        except (Malformed, ClientRefused, Unreadable, OSError) as error:
            self._log.warning("connection refused", client=self._client.address, reason=str(error))
        except Exception as error:  # noqa: BLE001  # one connection's trouble must not end the process
            self._log.error("connection failed", client=self._client.address, exc_info=error)
        finally:
            if not silent:
                self.close()
        return silent

    def _converse(self) -> bool:
        """Answer messages; return True when the client is silent, False when the connection is to end."""
        while not self._is_over() and self._wait():
            if not (self._speak or self._enter)():
                return False
        return not (self._stopping or self._is_over())

    def _is_over(self) -> bool:
        """Return whether the connection is to be closed, so that its client logs in again."""
        return time.monotonic() >= self._ends_at or self.was_proved_otherwise()

    def was_proved_otherwise(self) -> bool:
        """Return whether the client logged in by a certificate, and the files have changed by which it was accepted."""
        if self._proved_by is None:
            return False
        tls, context = self._proved_by
        return tls.recent_context() is not context

    def _wait(self) -> bool:
        """Return whether bytes are here; False after `park_after` seconds of silence, or when stopping."""
        if not self._feed.pending and not self._received.pending:
            try:
                if self._tls is not None and not self._begin_tls(self._tls):
                    return False
                received = self.sock.recv(CHUNK)
            except _OUT_OF_TIME:
                return False
            if not received:
                raise EndOfStream
            self._received.pending = received
        with self._state:
            if self._stopping:
                return False
            self._between_messages = False
            return True

    def _begin_tls(self, tls: Certificates) -> bool:
        """Wait for the first byte and secure the connection if that begins TLS. Raises Malformed where TLS is required and missing."""
        first = self.sock.recv(1, socket.MSG_PEEK)
        if not first:
            raise EndOfStream
        self._tls = None
        if first != _TLS_HANDSHAKE:
            if self._settings.tls_required:
                raise Malformed(f"The connection begins with {first!r}, not with TLS, which this port asks for; connect with TLS")
            return True
        self.sock.settimeout(min(self._settings.idle_timeout, _HANDSHAKE))
        context = tls.context()
        sock = context.wrap_socket(self.sock, server_side=True)
        self.sock = sock
        sock.settimeout(self._wait_once)  # TLS goes on waiting at the end of the system's time
        self._peer = Peer(self._peer.address, encrypted=True, login=self._authenticator.certificate(sock.getpeercert()))
        if self._peer.login is not None:
            self._proved_by = (tls, context)
        return True

    def _enter(self) -> bool:
        """Log the client in, by its first byte: with SASL, over HTTP, or with Thrift alone. Raises ClientRefused, Malformed."""
        start = self._received.exactly(1)
        self._received.unread(start)
        if not self._settings.serves_thrift and not start.isalpha():
            raise Malformed(f"The connection begins with {start!r}, but admin_port serves HTTP alone; use the Thrift port (setting port)")
        if start[0] == START:
            return self._negotiate()
        if start.isalpha():
            return self._converse_http()
        self._speak = self._serve_one
        if self._peer.login is not None:
            self._admit(self._peer.login)
        elif not self._authenticator.anonymous:
            return self._send_away()
        self._patience = self._settings.idle_timeout
        self._count("tls" if self._peer.encrypted else "plain", self._client.mechanism or "anonymous")
        return self._serve_one()

    def _negotiate(self) -> bool:
        try:
            done = negotiate(self._received, self._send, lambda name: self._authenticator.mechanism(name, self._peer))
        except ClientRefused:
            self._counts.login("other", "refused")
            raise
        self._counts.login(done.login.mechanism, "ok")
        self._admit(done.login)
        self._count("sasl", done.login.mechanism)
        self._frames = Frames(self._received, done.layer, self._settings.max_message_size)
        self._feed = Feed(self._frames.receive)
        self._patience = self._settings.idle_timeout
        self._speak = self._serve_one
        return self._go_on()

    def _converse_http(self) -> bool:
        from metastore.wire.http.http import HttpConversation

        if self._pages is None or not isinstance(self._dispatcher, Dispatcher):
            raise Malformed("The connection begins with HTTP, which is not served here; use Thrift's own transports")
        self._patience = self._settings.idle_timeout
        self._count("http", "other")
        http = HttpConversation(
            self._received, self._send, self._dispatcher, self._settings, self._authenticator, self._peer, self._pages, self._presence,
            self._logged_in,
        )  # fmt: skip

        def speak() -> bool:
            goes_on = http.serve_one() and self._go_on()
            if self._log_in_by < math.inf:  # a request that needs no login has been answered: the next one gets as much time
                self._log_in_by = time.monotonic() + _HANDSHAKE
            return goes_on

        self._speak = speak
        return speak()

    def _logged_in(self) -> None:
        self._log_in_by = math.inf
        if self._settings.connection_lifetime:
            self._ends_at = min(self._ends_at, time.monotonic() + self._settings.connection_lifetime)

    def _count(self, transport: str, mechanism: str) -> None:
        self._counted = (transport, mechanism)
        self._counts.connection(transport, mechanism, 1)
        self._presence = self._clients.enter(self._client, transport)

    def _admit(self, login: Login) -> None:
        self._authenticator.admit(self._client, login)
        self._logged_in()
        if login.can_be_revoked:
            self._recheck_at = time.monotonic() + _RECHECK
        self._log.info(
            "client logged in", client=self._client.address, user=login.user, mechanism=login.mechanism, real_user=login.real_user
        )

    def _send_away(self) -> bool:
        """Answer a first message without a login with an error, and end the connection. Raises Unreadable, Malformed."""
        self._dialect = recognise(self._feed)
        limits = replace(self._settings, max_message_size=min(_MAX_UNKNOWN, self._settings.max_message_size))
        return self._refuse_call(read_message(self._feed, self._dialect, limits, lambda *_: None), self._authenticator.login_missing())

    def _refuse_call(self, message: Message, reason: ClientRefused) -> bool:
        """Answer a call with the reason for which its client is refused, and end the connection."""
        assert self._dialect is not None
        self._log.warning("connection refused", client=self._client.address, reason=str(reason))
        body = TApplicationException(TApplicationException.INTERNAL_ERROR, str(reason))
        self._send(write_message(self._dialect, message.name, TMessageType.EXCEPTION, message.seqid, body))
        self._linger()
        return False

    def _go_on(self) -> bool:
        """Note that a message is answered; return whether the connection can continue."""
        with self._state:
            self._between_messages = True
            return not self._stopping

    def _send(self, data: bytes) -> None:
        if self._frames is not None:
            data = self._frames.wrap(data)
        if isinstance(self.sock, ssl.SSLSocket):
            self.sock.settimeout(self._settings.idle_timeout)
            self.sock.sendall(data)
            self.sock.settimeout(self._wait_once)
        else:
            self.sock.sendall(data)

    def _serve_one(self) -> bool:
        """Answer the next message; return whether the connection can continue."""
        try:
            if self._dialect is None:
                self._dialect = recognise(self._feed)
            message = read_message(self._feed, self._dialect, self._settings, self._dispatcher.choose)
        except Unreadable as error:
            assert self._dialect is not None
            return self._refuse(error, self._dialect)
        if time.monotonic() >= self._recheck_at:
            try:
                self._check_again()
            except ClientRefused as reason:
                return self._refuse_call(message, reason)
        outcome = self._dispatcher.answer(message, self._client, self._dialect)
        try:
            if isinstance(outcome.reply, LargeReply):
                for block in outcome.reply.blocks():
                    self._send(block)
            elif outcome.reply is not None:
                self._send(outcome.reply)
        finally:
            self._dispatcher.record(self._client, outcome)
        return not outcome.ends and self._go_on()

    def _check_again(self) -> None:
        """Raise ClientRefused if the client's credentials were revoked or have expired."""
        assert self._client.login is not None
        self._authenticator.check_again(self._client.login)
        self._recheck_at = time.monotonic() + _RECHECK

    def _refuse(self, error: Unreadable, dialect: Dialect) -> bool:
        self._log.warning("message refused", client=self._client.address, method=error.name[:300], reason=str(error)[:1000])
        body = TApplicationException(TApplicationException.PROTOCOL_ERROR, str(error))
        self._send(write_message(dialect, error.name, TMessageType.EXCEPTION, error.seqid, body))
        if error.resumable:
            return self._go_on()
        self._linger()
        return False

    def _linger(self) -> None:
        """Read the rest of the client's bytes, so that it can read the reply before the connection is reset."""
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
        counted, self._counted = self._counted, None
        if counted is not None:
            self._counts.connection(*counted, -1)
        presence, self._presence = self._presence, None
        if presence is not None:
            self._clients.leave(presence)
        with contextlib.suppress(OSError):
            self.sock.close()
