"""A drop of a partition leaves on disk the directories that other objects need, and the log names them and their owners."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from metastore.idl import Catalog, Database, Partition
from metastore.service.call.context import Call
from metastore.service.catalog import databases
from metastore.service.catalog.catalogs import create_catalog, create_startup_objects
from metastore.service.catalog.partitions.add_partitions import add_partitions as add
from metastore.service.catalog.partitions.drop_partitions import drop_partition, drop_partitions
from metastore.service.catalog.partitions.partitions import get_partition_names
from metastore.service.catalog.tables import tables
from tests.support.catalog.catalog import (
    MetastoreMaker,
    Statements,
    add_partitions,
    call_of,
    make_table,
)
from tests.support.catalog.shared_directories import (
    DROPS,
    EXTERNAL,
    KEYS,
    SPELLINGS,
    add_at,
    dropped_or_refused,
    path_of,
    place,
    put,
    table_at,
)

pytestmark = pytest.mark.on_one_database


@pytest.mark.parametrize("drop", DROPS)
def test_a_partition_at_the_table_directory_takes_nothing_of_the_others(call: Call, drop: str) -> None:
    name = make_table(call, "t", keys=KEYS)
    one = put(add_at(call, name, "1", None))
    add_at(call, name, "root", place(call, name))
    (line,) = dropped_or_refused(lambda: DROPS[drop](call, name, "root"))
    assert "table hive.default.t" in str(line["kept"])
    assert one.exists()
    assert drop == "truncate" or get_partition_names(call, name) == ["k=1"]


@pytest.mark.parametrize("drop", DROPS)
@pytest.mark.parametrize("dropped", ["1", "2"])
def test_of_two_partitions_at_one_place_the_data_goes_with_the_last(call: Call, drop: str, dropped: str) -> None:
    name = make_table(call, "t", keys=KEYS)
    shared = put(add_at(call, name, "1", None))
    add_at(call, name, "2", shared.parent)
    left = "2" if dropped == "1" else "1"
    (line,) = dropped_or_refused(lambda: DROPS[drop](call, name, dropped))
    assert f"partition hive.default.t k={left}" in str(line["kept"])
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


def test_directories_that_others_need_do_not_move_into_the_trash(
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
    (line,) = dropped_or_refused(lambda: DROPS[drop](call, name, "1"))
    assert line["kept"] == ["partition hive.default.t k=2"]
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
def test_objects_at_or_in_a_partition_outlive_it(call: Call, tmp_path: Path, drop: str, where: str, kind: str) -> None:
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
    (line,) = dropped_or_refused(lambda: DROPS[drop](call, name, "1"))
    assert "other" in str(line["kept"])
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
    """No row holds the partition's place: it follows from the table's place and the partition's name."""
    holder = make_table(call, "holder", keys=KEYS)
    kept = put(add_at(call, holder, "1", None))
    name = make_table(call, "t", keys=KEYS)
    add_at(call, name, "5", kept.parent)
    (line,) = dropped_or_refused(lambda: drop_partition(call, name, ["5"], delete_data=True))
    assert line["kept"] == ["partition hive.default.holder k=1"]
    table = table_at(call, "over", kept.parent)
    (line,) = dropped_or_refused(lambda: tables.drop_table(call, table, delete_data=True))
    assert line["kept"] == ["partition hive.default.holder k=1"]
    assert kept.exists()


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
