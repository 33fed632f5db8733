"""All methods of a Python session for tables support transactional tables while that is enabled, and are Spark's own afterwards."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from py4j.clientserver import JavaClient
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # the name that everyone gives it

from metastore import idl
from metastore.client import Client, connect
from metastore.spark import disable, enable
from metastore.spark.definition.tables import WrongDefinition
from metastore.spark.dialect.running import ReadBlindly, check_not_blind
from metastore.spark.session import connections as connections_module
from metastore.spark.session.catalog import WrongColumns
from tests.spark.dialect.conftest import Sql
from tests.support.acid.acid_tables import stored_table

ROWS = [(1, "Jerry", 5000), (2, "Tom", 8000), (3, "Kate", 6000)]


@pytest.fixture
def enabled(spark: SparkSession, emp: str) -> Iterator[SparkSession]:
    enable(spark)
    yield spark
    disable()


def rows(frame: DataFrame) -> list[tuple[object, ...]]:
    return sorted((tuple(row) for row in frame.collect()), key=repr)


def test_sql_and_table_of_every_session(enabled: SparkSession, database: str) -> None:
    assert enabled.sql("UPDATE emp SET salary = salary + 1 WHERE id = 1").collect()[0][0] == 1
    assert enabled.sql("SELECT * FROM emp WHERE id = :id", args={"id": 1}).collect()[0].salary == 5001
    frame = enabled.range(1, 3)
    assert enabled.sql("SELECT e.name FROM emp e JOIN {ids} i ON e.id = i.id ORDER BY 1", ids=frame).collect() == [("Jerry",), ("Tom",)]
    other = SparkSession.builder.getOrCreate().newSession()
    assert rows(other.table(f"{database}.emp"))[1:] == ROWS[1:]
    assert rows(enabled.read.table("emp")) == rows(enabled.table(f"spark_catalog.{database}.emp"))
    enabled.sql("CREATE VIEW v AS SELECT id FROM emp")
    assert rows(enabled.table("v")) == [(1,), (2,), (3,)]
    enabled.sql("CREATE TABLE plain STORED AS ORC AS SELECT 1 AS a")
    assert rows(enabled.table("plain")) == [(1,)]


def test_inserts_by_frames(enabled: SparkSession) -> None:
    enabled.createDataFrame([(10, "x", 1)], "a int, b string, c int").write.insertInto("emp")
    assert (10, "x", 1) in rows(enabled.table("emp"))
    enabled.createDataFrame([(11, "y", 1)], "a int, b string, c int").write.mode("overwrite").insertInto("emp")
    assert rows(enabled.table("emp")) == [(11, "y", 1)]
    with pytest.raises(WrongColumns, match="by position"):
        enabled.range(1).write.insertInto("emp")
    enabled.createDataFrame([("z", 12)], "name string, id int").write.mode("append").saveAsTable("emp")
    enabled.createDataFrame([("w", 13)], "name string, id int").writeTo("emp").append()
    assert rows(enabled.table("emp")) == [(11, "y", 1), (12, "z", None), (13, "w", None)]
    enabled.createDataFrame([(14, "only")], "id int, name string").writeTo("emp").overwrite(F.col("id") > 11)
    assert rows(enabled.table("emp")) == [(11, "y", 1), (14, "only", None)]
    enabled.createDataFrame([(15, "all")], "id int, name string").writeTo("emp").overwritePartitions()
    assert rows(enabled.table("emp")) == [(15, "all", None)]


def test_tables_are_made_by_frames(enabled: SparkSession, client: Client, database: str) -> None:
    frame = enabled.createDataFrame([(1, "a"), (2, "b")], "id int, p string")
    frame.write.option("transactional", "true").partitionBy("p").saveAsTable("saved")
    made = stored_table(client, "saved", database)
    assert (made.parameters["transactional_properties"], [key.name for key in made.partitionKeys]) == ("default", ["p"])
    assert rows(enabled.table("saved")) == [(1, "a"), (2, "b")]
    with pytest.raises(idl.AlreadyExistsException):
        frame.write.saveAsTable("saved")
    frame.write.mode("ignore").saveAsTable("saved")
    frame.where("id = 1").write.mode("overwrite").saveAsTable("saved")
    assert rows(enabled.table("saved")) == [(1, "a")]
    frame.writeTo("v2").using("orc").tableProperty("transactional", "true").tableProperty("k", "v").partitionedBy("p").create()
    assert stored_table(client, "v2", database).parameters["k"] == "v"
    frame.where("id = 2").writeTo("v2").createOrReplace()
    assert rows(enabled.table("v2")) == [(2, "b")]
    frame.where("id = 1").writeTo("v2").replace()
    assert rows(enabled.table("v2")) == [(1, "a")]
    with pytest.raises(WrongDefinition, match="drop it first"):
        enabled.range(1).writeTo("v2").createOrReplace()
    frame.write.saveAsTable("plain")
    assert "transactional" not in stored_table(client, "plain", database).parameters
    assert rows(enabled.table("plain")) == [(1, "a"), (2, "b")]
    frame.write.insertInto("plain")
    assert len(rows(enabled.table("plain"))) == 4


def test_disable_gives_sparks_methods_back(spark: SparkSession, emp: str) -> None:
    before = SparkSession.sql, SparkSession.table
    enable(spark)
    enable(spark)
    assert SparkSession.sql is not before[0]
    disable()
    assert (SparkSession.sql, SparkSession.table) == before
    with pytest.raises(AnalysisException, match="full ACID table"):
        spark.sql("SELECT * FROM emp")


PLAIN = [
    "SELECT 1",
    "SELECT * FROM given",
    "SELECT g.a FROM given g JOIN heard t ON g.a = t.a WHERE g.a > (SELECT min(a) - 1 FROM given)",
    "WITH w AS (SELECT * FROM given) SELECT count(*) FROM w",
    "INSERT INTO given SELECT * FROM heard",
    "SELECT * FROM shown",
]


def test_a_plain_statement_costs_few_calls(enabled: SparkSession, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """`enable` spends its time on calls into the JVM, and uses one connection to the metastore.

    Threads of earlier tests, which keep readers alive, are not counted.
    """
    own = threading.get_ident()
    for name in ("given", "heard"):
        enabled.sql(f"CREATE TABLE {name} STORED AS PARQUET AS SELECT 1 AS a")
    enabled.table("given").createOrReplaceTempView("shown")
    request.addfinalizer(lambda: enabled.catalog.dropTempView("shown"))
    commands: list[str] = []
    plain_send = JavaClient.send_command

    def send(self: JavaClient, command: str, *args: object, **kwargs: object) -> object:
        if threading.get_ident() == own:
            commands.append(command)
        return plain_send(self, command, *args, **kwargs)

    connections: list[str] = []

    def counted(uri: str) -> Client:
        if threading.get_ident() == own:
            connections.append(uri)
        return connect(uri)

    monkeypatch.setattr(JavaClient, "send_command", send)
    monkeypatch.setattr(connections_module, "connect", counted)

    def calls(text: str, *, ours: bool) -> int:
        (enable if ours else disable)()
        commands.clear()
        enabled.sql(text)
        return len([each for each in commands if each.startswith("c")])

    for text in PLAIN:
        added = [calls(text, ours=True) - calls(text, ours=False) for _ in range(2)][-1]
        assert added < 25, text
    assert len(connections) <= 1


def test_a_table_that_becomes_transactional_is_read_as_one_at_once(enabled: SparkSession) -> None:
    """A statement does not use an earlier statement's finding that a table is plain."""
    enabled.sql("CREATE TABLE given STORED AS ORC AS SELECT 1 AS a")
    assert rows(enabled.sql("SELECT * FROM given")) == [(1,)]
    enabled.sql("ALTER TABLE given SET TBLPROPERTIES ('transactional' = 'true')")
    enabled.sql("UPDATE given SET a = 2")
    assert rows(enabled.sql("SELECT * FROM given")) == rows(enabled.table("given")) == [(2,)]
    enabled.sql("DROP TABLE given")
    enabled.sql("CREATE TABLE given STORED AS PARQUET AS SELECT 3 AS a")
    assert rows(enabled.sql("SELECT * FROM given")) == rows(enabled.table("given")) == [(3,)]


