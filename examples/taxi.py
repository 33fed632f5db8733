"""Run a data warehouse's day on Spark against a Hive metastore, check every result, and print each step.

One million taxi trips, made here from a hash of their number, are used with databases, tables of six formats, dynamic
partitions, overwrites, alterations, statistics, pruned queries, views, functions and drops. It uses the metastore
only through Spark, so it shows whether a server works for Spark, and it removes all that it made.

    examples/run                                    starts a server and runs this against it
    python examples/taxi.py --uri thrift://HOST:PORT --warehouse DIR
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyspark
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

DAYS = 366  # 2024
VENDORS = 3
ZONES = 265
LEAST_ROWS = 20_000


@dataclass(frozen=True)
class Job:
    """The context of the steps: the session, the trips, their number, and the default place of databases."""

    spark: SparkSession
    trips: DataFrame
    rows: int
    warehouse: str

    def sql(self, text: str) -> DataFrame:
        return self.spark.sql(text)

    def value(self, text: str) -> object:
        """Return the only value of a query of one row."""
        row = self.sql(text).first()
        assert row is not None, f"no row: {text}"
        return row[0]

    def column(self, text: str) -> list[str]:
        return [str(row[0]) for row in self.sql(text).collect()]

    def described(self, text: str) -> dict[str, str]:
        """Return the second column of a DESCRIBE by the first one; the last row of a name counts."""
        return {row[0].strip(): row[1] for row in self.sql(text).collect() if row[0]}

    def exists(self, path: str) -> bool:
        jvm = self.spark._jvm
        assert jvm is not None
        hadoop_path = jvm.org.apache.hadoop.fs.Path(path)
        return bool(hadoop_path.getFileSystem(self.spark._jsparkSession.sessionState().newHadoopConf()).exists(hadoop_path))

    def location(self, table: str) -> str:
        return self.described(f"DESCRIBE FORMATTED {table}")["Location"]


def expect(what: str, found: object, wanted: object) -> None:
    if found != wanted:
        raise SystemExit(f"{what}: found {found!r}, expected {wanted!r}")


def make_trips(spark: SparkSession, rows: int) -> DataFrame:
    """Make trips that are the same in every run: each column is cut from a hash of the trip's number."""

    def draw(name: str, limit: int) -> f.Column:  # type: ignore[name-defined]
        return f.pmod(f.xxhash64(f.col("id"), f.lit(name)), f.lit(limit))

    day = f.date_add(f.to_date(f.lit("2024-01-01")), draw("day", DAYS).cast("int"))
    seconds = draw("second", 86_400)
    distance = f.round(f.lit(0.4) + draw("distance", 2_000) / 100, 2)
    return (
        spark.range(rows)
        .withColumn("pickup_date", day)
        .select(
            f.col("id").alias("trip_id"),
            (f.unix_timestamp(f.col("pickup_date").cast("timestamp")) + seconds).cast("timestamp").alias("pickup_at"),
            (draw("passengers", 5) + 1).cast("int").alias("passengers"),
            distance.cast("double").alias("distance_km"),
            (f.lit(3) + distance * f.lit(2.1)).cast("decimal(8,2)").alias("fare"),
            f.when(draw("tips", 10) < 6, (distance * f.lit(0.3)).cast("decimal(8,2)")).alias("tip"),
            f.element_at(f.array(*map(f.lit, ("card", "cash", "app"))), (draw("payment", 3) + 1).cast("int")).alias("payment"),
            (draw("from", ZONES) + 1).cast("int").alias("pickup_zone"),
            (draw("to", ZONES) + 1).cast("int").alias("dropoff_zone"),
            "pickup_date",
            f.date_format("pickup_date", "yyyy-MM").alias("month"),
            (draw("vendor", VENDORS) + 1).cast("int").alias("vendor"),
        )
    )


COLUMNS = """
    trip_id BIGINT, pickup_at TIMESTAMP, passengers INT, distance_km DOUBLE, fare DECIMAL(8,2), tip DECIMAL(8,2),
    payment STRING COMMENT 'card, cash or app', pickup_zone INT, dropoff_zone INT
"""
NAMES = "trip_id, pickup_at, passengers, distance_km, fare, tip, payment, pickup_zone, dropoff_zone"


