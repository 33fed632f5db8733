"""The abort cleaner: it deletes the files and folders of aborted transactions without a compaction."""

import shutil
from pathlib import Path

import pytest

from metastore.idl import CompactionType
from metastore.service.call.context import Call
from metastore.service.catalog.partitions.alter_partitions import alter_partitions
from metastore.service.catalog.partitions.drop_partitions import drop_partition
from metastore.service.catalog.partitions.partitions import get_partition
from metastore.service.catalog.tables.tables import drop_table
from metastore.service.compaction import compaction_workers
from metastore.service.compaction.abort_cleaner import clean_aborted
from metastore.service.compaction.cleaner import clean
from metastore.service.transactions.house_keeping import keep_house
from tests.service.compaction.test_initiator import acid_table, get_table_of
from tests.support.acid import acid_steps as acid
from tests.support.acid.cleaning import MAJOR, names, queue_unasked, rush, shown, stuck, work, written
from tests.support.catalog.catalog import MetastoreMaker, add_partitions, call_of, make_table


def test_leavings_of_aborted_transactions_are_deleted_when_they_are_old(call: Call) -> None:
    name, folder = acid_table(call)
    written(call, name, folder, 1)
    written(call, name, folder, 2, state="a", started=1)
    written(call, name, folder, 1)
    written(call, name, folder, 1, state="o", started=1)
    assert clean_aborted(call.metastore) == 1
    assert names(folder) == [f"delta_{number:07d}_{number:07d}_0000" for number in (1, 4, 5)]
    assert [row["write_id"] for row in acid.rows(call.metastore, acid.COMPONENTS)] == [5]
    assert clean_aborted(call.metastore) == 0


def test_the_notes_of_a_killed_statement_go_with_its_delta(call: Call) -> None:
    name, folder = acid_table(call)
    written(call, name, folder, 1)
    written(call, name, folder, 1, state="a", started=1)
    written(call, name, folder, 1, state="o", started=1)
    for number in (2, 3):
        acid.fill(folder / f"-tmp.delta_{number:07d}_{number:07d}_0000")
    assert clean_aborted(call.metastore) == 1
    assert names(folder) == ["-tmp.delta_0000003_0000003_0000", "delta_0000001_0000001_0000", "delta_0000003_0000003_0000"]


def test_leavings_of_aborted_transactions_are_deleted_when_there_are_many(call: Call, make_metastore: MetastoreMaker) -> None:
    name, folder = acid_table(call)
    written(call, name, folder, 3, state="a")
    assert clean_aborted(call.metastore) == 0
    assert clean_aborted(make_metastore(compactor_aborted_number=3)) == 0
    assert clean_aborted(make_metastore(compactor_aborted_number=2)) == 1
    assert names(folder) == []


def test_leavings_of_an_aborted_compactor_are_deleted(call: Call, make_metastore: MetastoreMaker) -> None:
    name, folder = acid_table(call)
    written(call, name, folder, 1)
    work(call, name, folder, 1, ends="a")
    assert clean_aborted(make_metastore(compactor_aborted_number=0)) == 1
    assert names(folder) == ["delta_0000001_0000001_0000"]
    assert acid.rows(call.metastore, acid.COMPONENTS) == []


@pytest.mark.parametrize("keys", [(), (("k", "string"),)])
def test_staging_folders_of_aborted_transactions_are_deleted(
    call: Call, make_metastore: MetastoreMaker, keys: tuple[tuple[str, str], ...]
) -> None:
    name, folder = acid_table(call, keys=keys)
    aborted, opened = acid.begin(call.metastore), acid.begin(call.metastore)
    for transaction in (aborted, opened):
        acid.intend(call.metastore, name, transaction, acid.allocate(call.metastore, name, transaction))
        acid.fill(folder / f".staging_txn_{transaction}_0_insert")
    acid.fill(folder / f".staging_txn_{aborted}_0_delete" / "k=1")
    acid.fill(folder / f".staging_txn_{aborted}1_0_insert")
    acid.end(call.metastore, aborted, "a")
    assert clean_aborted(make_metastore(compactor_aborted_number=0)) == 1
    assert names(folder) == sorted([f".staging_txn_{opened}_0_insert", f".staging_txn_{aborted}1_0_insert"])


