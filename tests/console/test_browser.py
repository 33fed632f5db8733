"""The console in a real browser: an operator's way to the blocker of a table, the needs of screen readers, and data with scripts."""

from __future__ import annotations

import base64
import shutil
from collections.abc import Iterator
from typing import Any

import pytest

from metastore.console.pages.table import PAGES
from metastore.idl import Database
from tests.console.conftest import Console, password_of
from tests.console.test_pages import WORDS
from tests.wire.auth.speaking import request

playwright = pytest.importorskip("playwright.sync_api", reason="pip install playwright")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium: the one that Playwright has installed, or else the system's."""
    with playwright.sync_playwright() as started:
        try:
            found = started.chromium.launch()
        except playwright.Error:
            system = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
            if system is None:
                pytest.skip("there is no Chromium: .ci/watching, or playwright install chromium")
            found = started.chromium.launch(executable_path=system, args=["--no-sandbox"])
        yield found
        found.close()


class Watched:
    """A page of the browser, and the browser's complaints about it."""

    def __init__(self, browser: Any, base: str, **options: Any) -> None:
        self.context = browser.new_context(base_url=base, **options)
        self.page = self.context.new_page()
        self.complaints: list[str] = []
        self.page.on("console", lambda message: message.type in {"error", "warning"} and self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", lambda dialog: (self.complaints.append(f"dialog {dialog.message}"), dialog.dismiss()))


@pytest.fixture
def watched(browser: Any, console: Console) -> Iterator[Watched]:
    found = Watched(browser, console.url)
    yield found
    found.context.close()


def test_three_clicks_lead_from_the_front_to_aborting_who_blocks_a_table(browser: Any, start: Any) -> None:
    from tests.console import sample

    found = start()
    with found.client() as client:
        sample.fill(client)
    watched = Watched(browser, found.url)
    page = watched.page
    page.goto("/ui/")
    page.get_by_role("link", name="Transaction 1 of bob@bob.example.org holds up 3 others on sales.orders").click()
    playwright.expect(page).to_have_title("Transaction 1 · metastore")
    page.get_by_role("link", name="Abort this transaction").click()
    playwright.expect(page.get_by_role("heading", level=1)).to_have_text("Abort transaction 1?")
    page.get_by_role("button", name="Abort transaction").click()
    playwright.expect(page.get_by_role("status")).to_have_text("Done: Abort transaction.")
    playwright.expect(page.get_by_role("heading", level=1)).to_contain_text("aborted")
    assert watched.complaints == []
    watched.context.close()


def test_a_table_leads_to_who_blocks_it_by_the_drawing(watched: Watched) -> None:
    page = watched.page
    page.goto("/ui/table?database=sales&name=orders")
    page.get_by_role("link", name="2 wait: see who holds them up").click()
    page.get_by_role("link", name="Transaction 1, holds up 3").click()
    playwright.expect(page).to_have_title("Transaction 1 · metastore")
    assert watched.complaints == []


@pytest.mark.parametrize(
    ("scheme", "one_in"), [("light", 2), ("dark", 9), *(pytest.param(each, 1, marks=pytest.mark.slow) for each in ("light", "dark"))]
)
def test_axe_finds_nothing_serious_on_any_page(browser: Any, console: Console, scheme: str, one_in: int) -> None:
    """No page has a serious fault. The quick tests visit some of the pages, since all pages have the same colors."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="pip install axe-playwright-python").Axe()
    watched = Watched(browser, console.url, color_scheme=scheme, bypass_csp=True)  # axe is a script that the policy forbids
    found = {}
    for path in [*WORDS, "/actions/abort-transaction?id=1", "/transactions/99"][::one_in]:
        watched.page.goto(f"/ui{path}")
        violations = axe.run(watched.page).response["violations"]
        bad = [(each["id"], each["nodes"][0]["html"][:200]) for each in violations if each["impact"] in {"serious", "critical", "moderate"}]
        if bad:
            found[path] = bad
    assert found == {}
    watched.context.close()


@pytest.mark.parametrize("width", [1280, 390])
def test_no_page_complains_runs_data_or_is_wider_than_its_window(browser: Any, console: Console, width: int) -> None:
    watched = Watched(browser, console.url, viewport={"width": width, "height": 800})
    for path in WORDS:
        watched.page.goto(f"/ui{path}")
        assert watched.page.evaluate("document.documentElement.scrollWidth") <= width, path
    assert watched.complaints == []
    watched.context.close()


@pytest.mark.parametrize("width", [1280, 390])
def test_slow_calls_are_readable(browser: Any, start: Any, width: int) -> None:
    found = start(slow_call_threshold=0.000001)
    with found.client() as client:
        client.create_database(Database(name="a" * 60, description="b" * 5000))
        client.get_all_databases()
    watched = Watched(browser, found.url, viewport={"width": width, "height": 800})
    watched.page.goto("/ui/slow-calls")
    rows = watched.page.locator(".calls > li").all()
    assert len(rows) >= 2
    for row in rows:
        assert row.bounding_box()["height"] < 300
    assert watched.page.evaluate("document.documentElement.scrollWidth") <= width
    watched.page.get_by_text("Arguments").first.click()
    playwright.expect(watched.page.locator(".calls details[open] .code").first).to_be_visible()
    assert watched.complaints == []
    watched.context.close()


def test_a_script_in_names_and_comments_does_not_run(watched: Watched) -> None:
    for path in ("/table?database=evil&name=evil", "/catalog", "/compactions/1", "/", "/events/8"):
        watched.page.goto(f"/ui{path}")
        playwright.expect(watched.page.locator("main")).to_contain_text("<script>alert(1)</script>")
    assert watched.complaints == []


def test_the_policy_stops_a_script_that_gets_in_all_the_same(watched: Watched) -> None:
    page = watched.page
    page.goto("/ui/")
    page.evaluate("const s = document.createElement('script'); s.textContent = 'window.ran = 1'; document.body.append(s)")
    page.evaluate("document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"window.ran = 1\"><p style=\"color: red\">x</p>')")
    page.wait_for_function("document.images.length === 1")
    assert page.evaluate("window.ran") is None
    assert any("Content Security Policy" in each for each in watched.complaints)


def test_a_search_shows_matches_while_one_types(watched: Watched) -> None:
    page = watched.page
    page.goto("/ui/catalog")
    page.get_by_label("Part of a name").press_sequentially("order")
    playwright.expect(page.get_by_role("link", name="sales.orders")).to_be_visible()
    playwright.expect(page).to_have_url(f"{page.url.partition('/ui')[0]}/ui/catalog?catalog=hive&search=order")
    page.get_by_role("link", name="sales.orders").click()
    playwright.expect(page.get_by_role("heading", level=1)).to_have_text("Table orders")
    assert watched.complaints == []


def test_the_overview_renews_itself_and_keeps_the_focus(browser: Any, start: Any) -> None:
    from tests.console import sample

    found = start()
    watched = Watched(browser, found.url)
    page = watched.page
    page.goto("/ui/")
    playwright.expect(page.get_by_text("None that the server knows of.")).to_be_visible()
    page.locator("#tile-locks").focus()
    with found.client() as client:
        sample.fill(client)
    playwright.expect(page.get_by_role("link", name="holds up 3 others")).to_be_visible(timeout=20_000)
    assert page.evaluate("document.activeElement.id") == "tile-locks"
    assert watched.complaints == []
    watched.context.close()


def test_everything_is_reached_by_the_keyboard(watched: Watched) -> None:
    page = watched.page
    page.goto("/ui/transactions/1")
    page.keyboard.press("Tab")
    playwright.expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    page.keyboard.press("Tab")
    playwright.expect(page.locator("main").get_by_role("link", name="Transactions")).to_be_focused()
    page.keyboard.press("Tab")
    playwright.expect(page.get_by_role("link", name="Abort this transaction")).to_be_focused()


def test_pages_work_without_scripts(browser: Any, console: Console) -> None:
    watched = Watched(browser, console.url, java_script_enabled=False)
    page = watched.page
    page.goto("/ui/catalog")
    page.get_by_label("Part of a name").fill("order")
    page.get_by_role("button", name="Search").click()
    page.get_by_role("link", name="sales.orders").click()
    playwright.expect(page.get_by_role("heading", level=1)).to_have_text("Table orders")
    watched.context.close()


def test_another_site_can_not_act_by_a_visitors_browser(browser: Any, console: Console, guarded: Console) -> None:
    """The page of another origin posts a form with the browser's password and all fields that it can set."""
    credentials = {"username": "root", "password": password_of("root")}
    watched = Watched(browser, console.url, http_credentials=credentials)
    page = watched.page
    page.goto(f"{guarded.url}/ui/transactions/4")
    playwright.expect(page.get_by_role("link", name="Abort this transaction")).to_be_visible()
    page.goto(f"{guarded.url}/ui/actions/abort-transaction?id=4")
    evil = f"""<form method=post action="{guarded.url}/ui/actions/abort-transaction">
        <input name=id value=4><input name=token value=x><button>win a prize</button></form>"""
    page.route("http://evil.test/", lambda route: route.fulfill(body=evil, content_type="text/html"))
    page.goto("http://evil.test/")
    page.get_by_role("button", name="win a prize").click()
    playwright.expect(page.get_by_text("This request comes from")).to_be_visible()
    assert guarded.get("/api/v1/transactions/4", "root").json["transaction"]["state"] == "open"
    watched.context.close()


ATTACKS = """async ([url, message]) => {
    const body = Uint8Array.from(atob(message), each => each.charCodeAt(0)), replies = [];
    const ways = [
        {mode: "no-cors"}, {mode: "no-cors", headers: {"Content-Type": "text/plain"}}, {mode: "no-cors", credentials: "include"},
        {mode: "cors"}, {mode: "cors", headers: {"Content-Type": "application/x-thrift"}},
    ];
    for (const way of ways)
        replies.push(await fetch(url, {method: "POST", body, ...way}).then(answer => answer.type, error => error.name));
    return replies;
}"""


@pytest.mark.parametrize("is_foreign", [True, False])
def test_no_page_can_call_thrift(browser: Any, start: Any, console: Console, is_foreign: bool) -> None:
    """No page of another site can call Thrift. Neither can a page of the server, if a foreign script is injected into it."""
    server = start()
    site = console.url.replace("127.0.0.1", "localhost") if is_foreign else server.url
    with server.client() as client:
        client.create_database(Database(name="shop"))
        watched = Watched(browser, server.url, bypass_csp=True)
        watched.page.goto(f"{site}/ui/")
        message = base64.b64encode(request("drop_database", name="shop", deleteData=True, cascade=True)).decode()
        answers = watched.page.evaluate(ATTACKS, [f"{server.url}/metastore", message])
        assert answers == (["opaque"] * 3 + ["TypeError"] * 2 if is_foreign else ["basic"] * 5)
        assert client.get_all_databases() == ["default", "shop"]
        watched.context.close()


def test_every_page_is_whole_under_few_rights(browser: Any, guarded: Console) -> None:
    watched = Watched(browser, guarded.url, http_credentials={"username": "alice", "password": password_of("alice")})
    statuses = {}
    for path in WORDS:
        answer = watched.page.goto(f"/ui{path}")
        statuses[path] = answer.status
        playwright.expect(watched.page.get_by_role("navigation", name="Pages")).to_be_visible()
        assert "alice" in watched.page.locator(".user").inner_text()
    private = {page.path for page in PAGES if page.admin} | {"/transactions/1", "/events?database=sales&table=orders"}
    assert {path for path, status in statuses.items() if status == 403} == private - {"/events?database=sales&table=orders"}
    watched.context.close()
