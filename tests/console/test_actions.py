"""The actions of operators on the console, and requests that must not trigger them."""

from __future__ import annotations

import http.client
import json
import ssl
from pathlib import Path
from urllib.parse import urlencode

import pytest

from metastore.client import connect
from metastore.idl import LockType, ShowLocksRequest
from tests.console import sample
from tests.console.conftest import Answer, Console, Start
from tests.support.logins.certificates import Authority
from tests.support.servers.servers import serving

FORM = "application/x-www-form-urlencoded"


@pytest.fixture(scope="module")
def acting(start: Start, tmp_path_factory: pytest.TempPathFactory) -> Console:
    """A server with a sample that the tests of this file change."""
    found = start(audit_log=str(tmp_path_factory.mktemp("audit") / "audit.log"))
    with found.client() as client:
        sample.fill(client)
    return found


def audited(console: Console, method: str) -> list[dict[str, str]]:
    lines = [json.loads(line) for line in Path(console.config.audit_log or "").read_text().splitlines()]
    return [line for line in lines if line["method"] == method]


def submit(console: Console, path: str, user: str = "", **headers: str) -> Answer:
    """Ask for the page of an action and send its form as a browser does."""
    page = console.get(path, user)
    assert page.status == 200, page.words
    cookie = page.headers["set-cookie"]
    assert {"HttpOnly", "SameSite=strict", "Path=/ui/actions"} <= {part.strip() for part in cookie.split(";")}
    action, _, query = path.partition("?")
    fields = dict(pair.split("=", 1) for pair in query.split("&"))
    token = cookie.partition("=")[2].partition(";")[0]
    assert f'name="token" value="{token}"' in page.text
    sent = {
        "Content-Type": FORM, "Cookie": f"metastore-console={token}", "Origin": console.url, "Sec-Fetch-Site": "same-origin", **headers,
    }  # fmt: skip
    return console.post(action, user, urlencode({**fields, "token": token}), {key: value for key, value in sent.items() if value})


def states(console: Console) -> dict[int, str]:
    found = console.get("/api/v1/transactions").json["rows"] + console.get("/api/v1/transactions?state=aborted").json["rows"]
    return {each["transaction"]["id"]: each["transaction"]["state"] for each in found}


def test_a_transaction_is_aborted_after_a_question(acting: Console) -> None:
    with acting.client() as client:
        key = sample.open_transaction(client)
        waiting = sample.open_transaction(client)
        sample.lock_on(client, "lake", LockType.EXCLUSIVE, key)
        sample.lock_on(client, "lake", LockType.SHARED_READ, waiting)
    asked = acting.get(f"/ui/actions/abort-transaction?id={key}")
    assert f"Abort transaction {key}?" in asked.words
    assert "directly or through others, and can continue: 1." in asked.words
    assert states(acting)[key] == "open", "asking changes nothing"
    done = submit(acting, f"/ui/actions/abort-transaction?id={key}")
    assert (done.status, done.headers["location"]) == (303, f"/ui/transactions/{key}?done=abort-transaction")
    assert "Done: Abort transaction." in acting.get(done.headers["location"]).words
    assert states(acting)[key] == "aborted"
    assert [(line["object"], line["outcome"]) for line in audited(acting, "abort_txn")] == [(f"txnid {key}", "ok")]
    again = submit(acting, "/ui/actions/abort-transaction?id=9999")
    assert (again.status, "9999" in again.words) == (404, True)


def test_a_lock_is_released(acting: Console) -> None:
    with acting.client() as client:
        key = sample.lock_on(client, "lake", LockType.SHARED_READ, 0)
        assert f"Release lock {key}?" in acting.get(f"/ui/actions/release-lock?id={key}").words
        assert submit(acting, f"/ui/actions/release-lock?id={key}").headers["location"] == "/ui/locks?done=release-lock"
        assert key not in [each.lockid for each in client.show_locks(ShowLocksRequest()).locks]
        held = client.show_locks(ShowLocksRequest(tablename="orders", dbname="sales")).locks[0].lockid
        refused = submit(acting, f"/ui/actions/release-lock?id={held}")
        assert (refused.status, "belongs to an open transaction" in refused.words) == (400, True)


