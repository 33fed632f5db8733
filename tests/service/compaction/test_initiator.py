import shutil
from pathlib import Path

import pytest

from metastore.idl import CompactionInfoStruct, CompactionType, ShowCompactRequest, ShowCompactResponseElement
from metastore.service.call.context import Call, Metastore
from metastore.service.call.names import TableName
from metastore.service.catalog.databases import alter_database, get_database
from metastore.service.catalog.partitions.partitions import get_partition
from metastore.service.catalog.tables.alter_table import alter_table
from metastore.service.catalog.tables.tables import drop_table, get_table
from metastore.service.compaction import compaction_workers, compactions
from metastore.service.compaction.initiator import initiate
from tests.support.acid import acid_steps as acid
from tests.support.catalog.catalog import MetastoreMaker, Statements, add_partitions, call_of, make_table
from tests.support.databases.statement_counts import StatementCounts

MAJOR, MINOR = CompactionType.MAJOR, CompactionType.MINOR
INSERT_ONLY = {"transactional": "true", "transactional_properties": "insert_only"}


def acid_table(call: Call, name: str = "t", keys: tuple[tuple[str, str], ...] = (), **parameters: str) -> tuple[TableName, Path]:
    """Make a transactional table; return its name and folder."""
    made = make_table(call, name, keys=keys, parameters={**INSERT_ONLY, **parameters})
    return made, Path(get_table_of(call, made).sd.location.removeprefix("file:"))


def get_table_of(call: Call, name: TableName):  # type: ignore[no-untyped-def]
    call.client.release.request_methods = True
    return get_table(call, name)


def write(call: Call, name: TableName, folder: Path, times: int = 1, **options: object) -> None:
    for _ in range(times):
        acid.write(call.metastore, name, str(folder), **options)  # type: ignore[arg-type]


def queue(call: Call) -> list[tuple[str, str | None, int, str]]:
    found = compactions.show(call, ShowCompactRequest(order="compactionid"))
    return [(each.tablename, each.partitionname, each.type, each.state) for each in found]


def entries(call: Call) -> list[ShowCompactResponseElement]:
    return compactions.show(call, ShowCompactRequest(order="compactionid"))


def test_many_deltas_without_a_base_are_compacted_as_a_whole(call: Call) -> None:
    name, folder = acid_table(call)
    write(call, name, folder, 10)
    assert (initiate(call.metastore), queue(call)) == (0, [])
    write(call, name, folder)
    assert initiate(call.metastore) == 1
    assert queue(call) == [("t", None, MAJOR, "initiated")]
    (entry,) = entries(call)
    assert (entry.runAs, entry.initiatorId, entry.poolName) == ("alice", "metastore", "default")
    assert initiate(call.metastore) == 0, "what is queued is not queued again"


def test_many_deltas_on_a_large_base_are_compacted_among_themselves(call: Call) -> None:
    name, folder = acid_table(call)
    write(call, name, folder, 2)
    acid.fill(folder / "base_0000002_v0000001", 100_000)
    write(call, name, folder, 11)
    assert initiate(call.metastore) == 1
    assert queue(call) == [("t", None, MINOR, "initiated")]


def test_large_deltas_are_compacted_with_the_base(call: Call) -> None:
    name, folder = acid_table(call)
    write(call, name, folder)
    acid.fill(folder / "base_0000001_v0000001", 1000)
    write(call, name, folder, size=100)
    assert initiate(call.metastore) == 0
    write(call, name, folder, size=1)
    assert initiate(call.metastore) == 1
    assert queue(call) == [("t", None, MAJOR, "initiated")]


def test_notes_of_the_tasks_of_a_running_statement_are_not_data(call: Call) -> None:
    name, folder = acid_table(call)
    write(call, name, folder, 2, size=100)
    acid.fill(folder / "-tmp.delta_0000003_0000003_0000", 10)
    assert (initiate(call.metastore), queue(call)) == (0, [])


def test_partitions_are_looked_at_each_for_itself(call: Call) -> None:
    name, _ = acid_table(call, keys=(("k", "string"),))
    add_partitions(call, name, [["1"], ["2"], ["3"]])
    for value, times in (("1", 11), ("2", 3), ("3", 12)):
        folder = Path(get_partition(call, name, [value]).sd.location.removeprefix("file:"))
        write(call, name, folder, times, partition=f"k={value}")
    acid.complete(call.metastore, name, acid.begin(call.metastore), 99, "k=9")
    acid.complete(call.metastore, name, acid.begin(call.metastore), 99)
    assert initiate(call.metastore) == 2
    assert queue(call) == [("t", "k=1", MAJOR, "initiated"), ("t", "k=3", MAJOR, "initiated")]


def test_parameters_of_table_and_database_decide(call: Call) -> None:
    few, folder = acid_table(call, "few", **{"compactorthreshold.hive.compactor.delta.num.threshold": "1"})
    write(call, few, folder, 2)
    pooled = {"compactorthreshold.hive.compactor.delta.num.threshold": "50", "hive.compactor.worker.pool": "p"}
    many, folder = acid_table(call, "many", **pooled)
    write(call, many, folder, 11)
    silent, folder = acid_table(call, "silent", NO_AUTO_COMPACTION="true")
    write(call, silent, folder, 11)
    write(call, make_table(call, "plain"), folder.parent / "plain", 11)
    assert initiate(call.metastore) == 1
    assert queue(call) == [("few", None, MAJOR, "initiated")]
    database = get_database(call, "hive", "default")
    database.parameters = {"no_auto_compaction": "true", "hive.compactor.worker.pool": "pool"}
    alter_database(call, "hive", "default", database)
    loud, folder = acid_table(call, "loud", no_auto_compaction="false")
    write(call, loud, folder, 11)
    quiet, folder = acid_table(call, "quiet")
    write(call, quiet, folder, 11)
    assert initiate(call.metastore) == 1
    assert [(each.tablename, each.poolName) for each in entries(call)] == [("few", "default"), ("loud", "pool")]


