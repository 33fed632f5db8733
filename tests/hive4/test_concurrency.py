"""Two concurrent sessions of Hive: the second one waits for locks, or fails at its commit. Open transactions and locks are shown."""

from __future__ import annotations

import pytest

from metastore.idl import (
    DataOperationType,
    LockComponent,
    LockLevel,
    LockRequest,
    LockState,
    LockType,
    OpenTxnRequest,
)
from tests.hive4.conftest import Story
from tests.support.engines.hive import HiveError

pytestmark = pytest.mark.slow
SLOWLY = "coalesce(reflect('java.lang.Thread', 'sleep', CAST(8000 AS bigint)), 'slept') <> 'never'"
"""True for a row after eight seconds, in which the other session can run its statement."""


def counters(story: Story, exclusive: str) -> None:
    """Make a table with a row, and two sessions whose updates lock as `hive.txn.xlock.write` says."""
    story.sql("CREATE TABLE t (id int, v int) STORED AS ORC TBLPROPERTIES ('transactional' = 'true')")
    story.sql("INSERT INTO t VALUES (1, 0)")
    for session in ("first", "second"):
        story.further(session, f"SET hive.txn.xlock.write={exclusive}")


def holds(story: Story) -> bool:
    """Whether a lock of this story's table is acquired."""
    return any(row[1:3] == (story.name, "t") and row[4] == "ACQUIRED" for row in story.sql("SHOW LOCKS"))


def test_the_second_of_two_updates_loses(story: Story) -> None:
    counters(story, "false")
    first = story.engine.start(f"UPDATE t SET v = 1 WHERE id = 1 AND {SLOWLY}", story.name + "first")
    story.until(lambda: holds(story) or first.done())
    story.sql("UPDATE t SET v = 2 WHERE id = 1", "second")
    assert not first.done()
    with pytest.raises(HiveError, match="write conflict"):
        first.result(60)
    assert story.sql("SELECT * FROM t") == [("1", "2")]
    story.sql("UPDATE t SET v = v + 10 WHERE id = 1", "first")
    assert story.sql("SELECT * FROM t") == [("1", "12")]


def test_with_exclusive_locks_it_waits(story: Story) -> None:
    counters(story, "true")
    first = story.engine.start(f"UPDATE t SET v = v + 1 WHERE id = 1 AND {SLOWLY}", story.name + "first")
    story.until(lambda: holds(story) or first.done())
    second = story.engine.start("UPDATE t SET v = v + 1 WHERE id = 1", story.name + "second")
    first.result(60)
    second.result(60)
    assert story.sql("SELECT * FROM t") == [("1", "2")]


def test_others_insert_meanwhile(story: Story) -> None:
    counters(story, "true")
    first = story.engine.start(f"INSERT INTO t SELECT 2, 0 FROM t WHERE {SLOWLY}", story.name + "first")
    story.until(lambda: holds(story) or first.done())
    story.sql("INSERT INTO t VALUES (3, 0)", "second")
    assert story.sql("SELECT id FROM t ORDER BY id") == [("1",), ("3",)], "what is not committed is not read"
    first.result(60)
    assert story.sql("SELECT id FROM t ORDER BY id") == [("1",), ("2",), ("3",)]


def test_open_transactions_and_locks_are_shown(story: Story) -> None:
    story.sql("CREATE TABLE t (id int) STORED AS ORC TBLPROPERTIES ('transactional' = 'true')")
    (opened,) = story.client.open_txns(OpenTxnRequest(num_txns=1, user="somebody", hostname="far")).txn_ids
    component = LockComponent(
        type=LockType.EXCLUSIVE,
        level=LockLevel.TABLE,
        dbname=story.name,
        tablename="t",
        operationType=DataOperationType.NO_TXN,
    )
    lock = story.client.lock(LockRequest(component=[component], txnid=opened, user="somebody", hostname="far", agentInfo="me"))
    assert lock.state == LockState.ACQUIRED
    shown = [row for row in story.sql("SHOW LOCKS t") if row[2] == "t"]
    assert [(row[0], row[4], row[6], row[7], row[10], row[11]) for row in shown] == [
        (f"{lock.lockid}.1", "ACQUIRED", "EXCLUSIVE", str(opened), "somebody", "far"),
    ]  # fmt: skip
    assert (str(opened), "OPEN", "somebody") in {(row[0], row[1], row[4]) for row in story.sql("SHOW TRANSACTIONS")}
    story.further("reader")
    reading = story.engine.start("INSERT INTO t VALUES (1)", story.name + "reader")
    story.until(lambda: any(row[2] == "t" and row[4] == "WAITING" for row in story.sql("SHOW LOCKS t")))
    assert not reading.done()
    story.sql(f"ABORT TRANSACTIONS {opened}")
    reading.result(120)
    assert story.sql("SELECT * FROM t") == [("1",)]
    assert (str(opened), "OPEN") not in {(row[0], row[1]) for row in story.sql("SHOW TRANSACTIONS")}