def test_staging_folders_of_all_ended_transactions_are_deleted(call: Call, make_metastore: MetastoreMaker) -> None:
    """A commit may have left its folder, and a transaction may be forgotten before a cleaning."""
    name, folder = acid_table(call)
    committed, aborted, forgotten, opened = (acid.begin(call.metastore) for _ in range(4))
    acid.intend(call.metastore, name, aborted, acid.allocate(call.metastore, name, aborted))
    for transaction, state in ((committed, "c"), (aborted, "a"), (forgotten, "a")):
        acid.fill(folder / f".staging_txn_{transaction}_0_insert")
        acid.end(call.metastore, transaction, state)
    acid.fill(folder / f".staging_txn_{opened}_0_insert")
    metastore = make_metastore(compactor_aborted_number=0)
    keep_house(metastore)
    assert clean_aborted(metastore) == 1
    assert names(folder) == [f".staging_txn_{opened}_0_insert"]


def test_staging_folders_outlive_a_partition_until_they_are_cleaned(call: Call, make_metastore: MetastoreMaker) -> None:
    name, folder = acid_table(call, keys=(("k", "string"),))
    add_partitions(call, name, [["1"]])
    written(call, name, folder / "k=1", 1, partition="k=1")
    killed, _ = acid.write(call.metastore, name, str(folder / "k=1"), partition="k=1", state="a")
    acid.fill(folder / f".staging_txn_{killed}_0_insert")
    drop_partition(call, name, ["1"], delete_data=True)
    assert [row["transaction_id"] for row in acid.rows(call.metastore, acid.COMPONENTS)] == [killed]
    assert clean_aborted(make_metastore(compactor_aborted_number=0)) == 1
    assert (names(folder), acid.rows(call.metastore, acid.COMPONENTS)) == ([], [])


def test_an_aborted_dynamic_insert_is_looked_for_in_every_partition(call: Call, make_metastore: MetastoreMaker, tmp_path: Path) -> None:
    name, folder = acid_table(call, keys=(("k", "string"), ("l", "string")))
    add_partitions(call, name, [["1", "1"], ["1", "2"]])
    outside = get_partition(call, name, ["1", "2"])
    transaction = acid.begin(call.metastore)
    number = acid.allocate(call.metastore, name, transaction)
    delta = f"delta_{number:07d}_{number:07d}_0000"
    places = [folder / "k=1" / "l=1", folder / "k=9" / "l=new", Path(outside.sd.location.removeprefix("file:"))]
    for place in places:
        acid.fill(place / delta)
        acid.fill(place / "delta_0000099_0000099")
    acid.intend(call.metastore, name, transaction, number)
    acid.end(call.metastore, transaction, "a")
    assert clean_aborted(make_metastore(compactor_aborted_number=0)) == 1
    assert [names(place) for place in places] == [["delta_0000099_0000099"]] * 3
    assert acid.rows(call.metastore, acid.COMPONENTS) == []


def test_a_delta_that_is_aborted_in_part_is_left_for_a_compaction(call: Call, make_metastore: MetastoreMaker) -> None:
    name, folder = acid_table(call)
    for state in ("c", "a"):
        acid.write(call.metastore, name, str(folder), state=state)
    for delta in folder.iterdir():
        shutil.rmtree(delta)
    acid.fill(folder / "delta_0000001_0000002")
    assert clean_aborted(make_metastore(compactor_aborted_number=0)) == 1
    assert names(folder) == ["delta_0000001_0000002"]
    assert len(acid.rows(call.metastore, acid.COMPONENTS)) == 1
    assert [(each.type, each.state) for each in shown(call)] == [(MAJOR, "initiated")]


