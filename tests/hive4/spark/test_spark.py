"""Hive and Spark write, change and compact the same transactional tables, and each reads the rows that the other wrote."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal

import pytest
from pyspark.sql import DataFrame, Row, SparkSession

from metastore.spark import AcidTable, transaction
from metastore.spark.compaction.compactor import Compactor
from metastore.spark.reading.reading import time_zone
from tests.hive4.conftest import Story
from tests.support.engines.hive import Rows
from tests.support.engines.spark_session import session

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
SEEDS = [int(seed) for seed in os.environ.get("METASTORE_TEST_SEEDS", "4").split(",")]
STEPS = int(os.environ.get("METASTORE_TEST_STEPS", "14"))
"""The steps of each random workload; a step with Hive takes up to 20 seconds."""
POOL = "spark"
"""The pool of Spark's compactions. All others are run by Hive's worker."""
ACID = "STORED AS ORC TBLPROPERTIES ('transactional' = 'true', 'no_auto_compaction' = 'true')"
INSERT_ONLY = "TBLPROPERTIES ('transactional' = 'true', 'transactional_properties' = 'insert_only', 'no_auto_compaction' = 'true')"


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    with session(tmp_path_factory.mktemp("spark-warehouse")) as opened:
        yield opened


class Both:
    """One table in Spark and in Hive."""

    def __init__(self, spark: SparkSession, story: Story, name: str) -> None:
        self.spark = spark
        self.story = story
        self.name = name
        self.table = AcidTable.forName(spark, f"{story.name}.{name}", story.place.uri)

    def rows(self, *rows: tuple[object, ...]) -> DataFrame:
        """Return rows with the table's columns."""
        schema = self.table.toDF().schema
        self.table.close()
        return self.spark.createDataFrame(list(rows), schema)

    def read(self, columns: str = "*", where: str = "true") -> Rows:
        """Return rows as sorted text, after a check that Hive and Spark read the same ones. Spark's readers are closed afterwards."""
        by_hive = sorted(self.story.sql(f"SELECT {columns} FROM {self.name} WHERE {where}"))
        with as_hive(self.spark):
            found = self.table.toDF().where(where).selectExpr(*split(columns)).collect()
        by_spark = sorted(tuple(map(text, row)) for row in found)
        count = self.story.sql(f"SELECT count(*) FROM {self.name} WHERE {where}")
        self.table.close()
        assert by_spark == by_hive
        assert count == [(str(len(by_hive)),)]
        return by_hive

    def compact_by_spark(self, kind: str, partition: str | None = None) -> str:
        """Compact and return the state of the worker's outcome."""
        key = self.table.compact(kind, partition, pool=POOL)
        outcome = Compactor(self.spark, self.story.place.uri, pool=POOL).run_once()
        assert outcome is not None
        assert outcome.entry.id == key
        self.settled()
        return outcome.state

    def compact_by_hive(self, kind: str, partition: str = "") -> None:
        self.story.engine.compact(self.story.name, self.name, kind.upper(), partition)
        self.settled()

    def settled(self) -> None:
        """Wait until all compactions have ended and the files that they replaced are deleted."""
        ended = {"succeeded", "failed", "did not initiate", "refused"}
        self.story.until(lambda: all(state in ended for _, state in self.story.compactions(self.name)))

    def kinds(self, partition: str = "") -> list[str]:
        """Return the names of directories, without the transaction id of a compaction."""
        return [name.partition("_v")[0] for name in self.story.directories(self.name, partition)]


@contextmanager
def as_hive(spark: SparkSession) -> Iterator[None]:
    """Give expressions Hive's meaning: an element beyond the end of an array is null, times are in Java's zone."""
    settings = {"spark.sql.ansi.enabled": "false", "spark.sql.session.timeZone": time_zone(spark)}
    before = {name: spark.conf.get(name) for name in settings}
    try:
        for name, value in settings.items():
            spark.conf.set(name, value)
        yield
    finally:
        for name, given in before.items():
            spark.conf.set(name, given)


