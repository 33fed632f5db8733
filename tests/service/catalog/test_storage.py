"""Storage that the server can not reach, and locations without a scheme: external objects are registered, managed ones are refused."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from metastore.errors import InvalidObject, InvalidOperation, MetaError
from metastore.idl import Catalog, Database, Partition, SerDeInfo, StorageDescriptor, Table
from metastore.service.call.context import Call
from metastore.service.call.names import TableName
from metastore.service.catalog import databases
from metastore.service.catalog.catalogs import create_catalog, create_startup_objects, drop_catalog
from metastore.service.catalog.partitions import drop_partitions, partitions
from metastore.service.catalog.partitions.add_partitions import add_partitions as add
from metastore.service.catalog.partitions.alter_partitions import alter_partitions, rename_partition
from metastore.service.catalog.tables import tables
from metastore.service.catalog.tables.alter_table import alter_table
from metastore.service.catalog.tables.create_table import create_table
from metastore.service.operations import notifications
from metastore.warehouse import reach
from tests.support.catalog.catalog import MetastoreMaker, add_partitions, call_of, columns_of, make_table

pytestmark = pytest.mark.on_one_database

EXTERNAL = {"EXTERNAL": "TRUE"}
KEYS = [("k", "string")]
REFUSING = {
    "s3": {
        "endpoint_url": "http://127.0.0.1:9",
        "key": "k",
        "secret": "s",
        "config_kwargs": {
            "connect_timeout": 1,
            "retries": {"max_attempts": 1},
        },
    }
}


@pytest.fixture
def reaching(make_metastore: MetastoreMaker) -> Call:
    """A call to a server whose object store refuses connections."""
    metastore = make_metastore(filesystem_options=REFUSING)
    create_startup_objects(metastore)
    return call_of(metastore)


def make_at(call: Call, name: str, location: str | None, kind: str = "EXTERNAL_TABLE", keys: bool = False) -> TableName:
    sd = StorageDescriptor(
        cols=columns_of(("a", "int")),
        inputFormat="in",
        outputFormat="out",
        location=location,
        serdeInfo=SerDeInfo(serializationLib="lib", parameters={}),
        parameters={},
    )
    create_table(
        call,
        Table(
            dbName="default",
            tableName=name,
            owner="alice",
            sd=sd,
            partitionKeys=columns_of(*KEYS) if keys else [],
            tableType=kind,
            parameters=dict(EXTERNAL) if kind == "EXTERNAL_TABLE" else {},
        ),
    )
    return TableName("hive", "default", name)


def part(call: Call, name: TableName, value: str, location: str | None) -> Partition:
    sd = deepcopy(tables.get_table(call, name).sd)
    sd.location = location  # type: ignore[assignment]  # None is the default place
    return Partition(values=[value], dbName=name.database, tableName=name.table, sd=sd, parameters={})


UNREACHABLE = ["viewfs://c/x", "dbfs:/x", "gone://host/x", "s3a://bucket/x", "file:/sys/no/x"]


@pytest.mark.parametrize("location", UNREACHABLE)
def test_an_external_table_is_registered_where_the_server_can_not_look(reaching: Call, location: str) -> None:
    with capture_logs() as logs:
        name = make_at(reaching, "t", location)
    assert tables.get_table(reaching, name).sd.location == location
    assert [location.startswith(entry["location"]) for entry in logs if "storage can not be reached" in entry["event"]] == [True]
    changed = deepcopy(tables.get_table(reaching, name))
    changed.sd.location = location + "2"
    alter_table(reaching, name, changed)
    assert tables.get_table(reaching, name).sd.location == location + "2"
    tables.drop_table(reaching, name, delete_data=True)


@pytest.mark.parametrize("location", [place for place in UNREACHABLE if not place.startswith("s3a")])
def test_a_managed_table_is_refused_where_the_server_can_not_make_its_directory(reaching: Call, location: str) -> None:
    with pytest.raises(MetaError, match=location.removesuffix("/x")):
        make_at(reaching, "t", location, "MANAGED_TABLE")
    assert tables.get_tables(reaching, "hive", "default", None) == []


@pytest.mark.parametrize("location", UNREACHABLE)
def test_partitions_of_an_external_table_are_registered_altered_and_renamed(reaching: Call, location: str, tmp_path: Path) -> None:
    name = make_at(reaching, "t", None, keys=True)
    with capture_logs() as logs:
        add(reaching, name, [part(reaching, name, *each) for each in (("1", location), ("2", None), ("3", location + "3"))])
    assert (tmp_path / "warehouse" / "t" / "k=2").is_dir()
    reported = [entry for entry in logs if "storage can not be reached" in entry["event"]]
    assert reported[0]["object"] == "default.t"
    assert len(reported) == 1 or location.startswith("file:")
    found = partitions.get_partition(reaching, name, ["1"])
    found.sd = deepcopy(found.sd)
    found.sd.location = location + "4"
    alter_partitions(reaching, name, [found], environment={"STATS_GENERATED": "USER"})
    assert partitions.get_partition(reaching, name, ["1"]).sd.location == location + "4"
    renamed = deepcopy(partitions.get_partition(reaching, name, ["1"]))
    renamed.values = ["9"]
    rename_partition(reaching, name, ["1"], renamed)
    assert partitions.get_partition(reaching, name, ["9"]).sd.location == location + "4"
    drop_partitions.drop_partitions(reaching, name, ["k=9", "k=3"], delete_data=True, if_exists=False)
    assert partitions.get_partition_names(reaching, name) == ["k=2"]


@pytest.fixture
def asked() -> list[str]:
    """The paths that a file system `mute` was asked for. It does not answer for any of them."""
    import fsspec
    from fsspec.implementations.memory import MemoryFileSystem

    paths: list[str] = []

    class Mute(MemoryFileSystem):  # type: ignore[misc]
        protocol = "mute"

        def info(self, path: str, **_: object) -> object:
            paths.append(path)
            raise TimeoutError(path)

        isdir = exists = ls = info

    fsspec.register_implementation("mute", Mute, clobber=True)
    return paths


def register(call: Call, name: str) -> list[bool]:
    """Register an external table and partitions of it on `mute`; return for each whether the log says "did not answer"."""
    with capture_logs() as logs:
        table = make_at(call, name, f"mute://x/{name}", keys=True)
        add(call, table, [part(call, table, "1", None), part(call, table, "2", "mute://x/2")])
    return ["did not answer" in entry["error"] for entry in logs if "storage can not be reached" in entry["event"]]


def test_storage_that_does_not_answer_is_left_alone_by_other_calls(call: Call, asked: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reach, "SLOW", 0.0)
    assert register(call, "t") == [False, True]
    assert len(asked) == 1
    assert register(call, "u") == [True, True]
    make_at(call, "v", "memory://x/v")
    assert len(asked) == 1
    with pytest.raises(MetaError, match="mute://x/w"):
        make_at(call, "w", "mute://x/w", "MANAGED_TABLE")
    assert len(asked) == 2
    monkeypatch.setattr(reach, "SILENCE", 0.0)
    call.warehouse.silent = reach.Silent()
    assert register(call, "y") == [False, False]


def test_storage_that_refuses_at_once_is_asked_by_each_call(call: Call, asked: list[str]) -> None:
    assert register(call, "t") == [False, False]
    before = len(asked)
    assert register(call, "u") == [False, False]
    assert len(asked) >= before + 2, "once for the table, once for its partitions"


@pytest.mark.parametrize("location", [*UNREACHABLE[:4], "{parent}"])
@pytest.mark.parametrize("keys", [False, True])
def test_a_truncation_that_can_not_empty_a_directory_changes_nothing(reaching: Call, tmp_path: Path, location: str, keys: bool) -> None:
    location = location.format(parent=f"file:{tmp_path}")
    name = make_at(reaching, "t", None if keys else location, keys=keys)
    if keys:
        add(reaching, name, [part(reaching, name, "1", None), part(reaching, name, "2", location)])
        own = Path(partitions.get_partition(reaching, name, ["1"]).sd.location.removeprefix("file:"), "data")
        own.write_text("x")
    changed = deepcopy(tables.get_table(reaching, name))
    changed.parameters["numRows"] = "7"
    alter_table(reaching, name, changed)
    before = tables.get_table(reaching, name), partitions.get_partitions(reaching, name)
    last = notifications.current_id(reaching)
    for wanted in ([], ["k=1", "k=2"]) if keys else ([],):
        with pytest.raises(MetaError, match=location.removesuffix("/x")):
            tables.truncate_table(reaching, name, wanted, None)
    assert (tables.get_table(reaching, name), partitions.get_partitions(reaching, name)) == before
    assert notifications.current_id(reaching) == last
    assert not keys or own.exists()


def test_a_file_in_the_way_is_no_lost_storage(call: Call, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(MetaError, match="not a directory"):
        make_at(call, "t", f"file:{tmp_path}/file/t")


@pytest.fixture
def lost(make_metastore: MetastoreMaker) -> Call:
    """A call to a server with a managed table, its partitions and its database on a file system for which it no longer has a driver."""
    import fsspec
    from fsspec.implementations.memory import MemoryFileSystem

    class Gone(MemoryFileSystem):  # type: ignore[misc]
        protocol = "gone"

    fsspec.register_implementation("gone", Gone, clobber=True)
    first = make_metastore()
    create_startup_objects(first)
    call = call_of(first)
    databases.create_database(call, Database(name="g", locationUri="gone://x/g"))
    name = make_table(call, "t", database="g", keys=KEYS)
    add_partitions(call, name, [["1"], ["2"]])
    from fsspec.registry import _registry

    _registry.pop("gone")
    return call_of(make_metastore())


T = TableName("hive", "g", "t")


def test_a_table_whose_object_store_refuses_connections_is_dropped(reaching: Call) -> None:
    name = make_table(
        reaching,
        "t",
        keys=KEYS,
        kind="EXTERNAL_TABLE",
        parameters={**EXTERNAL, "external.table.purge": "true"},
    )
    add(reaching, name, [part(reaching, name, value, f"s3a://bucket/{value}") for value in ("1", "2")])
    with capture_logs() as logs:
        drop_partitions.drop_partition(reaching, name, ["1"], delete_data=True)
        tables.drop_table(reaching, name, delete_data=True)
    reported = [(entry["log_level"], entry["location"]) for entry in logs if "not deleted" in entry["event"]]
    assert reported == [("warning", "s3a://bucket/1"), ("warning", "s3a://bucket/2")]
    assert tables.get_tables(reaching, "hive", "default", None) == []


@pytest.mark.parametrize(
    ("drop", "left"),
    [
        (lambda call: tables.drop_table(call, T, delete_data=True), None),
        (lambda call: drop_partitions.drop_partition(call, T, ["1"], delete_data=True), ["k=2"]),
        (lambda call: drop_partitions.drop_partitions(call, T, ["k=1", "k=2"], delete_data=True, if_exists=False), []),
        (lambda call: databases.drop_database(call, "hive", "g", delete_data=True, cascade=True), None),
    ],
)
def test_objects_on_lost_storage_are_dropped_and_the_log_names_the_rest(
    lost: Call, drop: Callable[[Call], None], left: list[str] | None
) -> None:
    with capture_logs() as logs:
        drop(lost)
    assert any("not deleted" in entry["event"] and "gone://x/g" in entry["location"] for entry in logs)
    if left is None:
        assert tables.get_tables(lost, "hive", "g", None) == []
    else:
        assert partitions.get_partition_names(lost, T) == left


def test_a_location_without_scheme_belongs_to_the_file_system_above_it(make_metastore: MetastoreMaker, tmp_path: Path) -> None:
    metastore = make_metastore(warehouse="memory://m/wh")
    create_startup_objects(metastore)
    call, local = call_of(metastore), f"{tmp_path}/made"
    name = make_at(call, "t", local, keys=True)
    assert tables.get_table(call, name).sd.location == f"memory://m{local}"
    add(call, name, [part(call, name, "1", f"{local}/1")])
    found = partitions.get_partition(call, name, ["1"])
    assert found.sd.location == f"memory://m{local}/1"
    found.sd = deepcopy(found.sd)
    found.sd.location = f"{local}/2"
    alter_partitions(call, name, [found])
    assert partitions.get_partition(call, name, ["1"]).sd.location == f"memory://m{local}/2"
    changed = deepcopy(tables.get_table(call, name))
    changed.sd.location = f"{local}/other"
    alter_table(call, name, changed)
    assert tables.get_table(call, name).sd.location == f"memory://m{local}/other"
    databases.create_database(call, Database(name="d", locationUri=f"{local}/d"))
    databases.alter_database(call, "hive", "d", Database(name="d", locationUri=f"{local}/e"))
    assert databases.get_database(call, "hive", "d").locationUri == f"memory://m{local}/e"
    databases.create_database(call, Database(name="on_disk", locationUri=f"file:{tmp_path}/disk"))
    moved = deepcopy(tables.get_table(call, name))
    moved.dbName, moved.tableName, moved.sd.location = "on_disk", "u", f"{local}/u"
    alter_table(call, name, moved)
    assert not Path(local).exists()


def test_a_catalog_without_scheme_takes_nothing_of_the_servers_own_disk(make_metastore: MetastoreMaker, tmp_path: Path) -> None:
    metastore = make_metastore(warehouse="memory://m/wh")
    create_startup_objects(metastore)
    call, local = call_of(metastore), tmp_path / "catalog"
    local.mkdir()
    (local / "file").touch()
    create_catalog(call, Catalog(name="c", locationUri=str(local)))
    assert databases.get_database(call, "c", "default").locationUri == f"memory://m{local}"
    drop_catalog(call, "c")
    assert (local / "file").exists()
    assert not metastore.warehouse.exists(f"memory://m{local}")


ROOTS = ["/", "file:/", "file:///", "file://localhost/", "s3a://bucket", "s3://b/", "hdfs://nn:8020/", "dbfs:/"]


@pytest.mark.parametrize("root", ROOTS)
@pytest.mark.parametrize("kind", ["MANAGED_TABLE", "EXTERNAL_TABLE"])
def test_no_table_lies_at_the_root_of_a_file_system(call: Call, root: str, kind: str) -> None:
    with pytest.raises(InvalidObject, match="location must not be root path"):
        make_at(call, "t", root, kind)
    name = make_at(call, "u", None, kind)
    before = tables.get_table(call, name)
    changed = deepcopy(before)
    changed.sd.location = root
    with pytest.raises(InvalidOperation, match="the root of a file system"):
        alter_table(call, name, changed)
    assert tables.get_table(call, name) == before


@pytest.mark.parametrize("root", ROOTS)
def test_no_partition_lies_at_the_root_of_a_file_system(call: Call, root: str) -> None:
    name = make_at(call, "t", None, keys=True)
    with pytest.raises(MetaError, match=r"Partition k=1 of default\.t can not be at .*the root of a file system"):
        add(call, name, [part(call, name, "1", root)])
    add(call, name, [part(call, name, "1", None)])
    before = partitions.get_partition(call, name, ["1"])
    with pytest.raises(InvalidOperation, match=r"Partition \[1\] of default\.t can not be at .*the root of a file system"):
        alter_partitions(call, name, [part(call, name, "1", root)])
    assert partitions.get_partition(call, name, ["1"]) == before
