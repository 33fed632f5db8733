"""Pages of a visitor with few rights: they show exactly the objects that Thrift would show."""

from __future__ import annotations

import platform
from collections.abc import Iterator

import pytest

from metastore.idl import AbortTxnRequest, Database
from metastore.methods.operations import queries as browsing
from tests.console import sample
from tests.console.conftest import Console, Start

NOT_SHOWN = ("orders", "customers", "sales", "evil", "bob", "disk full")


def test_nobody_gets_in_without_a_login(guarded: Console) -> None:
    for path in ("/ui/", "/api/v1/overview", "/ui/actions/abort-transaction?id=1", "/ui/static/console.css"):
        found = guarded.get(path)
        assert found.status == 401
        assert found.headers["www-authenticate"] == 'Basic realm="metastore", charset="UTF-8"'
    assert guarded.get("/ui/", headers={"Authorization": "Basic bm9ib2R5Om5vdGhpbmc="}).status == 401


def test_an_administrator_sees_everything(guarded: Console) -> None:
    page = guarded.get("/ui/", "root").words
    assert "root by users" in page
    for word in ("Clients", "Slow calls", "Jobs", "Settings", "holds up"):
        assert word in page
    for path in ("/clients", "/slow-calls", "/jobs", "/settings"):
        assert guarded.get(f"/ui{path}", "root").status == 200
        assert guarded.get(f"/api/v1{path}", "root").status == 200


@pytest.mark.parametrize("path", ["/clients", "/slow-calls", "/jobs", "/settings"])
def test_the_server_itself_is_for_administrators(guarded: Console, path: str) -> None:
    for root in ("/ui", "/api/v1"):
        found = guarded.get(root + path, "alice")
        assert found.status == 403
        assert "alice" in found.text
    navigation = guarded.get("/ui/", "alice").text
    assert f'href="/ui{path}"' not in navigation


@pytest.mark.parametrize(
    "path",
    ["/catalog", "/catalog?search=e", "/locks", "/compactions", "/events", "/transactions", "/transactions?state=aborted", "/"],
)
def test_lists_show_a_stranger_nothing(guarded: Console, path: str) -> None:
    for root in ("/ui", "/api/v1"):
        if root == "/api/v1" and path == "/":
            path = "/overview"
        found = guarded.get(root + path, "mallory")
        assert found.status == 200
        assert [word for word in NOT_SHOWN if word in found.text] == []


@pytest.mark.parametrize(
    ("path", "missing"),
    [
        ("/database?database=sales", "/database?database=nowhere"),
        ("/table?database=sales&name=orders", "/table?database=sales&name=nothing"),
        ("/partitions?database=sales&table=days", "/partitions?database=sales&table=nothing"),
        ("/statistics?database=sales&table=customers", "/statistics?database=sales&table=nothing"),
        ("/locks/1", "/locks/99"),
        ("/compactions/1", "/compactions/99"),
        ("/events/3", "/events/99"),
    ],
)
def test_a_hidden_object_gets_the_answer_of_a_missing_one(guarded: Console, path: str, missing: str) -> None:
    names = {"sales": "nowhere"} if path.startswith("/database") else {"orders": "nothing", "days": "nothing", "customers": "nothing"}
    hidden, absent = (guarded.get(f"/api/v1{each}", "mallory") for each in (path, missing))
    text = hidden.text
    for name, other in names.items():
        text = text.replace(name, other)
    for key in ("1", "3"):
        text = text.replace(f" {key}:", " 99:")
    assert (hidden.status, text) == (absent.status, absent.text)
    assert hidden.status == 404


def test_an_owner_sees_the_own_database(guarded: Console) -> None:
    found = guarded.get("/api/v1/catalog", "alice").json
    assert [each["name"] for each in found["databases"]] == ["default", "sales"]
    assert {each["name"] for each in guarded.get("/api/v1/database?database=sales", "alice").json["tables"]} == {
        "big_orders", "customers", "days", "lake", "orders",
    }  # fmt: skip
    assert guarded.get("/ui/table?database=sales&name=orders", "alice").status == 200
    assert guarded.get("/ui/statistics?database=sales&table=customers", "alice").status == 200
    events = guarded.get("/api/v1/events", "alice").json["rows"]
    assert {each["database"] for each in events} == {"sales"}
    assert len(guarded.get("/api/v1/locks", "alice").json["rows"]) == 6
    assert len(guarded.get("/api/v1/compactions", "alice").json["rows"]) == 2


@pytest.fixture
def own(guarded: Console) -> Iterator[int]:
    """A transaction of mallory."""
    with guarded.client("mallory") as client:
        key = sample.open_transaction(client, "somebody else")
        yield key
        client.abort_txn(AbortTxnRequest(txnid=key))


