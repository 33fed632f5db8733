"""Spark reads exactly what a stream has committed while its files still grow, and changes rows of them."""

from __future__ import annotations

from datetime import datetime

import pytest
from pyspark.sql import SparkSession

from metastore.spark import AcidTable
from metastore.spark.compactor import Compactor
from metastore.streaming import StreamingConnection
from tests.servers import Server
from tests.spark.conftest import TableMaker


def ids(table: AcidTable) -> list[int]:
    found = sorted(row.id for row in table.toDF().collect())
    table.close()
    return found


@pytest.mark.parametrize(("keys", "buckets"), [("", 0), ("day string", 0), ("", 3)])
def test_a_batch_is_read_while_it_grows(spark: SparkSession, server: Server, make_table: TableMaker, keys: str, buckets: int) -> None:
    table = make_table("id int, at timestamp", keys, buckets=buckets, bucketed_by=("id",) if buckets else ())

    def records(*numbers: int) -> list[dict[str, object]]:
        extra = {"day": "monday"} if keys else {}
        return [{"id": number, "at": datetime(2024, 7, number, 12), **extra} for number in numbers]  # noqa: DTZ001  # wall-clock time

    with StreamingConnection(server.uri, table.name) as connection, connection.batch(5) as batch:
        with batch.transaction():
            batch.write(records(1, 2, 3))
        batch.begin_next()
        batch.write(records(4, 5, 6))
        assert {row.id: row.at for row in table.toDF().collect()} == {n: datetime(2024, 7, n, 12) for n in (1, 2, 3)}  # noqa: DTZ001
        table.close()
        batch.abort()
        with batch.transaction():
            batch.write(records(7, 8))
        assert ids(table) == [1, 2, 3, 7, 8]
        batch.begin_next()
        batch.write(records(9))
        assert table.delete("id = 2") == 1
        assert table.update("id = 7", {"at": "timestamp'2020-01-01 00:00:00'"}) == 1
        assert ids(table) == [1, 3, 7, 8]
        batch.commit()
    wanted = {number: datetime(2024, 7, number, 12) for number in (1, 3, 8, 9)}  # noqa: DTZ001
    found = {row.id: row.at for row in table.toDF().collect()}
    table.close()
    assert {number: at for number, at in found.items() if number != 7} == wanted
    assert found[7].year in (2019, 2020)
    table.compact("major", "day=monday" if keys else None)
    outcome = Compactor(spark, server.uri).run_once()
    assert outcome is not None
    assert outcome.state == "compacted", outcome
    assert ids(table) == sorted(found)
