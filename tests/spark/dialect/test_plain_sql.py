"""Spark's own SQL on a transactional table: each statement is right, or is refused with another way. The table stays whole."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from pyspark.sql import SparkSession

from metastore.client import Client
from metastore.spark.migration import to_transactional
from tests.support.acid.acid_tables import TableMaker, stored_table
from tests.support.servers.servers import Server

pytestmark = pytest.mark.slow

Sql = Callable[[str], object]


@pytest.fixture(scope="module")
def sql(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sql]:
    """Run a statement; returns its rows, or the text of its error."""
    folder = tmp_path_factory.mktemp("plain")
    with subprocess.Popen(
        [sys.executable, "-m", "tests.spark.programs.plain_sql", server.uri, str(folder / "warehouse")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=(folder / "log").open("w"),
        text=True,
        cwd=Path(__file__).parents[3],
    ) as program:
        assert program.stdin is not None
        assert program.stdout is not None
        stdin, stdout = program.stdin, program.stdout

        def run(statement: str) -> object:
            stdin.write(statement + "\n")
            stdin.flush()
            return json.loads(stdout.readline())

        yield run
        stdin.close()


def files_of(client: Client, name: str) -> set[str]:
    """Return the files below a table's directory, its hidden ones left out."""
    folder = Path(urlsplit(stored_table(client, name).sd.location).path)
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file() and not path.name.startswith(".")}


STATEMENTS = [
    "SELECT * FROM {}",
    "INSERT INTO {} VALUES (3, 'c')",
    "INSERT OVERWRITE {} SELECT 9, 'new'",
    "TRUNCATE TABLE {}",
    "ALTER TABLE {} ADD COLUMNS (z int)",
    "DESCRIBE {}",
    "DROP TABLE {}",
]


def test_statements_on_a_full_acid_table_are_refused_with_the_way_to_go(
    sql: Sql, spark: SparkSession, make_table: TableMaker, client: Client
) -> None:
    table = make_table("id int, v string")
    table.insert(spark.createDataFrame([(1, "a"), (2, "b")], "id int, v string"))
    table.delete("id = 2")
    name = table.name.partition(".")[2]
    before = files_of(client, name)
    for statement in STATEMENTS:
        answer = sql(statement.format(f"default.{name}"))
        assert "full ACID table" in str(answer), statement
        assert "metastore.spark" in str(answer), statement
    assert files_of(client, name) == before
    assert [tuple(row) for row in table.toDF().collect()] == [(1, "a")]


def test_a_table_that_nobody_has_written_is_kept_from_plain_files(sql: Sql, make_table: TableMaker, client: Client) -> None:
    """An empty transactional table is protected too. It has the property of the newer bucket hash, as tables of Hive 3 and 4 have."""
    table = make_table("id int, v string", parameters={"bucketing_version": "2"})
    assert "full ACID table" in str(sql(f"INSERT INTO default.{table.name.partition('.')[2]} VALUES (3, 'c')"))
    assert files_of(client, table.name.partition(".")[2]) == set()


@pytest.mark.parametrize("more", ["(id int)", "AS SELECT 1 AS id"])
@pytest.mark.parametrize("properties", ["'transactional'='true'", "'transactional'='true', 'transactional_properties'='insert_only'"])
def test_spark_makes_no_transactional_table(sql: Sql, client: Client, properties: str, more: str) -> None:
    columns, query = (more, "") if more.startswith("(") else ("", more)
    answer = sql(f"CREATE TABLE default.made {columns} STORED AS ORC TBLPROPERTIES ({properties}) {query}")
    assert "to_transactional" in str(answer)
    assert "made" not in client.get_all_tables("default")


def test_a_plain_table_becomes_transactional_by_to_transactional_alone(sql: Sql, spark: SparkSession, client: Client) -> None:
    assert sql("CREATE TABLE default.converted STORED AS ORC AS SELECT 1 AS id") == []
    assert "to_transactional" in str(sql("ALTER TABLE default.converted SET TBLPROPERTIES ('transactional'='true')"))
    assert sql("SELECT * FROM default.converted") == [[1]]
    to_transactional(spark, "default.converted")
    assert "full ACID table" in str(sql("SELECT * FROM default.converted"))
    client.drop_table("default", "converted", True)
