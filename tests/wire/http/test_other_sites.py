"""Requests that a page of another site can make a visitor's browser send: they change nothing, and the page reads nothing."""

from __future__ import annotations

import base64
import http.client
import platform
from collections.abc import Iterator

import pytest

from metastore.app import build, close, prepare, wire_settings
from metastore.client import connect
from metastore.client_login.plain import Plain
from metastore.config import Config
from metastore.idl import Database
from metastore.service.accounts import users
from metastore.wire.connection.server import ServerThread
from tests.wire.auth.speaking import request, value

THRIFT = {"Content-Type": "application/x-thrift"}
PASSWORD = "the password of ann"
EVIL = "http://evil.example.org"


def start(home: str, **settings: object) -> Iterator[ServerThread]:
    config = Config(db=f"sqlite:///{home}/m.db", warehouse=f"{home}/warehouse", data_directory=f"{home}/data", port=0, **settings)  # type: ignore[arg-type]
    prepare(config)
    metastore = build(config)
    if "users" in config.authentication:
        users.add(metastore.database, "ann", PASSWORD)
    try:
        with ServerThread(wire_settings(config), metastore) as server:
            yield server
    finally:
        close(metastore)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerThread]:
    """A server as it is without any settings: it asks nobody for a login."""
    yield from start(str(tmp_path_factory.mktemp("open")))


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerThread]:
    """A server that asks for a login. A browser sends the login again with the requests of any page."""
    yield from start(str(tmp_path_factory.mktemp("guarded")), authentication=("users",))


