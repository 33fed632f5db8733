"""One story of all statements, with a server on each kind of database, since the databases differ in SQL and locks."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from metastore.client import connect
from metastore.idl import TxnState
from metastore.spark import sql
from metastore.spark.compaction.compactor import Compactor
from metastore.spark.transaction.readers import close_all
from tests.support.servers.servers import serving

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
ACID = "TBLPROPERTIES ('transactional'='true', 'no_auto_compaction'='true')"
Row = tuple[object, ...]
STORY: list[tuple[str, list[Row] | None]] = [  # with the answers; None for an answer that differs from run to run
    (f"CREATE TABLE emp (id int, name string, pay decimal(7,2) DEFAULT 1.5, CHECK (id > 0)) {ACID}", []),
    (f"CREATE TABLE log (id int, what string) PARTITIONED BY (day date) CLUSTERED BY (id) INTO 2 BUCKETS {ACID}", []),
    ("INSERT INTO emp (id, name) VALUES (1, 'a'), (2, 'b'), (3, 'é')", []),
    ("INSERT INTO log PARTITION (day = '2024-01-01') SELECT id, name FROM emp", []),
    ("INSERT INTO log VALUES (9, 'x', date'2024-01-02')", []),
    ("UPDATE emp SET pay = pay + 1 WHERE id IN (SELECT id FROM log WHERE what = 'b')", [(1,)]),
    ("DELETE FROM emp WHERE id = 1", [(1,)]),
    (
        (
            "MERGE INTO emp USING log ON emp.id = log.id WHEN MATCHED AND log.id = 3 THEN UPDATE SET name = 'c' "
            "WHEN NOT MATCHED THEN INSERT VALUES (log.id, log.what, 7)"
        ),
        [(3, 1, 0, 2)],
    ),
    ("SELECT id, name, CAST(pay AS string) FROM emp ORDER BY id", [(1, "a", "7.00"), (2, "b", "2.50"), (3, "c", "1.50"), (9, "x", "7.00")]),
    ("START TRANSACTION", []),
    ("UPDATE emp SET pay = 0 WHERE id = 9", [(1,)]),
    ("INSERT INTO log VALUES (10, 'y', date'2024-01-02')", []),
    ("INSERT INTO emp (id) VALUES (10)", []),
    ("ROLLBACK", []),
    ("START TRANSACTION", []),
    ("DELETE FROM emp WHERE id = 9", [(1,)]),
    ("INSERT INTO log VALUES (11, 'z', date'2024-01-02')", []),
    ("COMMIT", []),
    ("SELECT (SELECT count(*) FROM emp), count(*) FROM log", [(3, 5)]),
    ("FROM log INSERT INTO emp SELECT id + 20, what, 0 WHERE id = 11 INSERT INTO log SELECT id, 'again', day WHERE id = 9", []),
    ("INSERT OVERWRITE log PARTITION (day = '2024-01-01') SELECT 5, 'only'", []),
    ("CREATE VIEW shown AS SELECT id FROM log WHERE id > 5", []),
    ("SELECT * FROM shown ORDER BY id", [(9,), (9,), (11,)]),
    ("ALTER TABLE emp ADD COLUMNS (more string)", []),
    ("ALTER TABLE emp CHANGE COLUMN more further string", []),
    ("ALTER TABLE log ADD PARTITION (day = '2024-02-01')", []),
    ("ALTER TABLE log PARTITION (day = '2024-02-01') RENAME TO PARTITION (day = '2024-03-01')", []),
    ("SHOW PARTITIONS log", [("day=2024-01-01",), ("day=2024-01-02",), ("day=2024-03-01",)]),
    ("ALTER TABLE log DROP PARTITION (day > '2024-02-15')", []),
    ("ALTER TABLE emp SET TBLPROPERTIES ('k' = 'v')", []),
    ("ALTER TABLE emp RENAME TO staff", []),
    ("ANALYZE TABLE staff COMPUTE STATISTICS FOR COLUMNS", []),
    ("DESCRIBE FORMATTED staff", None),
    ("SHOW CREATE TABLE staff", None),
    ("SHOW TABLE EXTENDED LIKE 'st*'", None),
    ("SHOW TRANSACTIONS", None),
    ("SHOW LOCKS staff", None),
    ("ALTER TABLE staff COMPACT 'major'", None),
    ("ALTER TABLE log PARTITION (day = '2024-01-02') COMPACT 'minor'", None),
]
LATER: list[tuple[str, list[Row] | None]] = [
    ("SHOW COMPACTIONS", None),
    ("SELECT id, name, further FROM staff ORDER BY id", [(1, "a", None), (2, "b", None), (3, "c", None), (31, "z", None)]),
    ("SELECT id, what, CAST(day AS string) FROM log ORDER BY id, what", [
        (5, "only", "2024-01-01"), (9, "again", "2024-01-02"), (9, "x", "2024-01-02"), (11, "z", "2024-01-02"),
    ]),
    ("TRUNCATE TABLE log", []),
    ("SELECT count(*) FROM log", [(0,)]),
    (f"CREATE TABLE copy {ACID} AS SELECT * FROM staff", []),
    ("SELECT count(*) FROM copy", [(4,)]),
    ("DROP TABLE copy", []),
    ("DROP TABLE staff", []),
    ("DROP TABLE log", []),
]  # fmt: skip


def test_a_story_of_all_statements(database_url: str, spark: SparkSession, tmp_path: Path) -> None:
    options = ("--set", "compactor_initiator=false", "--set", "compactor_cleaner_interval=1s")
    with serving("--db", database_url, "--warehouse", str(tmp_path / "warehouse"), "--workers", "2", *options, home=tmp_path) as server:
        session = spark.newSession()
        session.conf.set("spark.hadoop.hive.metastore.uris", server.uri)

        def run(story: list[tuple[str, list[Row] | None]]) -> None:
            for statement, expected in story:
                found = [tuple(row) for row in sql(session, statement).collect()]
                assert expected is None or found == expected, statement

        run(STORY)
        outcomes = [Compactor(session, server.uri).run_once() for _ in range(2)]
        assert [outcome and outcome.state for outcome in outcomes] == ["compacted", "compacted"]
        run(LATER)
        close_all()
        with connect(server.uri) as client:
            assert client.get_all_tables("default") == ["shown"]
            listed = client.get_open_txns_info().open_txns  # the transaction that was rolled back is listed until a cleaner deletes it
            assert [each.id for each in listed if each.state == TxnState.OPEN] == []
