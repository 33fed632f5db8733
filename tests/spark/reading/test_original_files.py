"""Rows of files from before a table was transactional have the ids that Hive gives them: by the order of the files' paths as text.

`tests/hive4/test_original_files.py` asks Hive itself.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyspark
import pytest
from pyarrow import orc
from pyspark.sql import SparkSession

from metastore.spark import AcidTable
from metastore.spark.compaction.compactor import Compactor
from tests.support.acid.acid_tables import TableMaker

COPIES = ["000000_0", *(f"000000_0_copy_{number}" for number in range(1, 12))]
SPREAD = [
    "000000_0",
    "000000_0_copy_1",
    "a/000000_0",
    "a b/000000_0",
    "HIVE_UNION_SUBDIR_2/000000_0",
    "HIVE_UNION_SUBDIR_10/000000_0",
    "b/000001_0",
]


@pytest.fixture(scope="module", autouse=True)
def registered(spark: SparkSession) -> None:
    if int(pyspark.__version__.split(".")[0]) >= 4:
        from metastore.spark.data_source import register

        register(spark)


def lay(folder: Path, names: list[str]) -> None:
    """Make original files: rows 10 n and 10 n + 1 in file n."""
    for number, name in enumerate(names):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        rows = pa.table({"id": pa.array([number * 10, number * 10 + 1], pa.int32()), "v": ["a", "b"]})
        orc.write_table(rows, str(folder / name))


def read(table: AcidTable) -> list[int]:
    """Return the ids of all rows, after a check that the format reads the same ones. The format needs Spark 4."""
    found = sorted(row.id for row in table.toDF().collect())
    table.close()
    if int(pyspark.__version__.split(".")[0]) >= 4:
        assert sorted(row.id for row in table._spark.read.format("hive_acid").option("table", table.name).load().collect()) == found
    return found


def numbered(table: AcidTable) -> dict[int, tuple[int, int, int]]:
    found = {row.id: tuple(row.row__id) for row in table.toDF(row_id=True).collect()}
    table.close()
    return found


@pytest.mark.parametrize(
    ("names", "order"),
    [
        pytest.param(COPIES, [[0, 1, 10, 11, 2, 3, 4, 5, 6, 7, 8, 9]], id="copies", marks=pytest.mark.slow),
        pytest.param(SPREAD, [[0, 1, 5, 4, 3, 2], [6]], id="directories"),
    ],
)
@pytest.mark.parametrize("keys", ["", pytest.param("p string", marks=pytest.mark.slow)])
def test_ids_deletes_and_compactions(
    spark: SparkSession, make_table: TableMaker, names: list[str], order: list[list[int]], keys: str
) -> None:
    """`order` has the files of each bucket by their numbers."""
    table = make_table("id int, v string", keys)
    if keys:
        table.insert(spark.sql("select 0 id, '' v, 'x' p where false union all select 999, '', 'x'"))
        assert table.delete("id = 999") == 1
    root = Path(table.detail().first().location.removeprefix("file:"))
    lay(root / "p=x" if keys else root, names)
    want = {
        file * 10 + row: (0, 1 << 29 | bucket << 16, place * 2 + row)
        for bucket, files in enumerate(order)
        for place, file in enumerate(files)
        for row in range(2)
    }
    assert numbered(table) == want
    assert table.delete("id in (20, 41)") == 2
    assert table.update("id = 30", {"v": "'new'"}) == 1
    left = sorted({*want} - {20, 41})
    assert read(table) == left
    table.compact("major", "p=x" if keys else None)
    outcome = Compactor(spark, table._uri).run_once()
    assert outcome is not None
    assert outcome.state == "compacted", outcome
    assert read(table) == left
    assert {key: value for key, value in numbered(table).items() if key != 30} == {key: want[key] for key in left if key != 30}
