"""A server in a thread with one of each object that the console shows, and a visitor without a browser."""

from __future__ import annotations

import base64
import http.client
import json
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from html.parser import HTMLParser
from typing import Any, NamedTuple

import pytest

from metastore.app import build, close, prepare, wire_settings
from metastore.client import Client, connect
from metastore.client_login.plain import Plain
from metastore.config import Config
from metastore.service.accounts import users
from metastore.wire.connection.server import ServerThread
from tests.console import sample


class Answer(NamedTuple):
    """The answer to a visitor's request."""

    status: int
    headers: dict[str, str]
    text: str

    @property
    def json(self) -> Any:
        return json.loads(self.text)

    @property
    def words(self) -> str:
        """The text of a page without its markup."""
        parser = _Words()
        parser.feed(self.text)
        return re.sub(r"\s+", " ", "".join(parser.words))


class _Words(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.words: list[str] = []

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    def handle_endtag(self, tag: str) -> None:
        if tag in {"td", "th", "p", "li", "dt", "dd", "h1", "h2", "text"}:
            self.words.append(" ")


def password_of(user: str) -> str:
    return f"the password of {user}"


class Console:
    """A server, and requests to it by a program: without a login, or as a user with a password."""

    def __init__(self, server: ServerThread, config: Config) -> None:
        self.server = server
        self.config = config

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.port}"

    def ask(self, method: str, path: str, user: str = "", body: str = "", headers: dict[str, str] | None = None) -> Answer:
        sent = dict(headers or {})
        if user:
            sent["Authorization"] = "Basic " + base64.b64encode(f"{user}:{password_of(user)}".encode()).decode()
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=30)
        try:
            connection.request(method, path, body=body or None, headers=sent)
            answer = connection.getresponse()
            return Answer(answer.status, {key.lower(): value for key, value in answer.getheaders()}, answer.read().decode())
        finally:
            connection.close()

    def get(self, path: str, user: str = "", headers: dict[str, str] | None = None) -> Answer:
        return self.ask("GET", path, user, headers=headers)

    def post(self, path: str, user: str = "", body: str = "", headers: dict[str, str] | None = None) -> Answer:
        return self.ask("POST", path, user, body, headers)

    def client(self, user: str = "") -> Client:
        return connect(self.server.uri, login=Plain(user, password_of(user)) if user else None, timeout=30)


Start = Callable[..., Console]


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Start]:
    """Start a server with some settings."""
    with ExitStack() as running:

        def start(db: str | None = None, **settings: Any) -> Console:
            home = tmp_path_factory.mktemp("console")
            given = {"db": db or f"sqlite:///{home}/console.db", "warehouse": str(home / "warehouse"), "data_directory": str(home / "data")}
            config = Config(**{**given, "port": 0, **settings})
            prepare(config)
            metastore = build(config)
            for user in ("root", "alice", "mallory") if "users" in config.authentication else ():
                users.add(metastore.database, user, password_of(user))
            running.callback(close, metastore)
            return Console(running.enter_context(ServerThread(wire_settings(config), metastore)), config)

        yield start


@pytest.fixture(scope="module")
def console(start: Start) -> Console:
    """A server on this machine that accepts visitors without a login, with the sample."""
    found = start()
    with found.client() as client:
        sample.fill(client)
    return found


@pytest.fixture(scope="module")
def guarded(start: Start, tmp_path_factory: pytest.TempPathFactory) -> Console:
    """A server that asks for a login: root may do everything, alice owns the database `sales`, mallory owns nothing."""
    audit_log = tmp_path_factory.mktemp("audit") / "audit.log"
    found = start(authentication=("users",), authorization="grants", admin_users=("root",), audit_log=str(audit_log))
    with found.client("root") as client:
        sample.fill(client)
    return found
