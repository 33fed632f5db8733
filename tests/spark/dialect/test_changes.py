"""INSERT, UPDATE, DELETE and MERGE in every spelling; a statement that fails leaves nothing behind."""

from __future__ import annotations

import io
import logging

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from metastore.acid.values.constraints import ConstraintViolated
from metastore.client import Client
from metastore.idl import LockType, ShowLocksRequest
from metastore.spark.grammar.tokens import WrongStatement
from metastore.spark.session.assignment import DoesNotFit
from metastore.spark.session.catalog import WrongColumns
from metastore.spark.transaction.spark_transaction import CanNotChange
from tests.spark.dialect.conftest import Sql

ROWS = [(1, "Jerry", 5000), (2, "Tom", 8000), (3, "Kate", 6000)]
PARTITIONED = "CREATE TABLE t (a int, b string) PARTITIONED BY (d date, r string) STORED AS ORC TBLPROPERTIES ('transactional'='true')"


def rows(run: Sql, table: str = "emp") -> list[tuple[object, ...]]:
    return sorted(run(f"SELECT * FROM {table}"), key=repr)


def test_updates_and_deletes_with_subqueries(run: Sql, emp: str, database: str) -> None:
    run("CREATE TABLE plain STORED AS ORC AS SELECT 2 AS id, 9000 AS s UNION ALL SELECT 7, 1")
    assert run("UPDATE emp SET salary = (SELECT max(s) FROM plain), name = upper(name) WHERE id IN (SELECT id FROM plain)") == [(1,)]
    assert rows(run) == [(1, "Jerry", 5000), (2, "TOM", 9000), (3, "Kate", 6000)]
    assert run(f"UPDATE {database}.emp AS e SET e.salary = e.salary + 1 WHERE EXISTS (SELECT 1 FROM emp g WHERE g.id = e.id + 1)") == [(2,)]
    assert run(f"DELETE FROM spark_catalog.{database}.emp WHERE id IN (1, 2, null) AND salary > 9000") == [(1,)]
    assert rows(run) == [(1, "Jerry", 5001), (3, "Kate", 6000)]
    assert run("DELETE FROM emp e WHERE NOT EXISTS (SELECT 1 FROM emp k WHERE k.salary > e.salary)") == [(1,)]
    assert run("DELETE FROM emp") == [(1,)]
    assert rows(run) == []


def test_merge_in_hives_spelling(run: Sql, emp: str) -> None:
    source = "(SELECT 1 id, 'x' name, true gone UNION ALL SELECT 2, 'Tim', false UNION ALL SELECT 9, 'New', false)"
    answer = run(
        f"MERGE INTO emp AS t USING {source} AS s ON t.id = s.id WHEN MATCHED AND s.gone = true THEN DELETE "
        "WHEN MATCHED AND t.name <> s.name THEN UPDATE SET name = s.name WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.name, 1)"
    )
    assert answer == [(3, 1, 1, 1)]
    assert rows(run) == [(2, "Tim", 8000), (3, "Kate", 6000), (9, "New", 1)]


def test_merge_in_deltas_spelling(run: Sql, emp: str) -> None:
    run("CREATE TABLE src STORED AS ORC AS SELECT 1 id, 'J' name, 1 salary UNION ALL SELECT 9, 'N', 2")
    answer = run(
        "MERGE INTO emp USING src ON emp.id = src.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT * "
        "WHEN NOT MATCHED BY SOURCE AND salary > 7000 THEN DELETE WHEN NOT MATCHED BY SOURCE THEN UPDATE SET salary = 0"
    )
    assert answer == [(4, 2, 1, 1)]
    assert rows(run) == [(1, "J", 1), (3, "Kate", 0), (9, "N", 2)]
    run("MERGE INTO emp USING src s ON emp.id = s.id WHEN NOT MATCHED BY SOURCE AND emp.id = 3 THEN UPDATE SET name = DEFAULT")
    assert rows(run) == [(1, "J", 1), (3, None, 0), (9, "N", 2)]


def test_a_merge_leaves_no_errors_in_pysparks_log(run: Sql, emp: str) -> None:
    """A merge writes nothing to PySpark's log, which gets each plan that Spark refuses, on the standard error."""
    run("CREATE TABLE src STORED AS ORC AS SELECT 1 id, 'J' name, 1 salary UNION ALL SELECT 9, 'N', 2")
    written = io.StringIO()
    handler = logging.StreamHandler(written)
    made = pytest.importorskip("pyspark.logger", reason="PySpark's log came with Spark 4")
    logger = made.PySparkLogger.getLogger("SQLQueryContextLogger")  # by logging it would be of another class for the whole process
    logger.addHandler(handler)
    try:
        for alias in ("s", "source", "src"):
            run(
                f"MERGE INTO emp USING src AS {alias} ON emp.id = {alias}.id WHEN MATCHED THEN UPDATE SET salary = {alias}.salary + 1 "
                "WHEN NOT MATCHED THEN INSERT *"
            )
    finally:
        logger.removeHandler(handler)
    assert written.getvalue() == ""
    assert rows(run) == [(1, "Jerry", 2), (2, "Tom", 8000), (3, "Kate", 6000), (9, "N", 3)]


