"""Whoever drops, truncates, renames or exchanges leaves on disk what other objects need, and the log says what stayed and whose it is."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from metastore.errors import MetaError
from metastore.idl import Catalog, Database, Partition, SerDeInfo, StorageDescriptor, Table
from metastore.service import databases, tables
from metastore.service.add_partitions import add_partitions as add
from metastore.service.alter_partitions import alter_partitions, rename_partition
from metastore.service.alter_table import alter_table
from metastore.service.catalogs import create_catalog, create_startup_objects, drop_catalog
from metastore.service.context import Call
from metastore.service.create_table import create_table
from metastore.service.drop_partitions import drop_partition, drop_partition_by_name, drop_partitions
from metastore.service.exchange import exchange_partitions
from metastore.service.expressions import Dropped, drop_partitions_by_expressions
from metastore.service.names import TableName
from metastore.service.occupants import occupants
from metastore.service.partitions import get_partition, get_partition_names
from tests.support.catalog import (
    MetastoreMaker,
    Statements,
    add_partitions,
    call_of,
    columns_of,
    make_database,
    make_table,
)

KEYS = [("k", "string")]
EXTERNAL = {"EXTERNAL": "TRUE"}
SPELLINGS: list[Callable[[str], str]] = [
    lambda path: f"file:{path}",
    lambda path: f"file://{path}",
    lambda path: f"file://localhost{path}/",
    lambda path: f"file:/{path[1:].replace('/', '//')}",
    lambda path: path,
]


def path_of(location: str) -> Path:
    return Path("/" + location.removeprefix("file:").removeprefix("//localhost").lstrip("/"))


def put(location: str | Path) -> Path:
    """Write a file at a location; return it."""
    folder = path_of(location) if isinstance(location, str) else location
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "file").touch()
    return folder / "file"


def place(call: Call, name: TableName) -> str:
    return tables.get_table(call, name).sd.location


def table_at(call: Call, name: str, location: str | Path | None, keys: bool = False, database: str = "default", **fields: Any) -> TableName:
    sd = StorageDescriptor(
        cols=columns_of(("a", "int")),
        inputFormat="in",
        outputFormat="out",
        location=str(location) if location else None,
        serdeInfo=SerDeInfo(serializationLib="lib", parameters={}),
        parameters={},
    )
    create_table(
        call,
        Table(
            **{
                "dbName": database,
                "tableName": name,
                "owner": "alice",
                "sd": sd,
                "partitionKeys": columns_of(*KEYS) if keys else [],
                "tableType": "MANAGED_TABLE",
                "parameters": {},
                **fields,
            }
        ),
    )
    catalog, _, own = database[1:].partition("#") if database.startswith("@") else ("hive", "", database)
    return TableName(catalog, own, name)


def add_at(call: Call, name: TableName, value: str, location: str | Path | None) -> str:
    """Add a partition; return its location."""
    sd = deepcopy(tables.get_table(call, name).sd)
    sd.location = str(location) if location else None  # type: ignore[assignment]  # None is the default place
    new = Partition(values=[value], dbName=name.database, tableName=name.table, catName=name.catalog, sd=sd, parameters={})
    return add(call, name, [new])[0].sd.location


Drop = Callable[[Call, TableName, str], object]
DROPS: dict[str, Drop] = {
    "values": lambda call, name, value: drop_partition(call, name, [value], delete_data=True),
    "name": lambda call, name, value: drop_partition_by_name(call, name, f"k={value}", delete_data=True),
    "names": lambda call, name, value: drop_partitions(call, name, [f"k={value}"], delete_data=True, if_exists=False),
    "expression": lambda call, name, value: drop_partitions_by_expressions(
        call, name, [Dropped(f"k = '{value}'".encode(), None)], delete_data=True, if_exists=False
    ),
    "purge": lambda call, name, value: drop_partition(call, name, [value], delete_data=True, environment={"ifPurge": "true"}),
    "truncate": lambda call, name, value: tables.truncate_table(call, name, [f"k={value}"], None),
}


def dropped_or_refused(drop: Callable[[], object]) -> list[Any]:
    """Drop; return what the log says of data that stays. A truncation may be refused instead, which says so itself."""
    with capture_logs() as logs:
        try:
            drop()
        except MetaError as error:
            return [{"kept": [error.message]}]
    return [entry for entry in logs if entry["log_level"] == "warning" and "stay" in entry["event"]]


@pytest.mark.parametrize("drop", DROPS)
def test_a_partition_at_the_table_directory_takes_nothing_of_the_others(call: Call, drop: str) -> None:
    name = make_table(call, "t", keys=KEYS)
    one = put(add_at(call, name, "1", None))
    add_at(call, name, "root", place(call, name))
    (told,) = dropped_or_refused(lambda: DROPS[drop](call, name, "root"))
    assert "table hive.default.t" in str(told["kept"])
    assert one.exists()
    assert drop == "truncate" or get_partition_names(call, name) == ["k=1"]


@pytest.mark.parametrize("drop", DROPS)
@pytest.mark.parametrize("dropped", ["1", "2"])
def test_of_two_partitions_at_one_place_the_data_goes_with_the_last(call: Call, drop: str, dropped: str) -> None:
    name = make_table(call, "t", keys=KEYS)
    shared = put(add_at(call, name, "1", None))
    add_at(call, name, "2", shared.parent)
    left = "2" if dropped == "1" else "1"
    (told,) = dropped_or_refused(lambda: DROPS[drop](call, name, dropped))
    assert f"partition hive.default.t k={left}" in str(told["kept"])
    assert shared.exists()
    if drop != "truncate":
        assert dropped_or_refused(lambda: DROPS[drop](call, name, left)) == []
        assert not shared.exists()


@pytest.mark.parametrize("spell", SPELLINGS)
def test_a_place_is_one_however_it_is_spelled(call: Call, spell: Callable[[str], str]) -> None:
    name = make_table(call, "t", keys=KEYS)
    shared = put(add_at(call, name, "1", None))
    add_at(call, name, "2", spell(str(shared.parent)))
    add_at(call, name, "root", spell(str(path_of(place(call, name)))))
    for dropped in ("1", "root"):
        assert dropped_or_refused(lambda dropped=dropped: drop_partition(call, name, [dropped], delete_data=True))  # type: ignore[misc]
        assert shared.exists()
    table = table_at(call, "u", spell(str(shared.parent)))
    drop_partition(call, name, ["2"], delete_data=True)
    assert shared.exists()
    tables.drop_table(call, table, delete_data=True)
    assert not shared.exists()


def test_what_others_need_does_not_move_into_the_trash(
    make_metastore: MetastoreMaker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    metastore = make_metastore(trash_interval=60)
    create_startup_objects(metastore)
    call = call_of(metastore)
    name = make_table(call, "t", keys=KEYS)
    own, shared = put(add_at(call, name, "1", None)), put(add_at(call, name, "2", None))
    inner = put(add_at(call, name, "3", own.parent / "a" / "inner"))
    add_at(call, name, "4", shared.parent)
    drop_partitions(call, name, ["k=1", "k=4"], delete_data=True, if_exists=False)
    assert inner.exists()
    assert shared.exists()
    assert not own.exists()
    assert [path.parent.name for path in (tmp_path / "home").rglob("file")] == ["k=1"]


def test_partitions_at_one_place_that_are_dropped_together_take_their_data(call: Call) -> None:
    name = make_table(call, "t", keys=KEYS)
    shared = put(add_at(call, name, "1", None))
    add_at(call, name, "2", shared.parent)
    with capture_logs() as logs:
        drop_partitions(call, name, ["k=1", "k=2"], delete_data=True, if_exists=False)
    assert logs == []
    assert not shared.exists()


@pytest.mark.parametrize("drop", ["purge", "truncate"])
@pytest.mark.parametrize("outer_by_default", [False, True])
def test_a_partition_inside_another_one_outlives_it(call: Call, tmp_path: Path, drop: str, outer_by_default: bool) -> None:
    name = make_table(call, "t", keys=KEYS)
    outer = put(add_at(call, name, "1", None if outer_by_default else tmp_path / "lake"))
    inner = put(add_at(call, name, "2", f"file://{outer.parent}/a/b"))
    other = put(outer.parent / "a" / "c")
    (told,) = dropped_or_refused(lambda: DROPS[drop](call, name, "1"))
    assert told["kept"] == ["partition hive.default.t k=2"]
    assert inner.exists()
    assert not outer.exists()
    assert not other.exists()
    DROPS[drop](call, name, "2")
    assert not inner.exists()


@pytest.mark.parametrize("drop", ["names", "truncate"])
def test_a_partition_inside_another_one_takes_nothing_of_it(call: Call, drop: str) -> None:
    name = make_table(call, "t", keys=KEYS)
    outer = put(add_at(call, name, "1", None))
    inner = put(add_at(call, name, "2", outer.parent / "inner"))
    assert dropped_or_refused(lambda: DROPS[drop](call, name, "2")) == []
    assert outer.exists()
    assert not inner.exists()


@pytest.mark.parametrize("drop", ["values", "truncate"])
@pytest.mark.parametrize("where", ["at", "inside"])
@pytest.mark.parametrize("kind", ["table", "partition", "database", "managed location", "catalog"])
def test_whatever_lies_at_or_in_a_partition_outlives_it(call: Call, tmp_path: Path, drop: str, where: str, kind: str) -> None:
    name = make_table(call, "t", keys=KEYS)
    own = put(add_at(call, name, "1", None))
    place = own.parent if where == "at" else own.parent / "x"
    spelled = f"file://{place}"
    if kind == "table":
        table_at(call, "other", spelled, parameters=EXTERNAL, tableType="EXTERNAL_TABLE")
    elif kind == "partition":
        add_at(call, make_table(call, "other", keys=KEYS), "9", spelled)
    elif kind == "catalog":
        create_catalog(call, Catalog(name="other", locationUri=spelled))
    else:
        field = "locationUri" if kind == "database" else "managedLocationUri"
        databases.create_database(call, Database(name="other", **{field: spelled}))
    kept = put(place)
    (told,) = dropped_or_refused(lambda: DROPS[drop](call, name, "1"))
    assert "other" in str(told["kept"])
    assert kept.exists()
    assert own.exists() is (where == "at")


@pytest.mark.parametrize("spell", SPELLINGS)
def test_the_table_directory_stays_when_its_last_partition_goes(call: Call, spell: Callable[[str], str]) -> None:
    name = make_table(call, "t", keys=[("k", "string"), ("l", "string")])
    base = path_of(place(call, name))
    for value, below in (("2", "one"), ("3", "two/three")):
        sd = deepcopy(tables.get_table(call, name).sd)
        sd.location = spell(f"{base}/{below}")
        add(call, name, [Partition(values=["1", value], dbName=name.database, tableName=name.table, sd=sd, parameters={})])
    drop_partitions(call, name, ["k=1/l=2", "k=1/l=3"], delete_data=True, if_exists=False)
    assert [*base.iterdir()] == []


def test_a_partition_that_another_table_has_by_default_outlives_the_one_that_points_there(call: Call) -> None:
    """No row tells its place: it follows from its table's and its name."""
    holder = make_table(call, "holder", keys=KEYS)
    kept = put(add_at(call, holder, "1", None))
    name = make_table(call, "t", keys=KEYS)
    add_at(call, name, "5", kept.parent)
    (told,) = dropped_or_refused(lambda: drop_partition(call, name, ["5"], delete_data=True))
    assert told["kept"] == ["partition hive.default.holder k=1"]
    table = table_at(call, "over", kept.parent)
    (told,) = dropped_or_refused(lambda: tables.drop_table(call, table, delete_data=True))
    assert told["kept"] == ["partition hive.default.holder k=1"]
    assert kept.exists()


