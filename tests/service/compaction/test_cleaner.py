"""The cleaner: it deletes the files that compactions replaced once no reader needs them, and never any others."""

import shutil
from pathlib import Path

import pytest

from metastore.cli.transactions.compactions import reason
from metastore.idl import TxnType
from metastore.service.call.context import Call, Metastore
from metastore.service.call.names import TableName
from metastore.service.catalog.partitions.partitions import get_partition
from metastore.service.catalog.tables.alter_table import alter_table
from metastore.service.catalog.tables.tables import drop_table
from metastore.service.compaction import cleaner
from metastore.service.compaction.abort_cleaner import clean_aborted
from metastore.service.compaction.cleaner import clean
from tests.service.compaction.test_initiator import acid_table, get_table_of
from tests.support.acid import acid_steps as acid
from tests.support.acid.cleaning import MINOR, names, rush, shown, states, stuck, work, written
from tests.support.catalog.catalog import MetastoreMaker, add_partitions
from tests.support.databases.statement_counts import StatementCounts


def test_directories_that_a_compaction_replaced_are_deleted_and_their_writes_forgotten(call: Call) -> None:
    name, folder = acid_table(call)
    written(call, name, folder, 3)
    _, transaction = work(call, name, folder, 3)
    written(call, name, folder, 1)
    (folder / "_tmp").mkdir()
    assert clean(call.metastore) == 1
    assert names(folder) == ["_tmp", f"base_0000003_v{transaction:07d}", "delta_0000004_0000004_0000"]
    (entry,) = shown(call)
    assert (entry.state, entry.errorMessage) == ("succeeded", None)
    assert entry.endTime >= entry.cleanerStart >= entry.commitTime > 0
    assert [row["write_id"] for row in acid.rows(call.metastore, acid.COMPLETED)] == [4]
    assert clean(call.metastore) == 0


def test_an_entry_that_waits_for_another_compaction_says_so(call: Call) -> None:
    name, folder = acid_table(call)
    written(call, name, folder, 2)
    work(call, name, folder, 2)
    assert clean(call.metastore) == 1
    written(call, name, folder, 1)
    _, first = work(call, name, folder, 3)
    reader = acid.begin(call.metastore)
    written(call, name, folder, 1)
    _, second = work(call, name, folder, 4)
    for _ in range(2):
        assert clean(call.metastore) == 0
    _, waits, last = shown(call)
    assert waits.errorMessage == (
        f"waits until all see the results of other compactions of the same files, in transactions {second}; transaction {reader} does not"
    )
    assert reason(waits, {}, 0) == waits.errorMessage
    assert last.errorMessage is None
    acid.end(call.metastore, reader)
    assert clean(call.metastore) == 2
    assert [(each.state, each.errorMessage) for each in shown(call)] == [("succeeded", None)] * 3
    assert names(folder) == [f"base_0000004_v{second:07d}"]
    assert first < reader < second


def test_a_reader_that_began_before_the_compaction_was_committed_keeps_its_files(call: Call) -> None:
    name, folder = acid_table(call)
    written(call, name, folder, 2)
    _, transaction = work(call, name, folder, 2, ends="o")
    reader = acid.begin(call.metastore)
    before = names(folder)
    assert (clean(call.metastore), states(call)) == (0, ["ready for cleaning"]), "the worker's transaction is open"
    acid.end(call.metastore, transaction)
    later = acid.begin(call.metastore)
    assert (clean(call.metastore), names(folder)) == (0, before), "the reader does not see what the worker made"
    (entry,) = shown(call)
    assert entry.nextTxnId > reader
    acid.end(call.metastore, reader, "a")
    assert clean(call.metastore) == 1
    assert names(folder) == [f"base_0000002_v{transaction:07d}"]
    acid.end(call.metastore, later)