def create_databases(job: Job) -> str:
    job.sql("CREATE DATABASE taxi COMMENT 'trips of 2024' WITH DBPROPERTIES (owner_team = 'mobility')")
    job.sql(f"CREATE DATABASE taxi_archive LOCATION '{job.warehouse}/elsewhere/archive'")
    job.sql("CREATE DATABASE IF NOT EXISTS taxi")
    job.sql("ALTER DATABASE taxi SET DBPROPERTIES (year = '2024')")
    expect(
        "databases",
        [name for name in job.column("SHOW DATABASES") if name.startswith("taxi")],
        ["taxi", "taxi_archive"],
    )
    described = job.described("DESCRIBE DATABASE EXTENDED taxi")
    expect("comment of taxi", described["Comment"], "trips of 2024")
    expect("properties of taxi", "owner_team" in described["Properties"] and "year" in described["Properties"], True)
    job.sql("USE taxi")
    return "2 databases"


def write_parquet_partitions(job: Job) -> str:
    """A Hive table of Parquet files, partitioned by a string and an integer, filled with dynamic partitions."""
    job.sql(f"CREATE TABLE trips ({COLUMNS}) PARTITIONED BY (month STRING, vendor INT) STORED AS PARQUET")
    job.sql(f"INSERT INTO trips PARTITION (month, vendor) SELECT {NAMES}, month, vendor FROM made DISTRIBUTE BY month, vendor")
    expect("partitions of trips", len(job.column("SHOW PARTITIONS trips")), 12 * VENDORS)
    expect("rows of trips", job.value("SELECT count(*) FROM trips"), job.rows)
    return f"{job.rows:,} rows, {12 * VENDORS} partitions"


def write_orc_partitions(job: Job) -> str:
    """A Hive table of ORC files with a partition for every day."""
    job.sql(f"CREATE TABLE daily ({COLUMNS}) PARTITIONED BY (pickup_date DATE) STORED AS ORC")
    job.sql(f"INSERT OVERWRITE TABLE daily PARTITION (pickup_date) SELECT {NAMES}, pickup_date FROM made DISTRIBUTE BY pickup_date")
    expect("partitions of daily", len(job.column("SHOW PARTITIONS daily")), DAYS)
    expect("rows of daily", job.value("SELECT count(*) FROM daily"), job.rows)
    return f"{job.rows:,} rows, {DAYS} partitions"


def write_other_formats(job: Job) -> str:
    """Text and Avro by Hive's serialisers, CSV, JSON and bucketed Parquet by Spark's own sources."""
    job.sql("CREATE TABLE zones (zone INT, borough STRING) ROW FORMAT DELIMITED FIELDS TERMINATED BY ',' STORED AS TEXTFILE")
    job.sql(f"INSERT INTO zones SELECT CAST(id + 1 AS INT), concat('borough ', id % 6) FROM range({ZONES})")
    job.sql("CREATE TABLE zones_avro STORED AS AVRO AS SELECT * FROM zones")
    job.sql("CREATE TABLE zones_csv USING csv OPTIONS (header 'true') AS SELECT * FROM zones")
    job.sql("CREATE TABLE zones_json USING json AS SELECT * FROM zones")
    job.spark.table("zones").write.bucketBy(4, "zone").sortBy("zone").saveAsTable("zones_bucketed")
    for table in ("zones", "zones_avro", "zones_csv", "zones_json", "zones_bucketed"):
        expect(f"rows of {table}", job.value(f"SELECT count(DISTINCT zone) FROM {table}"), ZONES)
    expect("buckets", job.described("DESCRIBE FORMATTED zones_bucketed")["Num Buckets"], "4")
    return "text, Avro, CSV, JSON, bucketed Parquet"


def query_pruned(job: Job) -> str:
    """Filters on partition keys reach the metastore: the plan reads the files of the named partitions only."""
    checks = {
        "SELECT * FROM trips WHERE month = '2024-03'": ("month=2024-03", 1),
        "SELECT * FROM trips WHERE month >= '2024-11' AND vendor = 2": ("vendor=2", 2),
        "SELECT * FROM trips WHERE vendor IN (1, 3) AND month LIKE '2024-0%'": ("month=2024-0", 18),
        "SELECT * FROM daily WHERE pickup_date = DATE '2024-02-29'": ("pickup_date=2024-02-29", 1),
        "SELECT * FROM daily WHERE pickup_date BETWEEN DATE '2024-12-30' AND DATE '2024-12-31'": (
            "pickup_date=2024-12-3",
            2,
        ),
    }
    for query, (part, partitions) in checks.items():
        frame = job.sql(query)
        files = frame.inputFiles()
        folders = {file.rsplit("/", 1)[0] for file in files}
        expect(f"files read by {query}", [file for file in files if part not in file], [])
        wanted = VENDORS if part == "month=2024-03" else partitions
        expect(f"partitions read by {query}", len(folders), wanted)
        where = query.partition("WHERE ")[2]
        expect(f"rows of {query}", frame.count(), job.value(f"SELECT count(*) FROM made WHERE {where}"))
    plan = job.spark.sql("SELECT * FROM trips WHERE month = '2024-03'")._jdf.queryExecution().toString()
    expect(
        "PartitionFilters in the plan",
        "PartitionFilters: [" in plan and "month" in plan.partition("PartitionFilters: [")[2],
        True,
    )
    return f"{len(checks)} queries read only their partitions"