def test_inserts_by_position_by_name_and_of_some_columns(run: Sql, emp: str) -> None:
    run("INSERT INTO TABLE emp SELECT id + 10, name, salary FROM emp WHERE id = 1")
    run("INSERT INTO emp (salary, id) VALUES (7, 20), (8, 21)")
    run("INSERT INTO emp BY NAME SELECT 'b' name, 30 id, 9 salary")
    run("WITH x AS (SELECT 40 AS a) INSERT INTO emp SELECT a, 'cte', 1 FROM x")
    run("INSERT INTO emp WITH x AS (SELECT 41 AS a) SELECT a, concat('c', 'd'), NULL FROM x")
    run("INSERT INTO emp VALUES (50, DEFAULT, 1)")
    assert rows(run)[1:] == [
        (11, "Jerry", 5000), (2, "Tom", 8000), (20, None, 7), (21, None, 8), (3, "Kate", 6000),
        (30, "b", 9), (40, "cte", 1), (41, "cd", None), (50, None, 1),
    ]  # fmt: skip
    run("INSERT INTO emp REPLACE WHERE id > 3 SELECT 60, 'only', 0")
    assert rows(run) == [*ROWS, (60, "only", 0)]
    run("INSERT OVERWRITE TABLE emp SELECT id, name, 1 FROM emp WHERE id = 2")
    assert rows(run) == [(2, "Tom", 1)]
    run("INSERT OVERWRITE TABLE emp SELECT * FROM emp WHERE false")
    assert rows(run) == []


def test_static_and_dynamic_partitions(run: Sql) -> None:
    run(PARTITIONED)
    run("INSERT INTO t PARTITION (d='2024-01-01', r='x') VALUES (1, 'a'), (2, 'b')")
    run("INSERT INTO t PARTITION (d='2024-01-01', r) SELECT 3, 'c', 'y'")
    run("INSERT INTO t PARTITION (d, r) SELECT 4, 'd', date '2024-01-02', 'x'")
    run("INSERT INTO t PARTITION (d='2024-01-02', r=NULL) (b, a) VALUES ('e', 5)")
    assert run("SHOW PARTITIONS t") == [
        ("d=2024-01-01/r=x",), ("d=2024-01-01/r=y",), ("d=2024-01-02/r=__HIVE_DEFAULT_PARTITION__",), ("d=2024-01-02/r=x",),
    ]  # fmt: skip
    run("INSERT OVERWRITE TABLE t PARTITION (d='2024-01-01', r='x') IF NOT EXISTS SELECT 9, 'no'")
    assert run("SELECT a, b FROM t WHERE d = '2024-01-01' AND r = 'x' ORDER BY a") == [(1, "a"), (2, "b")]
    run("INSERT OVERWRITE TABLE t PARTITION (d='2024-01-01', r='x') SELECT a, 'new' FROM t WHERE a = 1")
    run("INSERT OVERWRITE TABLE t PARTITION (d, r) SELECT 7, 'dyn', date '2024-01-01', 'y'")
    assert run("SELECT a, b, r FROM t ORDER BY a") == [(1, "new", "x"), (4, "d", "x"), (5, "e", None), (7, "dyn", "y")]
    run("INSERT OVERWRITE TABLE t PARTITION (d='2024-01-01', r='x') SELECT a, b FROM t WHERE false")
    assert run("SELECT a FROM t ORDER BY a") == [(4,), (5,), (7,)]
    run("UPDATE t SET r = 'moved' WHERE a = 7")
    assert run("SELECT r FROM t WHERE a = 7") == [("moved",)]


def test_several_inserts_of_one_from_are_one_transaction(run: Sql, emp: str, client: Client, database: str) -> None:
    run("CREATE TABLE other LIKE emp")
    run("FROM emp INSERT INTO other SELECT id, name, 0 WHERE id > 1 INSERT INTO emp SELECT id + 10, name, 1 WHERE id = 1")
    assert rows(run, "other") == [(2, "Tom", 0), (3, "Kate", 0)]
    assert (11, "Jerry", 1) in rows(run)
    before = rows(run), rows(run, "other")
    with pytest.raises(DoesNotFit):
        run("FROM emp INSERT INTO other SELECT id, name, 5 INSERT INTO emp SELECT 'no number', name, 1")
    assert (rows(run), rows(run, "other")) == before
    run("CREATE TABLE plain (id int) STORED AS ORC")
    with pytest.raises(WrongStatement, match="a statement for each"):
        run("FROM emp INSERT INTO other SELECT id, name, 5 INSERT INTO plain SELECT id")
    run("INSERT INTO plain SELECT id FROM emp WHERE id < 3")
    assert rows(run, "plain") == [(1,), (2,)]


