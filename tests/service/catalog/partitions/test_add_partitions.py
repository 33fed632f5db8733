"""add_partitions does all or nothing: each way in which it can fail, and the directories and rows afterwards."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from metastore.errors import AlreadyExists, InvalidObject, InvalidOperation, MetaError, MetastoreError
from metastore.idl import FieldSchema, Partition, SerDeInfo, StorageDescriptor
from metastore.listeners.events import AddPartitions, Event
from metastore.service.call.context import Call, Metastore
from metastore.service.call.names import TableName
from metastore.service.catalog.partitions.add_partitions import add_partitions, append_partition, append_partition_by_name
from metastore.service.catalog.partitions.alter_partitions import alter_partitions, rename_partition
from metastore.service.catalog.partitions.partitions import get_partition, get_partition_names, get_partitions
from metastore.service.catalog.tables.tables import drop_table
from metastore.store.drivers.contract import ReferenceViolation
from tests.support.catalog.catalog import MetastoreMaker, call_of, make_table
from tests.support.catalog.recording import Before, Remembering, Within, listening
from tests.support.databases.commits import failing_commits

pytestmark = pytest.mark.on_one_database

NAME = TableName("hive", "default", "t")


def partition(*values: str, location: str | None = None, database: str = "default", table: str = "t", **parameters: str) -> Partition:
    sd = StorageDescriptor(
        cols=[FieldSchema(name="a", type="int")], location=location, inputFormat="in", outputFormat="out",
        serdeInfo=SerDeInfo(serializationLib="lib", parameters={}), parameters={},
    )  # fmt: skip
    return Partition(values=list(values), dbName=database, tableName=table, sd=sd, parameters=parameters)


@pytest.fixture
def base(metastore: Metastore, tmp_path: Path) -> Path:
    """The directory of a table that has the partition p=0/q=0, with a file, and a directory p=9 without a partition."""
    call = call_of(metastore)
    make_table(call, "t", keys=[("p", "string"), ("q", "string")])
    add_partitions(call, NAME, [partition("0", "0")])
    place = tmp_path / "warehouse" / "t"
    (place / "p=0" / "q=0" / "data").write_text("precious")
    (place / "p=9").mkdir()
    return place


def tree(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def rows(call: Call) -> list[list[str]]:
    return [found.values for found in get_partitions(call, NAME)]


BEFORE = {"p=0", "p=0/q=0", "p=0/q=0/data", "p=9"}


def assert_nothing_happened(metastore: Metastore, base: Path) -> None:
    assert tree(base) == BEFORE
    assert rows(call_of(metastore)) == [["0", "0"]]


def failing(metastore: Metastore, error: type[Exception], match: str | None, new: list[Any], *, if_not_exists: bool = False) -> Any:
    """Add partitions, expect the error, and return the only event that the listener received."""
    listener = Remembering()
    call = call_of(listening(metastore, *metastore.listeners.pre, *metastore.listeners.transactional, listener))  # type: ignore[arg-type]
    with pytest.raises(error, match=match):
        add_partitions(call, NAME, new, if_not_exists=if_not_exists)
    ((event, failure),) = listener.seen
    assert isinstance(event, AddPartitions)
    assert isinstance(failure, error)
    return event


def test_rows_directories_and_the_event_of_a_success(metastore: Metastore, base: Path) -> None:
    listener = Remembering()
    added = add_partitions(call_of(listening(metastore, listener)), NAME, [partition("1", "a/b"), partition("9", "1")])
    assert [each.sd.location for each in added] == [f"file:{base}/p=1/q=a%2Fb", f"file:{base}/p=9/q=1"]
    assert tree(base) == BEFORE | {"p=1", "p=1/q=a%2Fb", "p=9/q=1"}
    assert rows(call_of(metastore)) == [["0", "0"], ["1", "a/b"], ["9", "1"]]
    ((event, error),) = listener.seen
    assert error is None
    assert [each.values for each in event.partitions] == [["1", "a/b"], ["9", "1"]]


@pytest.mark.parametrize("veto", [InvalidObject("not today"), InvalidOperation("not today"), MetaError("not today")])
def test_a_veto_of_a_listener(metastore: Metastore, base: Path, veto: MetastoreError) -> None:
    def refuse(event: Event) -> None:
        assert isinstance(event, AddPartitions)
        assert event.table.tableName == "t"
        raise veto

    event = failing(listening(metastore, Before(refuse)), type(veto), "not today", [partition("1", "1")])
    assert [each.values for each in event.partitions] == [["1", "1"]]
    assert_nothing_happened(metastore, base)


@pytest.mark.parametrize("foreign", [{"table": "u"}, {"database": "d"}, {"table": ""}])
def test_a_partition_of_another_table(metastore: Metastore, base: Path, foreign: dict[str, str]) -> None:
    new = [partition("1", "1"), partition("2", "2", **foreign)]  # type: ignore[arg-type]
    failing(metastore, MetaError, "Partition does not belong to target table hive.default.t", new)
    assert_nothing_happened(metastore, base)


@pytest.mark.parametrize("if_not_exists", [False, True])
def test_a_duplicate_in_the_list(metastore: Metastore, base: Path, *, if_not_exists: bool) -> None:
    new = [partition("1", "1"), partition("2", "2"), partition("1", "1")]
    failing(metastore, MetaError, r"Duplicate partitions in the list: hive\.default\.t p=1/q=1", new, if_not_exists=if_not_exists)
    assert_nothing_happened(metastore, base)


def test_an_existing_partition_fails_all(metastore: Metastore, base: Path) -> None:
    event = failing(metastore, AlreadyExists, r"already exists: hive\.default\.t p=0/q=0", [partition("1", "1"), partition("0", "0")])
    assert [each.values for each in event.partitions] == [["1", "1"], ["0", "0"]]
    assert_nothing_happened(metastore, base)


def test_an_existing_partition_is_left_out_with_if_not_exists(metastore: Metastore, base: Path) -> None:
    listener = Remembering()
    call = call_of(listening(metastore, listener))
    added = add_partitions(call, NAME, [partition("1", "1"), partition("0", "0", mark="new"), partition("2", "2")], if_not_exists=True)
    assert [each.values for each in added] == [["1", "1"], ["2", "2"]]
    assert tree(base) == BEFORE | {"p=1", "p=1/q=1", "p=2", "p=2/q=2"}
    assert "mark" not in get_partition(call, NAME, ["0", "0"]).parameters
    (done, no_error), (left_out, error) = listener.seen
    assert no_error is None
    assert [each.values for each in done.partitions] == [["1", "1"], ["2", "2"]]
    assert isinstance(error, AlreadyExists)
    assert [each.values for each in left_out.partitions] == [["0", "0"]]


def test_existing_objects_may_come_twice_with_if_not_exists(metastore: Metastore, base: Path) -> None:
    """Hive 4.0.1's server leaves out existing partitions before it looks for duplicates."""
    listener = Remembering()
    new = [partition("0", "0"), partition("1", "1"), partition("0", "0", mark="new")]
    added = add_partitions(call_of(listening(metastore, listener)), NAME, new, if_not_exists=True)
    assert [each.values for each in added] == [["1", "1"]]
    assert [[each.values for each in event.partitions] for event, _ in listener.seen] == [[["1", "1"]], [["0", "0"]]]
    failing(metastore, AlreadyExists, r"already exists: hive\.default\.t p=0/q=0", new)


