"""A base without rows hides the rows that were truncated or dropped without a deletion, once its transaction has committed."""

from __future__ import annotations

import json
from pathlib import Path

import orjson
import pytest

from metastore.errors import MetaError
from metastore.idl import AbortTxnRequest, AllocateTableWriteIdsRequest, CommitTxnRequest, NotificationEventRequest, OpenTxnRequest
from metastore.listeners.notifications.log import message_text
from metastore.rules.transactions.acid_directories import FolderEntry, SeenWriteIds, decide
from metastore.service.call.context import Call
from metastore.service.call.names import TableName
from metastore.service.catalog.partitions.drop_partitions import drop_partitions
from metastore.service.catalog.partitions.partitions import get_partition
from metastore.service.catalog.tables.tables import truncate_table
from metastore.service.compaction.abort_cleaner import clean_aborted
from metastore.service.operations import notifications
from metastore.service.transactions import transactions, write_ids
from metastore.service.transactions.commit import commit_transaction
from metastore.warehouse import acid as folders
from tests.service.compaction.test_initiator import acid_table, get_table_of
from tests.support.acid.acid_steps import fill
from tests.support.catalog.catalog import MetastoreMaker, add_partitions, call_of, make_table

KEEPS_DATA = {"truncateSkipDataDeletion": "true"}


def begin(call: Call) -> tuple[int, int]:
    """Open a transaction that writes to the table; return it and its write id."""
    (transaction,) = transactions.open_transactions(call, OpenTxnRequest(num_txns=1, user="u", hostname="h"))
    request = AllocateTableWriteIdsRequest(dbName="default", tableName="t", txnIds=[transaction])
    return transaction, write_ids.allocate_write_ids(call, request)[transaction]


def filled(call: Call, *keys: tuple[str, str]) -> tuple[TableName, Path]:
    """Make a table with one committed delta, in the partition `k=1` if it has keys; return its name and the delta's folder."""
    name, folder = acid_table(call, keys=keys)
    if keys:
        add_partitions(call, name, [["1"]])
        folder /= "k=1"
    transaction, write_id = begin(call)
    fill(folder / f"delta_{write_id:07d}_{write_id:07d}")
    commit_transaction(call, CommitTxnRequest(txnid=transaction))
    return name, folder


def read(call: Call, folder: Path) -> list[str]:
    """Return the directories with rows that a new reader reads."""
    (seen,) = write_ids.get_valid_write_ids(call, ["default.t"])
    listed = [FolderEntry(*each) for each in folders.listing(call.warehouse, f"file:{folder}")]
    state = decide(listed, SeenWriteIds(seen.writeIdHighWaterMark, frozenset(seen.invalidWriteIds)))
    found = [each.name for each in ([state.base] if state.base is not None else []) + state.deltas]  # type: ignore[operator]
    return [each for each in found if any(not file.name.startswith("_") for file in (folder / each).iterdir())]


def mark(folder: Path, write_id: int) -> str:
    """Return the reason for a base without rows, from the only file in it."""
    (file,) = (folder / f"base_{write_id:07d}").iterdir()
    assert file.name == "_metadata_acid"
    found: dict[str, str] = json.loads(file.read_text())
    assert found.pop("thisFileVersion") == "0"
    return found.pop("dataFormat")


@pytest.mark.parametrize("commits", [True, False])
@pytest.mark.parametrize("named", [None, True, False])
def test_rows_that_hive_4_truncates_are_read_until_its_transaction_commits(
    make_metastore: MetastoreMaker, call: Call, named: bool | None, commits: bool
) -> None:
    name, folder = filled(call, *([] if named is None else [("k", "string")]))
    rows = read(call, folder)
    assert len(rows) == 1
    transaction, write_id = begin(call)
    truncate_table(call_of(call.metastore, "truncate_table_req"), name, ["k=1"] if named else None, KEEPS_DATA, write_id)
    assert mark(folder, write_id) == "truncated"
    assert read(call, folder) == rows
    event = notifications.get_next(call, NotificationEventRequest(lastEvent=0))[-1]
    message = orjson.loads(message_text(event))
    assert event.eventType == ("ALTER_TABLE" if named is None else "ALTER_PARTITION")
    assert (message["isTruncateOp"], message["writeId"]) == ("true", write_id)
    held = get_table_of(call, name) if named is None else get_partition(call, name, ["1"])
    assert (held.parameters["numRows"], held.writeId) == ("0", write_id)
    if commits:
        commit_transaction(call, CommitTxnRequest(txnid=transaction))
    else:
        transactions.abort_transaction(call, AbortTxnRequest(txnid=transaction))
    assert read(call, folder) == ([] if commits else rows)
    cleaned = clean_aborted(make_metastore(compactor_aborted_number=0))
    assert (cleaned, (folder / f"base_{write_id:07d}").exists()) == ((0, True) if commits else (1, False))
    assert read(call, folder) == ([] if commits else rows)