@pytest.mark.parametrize("spell", SPELLINGS)
def test_of_two_tables_at_one_place_the_data_goes_with_the_last(call: Call, tmp_path: Path, spell: Callable[[str], str]) -> None:
    one = table_at(call, "one", tmp_path / "lake", keys=True)
    two = table_at(call, "two", spell(f"{tmp_path}/lake"), keys=True)
    files = {value: put(add_at(call, one, value, None)) for value in "12"}
    for value in "12":
        add_at(call, two, value, None)
    (told,) = dropped_or_refused(lambda: drop_partition(call, one, ["1"], delete_data=True))
    assert told["kept"] == ["partition hive.default.two k=1"]
    assert files["1"].exists()
    assert dropped_or_refused(lambda: drop_partition(call, two, ["1"], delete_data=True)) == []
    assert not files["1"].exists()
    (told,) = dropped_or_refused(lambda: tables.drop_table(call, two, delete_data=True))
    assert "table hive.default.one" in told["kept"]
    assert files["2"].exists()
    tables.drop_table(call, one, delete_data=True)
    assert not files["2"].exists()


@pytest.mark.parametrize("keys", [False, True])
def test_a_table_at_its_database_directory_takes_nothing_of_the_others(call: Call, keys: bool) -> None:
    make_database(call, "d")
    kept = put(place(call, make_table(call, "kept", database="d")))
    name = table_at(call, "t", databases.get_database(call, "hive", "d").locationUri, keys, "d")
    (told,) = dropped_or_refused(lambda: tables.drop_table(call, name, delete_data=True))
    assert "database hive.d" in told["kept"]
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
    (told,) = dropped_or_refused(lambda: tables.drop_table(call, name, delete_data=True, environment=environment))
    assert told["object"] == "table hive.default.t"
    assert "other" in told["kept"][0]
    assert kept.exists()
    assert [file for file in own if file.exists()] == []


