"""Every page and its JSON form, requested over HTTP as a browser does."""

from __future__ import annotations

import re
import sqlite3
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import jsonschema
import pytest

from metastore.console.pages.table import PAGES
from metastore.idl import Database
from tests.console.conftest import Console, Start
from tests.console.sample import EVIL
from tests.support.servers.servers import ROOT, free_port

DAY = "ds=2026-01-01/hr=1"
WORDS = {
    "/": ["Transaction 1", "holds up 3 others on sales.orders", "Compaction 1 of sales.orders failed: disk full", "Open transactions"],
    "/catalog": ["sales", "What was sold", "evil"],
    "/catalog?search=ers": ["sales.orders", "sales.customers", "Every order"],
    "/catalog?search=sa.orders": ["sales.orders"],
    "/database?database=sales": ["What was sold", "orders", "customers", "days", "lake", "alice"],
    "/database?database=sales&search=ord": ["orders", "Every order"],
    "/table?database=sales&name=orders": [
        "transactional", "decimal(10,2)", "the key", "CREATE TABLE `sales`.`orders`", "2 wait", "alice",
    ],
    "/table?database=sales&name=big_orders": ["virtual view", "CREATE VIEW `sales`.`big_orders` AS", "select 1"],
    "/table?database=sales&name=customers": ["primary key", "pk"],
    "/table?database=sales&name=lake": ["Iceberg", "outside of", "current-snapshot-id", "42", "external"],
    "/partitions?database=sales&table=days": [DAY, "ds string", "Next page"],
    f"/partition?database=sales&table=days&name={quote(DAY)}": [DAY, "numRows", "1000", "900"],
    "/statistics?database=sales&table=customers": ["amount", "4.5", "12"],
    "/transactions": ["bob@bob.example.org", "carol@carol.example.org", "a query"],
    "/transactions?state=aborted": ["None that you may see"],
    "/transactions/1": ["Transaction 1", "holds up 3 others", "Abort this transaction", "sales.orders", "Transaction 4", "update"],
    "/locks": ["Lock waits", "Transaction 1 of bob@bob.example.org holds up 3 on sales.orders", "waiting", "lock 1", "shared read"],
    "/locks?database=sales&table=customers": ["Transaction 1", "sales.customers"],
    "/locks/3": ["Lock 3", "carol", "Transaction 2", "Release this lock"],
    "/compactions": ["failed", "initiated", "worker-1"],
    "/compactions?state=failed": ["disk full"],
    "/compactions/1": ["disk full", "worker-1", "Try again"],
    "/compactions/2": ["initiated", "Take it off the queue"],
    "/events": ["CREATE_TABLE", "OPEN_TXN", "sales.orders"],
    "/events?database=sales&table=orders": ["CREATE_TABLE", "sales.orders"],
    "/events/3": ["CREATE_TABLE", '"tableObjJson"'],
    "/clients": ["127.0.0.1:", "http"],
    "/slow-calls": ["slow_call_threshold"],
    "/jobs": ["lease"],
    "/settings": ["warehouse", "default_catalog", "hive", "Users"],
}  # fmt: skip
"""The words of each page about the sample, by its path below `/ui`."""


@pytest.mark.parametrize("path", WORDS)
def test_a_page_shows_the_content(console: Console, path: str) -> None:
    found = console.get(f"/ui{path}")
    assert found.status == 200, found.text
    assert [word for word in WORDS[path] if word not in found.words] == []
    assert found.headers["content-type"] == "text/html; charset=utf-8"


def test_there_is_a_test_of_every_page() -> None:
    tested = {path.partition("?")[0] for path in WORDS}
    assert [page.path for page in PAGES if not any(re.fullmatch(page.path.replace("{id:int}", r"\d+"), path) for path in tested)] == []


def twin_of(path: str) -> str:
    return "/api/v1" + ("/overview" if path == "/" else path)


@pytest.fixture(scope="module")
def description(console: Console) -> Any:
    return console.get("/api/v1/openapi.json").json


@pytest.mark.parametrize("path", WORDS)
def test_the_same_comes_as_json_as_it_is_described(console: Console, description: Any, path: str) -> None:
    found = console.get(twin_of(path))
    assert (found.status, found.headers["content-type"]) == (200, "application/json")
    bare = twin_of(path).partition("?")[0].removeprefix("/api/v1")
    pattern = next(
        each for each in description["paths"] if each == bare or (each.endswith("/{id}") and each[:-4] == bare.rpartition("/")[0] + "/")
    )
    schema = description["paths"][pattern]["get"]["responses"]["200"]["content"]["application/json"]["schema"]
    jsonschema.validate(found.json, {**schema, "components": description["components"]})


