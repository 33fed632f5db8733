"""Work with Iceberg tables in Spark's session catalog on a Hive metastore, and count the commits of writers that race.

    python iceberg_on_spark.py URI WAREHOUSE JAR

Runs in an interpreter with PySpark (`test_iceberg_on_spark.py` starts it) and ends with status 0 and `all as expected`
if everything is. Two drivers with four writing threads each commit to one table, since the writers of one driver queue
in its own lock before they ask the server. It never starts a server.
"""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from pyspark.sql import SparkSession

THREADS = 4
COMMITS = 5
"""Commits of each thread."""
TABLES = {"taxi.locked": "true", "taxi.lock_free": "false"}


def session(uri: str, warehouse: str, jar: str) -> SparkSession:
    settings = {
        "spark.jars": jar,
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.catalogImplementation": "hive",
        "spark.sql.catalog.spark_catalog": "org.apache.iceberg.spark.SparkSessionCatalog",
        "spark.sql.catalog.spark_catalog.type": "hive",
        "spark.sql.warehouse.dir": warehouse,
        "spark.hadoop.hive.metastore.uris": uri,
        "spark.hadoop.iceberg.hive.lock-check-max-wait-ms": "100",
    }
    builder = SparkSession.builder.master("local[4]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def expect(what: str, found: object, wanted: object) -> None:
    if found != wanted:
        raise SystemExit(f"{what}: found {found!r}, expected {wanted!r}")


def work_with_a_table(spark: SparkSession) -> None:
    def found(query: str) -> list[tuple[object, ...]]:
        return [tuple(row) for row in spark.sql(query).collect()]

    spark.sql("CREATE TABLE taxi.trips (id BIGINT, fare DOUBLE, day DATE) USING iceberg PARTITIONED BY (months(day))")
    spark.sql("INSERT INTO taxi.trips VALUES (1, 1.5, DATE '2024-01-05'), (2, 2.5, DATE '2024-02-05')")
    spark.sql("ALTER TABLE taxi.trips ADD COLUMN note STRING COMMENT 'what the driver said'")
    spark.sql("ALTER TABLE taxi.trips RENAME COLUMN fare TO price")
    spark.sql("ALTER TABLE taxi.trips ADD PARTITION FIELD bucket(4, id)")
    spark.sql("INSERT INTO taxi.trips VALUES (3, 3.5, DATE '2024-03-05', 'slow')")
    spark.sql("ALTER TABLE taxi.trips SET TBLPROPERTIES ('team' = 'data')")
    spark.sql("ALTER TABLE taxi.trips RENAME TO taxi.rides")
    spark.catalog.clearCache()
    expect("rides", found("SELECT id, note, price FROM taxi.rides ORDER BY id"), [(1, None, 1.5), (2, None, 2.5), (3, "slow", 3.5)])
    spark.sql("MERGE INTO taxi.rides t USING (SELECT 2 AS id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET note = 'fast'")
    spark.sql("DELETE FROM taxi.rides WHERE id = 1")
    expect("rides after deletion", found("SELECT id, note FROM taxi.rides ORDER BY id"), [(2, "fast"), (3, "slow")])
    expect("snapshots", found("SELECT count(*) FROM taxi.rides.snapshots"), [(4,)])
    spark.sql("CREATE OR REPLACE TABLE taxi.replaced USING iceberg AS SELECT id FROM taxi.rides")
    spark.sql("CREATE OR REPLACE TABLE taxi.replaced USING iceberg AS SELECT id + 1 AS next FROM taxi.rides")
    expect("replaced", found("SELECT next FROM taxi.replaced ORDER BY next"), [(3,), (4,)])
    spark.sql("CREATE TABLE taxi.plain (id INT) USING parquet")
    tables = {row[1] for row in found("SHOW TABLES IN taxi")}
    expect("tables", tables, {"rides", "replaced", "plain"})
    for table in tables:
        spark.sql(f"DROP TABLE taxi.{table} PURGE")
    expect("tables after drop", found("SHOW TABLES IN taxi"), [])


def write(spark: SparkSession, table: str, driver: int) -> int:
    """Commit rows with numbers of this driver's own; return the number of confirmed commits."""

    def write_as(thread: int) -> int:
        confirmed = 0
        for commit in range(COMMITS):
            number = (driver * THREADS + thread) * COMMITS + commit
            spark.sql(f"INSERT INTO {table} VALUES ({number})")
            confirmed += 1
        return confirmed

    with ThreadPoolExecutor(THREADS) as pool:
        return sum(pool.map(write_as, range(THREADS)))


def race(spark: SparkSession, second: subprocess.Popen[str], table: str) -> None:
    assert second.stdin is not None
    assert second.stdout is not None
    retry = "'commit.retry.num-retries' = '1000', 'commit.retry.min-wait-ms' = '10', 'commit.retry.max-wait-ms' = '100'"
    spark.sql(f"CREATE TABLE {table} (id INT) USING iceberg TBLPROPERTIES ('engine.hive.lock-enabled' = '{TABLES[table]}', {retry})")
    print(table, file=second.stdin, flush=True)
    confirmed = write(spark, table, 0)
    answer = second.stdout.readline()
    expect("the second driver's commits", answer.strip(), str(THREADS * COMMITS))
    confirmed += int(answer)
    spark.sql(f"REFRESH TABLE {table}")
    ids = sorted(row[0] for row in spark.sql(f"SELECT id FROM {table}").collect())
    expect(f"rows of {table}", ids, list(range(confirmed)))
    snapshots = spark.sql(f"SELECT committed_at FROM {table}.snapshots").count()
    expect(f"snapshots of {table}", snapshots, confirmed)


def main() -> None:
    uri, warehouse, jar = sys.argv[1:4]
    if sys.argv[4:] == ["second"]:
        spark = session(uri, warehouse, jar)
        spark.sql("SHOW TABLES IN taxi").collect()
        print("started", flush=True)
        for line in sys.stdin:
            print(write(spark, line.strip(), 1), flush=True)
        return
    spark = session(uri, warehouse, jar)
    spark.sql("CREATE DATABASE taxi")
    with subprocess.Popen(
        [sys.executable, __file__, uri, warehouse, jar, "second"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        cwd=Path.cwd(),
    ) as second:  # fmt: skip
        try:
            work_with_a_table(spark)
            assert second.stdout is not None
            expect("the second driver", second.stdout.readline().strip(), "started")
            for table in TABLES:
                race(spark, second, table)
        except BaseException:
            second.terminate()
            raise
        assert second.stdin is not None
        second.stdin.close()
    print("all as expected")


if __name__ == "__main__":
    main()
