"""The validity of a login: until it is revoked, or until the connection's lifetime ends, however busy the connection is."""

from __future__ import annotations

import base64
import http.client
import json
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import cast

import pytest
from thriftpy2.thrift import TApplicationException

from metastore.client import Client, connect
from metastore.client_login import LoginError, Plain, Token
from metastore.config import Config
from metastore.service.accounts import users
from metastore.service.call.context import Metastore
from metastore.service.call.identity import Login
from metastore.wire.connection.server import ServerThread
from metastore.wire.sockets.settings import WireSettings
from metastore.wire.sockets.transport import EndOfStream
from tests.support.servers.servers import Server, run_command, serving
from tests.support.servers.stub_server import HANDLERS, Stub
from tests.support.servers.waiting import until
from tests.wire.auth.speaking import Speaker, request

PASSWORD = "correct horse"


class Serving:
    """A server whose connections have a lifetime of a second, and a list of the logins to it."""

    def __init__(self, server: ServerThread, logins: list[str]) -> None:
        self.uri = server.uri
        self.target = (server.host, server.port)
        self.logins = logins


@pytest.fixture(params=[0.05, 600.0], ids=["parked", "never parked"])
def short(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Serving]:
    logins: list[str] = []

    def check(_server: Metastore, user: str, _password: str, _costly: object) -> Login:
        logins.append(user)
        return Login(user, "users")

    monkeypatch.setattr(users, "check", check)
    stub = Stub()
    stub.config = Config(authentication=("users", "anonymous"))
    settings = WireSettings(port=0, connection_lifetime=1.0, park_after=request.param if request.param < 1 else 2.0)
    with ServerThread(settings, cast(Metastore, stub), HANDLERS) as started:
        yield Serving(started, logins)


def test_a_busy_connection_ends_between_two_calls_and_its_client_logs_in_again(short: Serving) -> None:
    with Speaker(short.uri) as speaker:
        speaker.plain("ann", "x")

        def ended() -> bool:
            try:
                assert speaker.call("getStatus") == 2
            except (EndOfStream, ConnectionError):
                return True
            return False

        until(ended)
    with connect(short.uri, login=Plain("bob", "x"), timeout=20) as client:
        until(lambda: client.getStatus() == 2 and short.logins.count("bob") == 3)


def test_a_silent_connection_ends(short: Serving) -> None:
    with Speaker(short.uri) as speaker:
        speaker.plain("ann", "x")
        speaker.sock.settimeout(60)
        assert speaker.ended()


def test_a_connection_of_http_ends(short: Serving) -> None:
    headers = {"Authorization": f"Basic {base64.b64encode(b'ann:x').decode()}", "Content-Type": "application/x-thrift"}
    with closing(http.client.HTTPConnection(*short.target, timeout=20)) as web:
        web.connect()
        first = web.sock

        def is_another() -> bool:
            try:
                web.request("POST", "/metastore", request("getStatus"), headers)
                assert web.getresponse().read()
            except (http.client.HTTPException, ConnectionError):
                return True
            return web.sock is not first

        until(is_another)


def test_without_a_login_and_without_the_setting_connections_stay(short: Serving) -> None:
    with connect(short.uri, timeout=20) as client:
        began = time.monotonic()
        assert client.getStatus() == 2
        connection = client._connection
        until(lambda: client.getStatus() == 2 and time.monotonic() > began + 2)
        assert client._connection is connection


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("sessions")


def command(home: Path, *arguments: str, text: str = "") -> str:
    done = run_command(*arguments, home=home, text=text)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture(scope="module")
def server(home: Path) -> Iterator[Server]:
    options = ("authentication=users,token", "admin_users=root")
    with serving("--workers", "2", *(part for each in options for part in ("--set", each)), home=home) as started:
        yield started


def token_of(server: Server, user: str) -> str:
    with connect(server.uri, login=Plain(user, PASSWORD), timeout=20) as client:
        text: str = client.get_delegation_token(user, user)
        return text


def refused(client: Client) -> str:
    """Call until the server refuses a call, and return the reason."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        try:
            client.get_all_databases()
        except TApplicationException as error:
            return str(error.message)
        time.sleep(0.2)
    raise AssertionError("it is still let in")


def test_a_user_who_is_revoked_is_out_with_every_token_and_connection(server: Server, home: Path) -> None:
    for name in ("ann", "bob"):
        command(home, "users", "add", name, text=PASSWORD)
    text, kept = token_of(server, "ann"), token_of(server, "bob")
    with connect(server.uri, login=Token(text), timeout=20) as ann, connect(server.uri, login=Token(kept), timeout=20) as bob:
        assert ann.get_all_databases() == bob.get_all_databases() == ["default"]
        assert command(home, "users", "revoke", "ann") == "revoked 1, and 1 delegation tokens"
        assert "The delegation token of ann was cancelled or has reached its end" in refused(ann)
        assert bob.get_all_databases() == ["default"]
    with pytest.raises(LoginError, match="The delegation token of ann does not exist"):
        connect(server.uri, login=Token(text), timeout=20).getStatus()


def test_tokens_are_listed_and_revoked_at_the_command_line(server: Server, home: Path) -> None:
    command(home, "users", "add", "carl", text=PASSWORD)
    command(home, "users", "add", "dora", text=PASSWORD)
    texts = [token_of(server, "carl") for _ in range(2)]
    kept = token_of(server, "dora")
    listed = json.loads(command(home, "tokens", "list", "--user", "carl", "--json"))
    assert [(each["owner"], each["real_user"], each["renewer"]) for each in listed] == [("carl", "", "carl")] * 2
    assert set(listed[0]) == {"key", "owner", "renewer", "real_user", "valid_until", "max_date"}, "no password"
    table = command(home, "tokens", "list").splitlines()
    assert {tuple(line.split()[:4]) for line in table} >= {(each["key"][:12], "carl", "carl", "carl") for each in listed}
    assert command(home, "tokens", "revoke", "carl", "--id", listed[0]["key"][:12]) == "revoked 1"
    assert command(home, "tokens", "revoke", "carl") == "revoked 1"
    for text in texts:
        with pytest.raises(LoginError, match="does not exist"):
            connect(server.uri, login=Token(text), timeout=20).getStatus()
    with connect(server.uri, login=Token(kept), timeout=20) as dora:
        assert dora.get_all_databases() == ["default"]
    done = run_command("tokens", "revoke", "carl", home=home)
    assert done.returncode == 1
    assert "User carl has no delegation token" in done.stderr


def test_an_admin_cancels_a_token_by_which_somebody_is_in(server: Server, home: Path) -> None:
    for name in ("eve", "root"):
        command(home, "users", "add", name, text=PASSWORD)
    text = token_of(server, "eve")
    with (
        connect(server.uri, login=Token(text), timeout=20) as eve,
        connect(server.uri, login=Plain("root", PASSWORD), timeout=20) as root,
    ):
        assert eve.get_all_databases() == ["default"]
        root.cancel_delegation_token(text)
        assert "was cancelled" in refused(eve)