def overwrite(job: Job) -> str:
    before = job.value("SELECT count(*) FROM trips WHERE month <> '2024-05'")
    where = "month = '2024-05' AND vendor = 1"
    job.sql(
        f"INSERT OVERWRITE TABLE trips PARTITION (month = '2024-05', vendor = 1) SELECT {NAMES} FROM made WHERE {where} AND passengers = 1"
    )
    kept = job.value(f"SELECT count(*) FROM made WHERE {where} AND passengers = 1")
    expect("rows of the overwritten partition", job.value(f"SELECT count(*) FROM trips WHERE {where}"), kept)
    job.sql(
        f"INSERT OVERWRITE TABLE trips PARTITION (month, vendor) SELECT {NAMES}, month, vendor FROM made "
        "WHERE month = '2024-05' DISTRIBUTE BY month, vendor"
    )
    expect("rows of May again", job.value("SELECT count(*) FROM trips WHERE month = '2024-05'"),
           job.value("SELECT count(*) FROM made WHERE month = '2024-05'"))  # fmt: skip
    expect("rows of the other months", job.value("SELECT count(*) FROM trips WHERE month <> '2024-05'"), before)
    job.sql("TRUNCATE TABLE daily PARTITION (pickup_date = DATE '2024-01-01')")
    expect("rows of a truncated day", job.value("SELECT count(*) FROM daily WHERE pickup_date = DATE '2024-01-01'"), 0)
    return "a static partition, three dynamic ones, one truncated"


def alter_tables(job: Job) -> str:
    job.sql("ALTER TABLE daily ADD COLUMNS (surcharge DECIMAL(8,2) COMMENT 'since 2025')")
    expect("the added column of old rows", job.value("SELECT count(surcharge) FROM daily"), 0)
    job.sql("ALTER TABLE daily CHANGE COLUMN payment payment STRING COMMENT 'how it was paid'")
    expect("the new comment", {row[0]: row[2] for row in job.sql("DESCRIBE daily").collect()}["payment"], "how it was paid")
    job.sql("ALTER TABLE daily SET TBLPROPERTIES (quality = 'gold', draft = 'yes')")
    job.sql("ALTER TABLE daily UNSET TBLPROPERTIES (draft)")
    properties = {row[0]: row[1] for row in job.sql("SHOW TBLPROPERTIES daily").collect()}
    expect("properties", (properties.get("quality"), "draft" in properties), ("gold", False))
    job.sql("ALTER TABLE daily RENAME TO by_day")
    expect("tables like *day", [row[1] for row in job.sql("SHOW TABLES LIKE '*day'").collect()], ["by_day"])
    expect("location of the renamed table", job.location("by_day").rsplit("/", 1)[1], "by_day")
    expect("partitions of the renamed table", len(job.column("SHOW PARTITIONS by_day")), DAYS)
    filled = job.rows - int(str(job.value("SELECT count(*) FROM made WHERE pickup_date = DATE '2024-01-01'")))
    expect("rows of the renamed table", job.value("SELECT count(*) FROM by_day"), filled)
    return "columns, comments, properties, name"


