import pytest
from hypothesis import given
from hypothesis import strategies as st

from metastore.idl import DataOperationType, LockType
from metastore.rules.transactions.transactions import Intent, RowChange, conflict, conflict_text, operation_of

OPERATIONS = st.sampled_from("iud")
PARTITIONS = st.sampled_from([None, "p=1", "p=2"])


def intent(operation: str, partition: str | None = None, table: str = "t") -> Intent:
    return Intent("hive", "db", table, partition, operation, 1)


def written(transaction: int, commit_id: int, operation: str = "u", partition: str | None = None, table: str = "t") -> RowChange:
    return RowChange("hive", "db", table, partition, transaction, commit_id, operation)


@given(st.lists(st.tuples(OPERATIONS, PARTITIONS)), st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9), OPERATIONS, PARTITIONS)))
def test_a_conflict_is_a_change_of_one_object_committed_since_the_beginning(
    mine: list[tuple[str, str | None]], theirs: list[tuple[int, int, str, str | None]]
) -> None:
    wanted = [intent(*each) for each in mine]
    committed = [written(*each) for each in theirs]
    expected = any(
        ours.operation in "ud"
        and other.operation in "ud"
        and ours.partition == other.partition
        and other.commit_id >= 5
        and other.transaction != 5
        for ours in wanted
        for other in committed
    )
    found = conflict(5, wanted, committed)
    assert (found is not None) == expected
    if found is not None:
        assert found[0] in wanted
        assert found[1] in committed


def test_other_tables_do_not_meet_and_the_text_names_both() -> None:
    assert conflict(5, [intent("u", table="a")], [written(4, 9, table="b")]) is None
    found = conflict(5, [intent("d", "p=1")], [written(4, 9, "u", "p=1")])
    assert found is not None
    assert conflict_text(5, 10, *found) == ("Aborting [txnid:5,10] due to a write conflict on db/t/p=1 committed by [txnid:4,9] d/u")


@pytest.mark.parametrize(
    ("operation", "lock", "letter"),
    [
        (DataOperationType.INSERT, LockType.SHARED_READ, "i"),
        (DataOperationType.UPDATE, LockType.SHARED_WRITE, "u"),
        (DataOperationType.DELETE, LockType.EXCL_WRITE, "d"),
        (DataOperationType.SELECT, LockType.SHARED_READ, None),
        (DataOperationType.NO_TXN, LockType.EXCLUSIVE, None),
        (None, LockType.SHARED_READ, "i"),
        (None, LockType.SHARED_WRITE, "u"),
        (DataOperationType.UNSET, LockType.EXCLUSIVE, "u"),
    ],
)
def test_operations_of_lock_components(operation: int | None, lock: int, letter: str | None) -> None:
    assert operation_of(operation, lock) == letter