def text(value: object) -> str:
    """Write a value as Hive shows it."""
    if isinstance(value, bool):
        return str(value).lower()
    return "NULL" if value is None else str(value)


def split(columns: str) -> list[str]:
    """Split expressions at the commas outside of brackets."""
    out, depth = [""], 0
    for letter in columns:
        depth += (letter in "([") - (letter in ")]")
        if letter == "," and not depth:
            out.append("")
        else:
            out[-1] += letter
    return out


Maker = Callable[..., Both]


@pytest.fixture
def make(spark: SparkSession, story: Story) -> Iterator[Maker]:
    """Make a table `t` with columns, and clauses such as PARTITIONED BY."""
    made = []

    def create(columns: str, clauses: str = "", kind: str = ACID) -> Both:
        story.sql(f"CREATE TABLE t ({columns}) {clauses} {kind}")
        made.append(Both(spark, story, "t"))
        return made[-1]

    yield create
    for each in made:
        each.table.close()


def test_spark_reads_the_rows_of_hive(make: Maker, story: Story) -> None:
    both = make("id int, v string")
    story.sql("INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, NULL), (4, 'd')")
    story.sql("UPDATE t SET v = 'B' WHERE id = 2")
    story.sql("DELETE FROM t WHERE id = 1")
    want = [("2", "B"), ("3", "NULL"), ("4", "d")]
    assert both.read() == want
    both.compact_by_hive("minor")
    assert both.read() == want
    story.sql(
        "MERGE INTO t USING (SELECT inline(array(struct(2, 'x'), struct(4, NULL), struct(9, 'new'))) AS (id, v)) s ON t.id = s.id "
        "WHEN MATCHED AND s.v IS NULL THEN DELETE WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.v)"
    )
    want = [("2", "x"), ("3", "NULL"), ("9", "new")]
    assert both.read() == want
    both.compact_by_hive("major")
    assert both.kinds() == ["base_0000004"]
    assert both.read() == want
    assert both.read(where="id = 9") == [("9", "new")]
    story.sql("TRUNCATE TABLE t")
    assert both.read() == []
    both.table.insert(both.rows((5, "after")))
    assert both.read() == [("5", "after")]
    both.compact_by_spark("major")
    assert both.read() == [("5", "after")]


def test_hive_reads_the_rows_of_spark(make: Maker, story: Story) -> None:
    both = make("id int, v string")
    both.table.insert(both.rows((1, "a"), (2, "b"), (3, None), (4, "d")))
    both.table.update("id = 2", {"v": "'B'"})
    both.table.delete("id = 1")
    assert both.read() == [("2", "B"), ("3", "NULL"), ("4", "d")]
    merge = both.table.merge(both.rows((2, "x"), (4, None), (9, "new")), "target.id = source.id")
    merge.whenMatchedDelete("source.v is null").whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
    assert both.read() == [("2", "x"), ("3", "NULL"), ("9", "new")]
    assert both.read(where="id > 2 AND v = 'new'") == [("9", "new")]
    story.sql("UPDATE t SET v = concat(v, '!') WHERE id = 9")
    story.sql("DELETE FROM t WHERE v IS NULL")
    assert both.read() == [("2", "x"), ("9", "new!")]
    both.table.insert_overwrite(both.rows((7, "seven"), (8, "eight")))
    assert both.read() == [("7", "seven"), ("8", "eight")]
    story.sql("DELETE FROM t WHERE id = 7")
    assert both.read() == [("8", "eight")]