LISTS = {
    "/catalog?search=ers": ("tables", "name"),
    "/database?database=sales": ("tables", "name"),
    "/partitions?database=sales&table=days": ("rows", "name"),
    "/transactions": ("rows", "transaction.id"),
    "/locks": ("rows", "id"),
    "/compactions": ("rows", "id"),
    "/events": ("rows", "last"),
}


@pytest.mark.parametrize("path", LISTS)
def test_a_page_and_its_json_show_the_same_rows(console: Console, path: str) -> None:
    name, key = LISTS[path]
    rows = console.get(twin_of(path)).json[name]
    page = console.get(f"/ui{path}")
    assert rows
    assert page.text.count('<th scope="row"') >= len(rows)
    for row in rows:
        value: Any = row
        for step in key.split("."):
            value = value[step]
        assert str(value) in page.words


def test_a_page_leads_to_its_json(console: Console) -> None:
    page = console.get("/ui/table?database=sales&name=orders").text
    assert 'href="/api/v1/table?database=sales&amp;name=orders"' in page
    assert console.get("/api/v1/table?database=sales&name=orders").json["name"] == "orders"
    assert 'href="/api/v1/overview"' in console.get("/ui/").text


def test_the_description_is_openapi(description: Any) -> None:
    pytest.importorskip("openapi_spec_validator", reason="comes with moto").validate(description)


def test_the_description_names_every_page_and_action(description: Any) -> None:
    assert description["openapi"] == "3.1.0"
    assert {"/overview", "/table", "/transactions/{id}", "/actions/abort-transaction"} <= description["paths"].keys()
    assert len(description["paths"]) == len(PAGES) + 4
    table = {each["name"]: each for each in description["paths"]["/table"]["get"]["parameters"]}
    assert (table["database"]["required"], table["catalog"]["required"]) == (True, False)
    kinds = description["paths"]["/actions/compact"]["post"]["requestBody"]["content"]["application/json"]["schema"]["properties"]["kind"]
    assert kinds == {"type": "string", "enum": ["major", "minor", "rebalance"], "default": "major"}


@pytest.mark.parametrize("path", ["/table?database=evil&name=evil", "/catalog", "/compactions", "/compactions/1", "/", "/events/8"])
def test_nothing_of_the_data_becomes_markup(console: Console, path: str) -> None:
    page = console.get(f"/ui{path}").text
    assert EVIL not in page
    assert "&lt;script&gt;" in page
    assert page.count("<script") == 1, "that of the console itself"
    assert " onclick" not in page
    assert "style=" not in page


def test_every_answer_forbids_features_that_pages_do_not_need(console: Console) -> None:
    for path in ("/ui/", "/ui/nothing", "/api/v1/overview", "/ui/static/console.css", "/ui/transactions/99"):
        headers = console.get(path).headers
        assert headers["content-security-policy"].startswith("default-src 'none'; script-src 'self'; style-src 'self'")
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "same-origin"
    assert console.get("/ui/").headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    ("path", "status", "text"),
    [
        ("/transactions/99", 404, "There is no transaction 99"),
        ("/locks/99", 404, "There is no lock 99"),
        ("/compactions/99", 404, "There is no compaction 99"),
        ("/events/99999", 404, "There is no event 99999"),
        ("/table?database=sales&name=nothing", 404, "sales.nothing"),
        ("/database?database=nothing", 404, "nothing"),
        ("/partition?database=sales&table=days&name=ds%3D1%2Fhr%3D1", 404, "partition"),
        ("/table?database=sales", 400, "name is missing"),
        ("/transactions?after=x", 400, "after is not a number: 'x'"),
        ("/transactions?after=" + "9" * 30, 400, "too large"),
        ("/transactions?state=odd", 400, "state is none of open, aborted"),
        ("/partitions?database=sales&table=days&filter=ds+%3E", 400, ""),
        ("/partitions?database=sales&table=nothing", 404, "nothing"),
        ("/catalog?search=a&after_table=x", 400, "after_table is not a key of a page"),
        ("/nothing", 404, "Not Found"),
    ],
)
def test_a_wrong_request_is_reported(console: Console, path: str, status: int, text: str) -> None:
    page = console.get(f"/ui{path}")
    assert page.status == status
    assert text in page.words
    found = console.get(f"/api/v1{path}")
    assert found.status == status
    assert text in found.json["error"]


def test_addresses_that_are_no_pages_lead_to_them(console: Console) -> None:
    assert (console.get("/ui").status, console.get("/ui").headers["location"]) == (307, "/ui/")
    assert console.post("/ui/catalog").status == 405
    assert console.ask("HEAD", "/ui/").text == ""
    assert console.ask("HEAD", "/ui/").status == 200
    assert console.get("/uinothing").status == 404


