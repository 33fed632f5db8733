"""Plain files that nobody will read are removed without a trace, after any number of rows."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from metastore.acid.rewriting.bucket_files import PlainOrcFile, PlainParquetFile
from metastore.acid.storage import Storage

SCHEMA = pa.schema([("id", pa.int32()), ("name", pa.string())])


def orc_file(storage: Storage, path: str) -> Any:
    return PlainOrcFile(storage, path, [("id", "int"), ("name", "string")], "snappy")


def parquet_file(storage: Storage, path: str) -> Any:
    return PlainParquetFile(storage, path, SCHEMA, "UTC")


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("make", [orc_file, parquet_file])
@pytest.mark.parametrize("rows", [0, 3])
def test_a_file_is_removed(tmp_path: Path, make: Any, rows: int) -> None:
    storage = Storage(str(tmp_path))
    file = make(storage, f"{tmp_path}/000000_0")
    if rows:
        file.append(1, pa.record_batch([list(range(rows)), ["x"] * rows], schema=SCHEMA))
    file.remove()
    del file
    gc.collect()
    assert list(tmp_path.iterdir()) == []
