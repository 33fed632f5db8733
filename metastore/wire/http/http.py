"""Thrift over HTTP as Hive 4's client uses it: a POST has one message, and its answer the reply. Each request has the login.

Sources: Hive's ThriftHiveMetaStoreClient and HmsThriftHttpServlet; the framing of HTTP is h11's.
"""

from __future__ import annotations

import base64
import math
import tempfile
from collections.abc import Callable

import h11

from metastore import log
from metastore.console.door import LARGEST, LOGGED_OUT, LOGGED_OUT_HEADERS, LOGIN, LOGOUT, SHORT, ConsoleRequest, is_console
from metastore.errors import MetastoreError
from metastore.service.call.context import Client
from metastore.service.call.identity import Login
from metastore.telemetry.clients import Presence
from metastore.wire.auth.authenticator import Authenticator, Peer
from metastore.wire.auth.sasl import ClientRefused, TooManyTries
from metastore.wire.calls.dispatch import Dispatcher, Outcome
from metastore.wire.codec.limits import MAX_EARLY_BYTES
from metastore.wire.http.http_answer import HttpAnswer
from metastore.wire.http.other_sites import CONTENT_TYPE, check_name, check_page, check_thrift, is_here
from metastore.wire.http.pages import Pages
from metastore.wire.messages.protocol import Unreadable, read_message, recognise
from metastore.wire.sockets.settings import WireSettings
from metastore.wire.sockets.transport import CHUNK, EndOfStream, Feed, Malformed, frame_feed

ACTOR = "x-actor-username"
"""The header in which Hive's client names its user where it has no token."""
MAX_HEAD = 1 << 16
"""Bytes of a request's line and headers."""
MAX_SKIPPED = 1 << 20
"""The most bytes of an unused body that are read, so that the client reads the answer."""
_ONCE = (b"authorization", ACTOR.encode(), b"content-type", b"origin", b"sec-fetch-site")
"""Headers that decide about login and answer; h11 checks `Host`."""


def _check_headers(request: h11.Request) -> None:
    """Raise h11.RemoteProtocolError for headers that other programs may interpret differently: two lengths, two users, two origins."""
    names = [bytes(name) for name, _ in request.headers]
    if b"content-length" in names and b"transfer-encoding" in names:
        raise h11.RemoteProtocolError("The request has Content-Length and Transfer-Encoding: send one of them")
    if twice := [name.decode() for name in _ONCE if names.count(name) > 1]:
        raise h11.RemoteProtocolError(f"The request has the header {twice[0]} twice: send it once")


