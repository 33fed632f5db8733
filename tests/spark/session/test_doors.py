"""Private access to Spark's JVM serves SQL on each release of Spark that is supported."""

from __future__ import annotations

import pytest
from pyspark import __version__ as spark_version
from pyspark.sql import SparkSession

from metastore.spark.dialect import jvm
from metastore.spark.dialect.inserting import is_insert, replaces_where
from metastore.spark.dialect.jvm import Doors, items, kind, names_of, option, pair, pairs, span
from metastore.spark.dialect.relations import relations, target
from metastore.spark.grammar.tokens import WrongStatement


@pytest.fixture
def doors(spark: SparkSession) -> Doors:
    return Doors(spark)


def named(doors: Doors, text: str) -> list[tuple[str, bool]]:
    found = relations(doors, doors.parse(text))
    assert [text[each.start : each.end].replace("`", "") for each in found] == [".".join(each.names) for each in found]
    return [(".".join(each.names), each.has_alias) for each in found]


def test_relations_have_places_names_and_aliases(doors: Doors) -> None:
    text = (
        "SELECT /* é😀 */ * FROM a JOIN `d b`.b AS x ON a.i = x.i, c TABLESAMPLE (1 PERCENT) y WHERE i IN (SELECT i FROM e) "
        "AND EXISTS (SELECT 1 FROM f WHERE j > (SELECT max(k) FROM g))"
    )
    assert named(doors, text) == [("a", False), ("d b.b", True), ("c", True), ("e", False), ("f", False), ("g", False)]
    assert named(doors, "WITH w AS (SELECT * FROM a), v AS (SELECT * FROM w JOIN w2) SELECT * FROM w, (SELECT * FROM v) z") == [
        ("a", False),
        ("w2", False),
    ]
    assert named(doors, "SELECT * FROM a VERSION AS OF 3") == [("a", False)]
    assert relations(doors, doors.parse("SELECT * FROM a VERSION AS OF 3"))[0].is_travelled
    assert named(doors, "EXPLAIN SELECT * FROM a") == [("a", False)]
    assert named(doors, "CREATE TABLE n AS SELECT * FROM a") == [("a", False)]
    assert named(doors, "SELECT * FROM x, LATERAL (SELECT * FROM y WHERE y.a = x.a)") == [("x", False), ("y", False)]


def test_all_names_of_a_statement_by_one_call(doors: Doors) -> None:
    def names(text: str) -> list[str] | None:
        found = doors.named(doors.parse(text))
        return None if found is None else sorted(".".join(each) for each in found)

    assert names("SELECT 1") == names("VALUES (1), (2)") == []
    assert names("SELECT a FROM x.t JOIN u USING (a) WHERE a IN (SELECT a FROM v WHERE EXISTS (SELECT 1 FROM w)) ORDER BY 1 LIMIT 3") == [
        "u",
        "v",
        "w",
        "x.t",
    ]
    assert names("WITH c AS (SELECT * FROM t) SELECT (SELECT max(a) FROM u) FROM c, LATERAL (SELECT * FROM v)") == ["c", "t", "u", "v"]
    columns = ", ".join(f"c{number}" for number in range(60))
    assert names(f"SELECT {columns}, (SELECT max(a) FROM u) FROM t UNION SELECT * FROM v VERSION AS OF 1") == ["t", "u", "v"]
    assert names("SELECT count(*) FROM t GROUP BY a HAVING count(*) > (SELECT 1 FROM u)") == ["t", "u"]
    assert names("INSERT INTO t SELECT * FROM u") == ["t", "u"]
    assert names("FROM s INSERT INTO t SELECT a INSERT INTO u SELECT b") == ["s", "t", "u"]
    for text in (
        "EXPLAIN SELECT * FROM t", "CREATE TABLE n AS SELECT * FROM t", "SELECT * FROM parquet.`/a/b`", "SELECT * FROM `a, b`.`c[d]`",
        "SELECT 'UnresolvedRelation [' FROM t", "DESCRIBE t",
    ):  # fmt: skip
        assert names(text) is None, text


def test_parts_of_changes(doors: Doors) -> None:
    update = doors.parse("UPDATE d.t AS x SET x.a.b = DEFAULT, c = 1 WHERE i IN (SELECT i FROM s)")
    assert (kind(update), target(update)) == ("UpdateTable", (["d", "t"], "x"))
    assert [names_of(each.key().nameParts()) for each in items(update.assignments())] == [["x", "a", "b"], ["c"]]
    assert option(update.condition()) is not None
    assert kind(doors.parse("DELETE FROM t").condition()) == "Literal"
    merge = doors.parse(
        "MERGE INTO t USING s ON t.i = s.i WHEN MATCHED AND s.a THEN DELETE WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT * "
        "WHEN NOT MATCHED BY SOURCE THEN UPDATE SET a = 1"
    )
    assert [kind(each) for each in items(merge.matchedActions())] == ["DeleteAction", "UpdateStarAction"]
    assert [kind(each) for each in items(merge.notMatchedActions())] == ["InsertStarAction"]
    assert [kind(each) for each in items(merge.notMatchedBySourceActions())] == ["UpdateAction"]
    assert [(".".join(each.names)) for each in relations(doors, merge)] == ["s"]


