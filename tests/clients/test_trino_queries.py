"""The id of the Trino query that made a call: slow calls, the log and the audit log show it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.support.engines.trino_server import trino_on
from tests.support.servers.servers import serving
from tests.wire.http.test_pages import get

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
QUERY = re.compile(r"\d{8}_\d{6}_\d{5}_\w{5}")


def test_calls_name_the_query_that_they_were_made_for(tmp_path: Path) -> None:
    audit = tmp_path / "audit.log"
    options = ("--warehouse", f"file:{tmp_path}/warehouse", "--workers", "1", "--set", f"audit_log={audit}")
    with serving(*options, "--set", "slow_call_threshold=0.000001", home=tmp_path / "server") as server:
        with trino_on(server, tmp_path / "warehouse", tmp_path) as trino:
            trino.run("CREATE SCHEMA s")
            trino.run("CREATE TABLE s.t (a int) WITH (format = 'ORC', transactional = true)")
            trino.run("INSERT INTO s.t VALUES 1")
            assert trino.run("SELECT a FROM s.t") == [(1,)]
        calls = json.loads(get(server.uri, "/api/v1/slow-calls")[1])["slow_calls"]
    shown = {method: {each["query"] for each in calls if each["method"] == method and each["query"]} for method in ("create_table", "lock")}
    assert len(shown["create_table"]) == 1
    assert len(shown["lock"]) >= 2, "of the insert and of the query, and of each that had to wait for Trino's node and was run again"
    assert all(QUERY.fullmatch(query) for query in shown["create_table"] | shown["lock"])
    assert not shown["create_table"] & shown["lock"]
    lines = [json.loads(line) for line in audit.read_text().splitlines()]
    assert {line["query"] for line in lines if line["method"] == "create_table"} == shown["create_table"]
