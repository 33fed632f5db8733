"""A statement that failed within a transaction, and was caught, has written nothing; the transaction goes on, or can not be committed."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from metastore.acid.files import FileError
from metastore.acid.transactions import TransactionLost
from metastore.spark import AcidTable, transaction
from metastore.spark.session.assignment import DoesNotFit
from metastore.spark.work import Work
from tests.support.acid.acid_tables import TableMaker

FIRST = "select id, cast(n as tinyint) n, p from values (1, 1, 'x'), (2, 100, 'y') as t(id, n, p)"
OVERFLOW = "n + 100"
"""An expression whose value fits the tinyint of the first row, but not the tinyint of the second."""

Action = Callable[[AcidTable, SparkSession], object]


def merge(set_: dict[str, str], values: dict[str, str]) -> Action:
    def run(table: AcidTable, spark: SparkSession) -> object:
        source = spark.sql("select * from values (1, 'x'), (2, 'y'), (3, 'x') as t(id, p)")
        return table.merge(source, "target.id = source.id").whenMatchedUpdate(set=set_).whenNotMatchedInsert(values=values).execute()

    return run


NEW = "select id, n, p from values (3, 1, 'x'), (4, 1000, 'z') as t(id, n, p)"
CHANGES: dict[str, Action] = {
    "update": lambda table, _: table.update(None, {"n": OVERFLOW}),
    "merge, update": merge({"n": "target.n + 100"}, {"id": "source.id", "n": "1", "p": "source.p"}),
    "merge, insert": merge({"n": "1"}, {"id": "source.id", "n": "1000", "p": "source.p"}),
}
ADDITIONS: dict[str, Action] = {
    "insert": lambda table, spark: table.insert(spark.sql(NEW)),
    "overwrite": lambda table, spark: table.insert_overwrite(spark.sql(NEW)),
}


def found(table: AcidTable) -> list[tuple[object, ...]]:
    with table:
        return sorted(tuple(row) for row in table.toDF().select("id", "n", "p").collect())


def location(table: AcidTable) -> Path:
    """Return the folder of a table."""
    return Path(table.detail().collect()[0].location.removeprefix("file:"))


def directories(table: AcidTable) -> set[str]:
    """Return the directories and files of a table, the new partitions' own left out."""
    folder = location(table)
    return {
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if path.name.startswith((".staging", "base_", "delta_", "delete_delta_"))
    }


@pytest.mark.parametrize("keys", [pytest.param("", marks=pytest.mark.slow), "p string"], ids=["plain", "partitioned"])
@pytest.mark.parametrize(
    ("insert_only", "actions"),
    [(False, {**CHANGES, **ADDITIONS}), pytest.param(True, ADDITIONS, marks=pytest.mark.slow)],
    ids=["full", "insert-only"],
)
def test_a_statement_whose_rows_do_not_fit_writes_nothing(
    spark: SparkSession, make_table: TableMaker, insert_only: bool, actions: dict[str, Action], keys: str
) -> None:
    table = make_table("id int, n tinyint" if keys else "id int, n tinyint, p string", keys, insert_only=insert_only)
    other = make_table("id int", suffix="_other")
    table.insert(spark.sql(FIRST))
    for number, (name, action) in enumerate(actions.items()):
        before = directories(table)
        with transaction(spark) as txn:
            with pytest.raises(DoesNotFit):
                action(txn.table(table.name), spark)
            assert directories(table) == before, name
            if not number:
                txn.table(table.name).insert(spark.sql("select 9 id, 9 n, 'x' p"))
            txn.table(other.name).insert(spark.sql("select 1 id"))
        assert found(table) == [(1, 1, "x"), (2, 100, "y"), (9, 9, "x")], name
    assert other.toDF().count() == len(actions)