def test_parts_of_inserts(doors: Doors) -> None:
    insert = doors.parse("INSERT OVERWRITE TABLE t PARTITION (d='x', n=NULL, r) (a, b) VALUES (1, DEFAULT)")
    assert (kind(insert), insert.overwrite(), insert.byName(), insert.ifPartitionNotExists()) == ("InsertIntoStatement", True, False, False)
    assert {str(key): (value.isDefined(), option(value)) for key, value in pairs(insert.partitionSpec())} == {
        "d": (True, "x"),
        "n": (True, None),
        "r": (False, None),
    }
    assert names_of(insert.userSpecifiedCols()) == ["a", "b"]
    (row,) = items(insert.query().rows())
    assert [kind(cell) for cell in items(row)] == ["Literal", "UnresolvedAttribute"]
    several = doors.parse("FROM s INSERT INTO t SELECT a INSERT INTO u SELECT b")
    assert (kind(several), [kind(each) for each in items(several.children())]) == ("Union", ["InsertIntoStatement"] * 2)
    where = doors.parse("INSERT INTO t REPLACE WHERE a = 1 SELECT * FROM s")
    assert (is_insert(where), kind(replaces_where(where)), replaces_where(insert)) == (True, "EqualTo", None)
    if spark_version >= "4.1":
        with pytest.raises(WrongStatement, match="REPLACE WHERE"):
            replaces_where(doors.parse("INSERT INTO t REPLACE USING (a) SELECT * FROM s"))


def test_parameters_values_and_variables(doors: Doors) -> None:
    text = "WITH w AS (SELECT :a x) SELECT ?, cast(1 AS struct<a:int>) FROM w WHERE x IN (SELECT :b FROM t)"
    found = sorted(doors.parameters(doors.parse(text)), key=lambda each: each[1])
    assert [(name, text[start:end]) for name, start, end in found] == [("a", ":a"), (None, "?"), ("b", ":b")]
    insert = "INSERT INTO t VALUES (:a)"
    assert [insert[start:end] for _, start, end in doors.parameters(doors.parse(insert))] == [":a"]
    assert [doors.literal(value) for value in (1, None, True, "it's")] == ["1", "NULL", "true", "'it\\'s'"]
    assert doors.substituted("SELECT ${x}").startswith("SELECT ")


def test_plans_and_expressions_become_frames_and_columns(doors: Doors, spark: SparkSession) -> None:
    spark.range(5).createOrReplaceTempView("numbers_of_doors")
    try:
        plan = doors.parse(
            "WITH w AS (SELECT id FROM numbers_of_doors) SELECT id FROM w WHERE id > (SELECT min(id) + 2 FROM numbers_of_doors)"
        )
        assert [row.id for row in doors.frame(plan).collect()] == [3, 4]
        assert [row.id for row in doors.frame(doors.inner_query(plan, plan.child())).collect()] == [3, 4]
        condition = doors.parse("DELETE FROM t WHERE id IN (SELECT id + 4 FROM numbers_of_doors)").condition()
        assert [row.id for row in spark.range(6).where(doors.column(condition)).collect()] == [4, 5]
        number = doors.temporary_view(["numbers_of_doors"])
        assert number == doors.temporary_view(["numbers_of_doors"])
        spark.range(1).createOrReplaceTempView("numbers_of_doors")
        assert doors.temporary_view(["numbers_of_doors"]) not in (number, None)
        assert doors.temporary_view(["nothing_here"]) is None
        frame = spark.table("numbers_of_doors")
        assert jvm.read_by_spark(frame) == []
        assert "Physical Plan" in jvm.explained(frame, "simple")
        assert (jvm.is_command(frame), jvm.is_command(spark.sql("SHOW VIEWS"))) == (False, True)
    finally:
        spark.catalog.dropTempView("numbers_of_doors")
    assert doors.key() != Doors(spark.newSession()).key()
    assert str(doors.parse("EXPLAIN FORMATTED SELECT 1").mode().name()) == "formatted"
    relation = items(doors.parse("WITH w AS (SELECT 1) SELECT * FROM w").cteRelations())[0]
    assert str(pair(relation)[0]) == "w"
    assert span(doors.parse("TABLE x")) == (6, 7)