def test_files_of_pages_come_with_their_type(console: Console) -> None:
    page = console.get("/ui/").text
    for name, kind in (("console.css", "text/css"), ("htmx.min.js", "text/javascript"), ("icon.svg", "image/svg+xml")):
        address = next(part for part in page.split('"') if part.startswith(f"/ui/static/{name}?v="))
        found = console.get(address)
        assert found.headers["content-type"].partition(";")[0] in (kind, "application/javascript")
        assert "immutable" in found.headers["cache-control"]
    assert console.get("/ui/static/../app.py").status == 404
    assert "Zero-Clause BSD" in console.get("/ui/static/htmx.LICENSE").text


def test_partitions_are_filtered_and_paged(console: Console) -> None:
    def names(**asked: str) -> tuple[list[str], str | None]:
        found = console.get("/api/v1/partitions?" + urlencode({"database": "sales", "table": "days", **asked})).json
        return [row["name"] for row in found["rows"]], found["next"]

    assert names(filter="hr = 7") == ([f"ds=2026-01-0{day}/hr=7" for day in range(1, 8)], None)
    assert names(filter="ds = '2026-01-02' and hr > 21") == (["ds=2026-01-02/hr=22", "ds=2026-01-02/hr=23"], None)
    assert names(search="01-03/hr=1", filter="hr < 12") == ([f"ds=2026-01-03/hr={hour}" for hour in (1, 10, 11)], None)
    every: list[str] = []
    after = ""
    pages = 0
    while after is not None:
        found, after = names(after=after)  # type: ignore[assignment]
        every += found
        pages += 1
    assert (len(every), len(set(every)), every == sorted(every), pages) == (168, 168, True, 4)


def test_settings_hide_secrets_and_say_where_they_come_from(start: Start) -> None:
    found = start(ldap_bind_password="hunter2", authorization_url="http://u:hunter2@127.0.0.1:1/x", sources={"port": "--port"})
    page = found.get("/ui/settings")
    assert "hunter2" not in page.text
    assert "(not shown)" in page.words
    groups = found.get("/api/v1/settings").json["groups"]
    rows = {row["name"]: row for group in groups for row in group["settings"]}
    assert rows["authorization_url"]["value"] == "http://u:***@127.0.0.1:1/x"
    assert (rows["port"]["source"], rows["host"]["source"]) == ("--port", "default")


def test_a_console_that_is_not_installed_says_how(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "metastore.console.app", raising=False)
    monkeypatch.setitem(sys.modules, "starlette.applications", None)
    found = start()
    for path in ("/ui/", "/api/v1/overview"):
        answer = found.get(path)
        assert (answer.status, "pip install '.[console]'" in answer.text) == (404, True)
    assert found.get("/api/v1/clients").status == 200, "needs nothing"
    monkeypatch.undo()
    assert found.get("/ui/").status == 200


def test_a_console_that_is_switched_off_is_not_there(start: Start) -> None:
    found = start(console=False)
    assert found.get("/ui/").status == 404
    assert found.get("/healthz").status == 200


def test_views_of_pages_are_logged_and_counted_as_calls(start: Start) -> None:
    found = start()
    found.get("/ui/catalog")
    found.get("/ui/table?database=default&name=nothing")
    metrics = found.get("/metrics").text
    assert 'metastore_call_seconds_count{method="show_databases_page",outcome="ok"} 1.0' in metrics
    assert 'metastore_call_seconds_count{method="get_table_req",outcome="NoSuchObject"} 1.0' in metrics


def test_clients_and_slow_calls_have_one_json(start: Start) -> None:
    """The server answers these two requests itself, also without the console. The description is correct for both answers."""
    found = start(slow_call_threshold=0.000001)
    with found.client() as client:
        client.get_all_databases()
        slow = found.get("/api/v1/slow-calls").json
        schemas = found.get("/api/v1/openapi.json").json["components"]
        jsonschema.validate(slow, {"$ref": "#/components/schemas/SlowCalls", "components": schemas})
        assert "get_all_databases" in [each["method"] for each in slow["slow_calls"]]
        assert "get_all_databases" in found.get("/ui/slow-calls").words
        clients = found.get("/api/v1/clients").json
        jsonschema.validate(clients, {"$ref": "#/components/schemas/Clients", "components": schemas})
        assert "get_all_databases" in found.get("/ui/clients").words


def test_a_search_takes_every_character_for_itself(start: Start) -> None:
    found = start()
    with found.client() as client:
        client.create_database(Database(name="a_b"))
        client.create_database(Database(name="axb"))
    names = [row["name"] for row in found.get("/api/v1/catalog?search=a_b").json["databases"]]
    assert names == ["a_b"], "a line is not a pattern"
    assert found.get("/api/v1/catalog?search=%25").json["databases"] == []


