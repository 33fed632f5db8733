"""Transactions over several statements, and sessions beside each other."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module

import pytest
from pyspark.sql import SparkSession

from metastore import idl
from metastore.acid.transactions import TransactionLost
from metastore.client import Client
from metastore.spark import sql
from metastore.spark.grammar.tokens import WrongStatement
from metastore.spark.reading import reading
from metastore.spark.session.assignment import DoesNotFit
from tests.spark.dialect.conftest import Sql
from tests.support.servers.waiting import until


def test_a_transaction_is_seen_as_a_whole_or_not_at_all(run: Sql, emp: str, spark: SparkSession, database: str) -> None:
    other = spark.newSession()
    other.sql(f"USE {database}")
    run("START TRANSACTION")
    run("INSERT INTO emp VALUES (10, 'in', 1)")
    run("UPDATE emp SET salary = salary + 1 WHERE id = 10")
    assert run("SELECT salary FROM emp WHERE id = 10") == [(2,)]
    assert sql(other, "SELECT count(*) FROM emp").collect()[0][0] == 3
    with pytest.raises(WrongStatement, match="within a transaction"):
        run("DROP TABLE emp")
    with pytest.raises(WrongStatement, match="within a transaction"):
        run("START TRANSACTION")
    with pytest.raises(Exception, match="nope"):
        run("UPDATE emp SET salary = nope")
    run("COMMIT")
    assert sql(other, "SELECT salary FROM emp WHERE id = 10").collect()[0][0] == 2
    run("START TRANSACTION")
    run("DELETE FROM emp")
    assert run("SELECT * FROM emp") == []
    run("ROLLBACK")
    assert len(run("SELECT * FROM emp")) == 4
    run("CREATE TABLE other LIKE emp")
    run("START TRANSACTION")
    with pytest.raises(DoesNotFit):
        run("FROM emp INSERT INTO other SELECT * INSERT INTO emp SELECT 'no number', name, 1")
    with pytest.raises(TransactionLost):
        run("COMMIT")
    assert run("SELECT * FROM other") == []
    for statement in ("COMMIT", "ROLLBACK"):
        with pytest.raises(WrongStatement, match="no transaction is open"):
            run(statement)


def test_transactions_and_locks_are_shown_and_aborted(run: Sql, emp: str, database: str, client: Client) -> None:
    run("START TRANSACTION")
    run("UPDATE emp SET salary = 1 WHERE id = 1")
    (lock, *_) = [row for row in run("SHOW LOCKS emp") if row[6] == "EXCL_WRITE"]
    assert lock[1:5] == (database, "emp", "NULL", "ACQUIRED")
    assert (lock[7], "OPEN") in [row[:2] for row in run("SHOW TRANSACTIONS")]
    assert run(f"SHOW LOCKS DATABASE {database} EXTENDED")
    run(f"ABORT TRANSACTIONS {lock[7]}")
    with pytest.raises((idl.TxnAbortedException, idl.NoSuchTxnException, TransactionLost)):
        run("COMMIT")
    assert (1, "Jerry", 5000) in run("SELECT * FROM emp")


def test_all_tables_of_a_statement_are_read_at_one_moment(run: Sql, emp: str, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row that another session moves from one table into the other during the planning of a query is read once."""
    run("CREATE TABLE other LIKE emp")
    moved: list[int] = []

    def slow(*arguments: object, **options: object) -> object:
        if not moved:
            moved.append(1)
            run("START TRANSACTION")
            run("INSERT INTO other SELECT * FROM emp WHERE id = 1")
            run("DELETE FROM emp WHERE id = 1")
            run("COMMIT")
        return reading.rows(*arguments, **options)

    monkeypatch.setattr(import_module("metastore.spark.transaction.spark_transaction"), "rows", slow)
    found = run("SELECT id FROM other UNION ALL SELECT id FROM emp")
    assert sorted(found) == [(1,), (2,), (3,)]
    assert sorted(run("SELECT id FROM emp")) == [(2,), (3,)]


@pytest.mark.parametrize(
    "behind",
    [
        "UPDATE emp SET salary = salary + 1 WHERE id = 1",
        pytest.param("INSERT OVERWRITE TABLE emp SELECT * FROM emp", marks=pytest.mark.slow),
    ],
)
def test_a_transaction_goes_on_while_another_session_waits_for_it(
    run: Sql, emp: str, spark: SparkSession, database: str, client: Client, behind: str
) -> None:
    other = spark.newSession()
    other.sql(f"USE {database}")
    run("START TRANSACTION")
    run("UPDATE emp SET salary = 1 WHERE id = 1")

    def waits() -> bool:
        found = client.show_locks(idl.ShowLocksRequest(dbname=database, tablename="emp")).locks
        return any(each.state == idl.LockState.WAITING for each in found)

    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(lambda: sql(other, behind).collect())
        until(waits, missing="the other session waits")
        run("INSERT INTO emp VALUES (4, 'Ann', 1)")
        run("DELETE FROM emp WHERE id = 2")
        run("MERGE INTO emp USING (SELECT 3 AS id) s ON emp.id = s.id WHEN MATCHED THEN DELETE")
        assert not waiting.done()
        run("COMMIT")
        waiting.result(60)
    assert sorted(run("SELECT id, salary FROM emp")) == [(1, 2 if behind.startswith("UPDATE") else 1), (4, 1)]


def test_sessions_that_update_the_same_rows_wait_for_each_other(run: Sql, emp: str, spark: SparkSession, database: str) -> None:
    sessions = [spark.newSession() for _ in range(2)]
    for session in sessions:
        session.sql(f"USE {database}")
    begin = threading.Barrier(2)

    def add(session: SparkSession) -> None:
        begin.wait()
        for _ in range(2):
            sql(session, "UPDATE emp SET salary = salary + 1 WHERE id = 1").collect()

    with ThreadPoolExecutor(2) as threads:
        list(threads.map(add, sessions))
    assert run("SELECT salary FROM emp WHERE id = 1") == [(5004,)]
