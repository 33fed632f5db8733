"""A drop of a table, database or catalog leaves on disk the directories that other objects need, and the log names them."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from metastore.idl import Catalog, Database
from metastore.service.call.context import Call
from metastore.service.call.names import TableName
from metastore.service.catalog import databases
from metastore.service.catalog.catalogs import create_catalog, create_startup_objects, drop_catalog
from metastore.service.catalog.partitions.drop_partitions import drop_partition
from metastore.service.catalog.tables import tables
from metastore.service.catalog.tables.alter_table import alter_table
from tests.support.catalog.catalog import MetastoreMaker, call_of, make_database, make_table
from tests.support.catalog.shared_directories import EXTERNAL, KEYS, SPELLINGS, add_at, dropped_or_refused, path_of, place, put, table_at

pytestmark = pytest.mark.on_one_database


@pytest.mark.parametrize("spell", SPELLINGS)
def test_of_two_tables_at_one_place_the_data_goes_with_the_last(call: Call, tmp_path: Path, spell: Callable[[str], str]) -> None:
    one = table_at(call, "one", tmp_path / "lake", keys=True)
    two = table_at(call, "two", spell(f"{tmp_path}/lake"), keys=True)
    files = {value: put(add_at(call, one, value, None)) for value in "12"}
    for value in "12":
        add_at(call, two, value, None)
    (line,) = dropped_or_refused(lambda: drop_partition(call, one, ["1"], delete_data=True))
    assert line["kept"] == ["partition hive.default.two k=1"]
    assert files["1"].exists()
    assert dropped_or_refused(lambda: drop_partition(call, two, ["1"], delete_data=True)) == []
    assert not files["1"].exists()
    (line,) = dropped_or_refused(lambda: tables.drop_table(call, two, delete_data=True))
    assert "table hive.default.one" in line["kept"]
    assert files["2"].exists()
    tables.drop_table(call, one, delete_data=True)
    assert not files["2"].exists()


@pytest.mark.parametrize("keys", [False, True])
def test_a_table_at_its_database_directory_takes_nothing_of_the_others(call: Call, keys: bool) -> None:
    make_database(call, "d")
    kept = put(place(call, make_table(call, "kept", database="d")))
    name = table_at(call, "t", databases.get_database(call, "hive", "d").locationUri, keys, "d")
    (line,) = dropped_or_refused(lambda: tables.drop_table(call, name, delete_data=True))
    assert "database hive.d" in line["kept"]
    assert kept.exists()


@pytest.mark.parametrize("environment", [{}, {"ifPurge": "true"}])
@pytest.mark.parametrize("kind", ["table", "partition", "database", "other catalog"])
def test_a_table_above_others_leaves_those(call: Call, tmp_path: Path, kind: str, environment: dict[str, str]) -> None:
    name = table_at(call, "t", tmp_path / "lake", keys=True)
    own = [put(tmp_path / "lake"), put(add_at(call, name, "1", None)), put(add_at(call, name, "2", tmp_path / "lake" / "odd"))]
    inside = f"file://{tmp_path}/lake/deep//inside"
    if kind == "table":
        table_at(call, "other", inside)
    elif kind == "partition":
        add_at(call, make_table(call, "other", keys=KEYS), "9", inside)
    elif kind == "database":
        databases.create_database(call, Database(name="other", locationUri=inside))
    else:
        create_catalog(call, Catalog(name="other", locationUri=str(tmp_path / "other")))
        databases.create_database(call, Database(name="d", catalogName="other"))
        table_at(call, "other", inside, database="@other#d")
    kept = put(inside)
    (line,) = dropped_or_refused(lambda: tables.drop_table(call, name, delete_data=True, environment=environment))
    assert line["object"] == "table hive.default.t"
    assert "other" in line["kept"][0]
    assert kept.exists()
    assert [file for file in own if file.exists()] == []


def test_an_outer_partition_of_a_dropped_table_leaves_its_content(call: Call, tmp_path: Path) -> None:
    name = make_table(call, "t", keys=KEYS)
    own = put(add_at(call, name, "1", tmp_path / "lake"))
    kept = put(place(call, table_at(call, "other", tmp_path / "lake" / "other")))
    dropped_or_refused(lambda: tables.drop_table(call, name, delete_data=True))
    assert kept.exists()
    assert not own.exists()


@pytest.mark.parametrize("kind", ["table", "renamed table", "partition", "database", "external table", "external partition"])
def test_a_dropped_database_leaves_directories_of_others_in_it(call: Call, tmp_path: Path, kind: str) -> None:
    make_database(call, "d")
    root = path_of(databases.get_database(call, "hive", "d").locationUri)
    own = put(place(call, make_table(call, "t", database="d")))
    inside = f"file://{root}/x"
    if kind == "table":
        make_database(call, "other")
        table_at(call, "other", inside, database="other")
    elif kind == "renamed table":
        new = deepcopy(tables.get_table(call, table_at(call, "other", inside, database="d")))
        new.dbName = "default"
        alter_table(call, TableName("hive", "d", "other"), new)
    elif kind == "partition":
        add_at(call, make_table(call, "other", keys=KEYS), "9", inside)
    elif kind == "database":
        databases.create_database(call, Database(name="other", locationUri=inside))
    elif kind == "external table":
        table_at(call, "other", inside, database="d", parameters=EXTERNAL, tableType="EXTERNAL_TABLE")
    else:
        external = table_at(call, "other", tmp_path / "lake", True, "d", parameters=EXTERNAL, tableType="EXTERNAL_TABLE")
        add_at(call, external, "9", inside)
    kept = put(inside)
    (line,) = dropped_or_refused(lambda: databases.drop_database(call, "hive", "d", delete_data=True, cascade=True))
    assert line["object"] == "database hive.d"
    assert "other" in line["kept"][0]
    assert kept.exists()
    assert not own.exists()


def test_a_dropped_catalog_leaves_directories_of_others_in_it(call: Call, tmp_path: Path) -> None:
    create_catalog(call, Catalog(name="c", locationUri=str(tmp_path / "c")))
    kept = put(place(call, table_at(call, "t", f"file://{tmp_path}/c/t")))
    rest = put(tmp_path / "c" / "rest")
    assert dropped_or_refused(lambda: drop_catalog(call, "c"))
    assert kept.exists()
    assert not rest.exists()


def test_names_that_begin_alike_are_other_places(call: Call, tmp_path: Path) -> None:
    kept = [put(place(call, table_at(call, f"t{end}", tmp_path / f"lake{end}"))) for end in ("2", "_x", "-x", ".x", " x")]
    name = table_at(call, "t", tmp_path / "lake")
    own = put(place(call, name))
    with capture_logs() as logs:
        tables.drop_table(call, name, delete_data=True)
    assert logs == []
    assert not own.exists()
    assert [file for file in kept if not file.exists()] == []


def test_paths_that_differ_only_behind_the_end_of_an_index_are_distinct(call: Call, tmp_path: Path) -> None:
    deep = tmp_path.joinpath(*["d" * 200] * 4)
    one, two = (table_at(call, name, deep / name) for name in ("one", "two"))
    kept, own = put(place(call, one)), put(place(call, two))
    inner = put(place(call, table_at(call, "inner", deep / "two" / "inner")))
    (line,) = dropped_or_refused(lambda: tables.drop_table(call, two, delete_data=True))
    assert line["kept"] == ["table hive.default.inner"]
    assert kept.exists()
    assert inner.exists()
    assert not own.exists()


@pytest.mark.parametrize("kind", ["table", "partition", "database", "catalog"])
def test_a_directory_that_contains_the_warehouse_is_never_emptied(call: Call, tmp_path: Path, kind: str) -> None:
    beside, unregistered = put(tmp_path / "beside"), put(tmp_path / "warehouse" / "unregistered")
    if kind == "database":
        databases.create_database(call, Database(name="d", locationUri=f"file:{tmp_path}"))
        databases.drop_database(call, "hive", "d", delete_data=True, cascade=True)
    elif kind == "catalog":
        create_catalog(call, Catalog(name="c", locationUri=f"file:{tmp_path}"))
        drop_catalog(call, "c")
    elif kind == "table":
        tables.drop_table(call, table_at(call, "t", tmp_path), delete_data=True)
    else:
        name = make_table(call, "t", keys=KEYS)
        add_at(call, name, "1", tmp_path)
        drop_partition(call, name, ["1"], delete_data=True)
    assert beside.exists()
    assert unregistered.exists()


def test_a_database_at_the_root_of_a_bucket_leaves_files_outside_of_tables(make_metastore: MetastoreMaker) -> None:
    metastore = make_metastore(warehouse="memory://bucket/wh", external_warehouse="memory://bucket/ext")
    create_startup_objects(metastore)
    call, warehouse = call_of(metastore), metastore.warehouse
    files, path = warehouse._at("memory://other/file")
    assert files.is_remote
    files._system.pipe_file(path, b"x")
    databases.create_database(call, Database(name="d", locationUri="memory://other/"))
    name = table_at(call, "t", None, database="d", tableType="EXTERNAL_TABLE", parameters=dict(EXTERNAL))
    assert place(call, name) == "memory://other/t"
    databases.drop_database(call, "hive", "d", delete_data=True, cascade=True)
    assert warehouse.exists("memory://other/file")
