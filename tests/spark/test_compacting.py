"""What a compaction sorts by orders rows as their ids do."""

from __future__ import annotations

from random import Random

from pyspark.sql import SparkSession

from metastore.acid import buckets
from metastore.spark.compacting import _rank


def test_a_rank_never_contradicts_the_row_id(spark: SparkSession) -> None:
    random = Random(7)
    bucket, highest = 3, 9_000_000
    write_ids = [0, 1, 2, 611_391, 611_393, 611_394, 8_999_999, highest]
    numbers = [0, 3, *(buckets.encode(each, statement) for each in (0, 2, 3, 4, 4095) for statement in (0, 1, 4094, 4095))]
    rows = [0, 1, 77, (1 << 28) - 2, (1 << 28) - 1, 1 << 28, 1 << 40]
    ids = [(random.choice(write_ids), random.choice(numbers), random.choice(rows)) for _ in range(3000)]
    frame = spark.createDataFrame(ids, "originalTransaction bigint, bucket int, rowId bigint")
    ranked = frame.select("*", _rank(bucket, highest).alias("rank")).orderBy("originalTransaction", "bucket", "rowId").collect()
    ranks = [row["rank"] for row in ranked]
    assert ranks == sorted(ranks)
    own = {
        row[:3]: row["rank"] for row in ranked if row[0] > 611_393 and buckets.decode(row[1]) == bucket < row[1] and row[2] < (1 << 28) - 1
    }
    assert len(set(own.values())) == len(own) > 40
