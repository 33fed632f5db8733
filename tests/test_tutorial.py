"""The tutorial of the documentation works as written, command by command."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.servers.servers import ROOT, environment, serving

BLOCKS = re.findall(r"```(\w+)\n(.*?)```", (ROOT / "docs" / "tutorial.md").read_text(), re.DOTALL)
CLI = f"{Path(sys.executable).parent}/metastore"
START = """
import subprocess, sys
from pyspark.sql import SparkSession

spark = (
    SparkSession.builder.master("local[2]").config("spark.sql.catalogImplementation", "hive").config("spark.ui.enabled", "false")
    .config("spark.hadoop.hive.metastore.uris", "thrift://127.0.0.1:9083").config("spark.sql.warehouse.dir", "WAREHOUSE")
    .config("spark.sql.shuffle.partitions", "1").getOrCreate()
)
"""


@pytest.mark.slow
def test_the_tutorial(tmp_path: Path) -> None:
    warehouse = tmp_path / "data" / "warehouse"
    with serving("--set", f"data_directory={tmp_path / 'data'}", "--warehouse", f"file:{warehouse}", home=tmp_path / "home") as server:

        def here(text: str) -> str:
            return text.replace("thrift://127.0.0.1:9083", server.uri).replace("WAREHOUSE", f"file:{warehouse}")

        program = tmp_path / "tutorial.py"
        python = [text for language, text in BLOCKS if language == "python"]
        program.write_text(
            here(
                "\n".join(
                    [
                        START,
                        *python,
                        "print('ORDERS', any(each.tableName == 'orders' for each in spark.sql('SHOW TABLES IN shop').collect()))",
                    ]
                )
            )
        )
        variables = environment(tmp_path / "home", {"METASTORE_URI": server.uri})
        ran = subprocess.run([sys.executable, program], capture_output=True, text=True, check=False, cwd=tmp_path, env=variables)
        assert ran.returncode == 0, ran.stderr[-4000:]
        assert re.search(r"home\|\s+12\|2026-05-01", ran.stdout)
        assert re.search(r"2\|\s+30\.0", ran.stdout)
        assert "ORDERS True" in ran.stdout

        commands = [line.partition("#")[0] for language, text in BLOCKS if language == "sh" for line in text.splitlines()]
        shown = ""
        for line in commands:
            if line.startswith(("metastore ls", "metastore show", "metastore comp")):
                done = subprocess.run(
                    here(line).replace("metastore ", f"{CLI} ", 1), shell=True, capture_output=True, text=True, check=False, env=variables
                )
                assert done.returncode == 0, (line, done.stderr[-4000:])
                shown += done.stdout
        assert "day=2026-05-02" in shown
        assert "succeeded" in shown or "ready for cleaning" in shown
