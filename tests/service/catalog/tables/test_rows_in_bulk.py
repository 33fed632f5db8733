"""Many rows are written at once, of which some exist: the result is the same on every database, for any number of rows."""

from __future__ import annotations

import pytest

from metastore.errors import MetaError
from metastore.service.call.context import Metastore
from metastore.store.core.database import Session
from metastore.store.drivers.contract import FEW, UniqueViolation
from metastore.store.schema.model import partition_statistics, partitions

STATISTICS = ("partition_id", "engine", "columns", "table_id")
ODD = 'ä\'\\ 😀 %(x)s {"a": 1}'
SIZES = [1, 3, FEW + 50]


def everything(metastore: Metastore, table: str) -> list[tuple[object, ...]]:
    stored = {"partition_statistics": partition_statistics, "partitions": partitions}[table]
    query = stored.select().order_by(*stored.primary_key.columns)
    return [tuple(row) for row in metastore.database.read(lambda session: session.rows(query))]


@pytest.mark.parametrize("size", SIZES)
def test_rows_that_are_there_get_new_values_and_others_come(metastore: Metastore, size: int) -> None:
    def work(session: Session) -> None:
        session.enqueue_upsert(partition_statistics, STATISTICS, [(key, "hive", f"old {key}", 1) for key in range(0, 2 * size, 2)])
        session.enqueue_upsert(partition_statistics, STATISTICS, [(0, "impala", "of another engine", 1)])
        session.enqueue_upsert(partition_statistics, STATISTICS, [(key, "hive", f"{ODD} {key}", 2) for key in range(size)])
        session.enqueue_upsert(partition_statistics, STATISTICS, [])

    metastore.database.write(work)
    new = [(key, "hive", 2, f"{ODD} {key}", None) for key in range(size)]
    old = [(key, "hive", 1, f"old {key}", None) for key in range(0, 2 * size, 2) if key >= size]
    assert everything(metastore, "partition_statistics") == sorted([*new, *old, (0, "impala", 1, "of another engine", None)])


COLUMNS = ("table_id", "id", "name", "partition_values", "parameters", "create_time", "last_access_time")


def put(metastore: Metastore, size: int) -> None:
    rows = [(5, key, f"k={key}", f'["{key}"]', "{}", 1, 0) for key in range(1, size + 1)]
    metastore.database.write(lambda session: session.insert_many(partitions, COLUMNS, rows))


@pytest.mark.parametrize("size", SIZES)
def test_rows_are_replaced(metastore: Metastore, size: int) -> None:
    put(metastore, size + 1)
    rows = [(5, key, f"k={key}", ODD, f'{{"a": {key}}}', key, 0) for key in range(1, size + 1)]
    metastore.database.write(lambda session: session.enqueue_upsert(partitions, COLUMNS, rows))
    assert [(row[1], row[0], *row[2:4], *row[7:10]) for row in everything(metastore, "partitions")] == [
        *rows,
        (5, size + 1, f"k={size + 1}", f'["{size + 1}"]', "{}", 1, 0),
    ]


@pytest.mark.parametrize("size", SIZES)
def test_a_row_can_not_take_the_name_of_another(metastore: Metastore, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    put(metastore, size + 1)
    before = everything(metastore, "partitions")
    rows = [(5, key, f"k={key + 1}", "[]", "{}", 1, 0) for key in range(size, 0, -1)]
    seen: list[type[Exception]] = []
    classify = metastore.database.driver.classify

    def classified(error: BaseException) -> type[Exception] | None:
        kind = classify(error)
        seen.extend([kind] if kind is not None else [])
        return kind

    monkeypatch.setattr(metastore.database.driver, "classify", classified)
    monkeypatch.setattr("metastore.store.core.database.ATTEMPTS", 1)
    with pytest.raises(MetaError, match="database"):
        metastore.database.write(lambda session: session.enqueue_upsert(partitions, COLUMNS, rows))
    assert UniqueViolation in seen
    assert everything(metastore, "partitions") == before