def test_a_compaction_is_tried_again_and_taken_off_the_queue(acting: Console) -> None:
    page = acting.get("/ui/compactions/1").text
    assert "/ui/actions/compact?catalog=hive&amp;database=sales&amp;table=orders&amp;kind=major" in page
    queued = submit(acting, "/ui/actions/compact?catalog=hive&database=sales&table=orders&kind=minor")
    where = queued.headers["location"].partition("?")[0]
    assert queued.status == 303
    found = acting.get(where.replace("/ui", "/api/v1")).json
    assert (found["state"], found["type"], found["table"], found["initiator"]) == ("initiated", "minor", "orders", "console")
    twice = submit(acting, "/ui/actions/compact?catalog=hive&database=sales&table=orders&kind=major")
    assert (twice.status, "already scheduled" in twice.words) == (400, True)
    assert submit(acting, f"/ui/actions/cancel-compaction?id={found['id']}").status == 303
    assert acting.get(where.replace("/ui", "/api/v1")).json["state"] == "aborted"
    ended = submit(acting, "/ui/actions/cancel-compaction?id=1")
    assert (ended.status, "state-failed" in ended.words) == (400, True)
    assert acting.get("/ui/actions/compact?database=sales&table=orders&kind=odd").status == 400


def test_programs_act_by_json(acting: Console) -> None:
    with acting.client() as client:
        key = sample.open_transaction(client)
    path, body = "/api/v1/actions/abort-transaction", json.dumps({"id": key})
    assert acting.post(path, body=body).status == 415
    assert acting.post(path, body=body, headers={"Content-Type": "text/plain"}).status == 415, "what a form can send"
    assert acting.post(path, body="[1]", headers={"Content-Type": "application/json"}).status == 400
    assert acting.post(path, body="{", headers={"Content-Type": "application/json"}).status == 400
    assert acting.post(path, body="{}", headers={"Content-Type": "application/json"}).json == {
        "error": "The parameter id is missing: give it"
    }
    done = acting.post(path, body=body, headers={"Content-Type": "application/json"})
    assert (done.status, done.json) == (200, {"text": f"Transaction {key} is aborted.", "path": f"/ui/transactions/{key}"})
    assert states(acting)[key] == "aborted"
    assert acting.get(path).status == 405


FORGED = {
    "of another site": {"Sec-Fetch-Site": "cross-site"},
    "of a sibling": {"Sec-Fetch-Site": "same-site"},
    "typed in": {"Sec-Fetch-Site": "none"},
    "from another origin": {"Origin": "http://evil.example.org", "Sec-Fetch-Site": ""},
    "from another port": {"Origin": "http://127.0.0.1:1", "Sec-Fetch-Site": ""},
    "from nowhere": {"Origin": "null", "Sec-Fetch-Site": ""},
    "without a cookie": {"Cookie": ""},
    "with another cookie": {"Cookie": "metastore-console=abc"},
    "with an empty cookie": {"Cookie": "metastore-console="},
}


@pytest.mark.parametrize("how", FORGED)
def test_a_forged_form_does_nothing(acting: Console, how: str) -> None:
    with acting.client() as client:
        key = sample.open_transaction(client)
    done = submit(acting, f"/ui/actions/abort-transaction?id={key}", **FORGED[how])
    assert done.status == 403
    assert states(acting)[key] == "open"


@pytest.mark.parametrize("how", [name for name in FORGED if "cookie" not in name])
def test_a_forged_request_of_json_does_nothing(acting: Console, how: str) -> None:
    with acting.client() as client:
        key = sample.open_transaction(client)
    headers = {name: value for name, value in {"Content-Type": "application/json", **FORGED[how]}.items() if value}
    assert acting.post("/api/v1/actions/abort-transaction", body=json.dumps({"id": key}), headers=headers).status == 403
    assert states(acting)[key] == "open"


def test_a_link_does_nothing(acting: Console) -> None:
    with acting.client() as client:
        key = sample.open_transaction(client)
    acting.get(f"/ui/actions/abort-transaction?id={key}&token=x")
    assert states(acting)[key] == "open"