def test_a_worker_whose_transaction_is_aborted_has_failed(call: Call) -> None:
    name, folder = acid_table(call)
    written(call, name, folder, 2)
    _, transaction = work(call, name, folder, 2, ends="a")
    before = names(folder)
    assert (clean(call.metastore), names(folder)) == (0, before)
    (entry,) = shown(call)
    assert entry.state == "failed"
    assert entry.errorMessage == f"Transaction {transaction} of the worker was aborted: its files are not used"


def test_aborted_directories_below_the_compaction_go_with_it(call: Call) -> None:
    name, folder = acid_table(call)
    written(call, name, folder, 1)
    written(call, name, folder, 1, state="a")
    written(call, name, folder, 1)
    late, _ = acid.write(call.metastore, name, str(folder), state="a")
    work(call, name, folder, 3)
    assert clean(call.metastore) == 1
    assert names(folder)[1:] == ["delta_0000004_0000004_0000"]
    left = [row["transaction_id"] for row in acid.rows(call.metastore, acid.COMPONENTS) if row["operation"] != "c"]
    assert left == [late], "what is above the compaction may still be there"


@pytest.mark.parametrize("partition", [None, "k=1"])
def test_staging_folders_of_aborted_transactions_go_before_these_are_forgotten(call: Call, partition: str | None) -> None:
    name, table_folder = acid_table(call, keys=(("k", "string"),) if partition else ())
    if partition:
        add_partitions(call, name, [["1"]])
    folder = table_folder / (partition or "")
    written(call, name, folder, 1, partition=partition)
    killed, _ = acid.write(call.metastore, name, str(folder), partition=partition, state="a")
    work(call, name, folder, 2, partition=partition)
    later, _ = acid.write(call.metastore, name, str(folder), partition=partition, state="o")
    for transaction in (killed, later):
        acid.fill(table_folder / f".staging_txn_{transaction}_0_insert")
    assert clean(call.metastore) == 1
    assert [each for each in names(table_folder) if each.startswith(".staging")] == [f".staging_txn_{later}_0_insert"]
    assert [row["transaction_id"] for row in acid.rows(call.metastore, acid.COMPONENTS) if row["operation"] == "i"] == [later]