def test_only_changed_tables_are_inspected_again(call: Call, counts: StatementCounts) -> None:
    for number in range(5):
        name, folder = acid_table(call, f"old{number}")
        write(call, name, folder, 11, at=1)
    name, folder = acid_table(call, "new")
    write(call, name, folder, 11)
    since = acid.now_ms()
    assert counts("one table", lambda: initiate(call.metastore, since)) == 1
    assert queue(call) == [("new", None, MAJOR, "initiated")]
    assert counts("nothing", lambda: initiate(call.metastore, since + 100_000)) == 0
    assert initiate(call.metastore) == 5


def test_statements_do_not_grow_with_the_writes_of_a_table(call: Call, statements: Statements) -> None:
    counts = []
    for table, times in (("a", 2), ("b", 9)):
        name, folder = acid_table(call, table)
        write(call, name, folder, times)
        with statements() as seen:
            initiate(call.metastore, acid.now_ms() - 1)
        counts.append(len(seen))
        drop_table(call, name, delete_data=True)
    assert counts[0] == counts[1], counts


def test_open_and_aborted_writes_do_not_count(call: Call) -> None:
    name, folder = acid_table(call)
    write(call, name, folder, 8)
    write(call, name, folder, 5, state="a")
    write(call, name, folder, 1, state="o")
    write(call, name, folder, 9)
    assert initiate(call.metastore) == 0, "a compaction would reach to the open transaction only"


def test_a_table_that_can_not_be_inspected_is_noted_once_with_the_reason(call: Call) -> None:
    name, folder = acid_table(call)
    write(call, name, folder, 11)
    shutil.rmtree(folder)
    folder.write_text("a file")
    for _ in range(3):
        assert initiate(call.metastore) == 0
    (entry,) = entries(call)
    assert (entry.state, entry.errorMessage) == ("did not initiate", f"file:{folder} can not be listed: Not a directory")
    folder.unlink()
    write(call, name, folder, 11)
    assert initiate(call.metastore, acid.now_ms() + 100_000) == 1, "what failed is tried again without a new write"


def test_a_threshold_that_is_no_number_is_noted(call: Call) -> None:
    name, folder = acid_table(call, **{"compactorthreshold.hive.compactor.delta.pct.threshold": "much"})
    write(call, name, folder)
    initiate(call.metastore)
    (entry,) = entries(call)
    assert "compactorthreshold.hive.compactor.delta.pct.threshold=much is not a number" in entry.errorMessage


def test_a_table_without_location_is_noted(call: Call) -> None:
    name, folder = acid_table(call)
    write(call, name, folder)
    table = get_table_of(call, name)
    table.sd.location = None
    call.metastore.database.write(lambda session: blank(session, table.id))
    for _ in range(2):
        initiate(call.metastore)
    (entry,) = entries(call)
    assert entry.errorMessage == "hive.default.t has no location: its files can not be looked at"


def blank(session, key: int) -> None:  # type: ignore[no-untyped-def]
    import sqlalchemy as sa

    from metastore.store.schema.model import tables

    session.execute(sa.update(tables).where(tables.c.id == sa.bindparam("key")).values(location=sa.null()), key=key)


def fail(call: Call) -> None:
    found = compaction_workers.find_next(call, "w")
    assert found is not None
    compaction_workers.mark_failed(call, CompactionInfoStruct(id=found.id, errorMessage="no memory"))


@pytest.fixture
def failing(call: Call) -> Call:
    """A call on a table whose compaction failed twice."""
    name, folder = acid_table(call)
    write(call, name, folder, 11)
    for _ in range(2):
        assert initiate(call.metastore) == 1
        fail(call)
    return call


def test_after_failures_in_a_row_it_gives_up(failing: Call, make_metastore: MetastoreMaker) -> None:
    for _ in range(3):
        assert initiate(failing.metastore) == 0
    assert [each.state for each in entries(failing)] == ["failed", "failed", "did not initiate"]
    assert "the last 2 attempts to compact it failed" in entries(failing)[-1].errorMessage
    later = make_metastore(compactor_retry_time=0.001)
    while not initiate(later):
        pass
    assert entries(failing)[-1].state == "initiated"


def test_a_success_makes_up_for_failures(failing: Call) -> None:
    from metastore.idl import CompactionRequest

    asked = compactions.compact(failing, CompactionRequest(dbname="default", tablename="t", type=MAJOR))
    assert asked.accepted, "by hand it is always tried"
    found = compaction_workers.find_next(failing, "w")
    assert found is not None
    compaction_workers.mark_compacted(failing, found)
    compaction_workers.mark_cleaned(failing, found)
    assert initiate(failing.metastore) == 1


def test_dropped_and_changed_tables_are_passed_over(call: Call, metastore: Metastore) -> None:
    name, folder = acid_table(call)
    write(call, name, folder, 11)
    table = get_table_of(call, name)
    table.parameters["no_auto_compaction"] = "true"
    alter_table(call, name, table)
    assert initiate(metastore) == 0
    drop_table(call, name, delete_data=True)
    write(call_of(metastore), name, folder, 1)
    assert (initiate(metastore), queue(call)) == (0, [])
