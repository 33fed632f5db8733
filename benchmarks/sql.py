"""Measure the time that SQL through `metastore.spark.enable` adds, as ratios and milliseconds in one process.

    python benchmarks/sql.py [--times 40] [--changes 5]

Starts a server on SQLite and a Spark session of one core. Plain statements run by Spark alone and through `enable`, in turn; statements
over a transactional table and the equivalent calls of AcidTable run in turn too. Each figure is the best of its rounds: other work on the
machine disturbs it least.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from pyspark.sql import SparkSession  # noqa: E402  # the project's folder must be known first

from metastore.spark import AcidTable, disable, enable, sql  # noqa: E402
from tests.support.servers.servers import COMMAND, serving  # noqa: E402

Work = Callable[[], object]


def side_by_side(first: Work, second: Work, times: int) -> tuple[float, float]:
    """Return the best times, in milliseconds, of two pieces of work that run in turn."""
    took: tuple[list[float], list[float]] = ([], [])
    for _ in range(times):
        for work, found in zip((first, second), took, strict=True):
            begun = time.perf_counter()
            work()
            found.append((time.perf_counter() - begun) * 1000)
    return min(took[0]), min(took[1])


def show(text: str, before: float, after: float) -> None:
    print(f"{text:64} {before:9.2f} {after:9.2f} {after - before:+9.2f} ms {after / before:6.2f}x", flush=True)


def with_enable(spark: SparkSession, work: Work) -> Work:
    """Return work that runs between `enable` and `disable`."""

    def run() -> None:
        enable(spark)
        work()
        disable()

    return run


def plain(spark: SparkSession, times: int) -> None:
    spark.sql("CREATE TABLE plain (id int, v string) STORED AS PARQUET")
    spark.sql("INSERT INTO plain VALUES (1, 'a'), (2, 'b')")
    texts = (
        "SELECT 1",
        "SELECT * FROM plain",
        "SELECT a.id FROM plain a JOIN plain b ON a.id = b.id WHERE a.id > (SELECT min(id) FROM plain)",
    )
    works: list[tuple[str, Work, int]] = [(text, lambda text=text: spark.sql(text), times) for text in texts]  # type: ignore[misc]
    works += [
        ("spark.table('plain')", lambda: spark.table("plain"), times),
        ("spark.table('plain').count()", lambda: spark.table("plain").count(), times),
        ("SELECT count(*) FROM plain, collected", lambda: spark.sql("SELECT count(*) FROM plain").collect(), times),
        ("INSERT INTO plain VALUES (3, 'c')", lambda: spark.sql("INSERT INTO plain VALUES (3, 'c')"), times),
    ]
    print(f"{'plain tables':64} {'Spark':>9} {'enable':>9}")
    for text, work, count in works:
        show(text[:64], *side_by_side(work, with_enable(spark, work), count))


def transactional(spark: SparkSession, times: int) -> None:
    for name in ("t", "u"):
        sql(
            spark,
            f"CREATE TABLE {name} (id int, v string) STORED AS ORC TBLPROPERTIES ('transactional'='true', 'no_auto_compaction'='true')",
        )
        sql(spark, f"INSERT INTO {name} SELECT id, 'x' FROM range(1000)")
    table = AcidTable.forName(spark, "default.u")
    more = spark.createDataFrame([(5, "s"), (2000, "n")], "id int, v string")
    more.createOrReplaceTempView("more")

    def read() -> None:
        table.toDF().collect()
        table.close()

    def merge() -> None:
        table.merge(more, "target.id = source.id").whenMatchedUpdateAll().execute()

    pairs: list[tuple[str, Work]] = [
        ("SELECT * FROM t", read),
        ("INSERT INTO t SELECT * FROM more", lambda: table.insert(more)),
        ("UPDATE t SET v = 'y' WHERE id = 7", lambda: table.update("id = 7", {"v": "'y'"})),
        ("DELETE FROM t WHERE id = -1", lambda: table.delete("id = -1")),
        ("MERGE INTO t USING more s ON t.id = s.id WHEN MATCHED THEN UPDATE SET *", merge),
    ]
    print(f"{'transactional tables':64} {'AcidTable':>9} {'SQL':>9}")
    for text, work in pairs:
        show(text[:64], *side_by_side(work, lambda text=text: sql(spark, text).collect(), times))  # type: ignore[misc]  # mypy infers no lambda with defaults


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=100)
    parser.add_argument("--changes", type=int, default=5)
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="metastore-benchmark-"))
    try:
        with serving("--db", f"sqlite:///{folder}/m.db", "--warehouse", str(folder / "warehouse"), home=folder, command=COMMAND) as server:
            os.environ["PYSPARK_PYTHON"] = sys.executable
            builder = SparkSession.builder.master("local[1]").appName("benchmark").config("spark.ui.enabled", "false")
            builder = builder.config("spark.ui.showConsoleProgress", "false").config("spark.sql.warehouse.dir", str(folder / "warehouse"))
            builder = builder.config("spark.hadoop.hive.metastore.uris", server.uri).config("spark.sql.shuffle.partitions", 1)
            spark = builder.enableHiveSupport().getOrCreate()
            spark.sparkContext.setLogLevel("ERROR")
            plain(spark, options.times)
            transactional(spark, options.changes)
            spark.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
