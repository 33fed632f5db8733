"""Rewrite the buckets of a folder by Python on the executors: one Spark job, a task for each bucket. This module places no file and ends
nothing.

Spark's own ORC writer parses the type of the column `row` for every row: a compaction with it would spend most of its time on that.
"""

from __future__ import annotations

from functools import partial

from py4j.protocol import Py4JJavaError
from pyspark import TaskContext
from pyspark.errors import PySparkException

from metastore import log
from metastore.acid.buckets.buckets import Bucket
from metastore.acid.compaction.compacting import DELETES
from metastore.acid.folders.misplaced import misplaced
from metastore.acid.folders.placing import staging
from metastore.acid.folders.selecting import Selected
from metastore.acid.rewriting.event_file import OrcOptions
from metastore.acid.rewriting.rewriting import CanNotCopy, Form, rewrite_deletes, rewrite_rows
from metastore.acid.values.null_keys import NullKeys
from metastore.rules.transactions.acid_directories import SeenWriteIds
from metastore.spark.reading.misplaced import by_spark
from metastore.spark.reading.reading import time_zone
from metastore.spark.session.catalog import AcidTableInfo
from metastore.spark.transaction.spark_transaction import SparkTransaction


def rewritten(
    transaction: SparkTransaction, table: AcidTableInfo, write_ids: SeenWriteIds, selected: Selected, part: str
) -> list[tuple[Bucket, str | None]]:
    """Write each bucket into a file of the staging folder; return the files' paths, None for a bucket that Spark itself must write.

    These are buckets with values that Python can not copy (`CanNotCopy`), and all buckets where the executors lack a requirement: this
    package, fsspec's driver for the warehouse, its credentials. Rows in another bucket's file are written into the file of the bucket that
    they name. FileError.
    """
    found = selected.by_bucket(misplaced(transaction.files, selected, by_spark(transaction.spark)))
    if not found:
        return []
    folder = staging(transaction.txn.id, table, part)
    transaction.files.make(folder)
    columns = [(column.name.lower(), column.type) for column in table.table.sd.cols]
    form = Form(columns, OrcOptions.of(table.parameters), write_ids, (time_zone(transaction.spark),), folder)
    context = transaction.spark.sparkContext
    logger = log.get("metastore.spark")
    try:
        written = context.parallelize(found, len(found)).map(partial(_rewrite, form, part == DELETES)).collect()
    except (Py4JJavaError, PySparkException) as error:  # the second since Spark 4.1
        reason = str(error.java_exception if isinstance(error, Py4JJavaError) else error)
        logger.warning("executors can not rewrite buckets", table=table.full_name, reason=reason)
        return [(bucket, None) for bucket in found]
    for bucket, (path, reason) in zip(found, written, strict=True):
        if path is None:
            logger.info("the bucket is rewritten by Spark's own writer", table=table.full_name, bucket=bucket.number, reason=reason)
    return [(bucket, path) for bucket, (path, _) in zip(found, written, strict=True)]


def _rewrite_rows(form: Form, bucket: Bucket, name: str) -> str:
    try:
        return rewrite_rows(form, bucket, name)
    except NullKeys:
        from metastore.acid.rewriting.row_copying import copy_rows  # needs pyorc, which executors may lack

        return copy_rows(form, bucket, name)


def _rewrite(form: Form, deletes: bool, bucket: Bucket) -> tuple[str | None, str]:
    """Return the path of the file, or None and the reason. A task that is repeated writes another file."""
    name = f"{bucket.number}.{TaskContext.get().taskAttemptId()}"  # type: ignore[union-attr]  # a task has one
    try:
        return (rewrite_deletes if deletes else _rewrite_rows)(form, bucket, name), ""
    except CanNotCopy as error:
        return None, str(error)
    except Exception as error:  # noqa: BLE001 # Spark may be able to do more than Python: a missing driver, missing credentials
        return None, f"{type(error).__name__}: {error}"