def test_only_existing_partitions_with_if_not_exists_change_nothing(metastore: Metastore, base: Path) -> None:
    assert add_partitions(call_of(metastore), NAME, [partition("0", "0")], if_not_exists=True) == []
    assert_nothing_happened(metastore, base)


@pytest.mark.parametrize(
    ("settings", "values", "match"),
    [
        ({"partition_name_whitelist": "[a-z0-9]*"}, ("1", "A"), r"'A' contains a character not matched by whitelist pattern"),
        ({}, ("1", "a\0b"), "contains a NUL character"),
        ({}, ("1",), "Invalid partition key & values"),
        ({}, ("1", "2", "3"), "Invalid partition key & values"),
    ],
)
def test_a_bad_name(
    metastore: Metastore, make_metastore: MetastoreMaker, base: Path, settings: dict[str, Any], values: tuple[str, ...], match: str
) -> None:
    failing(make_metastore(**settings), MetaError, match, [partition("1", "1"), partition(*values)])
    assert_nothing_happened(metastore, base)


def test_values_never_become_a_path_outside_the_table(metastore: Metastore, base: Path, tmp_path: Path) -> None:
    outside = set((tmp_path / "warehouse").iterdir()) | set(tmp_path.iterdir())
    add_partitions(call_of(metastore), NAME, [partition("..", "../../x"), partition("/etc", "file:///x")])
    assert tree(base) == BEFORE | {"p=..", "p=../q=..%2F..%2Fx", "p=%2Fetc", "p=%2Fetc/q=file%3A%2F%2F%2Fx"}
    assert set((tmp_path / "warehouse").iterdir()) | set(tmp_path.iterdir()) == outside


