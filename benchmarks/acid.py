"""Measure transactional tables on Spark as ratios in one run: reading against plain ORC, changes against Delta Lake, compaction.

    python benchmarks/acid.py [--rows 10000000] [--no-delta]

Starts a server on SQLite and a Spark session of its own (local[*]); Delta Lake's jars are fetched through Maven. Each figure is the best of
three times; a ratio below 1 means that this project is faster.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from pyspark.sql import DataFrame, SparkSession  # noqa: E402  # the project's folder must be known first
from pyspark.sql import functions as F  # noqa: E402, N812  # see above; the name that everyone gives it

from metastore.acid.folders.table import CAPABILITIES  # noqa: E402
from metastore.client import connect  # noqa: E402
from metastore.idl import CreateTableRequest, FieldSchema, SerDeInfo, StorageDescriptor, Table  # noqa: E402
from metastore.spark import AcidTable  # noqa: E402
from metastore.spark.compaction.compactor import Compactor  # noqa: E402
from tests.support.servers.servers import COMMAND, serving  # noqa: E402

ORC = "org.apache.hadoop.hive.ql.io.orc."
COLUMNS = "id bigint, customer int, amount double, status string, note string"
DELTA = "io.delta:delta-spark_2.13:4.0.0"


def rows(spark: SparkSession, count: int, first: int = 0) -> DataFrame:
    return spark.range(first, first + count).select(
        F.col("id"),
        (F.col("id") * 7919 % 100_003).cast("int").alias("customer"),
        (F.col("id") % 10_000 / 100).alias("amount"),
        F.concat(F.lit("status-"), F.col("id") % 7).alias("status"),
        F.md5(F.col("id").cast("string")).alias("note"),
    )


def consume(frame: DataFrame) -> None:
    frame.write.format("noop").mode("overwrite").save()


def best(work: Callable[[], object], times: int = 3) -> float:
    found = []
    for _ in range(times):
        begun = time.perf_counter()
        work()
        found.append(time.perf_counter() - begun)
    return min(found)


def once(work: Callable[[], object]) -> float:
    return best(work, 1)


def show(what: str, ours: float, theirs: float, against: str) -> None:
    print(f"{what:44} {ours:8.2f} s  {theirs:8.2f} s  {ours / theirs:5.2f}x  {against}", flush=True)


def make_table(uri: str, spark: SparkSession, name: str) -> AcidTable:
    columns = [FieldSchema(*column.split(" "), None) for column in COLUMNS.split(", ")]
    table = Table(
        dbName="default",
        tableName=name,
        owner="benchmark",
        tableType="MANAGED_TABLE",
        partitionKeys=[],
        parameters={"transactional": "true", "transactional_properties": "default", "bucketing_version": "2"},
        sd=StorageDescriptor(
            cols=columns,
            inputFormat=f"{ORC}OrcInputFormat",
            outputFormat=f"{ORC}OrcOutputFormat",
            parameters={},
            bucketCols=[],
            sortCols=[],
            serdeInfo=SerDeInfo(serializationLib=f"{ORC}OrcSerde", parameters={}),
        ),
    )
    with connect(uri) as client:
        client.create_table_req(CreateTableRequest(table=table, processorCapabilities=CAPABILITIES, processorIdentifier="benchmark"))
    return AcidTable.forName(spark, f"default.{name}", uri)


def compact(spark: SparkSession, uri: str, table: AcidTable, kind: str) -> None:
    table.compact(kind)
    outcome = Compactor(spark, uri).run_once()
    assert outcome is not None
    assert outcome.state == "compacted", outcome


def reading(spark: SparkSession, uri: str, folder: Path, count: int) -> None:
    plain = str(folder / "plain")
    rows(spark, count).write.option("compression", "snappy").orc(plain)
    table = make_table(uri, spark, "read_compacted")
    table.insert(spark.read.orc(plain))
    base = best(lambda: consume(spark.read.orc(plain)))
    show("read all columns, one delta", best(lambda: consume(table.toDF())), base, "plain ORC")
    compact(spark, uri, table, "major")
    show("read all columns, compacted (goal 1.3x)", best(lambda: consume(table.toDF())), base, "plain ORC")
    few = best(lambda: consume(spark.read.orc(plain).select("customer", "amount")))
    show("read two columns, compacted", best(lambda: consume(table.toDF().select("customer", "amount"))), few, "plain ORC")
    filtered = best(lambda: consume(spark.read.orc(plain).where("customer = 77")))
    show("read with a filter, compacted", best(lambda: consume(table.toDF().where("customer = 77"))), filtered, "plain ORC")
    rewrite = best(lambda: spark.read.orc(plain).write.mode("overwrite").option("compression", "snappy").orc(str(folder / "rewritten")))
    deltas = make_table(uri, spark, "read_deltas")
    for part in range(10):
        deltas.insert(rows(spark, count // 10, part * (count // 10)))
    deltas.delete("id % 10 = 3")
    show("read 10 deltas, 10 % deleted (goal 2.5x)", best(lambda: consume(deltas.toDF())), base, "plain ORC")
    deltas.close()
    show("major compaction of it (goal 1.5x)", once(lambda: compact(spark, uri, deltas, "major")), rewrite, "rewriting plain ORC")


def changing(spark: SparkSession, uri: str, folder: Path, count: int) -> None:
    from delta.tables import DeltaTable

    place = str(folder / "delta")
    rows(spark, count).write.format("delta").save(place)
    table = make_table(uri, spark, "changed")
    table.insert(rows(spark, count))
    theirs = DeltaTable.forPath(spark, place)
    for what, condition in (("update 1 %", "id % 100 = 5"), ("update 1 % in one range", f"id < {count // 100}")):
        other = once(lambda condition=condition: theirs.update(condition, {"amount": F.expr("amount + 1")}))
        show(what, once(lambda condition=condition: table.update(condition, {"amount": "amount + 1"})), other, "Delta Lake")
    other = once(lambda: theirs.delete("id % 100 = 6"))
    show("delete 1 %", once(lambda: table.delete("id % 100 = 6")), other, "Delta Lake")
    changes = rows(spark, count // 100, count - count // 200).withColumn("amount", F.lit(0.0)).persist()
    changes.count()
    merge = theirs.alias("t").merge(changes.alias("s"), "t.id = s.id").whenMatchedUpdateAll().whenNotMatchedInsertAll()
    ours = table.alias("t").merge(changes.alias("s"), "t.id = s.id").whenMatchedUpdateAll().whenNotMatchedInsertAll()
    other = once(merge.execute)
    show("merge 1 %", once(ours.execute), other, "Delta Lake")


def delta_jars(folder: Path) -> list[str]:
    group, artifact, version = DELTA.split(":")
    (folder / "pom.xml").write_text(
        f"<project><modelVersion>4.0.0</modelVersion><groupId>b</groupId><artifactId>b</artifactId><version>1</version><dependencies>"
        f"<dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{version}</version></dependency>"
        "</dependencies></project>"
    )
    subprocess.run(["mvn", "-q", "-B", "dependency:copy-dependencies", f"-DoutputDirectory={folder}/jars"], cwd=folder, check=True)
    return sorted(str(path) for path in (folder / "jars").glob("*.jar") if path.name.startswith(("delta-", "antlr4-runtime")))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--no-delta", action="store_true", help="leave out the comparisons with Delta Lake")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="metastore-benchmark-"))
    try:
        jars = [] if options.no_delta else delta_jars(folder)
        settings = ("--set", "hive.compactor.initiator.on=false")
        with serving(
            "--db", f"sqlite:///{folder}/m.db", "--warehouse", str(folder / "warehouse"), *settings, home=folder, command=COMMAND
        ) as server:
            os.environ["PYSPARK_PYTHON"] = sys.executable
            builder = (
                SparkSession.builder.master("local[*]")
                .appName("benchmark")
                .config("spark.ui.enabled", "false")
                .config("spark.driver.memory", "6g")
                .config("spark.ui.showConsoleProgress", "false")
                .config("spark.hadoop.hive.metastore.uris", server.uri)
                .config("spark.sql.shuffle.partitions", os.cpu_count() or 2)
            )
            if jars:
                builder = (
                    builder.config("spark.jars", ",".join(jars))
                    .config("spark.submit.pyFiles", "")
                    .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
                    .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
                )
            spark = builder.getOrCreate()
            spark.sparkContext.setLogLevel("ERROR")
            print(f"{options.rows:,} rows, Spark {spark.version}, {os.cpu_count()} cores\n{'':44} {'ours':>10}  {'theirs':>10}")
            reading(spark, server.uri, folder, options.rows)
            if jars:
                changing(spark, server.uri, folder, options.rows)
            spark.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