def test_a_proxy_does_not_lend_its_address(acting: Console) -> None:
    """Visitors through a proxy on the server's machine are not treated as visitors of this machine."""
    with acting.client() as client:
        key = sample.open_transaction(client)
    page = acting.get(f"/ui/transactions/{key}", headers={"X-Forwarded-For": "10.0.0.1"})
    assert "Abort this transaction" not in page.words
    asked = acting.get(f"/ui/actions/abort-transaction?id={key}", headers={"X-Forwarded-For": "10.0.0.1"})
    assert "Log in to do this" in asked.words
    assert submit(acting, f"/ui/actions/abort-transaction?id={key}", **{"X-Forwarded-For": "10.0.0.1"}).status == 403
    assert states(acting)[key] == "open"


def test_rights_are_those_of_the_method(guarded: Console) -> None:
    refused = submit(guarded, "/ui/actions/abort-transaction?id=3", "mallory")
    assert refused.status == 403
    assert "Permission denied" in refused.words
    line = audited(guarded, "abort_txn")[-1]
    assert (line["user"], line["outcome"], line["mechanism"]) == ("mallory", "refused", "users")
    assert guarded.get("/api/v1/transactions/3", "root").json["transaction"]["state"] == "open"
    for path in ("/ui/actions/release-lock?id=6", "/ui/actions/compact?database=sales&table=orders"):
        assert submit(guarded, path, "mallory").status == 403
    assert guarded.get("/ui/actions/cancel-compaction?id=2", "mallory").status == 404, "of a table that is hidden"
    assert submit(guarded, "/ui/actions/abort-transaction?id=4", "root").status == 303
    assert audited(guarded, "abort_txn")[-1]["outcome"] == "ok"


def test_nobody_acts_without_a_login_where_rights_are_asked_for(start: Start) -> None:
    found = start(authentication=("users", "anonymous"), authorization="grants", admin_users=("root",))
    with found.client("root") as client:
        key = sample.open_transaction(client, "root")
    headers = {"Content-Type": "application/json"}
    body = json.dumps({"id": key})
    refused = found.post("/api/v1/actions/abort-transaction", body=body, headers={**headers, "X-Actor-Username": "root"})
    assert (refused.status, "Log in to act" in refused.text) == (403, True)
    assert found.post("/api/v1/actions/abort-transaction", "root", body, headers).status == 200


def test_a_form_that_is_too_long_is_refused(acting: Console) -> None:
    assert acting.post("/ui/actions/abort-transaction", body="x" * 100_000).status == 413


def test_a_form_of_one_process_is_taken_by_the_others_and_over_tls(tmp_path: Path) -> None:
    """The form's token is stored in the browser: processes of the server, and servers behind a balancer, need not share it."""
    authority = Authority(tmp_path)
    certificate = authority.issue("server")
    with serving("--workers", "3", "--set", f"tls_certificate={certificate}", home=tmp_path / "server") as server:
        port = int(server.uri.rpartition(":")[2])
        context = ssl.create_default_context(cafile=str(authority.file))
        with connect(server.uri, tls=context, timeout=30) as client:
            keys = [sample.open_transaction(client) for _ in range(6)]

        def ask(method: str, path: str, body: str | None = None, headers: dict[str, str] | None = None) -> http.client.HTTPResponse:
            connection = http.client.HTTPSConnection("localhost", port, timeout=30, context=context)
            connection.request(method, path, body, headers or {})
            answer = connection.getresponse()
            answer.read()
            connection.close()
            return answer

        cookie = ask("GET", f"/ui/actions/abort-transaction?id={keys[0]}").getheader("set-cookie") or ""
        assert cookie.startswith("__Host-metastore-console=")
        assert {"Secure", "HttpOnly", "Path=/", "SameSite=strict"} <= {part.strip() for part in cookie.split(";")}
        assert "Domain" not in cookie
        token = cookie.partition("=")[2].partition(";")[0]
        headers = {"Content-Type": FORM, "Cookie": f"__Host-metastore-console={token}", "Origin": f"https://localhost:{port}"}
        weaker = {**headers, "Cookie": f"metastore-console={token}"}  # which a sibling of the host may have set
        assert ask("POST", "/ui/actions/abort-transaction", f"id={keys[0]}&token={token}", weaker).status == 403
        done = [ask("POST", "/ui/actions/abort-transaction", f"id={key}&token={token}", headers).status for key in keys]
        assert done == [303] * 6