@pytest.mark.parametrize("location", ["file:/x/../y", "relative/path", "file:/x\0y", "file://host/x", "unknown://h/x"])
def test_a_bad_location(metastore: Metastore, base: Path, location: str) -> None:
    failing(metastore, MetaError, "location|names the host|no file system", [partition("1", "1"), partition("2", "2", location=location)])
    assert_nothing_happened(metastore, base)


def test_a_file_in_the_way_in_the_middle_of_the_list(metastore: Metastore, base: Path) -> None:
    (base / "p=2").write_text("a file")
    failing(metastore, MetaError, "p=2 is not a directory or unable to create one", [partition(str(n), "1") for n in (1, 2, 3)])
    assert tree(base) == BEFORE | {"p=2"}
    assert rows(call_of(metastore)) == [["0", "0"]]


def test_a_directory_that_can_not_be_made_in_the_middle_of_the_list(
    metastore: Metastore, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.mkdir
    made: list[str] = []

    def mkdir(path: str, mode: int = 0o777) -> None:
        if path.endswith("p=3/q=1"):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), path)
        real(path, mode)
        made.append(path)

    monkeypatch.setattr(os, "mkdir", mkdir)
    failing(metastore, MetaError, "p=3/q=1 is not a directory or unable to create one: Read-only file system",
            [partition(str(n), "1") for n in (1, 2, 9, 3, 4)])  # fmt: skip
    assert {str(base / "p=1" / "q=1"), str(base / "p=9" / "q=1")} <= set(made), "others were made before it"
    assert_nothing_happened(metastore, base)


def test_an_error_of_a_transactional_listener(metastore: Metastore, base: Path) -> None:
    there: list[set[str]] = []

    def refuse(_event: Event, _session: Any) -> None:
        there.append(tree(base))
        raise InvalidObject("not in this transaction")

    failing(listening(metastore, Within(refuse)), InvalidObject, "not in this transaction", [partition("1", "1"), partition("9", "1")])
    assert there == [BEFORE | {"p=1", "p=1/q=1", "p=9/q=1"}]
    assert_nothing_happened(metastore, base)


def test_a_database_error_at_commit(metastore: Metastore, base: Path) -> None:
    there: list[set[str]] = []
    with failing_commits(metastore.database) as spoil:

        def work(event: Event, session: Any) -> None:
            there.append(tree(base))
            spoil(event, session)

        expected = MetaError if metastore.database.driver.name == "mysql" else ReferenceViolation
        failing(listening(metastore, Within(work)), expected, None, [partition("1", "1"), partition("9", "1")])
    assert there == [BEFORE | {"p=1", "p=1/q=1", "p=9/q=1"}]
    assert_nothing_happened(metastore, base)
    add_partitions(call_of(metastore), NAME, [partition("1", "1")])
    assert tree(base) == BEFORE | {"p=1", "p=1/q=1"}


def test_a_table_that_is_not_there(metastore: Metastore) -> None:
    with pytest.raises(InvalidObject, match=r"database or table default\.missing does not exist"):
        add_partitions(call_of(metastore), TableName("hive", "default", "missing"), [partition("1", table="missing")])


