"""Metrics in the dashboard, the alerts and the documentation exist in a server, and Prometheus answers each of their queries."""

from __future__ import annotations

import contextlib
import json
import math
import re
import shutil
import subprocess
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from metastore import idl
from metastore.client import connect
from metastore.client_login import LoginError, Plain
from tests.support.servers.servers import COMMAND, ROOT, Server, environment, free_port, serving
from tests.wire.http.test_pages import get

DEPLOY = ROOT / "deploy"
ALERTS = DEPLOY / "prometheus" / "alerts.yml"
PROMETHEUS, PROMTOOL = shutil.which("prometheus"), shutil.which("promtool")
NAME = re.compile(r"\bmetastore_[a-z_]+")
OF_HISTOGRAMS = ("_bucket", "_sum", "_count")
STORAGE = idl.StorageDescriptor(cols=[idl.FieldSchema("a", "int", "")], serdeInfo=idl.SerDeInfo(parameters={}), parameters={})


def queries() -> dict[str, str]:
    """Return the queries of the dashboard by their panels, as Grafana sends them."""
    found = {}
    for panel in json.loads((DEPLOY / "grafana" / "metastore.json").read_text())["panels"]:
        for target in panel.get("targets", ()):
            text = target["expr"].replace("$__rate_interval", "20s").replace("$instance", ".*")
            assert "$" not in text
            found[f"{panel['title']} {target['refId']}"] = text
    assert len(found) > 25
    return found


def test_metrics_that_are_asked_for_exist_and_all_are_documented(tmp_path: Path) -> None:
    with serving("--workers", "1", home=tmp_path) as server:
        with connect(server.uri) as client:
            client.get_all_databases()
        served = {line.split()[2] for line in get(server.uri, "/metrics")[1].splitlines() if line.startswith("# TYPE ")}
    asked = set(NAME.findall("\n".join(queries().values())))
    asked |= {name for line in ALERTS.read_text().splitlines() if "expr:" in line or "rate(" in line for name in NAME.findall(line)}
    histograms = {f"{name}{end}" for name in served for end in OF_HISTOGRAMS}
    assert sorted(asked - served - histograms) == []
    assert {"metastore_call_seconds_bucket", "metastore_oldest_open_transaction_seconds"} <= asked
    page = (ROOT / "docs" / "operations.md").read_text()
    documented = set(NAME.findall(page[page.index("\n## Metrics") :]))
    assert documented - histograms == {name for name in served if name.startswith("metastore_")}


def test_panels_have_places_of_their_own() -> None:
    seen = set[str]()
    for panel in json.loads((DEPLOY / "grafana" / "metastore.json").read_text())["panels"]:
        place = panel["gridPos"]
        cells = {(x, y) for x in range(place["x"], place["x"] + place["w"]) for y in range(place["y"], place["y"] + place["h"])}
        assert not seen & cells, panel["title"]
        assert place["x"] + place["w"] <= 24
        seen |= cells


@pytest.mark.skipif(PROMTOOL is None, reason="there is no Prometheus: .ci/watching")
def test_alerts_fire_when_they_should() -> None:
    assert PROMTOOL is not None
    for command in (("check", "rules", ALERTS.name), ("test", "rules", "alerts_test.yml")):
        done = subprocess.run([PROMTOOL, *command], cwd=ALERTS.parent, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    tested = set(re.findall(r"alertname: (\w+)", (ALERTS.parent / "alerts_test.yml").read_text()))
    assert tested == set(re.findall(r"alert: (\w+)", ALERTS.read_text()))


class Prometheus:
    """A Prometheus that scrapes a server every second."""

    def __init__(self, home: Path, server: Server, key: str) -> None:
        self.url = f"http://127.0.0.1:{free_port()}"
        (home / "key").write_text(key)
        config = {
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": [str(ALERTS)],
            "scrape_configs": [
                {
                    "job_name": "metastore",
                    "static_configs": [{"targets": [server.uri.removeprefix("thrift://")]}],
                    "basic_auth": {"username": "prometheus", "password_file": str(home / "key")},
                }
            ],
        }
        (home / "prometheus.yml").write_text(json.dumps(config))  # YAML takes JSON
        options = (f"--config.file={home}/prometheus.yml", f"--storage.tsdb.path={home}/tsdb", f"--web.listen-address={self.url[7:]}")
        assert PROMETHEUS is not None
        with (home / "prometheus.log").open("w") as log:
            self.process = subprocess.Popen([PROMETHEUS, *options], stderr=log)

    def ask(self, path: str, **values: str) -> Any:
        with urllib.request.urlopen(f"{self.url}/api/v1/{path}?{urllib.parse.urlencode(values)}", timeout=20) as answer:
            return json.load(answer)["data"]


def busy(server: Server, key: str, stop: threading.Event) -> None:
    """Make calls without pause, some of which fail, so that panels have something to show."""
    number = 0
    with connect(server.uri, timeout=20, login=Plain("prometheus", key)) as client:
        while not stop.is_set():
            number += 1
            client.create_table(idl.Table(f"t{number}", "default", sd=STORAGE, parameters={}))
            client.get_table("default", f"t{number}")
            client.get_table("default", "t1")
            with contextlib.suppress(idl.NoSuchObjectException):
                client.get_table("default", "missing")
            if number % 20 == 0:
                with connect(server.uri, login=Plain("prometheus", key)) as other:
                    other.get_all_tables("default")
                with connect(server.uri, login=Plain("prometheus", "wrong")) as other, contextlib.suppress(LoginError, OSError):
                    other.getName()


@pytest.fixture
def prometheus(tmp_path: Path) -> Iterator[Prometheus]:
    with serving("--workers", "2", "--set", "authentication=users", home=tmp_path) as server:
        command = [*COMMAND, "users", "add", "prometheus", "--key"]
        added = subprocess.run(command, env=environment(tmp_path), cwd=ROOT, capture_output=True, text=True, check=True)
        key = added.stdout.strip().split()[-1]
        started = Prometheus(tmp_path, server, key)
        stop = threading.Event()
        calling = threading.Thread(target=busy, args=(server, key, stop))
        calling.start()
        try:
            yield started
        finally:
            stop.set()
            calling.join()
            started.process.terminate()
            started.process.wait(30)


@pytest.mark.slow
@pytest.mark.skipif(PROMETHEUS is None, reason="there is no Prometheus: .ci/watching")
def test_every_query_of_the_dashboard_has_an_answer(prometheus: Prometheus) -> None:
    left = queries()
    until = time.monotonic() + 180
    while left:
        assert time.monotonic() < until, f"no answer to {left}"
        time.sleep(1)
        for panel, text in list(left.items()):
            with contextlib.suppress(OSError):  # it may not have started yet
                found = prometheus.ask("query", query=text)["result"]
                if any(math.isfinite(float(each["value"][1])) for each in found):
                    del left[panel]
    rules = [rule for group in prometheus.ask("rules")["groups"] for rule in group["rules"]]
    assert len(rules) == len(re.findall(r"alert:", ALERTS.read_text()))
    assert {rule["health"] for rule in rules} == {"ok"}
    (target,) = prometheus.ask("targets")["activeTargets"]
    assert target["health"] == "up", target
