"""Statements typed into Hive and into Spark give the same rows, definitions and refusals, and each sees the other's changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from pyspark.sql import SparkSession

from metastore.spark import sql
from tests.hive4.conftest import Story
from tests.hive4.spark.test_spark import as_hive, text
from tests.support.engines.hive import HiveError
from tests.support.engines.spark_session import session

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]
ACID = "STORED AS ORC TBLPROPERTIES ('transactional'='true', 'no_auto_compaction'='true')"
Row = tuple[str, ...]
Run = Callable[[str], list[Row]]


@pytest.fixture(scope="module")
def spark(place: object, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    settings = {"spark.hadoop.hive.metastore.uris": place.uri, "spark.sql.catalogImplementation": "hive"}  # type: ignore[attr-defined]
    with session(tmp_path_factory.mktemp("spark-warehouse"), settings) as opened:
        yield opened


@pytest.fixture
def by_spark(spark: SparkSession, story: Story) -> Iterator[Run]:
    def run(statement: str) -> list[Row]:
        with as_hive(spark):
            return [tuple(map(text, row)) for row in sql(spark, statement).collect()]

    run(f"USE {story.name}")
    yield run
    run("USE default")


CREATE = f"CREATE TABLE t (id int, name varchar(5), n decimal(7,2)) COMMENT 'rows' {ACID}"
PARTITIONED = (
    f"CREATE TABLE p (a int COMMENT 'it', b string) PARTITIONED BY (d date COMMENT 'day', r string) CLUSTERED BY (a) INTO 2 BUCKETS {ACID}"
)
CHECKED = f"CREATE TABLE c (id int NOT NULL, v string DEFAULT 'x', n int CHECK (n > 0)) {ACID}"
STORIES: dict[str, list[str]] = {
    "changes": [
        CREATE,
        "INSERT INTO t VALUES (1, 'a', 1.5), (2, 'b', NULL), (3, 'c', 3)",
        "UPDATE t SET n = n + 1, name = upper(name) WHERE id <> 2",
        "DELETE FROM t WHERE name = 'b'",
        "INSERT INTO t (id, name) VALUES (4, 'd')",
    ],
    "merge": [
        CREATE,
        "INSERT INTO t VALUES (1, 'a', 1), (2, 'b', 2), (3, 'c', 3)",
        (
            "MERGE INTO t USING (SELECT 1 id, 'gone' k UNION ALL SELECT 2, 'new' UNION ALL SELECT 9, 'nine') s ON t.id = s.id "
            "WHEN MATCHED AND s.k = 'gone' THEN DELETE WHEN MATCHED THEN UPDATE SET name = s.k "
            "WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.k, 0)"
        ),
    ],
    "subqueries": [
        CREATE,
        "INSERT INTO t VALUES (1, 'a', 1), (2, 'b', 2), (3, 'c', 3)",
        "DELETE FROM t WHERE id IN (SELECT id + 1 FROM t WHERE name = 'a')",
        "UPDATE t SET n = 7 WHERE EXISTS (SELECT 1 FROM t x WHERE x.id = t.id AND x.name = 'c')",
    ],
    "partitions": [
        PARTITIONED,
        "INSERT INTO p PARTITION (d='2024-01-01', r='x/y') VALUES (1, 'a'), (2, 'b')",
        "INSERT INTO p PARTITION (d, r) SELECT a + 10, b, d, 'z' FROM p",
        "INSERT OVERWRITE TABLE p PARTITION (d='2024-01-01', r='z') SELECT 5, 'only'",
        "INSERT OVERWRITE TABLE p PARTITION (d='2024-01-01', r='empty') SELECT a, b FROM p WHERE false",
        "ALTER TABLE p ADD PARTITION (d='2024-02-01', r='added')",
        "ALTER TABLE p DROP PARTITION (d > '2024-01-15')",
        "DELETE FROM p WHERE r = 'x/y' AND a = 1",
    ],
    "overwrites": [
        CREATE,
        "INSERT INTO t VALUES (1, 'a', 1), (2, 'b', 2)",
        "INSERT OVERWRITE TABLE t SELECT id, 'o', n FROM t WHERE id = 2",
        "TRUNCATE TABLE t",
        "INSERT INTO t VALUES (3, 'c', 3)",
    ],
    "several inserts": [
        CREATE,
        f"CREATE TABLE u (id int, name string) {ACID}",
        "INSERT INTO t VALUES (1, 'a', 1), (2, 'b', 2)",
        "FROM t INSERT INTO u SELECT id, name WHERE id > 1 INSERT INTO t SELECT id + 10, name, n WHERE id = 1",
    ],
    "definitions": [
        CREATE,
        "INSERT INTO t VALUES (1, 'a', 1)",
        "ALTER TABLE t ADD COLUMNS (extra int COMMENT 'm')",
        "ALTER TABLE t CHANGE COLUMN name full_name varchar(9)",
        "INSERT INTO t VALUES (2, 'longer', 2, 3)",
        "ALTER TABLE t SET TBLPROPERTIES ('k'='v')",
    ],
    "constraints": [
        CHECKED,
        "INSERT INTO c (id, n) VALUES (1, 1)",
        "INSERT INTO c VALUES (2, DEFAULT, 2)",
        "UPDATE c SET v = DEFAULT, n = 9",
    ],
    "as a query": [
        CREATE,
        "INSERT INTO t VALUES (1, 'a', 1)",
        f"CREATE TABLE made {ACID} AS SELECT id, n FROM t",
        f"CREATE TABLE l LIKE t {ACID}",
    ],
    "views": [CREATE, "INSERT INTO t VALUES (1, 'a', 1), (2, 'b', 2)", "CREATE VIEW v AS SELECT id, name AS who FROM t WHERE id > 1"],
}
QUERIES = {
    "partitions": ["SELECT * FROM p", "SHOW PARTITIONS p", "DESCRIBE p"],
    "several inserts": ["SELECT * FROM t", "SELECT * FROM u"],
    "constraints": ["SELECT * FROM c"],
    "as a query": ["SELECT * FROM made", "SELECT * FROM l", "DESCRIBE made", "DESCRIBE l"],
    "views": ["SELECT * FROM v", "DESCRIBE v"],
}


def stripped(rows: list[Row]) -> list[Row]:
    return [tuple(cell.strip() for cell in row) for row in rows]


@pytest.mark.parametrize("runner", ["hive", "spark"])
@pytest.mark.parametrize("name", STORIES)
def test_a_story_is_the_same_in_both_engines(story: Story, by_spark: Run, spark: SparkSession, name: str, runner: str) -> None:
    """One engine runs the statements, and both run the queries."""
    run = story.sql if runner == "hive" else by_spark
    for statement in STORIES[name]:
        run(statement)
    for query in QUERIES.get(name, ["SELECT * FROM t", "DESCRIBE t", "SELECT count(*) FROM t"]):
        hive, ours = stripped(story.sql(query)), stripped(by_spark(query)) if not query.endswith(" v") or "SELECT" in query else None
        if query.startswith("SELECT"):
            hive, ours = sorted(hive), sorted(ours or [])
        assert ours is None or ours == hive, query


def test_definitions_are_shown_alike(story: Story, by_spark: Run) -> None:
    for statement in (CREATE, PARTITIONED, "INSERT INTO p PARTITION (d='2024-01-01', r='x') VALUES (1, 'a')"):
        story.sql(statement)
    shown = [
        "DESCRIBE FORMATTED t",
        "DESCRIBE FORMATTED p",
        "DESCRIBE FORMATTED p PARTITION (d='2024-01-01', r='x')",
        "DESCRIBE p",
        "SHOW TBLPROPERTIES t",
    ]
    for statement in shown:
        assert stripped(by_spark(statement)) == stripped(story.sql(statement)), statement
    for table in ("t", "p"):
        hive = [row[0].rstrip() for row in story.sql(f"SHOW CREATE TABLE {table}")]
        assert [line.rstrip() for line in by_spark(f"SHOW CREATE TABLE {table}")[0][0].split("\n")] == hive


def test_tables_of_spark_are_described_by_hive_as_its_own(story: Story, by_spark: Run) -> None:
    described = []
    for run in (story.sql, by_spark):
        run(CREATE)
        rows = stripped(story.sql("DESCRIBE FORMATTED t"))
        changing = ("CreateTime:", "Owner:", "")
        described.append(
            [row for row in rows if row[0] not in changing] + [row for row in rows if row[1:2] in (("transactional",), ("comment",))]
        )
        run("DROP TABLE t")
    assert described[0] == described[1]


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE t SET nope = 1",
        "INSERT INTO t VALUES (1)",
        "DELETE FROM nowhere",
        "ALTER TABLE t REPLACE COLUMNS (a int)",
        "UPDATE t SET id = 1 WHERE nope = 2",
        f"CREATE TABLE t (a int) {ACID}",
        "CREATE TABLE x (a int) STORED AS PARQUET TBLPROPERTIES ('transactional'='true')",
        "ALTER TABLE t SET TBLPROPERTIES ('transactional'='false')",
        "MERGE INTO t USING (SELECT 1 id UNION ALL SELECT 1) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET name = 'x'",
    ],
)
def test_both_refuse(story: Story, by_spark: Run, statement: str) -> None:
    story.sql(CREATE)
    story.sql("INSERT INTO t VALUES (1, 'a', 1)")
    with pytest.raises(HiveError):
        story.sql(statement)
    with pytest.raises(Exception):  # noqa: B017, PT011  # of any kind
        by_spark(statement)
    assert by_spark("SELECT * FROM t") == [("1", "a", "1.00")]


def test_statistics_that_spark_has_counted_answer_hives_queries(story: Story, by_spark: Run) -> None:
    by_spark(CREATE)
    by_spark("INSERT INTO t VALUES (1, 'a', 1), (2, 'b', 2), (3, NULL, 3)")
    by_spark("DELETE FROM t WHERE id = 2")
    by_spark("ANALYZE TABLE t COMPUTE STATISTICS FOR COLUMNS")
    assert story.sql("SELECT count(*), min(id), max(id) FROM t") == [("2", "1", "3")]
    assert ("num_nulls", "1") in stripped(story.sql("DESCRIBE FORMATTED t name"))
    by_spark("INSERT INTO t VALUES (9, 'z', 9)")
    assert story.sql("SELECT count(*), min(id), max(id) FROM t") == [("3", "1", "9")]