FAILING = [
    ("UPDATE emp SET nope = 1", WrongColumns),
    ("UPDATE emp SET salary = 'a text'", DoesNotFit),
    ("UPDATE emp SET salary = 1 WHERE nope = 2", AnalysisException),
    ("UPDATE emp SET salary = raise_error('no') WHERE id = 2", Exception),
    ("DELETE FROM emp WHERE id IN (SELECT nope FROM emp)", AnalysisException),
    ("INSERT INTO emp VALUES (1)", WrongColumns),
    ("INSERT INTO emp (id, nope) VALUES (1, 2)", WrongColumns),
    ("INSERT INTO emp PARTITION (nope='x') VALUES (1, 'a', 2)", WrongColumns),
    ("INSERT INTO emp SELECT id, name, raise_error('no') FROM emp", Exception),
    ("INSERT INTO emp SELECT * FROM nowhere", AnalysisException),
    ("INSERT OVERWRITE TABLE emp SELECT 1, 'a', 'text'", DoesNotFit),
    ("MERGE INTO emp USING emp s ON true WHEN MATCHED THEN DELETE", Exception),
    ("MERGE INTO emp t USING emp s ON t.id = s.id WHEN NOT MATCHED THEN INSERT VALUES (1)", Exception),
]


def test_a_failed_statement_leaves_nothing_behind(run: Sql, emp: str, spark: SparkSession, client: Client, database: str) -> None:
    views = spark.sql("SHOW VIEWS").collect()
    for statement, error in FAILING:
        with pytest.raises(error):
            run(statement)
        assert rows(run) == ROWS, statement
        assert {lock.type for lock in client.show_locks(ShowLocksRequest(dbname=database)).locks} <= {LockType.SHARED_READ}, statement
        assert spark.sql("SHOW VIEWS").collect() == views, statement
    assert run("UPDATE emp SET salary = salary") == [(3,)]


def test_constraints_and_insert_only_tables(run: Sql) -> None:
    run(
        "CREATE TABLE c (id int NOT NULL, name varchar(3) DEFAULT 'ab', n int CHECK (n > 0), PRIMARY KEY (id) DISABLE NOVALIDATE) "
        "STORED AS ORC TBLPROPERTIES ('transactional'='true')"
    )
    run("INSERT INTO c (id, n) VALUES (1, 1)")
    run("INSERT INTO c VALUES (2, DEFAULT, 2), (3, 'x', 3)")
    assert rows(run, "c") == [(1, "ab", 1), (2, "ab", 2), (3, "x", 3)]
    for statement in ("INSERT INTO c (n) VALUES (1)", "UPDATE c SET n = 0 WHERE id = 1", "INSERT INTO c VALUES (4, 'x', -1)"):
        with pytest.raises(ConstraintViolated):
            run(statement)
    with pytest.raises(DoesNotFit):
        run("UPDATE c SET name = 'long' WHERE id = 3")
    run("UPDATE c SET name = DEFAULT WHERE id = 3")
    assert rows(run, "c") == [(1, "ab", 1), (2, "ab", 2), (3, "ab", 3)]
    run("CREATE TABLE i (a int) STORED AS PARQUET TBLPROPERTIES ('transactional'='true', 'transactional_properties'='insert_only')")
    run("INSERT INTO i VALUES (1), (2)")
    assert rows(run, "i") == [(1,), (2,)]
    with pytest.raises(CanNotChange, match="insert-only"):
        run("DELETE FROM i")


def test_parameters(run: Sql, emp: str) -> None:
    assert run("SELECT name FROM emp WHERE id = :id", {"id": 2}) == [("Tom",)]
    assert run("DELETE FROM emp WHERE id = :id AND name = :n", {"id": 1, "n": "Jer'ry"}) == [(0,)]
    assert run("DELETE FROM emp WHERE id = ? AND name = ?", [1, "Jerry"]) == [(1,)]
    run("INSERT INTO emp VALUES (:id, :name, :salary)", {"id": 7, "name": 'it\'s \\ "q"', "salary": None})
    assert rows(run)[-1] == (7, 'it\'s \\ "q"', None)
    run("UPDATE emp SET salary = :s WHERE id IN (SELECT id FROM emp WHERE name = :n)", {"s": 1, "n": "Tom"})
    assert (2, "Tom", 1) in rows(run)
    with pytest.raises(WrongStatement, match=":id has no value"):
        run("DELETE FROM emp WHERE id = :id", {"other": 1})