@pytest.mark.parametrize("kind", ["minor", "major"])
def test_hive_works_on_tables_that_spark_compacts(make: Maker, story: Story, kind: str) -> None:
    both = make("id int, v string")
    story.sql("INSERT INTO t VALUES (1, 'hive'), (2, 'hive'), (3, 'hive')")
    both.table.insert(both.rows((4, "spark"), (5, "spark"), (6, "spark")))
    story.sql("UPDATE t SET v = 'changed' WHERE id IN (1, 4)")
    both.table.delete("id in (2, 5)")
    want = [("1", "changed"), ("3", "hive"), ("4", "changed"), ("6", "spark")]
    assert both.read() == want
    assert both.compact_by_spark(kind) == "compacted"
    assert both.kinds() == (["base_0000004"] if kind == "major" else ["delete_delta_0000001_0000004", "delta_0000001_0000004"])
    assert both.read() == want
    story.sql("UPDATE t SET v = 'again' WHERE id IN (1, 6)")
    story.sql("DELETE FROM t WHERE id = 3")
    both.table.update("id = 4", {"v": "'by spark'"})
    want = [("1", "again"), ("4", "by spark"), ("6", "again")]
    assert both.read() == want
    both.compact_by_hive("major")
    assert both.read() == want
    both.table.delete("id = 1")
    assert both.compact_by_spark("major") == "compacted"
    assert both.read() == want[1:]
    assert story.compactions("t") == [(kind.upper(), "succeeded"), ("MAJOR", "succeeded"), ("MAJOR", "succeeded")]


def test_partitions_come_with_their_rows(make: Maker, story: Story) -> None:
    both = make("id int", "PARTITIONED BY (day date, k string)")
    story.sql("INSERT INTO t PARTITION (day, k) VALUES (1, '2024-01-01', 'a'), (2, '2024-01-02', 'b/c'), (3, '2024-01-02', NULL)")
    new = "SELECT * FROM VALUES (4, DATE'2024-01-02', 'b/c'), (5, DATE'2024-01-03', 'x y'), (6, DATE'2024-01-02', NULL) AS new (id, day, k)"
    both.table.insert(both.spark.sql(new))
    hidden = "__HIVE_DEFAULT_PARTITION__"
    assert both.story.sql("SELECT id, k FROM t WHERE id IN (3, 6) ORDER BY id") in (
        [("3", "NULL"), ("6", "NULL")],
        [("3", hidden), ("6", hidden)],
    )
    known = "k <> '__HIVE_DEFAULT_PARTITION__'"
    want = [("1", "2024-01-01", "a"), ("2", "2024-01-02", "b/c"), ("4", "2024-01-02", "b/c"), ("5", "2024-01-03", "x y")]
    assert both.read(where=known) == want
    assert sorted(story.sql("SHOW PARTITIONS t")) == [
        ("day=2024-01-01/k=a",), (f"day=2024-01-02/k={hidden}",), ("day=2024-01-02/k=b%2Fc",), ("day=2024-01-03/k=x y",),
    ]  # fmt: skip
    story.sql("DELETE FROM t WHERE id = 4")
    both.table.update("id = 2", {"id": "22"})
    want = [("1", "2024-01-01", "a"), ("22", "2024-01-02", "b/c"), ("5", "2024-01-03", "x y")]
    assert both.read(where=known) == want
    assert both.compact_by_spark("minor", "day=2024-01-02/k=b%2Fc") == "compacted"
    assert both.read(where=known) == want
    both.compact_by_hive("major", "day=2024-01-02/k=b%2Fc")
    assert both.read(where=known) == want
    assert both.read("id", "day = '2024-01-02'") == [("22",), ("3",), ("6",)]


