"""Compactions that no worker takes are reported by the probe, by `metastore health`, by the doctor and by the console's figures."""

from __future__ import annotations

import json
from pathlib import Path

import sqlalchemy as sa
from typer.testing import CliRunner

from metastore.cli import app
from metastore.client import connect
from metastore.idl import CompactionRequest, CompactionType, FindNextCompactRequest
from metastore.rules.transactions.compactions import UNATTENDED_MS
from metastore.service.call.clock import now_ms
from metastore.service.call.context import Call
from metastore.service.operations.health import Readiness
from metastore.service.operations.observations import Observer, unattended_compactions
from metastore.store.core.database import Database
from metastore.store.schema.model import compactions
from tests.support.acid.compaction_queue import ask, take
from tests.support.servers.servers import serving


def age(database: Database) -> None:
    """Let two hours pass for all entries."""
    ago = now_ms() - 2 * UNATTENDED_MS
    change = sa.update(compactions).values(enqueued_ms=sa.bindparam("ago"))
    database.write(lambda session: session.execute(change, ago=ago))


def test_the_probe_and_the_figures(call: Call) -> None:
    ask(call, "t")
    ask(call, "u")
    assert call.database.read(unattended_compactions) == []
    age(call.database)
    expected = "no worker takes compactions: 2 wait, the oldest for 2 h; set compactor_worker_threads=1, or run `metastore compactor`"
    readiness = Readiness(call.metastore, lambda: False)
    assert (readiness.problem(), readiness.warning()) == ("", expected)
    assert Observer(call.metastore).look().unattended == [expected]
    take(call)
    assert Readiness(call.metastore, lambda: False).warning() == ""


def test_health_and_doctor(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/m.db"
    with serving("--db", url, "--workers", "1", home=tmp_path) as server, connect(server.uri) as client:
        client.compact2(CompactionRequest(dbname="db", tablename="t", type=CompactionType.MAJOR, initiatorId="tests"))
        database = Database(url, pool_size=1)
        age(database)
        shown = CliRunner().invoke(app, ["health", "--uri", server.uri])
        assert (shown.exit_code, shown.stdout) == (0, "ready\n")
        assert shown.stderr.startswith("warning: no worker takes compactions: 1 wait, the oldest for 2 h; set compactor_worker_threads=1")
        as_json = CliRunner().invoke(app, ["health", "--uri", server.uri, "--json"])
        assert json.loads(as_json.stdout)["warning"].startswith("no worker takes compactions")
        found = {each["check"]: each for each in json.loads(CliRunner().invoke(app, ["doctor", "--db", url, "--json"]).stdout)}
        assert found["compactions"]["outcome"] == "warning"
        assert "run `metastore compactor`" in found["compactions"]["text"]
        assert client.find_next_compact2(FindNextCompactRequest("w", "4.0.1", None)).ci is not None
        found = {each["check"]: each for each in json.loads(CliRunner().invoke(app, ["doctor", "--db", url, "--json"]).stdout)}
        assert "compactions" not in found
        database.close()
