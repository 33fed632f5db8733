"""Hive's streaming ingest writes batches of transactions; readers see committed rows, and no others."""

from __future__ import annotations

from pathlib import Path

import pytest

from metastore.idl import AbortTxnsRequest, ShowLocksRequest
from tests.hive4.conftest import Story
from tests.support.engines.ingest import ingest

pytestmark = pytest.mark.slow


def test_a_batch_of_transactions(story: Story, tmp_path: Path) -> None:
    story.sql(
        "CREATE TABLE alerts (id int, msg string) PARTITIONED BY (continent string) CLUSTERED BY (id) INTO 2 BUCKETS STORED AS ORC "
        "TBLPROPERTIES ('transactional' = 'true', 'no_auto_compaction' = 'true')"
    )
    with ingest(story.place.uri, tmp_path, story.place.warehouse, story.name, "alerts", 3) as stream:
        stream.do("begin", "write 1,hello,asia", "write 2,welcome,europe")
        assert story.sql("SELECT * FROM alerts") == [], "nothing is committed"
        stream.do("commit")
        assert story.sql("SELECT * FROM alerts ORDER BY id") == [("1", "hello", "asia"), ("2", "welcome", "europe")]
        assert story.sql("SHOW PARTITIONS alerts") == [("continent=asia",), ("continent=europe",)]
        stream.do("begin", "write 3,taken back,asia", "abort")
        stream.do("begin", "write 4,third of the batch,asia", "commit", "begin", "write 5,next batch,asia", "commit")
    rows = [("1", "hello", "asia"), ("2", "welcome", "europe"), ("4", "third of the batch", "asia"), ("5", "next batch", "asia")]
    assert story.sql("SELECT * FROM alerts ORDER BY id") == rows
    story.engine.compact(story.name, "alerts", "MAJOR", "continent=asia")
    story.until(lambda: story.compactions("alerts") == [("MAJOR", "succeeded")])
    assert story.sql("SELECT * FROM alerts ORDER BY id") == rows
    story.sql("UPDATE alerts SET msg = 'seen' WHERE id = 4")
    assert story.sql("SELECT msg FROM alerts WHERE id = 4") == [("seen",)]


def test_a_stream_that_vanishes_leaves_transactions_that_others_can_end(story: Story, tmp_path: Path) -> None:
    story.sql("CREATE TABLE t (id int) STORED AS ORC TBLPROPERTIES ('transactional' = 'true')")
    with ingest(story.place.uri, tmp_path, story.place.warehouse, story.name, "t", 4) as stream:
        stream.do("begin", "write 1", "commit", "begin", "write 2", "vanish")
    assert story.sql("SELECT * FROM t") == [("1",)]
    held = story.client.show_locks(ShowLocksRequest(dbname=story.name, tablename="t")).locks
    assert len({each.txnid for each in held}) == 1
    story.client.abort_txns(AbortTxnsRequest(txn_ids=[held[0].txnid]))
    assert story.client.show_locks(ShowLocksRequest(dbname=story.name, tablename="t")).locks == []
    story.sql("INSERT INTO t VALUES (3)")
    assert story.sql("SELECT * FROM t ORDER BY id") == [("1",), ("3",)]
