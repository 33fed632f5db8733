"""Hive and Spark give the rows of original files the same ids, and neither reads rows that the other deleted, unless they are misplaced."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import orc
from pyspark.sql import SparkSession

from metastore.spark import AcidTable
from metastore.spark.compaction.compactor import Compactor
from tests.hive4.conftest import Story
from tests.support.acid.misplaced_rows import scatter
from tests.support.engines.hive import HiveError
from tests.support.engines.spark_session import session

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
COPIES = ["000000_0", *(f"000000_0_copy_{number}" for number in range(1, 12))]
LAYOUTS = {
    "copies": COPIES,
    "directories": [
        "000000_0", "000000_0_copy_1", "000000_0_copy_10", "000000_0_copy_2", "000000_0x/000000_0", "HIVE_UNION_SUBDIR_1/000000_0",
        "HIVE_UNION_SUBDIR_10/000000_0", "HIVE_UNION_SUBDIR_2/000000_0", "a/000000_0", "a/sub/000000_0", "a-/000000_0", "b/000001_0",
    ],
    "letters": [
        "a b/000000_0", "a!b/000000_0", "a$b/000000_0", "a%b/000000_0", "a[b/000000_0", "a~/000000_0", "a/000000_0", "\u3000x/000000_0",
        "é/000000_0", "\U0001f600/000000_0", "\uffe6/000000_0",
    ],
    "attempts": ["000000_0", "000000_1", "000001_0", "000001_0_copy_1", "0_0", "00000_0", "000000_0_copy_01", "bucket_00001"],
}  # fmt: skip


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    with session(tmp_path_factory.mktemp("spark-warehouse")) as opened:
        yield opened


def make(spark: SparkSession, story: Story, partitioned: bool = False) -> tuple[AcidTable, Path]:
    """Make the table `t`; return it and the folder of its rows."""
    by = "PARTITIONED BY (p string)" if partitioned else ""
    story.sql(
        f"CREATE TABLE t (id int, v string) {by} STORED AS ORC TBLPROPERTIES ('transactional' = 'true', 'no_auto_compaction' = 'true')"
    )
    if partitioned:
        story.sql("ALTER TABLE t ADD PARTITION (p = 'x')")
    folder = story.place.warehouse / f"{story.name}.db" / "t"
    return AcidTable.forName(spark, f"{story.name}.t", story.place.uri), folder / "p=x" if partitioned else folder


def lay(folder: Path, names: list[str]) -> None:
    """Make original files: rows 10 n and 10 n + 1 in file n."""
    for number, name in enumerate(names):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        rows = pa.table({"id": pa.array([number * 10, number * 10 + 1], pa.int32()), "v": ["a", "b"]})
        orc.write_table(rows, str(folder / name))


def by_hive(story: Story) -> dict[int, tuple[int, int, int]]:
    found = {int(key): json.loads(text) for text, key in story.sql("SELECT row__id, id FROM t")}
    return {key: (each["writeid"], each["bucketid"], each["rowid"]) for key, each in found.items()}


def by_spark(table: AcidTable) -> dict[int, tuple[int, int, int]]:
    found = {row.id: (row.row__id.writeid, row.row__id.bucketid, row.row__id.rowid) for row in table.toDF(row_id=True).collect()}
    table.close()
    return found


def compact(table: AcidTable, spark: SparkSession, story: Story, kind: str = "major", partition: str | None = None) -> None:
    """Compact by Spark, and wait until the replaced files are deleted: Hive lists files before it locks the table."""
    table.compact(kind, partition, pool="spark")
    outcome = Compactor(spark, story.place.uri, pool="spark").run_once()
    assert outcome is not None
    assert outcome.state == "compacted", outcome
    story.until(lambda: [state for _, state in story.compactions("t")] == ["succeeded"])


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("partitioned", [False, True])
def test_ids_are_hives(spark: SparkSession, story: Story, layout: str, *, partitioned: bool) -> None:
    table, folder = make(spark, story, partitioned)
    lay(folder, LAYOUTS[layout])
    ids = by_hive(story)
    assert len(ids) == 2 * len(LAYOUTS[layout])
    assert by_spark(table) == ids
    assert table.delete("id in (20, 41)") == 2
    story.sql("DELETE FROM t WHERE id IN (30, 61)")
    left = {key: value for key, value in ids.items() if key not in (20, 41, 30, 61)}
    for vectorized in ("false", "true"):
        story.sql(f"SET hive.vectorized.execution.enabled={vectorized}")
        assert by_hive(story) == left
    assert by_spark(table) == left
    if layout == "copies":
        story.engine.compact(story.name, "t", "MAJOR", "p=x" if partitioned else "")
        story.until(lambda: [state for _, state in story.compactions("t")] == ["succeeded"])
    else:
        compact(table, spark, story, partition="p=x" if partitioned else None)
    assert by_hive(story) == left
    assert by_spark(table) == left


def test_a_name_that_hive_refuses_the_table_for(spark: SparkSession, story: Story) -> None:
    table, folder = make(spark, story)
    lay(folder, ["000000_0", "part-00000-0123-c000.snappy.orc"])
    with pytest.raises(HiveError, match="Bucket ID out of range: -1"):
        story.sql("SELECT * FROM t")
    (found,) = table.check().collect()
    assert found.file.endswith("/part-00000-0123-c000.snappy.orc")
    assert found.problem == "Hive refuses the whole table for a file of this name"
    assert table.delete("id = 10") == 1
    compact(table, spark, story)
    assert sorted(by_hive(story)) == [0, 1, 11]
    assert table.check().collect() == []


@pytest.mark.parametrize("kind", ["minor", "major"])
def test_hive_shows_deleted_rows_that_lie_in_another_buckets_file_until_spark_compacts(
    spark: SparkSession, story: Story, kind: str
) -> None:
    """Rows as an earlier version of Spark's writer misplaced them. The compaction moves them to the bucket where Hive looks for them."""
    table, folder = make(spark, story)
    table.insert(spark.range(8).selectExpr("cast(id as int) id", "string(id) v").coalesce(1))
    (file,) = folder.rglob("bucket_*")
    scatter(file)
    assert table.delete("id in (1, 6)") == 2
    story.sql("DELETE FROM t WHERE id = 7")
    assert sorted(by_spark(table)) == [0, 2, 3, 4, 5]
    assert sorted(by_hive(story)) == [0, 2, 3, 4, 5, 6, 7]
    assert len(table.check().collect()) == 1
    table.insert(spark.range(100, 102).selectExpr("cast(id as int) id", "'' v").repartition(2))
    compact(table, spark, story, kind)
    ids = by_hive(story)
    assert sorted(ids) == [0, 2, 3, 4, 5, 100, 101]
    assert by_spark(table) == ids
    assert table.check().collect() == []
    assert table.delete("id = 4") == 1
    story.sql("DELETE FROM t WHERE id = 5")
    assert sorted(by_hive(story)) == sorted(by_spark(table)) == [0, 2, 3, 100, 101]
