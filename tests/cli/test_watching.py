"""`metastore slow` and `metastore top` against a real server."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import shlex
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from metastore import idl
from metastore.cli import app
from metastore.cli.server import slow
from metastore.cli.server.top import Calls, read_sample, view
from metastore.client import connect
from tests.support.logins.certificates import Authority
from tests.support.servers.servers import COMMAND, ROOT, run_command, serving


def run(*arguments: str, **variables: str) -> Result:
    return CliRunner(env=variables).invoke(app, list(arguments))


@pytest.fixture(scope="module")
def uri(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server that keeps every call, with a lock that waits for another."""
    home = tmp_path_factory.mktemp("server")
    with serving("--workers", "2", "--set", "slow_call_threshold=0.000001", home=home) as server, connect(server.uri) as client:
        client.set_ugi("ann", [])
        client.create_database(idl.Database(name="shop"))
        for user in ("ann", "bob"):
            part = idl.LockComponent(type=idl.LockType.EXCLUSIVE, level=idl.LockLevel.DB, dbname="shop")
            client.lock(idl.LockRequest(component=[part], user=user, hostname="here", agentInfo="query-7"))
        yield server.uri


def test_slow_calls_are_listed(uri: str) -> None:
    calls = json.loads(run("slow", "--uri", uri, "--json", "--method", "lock").stdout)
    assert [(each["method"], each["query"], each["user"]) for each in calls] == [("lock", "query-7", "ann")] * 2
    rows = [line.split("\t") for line in run("slow", "--uri", uri, "--user", "ann", "--limit", "3").stdout.splitlines()]
    assert len(rows) == 3
    assert rows[0][slow.HEADER.index("method")] == "lock"
    assert run("slow", "--uri", uri, "--user", "nobody").stdout == ""


def test_slow_calls_fit_a_terminal_of_eighty_columns(uri: str) -> None:
    command = [*COMMAND, "slow", "--uri", uri, "--method", "lock"]
    shown = subprocess.run(
        ["script", "-qec", shlex.join(command), "/dev/null"],
        cwd=ROOT, capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL,
        env={**os.environ, "COLUMNS": "80", "TERM": "dumb"},
    ).stdout.splitlines()  # fmt: skip
    assert max(map(len, shown)) <= 80
    assert shown[0].split() == ["when", "took", "call", "for", "of", "that"]
    assert sum(re.search(r"ago +\S+ +lock\b", line) is not None for line in shown) == 2  # names of methods are not cut
    assert sum(re.search(r"\b\d+ statements", line) is not None for line in shown) == 2
    assert len(shown) < 16


def test_top_shows_rates_waiting_locks_and_slow_calls(uri: str) -> None:
    done = run("top", "--uri", uri, "--once", "--interval", "0.5")
    assert done.exit_code == 0, done.output
    assert re.search(r"^0\.0 calls/s, 0\.0 errors/s; \d+ connections; 0 open transactions; 1 locks wait, 1 are held", done.stdout)
    assert re.search(r"locks that wait:\n\d+\tshop\texclusive\tbob\t\d+\t\d+m? ?\d*s?\n", done.stdout)
    assert "slow calls:\n" in done.stdout


def test_top_draws_on_a_terminal_until_it_is_interrupted(uri: str) -> None:
    master, end = pty.openpty()
    heeding = ("env", "--default-signal=INT")  # programs in the background of a shell ignore the signal, with all their children
    command = [*heeding, *COMMAND, "top", "--uri", uri, "--interval", "0.2"]
    process = subprocess.Popen(command, stdout=end, stderr=end, stdin=end, cwd=ROOT)
    os.close(end)
    seen = b""
    until = time.monotonic() + 60
    while b"locks that wait" not in seen or seen.count(b"calls/s") < 2:
        assert time.monotonic() < until, seen[-2000:]
        if select.select([master], [], [], 1)[0]:
            seen += os.read(master, 65536)
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 0
    os.close(master)


def test_rates_are_of_the_time_between_two_looks() -> None:
    def text(ok: int, failed: int, seconds: float) -> str:
        return (
            "# TYPE metastore_call_seconds histogram\n"
            f'metastore_call_seconds_count{{method="lock",outcome="ok"}} {ok}\n'
            f'metastore_call_seconds_sum{{method="lock",outcome="ok"}} {seconds}\n'
            f'metastore_call_seconds_count{{method="lock",outcome="MetaError"}} {failed}\n'
            'metastore_call_seconds_count{method="get_table",outcome="ok"} 5\n'
            "metastore_database_up 0\n"
        )

    before, now = read_sample(text(10, 0, 1.0), 100.0), read_sample(text(30, 10, 4.0), 110.0)
    assert now.calls["lock"] == Calls(40, 10, 4.0)
    shown = view(before, now, [], [])
    assert shown.line.startswith("3.0 calls/s, 1.0 errors/s; ")
    assert shown.line.endswith("THE DATABASE DOES NOT ANSWER")
    assert shown.tables[0][2] == [("lock", "3.0", "100.0", "1.0")]


def test_a_user_who_may_not_look_is_refused(tmp_path: Path) -> None:
    certificate = Authority(tmp_path).issue("server")
    options = ("--set", "authentication=users", "--set", f"tls_certificate={certificate}", "--set", "authorization=grants")
    with serving("--workers", "1", *options, "--set", "admin_users=ann", home=tmp_path) as server:
        keys = {}
        for user in ("ann", "bob"):
            added = run_command("users", "add", user, "--key", home=tmp_path)
            keys[user] = added.stdout.strip().split()[-1]
        asking = ("slow", "--uri", server.uri, "--tls-ca", str(tmp_path / "authority.pem"), "--json")
        assert "asks for a login" in run(*asking).output
        login = {"METASTORE_CLIENT_LOGIN": "plain"}
        allowed = run(*asking, **login, METASTORE_CLIENT_USER="ann", METASTORE_CLIENT_PASSWORD=keys["ann"])
        assert json.loads(allowed.stdout) == []
        refused = run(*asking, **login, METASTORE_CLIENT_USER="bob", METASTORE_CLIENT_PASSWORD=keys["bob"])
        assert refused.exit_code == 1
        assert "for administrators" in refused.output
        assert "plain or jwt" in run(*asking, METASTORE_CLIENT_LOGIN="token", METASTORE_CLIENT_TOKEN="x").output
    gone = run("top", "--uri", server.uri, "--once")
    assert gone.exit_code == 1
    assert "/metrics: " in gone.output