def ask(server: ServerThread, method: str, path: str, headers: dict[str, str], body: bytes = b"") -> http.client.HTTPResponse:
    """Send one request with nothing but these headers, beside Host and the body's length; return the answer, whose body is read."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
    connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
    for name, content in {"Host": f"localhost:{server.port}", "Content-Length": str(len(body)), **headers}.items():
        connection.putheader(name, content)
    connection.endheaders(body)
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer


PAGES = {
    "a text of a page that the browser says nothing of": ({"Content-Type": "text/plain"}, 415),
    "a body without a type": ({}, 415),
    "a form": ({"Content-Type": "application/x-www-form-urlencoded"}, 415),
    "a form with a file": ({"Content-Type": "multipart/form-data; boundary=x"}, 415),
    "a text that mentions Thrift": ({"Content-Type": "text/plain; application/x-thrift"}, 415),
    "two types in one": ({"Content-Type": "application/x-thrift, text/plain"}, 415),
    "a page without CORS": (
        {"Content-Type": "text/plain", "Origin": EVIL, "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"},
        403,
    ),
    "a foreign origin": ({**THRIFT, "Origin": EVIL}, 403),
    "a file or sandbox": ({**THRIFT, "Origin": "null"}, 403),
    "another port of this machine": ({**THRIFT, "Origin": "http://localhost:1"}, 403),
    "another site": ({**THRIFT, "Sec-Fetch-Site": "cross-site"}, 403),
    "a sibling": ({**THRIFT, "Sec-Fetch-Site": "same-site"}, 403),
    "a page of the server itself": ({**THRIFT, "Sec-Fetch-Site": "same-origin"}, 403),
    "a site with this machine's address": ({**THRIFT, "Host": "evil.example.org:9083", "Origin": f"{EVIL}:9083"}, 403),
    "that in an old browser": ({**THRIFT, "Host": "evil.example.org:9083"}, 403),
    "a name that begins as ours": ({**THRIFT, "Host": "localhost.evil.example.org"}, 403),
    "no name": ({**THRIFT, "Host": ""}, 403),
}


@pytest.mark.parametrize("path", ["/metastore", "/metastore/x"])
@pytest.mark.parametrize("how", PAGES)
def test_a_page_can_not_drop_a_database(server: ServerThread, how: str, path: str) -> None:
    headers, status = PAGES[how]
    with connect(server.uri, timeout=20) as client:
        client.create_database(Database(name="shop"))
        try:
            answer = ask(server, "POST", path, headers, request("drop_database", name="shop", deleteData=True, cascade=True))
            assert (answer.status, client.get_all_databases()) == (status, ["default", "shop"])
        finally:
            client.drop_database("shop", deleteData=True, cascade=True)


LOGGED_IN = {"Authorization": "Basic " + base64.b64encode(f"ann:{PASSWORD}".encode()).decode()}


@pytest.mark.parametrize("how", [name for name, (headers, _) in PAGES.items() if "Host" not in headers])
def test_the_visitors_login_does_not_help_it(guarded: ServerThread, how: str) -> None:
    headers, status = PAGES[how]
    body = request("create_database", database=Database(name="made"))
    assert ask(guarded, "POST", "/metastore", {**headers, **LOGGED_IN}, body).status == status
    with connect(guarded.uri, login=Plain("ann", PASSWORD), timeout=20) as client:
        assert client.get_all_databases() == ["default"]


def test_a_login_may_name_the_server_in_any_way(guarded: ServerThread) -> None:
    headers = {**THRIFT, **LOGGED_IN, "Host": "metastore.example.org"}
    assert ask(guarded, "POST", "/metastore", headers, request("getStatus")).status == 200


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:9083", "127.0.0.1", "127.0.1.1:9083", "[::1]:9083", platform.node()])
@pytest.mark.parametrize("kind", ["application/x-thrift", "Application/X-Thrift; charset=utf-8"])
def test_a_client_is_answered_by_this_machines_names(server: ServerThread, host: str, kind: str) -> None:
    assert ask(server, "POST", "/metastore", {"Host": host, "Content-Type": kind}, request("getStatus")).status == 200


@pytest.mark.parametrize("path", ["/metastore", "/ui/actions/abort-transaction", "/api/v1/actions/abort-transaction", "/metrics"])
def test_a_browser_that_asks_whether_it_may_is_not_encouraged(server: ServerThread, path: str) -> None:
    asked = {"Origin": EVIL, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "content-type"}
    answer = ask(server, "OPTIONS", path, asked)
    assert answer.status in {403, 405}
    assert [name for name, _ in answer.getheaders() if name.lower().startswith("access-control")] == []


READ = ("/ui/", "/api/v1/overview", "/api/v1/clients", "/api/v1/slow-calls", "/metrics")
FOREIGN = [{"Origin": EVIL}, {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}, {"Sec-Fetch-Site": "same-site"}]


@pytest.mark.parametrize("headers", [*FOREIGN, {"Host": "evil.example.org"}], ids=str)
@pytest.mark.parametrize("path", READ)
def test_a_page_of_another_site_reads_nothing(server: ServerThread, path: str, headers: dict[str, str]) -> None:
    assert ask(server, "GET", path, headers).status == 403


@pytest.mark.parametrize(
    "headers",
    [{}, {"Sec-Fetch-Site": "none"}, {"Sec-Fetch-Site": "same-origin"}, {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}],
    ids=str,
)
@pytest.mark.parametrize("path", READ)
def test_a_visitor_and_a_collector_read(server: ServerThread, path: str, headers: dict[str, str]) -> None:
    """A visitor may also follow a link from another site: the visitor sees the answer, the other site does not."""
    assert ask(server, "GET", path, headers).status == 200


@pytest.mark.parametrize("headers", [*FOREIGN, {"Host": "10.0.0.7:9083"}, {"Host": "metastore.svc"}, {"Host": ""}], ids=str)
@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/version"])
def test_probes_are_answered_under_any_name(server: ServerThread, path: str, headers: dict[str, str]) -> None:
    assert ask(server, "GET", path, headers).status == 200


def test_a_refusal_has_advice(server: ServerThread) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
    said = []
    for headers in ({}, {**THRIFT, "Origin": EVIL}, {**THRIFT, "Host": "evil.example.org"}, THRIFT):
        connection.request("POST", "/metastore", request("getStatus"), headers)
        said.append(connection.getresponse().read())
    connection.close()
    assert b"send Thrift with Content-Type: application/x-thrift" in said[0]
    assert b"Thrift is for programs, pages of this server are at /ui" in said[1]
    assert b"use one of these, or log in" in said[2]
    assert value("getStatus", said[3]) == 2, "a refusal leaves the connection as it was"