def test_snapshots_of_a_real_iceberg_table_are_shown(start: Start) -> None:
    pa = pytest.importorskip("pyarrow")
    pyiceberg = pytest.importorskip("pyiceberg.catalog")
    found = start()
    rows = pa.table({"id": pa.array([1, 2, 3], pa.int64())})
    lake = pyiceberg.load_catalog("lake", type="hive", uri=found.server.uri, warehouse=found.config.warehouse)
    lake.create_namespace("lake")
    made = lake.create_table("lake.t", schema=rows.schema)
    made.append(rows)
    made.append(rows)
    shown = found.get("/api/v1/table?database=lake&name=t").json["iceberg"]
    assert (shown["problem"], shown["number"]) == ("", 2)
    current = made.refresh().current_snapshot()
    snapshot = shown["rows"][0]
    assert (snapshot["id"], snapshot["current"], snapshot["refs"]) == (str(current.snapshot_id), True, ["main"])
    page = found.get("/ui/table?database=lake&name=t").words
    assert f"{current.snapshot_id} current" in page
    assert "total-records 6" in page


def test_the_console_is_on_the_port_of_the_pages_too(start: Start) -> None:
    port = free_port()
    found = start(admin_port=port)
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/ui/", timeout=30) as answer:
        assert (answer.status, b"Overview" in answer.read()) == (200, True)
    assert found.get("/ui/").status == 200


def test_a_database_that_is_gone_is_the_first_problem(start: Start) -> None:
    found = start()
    assert "None that the server knows of." in found.get("/ui/").words
    path = Path(found.config.db.removeprefix("sqlite:///"))
    for each in path.parent.glob(f"{path.name}*"):
        each.write_bytes(b"no database " * 1000)
    page = found.get("/ui/")
    assert (page.status, "The database can not be asked" in page.words) == (200, True)
    failed = found.get("/ui/catalog")
    assert (failed.status, failed.text) == (500, "The page failed; the server's log says why\n")


def test_nothing_of_the_console_is_loaded_before_somebody_asks() -> None:
    names = "{'starlette', 'jinja2', 'metastore.console.app'}"
    text = f"import sys, metastore.app, metastore.wire.connection.server; print(sorted({names} & sys.modules.keys()))"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True, cwd=ROOT, timeout=60)
    assert done.stdout.strip() == "[]"


def test_every_page_is_documented() -> None:
    text = (ROOT / "docs" / "console.md").read_text()
    titles = [page.title for page in PAGES if "{" not in page.path and page.title not in {"Database", "Partition"}]
    assert [title for title in titles if title not in text] == []


def test_numbers_of_a_database_that_can_not_be_asked_are_not_zero(start: Start) -> None:
    found = start()
    with sqlite3.connect(found.config.db.removeprefix("sqlite:///")) as database:
        database.execute("DROP TABLE alembic_version")
    page = found.get("/ui/")
    assert page.status == 200
    assert "The database can not be asked: calls fail." in page.words
    assert page.text.count("not known: the database can not be asked") == 5
    assert "The numbers of objects are not known" in page.words
    overview = found.get("/api/v1/overview").json
    unknown = ("open_transactions", "oldest_transaction", "locks", "compactions", "objects", "last_event")
    assert [overview[name] for name in unknown] == [None] * len(unknown)
    schemas = found.get("/api/v1/openapi.json").json["components"]
    jsonschema.validate(overview, {"$ref": "#/components/schemas/Front", "components": schemas})


def test_short_addresses_lead_to_the_console(console: Console, start: Start) -> None:
    for path, to in (("/", "/ui/"), ("/favicon.ico", "/ui/static/icon.svg")):
        answer = console.get(path)
        assert (answer.status, answer.headers["location"]) == (307, to)
        assert console.get(to).status == 200
        assert console.post(path).status in {404, 405}
        assert start(console=False).get(path).status == 404


def test_a_lock_that_waits_says_for_how_long(console: Console) -> None:
    rows = console.get("/api/v1/locks").json["rows"]
    for each in rows:
        assert (each["waiting"] is None) == (each["state"] == "acquired") == (each["acquired"] is not None)
    waits = next(each for each in rows if each["state"] == "waiting")
    assert abs(waits["waiting"] / 1000 - time.time()) < 3600
    for path in ("/locks", f"/locks/{waits['id']}", "/table?database=sales&name=orders", f"/transactions/{waits['transaction']}"):
        words = console.get(f"/ui{path}").words
        assert re.search(r"(waits|held) \d+(\.\d+)? (ms|s|min|h)", words), path
    assert re.search(r"waits \d", console.get("/ui/locks").words)
    assert console.get("/api/v1/lock-waits").json["waiting_since_ms"][str(waits["id"])] == waits["waiting"]