def alter_partitions(job: Job) -> str:
    job.sql("ALTER TABLE trips PARTITION (month = '2024-12', vendor = 3) RENAME TO PARTITION (month = '2024-13', vendor = 3)")
    expect("rows below the new name", job.value("SELECT count(*) FROM trips WHERE month = '2024-13'"),
           job.value("SELECT count(*) FROM made WHERE month = '2024-12' AND vendor = 3"))  # fmt: skip
    place = f"{job.warehouse}/elsewhere/2025"
    job.sql(f"ALTER TABLE trips ADD PARTITION (month = '2025-01', vendor = 1) LOCATION '{place}' PARTITION (month = '2025-01', vendor = 2)")
    job.sql("ALTER TABLE trips ADD IF NOT EXISTS PARTITION (month = '2025-01', vendor = 2)")
    job.sql(f"INSERT INTO trips PARTITION (month = '2025-01', vendor = 1) SELECT {NAMES} FROM made WHERE trip_id < 10")
    expect("rows at the given place", job.value("SELECT count(*) FROM trips WHERE month = '2025-01'"), 10)
    expect("the given place", job.exists(place), True)
    expect("partitions of 2025", job.column("SHOW PARTITIONS trips PARTITION (month = '2025-01')"),
           ["month=2025-01/vendor=1", "month=2025-01/vendor=2"])  # fmt: skip
    job.sql("ALTER TABLE trips DROP PARTITION (month = '2025-01', vendor = 1), PARTITION (month = '2025-01', vendor = 2)")
    job.sql("ALTER TABLE trips DROP IF EXISTS PARTITION (month = '2025-02', vendor = 1)")
    expect("partitions left", len(job.column("SHOW PARTITIONS trips")), 12 * VENDORS)
    folder = job.location("trips")
    job.sql(f"CREATE EXTERNAL TABLE found ({COLUMNS}) PARTITIONED BY (month STRING, vendor INT) STORED AS PARQUET LOCATION '{folder}'")
    job.sql("MSCK REPAIR TABLE found")
    expect("partitions found in the directory", len(job.column("SHOW PARTITIONS found")), 12 * VENDORS)
    job.sql("DROP TABLE found")
    expect("the files of a dropped external table", job.exists(f"{folder}/month=2024-03/vendor=1"), True)
    return "renamed, added, dropped, recovered"


def analyze(job: Job) -> str:
    job.sql("ANALYZE TABLE trips COMPUTE STATISTICS")
    job.sql("ANALYZE TABLE trips PARTITION (month = '2024-03', vendor) COMPUTE STATISTICS")
    job.sql("ANALYZE TABLE trips COMPUTE STATISTICS FOR COLUMNS fare, payment, passengers")
    job.sql("ANALYZE TABLE zones_csv COMPUTE STATISTICS FOR ALL COLUMNS")
    expect("row count of trips", f" {job.rows} rows" in job.described("DESCRIBE EXTENDED trips")["Statistics"], True)
    of_partition = job.described("DESCRIBE EXTENDED trips PARTITION (month = '2024-03', vendor = 1)")["Partition Statistics"]
    rows = job.value("SELECT count(*) FROM made WHERE month = '2024-03' AND vendor = 1")
    expect("row count of a partition", f" {rows} rows" in of_partition, True)
    statistics = job.described("DESCRIBE EXTENDED trips passengers")
    expect("least and most passengers", (statistics["min"], statistics["max"]), ("1", "5"))
    return "tables, partitions, columns"


def make_views(job: Job) -> str:
    job.sql("CREATE VIEW fares (vendor, trips, total) AS SELECT vendor, count(*) AS n, sum(fare) AS s FROM trips GROUP BY vendor")
    expect("trips of the view", job.value("SELECT sum(trips) FROM fares"), job.rows)
    job.sql("ALTER VIEW fares AS SELECT vendor, count(*) AS trips FROM trips WHERE tip IS NOT NULL GROUP BY vendor")
    expect("trips of the altered view", job.value("SELECT sum(trips) FROM fares"), job.value("SELECT count(tip) FROM made"))
    expect("views", [row[1] for row in job.sql("SHOW VIEWS IN taxi").collect() if row[0] == "taxi"], ["fares"])
    job.sql("CREATE TABLE by_zone STORED AS ORC AS SELECT pickup_zone, avg(fare) AS fare FROM trips GROUP BY pickup_zone")
    expect("rows of CREATE TABLE AS", job.value("SELECT count(*) FROM by_zone JOIN zones ON pickup_zone = zone"), ZONES)
    job.sql("CREATE TABLE taxi_archive.by_zone LIKE by_zone")
    job.sql("INSERT INTO taxi_archive.by_zone SELECT * FROM by_zone")
    expect("rows of the archive", job.value("SELECT count(*) FROM taxi_archive.by_zone"), ZONES)
    expect("SHOW CREATE TABLE", "PARTITIONED BY (month" in str(job.value("SHOW CREATE TABLE trips")).replace("`", ""), True)
    job.sql("CREATE FUNCTION taxi.shout AS 'org.apache.hadoop.hive.ql.udf.generic.GenericUDFUpper'")
    expect("a stored function", job.value("SELECT taxi.shout(payment) FROM trips WHERE payment = 'app' LIMIT 1"), "APP")
    job.sql("DROP FUNCTION taxi.shout")
    return "2 views, 2 copies, 1 function"


