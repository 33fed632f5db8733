"""Hive writes, reads and compacts transactional tables: every story compares all rows."""

from __future__ import annotations

import pytest

from tests.hive4.conftest import Story
from tests.support.engines.hive import HiveError

pytestmark = pytest.mark.slow
ACID = "STORED AS ORC TBLPROPERTIES ('transactional' = 'true')"
INSERT_ONLY = "TBLPROPERTIES ('transactional' = 'true', 'transactional_properties' = 'insert_only')"


def test_employees(story: Story) -> None:
    story.sql(f"CREATE TABLE emp (id int, name string, salary int) {ACID}")
    story.sql("INSERT INTO emp VALUES (1, 'Jerry', 5000), (2, 'Tom', 8000), (3, 'Kate', 6000)")
    assert story.sql("SELECT * FROM emp") == [("1", "Jerry", "5000"), ("2", "Tom", "8000"), ("3", "Kate", "6000")]
    story.sql("INSERT INTO emp VALUES (4, 'Allen', 8000)")
    story.sql("DELETE FROM emp WHERE id = 2")
    assert story.sql("SELECT * FROM emp ORDER BY id") == [("1", "Jerry", "5000"), ("3", "Kate", "6000"), ("4", "Allen", "8000")]
    assert story.directories("emp") == ["delete_delta_0000003_0000003_0000", "delta_0000001_0000001_0000", "delta_0000002_0000002_0000"]
    assert story.sql("SHOW COMPACTIONS")[0][:6] == ("CompactionId", "Database", "Table", "Partition", "Type", "State")


def test_a_student_changes_and_leaves(story: Story) -> None:
    story.sql(f"CREATE TABLE trans_student (id int, name string, age int) {ACID}")
    described = {row[1].strip(): row[2].strip() for row in story.sql("DESCRIBE FORMATTED trans_student") if len(row) == 3 and not row[0]}
    assert (described["transactional"], described["transactional_properties"]) == ("true", "default")
    story.sql("INSERT INTO trans_student (id, name, age) VALUES (1, 'allen', 18)")
    assert story.sql("SELECT * FROM trans_student") == [("1", "allen", "18")]
    story.sql("UPDATE trans_student SET age = 20 WHERE id = 1")
    assert story.sql("SELECT * FROM trans_student") == [("1", "allen", "20")]
    story.sql("DELETE FROM trans_student WHERE id = 1")
    assert story.sql("SELECT * FROM trans_student") == []
    assert story.sql("SELECT count(*) FROM trans_student") == [("0",)]


def test_a_write_that_fails_leaves_nothing_to_read(story: Story) -> None:
    story.sql(f"CREATE TABLE tm (id int, v string) {INSERT_ONLY}")
    story.sql("INSERT INTO tm VALUES (1, 'a')")
    with pytest.raises(HiveError):
        story.sql("INSERT INTO tm SELECT assert_true(id < 0), v FROM tm")
    story.sql("INSERT INTO tm VALUES (2, 'b')")
    assert story.sql("SELECT * FROM tm ORDER BY id") == [("1", "a"), ("2", "b")]
    assert {"delta_0000001_0000001_0000", "delta_0000003_0000003_0000"} <= set(story.directories("tm"))


