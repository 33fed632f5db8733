"""The parts of a call's time: each second belongs to one, and they add up, in slow calls, metrics and spans alike."""

from __future__ import annotations

from pathlib import Path

import pytest

from metastore import idl
from metastore.call_time import PARTS
from metastore.client import Client, connect
from tests.support.servers.servers import serving
from tests.support.servers.waiting import until
from tests.telemetry.test_telemetry import EVERY_CALL, STORAGE, asked
from tests.wire.http.test_pages import get

KEYS = [idl.FieldSchema("k", "string", None)]


def all_kinds_of_calls(client: Client) -> None:
    """Make calls of all kinds: reads, changes, changes of directories, locks, transactions, a long list, failures."""
    client.create_database(idl.Database("d"))
    client.create_table(idl.Table("t", "d", sd=STORAGE, parameters={}, partitionKeys=KEYS))
    client.add_partitions([idl.Partition(dbName="d", tableName="t", values=[str(n)], sd=STORAGE) for n in range(300)])
    client.get_table("d", "t")
    client.get_partitions("d", "t", -1)
    client.get_partitions_by_names("d", "t", ["k=1", "k=2"])
    with pytest.raises(idl.NoSuchObjectException):
        client.get_table("d", "missing")
    txn = client.open_txns(idl.OpenTxnRequest(num_txns=1, user="u", hostname="h")).txn_ids[0]
    component = idl.LockComponent(type=idl.LockType.SHARED_READ, level=idl.LockLevel.TABLE, dbname="d", tablename="t")
    client.lock(idl.LockRequest(component=[component], txnid=txn, user="u", hostname="h"))
    client.commit_txn(idl.CommitTxnRequest(txnid=txn))
    renamed = client.get_table("d", "t")
    renamed.tableName = "u"
    client.alter_table("d", "t", renamed)
    client.drop_table("d", "u", True)
    client.drop_database("d", True, True)


@pytest.mark.on_one_database
def test_the_parts_of_each_call_add_up_to_its_time(database_url: str, tmp_path: Path) -> None:
    with serving("--db", database_url, "--workers", "1", *EVERY_CALL, home=tmp_path) as server, connect(server.uri, timeout=60) as client:
        all_kinds_of_calls(client)
        calls = {each["method"]: each for each in asked(server, "/api/v1/slow-calls")}
        assert len(calls) >= 11
        for each in calls.values():
            parts = {part: each[f"{part}_seconds"] for part in PARTS}
            assert min(parts.values()) >= 0, each
            assert sum(parts.values()) == pytest.approx(each["seconds"]), "no second has two names"
            assert parts["other"] > 0, each
            assert parts["encoding"] > 0, each
            assert parts["wait"] == 0 or each["statements"], each
        for method in ("create_table", "add_partitions", "drop_table", "drop_database"):
            assert calls[method]["files_seconds"] > 0, method
        assert calls["get_table"]["files_seconds"] == 0
        assert calls["add_partitions"]["lock_seconds"] > 0
        text = until(lambda: text if "drop_database" in (text := get(server.uri, "/metrics")[1]) else "")
        for method in calls:
            whole = total(text, "metastore_call_seconds_sum", method)
            assert total(text, "metastore_call_part_seconds_sum", method) == pytest.approx(whole), method
        files = [line for line in text.splitlines() if line.startswith("metastore_call_part_seconds_count") and 'part="files"' in line]
        assert any('method="create_table"' in line for line in files)
        assert not any('method="get_partitions_by_names"' in line for line in files), "a part that took nothing is left out"


def total(text: str, name: str, method: str) -> float:
    """Return the sum of a metric's samples of a method."""
    found = [line for line in text.splitlines() if line.startswith(f"{name}{{") and f'method="{method}"' in line]
    assert found, name
    return sum(float(line.rpartition(" ")[2]) for line in found)
