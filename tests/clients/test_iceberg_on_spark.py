"""Iceberg's Java library in Spark works on a server, and no confirmed commit of two drivers is lost, with locks or not.

Needs Java 17, Maven and an interpreter with PySpark 3.5 or 4.0: METASTORE_TEST_SPARK names one (its `python`); without it this
interpreter is taken, or one that `examples/run --pyspark 4.0.1` has left.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.servers.servers import ROOT, Server

ICEBERG = "1.10.0"
SCALA = {"3.5": "2.12", "4.0": "2.13"}
"""The version of Scala of each release of Spark that Iceberg has a jar for."""
SCRIPT = Path(__file__).with_name("iceberg_on_spark.py")


def release(python: str | Path) -> str | None:
    """Return the release of PySpark of an interpreter, such as 3.5; None if it has none that Iceberg supports."""
    ended = subprocess.run([python, "-c", "import pyspark; print(pyspark.__version__)"], capture_output=True, text=True, check=False)
    found = ".".join(ended.stdout.split(".")[:2])
    return found if found in SCALA else None


def interpreter() -> tuple[str, str]:
    named = os.environ.get("METASTORE_TEST_SPARK")
    for python in [named] if named else [sys.executable, *sorted(ROOT.glob(".venv-spark*/bin/python"))]:
        if found := release(python):
            return str(python), found
    if named:
        pytest.fail(f"METASTORE_TEST_SPARK={named} has no PySpark {' or '.join(SCALA)}")
    pytest.skip("no interpreter with PySpark 3.5 or 4.0; set METASTORE_TEST_SPARK")


def iceberg_jar(spark: str, folder: Path) -> Path:
    """Fetch the jar, or take it from Maven's cache."""
    if shutil.which("mvn") is None:
        pytest.skip("mvn is missing: it fetches Iceberg's jar")
    name = f"iceberg-spark-runtime-{spark}_{SCALA[spark]}"
    goal = f"-Dartifact=org.apache.iceberg:{name}:{ICEBERG}"
    subprocess.run(["mvn", "-q", "-B", "dependency:copy", goal, f"-DoutputDirectory={folder}"], cwd=folder, check=True)
    return folder / f"{name}-{ICEBERG}.jar"


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_iceberg_on_spark(server: Server, warehouse: Path, tmp_path: Path) -> None:
    python, spark = interpreter()
    ended = subprocess.run(
        [python, SCRIPT, server.uri, f"file:{warehouse}", iceberg_jar(spark, tmp_path)],
        env={**os.environ, "PYSPARK_PYTHON": python}, cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    errors = [line for line in ended.stderr.splitlines() if not line.startswith("\tat ") and " WARN " not in line]
    assert ended.returncode == 0, "\n".join([ended.stdout, *errors[-60:]])
    assert "all as expected" in ended.stdout
