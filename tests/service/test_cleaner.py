import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from metastore.cli.compactions import reason
from metastore.errors import MetaError
from metastore.idl import (
    CompactionInfoStruct,
    CompactionRequest,
    CompactionType,
    ShowCompactRequest,
    ShowCompactResponseElement,
    TxnType,
)
from metastore.service import compactions
from metastore.service.abort_cleaner import clean_aborted
from metastore.service.alter_table import alter_table
from metastore.service.cleaner import clean
from metastore.service.context import Call, Metastore
from metastore.service.drop_partitions import drop_partitions
from metastore.service.names import TableName
from metastore.service.partitions import get_partition
from metastore.service.tables import drop_table
from tests.service import acid
from tests.service.conftest import MetastoreMaker, Statements, add_partitions, call_of, make_table
from tests.service.test_initiator import acid_table, get_table_of

MAJOR, MINOR = CompactionType.MAJOR, CompactionType.MINOR


def shown(call: Call) -> list[ShowCompactResponseElement]:
    return compactions.show(call, ShowCompactRequest(order="compactionid"))


def states(call: Call) -> list[str]:
    return [each.state for each in shown(call)]


def names(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


def work(
    call: Call, name: TableName, folder: Path, highest: int, *, partition: str | None = None, kind: int = MAJOR, ends: str = "c"
) -> tuple[CompactionInfoStruct, int]:
    """Compact as a worker does: queue, take, transaction, directory, mark, end the transaction (o leaves it open)."""
    asked = compactions.compact(call, CompactionRequest(dbname=name.database, tablename=name.table, partitionname=partition, type=kind))
    assert asked.accepted, asked.errormessage
    info = compactions.find_next(call, "w")
    assert info is not None
    transaction = acid.begin(call.metastore, kind=TxnType.COMPACTION)
    info.highestWriteId = highest
    compactions.update_state(call, info, transaction)
    made = f"base_{highest:07d}" if kind == MAJOR else f"delta_0000001_{highest:07d}"
    acid.fill(folder / f"{made}_v{transaction:07d}")
    compactions.mark_compacted(call, info)
    if ends != "o":
        acid.end(call.metastore, transaction, ends)
    return info, transaction


def written(call: Call, name: TableName, folder: Path, times: int, **options: object) -> None:
    for _ in range(times):
        acid.write(call.metastore, name, str(folder), **options)  # type: ignore[arg-type]


def test_what_a_compaction_replaced_is_deleted_and_its_writes_forgotten(call: Call) -> None:
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
        f"waits until all see what other compactions of the same files made in transactions {second}; transaction {reader} does not"
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
    assert entry.errorMessage == f"Transaction {transaction} of the worker was aborted: what it made is not used"


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
    work(call, name, folder.parent, 2)
    assert clean(call.metastore) == 0
    assert names(other) == ["delta_0000002_0000002_0000"]
    assert shown(call)[-1].errorMessage == "hive.default.t has partitions: compact those, each by its name"


@pytest.mark.parametrize("what", ["table", "partition"])
def test_what_is_not_there_needs_no_cleaning(call: Call, what: str) -> None:
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


def stuck(monkeypatch: pytest.MonkeyPatch, metastore: Metastore) -> None:
    """Let the file system refuse to delete the second delta."""
    delete: Callable[[str], None] = metastore.warehouse._local.delete

    def refuse(path: str) -> None:
        if "0000002_0000002_" in path:
            raise OSError(5, "it is stuck")
        delete(path)

    monkeypatch.setattr(metastore.warehouse._local, "delete", refuse)


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


def rush(session) -> None:  # type: ignore[no-untyped-def]
    import sqlalchemy as sa

    from metastore.store.schema import compactions as table

    session.execute(sa.update(table).values(retry_after_ms=sa.literal_column("1")))


def test_two_cleaners_at_a_time_do_no_harm(call: Call, make_metastore: MetastoreMaker, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second one cleans all while the first has just read what there is."""
    name, folder = acid_table(call)
    written(call, name, folder, 2)
    _, transaction = work(call, name, folder, 2)
    other = make_metastore()
    from metastore.service import cleaner

    listed = cleaner.listed

    def late(metastore: Metastore, location: str) -> object:
        found = listed(metastore, location)
        monkeypatch.setattr(cleaner, "listed", listed)
        assert clean(other) == 1
        return found

    monkeypatch.setattr(cleaner, "listed", late)
    assert clean(call.metastore) == 0
    assert (names(folder), states(call)) == ([f"base_0000002_v{transaction:07d}"], ["succeeded"])


def test_a_dropped_tables_folder_goes_when_its_readers_are_gone(call: Call) -> None:
    folder = Path(call.metastore.warehouse.root.removeprefix("file:")) / "t.v5"
    acid.fill(folder / "delta_0000001_0000001")
    dropping = acid.begin(call.metastore, kind=TxnType.SOFT_DELETE)
    reader = acid.begin(call.metastore)
    request = CompactionRequest(
        dbname="default", tablename="t", type=MAJOR, properties={"location": f"file:{folder}", "ifPurge": "true"}, runas="alice"
    )
    assert compactions.submit_for_cleanup(call, request, 1, dropping) is True
    assert clean(call.metastore) == 0
    acid.end(call.metastore, dropping)
    assert clean(call.metastore) == 0
    assert folder.exists()
    acid.end(call.metastore, reader)
    assert clean(call.metastore) == 1
    assert not folder.exists()


@pytest.mark.parametrize("partitioned", [False, True])
@pytest.mark.parametrize("later", ["", "table"])
def test_what_a_transaction_drops_without_its_data_goes_when_its_readers_are_gone(call: Call, partitioned: bool, later: str) -> None:
    """As Hive 4 drops where readers take no locks; what else is dropped afterwards does not matter."""
    name, folder = acid_table(call, keys=(("k", "string"),) if partitioned else ())
    if partitioned:
        add_partitions(call, name, [["1"]])
        folder /= "k=1"
    acid.fill(folder / "delta_0000001_0000001")
    reader = acid.begin(call.metastore)
    dropping = acid.begin(call.metastore, kind=TxnType.SOFT_DELETE)
    environment = {"txnId": str(dropping), "writeId": "1", "ifPurge": "true"}
    if partitioned:
        drop_partitions(call, name, ["k=1"], delete_data=False, if_exists=False, environment=environment)
        if later == "table":
            drop_table(call, name, delete_data=False)
    else:
        drop_table(call, name, delete_data=False, environment=environment)
        if later == "table":
            acid_table(call)
            drop_table(call, name, delete_data=False)
    (entry,) = shown(call)
    assert (entry.partitionname, entry.state) == ("k=1" if partitioned else None, "ready for cleaning")
    acid.end(call.metastore, dropping)
    assert clean(call.metastore) == 0
    assert folder.exists()
    acid.end(call.metastore, reader)
    assert clean(call.metastore) == 1
    assert not folder.exists()
    assert states(call) == ["succeeded"]


def test_a_drop_in_a_transaction_that_is_no_number_is_refused(call: Call) -> None:
    name, _ = acid_table(call)
    with pytest.raises(MetaError, match="txnId of the request's environment is 'x'"):
        drop_table(call, name, delete_data=False, environment={"txnId": "x"})


@pytest.mark.parametrize("where", ["at", "inside", "partition"])
def test_a_folder_in_which_something_lies_again_is_not_deleted(call: Call, where: str) -> None:
    name, folder = acid_table(call, keys=(("k", "string"),))
    add_partitions(call, name, [["1"]])
    place = {"at": folder, "inside": folder.parent, "partition": folder / "k=1"}[where]
    request = CompactionRequest(
        dbname="default", tablename="t", partitionname="k=1", type=MAJOR, properties={"location": f"file:{place}"}
    )
    acid.end(call.metastore, acid.begin(call.metastore))
    compactions.submit_for_cleanup(call, request, 1, 0)
    assert clean(call.metastore) == 0
    (entry,) = shown(call)
    assert entry.errorMessage.startswith(f"file:{place} is not deleted: a table, database or partition lies at file:{folder.parent}")
    assert (folder / "k=1").exists()


def test_statements_do_not_grow_with_what_there_is_to_delete(call: Call, statements: Statements) -> None:
    counts = []
    with statements() as idle:
        clean(call.metastore)
    for table, times in (("a", 1), ("b", 30)):
        name, folder = acid_table(call, table)
        written(call, name, folder, times)
        work(call, name, folder, times)
        with statements() as seen:
            assert clean(call.metastore) == 1
        counts.append(len(seen))
    assert (len(idle), counts) == (1, [11, 11]), counts


def test_what_aborted_transactions_left_is_deleted_when_it_is_old(call: Call) -> None:
    name, folder = acid_table(call)
    written(call, name, folder, 1)
    written(call, name, folder, 2, state="a", started=1)
    written(call, name, folder, 1)
    written(call, name, folder, 1, state="o", started=1)
    assert clean_aborted(call.metastore) == 1
    assert names(folder) == [f"delta_{number:07d}_{number:07d}_0000" for number in (1, 4, 5)]
    assert [row["write_id"] for row in acid.rows(call.metastore, acid.COMPONENTS)] == [5]
    assert clean_aborted(call.metastore) == 0


def test_what_aborted_transactions_left_is_deleted_when_it_is_much(call: Call, make_metastore: MetastoreMaker) -> None:
    name, folder = acid_table(call)
    written(call, name, folder, 3, state="a")
    assert clean_aborted(call.metastore) == 0
    assert clean_aborted(make_metastore(compactor_aborted_number=3)) == 0
    assert clean_aborted(make_metastore(compactor_aborted_number=2)) == 1
    assert names(folder) == []


def test_what_an_aborted_compactor_left_is_deleted(call: Call, make_metastore: MetastoreMaker) -> None:
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


@pytest.mark.parametrize("what", ["table", "partition"])
def test_aborted_writes_to_what_was_dropped_are_forgotten(call: Call, make_metastore: MetastoreMaker, what: str) -> None:
    name, folder = acid_table(call, keys=(("k", "string"),))
    if what == "table":
        drop_table(call, name, delete_data=True)
    written(call, name, folder / "k=1", 1, partition="k=1", state="a")
    assert clean_aborted(make_metastore(compactor_aborted_number=0)) == 1
    assert acid.rows(call.metastore, acid.COMPONENTS) == []


def test_an_abort_cleaning_that_fails_tells_why_and_waits(
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
    request = CompactionRequest(dbname="default", tablename="plain", type=MAJOR)
    assert compactions.compact(call, request).accepted
    info = compactions.find_next(call_of(call.metastore), "w")
    assert info is not None
    info.highestWriteId = 1
    compactions.mark_compacted(call, info)
    clean(call.metastore)
    assert names(folder) == ["base_0000001", "data"]
    assert shown(call)[0].errorMessage == "hive.default.plain is not transactional: nothing of it is cleaned"