def test_an_outer_partition_of_a_dropped_table_leaves_what_lies_in_it(call: Call, tmp_path: Path) -> None:
    name = make_table(call, "t", keys=KEYS)
    own = put(add_at(call, name, "1", tmp_path / "lake"))
    kept = put(place(call, table_at(call, "other", tmp_path / "lake" / "other")))
    dropped_or_refused(lambda: tables.drop_table(call, name, delete_data=True))
    assert kept.exists()
    assert not own.exists()


@pytest.mark.parametrize("kind", ["table", "renamed table", "partition", "database", "external table", "external partition"])
def test_a_dropped_database_leaves_what_others_have_in_it(call: Call, tmp_path: Path, kind: str) -> None:
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
    (told,) = dropped_or_refused(lambda: databases.drop_database(call, "hive", "d", delete_data=True, cascade=True))
    assert told["object"] == "database hive.d"
    assert "other" in told["kept"][0]
    assert kept.exists()
    assert not own.exists()


def test_a_dropped_catalog_leaves_what_others_have_in_it(call: Call, tmp_path: Path) -> None:
    create_catalog(call, Catalog(name="c", locationUri=str(tmp_path / "c")))
    kept = put(place(call, table_at(call, "t", f"file://{tmp_path}/c/t")))
    rest = put(tmp_path / "c" / "rest")
    assert dropped_or_refused(lambda: drop_catalog(call, "c"))
    assert kept.exists()
    assert not rest.exists()