def test_tables_that_spark_would_read_itself_are_refused(spark: SparkSession, run: Sql, database: str, client: Client) -> None:
    """A metastore may give such tables to Spark's own client, as this server does with those that Hive 2.3 could have made."""
    run("CREATE TABLE given (a int) STORED AS ORC")
    table = stored_table(client, "given", database)
    spark.sql("INSERT INTO given VALUES (1)")
    frame = spark.table("given")
    check_not_blind(frame)
    table.parameters = {"transactional": "true", "transactional_properties": "default"}
    table.sd.location = None  # type: ignore[assignment]  # its own place
    table.tableName, table.id = "old", None
    client.create_table_req(idl.CreateTableRequest(table=table, processorCapabilities=["HIVEFULLACIDWRITE"], processorIdentifier="tests"))
    for text in ("SELECT * FROM old", "SELECT (SELECT max(a) FROM old) AS a", "SELECT 1 AS a FROM given WHERE EXISTS (SELECT 1 FROM old)"):
        with pytest.raises(ReadBlindly, match="old"):
            check_not_blind(spark.sql(text), {f"{database}.given"})
    try:
        found = run("SELECT * FROM IDENTIFIER('old')")
    except ReadBlindly:
        pass
    else:
        assert found == [], "later releases name it when they parse"
    assert run("SELECT * FROM old") == []