def test_a_statement_that_failed_is_tried_again_in_its_transaction(spark: SparkSession, make_table: TableMaker) -> None:
    """Every kind of statement may fail first. The overwrite that succeeds is last, since the transaction can write nothing after it."""
    table = make_table("id int, n tinyint, p string")
    table.insert(spark.sql(FIRST))
    with transaction(spark) as txn:
        inside = txn.table(table.name)
        for name, action in {**CHANGES, **ADDITIONS}.items():
            with pytest.raises(DoesNotFit):
                action(inside, spark)
            assert inside.update("id = 1", {"n": "n + 1"}) == 1, name
        inside.insert_overwrite(spark.sql("select 5 id, 5 n, 'z' p"))
    assert found(table) == [(5, 5, "z")]


def in_the_way(txn: Work, blocked: str, patch: pytest.MonkeyPatch) -> None:
    """Put a file where the transaction is about to make a directory."""
    own = txn.files.make

    def make(path: str) -> None:
        if blocked in path:
            place = Path(path.removeprefix("file:"))
            place.parent.mkdir(exist_ok=True)
            place.write_text("x")
        own(path)

    patch.setattr(txn.files, "make", make)


@pytest.mark.parametrize(
    ("name", "blocked"),
    [
        pytest.param("update", "p=y/delta_", marks=pytest.mark.slow),
        pytest.param("update", "p=x/delete_delta_", marks=pytest.mark.slow),
        pytest.param("insert", "p=y/delta_", marks=pytest.mark.slow),
        ("overwrite", "p=y/base_"),
    ],
)
def test_placed_files_are_removed_when_the_rest_has_no_place(
    spark: SparkSession, make_table: TableMaker, monkeypatch: pytest.MonkeyPatch, name: str, blocked: str
) -> None:
    table = make_table("id int, n tinyint", "p string")
    table.insert(spark.sql(FIRST))
    before = directories(table)
    actions: dict[str, Action] = {
        "update": lambda table, _: table.update(None, {"n": "5"}),
        "insert": lambda table, spark: table.insert(spark.sql(FIRST)),
        "overwrite": lambda table, spark: table.insert_overwrite(spark.sql(FIRST)),
    }
    with transaction(spark) as txn:
        with monkeypatch.context() as patch:
            in_the_way(txn, blocked, patch)
            with pytest.raises(FileError, match="can not be made"):
                actions[name](txn.table(table.name), spark)
        assert directories(table) == before
        assert txn.table(table.name).update("id = 1", {"n": "7"}) == 1
    assert found(table) == [(1, 7, "x"), (2, 100, "y")]


def test_files_that_the_metastore_does_not_hear_of_are_removed(
    spark: SparkSession, make_table: TableMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make_table("id int, n tinyint", "p string")
    table.insert(spark.sql(FIRST))
    before = directories(table)
    with transaction(spark) as txn:
        with monkeypatch.context() as patch:
            patch.setattr(txn.txn, "wrote_partitions", lambda *_: (_ for _ in ()).throw(OSError("no answer")))
            with pytest.raises(OSError, match="no answer"):
                txn.table(table.name).update(None, {"n": "5"})
        assert directories(table) == before
    assert found(table) == [(1, 1, "x"), (2, 100, "y")]


def test_a_transaction_is_not_committed_when_a_failed_statement_stays(
    spark: SparkSession, make_table: TableMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make_table("id int, n tinyint", "p string")
    table.insert(spark.sql(FIRST))

    def whole() -> None:
        with transaction(spark) as txn:
            in_the_way(txn, "p=y/delta_", monkeypatch)
            own = txn.files.delete

            def delete(path: str) -> None:
                if "p=x/" in path:
                    raise FileError(f"{path}: permission denied")
                own(path)

            monkeypatch.setattr(txn.files, "delete", delete)
            with suppress(FileError):
                txn.table(table.name).update(None, {"n": "5"})
            with pytest.raises(TransactionLost, match="permission denied"):
                txn.table(table.name)

    with pytest.raises(TransactionLost, match=r"a statement on default\.\w+ failed .* the transaction can not be committed"):
        whole()
    assert found(table) == [(1, 1, "x"), (2, 100, "y")]