@pytest.mark.parametrize("table", [False, True])
def test_a_truncation_leaves_what_others_have_inside(call: Call, table: bool) -> None:
    name = make_table(call, "t", keys=[] if table else KEYS)
    own = put(place(call, name) if table else add_at(call, name, "1", None))
    kept = put(place(call, table_at(call, "other", own.parent / "other")))
    assert dropped_or_refused(lambda: tables.truncate_table(call, name, [] if table else None, None))
    assert kept.exists()
    assert not own.exists()


def test_a_truncation_of_all_empties_places_that_only_the_table_shares(call: Call) -> None:
    name = make_table(call, "t", keys=KEYS)
    shared = put(add_at(call, name, "1", None))
    add_at(call, name, "2", shared.parent)
    root = put(add_at(call, name, "root", place(call, name)))
    with capture_logs() as logs:
        tables.truncate_table(call, name, None, None)
    assert logs == []
    assert not shared.exists()
    assert not root.exists()


def test_a_refused_truncation_changes_nothing(call: Call) -> None:
    name = make_table(call, "t", keys=KEYS)
    shared = put(add_at(call, name, "1", None))
    add_at(call, name, "2", shared.parent)
    before = get_partition(call, name, ["1"])
    with pytest.raises(MetaError, match=r"is the directory of partition hive\.default\.t k=2 too"):
        tables.truncate_table(call, name, ["k=1"], None)
    assert get_partition(call, name, ["1"]) == before
    assert shared.exists()


@pytest.mark.parametrize("where", ["at", "inside"])
def test_a_rename_does_not_move_what_others_have(call: Call, where: str) -> None:
    name = make_table(call, "t", keys=KEYS)
    own = put(add_at(call, name, "1", None))
    shared = path_of(place(call, name)) if where == "at" else path_of(place(call, name)) / "x"
    other = table_at(call, "other", f"file://{shared}", parameters=EXTERNAL, tableType="EXTERNAL_TABLE")
    kept = put(shared)
    new = deepcopy(tables.get_table(call, name))
    new.tableName = "renamed"
    with capture_logs() as logs:
        alter_table(call, name, new)
    assert any("renamed table stays" in entry["event"] and entry["kept"] == ["table hive.default.other"] for entry in logs)
    assert kept.exists()
    renamed = name._replace(table="renamed")
    assert path_of(get_partition(call, renamed, ["1"]).sd.location) == own.parent
    assert own.exists()
    assert path_of(place(call, other)) == shared


@pytest.mark.parametrize("where", ["at", "inside"])
def test_a_rename_of_a_partition_does_not_move_what_others_have(call: Call, where: str) -> None:
    name = make_table(call, "t", keys=KEYS)
    own = put(add_at(call, name, "1", None))
    add_at(call, name, "2", f"file://{own.parent}" if where == "at" else own.parent / "x")
    new = deepcopy(get_partition(call, name, ["1"]))
    new.values = ["3"]
    with capture_logs() as logs:
        rename_partition(call, name, ["1"], new)
    assert any("renamed partition stays" in entry["event"] for entry in logs)
    assert path_of(get_partition(call, name, ["3"]).sd.location) == own.parent
    assert own.exists()


