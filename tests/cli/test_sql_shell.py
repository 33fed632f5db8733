"""`metastore sql` runs statements of a file, of arguments and as they are typed, and ends with a status that shows a failure."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.engines.spark_session import ARGUMENTS
from tests.support.servers.servers import COMMAND, ROOT, Server, environment, serving

STORY = """
-- a comment; with a semicolon
CREATE TABLE emp (id int, name string) STORED AS ORC TBLPROPERTIES ('transactional' = 'true');
INSERT INTO emp VALUES (1, 'a;b'), (2, NULL);
UPDATE emp SET name = 'new' WHERE id = 1;
SELECT * FROM emp ORDER BY id;
SHOW TABLES"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    home = tmp_path_factory.mktemp("shell")
    with serving("--db", f"sqlite:///{home}/m.db", "--warehouse", str(home / "warehouse"), home=home) as started:
        yield started


def run(server: Server, home: Path, *options: str) -> subprocess.CompletedProcess[str]:
    variables = environment(home, {"PYSPARK_PYTHON": sys.executable})
    return subprocess.run(
        [*COMMAND, "sql", "--uri", server.uri, *ARGUMENTS, *options],
        capture_output=True,
        text=True,
        env=variables,
        cwd=ROOT,
        timeout=200,
        check=False,
    )


def test_a_file_and_its_rows(server: Server, tmp_path: Path) -> None:
    (tmp_path / "story.sql").write_text(STORY)
    done = run(server, tmp_path, "-f", str(tmp_path / "story.sql"))
    assert (done.returncode, done.stdout.splitlines()) == (0, ["1", "1\tnew", "2\tNULL", "default\temp\tfalse"]), done.stderr


@pytest.mark.slow
def test_the_first_failure_ends_it_with_status_1(server: Server, tmp_path: Path) -> None:
    texts = "SELECT 2 AS id, CAST(NULL AS STRING) AS name; SELECT 'é' AS a", "CREATE DATABASE d; USE d; LOCK TABLE emp SHARED; SELECT 2"
    done = run(server, tmp_path, "--json", *(part for text in (*texts, "SELECT 3") for part in ("-e", text)))
    assert done.returncode == 1
    assert [json.loads(line) for line in done.stdout.splitlines()] == [[{"id": 2, "name": None}], [{"a": "é"}]]
    assert "metastore: WrongStatement: LOCK is not supported on Spark" in done.stderr
    assert "\tat " not in done.stderr
    assert run(server, tmp_path, "-f", str(tmp_path / "nowhere.sql")).returncode == 2
    assert run(server, tmp_path, "--conf", "no", "-e", "SELECT 1").returncode == 2


@pytest.mark.slow
def test_statements_are_typed_over_several_lines_and_kept(server: Server, tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    variables = environment(tmp_path, {"PYSPARK_PYTHON": sys.executable, "TERM": "dumb", "COLUMNS": "200"})
    with subprocess.Popen(
        [*COMMAND, "sql", "--uri", server.uri, *ARGUMENTS], stdin=theirs, stdout=theirs, stderr=subprocess.DEVNULL, env=variables, cwd=ROOT
    ) as shell:
        os.close(theirs)
        os.write(ours, b"SELECT 40 +\n2 AS answer;\nSELECT nope;\nSELECT 'still' AS there;\nexit;\n")
        seen = b""
        while True:
            try:
                read = os.read(ours, 4096)
            except OSError:  # the other side is closed
                break
            if not read:
                break
            seen += read
        assert shell.wait(60) == 0
    os.close(ours)
    lines = [line.strip() for line in seen.decode().splitlines()]
    assert {"answer", "42", "there", "still"} <= set(lines)
    assert "2 AS answer;" in (tmp_path / "data/metastore/sql_history").read_text()