@pytest.mark.parametrize("place", ["by default", "below the table", "outside"])
def test_a_delta_of_a_stream_that_is_aborted_in_part_is_left_for_a_compaction_of_its_partition(
    call: Call, make_metastore: MetastoreMaker, tmp_path: Path, place: str
) -> None:
    """The aborted transaction did not declare the partitions that it wrote to."""
    name, folder = acid_table(call, keys=(("k", "string"),))
    where = {"by default": folder / "k=2", "below the table": folder / "another", "outside": tmp_path / "outside"}[place]
    add_partitions(call, name, [["1"], ["2"]])
    if place != "by default":
        moved = get_partition(call, name, ["2"])
        moved.sd.location = f"file:{where}"
        alter_partitions(call, name, [moved])
    committed, aborted = (acid.begin(call.metastore) for _ in range(2))
    numbers = [acid.allocate(call.metastore, name, each) for each in (committed, aborted)]
    acid.fill(folder / "k=1" / "delta_0000001_0000001")
    acid.fill(where / "delta_{:07d}_{:07d}".format(*numbers))
    for each, number, state in zip((committed, aborted), numbers, "ca", strict=True):
        acid.intend(call.metastore, name, each, number)
        acid.end(call.metastore, each, state)
    assert clean_aborted(make_metastore(compactor_aborted_number=0)) == 1
    assert names(where) == ["delta_{:07d}_{:07d}".format(*numbers)]
    assert [(each.partitionname, each.type, each.state) for each in shown(call)] == [("k=2", MAJOR, "initiated")]


@pytest.mark.parametrize("what", ["table", "partition"])
def test_aborted_writes_to_dropped_objects_are_forgotten(call: Call, make_metastore: MetastoreMaker, what: str) -> None:
    name, folder = acid_table(call, keys=(("k", "string"),))
    if what == "table":
        drop_table(call, name, delete_data=True)
    written(call, name, folder / "k=1", 1, partition="k=1", state="a")
    assert clean_aborted(make_metastore(compactor_aborted_number=0)) == 1
    assert acid.rows(call.metastore, acid.COMPONENTS) == []


def test_an_abort_cleaning_that_fails_reports_why_and_waits(
    call: Call, make_metastore: MetastoreMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, folder = acid_table(call)
    written(call, name, folder, 2, state="a")
    patient, hasty = make_metastore(compactor_aborted_number=0), make_metastore(compactor_aborted_number=0, compactor_cleaner_pause=0)
    with monkeypatch.context() as broken:
        stuck(broken, hasty)
        for _ in range(2):
            assert clean_aborted(hasty) == 0
        stuck(broken, patient)
        assert clean_aborted(patient) == 0
    assert clean_aborted(patient) == 0, "its pause is not over"
    (entry,) = shown(call)
    assert (entry.type, entry.state) == (CompactionType.ABORT_TXN_CLEANUP, "ready for cleaning")
    assert "it is stuck" in entry.errorMessage
    assert clean(call.metastore) == 0, "that is not the cleaner's"
    call.metastore.database.write(rush)
    assert clean_aborted(patient) == 1
    assert (shown(call), acid.rows(call.metastore, acid.COMPONENTS)) == ([], [])


def test_tables_that_are_not_transactional_are_never_touched(call: Call, make_metastore: MetastoreMaker) -> None:
    name = make_table(call, "plain")
    folder = Path(get_table_of(call, name).sd.location.removeprefix("file:"))
    (folder / "data").write_text("x")
    acid.fill(folder / "base_0000001")
    queue_unasked(call, name)
    info = compaction_workers.find_next(call_of(call.metastore), "w")
    assert info is not None
    info.highestWriteId = 1
    compaction_workers.mark_compacted(call, info)
    clean(call.metastore)
    assert names(folder) == ["base_0000001", "data"]
    assert shown(call)[0].errorMessage == "hive.default.plain is not transactional: nothing of it is cleaned"
