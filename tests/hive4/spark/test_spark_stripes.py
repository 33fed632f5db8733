"""Hive reads files of several stripes that Spark wrote, with deletes, for all ways to split and filter them. It trusts their metadata."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from metastore.spark import AcidTable
from metastore.spark.compaction.compactor import Compactor
from tests.hive4.conftest import Story
from tests.support.engines.hive import java, variables
from tests.support.engines.jars import classpath
from tests.support.engines.spark_session import session

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
VALID = "acid key index is valid"
SMALL_SPLITS = ("SET mapreduce.input.fileinputformat.split.maxsize=60000", "SET mapreduce.input.fileinputformat.split.minsize=1")


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    with session(tmp_path_factory.mktemp("spark-warehouse")) as opened:
        yield opened


def make(story: Story) -> None:
    story.sql(
        "CREATE TABLE t (id int, v string) STORED AS ORC TBLPROPERTIES ('transactional' = 'true', 'no_auto_compaction' = 'true', "
        "'orc.stripe.size' = '8192', 'orc.row.index.stride' = '1000')"
    )


def check(story: Story, want: set[int]) -> None:
    """Check that Hive reads a set of ids from the table, in each of its ways to read."""
    total = [(str(len(want)), str(sum(want)))]
    for filtered in ("true", "false"):
        for vectorized in ("true", "false"):
            for each in (
                *SMALL_SPLITS,
                f"SET hive.txn.filter.delete.events={filtered}",
                "SET hive.compute.query.using.stats=false",
                f"SET hive.vectorized.execution.enabled={vectorized}",
                "SET hive.fetch.task.conversion=none",
            ):
                story.sql(each)
            assert story.sql("SELECT count(v), sum(id) FROM t") == total, (filtered, vectorized)
    few = sorted(number for number in want if 7_990 < number < 8_010 or number > 19_990)
    assert story.sql("SELECT id FROM t WHERE id > 19990 OR id > 7990 AND id < 8010 ORDER BY id") == [(str(number),) for number in few]
    story.sql("SET hive.compute.query.using.stats=true")
    assert story.sql("SELECT count(*) FROM t") == [(str(len(want)),)]


def key_indexes(story: Story, folder: Path) -> list[bool]:
    """Return for each file of the table whether its index of keys is right by Hive's own tool."""
    files = sorted(story.place.warehouse.glob(f"{story.name}.db/t/*/bucket_*"))
    command = java(folder, classpath(), "org.apache.hadoop.hive.ql.io.orc.FixAcidKeyIndex", "--check-only", *map(str, files))
    output = subprocess.run(command, env=variables(folder), capture_output=True, text=True, check=True, cwd=folder).stdout
    lines = [line for line in output.splitlines() if line.startswith("Checking")]
    assert len(lines) == len(files), output
    return [line.endswith(VALID) for line in lines]


@pytest.mark.parametrize("described", [True, False], ids=["described", "bare"])
def test_stripes_and_deletes(spark: SparkSession, story: Story, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, described: bool) -> None:
    """Hive also reads files without the metadata, which Spark writes to object stores. Files of a compaction have it."""
    if not described:
        for module in ("writing.writing", "compaction.spark_rewriter"):
            monkeypatch.setattr(f"metastore.spark.{module}.describe", lambda *args, **names: None)
    make(story)
    table = AcidTable.forName(spark, f"{story.name}.t", story.place.uri)
    table.insert(spark.range(0, 20_000, 1, 1).selectExpr("cast(id as int) id", "sha2(cast(id as string), 256) v"))
    assert table.delete("id % 7 = 0 OR id BETWEEN 5000 AND 5100") > 2_900
    table.insert(spark.range(20_000, 26_000, 1, 2).selectExpr("cast(id as int) id", "sha2(cast(id as string), 256) v"))
    story.sql("DELETE FROM t WHERE id % 1000 = 5 OR id = 25999")
    want = {number for number in range(26_000) if number >= 20_000 or (number % 7 and not 5_000 <= number <= 5_100)}
    want -= {number for number in want if number % 1_000 == 5 or number == 25_999}
    check(story, want)
    assert set(key_indexes(story, tmp_path)) == ({True} if described else {True, False})
    table.compact("major", pool="spark")
    outcome = Compactor(spark, story.place.uri, pool="spark").run_once()
    assert outcome is not None
    assert outcome.state == "compacted", outcome
    story.until(lambda: [state for _, state in story.compactions("t")] == ["succeeded"])
    table.delete("id % 11 = 0")
    want = {number for number in want if number % 11}
    check(story, want)
    assert set(key_indexes(story, tmp_path)) == ({True} if described else {True, False})
    story.engine.compact(story.name, "t", "MAJOR")
    story.until(lambda: [state for _, state in story.compactions("t")] == ["succeeded", "succeeded"])
    check(story, want)
    assert {row.id for row in table.toDF().select("id").collect()} == want
    table.close()