def drop_all(job: Job) -> str:
    places = [job.location(table) for table in ("trips", "by_day", "zones_csv", "taxi_archive.by_zone")]
    job.sql("DROP VIEW fares")
    job.sql("DROP TABLE trips")
    job.sql("DROP TABLE by_day PURGE")
    job.sql("DROP TABLE IF EXISTS never_made")
    job.sql("USE default")
    job.sql("DROP DATABASE taxi CASCADE")
    job.sql("DROP DATABASE taxi_archive CASCADE")
    expect("directories left of dropped tables", [place for place in places if job.exists(place)], [])
    expect("databases left", [name for name in job.column("SHOW DATABASES") if name.startswith("taxi")], [])
    return "2 databases with all they held"


STEPS: dict[str, Callable[[Job], str]] = {
    "create databases": create_databases,
    "Parquet, dynamic partitions": write_parquet_partitions,
    "ORC, a partition a day": write_orc_partitions,
    "other formats": write_other_formats,
    "pruned queries": query_pruned,
    "insert overwrite, truncate": overwrite,
    "alter tables": alter_tables,
    "alter partitions": alter_partitions,
    "analyze": analyze,
    "views, copies, functions": make_views,
    "drop": drop_all,
}


def session(arguments: argparse.Namespace) -> SparkSession:
    builder = (
        SparkSession.builder.master(arguments.master)
        .appName("taxi")
        .config("spark.sql.warehouse.dir", arguments.warehouse)
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.hadoop.hive.exec.dynamic.partition.mode", "nonstrict")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .enableHiveSupport()
    )
    if arguments.uri:
        builder = builder.config("spark.hadoop.hive.metastore.uris", arguments.uri)
    else:
        # Hive refuses filters on integer keys on Derby; a server in its place must not.
        builder = builder.config("spark.sql.hive.metastorePartitionPruningFallbackOnException", "true")
    if arguments.hive_version:
        builder = builder.config("spark.sql.hive.metastore.version", arguments.hive_version)
        jars = arguments.hive_jars
        builder = builder.config("spark.sql.hive.metastore.jars", "path" if jars else "maven")
        if jars:
            builder = builder.config("spark.sql.hive.metastore.jars.path", f"file://{Path(jars).absolute()}/*.jar")
    return builder.getOrCreate()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--uri", help="the metastore, thrift://HOST:PORT; without it Spark runs one of its own on Derby")
    parser.add_argument("--warehouse", required=True, help="directory of the databases, for Spark and for the metastore")
    parser.add_argument("--rows", type=int, default=1_000_000, help="trips to make (%(default)s)")
    parser.add_argument("--master", default="local[2]", help="Spark's master (%(default)s)")
    parser.add_argument("--hive-version", help="version of the Hive client that Spark uses, such as 3.1.3 or 4.0.1")
    parser.add_argument("--hive-jars", help="folder of that client's jars; without it Spark fetches them from Maven Central")
    arguments = parser.parse_args()
    if arguments.rows < LEAST_ROWS:
        parser.error(f"--rows must be at least {LEAST_ROWS}, so that every day and zone has trips")
    spark = session(arguments)
    spark.sparkContext.setLogLevel("FATAL")  # failures are raised; Spark also logs errors that it handles
    trips = make_trips(spark, arguments.rows).cache()
    trips.createOrReplaceTempView("made")
    job = Job(spark, trips, arguments.rows, arguments.warehouse)
    done: list[tuple[str, str, float]] = []
    for name, step in {"make trips": lambda job: f"{job.trips.count():,} rows", **STEPS}.items():
        started = time.perf_counter()
        outcome = step(job)
        done.append((name, outcome, time.perf_counter() - started))
        print(f"  {name}: {outcome}", flush=True)
    spark.stop()
    print(f"\nPySpark {pyspark.__version__}, Hive client {arguments.hive_version or 'built in'}, all results as expected\n")
    print(f"{'step':<30}{'outcome':<50}{'seconds':>8}")
    for name, outcome, seconds in [*done, ("total", "", sum(seconds for _, _, seconds in done))]:
        print(f"{name:<30}{outcome:<50}{seconds:>8.1f}")


if __name__ == "__main__":
    main()
