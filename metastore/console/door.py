"""Call the web console from the thread of a connection: a request of HTTP becomes one of ASGI, with a `Visit` for the page's calls.

The console is loaded with the first request for it. Where it is not installed, the answer has the command to install it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Protocol
from urllib.parse import unquote

import metastore
from metastore import log
from metastore.console.visit import CallCount, ServerState, Visit
from metastore.service.call.context import Client, Metastore
from metastore.service.operations.observations import Observation
from metastore.telemetry.telemetry import Telemetry

UI, API = "/ui", "/api/v1"
LOGIN, LOGOUT = "/ui/login", "/ui/logout"
SHORT = {"/": f"{UI}/", "/favicon.ico": f"{UI}/static/icon.svg"}
"""Paths that browsers ask for, and the console's in their place."""
LOGGED_OUT_HEADERS = (("Content-Security-Policy", "default-src 'none'; img-src 'self'"), ("Cache-Control", "no-store"))
LOGGED_OUT = b"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Logged out - metastore</title><link rel="icon" href="/ui/static/icon.svg"></head>
<body><h1>Logged out</h1><p>The browser has forgotten the password. <a href="/ui/">Back to the console</a></p></body></html>
"""
LARGEST = 1 << 16
"""Bytes of a request's body."""
_SENT_BY_PROXIES = ("forwarded", "x-forwarded-for")


def is_console(path: str) -> bool:
    """Return whether a path is the console's."""
    return f"{path}/".startswith((f"{UI}/", f"{API}/"))


class Answer(NamedTuple):
    """A page, or the reason for which there is none."""

    status: int
    body: bytes
    content_type: str = "text/plain; charset=utf-8"
    headers: tuple[tuple[str, str], ...] = ()


class Calls(Protocol):
    """The interface by which pages call methods, with the authorization, log and audit of calls over Thrift."""

    def run(self, client: Client, method: str, **arguments: Any) -> Any:
        """Return a method's value. Raises MetastoreError."""

    def administers(self, client: Client) -> bool:
        """Return whether a client may administer the server as a whole."""


@dataclass(frozen=True, slots=True)
class ConsoleRequest:
    """A request of HTTP whose sender has logged in."""

    method: str
    target: str
    """Path and query as they were sent."""
    headers: tuple[tuple[bytes, bytes], ...]
    """Their names in lower case."""
    body: bytes
    encrypted: bool
    from_here: bool
    """Whether its sender is on the server's own machine."""
    can_log_in: bool
    """Whether the server takes passwords, which browsers ask for."""

    def header(self, name: str) -> str:
        return next((value.decode("latin-1") for key, value in self.headers if key == name.encode()), "")


class Console:
    """The console of one worker process."""

    def __init__(self, server: Metastore, telemetry: Telemetry, see: Callable[[], Observation | None]) -> None:
        self._server = server
        self._telemetry = telemetry
        self._see = see
        self._app: Any = None
        self._log = log.get("metastore.console")

    def answer(self, request: ConsoleRequest, client: Client, calls: Calls) -> Answer:
        """Return the page that a client asks for."""
        if self._app is None:
            try:
                from metastore.console.app import make_app
            except ImportError as error:
                self._log.warning("the console is not installed", reason=str(error))
                return Answer(404, b"The web console is not installed: pip install '.[console]' in the checkout of metastore\n")
            self._app = make_app()
        try:
            return asyncio.run(_ask(self._app, request, self._visit(request, client, calls)))
        except Exception as error:  # noqa: BLE001  # a page's trouble must not end the connection
            self._log.error("a page failed", client=client.address, target=request.target[:300], exc_info=error)
            return Answer(500, b"The page failed; the server's log says why\n")

    def _visit(self, request: ConsoleRequest, client: Client, calls: Calls) -> Visit:
        return Visit(
            run=partial(calls.run, client),
            user=client.user,
            mechanism=client.mechanism,
            is_admin=calls.administers(client),
            may_act=client.login is not None or self._is_open_to(request),
            can_log_in=request.can_log_in,
            default_catalog=self._server.config.default_catalog,
            version=metastore.__version__,
            look=self._look,
            clients=self._telemetry.connected_clients,
            slow_calls=self._telemetry.slow_calls,
        )

    def _is_open_to(self, request: ConsoleRequest) -> bool:
        """Return whether a visitor without a login may act: from the machine of a server that checks no rights, without a proxy."""
        return request.from_here and self._server.authorizer is None and not any(request.header(name) for name in _SENT_BY_PROXIES)

    def _look(self) -> ServerState:
        calls: dict[str, list[float]] = {}
        for each in self._telemetry.counts.calls():
            number = sum(each.buckets)
            found = calls.setdefault(each.method, [0, 0, 0.0])
            found[0] += number
            found[1] += 0 if each.outcome == "ok" else number
            found[2] += each.seconds
        counted = [CallCount(method, int(number), int(failed), seconds) for method, (number, failed, seconds) in calls.items()]
        return ServerState(self._see(), counted, sum(self._telemetry.counts.connections().values()))


async def _ask(app: Any, request: ConsoleRequest, visit: Visit) -> Answer:
    """Put a request to an application of ASGI and collect its answer."""
    path, _, query = request.target.partition("?")
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": request.method,
        "scheme": "https" if request.encrypted else "http",
        "path": unquote(path),
        "raw_path": path.encode("latin-1"),
        "query_string": query.encode("latin-1"),
        "root_path": "",
        "headers": list(request.headers),
        "visit": visit,
    }
    messages: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": request.body, "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        messages.append(message)

    await app(scope, receive, send)
    start = messages[0]
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in start["headers"]}
    kind = headers.pop("content-type", "text/plain; charset=utf-8")
    headers.pop("content-length", None)
    body = b"".join(message.get("body", b"") for message in messages[1:])
    return Answer(start["status"], body, kind, tuple(headers.items()))