def test_a_compactor_that_is_aborted_during_a_cleaning_is_not_forgotten(
    call: Call, make_metastore: MetastoreMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, folder = acid_table(call)
    written(call, name, folder, 1)
    _, done = work(call, name, folder, 1)
    silent = acid.begin(call.metastore, kind=TxnType.COMPACTION)
    acid.intend(call.metastore, name, silent, 1, by="c")
    staged = folder / f".staging_txn_{silent}_base"
    acid.fill(staged)
    delete = cleaner.delete

    def abort_first(*args: object) -> None:
        acid.end(call.metastore, silent, "a")
        delete(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(cleaner, "delete", abort_first)
    assert clean(call.metastore) == 1
    monkeypatch.undo()
    assert names(folder) == [staged.name, f"base_0000001_v{done:07d}"]
    assert clean_aborted(make_metastore(compactor_aborted_number=0)) == 1
    assert names(folder) == [f"base_0000001_v{done:07d}"]


def test_aborted_writes_are_remembered_while_a_wide_delta_holds_them(call: Call) -> None:
    name, folder = acid_table(call)
    written(call, name, folder, 2)
    aborted, _ = acid.write(call.metastore, name, str(folder), state="a")
    written(call, name, folder, 1)
    for delta in folder.glob("delta_000000[34]*"):
        shutil.rmtree(delta)
    acid.fill(folder / "delta_0000003_0000004")
    work(call, name, folder, 3)
    assert clean(call.metastore) == 1
    assert "delta_0000003_0000004" in names(folder)
    assert aborted in [row["transaction_id"] for row in acid.rows(call.metastore, acid.COMPONENTS)]


def test_a_minor_compaction_keeps_the_base(call: Call) -> None:
    name, folder = acid_table(call)
    written(call, name, folder, 1)
    acid.fill(folder / "base_-9223372036854775808")
    written(call, name, folder, 1)
    _, transaction = work(call, name, folder, 2, kind=MINOR)
    assert clean(call.metastore) == 1
    assert names(folder) == ["base_-9223372036854775808", f"delta_0000001_0000002_v{transaction:07d}"]


def test_original_files_go_once_there_is_a_base(call: Call) -> None:
    name, folder = acid_table(call)
    (folder / "000000_0").write_text("old")
    acid.fill(folder / "sub")
    written(call, name, folder, 1)
    _, transaction = work(call, name, folder, 1)
    assert clean(call.metastore) == 1
    assert names(folder) == [f"base_0000001_v{transaction:07d}"]


def test_the_notes_of_a_running_statement_stay(call: Call) -> None:
    name, folder = acid_table(call)
    written(call, name, folder, 2)
    _, transaction = work(call, name, folder, 2)
    written(call, name, folder, 1, state="o")
    acid.fill(folder / "-tmp.delta_0000003_0000003_0000")
    assert clean(call.metastore) == 1
    assert names(folder) == ["-tmp.delta_0000003_0000003_0000", f"base_0000002_v{transaction:07d}", "delta_0000003_0000003_0000"]


def test_partitions_are_cleaned_and_the_table_itself_never(call: Call) -> None:
    name, _ = acid_table(call, keys=(("k", "string"),))
    add_partitions(call, name, [["1"], ["2"]])
    folder = Path(get_partition(call, name, ["1"]).sd.location.removeprefix("file:"))
    other = Path(get_partition(call, name, ["2"]).sd.location.removeprefix("file:"))
    for place, value in ((folder, "1"), (other, "2")):
        written(call, name, place, 1, partition=f"k={value}")
    _, transaction = work(call, name, folder, 1, partition="k=1")
    assert clean(call.metastore) == 1
    assert (names(folder), names(other)) == ([f"base_0000001_v{transaction:07d}"], ["delta_0000002_0000002_0000"])
    assert [row["partition"] for row in acid.rows(call.metastore, acid.COMPLETED)] == ["k=2"]
    work(call, name, folder.parent, 2, refused=True)
    assert clean(call.metastore) == 0
    assert names(other) == ["delta_0000002_0000002_0000"]
    assert shown(call)[-1].errorMessage == "hive.default.t has partitions: compact those, each by its name"


@pytest.mark.parametrize("what", ["table", "partition"])
def test_a_missing_object_needs_no_cleaning(call: Call, make_metastore: MetastoreMaker, what: str) -> None:
    name, folder = acid_table(call, keys=(("k", "string"),))
    if what == "table":
        drop_table(call, name, delete_data=True)
    written(call, name, folder, 2, partition="k=9")
    written(call, name, folder, 1, partition="k=9", state="a")
    work(call, name, folder, 2, partition="k=9")
    before = names(folder)
    assert clean(call.metastore) == 1
    assert (states(call), names(folder)) == (["succeeded"], before)
    assert acid.rows(call.metastore, acid.COMPLETED) == []
    assert clean_aborted(make_metastore(compactor_aborted_number=0)) == 1
    assert [row for row in acid.rows(call.metastore, acid.COMPONENTS) if row["operation"] != "c"] == []


def test_no_cleanup_is_respected(call: Call) -> None:
    name, folder = acid_table(call)
    written(call, name, folder, 2)
    work(call, name, folder, 2)
    table = get_table_of(call, name)
    table.parameters["no_cleanup"] = "TRUE"
    alter_table(call, name, table)
    before = names(folder)
    assert (clean(call.metastore), names(folder)) == (0, before)
    (entry,) = shown(call)
    assert (entry.state, entry.errorMessage) == ("refused", "no_cleanup is set on hive.default.t")


def test_a_cleaning_that_fails_waits_longer_each_time_and_gives_up(
    call: Call, make_metastore: MetastoreMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, folder = acid_table(call)
    written(call, name, folder, 2)
    _, transaction = work(call, name, folder, 2)
    hasty = make_metastore(compactor_cleaner_pause=0, compactor_cleaner_retries=2)
    stuck(monkeypatch, hasty)
    reason = f"could not be deleted: file:{folder}/delta_0000002_0000002_0000 can not be deleted: it is stuck"
    for number in (2, 1):
        assert clean(hasty) == 0
        (entry,) = shown(call)
        assert (entry.state, entry.errorMessage, entry.cleanerStart) == ("ready for cleaning", f"1 of {number} {reason}", None)
    assert clean(hasty) == 0
    assert [(each.state, each.errorMessage) for each in shown(call)] == [("failed", f"1 of 1 {reason}")]
    assert names(folder) == [f"base_0000002_v{transaction:07d}", "delta_0000002_0000002_0000"]


def test_a_cleaning_that_failed_is_left_alone_until_its_pause_is_over(
    call: Call, make_metastore: MetastoreMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, folder = acid_table(call)
    written(call, name, folder, 2)
    work(call, name, folder, 2)
    with monkeypatch.context() as broken:
        stuck(broken, call.metastore)
        assert clean(call.metastore) == 0
    assert clean(call.metastore) == 0, "the pause of five minutes is not over"
    assert states(call) == ["ready for cleaning"]
    call.metastore.database.write(rush)
    assert clean(call.metastore) == 1
    assert shown(call)[0].errorMessage is None


def test_two_cleaners_at_a_time_do_no_harm(call: Call, make_metastore: MetastoreMaker, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second cleaner deletes everything just after the first has listed the folder."""
    name, folder = acid_table(call)
    written(call, name, folder, 2)
    _, transaction = work(call, name, folder, 2)
    other = make_metastore()
    from metastore.service.compaction import cleaner

    listed = cleaner.listed  # type: ignore[attr-defined]

    def late(metastore: Metastore, location: str) -> object:
        found = listed(metastore, location)
        monkeypatch.setattr(cleaner, "listed", listed)
        assert clean(other) == 1
        return found

    monkeypatch.setattr(cleaner, "listed", late)
    assert clean(call.metastore) == 0
    assert (names(folder), states(call)) == ([f"base_0000002_v{transaction:07d}"], ["succeeded"])


@pytest.mark.parametrize("times", [1, 30])
def test_statements_do_not_grow_with_the_directories_to_delete(call: Call, counts: StatementCounts, times: int) -> None:
    counts("nothing", lambda: clean(call.metastore))
    name, folder = acid_table(call, "t")
    written(call, name, folder, times)
    work(call, name, folder, times)
    assert counts("a table", lambda: clean(call.metastore)) == 1


@pytest.mark.parametrize("what", ["swapped", "made again"])
def test_files_of_another_table_that_takes_the_folder_meanwhile_stay(call: Call, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    """Deltas of two tables have the same names."""
    name, folder = acid_table(call)
    written(call, name, folder, 3)
    work(call, name, folder, 3)
    other = acid_table(call, "other")[0]
    written(call, other, folder.with_name("other"), 3)
    real = cleaner.listed  # type: ignore[attr-defined]

    def listed(*args: object) -> object:
        found = real(*args)  # type: ignore[arg-type]
        monkeypatch.setattr(cleaner, "listed", real)
        if what == "swapped":
            rename(call, name, "old")
        else:
            drop_table(call, name, delete_data=True)
        rename(call, other, name.table)
        return found

    def rename(call: Call, old: TableName, new: str) -> None:
        table = get_table_of(call, old)
        table.tableName = new
        alter_table(call, old, table)

    monkeypatch.setattr(cleaner, "listed", listed)
    clean(call.metastore)
    assert names(folder) == [f"delta_000000{number}_000000{number}_0000" for number in (1, 2, 3)]