def test_a_table_that_is_dropped_meanwhile(metastore: Metastore, base: Path) -> None:
    def drop(_event: Event) -> None:
        drop_table(call_of(metastore), NAME, delete_data=True)

    failing(listening(metastore, Before(drop)), InvalidObject, "was dropped meanwhile", [partition("1", "1")])
    assert not base.exists()


def test_table_parameters_are_inherited_and_own_ones_win(make_metastore: MetastoreMaker, metastore: Metastore) -> None:
    make_table(call_of(metastore), "t", keys=[("p", "string")], parameters={"kept": "table", "own": "table", "left": "table"})
    inheriting = make_metastore(other={"metastore.partition.inherit.table.properties": "kept, own"})
    (added,) = add_partitions(call_of(inheriting), NAME, [partition("1", own="partition")])
    assert {key: added.parameters.get(key) for key in ("kept", "own", "left")} == {"kept": "table", "own": "partition", "left": None}


@pytest.mark.parametrize(
    ("parameters", "environment", "files"),
    [({}, {}, "2"), ({"DO_NOT_UPDATE_STATS": "true"}, {}, None), ({}, {"DO_NOT_UPDATE_STATS": "true"}, None),
     ({"numFiles": "7", "totalSize": "70"}, {}, "7")],
)  # fmt: skip
def test_statistics_of_data_that_is_there_are_gathered_when_asked(
    metastore: Metastore, base: Path, parameters: dict[str, str], environment: dict[str, str], files: str | None
) -> None:
    folder = base / "p=1" / "q=1"
    folder.mkdir(parents=True)
    for name in ("a", "b", "_c"):
        (folder / name).write_text("12345")
    (added,) = add_partitions(call_of(metastore), NAME, [partition("1", "1", **parameters)], environment=environment)
    stored = get_partition(call_of(metastore), NAME, ["1", "1"]).parameters
    assert added.parameters == stored
    assert stored.get("numFiles") == files
    assert "DO_NOT_UPDATE_STATS" not in stored


def test_a_location_of_its_own_is_made_and_comes_back_as_it_was_given(metastore: Metastore, base: Path, tmp_path: Path) -> None:
    given = f"file://{tmp_path}/elsewhere/x"
    add_partitions(call_of(metastore), NAME, [partition("1", "1", location=given)])
    assert get_partition(call_of(metastore), NAME, ["1", "1"]).sd.location == given
    assert (tmp_path / "elsewhere" / "x").is_dir()
    assert tree(base) == BEFORE


@pytest.mark.parametrize("append", [
    lambda call: append_partition(call, NAME, ["1", "x y"]), lambda call: append_partition_by_name(call, NAME, "q=x y/p=1"),
])  # fmt: skip
def test_an_appended_partition_looks_like_the_table(metastore: Metastore, base: Path, append: Callable[[Call], Partition]) -> None:
    added = append(call_of(metastore))
    assert (added.values, added.sd.location) == (["1", "x y"], f"file:{base}/p=1/q=x y")
    assert [column.name for column in added.sd.cols] == ["a", "b"]
    assert (base / "p=1" / "q=x y").is_dir()
    with pytest.raises(AlreadyExists):
        append(call_of(metastore))
    assert (base / "p=1" / "q=x y").is_dir()


def test_a_view_s_partition_needs_no_storage_descriptor(call: Call) -> None:
    name = make_table(call, "v", keys=[("k", "string")], kind="VIRTUAL_VIEW")
    made = Partition(values=["1"], dbName="default", tableName="v", parameters={"a": "b"})
    add_partitions(call, name, [made])
    assert get_partition(call, name, ["1"]).sd is None
    changed = Partition(values=["1"], dbName="default", tableName="v", parameters={"a": "c"})
    alter_partitions(call, name, [changed])
    found = get_partitions(call, name)
    assert [each.parameters["a"] for each in found if each.sd is None] == ["c"]
    changed.values = ["2"]
    rename_partition(call, name, ["1"], changed)
    assert get_partition_names(call, name) == ["k=2"]