@pytest.mark.parametrize("stored", ["ORC", "PARQUET", "TEXTFILE"])
def test_insert_only_tables(make: Maker, story: Story, stored: str) -> None:
    both = make("id int, v string", "PARTITIONED BY (k string)", f"STORED AS {stored} {INSERT_ONLY}")
    story.sql("INSERT INTO t PARTITION (k) VALUES (1, 'a', 'x'), (2, NULL, 'y')")
    both.table.insert(both.rows((3, "c", "x"), (4, None, "y")))
    want = [("1", "a", "x"), ("2", "NULL", "y"), ("3", "c", "x"), ("4", "NULL", "y")]
    assert both.read() == want
    assert both.compact_by_spark("minor", "k=x") == "compacted"
    assert both.read() == want
    story.sql("INSERT INTO t PARTITION (k = 'x') VALUES (5, 'e')")
    assert both.compact_by_spark("major", "k=x") == "compacted"
    both.compact_by_hive("major", "k=y")
    want.append(("5", "e", "x"))
    assert both.read() == want
    assert (both.kinds("k=x"), both.kinds("k=y")) == (["base_0000003"], ["base_0000003"])
    both.table.insert_overwrite(both.rows((9, "only", "y")))
    assert both.read() == [want[0], want[2], want[4], ("9", "only", "y")]


TYPES = (
    "id int, a tinyint, b smallint, c bigint, d float, e double, f boolean, g decimal(20,4), h date, i timestamp, j binary, k char(3), "
    "l varchar(10), m array<int>, n map<string,int>, o struct<x:int,y:array<string>>, p string"
)
SHOWN = (
    "id, a, b, c, d, e, f, cast(g as string), h, date_format(i, 'yyyy-MM-dd HH:mm:ss.SSS'), hex(j), trim(k), l, size(m), m[0], m[1], "
    "size(n), n['a'], o.x, o.y[0], p"
)


def test_every_type(make: Maker, story: Story) -> None:
    both = make(TYPES)
    story.sql(
        "INSERT INTO t SELECT 1, cast(1 AS tinyint), cast(-2 AS smallint), 9223372036854775807, cast(0.5 AS float), cast(-0.1 AS double), "
        "true, cast('-9999999999999999.9999' AS decimal(20,4)), cast('2024-02-29' AS date), cast('2024-07-01 12:30:00.123' AS timestamp), "
        "unhex('00FF10'), cast('ab' AS char(3)), cast('ärger' AS varchar(10)), array(1, 2), map('a', 1), "
        "named_struct('x', 1, 'y', array('q')), 'Zürich'"
    )
    story.sql("INSERT INTO t (id) VALUES (2)")
    story.sql("INSERT INTO t (id, h, i) VALUES (3, '1582-10-04', '1899-12-31 23:59:59'), (4, '1969-12-31', '2024-11-03 01:30:00')")
    copied = both.table.toDF().collect()
    new = [Row(**{**row.asDict(), "id": row.id + 10}) for row in copied]
    changed = new[0].asDict()
    changed |= {"id": 20, "g": Decimal("0.1"), "m": [], "n": {}, "j": bytearray(b""), "l": "", "p": "\u2028 'quoted'"}
    both.table.insert(both.rows(*(tuple(row) for row in [*new, Row(**changed)])))
    want = both.read(SHOWN)
    assert len(want) == 9
    assert [row[1:] for row in want if int(row[0]) in (1, 2, 3, 4)] == [row[1:] for row in want if int(row[0]) in (11, 12, 13, 14)]
    assert want[0][:15] == (
        "1", "1", "-2", "9223372036854775807", "0.5", "-0.1", "true", "-9999999999999999.9999", "2024-02-29", "2024-07-01 12:30:00.123",
        "00FF10", "ab", "ärger", "2", "1",
    )  # fmt: skip
    both.table.update("id = 1", {"p": "'touched'"})
    story.sql("UPDATE t SET p = 'touched by hive' WHERE id = 11")
    want = both.read(SHOWN)
    assert both.compact_by_spark("minor") == "compacted"
    assert both.read(SHOWN) == want
    assert both.compact_by_spark("major") == "compacted"
    assert both.read(SHOWN) == want


