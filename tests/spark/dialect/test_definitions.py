"""CREATE, ALTER, DESCRIBE, SHOW, views, TRUNCATE, DROP and ANALYZE of transactional tables."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from metastore import idl
from metastore.client import Client
from metastore.spark import AcidTable, sql
from metastore.spark.compaction.compactor import Compactor
from metastore.spark.grammar.tokens import WrongStatement
from metastore.spark.session.catalog import WrongColumns
from tests.spark.dialect.conftest import Sql
from tests.support.acid.acid_tables import stored_table

FULL = """
CREATE TABLE t (
  `id` bigint COMMENT 'it''s', name varchar(20) DEFAULT 'x', n decimal(5,2) NOT NULL, c int, st struct<`order`:int,`a b`:array<string>>,
  CONSTRAINT k PRIMARY KEY (id) DISABLE NOVALIDATE, CONSTRAINT positive CHECK (c > 0))
COMMENT 'a table' PARTITIONED BY (d date COMMENT 'day', r string) CLUSTERED BY (id) INTO 2 BUCKETS
STORED AS ORC TBLPROPERTIES ('transactional'='true', 'k'='it\\'s \\\\ "q"')
"""


def test_the_shown_statement_makes_the_same_table_again(run: Sql, database: str, client: Client) -> None:
    run(FULL)
    (shown,) = run("SHOW CREATE TABLE t")[0]
    made = stored_table(client, "t", database)
    constraints = [row for row in run("DESCRIBE FORMATTED t") if "Constraint" in row[0]]
    run("DROP TABLE t")
    run(shown)
    again = stored_table(client, "t", database)
    assert (again.sd.cols, again.partitionKeys, again.sd.bucketCols) == (made.sd.cols, made.partitionKeys, made.sd.bucketCols)
    assert {k: v for k, v in again.parameters.items() if k != "transient_lastDdlTime"} == {
        k: v for k, v in made.parameters.items() if k != "transient_lastDdlTime"
    }
    assert [row for row in run("DESCRIBE FORMATTED t") if "Constraint" in row[0]] == constraints
    assert run("SHOW CREATE TABLE t")[0][0].splitlines()[:12] == shown.splitlines()[:12]
    assert "`st` struct<`order`:int, `a b`:array<string>>" in shown
    assert run("SHOW TBLPROPERTIES t('none')") == [("none", f"Table {database}.t does not have property: none")]
    assert run("SHOW TBLPROPERTIES t('k')") == [("k", 'it\'s \\ "q"')]
    assert run("SHOW COLUMNS IN t") == [("id",), ("name",), ("n",), ("c",), ("st",), ("d",), ("r",)]


def test_a_database_is_listed_and_dropped_with_its_tables(run: Sql, emp: str, spark: SparkSession, client: Client) -> None:
    run("CREATE DATABASE dropped")
    run("CREATE TABLE dropped.a (id int) PARTITIONED BY (p string) STORED AS ORC TBLPROPERTIES ('transactional'='true')")
    run("CREATE TABLE dropped.plain (x int) STORED AS ORC")
    rows = run("SHOW TABLE EXTENDED IN dropped LIKE 'a*|p*'")
    assert [row[:3] for row in rows] == [("dropped", "a", False), ("dropped", "plain", False)]
    assert "Type: MANAGED" in rows[0][3]
    assert " |-- p: string (nullable = true)" in rows[0][3]
    run("DROP DATABASE IF EXISTS dropped CASCADE")
    assert "dropped" not in client.get_all_databases()
    run("DROP DATABASE IF EXISTS dropped CASCADE")


def test_a_query_that_fails_makes_no_table(run: Sql, emp: str, database: str, client: Client) -> None:
    with pytest.raises(Exception, match="no"):
        run("CREATE TABLE made STORED AS ORC TBLPROPERTIES ('transactional'='true') AS SELECT id, raise_error('no') x FROM emp")
    with pytest.raises(Exception, match="nope"):
        run("CREATE TABLE made STORED AS ORC TBLPROPERTIES ('transactional'='true') AS SELECT nope FROM emp")
    assert sorted(client.get_all_tables(database)) == ["emp"]
    run("SET metastore.create.as.acid=true")
    try:
        run("CREATE TABLE made AS SELECT id FROM emp")
        run("CREATE TABLE plain (a int) STORED AS PARQUET")
    finally:
        run("SET metastore.create.as.acid=false")
    assert stored_table(client, "made", database).parameters["transactional"] == "true"
    assert "transactional" not in stored_table(client, "plain", database).parameters
    run("CREATE OR REPLACE TABLE made STORED AS ORC TBLPROPERTIES ('transactional'='true') AS SELECT id + 1 AS id FROM emp")
    assert sorted(run("SELECT * FROM made")) == [(2,), (3,), (4,)]
    with pytest.raises(idl.AlreadyExistsException):
        run("CREATE TABLE made (id int) STORED AS ORC TBLPROPERTIES ('transactional'='true')")
    run("CREATE TABLE IF NOT EXISTS made (x string) STORED AS ORC TBLPROPERTIES ('transactional'='true')")
    assert len(run("SELECT id FROM made")) == 3


def test_columns_change_and_old_rows_stay(run: Sql, emp: str) -> None:
    run("ALTER TABLE emp ADD COLUMNS (x int COMMENT 'c', y string)")
    run("ALTER TABLE emp CHANGE COLUMN name full_name string COMMENT 'all of it'")
    run("ALTER TABLE emp CHANGE salary salary bigint")
    run("INSERT INTO emp VALUES (4, 'new', 5000000000, 1, 'y')")
    assert run("SELECT * FROM emp WHERE id IN (1, 4) ORDER BY id") == [(1, "Jerry", 5000, None, None), (4, "new", 5000000000, 1, "y")]
    assert run("DESCRIBE emp full_name") == [("full_name", "string", "all of it")]
    for statement, message in (
        ("ALTER TABLE emp ADD COLUMNS (ID int)", "already"),
        ("ALTER TABLE emp CHANGE nope nope int", "no column nope"),
        ("ALTER TABLE emp CHANGE x x int FIRST", "by position"),
        ("ALTER TABLE emp REPLACE COLUMNS (id int)", "by position"),
        ("ALTER TABLE emp SET TBLPROPERTIES ('transactional'='false')", "to_plain"),
        ("ALTER TABLE emp FROBNICATE", "supported: ADD"),
    ):
        with pytest.raises(WrongStatement, match=message):
            run(statement)
    run("ALTER TABLE emp RENAME TO people")
    assert len(run("SELECT * FROM people")) == 4


def test_partitions_are_added_renamed_and_dropped(run: Sql) -> None:
    run("CREATE TABLE p (a int) PARTITIONED BY (n int, s string) STORED AS ORC TBLPROPERTIES ('transactional'='true')")
    for number in (1, 2, 10):
        run(f"INSERT INTO p PARTITION (n={number}, s='it\\'s') VALUES ({number})")
    run("ALTER TABLE p ADD IF NOT EXISTS PARTITION (n=1, s='it\\'s') PARTITION (n=3, s='x')")
    with pytest.raises(WrongStatement, match="already"):
        run("ALTER TABLE p ADD PARTITION (n=3, s='x')")
    for text in ("abc", "1.5"):
        with pytest.raises(WrongColumns, match=f"partition key n is int and can not hold '{text}'"):
            run(f"ALTER TABLE p ADD PARTITION (n='{text}', s='x')")
        with pytest.raises(WrongColumns, match=f"partition key n is int and can not hold '{text}'"):
            run(f"ALTER TABLE p PARTITION (n=3, s='x') RENAME TO PARTITION (n='{text}', s='x')")
    run("ALTER TABLE p PARTITION (n=3, s='x') RENAME TO PARTITION (n=3, s='y')")
    assert run("SHOW PARTITIONS p PARTITION (n=3)") == [("n=3/s=y",)]
    run("ALTER TABLE p DROP PARTITION (n < 3, s = 'it\\'s'), PARTITION (n=3)")
    assert run("SELECT * FROM p") == [(10, 10, "it's")]
    run("ALTER TABLE p DROP IF EXISTS PARTITION (n < 0)")
    with pytest.raises(WrongStatement, match="no partition"):
        run("ALTER TABLE p DROP PARTITION (n < 0)")
    run("TRUNCATE TABLE p PARTITION (n=10)")
    assert run("SELECT * FROM p") == []
    with pytest.raises(WrongStatement, match="no partition"):
        run("TRUNCATE TABLE p PARTITION (n=77)")


def test_views_show_the_rows_of_the_moment(run: Sql, emp: str, database: str, spark: SparkSession) -> None:
    run("CREATE TABLE plain STORED AS ORC AS SELECT 1 AS k")
    run("CREATE VIEW v (who, k) AS SELECT name, k FROM emp JOIN plain ON id = k")
    run("CREATE OR REPLACE VIEW v2 AS SELECT who FROM v")
    run("CREATE TEMPORARY VIEW tv AS SELECT id, name FROM emp WHERE id IN (SELECT k FROM plain)")
    run("UPDATE emp SET name = 'new' WHERE id = 1")
    spark.sql("USE default")
    assert run(f"SELECT * FROM {database}.v") == [("new", 1)]
    assert run(f"SELECT v2.who FROM {database}.v2") == [("new",)]
    assert run("SELECT * FROM tv") == [(1, "new")]
    spark.sql(f"USE {database}")
    with pytest.raises(WrongStatement, match="already"):
        run("CREATE VIEW v AS SELECT id FROM emp")
    with pytest.raises(WrongStatement, match="temporary view"):
        run("CREATE VIEW v3 AS SELECT * FROM tv JOIN emp ON true")
    run("CREATE VIEW IF NOT EXISTS v AS SELECT id FROM emp")
    run("CREATE OR REPLACE VIEW v AS SELECT id AS who FROM emp")
    assert len(run("SELECT * FROM v2")) == 3
    run("DROP VIEW v2")
    run("DROP VIEW tv")
    spark.range(1).createOrReplaceTempView("tv")
    assert run("SELECT * FROM tv") == [(0,)]
    spark.catalog.dropTempView("tv")


def test_a_view_that_reads_itself_is_refused(run: Sql, emp: str, database: str, client: Client) -> None:
    run("CREATE VIEW a AS SELECT id FROM emp")
    run("CREATE VIEW b AS SELECT id FROM a")
    view = stored_table(client, "a", database)
    view.viewExpandedText = view.viewOriginalText = f"SELECT id FROM {database}.b JOIN {database}.emp USING (id)"
    client.alter_table(database, "a", view)
    with pytest.raises(WrongStatement, match="reads itself"):
        run("SELECT * FROM a")


def test_a_compaction_is_queued_and_waited_for(run: Sql, emp: str, database: str, spark: SparkSession) -> None:
    from concurrent.futures import ThreadPoolExecutor

    run("UPDATE emp SET salary = 1 WHERE id = 1")
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(run, f"ALTER TABLE {database}.emp COMPACT 'major' AND WAIT POOL 'dialect'")
        worker = Compactor(spark, AcidTable.forName(spark, f"{database}.emp")._uri, pool="dialect")
        while worker.run_once() is None:
            pass
        assert waiting.result()[0][1] in ("ready for cleaning", "succeeded")
    (row,) = run("SHOW COMPACTIONS emp POOL 'dialect'")
    assert (row[1:5], row[15]) == ((database, "emp", " --- ", "MAJOR"), "dialect")
    assert sorted(run("SELECT id, salary FROM emp")) == [(1, 1), (2, 8000), (3, 6000)]
    run("CREATE TABLE other LIKE emp")
    run("INSERT INTO other SELECT * FROM emp")
    (number, state) = run("ALTER TABLE other COMPACT 'minor' POOL 'nobody'")[0]
    assert state == "initiated"
    assert run(f"ABORT COMPACTIONS {number}")[0][0] == number
    with pytest.raises(WrongStatement, match="MINOR"):
        run("ALTER TABLE emp COMPACT 'tiny'")


def test_statistics_are_exact_unless_somebody_commits_meanwhile(
    run: Sql, emp: str, database: str, client: Client, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("ANALYZE TABLE emp COMPUTE STATISTICS FOR COLUMNS")
    parameters = stored_table(client, "emp", database).parameters
    assert (parameters["numRows"], '"BASIC_STATS":"true"' in parameters["COLUMN_STATS_ACCURATE"]) == ("3", True)
    assert ("max", "8000") in run("DESCRIBE FORMATTED emp salary")
    from metastore.spark.dialect import analyzing

    plain = analyzing._measures

    def slow(*arguments: object) -> object:
        monkeypatch.setattr(analyzing, "_measures", plain)
        sql(spark, f"INSERT INTO {database}.emp VALUES (4, 'x', 1)")
        return plain(*arguments)

    monkeypatch.setattr(analyzing, "_measures", slow)
    run("ANALYZE TABLE emp COMPUTE STATISTICS")
    assert "COLUMN_STATS_ACCURATE" not in stored_table(client, "emp", database).parameters
    run("ANALYZE TABLE emp COMPUTE STATISTICS")
    assert stored_table(client, "emp", database).parameters["numRows"] == "4"
