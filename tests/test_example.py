"""The example job passes on the releases of Spark and with the Hive clients that the server is for."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    "options",
    [
        [],
        ["--pyspark", "4.0.1"],
        ["--pyspark", "3.5.6"],
        ["--hive", "3.1.3"],
        ["--hive", "4.0.1"],
        ["--hive", "4.1.0"],
    ],
    ids=lambda options: " ".join(options) or "newest",
)
def test_the_example_job_passes(options: list[str]) -> None:
    ended = subprocess.run([ROOT / "examples" / "run", "--rows", "50000", *options], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr[-5000:]
    assert "all results as expected" in ended.stdout


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_story_of_a_transactional_table_passes() -> None:
    ended = subprocess.run([ROOT / "examples" / "run", "acid", "--rows", "50000"], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr[-5000:]
    assert "all results as expected" in ended.stdout