class HttpConversation:
    """The requests of one connection in turn."""

    def __init__(
        self, feed: Feed, send: Callable[[bytes], None], dispatcher: Dispatcher, settings: WireSettings,
        authenticator: Authenticator, peer: Peer, pages: Pages, presence: Presence | None, logged_in: Callable[[], None],
    ) -> None:  # fmt: skip
        """`logged_in` is called with each login, before the request's body is read."""
        self._feed = feed
        self._send = send
        self._dispatcher = dispatcher
        self._settings = settings
        self._authenticator = authenticator
        self._peer = peer
        self._pages = pages
        self._presence = presence
        self._logged_in = logged_in
        self._client = Client(peer.address) if presence is None else presence.client
        self._outcome: Outcome | None = None
        self._most_skipped = MAX_SKIPPED
        self._log = log.get("metastore.connection")

    def serve_one(self) -> bool:
        """Answer the next request; return whether the connection can continue. Raises EndOfStream, OSError."""
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=MAX_HEAD)
        self._most_skipped = MAX_SKIPPED
        try:
            self._exchange()
        finally:  # a call is recorded also when its client has gone
            if self._outcome is not None:
                self._dispatcher.record(self._client, self._outcome)
                self._outcome = None
        self._feed.unread(self._http.trailing_data[0])  # the beginning of the next request
        return self._http.our_state is h11.DONE and self._http.their_state is h11.DONE

    def _exchange(self) -> None:
        """Read one request and send its answer. Raises EndOfStream, OSError."""
        is_head = False
        try:
            request = self._next()
            if not isinstance(request, h11.Request):
                raise EndOfStream
            is_head = request.method == b"HEAD"
            _check_headers(request)
            answer = self._answer(request)
            self._skip_body()
        except h11.RemoteProtocolError as error:
            self._log.warning("request refused", client=self._peer.address, reason=str(error)[:300])
            answer = HttpAnswer(error.error_status_hint, str(error).encode())
        self._reply(answer, is_head=is_head)

    def _skip_body(self) -> None:
        """Read the rest of a body, so that the client reads the answer before the connection is closed. Raises as `_next`."""
        left = self._most_skipped
        while self._http.their_state is h11.SEND_BODY and left > 0 and not self._http.they_are_waiting_for_100_continue:
            if isinstance(event := self._next(), h11.Data):
                left -= len(event.data)

    def _next(self) -> object:
        """Return the next part of a request. Raises h11.RemoteProtocolError, EndOfStream."""
        while (event := self._http.next_event()) is h11.NEED_DATA:
            if self._http.they_are_waiting_for_100_continue:
                self._send(self._http.send(h11.InformationalResponse(status_code=100, headers=[])) or b"")
            self._http.receive_data(self._feed.some(CHUNK))
        return event

    def _reply(self, answer: HttpAnswer, *, is_head: bool) -> None:
        headers = [("Content-Length", str(len(answer.body))), ("Content-Type", answer.content_type), *answer.headers]
        if self._peer.encrypted and self._settings.hsts_age > 0:
            headers.append(("Strict-Transport-Security", f"max-age={self._settings.hsts_age:.0f}"))
        waiting = self._http.send(h11.Response(status_code=answer.status, headers=headers)) or b""
        for block in () if is_head else answer.blocks():
            self._send(waiting + (self._http.send(h11.Data(data=block)) or b""))
            waiting = b""
        if waiting := waiting + (self._http.send(h11.EndOfMessage()) or b""):
            self._send(waiting)

    def _answer(self, request: h11.Request) -> HttpAnswer:
        """Return the answer to a request. One whose body was not read ends the connection. Raises h11.RemoteProtocolError."""
        path = request.target.decode("ascii", "replace").partition("?")[0]
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in request.headers}
        page = self._pages.find(path)
        if page is not None:
            return self._page(request, path, page, headers)
        if self._pages.console is not None and is_console(path):
            return self._visit(request, path, headers)
        if self._pages.console is not None and path in SHORT and request.method in (b"GET", b"HEAD"):
            return HttpAnswer(307, b"", headers=(("Location", SHORT[path]),))
        if not self._settings.serves_thrift:
            return HttpAnswer(404, f"There is no page at {path[:300]}; this is admin_port; use the Thrift port (setting port)".encode())
        if not f"{path}/".startswith(self._settings.http_path.rstrip("/") + "/"):  # Hive 4.0.1 posts to /metastore/*
            return HttpAnswer(404, f"There is nothing at {path[:300]}; Thrift is served at {self._settings.http_path}".encode())
        if request.method != b"POST":
            return HttpAnswer(405, b"Thrift takes POST alone", headers=(("Allow", "POST"),))
        refused = check_thrift(headers) or self._refused(headers)
        if refused is not None:
            return refused
        body = self._body(request, self._settings.max_message_size)
        if body is None:
            self._most_skipped += self._settings.max_message_size
            return HttpAnswer(413, f"The message is larger than {self._settings.max_message_size} bytes".encode())
        return self._call(body)

    def _visit(self, request: h11.Request, path: str, headers: dict[str, str]) -> HttpAnswer:
        """Return a page of the console. Raises h11.RemoteProtocolError."""
        assert self._pages.console is not None
        takes_passwords = self._authenticator.passwords is not None
        refused = check_page(request.method.decode("ascii", "replace"), headers) or self._refused(headers)
        if refused is None and path == LOGOUT and self._client.login is not None and takes_passwords:
            # A browser forgets a password only when it is refused.
            return HttpAnswer(401, LOGGED_OUT, "text/html; charset=utf-8", (*self._challenges(), *LOGGED_OUT_HEADERS))
        if refused is None and path == LOGIN and self._client.login is None and takes_passwords:
            refused = HttpAnswer(401, b"Log in with a password or a token", headers=self._challenges())
        if refused is not None:
            return refused
        body = self._body(request, LARGEST)
        if body is None:
            return HttpAnswer(413, f"The form is larger than {LARGEST} bytes".encode())
        asked = ConsoleRequest(
            method=request.method.decode("ascii", "replace"),
            target=request.target.decode("latin-1"),
            headers=tuple((bytes(name), bytes(value)) for name, value in request.headers),
            body=body,
            encrypted=self._peer.encrypted,
            from_here=is_here(self._client),
            can_log_in=takes_passwords,
        )
        return HttpAnswer(*self._pages.console.answer(asked, self._client, self._dispatcher))

    def _page(self, request: h11.Request, path: str, page: Callable[[], HttpAnswer], headers: dict[str, str]) -> HttpAnswer:
        if request.method not in (b"GET", b"HEAD"):
            return HttpAnswer(405, f"{path} takes GET alone".encode(), headers=(("Allow", "GET, HEAD"),))
        refused = None
        if path in self._pages.asking_for_login:
            refused = check_page(request.method.decode("ascii"), headers) or self._refused(headers)
            refused = refused or self._pages.refusal(path, self._client)
        return page() if refused is None else refused

    def _refused(self, headers: dict[str, str]) -> HttpAnswer | None:
        """Log in the client of a request; return the refusal if that fails."""
        try:
            self._admit(headers)
        except ClientRefused as error:
            self._log.warning("request refused", client=self._peer.address, reason=str(error))
            if isinstance(error, TooManyTries):
                return HttpAnswer(429, str(error).encode(), headers=(("Retry-After", str(math.ceil(error.retry_after))),))
            return HttpAnswer(401, str(error).encode(), headers=self._challenges())
        except MetastoreError as error:
            return HttpAnswer(403, error.message.encode())
        return check_name(self._client, headers)

    def _body(self, request: h11.Request, most: int) -> bytes | None:
        """Return a request's body; a long one is kept in a file until it is complete. None if it has more bytes than allowed.

        Raises h11.RemoteProtocolError, EndOfStream.
        """
        if any(name == b"content-length" and int(value) > most for name, value in request.headers):
            return None
        with tempfile.SpooledTemporaryFile(MAX_EARLY_BYTES) as file:
            while isinstance(event := self._next(), h11.Data):
                if file.tell() + len(event.data) > most:
                    return None
                file.write(event.data)
            file.seek(0)
            return file.read()

    def _admit(self, headers: dict[str, str]) -> None:
        """Find the caller. The state of the connection is kept as long as the user stays the same. Raises ClientRefused."""
        login = self._login(headers.get("authorization", ""))
        actor = headers.get(ACTOR, "")
        if login is not None:
            login = self._authenticator.acts_for(self._peer)(login, actor)
        user = actor or None if login is None else login.user
        if user != self._client.user or (login is None) != (self._client.login is None):
            self._client = Client(self._peer.address, user, calls=self._client.calls)
            if self._presence is not None:
                self._presence.client = self._client
        self._client.traceparent = headers.get("traceparent", "")
        if login is not None:
            self._authenticator.admit(self._client, login)
            self._logged_in()

    def _login(self, authorization: str) -> Login | None:
        """Return the login that a request proves, None for a request that needs none. Raises ClientRefused."""
        scheme, _, value = authorization.partition(" ")
        if scheme.lower() == "bearer" and self._authenticator.bearer is not None:
            return self._authenticator.bearer(value.strip())
        if scheme.lower() == "basic":
            try:
                user, _, password = base64.b64decode(value.strip(), validate=True).decode().partition(":")
            except ValueError:  # a header may have letters that no base64 has
                raise ClientRefused("The header Authorization: Basic is not base64 of name:password") from None
            return self._authenticator.password(user, password, self._peer)
        if self._peer.login is not None:
            return self._peer.login
        if not self._authenticator.anonymous:
            raise self._authenticator.login_missing()
        return None

    def _challenges(self) -> tuple[tuple[str, str], ...]:
        offered = []
        if self._authenticator.bearer is not None:
            offered.append(("WWW-Authenticate", 'Bearer realm="metastore"'))
        if self._authenticator.passwords is not None:
            offered.append(("WWW-Authenticate", 'Basic realm="metastore", charset="UTF-8"'))
        return tuple(offered)

    def _call(self, body: bytes) -> HttpAnswer:
        feed = frame_feed(body)
        try:
            dialect = recognise(feed)
            message = read_message(feed, dialect, self._settings, self._dispatcher.choose)
            self._outcome = self._dispatcher.answer(message, self._client, dialect)
        except (Malformed, Unreadable, EndOfStream) as error:
            return HttpAnswer(400, f"The body is not a Thrift message: {error}".encode())
        return HttpAnswer(200, self._outcome.reply or b"", CONTENT_TYPE)
