"""The metrics that do not count calls: pool, statements, caches, running calls. All metrics under Hive's names."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from metastore import idl
from metastore.client import connect
from metastore.store.core.database import Database
from metastore.telemetry.counts import SECONDS, Counts
from metastore.telemetry.hive_metrics import percentile
from metastore.wire.codec import IMPLEMENTATION, PURE
from tests.support.servers.servers import serving
from tests.support.servers.stub_server import Start, Stub
from tests.support.servers.waiting import until
from tests.wire.http.test_pages import PROMTOOL, get, sample

STORAGE = idl.StorageDescriptor(cols=[idl.FieldSchema("a", "int", "")], serdeInfo=idl.SerDeInfo(parameters={}), parameters={})


def names(text: str) -> set[str]:
    return {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE ")}


@pytest.mark.on_one_database
def test_the_database_is_measured_in_all_workers(database_url: str, tmp_path: Path) -> None:
    with serving("--db", database_url, "--workers", "2", "--set", "database_pool_size=3", home=tmp_path) as server:
        for number in range(8):
            with connect(server.uri, timeout=20) as client:
                client.create_table(idl.Table(f"t{number}", "default", sd=STORAGE, parameters={}))
                for _ in range(2):
                    client.get_table("default", f"t{number}")

        def counted() -> str:
            found = get(server.uri, "/metrics")[1]
            return found if sample(found, 'metastore_statements_total{kind="insert"}') >= 8 else ""

        text = until(counted)
        assert sample(text, "metastore_workers") == 2
        assert sample(text, "metastore_pool_size") == 6
        assert 0 <= sample(text, "metastore_pool_in_use") <= 6
        assert sample(text, "metastore_pool_waiting") == 0
        assert sample(text, "metastore_pool_waits_total") >= 1, "connections were opened"
        assert sample(text, "metastore_pool_wait_seconds_total") > 0
        assert sample(text, 'metastore_statements_total{kind="select"}') >= 16
        assert 0 < sample(text, "metastore_database_seconds_total") < 60
        assert sample(text, "metastore_lock_seconds_total") >= 0
        assert sample(text, "metastore_cpu_seconds_total") > 0
        hits, misses = (sample(text, f'metastore_cache_{name}_total{{cache="storage_formats"}}') for name in ("hits", "misses"))
        assert hits >= 1
        assert misses >= 1
        assert sample(text, 'metastore_cache_values{cache="storage_formats"}') >= 1
        assert sample(text, "metastore_slow_calls_total") == 0
        before = sample(text, 'metastore_statements_total{kind="insert"}')
        with connect(server.uri, timeout=20) as client:
            client.create_database(idl.Database("d"))
        until(lambda: sample(get(server.uri, "/metrics")[1], 'metastore_statements_total{kind="insert"}') > before)


def test_totals_of_a_dead_worker_stay_and_its_levels_go() -> None:
    counts = Counts(2)
    from metastore.store.core import figures

    database = Database("sqlite:////nowhere/metastore.db")
    counts.take(1)
    database.statements[0] = 5
    counts.publish(figures.totals(database), figures.levels(database))
    counts.publish(figures.totals(database), figures.levels(database))
    assert counts.figures()["statements", "select"] == 5
    assert counts.figures()["pool_size", ""] == 16
    counts.close_connections(1)
    assert counts.figures()["statements", "select"] == 5
    assert counts.figures()["pool_size", ""] == 0
    counts.take(1)
    successor = Database("sqlite:////nowhere/metastore.db")
    successor.statements[0] = 2
    counts.publish(figures.totals(successor), figures.levels(successor))
    assert counts.figures()["statements", "select"] == 7


def test_running_calls_are_shown(start: Start, stub: Stub) -> None:
    server = start()
    with connect(server.uri) as client:
        import threading

        waiting = threading.Thread(target=client.get_all_databases)
        waiting.start()
        assert stub.entered.wait(60)
        (running,) = server._worker._telemetry.connected_clients()
        assert running.running == "get_all_databases"
        assert running.running_seconds > 0
        assert running.calls == 0
        stub.release.set()
        waiting.join()
        (done,) = until(lambda: [each for each in server._worker._telemetry.connected_clients() if each.calls])
        assert (done.running, done.running_seconds, done.last_method) == ("", 0.0, "get_all_databases")


@pytest.mark.on_one_database
def test_hives_names(database_url: str, tmp_path: Path) -> None:
    options = ("--db", database_url, "--workers", "1", "--set", "metrics_names=hive")
    with serving(*options, home=tmp_path) as server, connect(server.uri, timeout=20) as client:
        client.create_database(idl.Database("d"))
        client.create_table(idl.Table("t", "d", sd=STORAGE, parameters={}, partitionKeys=[idl.FieldSchema("k", "string", None)]))
        client.add_partitions([idl.Partition(dbName="d", tableName="t", values=[value], sd=STORAGE) for value in "abc"])
        client.drop_partition("d", "t", ["b"], True)
        client.open_txns(idl.OpenTxnRequest(num_txns=2, user="u", hostname="h"))
        for _ in range(4):
            client.get_all_databases()

        def counted() -> str:  # a call is counted after its reply is sent
            found = get(server.uri, "/metrics")[1]
            return found if "api_get_all_databases_total 4.0" in found else ""

        text = until(counted)
        assert 0 < sample(text, "api_get_all_databases_75thpercentile") <= sample(text, "api_get_all_databases_99thpercentile") < 30_000
        assert sample(text, "api_get_all_databases_mean") > 0
        assert sample(text, "total_api_calls_total") == 9
        assert sample(text, "hive_metastore_open_connections") == sample(text, "open_connections") == 2, "the one and who asks"
        assert sample(text, "create_total_count_dbs_total") == 1
        assert sample(text, "create_total_count_tables_total") == 1
        assert sample(text, "delete_total_count_tables_total") == 0
        text = until(lambda: found if "create_total_count_partitions_total 3.0" in (found := get(server.uri, "/metrics")[1]) else "")
        assert sample(text, "delete_total_count_partitions_total") == 1
        assert sample(text, "total_count_tables") == sample(text, "init_total_count_tables") == 1
        assert sample(text, "num_open_transactions") == 2
        assert sample(text, "oldest_open_non_repl_txn_age_in_sec") >= 0
        assert sample(text, "num_locks") == 0
        assert sample(text, "compaction_num_ready_for_cleaning") == 0
        assert sample(text, "compaction_oldest_enqueue_age_in_sec") == 0
        assert 0 <= sample(text, "jvm_process_cpu_load") <= 1
        assert not any(name.startswith("metastore_") for name in names(text))
        assert client.getCounters()["get_all_databases"] == client.getCounter("get_all_databases") == 4
        assert client.getCounter("nothing") == 0


def test_both_names_at_once(tmp_path: Path) -> None:
    with serving("--workers", "1", "--set", "metrics_names=metastore,hive", home=tmp_path) as server:
        with connect(server.uri, timeout=20) as client:
            client.get_all_databases()
        text = get(server.uri, "/metrics")[1]
        assert {"api_get_all_databases_total", "metastore_call_seconds"} <= names(text)
        if PROMTOOL is not None:
            done = subprocess.run([PROMTOOL, "check", "metrics"], input=text, capture_output=True, text=True, check=False)
            assert "error" not in done.stderr, done.stderr  # about names it reports only that they are Hive's


def test_percentiles_lie_within_their_buckets() -> None:
    buckets = [0] * (len(SECONDS) + 1)
    buckets[0] = 3
    buckets[2] = 1
    assert percentile(buckets, 75) == pytest.approx(0.5)
    assert percentile(buckets, 99) == pytest.approx(1000 * (SECONDS[1] + (SECONDS[2] - SECONDS[1]) * 0.96))
    buckets[-1] = 100
    assert percentile(buckets, 99) == pytest.approx(30_000), "what took longer than the last bound"


@pytest.mark.parametrize("wanted", ["pure", ""])
def test_the_codec_is_shown_and_the_pure_one_once_in_the_log(tmp_path: Path, wanted: str) -> None:
    with serving("--workers", "2", home=tmp_path, variables={"METASTORE_CODEC": wanted}) as server:
        (info,) = [line for line in get(server.uri, "/metrics")[1].splitlines() if line.startswith("metastore_info{")]
    codec = "pure" if wanted == "pure" or IMPLEMENTATION == "pure" else "compiled"
    assert f'codec="{codec}"' in info
    assert server.log.read_text().count(PURE) == int(codec == "pure")