def test_one_transaction_of_spark_over_two_tables(make: Maker, story: Story, spark: SparkSession) -> None:
    both = make("id int, v string")
    story.sql("CREATE TABLE u (id int) " + ACID)
    with transaction(spark, story.place.uri) as txn:
        inside = txn.table(f"{story.name}.t")
        inside.insert(both.rows((1, "a"), (2, "b")))
        inside.update("id = 1", {"v": "'A'"})
        inside.update("id = 1", {"v": "concat(v, '!')"})
        inside.delete("id = 2")
        txn.table(f"{story.name}.u").insert(spark.createDataFrame([(1,)], "id int"))
        assert story.sql("SELECT count(*) FROM t") == story.sql("SELECT count(*) FROM u") == [("0",)]
    assert both.read() == [("1", "A!")]
    assert Both(spark, story, "u").read() == [("1",)]
    both.compact_by_hive("major")
    assert both.read() == [("1", "A!")]


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("clauses", ["PARTITIONED BY (k string)", "PARTITIONED BY (k string) CLUSTERED BY (id) INTO 3 BUCKETS"])
def test_random_work_of_both(make: Maker, story: Story, clauses: str, seed: int) -> None:
    """Both write, change and compact in a seeded order; after every step both read the rows of a model, which is a dict."""
    both = make("id int, v int", clauses)
    random_ = random.Random(seed)
    model: dict[int, tuple[int, int, str]] = {}
    fresh = iter(range(1, 10_000))
    done: list[tuple[str, str]] = []
    for step in range(STEPS):
        action = random_.choice(["insert", "insert", "update", "delete", "merge", "minor", "major"]) if step > 1 else "insert"
        by_spark = bool(random_.getrandbits(1)) if step > 1 else bool(step)
        v, part = random_.randrange(5), random_.choice("xyz")
        new = [(next(fresh), random_.randrange(5), random_.choice("xyz")) for _ in range(random_.randrange(1, 12))]
        values = ", ".join(f"({key}, {value}, '{k}')" for key, value, k in new)
        if action == "insert":
            both.table.insert(both.rows(*new)) if by_spark else story.sql(f"INSERT INTO t PARTITION (k) VALUES {values}")
            model.update({row[0]: row for row in new})
        elif action == "update":
            where = f"v = {v} AND k <> '{part}'"
            both.table.update(where, {"v": "v + 1"}) if by_spark else story.sql(f"UPDATE t SET v = v + 1 WHERE {where}")
            model = {key: (key, row[1] + 1, row[2]) if row[1] == v and row[2] != part else row for key, row in model.items()}
        elif action == "delete":
            where = f"v = {v} AND id % 2 = 0"
            both.table.delete(where) if by_spark else story.sql(f"DELETE FROM t WHERE {where}")
            model = {key: row for key, row in model.items() if row[1] != v or key % 2}
        elif action == "merge":
            changes = [(key, 100 + step, row[2]) for key, row in model.items() if key % 4 == step % 4] + new
            _merge(both, changes, by_spark=by_spark)
            model |= {row[0]: row for row in changes}
            for key, _, _ in changes:
                if key % 3 == 0 and key < new[0][0]:
                    del model[key]
        else:
            for partition in sorted({f"k={row[2]}" for row in model.values()}):
                (both.compact_by_spark if by_spark else both.compact_by_hive)(action, partition)
        done.append((action, "Spark" if by_spark else "Hive"))
        want = sorted(tuple(map(str, row)) for row in model.values())
        assert both.read() == want, done
    assert "failed" not in {state for _, state in story.compactions("t")}


def _merge(both: Both, changes: list[tuple[int, int, str]], *, by_spark: bool) -> None:
    """Delete rows with an id divisible by three, change the other existing ones, insert the missing ones."""
    if by_spark:
        merge = both.table.merge(both.rows(*changes), "target.id = source.id AND target.k = source.k")
        merge.whenMatchedDelete("target.id % 3 = 0").whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
        return
    rows = ", ".join(f"struct({key}, {value}, '{k}')" for key, value, k in changes)
    both.story.sql(
        f"MERGE INTO t USING (SELECT inline(array({rows})) AS (id, v, k)) s ON t.id = s.id AND t.k = s.k "
        "WHEN MATCHED AND t.id % 3 = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET v = s.v "
        "WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.v, s.k)"
    )