def test_one_statement_writes_two_tables(story: Story) -> None:
    story.sql(f"CREATE TABLE source (id int, name string) {ACID}")
    story.sql(f"CREATE TABLE ids (id int) {ACID}")
    story.sql(f"CREATE TABLE names (name string) {INSERT_ONLY}")
    story.sql("INSERT INTO source VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    story.sql("FROM source INSERT INTO TABLE ids SELECT id INSERT INTO TABLE names SELECT name WHERE id > 1")
    assert story.sql("SELECT * FROM ids ORDER BY id") == [("1",), ("2",), ("3",)]
    assert story.sql("SELECT * FROM names ORDER BY name") == [("b",), ("c",)]
    story.sql("INSERT OVERWRITE TABLE ids SELECT id + 10 FROM source WHERE id = 3")
    assert story.sql("SELECT * FROM ids") == [("13",)]
    story.sql("TRUNCATE TABLE ids")
    assert story.sql("SELECT * FROM ids") == []


def test_partitions_come_with_their_rows_and_merge_goes_into_all(story: Story) -> None:
    story.sql(f"CREATE TABLE visits (id int, name string) PARTITIONED BY (day string) {ACID}")
    story.sql("INSERT INTO visits PARTITION (day) VALUES (1, 'a', '2024-01-01'), (2, 'b', '2024-01-02'), (3, 'c', '2024-01-02')")
    assert story.sql("SHOW PARTITIONS visits") == [("day=2024-01-01",), ("day=2024-01-02",)]
    story.sql(f"CREATE TABLE news (id int, name string, day string) {ACID}")
    story.sql("INSERT INTO news VALUES (2, 'B', '2024-01-02'), (3, NULL, '2024-01-02'), (9, 'new', '2024-01-03')")
    story.sql(
        "MERGE INTO visits t USING news s ON t.id = s.id WHEN MATCHED AND s.name IS NULL THEN DELETE "
        "WHEN MATCHED THEN UPDATE SET name = s.name WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.name, s.day)"
    )
    assert story.sql("SELECT * FROM visits ORDER BY id") == [
        ("1", "a", "2024-01-01"), ("2", "B", "2024-01-02"), ("9", "new", "2024-01-03"),
    ]  # fmt: skip
    assert story.sql("SHOW PARTITIONS visits") == [("day=2024-01-01",), ("day=2024-01-02",), ("day=2024-01-03",)]


def test_constraints_are_kept_and_enforced(story: Story) -> None:
    story.sql(f"CREATE TABLE parent (id int, PRIMARY KEY (id) DISABLE NOVALIDATE) {ACID}")
    story.sql(
        "CREATE TABLE child (id int NOT NULL ENABLE, p int, v int DEFAULT 5, CONSTRAINT to_parent FOREIGN KEY (p) REFERENCES parent (id) "
        f"DISABLE NOVALIDATE, CONSTRAINT positive CHECK (v > 0) ENABLE) {ACID}"
    )
    story.sql("INSERT INTO child (id, p) VALUES (1, 1)")
    for wrong in ("(NULL, 1, 1)", "(2, 1, -1)"):
        with pytest.raises(HiveError):
            story.sql(f"INSERT INTO child VALUES {wrong}")
    assert story.sql("SELECT * FROM child") == [("1", "1", "5")]
    text = "\n".join("\t".join(row) for row in story.sql("DESCRIBE FORMATTED child"))
    assert "to_parent" in text
    assert "positive" in text
    story.sql("ALTER TABLE child DROP CONSTRAINT positive")
    story.sql("INSERT INTO child VALUES (2, 1, -1)")
    assert story.sql("SELECT id, v FROM child ORDER BY id") == [("1", "5"), ("2", "-1")]


def test_a_materialized_view_answers_queries_and_is_rebuilt(story: Story) -> None:
    story.sql(f"CREATE TABLE sales (day string, amount int) {ACID}")
    story.sql("INSERT INTO sales VALUES ('a', 1), ('a', 2), ('b', 3)")
    story.sql("CREATE MATERIALIZED VIEW totals AS SELECT day, sum(amount) AS total FROM sales GROUP BY day")
    assert story.sql("SELECT * FROM totals ORDER BY day") == [("a", "3"), ("b", "3")]
    query = "SELECT day, sum(amount) FROM sales GROUP BY day"

    def scanned() -> str:
        return "\n".join("\t".join(row) for row in story.sql(f"EXPLAIN CBO {query}"))

    assert f"[{story.name}, totals]" in scanned(), "the view stands for the query"
    story.sql("INSERT INTO sales VALUES ('c', 4)")
    assert f"[{story.name}, sales]" in scanned(), "the view is out of date"
    assert sorted(story.sql(query)) == [("a", "3"), ("b", "3"), ("c", "4")]
    story.sql("ALTER MATERIALIZED VIEW totals REBUILD")
    assert story.sql("SELECT * FROM totals ORDER BY day") == [("a", "3"), ("b", "3"), ("c", "4")]
    assert f"[{story.name}, totals]" in scanned()
    assert [row[0].strip() for row in story.sql("SHOW MATERIALIZED VIEWS")][1:] == ["totals"]
    with pytest.raises(HiveError, match="materialized view"):
        story.sql("DROP TABLE sales")
    assert sorted(story.sql(query)) == [("a", "3"), ("b", "3"), ("c", "4")]
    story.sql("DROP MATERIALIZED VIEW totals")
    assert f"[{story.name}, sales]" in scanned()


@pytest.mark.parametrize("kind", [ACID, INSERT_ONLY])
@pytest.mark.parametrize("partitioned", [False, True])
def test_a_truncated_table_is_hidden_behind_a_base(story: Story, kind: str, partitioned: bool) -> None:
    story.sql(f"CREATE TABLE t (id int) {'PARTITIONED BY (p string)' if partitioned else ''} {kind}")
    where, within = ("PARTITION (p = '1')", "p=1") if partitioned else ("", "")
    story.sql(f"INSERT INTO t {where} VALUES (1), (2)")
    story.sql(f"TRUNCATE TABLE t {where}")
    assert story.directories("t", within) == ["base_0000002", "delta_0000001_0000001_0000"]
    assert story.sql("SELECT id FROM t") == []
    assert story.sql("SELECT count(*) FROM t") == [("0",)]
    story.sql(f"INSERT INTO t {where} VALUES (3)")
    assert story.sql("SELECT id FROM t") == [("3",)]
    story.engine.compact(story.name, "t", "MAJOR", within)
    story.until(lambda: story.compactions("t") == [("MAJOR", "succeeded")])
    assert [each.partition("_v")[0] for each in story.directories("t", within)] == ["base_0000003"]
    assert story.sql("SELECT id FROM t") == [("3",)]


def test_a_partition_that_hive_drops_softly_comes_back_empty(story: Story) -> None:
    story.sql("SET hive.acid.lockless.reads.enabled=true")
    story.sql(f"CREATE TABLE t (id int) PARTITIONED BY (p string) {ACID}")
    story.sql("INSERT INTO t PARTITION (p = '1') VALUES (1), (2)")
    story.sql("ALTER TABLE t DROP PARTITION (p = '1')")
    story.sql("ALTER TABLE t ADD PARTITION (p = '1')")
    assert story.sql("SELECT id FROM t") == []
    story.sql("INSERT INTO t PARTITION (p = '1') VALUES (3)")
    assert story.sql("SELECT id FROM t") == [("3",)]
    story.sql("DROP TABLE t")
    story.sql(f"CREATE TABLE t (id int) PARTITIONED BY (p string) {ACID}")
    story.sql("INSERT INTO t PARTITION (p = '1') VALUES (4)")
    assert story.sql("SELECT id FROM t") == [("4",)]