def test_everybody_sees_the_own_transactions(guarded: Console, own: int) -> None:
    found = guarded.get("/api/v1/transactions", "mallory").json
    assert [each["transaction"]["id"] for each in found["rows"]] == [own]
    assert found["rows"][0]["transaction"]["user"] == "mallory"
    assert guarded.get(f"/ui/transactions/{own}", "mallory").status == 200
    assert guarded.get(f"/ui/transactions/{own}", "alice").status == 403
    assert guarded.get("/ui/transactions/1", "mallory").status == 403
    assert own in [each["transaction"]["id"] for each in guarded.get("/api/v1/transactions", "root").json["rows"]]


def test_pages_are_filled_with_visible_objects(start: Start) -> None:
    """The few tables that a user sees are listed together, with any number of hidden ones between them."""
    found = start(authentication=("users",), authorization="grants", admin_users=("root",))
    with found.client("root") as client:
        client.create_database(Database(name="d", ownerName="root"))
        for number in range(130):
            table = sample.table("d", f"t{number:04}")
            table.owner = "alice" if number % 2 else "root"
            client.create_table(table)
    first = found.get("/api/v1/database?database=d", "alice").json
    second = found.get(f"/api/v1/database?database=d&after={first['next']}", "alice").json
    names = [each["name"] for each in first["tables"] + second["tables"]]
    assert names == [f"t{number:04}" for number in range(1, 130, 2)]
    assert (len(first["tables"]), second["next"]) == (50, None)
    searched = found.get("/api/v1/catalog?search=d.t00", "alice").json
    assert [each["name"] for each in searched["tables"]] == names[:50]


def test_a_page_looks_at_so_many_rows_and_the_next_goes_on(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    found = start(authentication=("users",), authorization="grants", admin_users=("root",))
    with found.client("root") as client:
        client.create_database(Database(name="d", ownerName="root"))
        for number in range(60):
            table = sample.table("d", f"t{number:04}")
            table.owner = "alice" if number % 20 == 19 else "root"
            client.create_table(table)
    monkeypatch.setattr(browsing, "MOST_READ", 5)
    monkeypatch.setattr(browsing, "LOOKS", 2)
    names: list[str] = []
    pages, after = 0, ""
    while after is not None:
        page = found.get(f"/api/v1/database?database=d&after={after}", "alice").json
        names += [each["name"] for each in page["tables"]]
        pages, after = pages + 1, page["next"]
    assert (names, pages) == (["t0019", "t0039", "t0059"], 6)
    searched = found.get("/ui/catalog?search=d.t", "alice")
    assert ("such a name so far" in searched.words, "Next page" in searched.words) == (True, True)


def test_a_visitor_who_may_look_without_a_login_can_log_in(start: Start) -> None:
    found = start(authentication=("users", "anonymous"))
    page = found.get("/ui/")
    assert (page.status, "Nobody is logged in" in page.words, 'href="/ui/login"' in page.text) == (200, True, True)
    asked = found.get("/ui/login")
    assert (asked.status, asked.headers["www-authenticate"]) == (401, 'Basic realm="metastore", charset="UTF-8"')
    came = found.get("/ui/login", "alice")
    assert (came.status, came.headers["location"]) == (303, "/ui/")
    assert "alice by users" in found.get("/ui/", "alice").words


def test_a_server_without_logins_says_so(console: Console) -> None:
    found = console.get("/ui/login")
    assert (found.status, "takes no passwords" in found.words) == (403, True)
    assert 'href="/ui/login"' not in console.get("/ui/").text


@pytest.mark.parametrize("host", ["evil.example.org", "evil.example.org:9083", "127.0.0.1.evil.example.org", ""])
def test_a_name_that_may_be_another_sites_does_not_open_this_machines_console(console: Console, host: str) -> None:
    for path in ("/ui/", "/api/v1/overview", "/api/v1/clients", "/api/v1/slow-calls"):
        assert console.get(path, headers={"Host": host}).status == 403
    assert console.get("/healthz", headers={"Host": host}).status == 200


@pytest.mark.parametrize("host", ["localhost", "localhost:9083", "127.0.0.1", "127.0.0.1:1", "[::1]:9083", f"{platform.node()}:1"])
def test_a_name_of_this_machine_does(console: Console, host: str) -> None:
    assert console.get("/ui/", headers={"Host": host}).status == 200


def test_a_user_of_a_password_can_log_out(guarded: Console, start: Start) -> None:
    assert 'href="/ui/logout"' in guarded.get("/ui/", "alice").text
    out = guarded.get("/ui/logout", "alice")
    assert (out.status, out.headers["www-authenticate"]) == (401, 'Basic realm="metastore", charset="UTF-8"')
    assert "Logged out" in out.words
    assert "default-src 'none'" in out.headers["content-security-policy"]
    assert guarded.get("/ui/", "alice").status == 200, "the password is not revoked"
    open_too = start(authentication=("users", "anonymous"))
    assert "/ui/logout" not in open_too.get("/ui/").text
    assert open_too.get("/ui/logout").status == 404, "who did not log in can not log out"


def test_waits_of_locks_are_for_those_who_may_come_in(guarded: Console) -> None:
    assert guarded.get("/api/v1/lock-waits").status == 401
    assert guarded.get("/api/v1/lock-waits", "mallory").json["waiting_since_ms"]
