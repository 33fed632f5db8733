"""Probes and metrics over HTTP, on Thrift's port."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from contextlib import suppress
from pathlib import Path

import pytest

from metastore.client import connect
from metastore.idl import Database, OpenTxnRequest
from tests.support.logins.certificates import Authority
from tests.support.servers.processes import children
from tests.support.servers.servers import COMMAND, ROOT, environment, free_port, serving
from tests.support.servers.waiting import until

PROMTOOL = shutil.which("promtool")


def get(uri: str, path: str, headers: dict[str, str] | None = None) -> tuple[int, str]:
    """Return status and text of a page."""
    request = urllib.request.Request(uri.replace("thrift://", "http://") + path, headers=headers or {})
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def sample(text: str, name: str) -> float:
    """Return the value of a sample of the metrics."""
    return next(float(line.rpartition(" ")[2]) for line in text.splitlines() if line.startswith(f"{name} "))


@pytest.mark.on_one_database
def test_a_server_reports_its_health_and_version(database_url: str, tmp_path: Path) -> None:
    with serving("--db", database_url, "--workers", "2", home=tmp_path) as server:
        assert get(server.uri, "/healthz") == (200, '{"status": "ok"}\n')
        assert get(server.uri, "/readyz") == (200, '{"status": "ready"}\n')
        version = json.loads(get(server.uri, "/version")[1])
        assert set(version) == {"version", "codec", "schema"}
        assert get(server.uri, "/else")[0] == 404
        head = urllib.request.Request(server.uri.replace("thrift", "http") + "/healthz", method="HEAD")
        with urllib.request.urlopen(head, timeout=20) as answer:
            assert (answer.status, answer.headers["Content-Length"], answer.read()) == (200, "17", b"")
        request = urllib.request.Request(server.uri.replace("thrift", "http") + "/healthz", data=b"x")
        with pytest.raises(urllib.error.HTTPError, match="405"):
            urllib.request.urlopen(request, timeout=20)


def health(port: str, *options: str) -> tuple[int, str]:
    """Return status and text of `metastore health`."""
    done = subprocess.run([*COMMAND, "health", "--port", port, *options], capture_output=True, text=True, check=False, timeout=60)
    return done.returncode, (done.stdout + done.stderr).strip()


def test_the_command_line_asks_with_and_without_tls(tmp_path: Path) -> None:
    certificate = Authority(tmp_path).issue("server")
    for options in ((), ("--set", f"tls_certificate={certificate}")):
        with serving("--workers", "1", *options, home=tmp_path / str(len(options))) as server:
            port = server.uri.rpartition(":")[2]
            assert health(port) == (0, "ready")
            assert health(port, "--path", "/healthz") == (0, "ok")
    status, text = health(port)
    assert status == 1
    assert "no server answers" in text


@pytest.mark.on_one_database
def test_all_workers_count_together(database_url: str, tmp_path: Path) -> None:
    with serving("--db", database_url, "--workers", "3", home=tmp_path) as server:
        for number in range(12):  # a connection each, so that both processes get some
            with connect(server.uri, timeout=20) as client:
                client.create_database(Database(name=f"d{number}"))
                with pytest.raises(Exception, match="nowhere"):
                    client.get_database("nowhere")
        with connect(server.uri, timeout=20) as client:
            client.open_txns(OpenTxnRequest(num_txns=3, user="u", hostname="h"))
            counts = {
                'metastore_call_seconds_count{method="create_database",outcome="ok"}': 12,
                'metastore_call_seconds_count{method="get_database",outcome="NoSuchObject"}': 12,
                'metastore_connections{mechanism="anonymous",transport="plain"}': 1,
            }
            for _ in range(3):
                text = until(lambda: get(server.uri, "/metrics")[1], lambda text: {each: sample(text, each) for each in counts} == counts)
                assert sample(text, "metastore_open_transactions") == 3
                assert sample(text, "metastore_oldest_open_transaction_seconds") >= 0
                assert sample(text, 'metastore_objects{kind="databases"}') >= 1
                assert sample(text, "metastore_last_event_id") >= 12
                assert sample(text, "metastore_database_up") == 1
                assert sample(text, "metastore_sent_bytes_total") > 0
        if PROMTOOL is not None:
            done = subprocess.run([PROMTOOL, "check", "metrics"], input=text, capture_output=True, text=True, check=False)
            assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_worker_that_died_holds_no_connections_open(tmp_path: Path) -> None:
    with serving("--workers", "1", home=tmp_path) as server:
        with connect(server.uri, timeout=20) as client:
            assert client.get_all_databases() == ["default"]
            before = get(server.uri, "/metrics")[1]
            assert sample(before, 'metastore_connections{mechanism="anonymous",transport="plain"}') == 1
            os.kill(server.children()[0], signal.SIGKILL)
        until = time.monotonic() + 30
        while time.monotonic() < until:
            try:
                text = get(server.uri, "/metrics")[1]
                break
            except OSError:
                time.sleep(0.1)
        assert 'metastore_connections{mechanism="anonymous",transport="plain"} 1.0' not in text
        assert sample(text, 'metastore_call_seconds_count{method="get_all_databases",outcome="ok"}') == 1, "what it counted stays"


def test_a_drain_shows_before_the_port_closes(tmp_path: Path) -> None:
    with serving("--workers", "1", "--set", "drain_notice=3s", home=tmp_path) as server:
        assert get(server.uri, "/readyz")[0] == 200
        server.process.send_signal(signal.SIGTERM)
        answers = [get(server.uri, "/readyz")]
        while answers[-1][0] == 200:
            time.sleep(0.05)
            answers.append(get(server.uri, "/readyz"))
        assert answers[-1][0] == 503
        assert "draining" in answers[-1][1]
        assert get(server.uri, "/healthz")[0] == 200
        with connect(server.uri, timeout=20) as client:
            assert client.get_all_databases() == ["default"]
        assert server.process.wait(30) == 0


def test_probes_need_no_login_and_metrics_do(tmp_path: Path) -> None:
    with serving("--workers", "1", "--set", "authentication=users", home=tmp_path) as server:
        assert get(server.uri, "/healthz")[0] == 200
        assert get(server.uri, "/readyz")[0] == 200
        status, text = get(server.uri, "/metrics")
        assert status == 401
        assert "asks for a login" in text


@pytest.mark.slow
def test_a_database_that_hangs_makes_the_server_unready_and_not_dead(tmp_path: Path) -> None:
    """A PostgreSQL of its own is stopped (SIGSTOP) and continued."""
    folder = Path(tempfile.mkdtemp())  # another user, such as PostgreSQL's, can not enter pytest's own folder
    folder.chmod(0o755)
    variables = {**os.environ, "METASTORE_TEST_DATABASES": str(folder)}
    script = [sys.executable, str(ROOT / ".ci" / "databases")]
    started = subprocess.run([*script, "start"], env=variables, capture_output=True, text=True, check=True).stdout
    url = next(line.partition("=")[2] for line in started.splitlines() if line.startswith("METASTORE_TEST_POSTGRESQL="))
    try:
        postmaster = int(next(folder.rglob("postmaster.pid")).read_text().split()[0])
        with serving("--db", url, "--workers", "1", home=tmp_path / "server") as server:
            assert get(server.uri, "/readyz")[0] == 200
            stopped = (postmaster, *children(postmaster))
            for pid in stopped:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGSTOP)
            begun = time.monotonic()
            status, text = get(server.uri, "/readyz")
            assert (status, "gave no answer" in text) == (503, True)
            assert get(server.uri, "/healthz")[0] == 200
            assert sample(get(server.uri, "/metrics")[1], "metastore_database_up") == 0
            assert time.monotonic() - begun < 20
            for pid in stopped:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)
            until(lambda: get(server.uri, "/readyz")[0] == 200, missing="ready")
    finally:
        subprocess.run([*script, "stop"], env=variables, check=False, capture_output=True)
        shutil.rmtree(folder, ignore_errors=True)


def test_the_admin_port_has_the_pages_and_no_thrift(tmp_path: Path) -> None:
    port = free_port()
    options = ("--set", f"admin_port={port}", "--set", "drain_notice=2s")
    with serving("--workers", "2", *options, home=tmp_path) as server:
        admin = f"thrift://127.0.0.1:{port}"
        for path in ("/healthz", "/readyz", "/version", "/metrics", "/api/v1/clients"):
            assert get(admin, path)[0] == get(server.uri, path)[0] == 200
        status, text = get(admin, "/metastore")
        assert (status, "admin_port" in text) == (404, True)
        for uri in (admin, admin.replace("thrift", "http") + "/metastore"):
            with connect(uri, timeout=20) as client, pytest.raises(OSError):  # noqa: PT011  # closed, or 404
                client.get_all_databases()
        with connect(server.uri, timeout=20) as client:
            assert client.get_all_databases() == ["default"]
        server.process.send_signal(signal.SIGTERM)
        while get(admin, "/readyz")[0] == 200:
            time.sleep(0.05)
        assert server.process.wait(30) == 0
        with pytest.raises(OSError, match="refused"):
            get(admin, "/healthz")


def test_an_admin_port_that_is_taken_or_open_to_all_is_refused(tmp_path: Path) -> None:
    def start(*options: str) -> str:
        settings = ("--port", "0", "--workers", "1", *(part for option in options for part in ("--set", option)))
        done = subprocess.run(
            [*COMMAND, "serve", *settings], env=environment(tmp_path), cwd=ROOT, capture_output=True, text=True, check=False
        )
        assert done.returncode == 1
        return done.stderr

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert f"Can not listen on 127.0.0.1:{port}" in start(f"admin_port={port}")
    assert "host 0.0.0.0 can be reached from other machines" in start("admin_port=9000", "admin_host=0.0.0.0")


def test_the_admin_port_asks_for_a_login_as_the_other_does(tmp_path: Path) -> None:
    port = free_port()
    with serving("--workers", "1", "--set", f"admin_port={port}", "--set", "authentication=users", home=tmp_path):
        assert get(f"http://127.0.0.1:{port}", "/healthz")[0] == 200
        assert get(f"http://127.0.0.1:{port}", "/metrics")[0] == 401
