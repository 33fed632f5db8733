"""Files that Spark writes have the user metadata of Hive's own writer, true for every stripe, and read as before."""

from __future__ import annotations

from pathlib import Path

import pyorc
import pytest
from pyspark.sql import SparkSession

from metastore.spark import AcidTable
from metastore.spark.compaction.compactor import Compactor
from tests.support.acid.acid_tables import TableMaker

SMALL = {"orc.stripe.size": "8192", "orc.row.index.stride": "1000"}
WIDE = "cast(id as int) id, sha2(cast(id as string), 256) v"


def described(table: AcidTable, kind: str) -> list[tuple[int, str]]:
    """Check the files of directories of a kind; return (stripes, statistics) of each."""
    out = []
    root = Path(table.detail().first().location.removeprefix("file:"))
    for path in sorted(root.glob(f"{kind}*/bucket_*")):
        with path.open("rb") as file:
            reader = pyorc.Reader(file)
            rows = [row[1:4] for row in reader]
            ends = [stripe.row_offset + len(stripe) - 1 for stripe in reader.iter_stripes()]
            metadata = reader.user_metadata
        keys = "".join(f"{write_id},{bucket},{row};" for write_id, bucket, row in (rows[end] for end in ends))
        assert metadata["hive.acid.key.index"].decode() == keys
        assert metadata["hive.acid.version"] == b"2"
        assert rows == sorted(rows)
        assert not path.with_name(f".{path.name}.crc").exists()
        out.append((len(ends), metadata["hive.acid.stats"].decode()))
    return out


@pytest.mark.parametrize(
    ("codec", "kind"), [("none", "minor"), *(pytest.param(codec, "major", marks=pytest.mark.slow) for codec in ("snappy", "zlib"))]
)
def test_every_file_is_described(spark: SparkSession, make_table: TableMaker, codec: str, kind: str) -> None:
    table = make_table("id int, v string", parameters={**SMALL, "orc.compress": codec.upper()})
    table.insert(spark.range(0, 30_000, 1, 1).selectExpr(*WIDE.split(", ", 1)))
    ((stripes, counts),) = described(table, "delta_")
    assert stripes > 3
    assert counts == "30000,0,0"
    table.delete("id % 3 = 0")
    ((stripes, counts),) = described(table, "delete_")
    assert stripes > 1
    assert counts == "0,0,10000"
    table.insert(spark.range(30_000, 36_000, 1, 2).selectExpr(*WIDE.split(", ", 1)))
    assert table.toDF().selectExpr("count(*)", "count(distinct v)", "sum(id)").collect() == [
        (26_000, 26_000, sum(number for number in range(36_000) if number >= 30_000 or number % 3))
    ]
    table.close()
    table.compact(kind)
    outcome = Compactor(spark, table._uri).run_once()
    assert outcome is not None
    assert outcome.state == "compacted", outcome
    whole = described(table, "base" if kind == "major" else "delta_*_v")
    assert sum(int(counts.partition(",")[0]) for _, counts in whole) == (26_000 if kind == "major" else 36_000)
    assert kind == "major" or [counts for _, counts in described(table, "delete_delta_*_v")] == ["0,0,10000"]
    assert max(stripes for stripes, _ in whole) > 3
    assert table.toDF().count() == 26_000
