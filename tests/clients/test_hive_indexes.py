"""Hive 2.3 makes, lists, alters and drops indexes. Its own classes, which are part of PySpark, make the calls of its CREATE INDEX."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.support.engines import hive
from tests.support.servers.servers import Server

pytestmark = pytest.mark.slow

PROGRAM = Path(hive.__file__).with_name("HiveIndexes.java")


def test_hive_s_statements_about_indexes(server: Server, warehouse: Path, tmp_path: Path) -> None:
    pyspark = pytest.importorskip("pyspark")
    jars = Path(pyspark.__file__).parent / "jars" / "*"
    opened = [f"--add-opens={package}=ALL-UNNAMED" for package in hive.OPENED]
    done = subprocess.run(
        ["java", *opened, "-cp", str(jars), str(PROGRAM), server.uri, str(tmp_path / "scratch")],
        capture_output=True, text=True, check=False, cwd=tmp_path, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    assert [line for line in done.stdout.splitlines() if line.startswith(("made", "altered", "dropped", "left", "refused", "tables"))] == [
        "made [i of t in t_i] tables [t, t_i]",
        "altered 1",
        "refused org.apache.hadoop.hive.ql.metadata.HiveException: Index i already exists on table default.t",
        "dropped true",
        "left [] tables [t]",
        "dropped false",
        "refused Index i doesn't exist. ",
        "tables []",
    ]
    assert list(warehouse.iterdir()) == []
