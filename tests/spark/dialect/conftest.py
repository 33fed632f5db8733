"""A database for each test, and statements in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import pytest
from pyspark.sql import SparkSession

from metastore.client import Client
from metastore.spark import sql

Sql = Callable[..., list[tuple[Any, ...]]]
_NUMBERS = count(1)


@pytest.fixture
def database(spark: SparkSession, client: Client) -> Iterator[str]:
    """An empty database that is the session's current one."""
    name = f"dialect{next(_NUMBERS)}"
    spark.sql(f"CREATE DATABASE {name}")
    spark.sql(f"USE {name}")
    yield name
    spark.sql("USE default")
    for table in client.get_all_tables(name):
        client.drop_table(name, table, True)
    client.drop_database(name, True, True)


@pytest.fixture
def run(spark: SparkSession, database: str) -> Sql:
    """Run a statement and return its rows."""

    def run(text: str, args: Any = None) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in sql(spark, text, args).collect()]

    return run


@pytest.fixture
def emp(run: Sql) -> str:
    """A table with three rows."""
    run("CREATE TABLE emp (id int, name string, salary int) STORED AS ORC TBLPROPERTIES ('transactional'='true')")
    run("INSERT INTO emp VALUES (1, 'Jerry', 5000), (2, 'Tom', 8000), (3, 'Kate', 6000)")
    return "emp"
