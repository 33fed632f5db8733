"""Spans of calls and of their SQL, as a collector of OpenTelemetry gets them."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("opentelemetry.sdk", reason="pip install '.[otel]'")

from thriftpy2.thrift import TMessageType

from metastore import idl
from metastore.client import connect
from metastore.methods.interface.signatures import signature
from metastore.wire.messages.protocol import Dialect, write_message
from tests.support.servers.collector import Spans, attributes, collecting
from tests.support.servers.servers import ROOT, Server, free_port, run_command, serving

STORAGE = idl.StorageDescriptor(cols=[idl.FieldSchema("a", "int", "")], serdeInfo=idl.SerDeInfo(parameters={}), parameters={})
SERVER, CLIENT, ERROR = 2, 3, 2
TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


@contextmanager
def traced(home: Path, *options: str) -> Iterator[tuple[Server, Spans]]:
    """A server that sends its spans to a collector. All spans are there when the server has ended."""
    with (
        collecting() as collector,
        serving("--workers", "1", "--set", f"traces_endpoint={collector.endpoint}", *options, home=home) as server,
    ):
        yield server, collector
        server.process.terminate()
        assert server.process.wait(60) == 0


def post(server: Server, method: str, traceparent: str, *args: Any) -> None:
    body = signature(method).args()
    for field, value in zip(body.thrift_spec.values(), args, strict=False):
        setattr(body, field[1], value)
    message = write_message(Dialect("binary", framed=False), method, TMessageType.CALL, 1, body)
    headers = {"traceparent": traceparent, "Content-Type": "application/x-thrift"}
    request = urllib.request.Request(server.uri.replace("thrift", "http") + "/metastore", message, headers)
    assert urllib.request.urlopen(request, timeout=20).status == 200


@pytest.mark.on_one_database
def test_a_call_and_its_sql_are_one_trace(database_url: str, tmp_path: Path) -> None:
    with traced(tmp_path, "--db", database_url) as (server, collector), connect(server.uri, timeout=20) as client:
        client.set_ugi("ann", [])
        client.create_table(idl.Table("t", "default", sd=STORAGE, parameters={"trino_query_id": "q7"}))
        with pytest.raises(idl.NoSuchObjectException):
            client.get_table("default", "missing")
        client.close()
    calls = {span.name: span for span in collector.spans if span.kind == SERVER}
    assert all(resource["service.name"] == "metastore" for resource in collector.resources)
    made = calls["ThriftHiveMetastore/create_table"]
    sent = attributes(made)
    assert sent["rpc.system.name"] == "thrift"
    assert sent["rpc.method"] == "ThriftHiveMetastore/create_table"
    assert sent["client.address"] == "127.0.0.1"
    assert sent["client.port"] > 0
    assert sent["user.name"] == "ann"
    assert sent["metastore.object"] == "default.t"
    assert sent["metastore.query.id"] == "q7"
    assert sent["metastore.statements"] >= 2
    assert not made.parent_span_id
    sql = [span for span in collector.spans if span.trace_id == made.trace_id and span.kind == CLIENT]
    assert sql
    system = database_url.partition(":")[0]
    for span in sql:
        assert span.parent_span_id == made.span_id
        assert made.start_time_unix_nano <= span.start_time_unix_nano <= span.end_time_unix_nano <= made.end_time_unix_nano
        assert attributes(span)["db.system.name"] == system
        assert attributes(span)["db.operation.name"]
        assert "'t'" not in attributes(span).get("db.query.text", ""), "values are no part of a statement"
    assert any(attributes(span).get("db.query.text", "").upper().startswith(("INSERT", "SELECT")) for span in sql)
    failed = calls["ThriftHiveMetastore/get_table"]
    assert attributes(failed)["error.type"] == "NoSuchObject"
    assert failed.status.code == ERROR
    (line,) = server.logged(method="create_table")
    assert line["trace"] == made.trace_id.hex()


def test_a_call_over_http_belongs_to_the_callers_trace(tmp_path: Path) -> None:
    with traced(tmp_path, "--set", "traces_ratio=0", "--set", "log_calls=all") as (server, collector):
        post(server, "get_all_databases", f"00-{TRACE}-{PARENT}-01")
        post(server, "get_database", f"00-{TRACE}-{PARENT}-00", "default")
        post(server, "get_databases", "no trace", "*")
    (span,) = [span for span in collector.spans if span.kind == SERVER]
    assert span.name == "ThriftHiveMetastore/get_all_databases", "the others are in no trace that is sampled"
    assert (span.trace_id.hex(), span.parent_span_id.hex()) == (TRACE, PARENT)
    assert {line["method"]: line.get("trace") for line in server.logged(event="call")} == {
        "get_all_databases": TRACE,
        "get_database": None,
        "get_databases": None,
    }


@pytest.mark.on_one_database
def test_queries_of_the_console_are_traced_as_calls_are(database_url: str, tmp_path: Path) -> None:
    with traced(tmp_path, "--db", database_url) as (server, collector):
        with connect(server.uri, timeout=20) as client:
            key = client.open_txns(idl.OpenTxnRequest(num_txns=1, user="u", hostname="h")).txn_ids[0]
        base = server.uri.replace("thrift", "http")
        headers = {"traceparent": f"00-{TRACE}-{PARENT}-01", "Content-Type": "application/json"}
        action = urllib.request.Request(f"{base}/api/v1/actions/abort-transaction", json.dumps({"id": key}).encode(), headers)
        assert urllib.request.urlopen(action, timeout=20).status == 200
        urllib.request.urlopen(urllib.request.Request(f"{base}/api/v1/catalog", headers=headers), timeout=20).close()
        missing = urllib.request.Request(f"{base}/api/v1/database?database=nowhere", headers=headers)
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(missing, timeout=20)
    spans = {span.name: span for span in collector.spans if span.kind == SERVER and span.trace_id.hex() == TRACE}
    aborted = spans["ThriftHiveMetastore/abort_txn"]
    assert [span for span in collector.spans if span.parent_span_id == aborted.span_id and span.kind == CLIENT], "its SQL lies below it"
    assert [line["trace"] for line in server.logged(method="abort_txn")] == [TRACE]
    assert "error.type" not in attributes(aborted)
    assert "ThriftHiveMetastore/show_databases_page" in spans
    assert [attributes(span).get("error.type") for span in spans.values() if span.status.code == ERROR] == ["NoSuchObject"]


def test_methods_that_do_not_exist_have_one_name(tmp_path: Path) -> None:
    with traced(tmp_path) as (server, collector):
        request = write_message(Dialect("binary", framed=False), "x" * 50, TMessageType.CALL, 1, signature("getName").args())
        headers = {"Content-Type": "application/x-thrift"}
        sent = urllib.request.Request(server.uri.replace("thrift", "http") + "/metastore", request, headers)
        urllib.request.urlopen(sent, timeout=20).close()
    assert [span.name for span in collector.spans] == ["_OTHER"]


def test_a_collector_that_is_not_there_fails_no_call(tmp_path: Path) -> None:
    options = ("--set", f"traces_endpoint=http://127.0.0.1:{free_port()}")
    with serving(
        "--workers", "1", *options, home=tmp_path, variables={"OTEL_BSP_SCHEDULE_DELAY": "10", "OTEL_EXPORTER_OTLP_TIMEOUT": "1"}
    ) as server:
        with connect(server.uri, timeout=20) as client:
            for _ in range(5):
                assert client.get_all_databases() == ["default"]
        server.process.terminate()
        assert server.process.wait(60) == 0
        assert server.logged(part="metastore.traces")


def test_an_endpoint_that_is_no_url_is_refused(tmp_path: Path) -> None:
    done = run_command("serve", "--port", "0", "--set", "traces_endpoint=collector:4318", home=tmp_path)
    assert done.returncode == 1
    assert "traces_endpoint collector:4318 is not a URL" in done.stderr


def test_nothing_of_it_is_loaded_unless_asked_for() -> None:
    script = "import sys; import metastore.app; print(any(name.startswith('opentelemetry') for name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
