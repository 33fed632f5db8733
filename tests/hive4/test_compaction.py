"""Hive's compaction worker takes entries of this server's queue. The server queues due compactions and deletes unread directories."""

from __future__ import annotations

import pytest

from metastore.idl import AbortTxnRequest, OpenTxnRequest
from tests.hive4.conftest import Story
from tests.support.engines.hive import Rows

pytestmark = pytest.mark.slow
ACID = "STORED AS ORC TBLPROPERTIES ('transactional' = 'true'"


def rows(story: Story, table: str) -> Rows:
    return story.sql(f"SELECT * FROM {table} ORDER BY id")


def test_minor_and_major(story: Story) -> None:
    story.sql(f"CREATE TABLE t (id int, v string) {ACID}, 'no_auto_compaction' = 'true')")
    for number in (1, 2, 3):
        story.sql(f"INSERT INTO t VALUES ({number}, 'v{number}')")
    story.sql("DELETE FROM t WHERE id = 2")
    _, state, accepted = story.engine.compact(story.name, "t", "MINOR")
    assert (state, accepted) == ("initiated", "true")
    story.until(lambda: story.compactions("t") == [("MINOR", "succeeded")])
    assert rows(story, "t") == [("1", "v1"), ("3", "v3")]
    kinds = [name.partition("_v")[0] for name in story.directories("t")]
    assert kinds == ["delete_delta_0000001_0000004", "delta_0000001_0000004"]
    story.sql("UPDATE t SET v = 'new' WHERE id = 3")
    story.engine.compact(story.name, "t", "MAJOR")
    story.until(lambda: story.compactions("t") == [("MINOR", "succeeded"), ("MAJOR", "succeeded")])
    assert [name.partition("_v")[0] for name in story.directories("t")] == ["base_0000005"]
    assert rows(story, "t") == [("1", "v1"), ("3", "new")]
    story.sql("INSERT INTO t VALUES (4, 'later')")
    assert rows(story, "t") == [("1", "v1"), ("3", "new"), ("4", "later")]


def test_a_partition_of_an_insert_only_table(story: Story) -> None:
    story.sql(
        "CREATE TABLE t (id int) PARTITIONED BY (k string) STORED AS ORC "
        "TBLPROPERTIES ('transactional' = 'true', 'transactional_properties' = 'insert_only', 'no_auto_compaction' = 'true')"
    )
    for number in (1, 2):
        story.sql(f"INSERT INTO t PARTITION (k = 'x') VALUES ({number})")
    story.engine.compact(story.name, "t", "MAJOR", "k=x")
    story.until(lambda: story.compactions("t") == [("MAJOR", "succeeded")])
    assert [name.partition("_v")[0] for name in story.directories("t", "k=x")] == ["base_0000002"]
    assert rows(story, "t") == [("1", "x"), ("2", "x")]


def test_the_server_queues_due_compactions(story: Story) -> None:
    story.sql(f"CREATE TABLE t (id int) {ACID}, 'compactorthreshold.hive.compactor.delta.num.threshold' = '2')")
    for number in range(4):
        story.sql(f"INSERT INTO t VALUES ({number})")
    story.until(lambda: any(state == "succeeded" for _, state in story.compactions("t")))
    assert rows(story, "t") == [(str(number),) for number in range(4)]
    assert len(story.directories("t")) < 4


def test_old_files_stay_while_somebody_reads_them(story: Story) -> None:
    story.sql(f"CREATE TABLE t (id int) {ACID}, 'no_auto_compaction' = 'true')")
    for number in (1, 2):
        story.sql(f"INSERT INTO t VALUES ({number})")
    (reader,) = story.client.open_txns(OpenTxnRequest(num_txns=1, user="reader", hostname="here")).txn_ids
    story.engine.compact(story.name, "t", "MAJOR")
    story.until(lambda: story.compactions("t") == [("MAJOR", "ready for cleaning")])
    assert rows(story, "t") == [("1",), ("2",)]
    assert [name.partition("_v")[0] for name in story.directories("t")] == [
        "base_0000002", "delta_0000001_0000001_0000", "delta_0000002_0000002_0000",
    ]  # fmt: skip
    story.client.abort_txn(AbortTxnRequest(txnid=reader))
    story.until(lambda: story.compactions("t") == [("MAJOR", "succeeded")])
    assert [name.partition("_v")[0] for name in story.directories("t")] == ["base_0000002"]