def test_an_exchange_does_not_move_what_others_have(call: Call) -> None:
    source, target = (make_table(call, table, keys=KEYS) for table in ("source", "target"))
    kept = put(add_at(call, source, "1", None))
    add_at(call, source, "2", f"file://{kept.parent}")
    with pytest.raises(MetaError, match=r"is that of partition hive\.default\.source k=2 too"):
        exchange_partitions(call, {"k": "1"}, source, target)
    assert kept.exists()
    assert get_partition_names(call, source) == ["k=1", "k=2"]


def test_names_that_begin_alike_are_other_places(call: Call, tmp_path: Path) -> None:
    kept = [put(place(call, table_at(call, f"t{end}", tmp_path / f"lake{end}"))) for end in ("2", "_x", "-x", ".x", " x")]
    name = table_at(call, "t", tmp_path / "lake")
    own = put(place(call, name))
    with capture_logs() as logs:
        tables.drop_table(call, name, delete_data=True)
    assert logs == []
    assert not own.exists()
    assert [file for file in kept if not file.exists()] == []


def test_long_paths_are_told_apart_behind_what_an_index_holds(call: Call, tmp_path: Path) -> None:
    deep = tmp_path.joinpath(*["d" * 200] * 4)
    one, two = (table_at(call, name, deep / name) for name in ("one", "two"))
    kept, own = put(place(call, one)), put(place(call, two))
    inner = put(place(call, table_at(call, "inner", deep / "two" / "inner")))
    (told,) = dropped_or_refused(lambda: tables.drop_table(call, two, delete_data=True))
    assert told["kept"] == ["table hive.default.inner"]
    assert kept.exists()
    assert inner.exists()
    assert not own.exists()


def test_the_place_of_a_partition_is_known_after_every_change(call: Call, tmp_path: Path) -> None:
    """What is asked is who lies in a directory; all ways to put a partition there are answered."""
    name = make_table(call, "t", keys=KEYS)
    lake = tmp_path / "lake"

    def found(folder: Path) -> set[str]:
        return {each.label for each in call.database.read(lambda session: occupants(session, [str(folder)]))}

    add_at(call, name, "1", None)
    base = path_of(place(call, name))
    assert found(base / "k=1") == {"partition hive.default.t k=1"}
    moved = deepcopy(get_partition(call, name, ["1"]))
    moved.sd.location = f"file://{lake}/1"
    alter_partitions(call, name, [moved])
    assert found(lake) == {"partition hive.default.t k=1"}
    assert found(base / "k=1") == set()
    renamed = deepcopy(moved)
    renamed.values = ["2"]
    rename_partition(call, name, ["1"], renamed)
    assert found(lake / "1") == {"partition hive.default.t k=2"}
    moved = deepcopy(get_partition(call, name, ["2"]))
    moved.sd.location = f"{base}/k=2"
    alter_partitions(call, name, [moved])
    assert found(lake) == set()
    assert found(base / "k=2") == {"partition hive.default.t k=2"}
    add_at(call, name, "3", base / "odd")
    table = deepcopy(tables.get_table(call, name))
    table.sd.location = str(lake / "table")
    alter_table(call, name, table)
    assert found(base) == {"partition hive.default.t k=2", "partition hive.default.t k=3"}
    assert found(base / "k=2") == {"partition hive.default.t k=2"}
    assert found(lake) == {"table hive.default.t"}
    other = make_table(call, "u", keys=KEYS)
    add_at(call, other, "4", None)
    add_at(call, other, "5", path_of(place(call, other)) / "odd")
    table = deepcopy(tables.get_table(call, other))
    table.tableName = "v"
    alter_table(call, other, table)
    assert found(base.parent / "v" / "k=4") == {"partition hive.default.v k=4"}
    assert found(base.parent / "v" / "odd") == {"partition hive.default.v k=5"}
    assert found(base.parent / "u") == set()
    exchange_partitions(call, {"k": "4"}, other._replace(table="v"), make_table(call, "w", keys=KEYS))
    assert found(base.parent / "w" / "k=4") == {"partition hive.default.w k=4"}


@pytest.mark.parametrize("size", [1, 50])
def test_one_statement_asks_for_many_directories(call: Call, statements: Statements, size: int) -> None:
    name = make_table(call, "t", keys=[("k", "string"), ("l", "string")])

    def count(*, delete_data: bool) -> int:
        add_partitions(call, name, [[str(number), "x"] for number in range(size)])
        names = get_partition_names(call, name)
        with statements() as seen:
            drop_partitions(call, name, names, delete_data=delete_data, if_exists=False)
        return len(seen)

    assert count(delete_data=True) == count(delete_data=False) + 1