def test_an_ended_transaction_truncates_nothing(call: Call) -> None:
    name, folder = filled(call)
    transaction, write_id = begin(call)
    transactions.abort_transaction(call, AbortTxnRequest(txnid=transaction))
    with pytest.raises(MetaError, match=f"txnid:{transaction} already aborted"):
        truncate_table(call, name, None, KEEPS_DATA, write_id)
    assert [each.name for each in folder.iterdir()] == ["delta_0000001_0000001"]


def test_a_write_id_that_nobody_has_here_is_taken(call: Call) -> None:
    """Replication sends such a write id for a transaction that has ended here."""
    name, folder = filled(call)
    truncate_table(call, name, None, KEEPS_DATA, 7)
    assert mark(folder, 7) == "truncated"


def test_a_truncation_that_does_not_ask_for_it_deletes(call: Call) -> None:
    name, folder = filled(call)
    _, write_id = begin(call)
    truncate_table(call, name, None, {"truncateSkipDataDeletion": "false"}, write_id)
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("write_id", [None, -1, 0])
def test_without_a_write_id_nothing_is_truncated(call: Call, write_id: int | None) -> None:
    name, folder = filled(call)
    before = get_table_of(call, name).parameters
    with pytest.raises(MetaError, match="send the writeId of the new base"):
        truncate_table(call, name, None, KEEPS_DATA, write_id)
    assert (get_table_of(call, name).parameters, len(list(folder.iterdir()))) == (before, 1)


def test_a_table_without_transactions_keeps_its_data_if_that_is_asked_for(call: Call) -> None:
    name = make_table(call, "t")
    file = Path(get_table_of(call, name).sd.location.removeprefix("file:"), "data")
    file.write_text("x")
    truncate_table(call, name, None, KEEPS_DATA, 5)
    assert [each.name for each in file.parent.iterdir()] == ["data"]


def test_a_partition_that_is_made_again_has_no_rows_of_the_dropped_one(call: Call) -> None:
    name, folder = filled(call, ("k", "string"))
    transaction, write_id = begin(call)
    environment = {"txnId": str(transaction), "writeId": str(write_id)}
    drop_partitions(call, name, ["k=1"], delete_data=False, if_exists=False, environment=environment)
    commit_transaction(call, CommitTxnRequest(txnid=transaction))
    assert mark(folder, write_id) == "dropped"
    add_partitions(call, name, [["1"]])
    assert read(call, folder) == []
    again, new = begin(call)
    fill(folder / f"delta_{new:07d}_{new:07d}")
    commit_transaction(call, CommitTxnRequest(txnid=again))
    assert read(call, folder) == [f"delta_{new:07d}_{new:07d}"]


def test_a_drop_that_keeps_data_outside_of_a_transaction_hides_nothing(call: Call) -> None:
    name, folder = filled(call, ("k", "string"))
    drop_partitions(call, name, ["k=1"], delete_data=False, if_exists=False)
    assert [each.name for each in folder.iterdir()] == ["delta_0000001_0000001"]


def test_a_base_that_can_not_be_made_fails_the_call_and_hides_nothing(call: Call) -> None:
    name, folder = filled(call)
    rows, before = read(call, folder), get_table_of(call, name)
    transaction, write_id = begin(call)
    (folder / f"base_{write_id:07d}").write_text("in the way")
    with pytest.raises(MetaError, match=f"base_{write_id:07d}"):
        truncate_table(call, name, None, KEEPS_DATA, write_id)
    transactions.abort_transaction(call, AbortTxnRequest(txnid=transaction))
    (folder / f"base_{write_id:07d}").unlink()
    assert read(call, folder) == rows
    assert get_table_of(call, name) == before
