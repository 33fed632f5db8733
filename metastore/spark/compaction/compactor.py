"""The compaction worker on Spark, see `acid/compaction/worker.py`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from pyspark.sql import SparkSession

from metastore.acid.compaction.worker import CompactionWorker, Progress, WorkerKind
from metastore.client import connect
from metastore.spark.compaction.spark_rewriter import SparkRewriter
from metastore.spark.session.catalog import metastore_uri
from metastore.spark.writing.faithful import CanNotKeep

VERSION = "metastore-spark"


def open_session(uri: str, master: str | None, settings: Mapping[str, str]) -> SparkSession:
    """Start Spark, or join the session that spark-submit has started."""
    builder = SparkSession.builder.appName("metastore compactor").config("spark.hadoop.hive.metastore.uris", uri)
    if master:
        builder = builder.master(master)
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


class Compactor(CompactionWorker):
    """One worker on one Spark session."""

    def __init__(self, spark: SparkSession, uri: str | None = None, *, pool: str | None = None, progress: Progress | None = None) -> None:
        address = uri or metastore_uri(spark)
        kind = WorkerKind(VERSION, lambda _: SparkRewriter(spark, address), (CanNotKeep,))
        super().__init__(kind, partial(connect, address), pool=pool, progress=progress)
