"""A rename of a table or partition moves everything in its directory, however its location is spelled."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from pathlib import Path

import pytest

from metastore.errors import InvalidOperation
from metastore.idl import Partition
from metastore.service.call.context import Call
from metastore.service.call.names import TableName
from metastore.service.catalog.catalogs import create_startup_objects
from metastore.service.catalog.partitions.add_partitions import add_partitions as add
from metastore.service.catalog.partitions.alter_partitions import alter_partitions, rename_partition
from metastore.service.catalog.partitions.drop_partitions import drop_partition
from metastore.service.catalog.partitions.partitions import get_partition, get_partitions
from metastore.service.catalog.tables import tables
from metastore.service.catalog.tables.alter_table import alter_table
from tests.support.catalog.catalog import MetastoreMaker, call_of, make_database, make_table
from tests.support.catalog.shared_directories import KEYS, SPELLINGS, add_at, path_of, place, put, table_at

pytestmark = pytest.mark.on_one_database

TWO_KEYS = [("aa", "int"), ("bb", "int")]


def rename(call: Call, name: TableName, to: str, database: str = "default") -> TableName:
    new = deepcopy(tables.get_table(call, name))
    new.tableName, new.dbName = to, database
    alter_table(call, name, new)
    return name._replace(table=to, database=database)


def rename_part(call: Call, name: TableName, old: list[str], new: list[str]) -> str:
    """Rename a partition as Spark does, with the old location in the new partition. Return its location."""
    changed = deepcopy(get_partition(call, name, old))
    changed.values = new
    rename_partition(call, name, old, changed)
    return get_partition(call, name, new).sd.location


@pytest.mark.parametrize("spell", SPELLINGS)
@pytest.mark.parametrize(("below", "database"), [("/k=1", "d"), ("/K=1", "default"), ("/odd/place", "d"), ("//k=1", "default"), ("", "d")])
def test_partitions_in_a_renamed_tables_directory_go_along(call: Call, spell: Callable[[str], str], below: str, database: str) -> None:
    make_database(call, "d")
    name = make_table(call, "t", keys=KEYS)
    base = path_of(place(call, name))
    put(add_at(call, name, "1", spell(f"{base}{below}")))
    other = put(add_at(call, name, "2", None))
    new = rename(call, name, "u", database)
    root = path_of(place(call, new))
    assert root.name == "u"
    found = path_of(get_partition(call, new, ["1"]).sd.location)
    assert found == Path(f"{root}{below}")
    assert (found / "file").exists()
    assert (root / "k=2" / "file").exists()
    assert not other.exists()
    assert not base.exists()
    drop_partition(call, new, ["2"], delete_data=True)
    assert not (root / "k=2").exists()
    assert (found / "file").exists()


@pytest.mark.parametrize("spell", SPELLINGS)
def test_the_spelling_of_the_tables_own_location_does_not_matter(call: Call, spell: Callable[[str], str], tmp_path: Path) -> None:
    name = table_at(call, "t", spell(f"{tmp_path}/warehouse/t"), keys=True)
    put(add_at(call, name, "1", None))
    put(add_at(call, name, "2", f"file:{tmp_path}/warehouse/t/k=2"))
    respelled = deepcopy(tables.get_table(call, name))
    respelled.sd.location = f"file://{tmp_path}/warehouse/t"
    alter_table(call, name, respelled)
    new = rename(call, name, "u")
    assert path_of(place(call, new)) == tmp_path / "warehouse" / "u"
    for partition in get_partitions(call, new):
        folder = path_of(partition.sd.location)
        assert folder == tmp_path / "warehouse" / "u" / f"k={partition.values[0]}"
        assert (folder / "file").exists()


@pytest.mark.parametrize(("directory", "moves"), [("T", True), ("other", False), ("deep/t", False)])
def test_a_table_moves_from_the_directory_of_its_name_in_any_case(call: Call, tmp_path: Path, directory: str, moves: bool) -> None:
    old = tmp_path / "warehouse" / directory
    name = table_at(call, "t", old, keys=True)
    put(add_at(call, name, "1", None))
    put(add_at(call, name, "2", f"file://{old}/K=2"))
    new = rename(call, name, "u")
    root = tmp_path / "warehouse" / "u" if moves else old
    assert path_of(place(call, new)) == root
    assert [path_of(each.sd.location) for each in get_partitions(call, new)] == [root / "k=1", root / "K=2"]
    assert (root / "k=1" / "file").exists()
    assert (root / "K=2" / "file").exists()


def test_partitions_beside_a_renamed_table_stay(call: Call, tmp_path: Path) -> None:
    name = make_table(call, "t", keys=KEYS)
    base = path_of(place(call, name))
    beside = [put(add_at(call, name, str(number), where)) for number, where in enumerate((f"{base}_x", f"{base}2/k=1", tmp_path / "lake"))]
    new = rename(call, name, "u")
    assert [path_of(each.sd.location) for each in get_partitions(call, new)] == [file.parent for file in beside]
    assert [file for file in beside if not file.exists()] == []


def test_partitions_follow_where_nothing_was_written_yet(make_metastore: MetastoreMaker) -> None:
    """On an object store an empty table has no directory. Its later files must not be written where a new table of its old name may be."""
    metastore = make_metastore(warehouse="memory://m/wh")
    create_startup_objects(metastore)
    call = call_of(metastore)
    name = make_table(call, "t", keys=KEYS)
    add_at(call, name, "1", None)
    metastore.warehouse.delete("memory://m/wh/t", purge=True)
    new = rename(call, name, "u")
    assert place(call, new) == "memory://m/wh/u"
    assert get_partition(call, new, ["1"]).sd.location == "memory://m/wh/u/k=1"


@pytest.mark.parametrize("spell", SPELLINGS)
@pytest.mark.parametrize("below", ["/BB=X", "/bb=X", "/odd/place", "//BB=X"])
def test_a_partition_moves_from_wherever_it_lies_in_the_table(call: Call, spell: Callable[[str], str], below: str) -> None:
    name = make_table(call, "t", keys=[("bb", "string")])
    base = path_of(place(call, name))
    old = put(add_at(call, name, "X", spell(f"{base}{below}")))
    found = path_of(rename_part(call, name, ["X"], ["Z"]))
    assert found == base / "bb=Z"
    assert (found / "file").exists()
    assert not old.exists()


def test_a_partition_of_two_keys_takes_no_other_along(call: Call) -> None:
    name = make_table(call, "t", keys=TWO_KEYS)
    base = path_of(place(call, name))
    for values in (["1", "2"], ["1", "3"]):
        added = deepcopy(tables.get_table(call, name).sd)
        added.location = f"{base}/AA={values[0]}/BB={values[1]}"
        add(call, name, [Partition(values=values, dbName="default", tableName="t", sd=added, parameters={})])
        put(added.location)
    assert path_of(rename_part(call, name, ["1", "2"], ["5", "6"])) == base / "aa=5" / "bb=6"
    assert (base / "aa=5" / "bb=6" / "file").exists()
    assert (base / "AA=1" / "BB=3" / "file").exists()
    rename_part(call, name, ["1", "3"], ["5", "7"])
    assert sorted(str(path.relative_to(base)) for path in base.rglob("file")) == ["aa=5/bb=6/file", "aa=5/bb=7/file"]
    assert not (base / "AA=1").exists()


def test_spark_gives_a_renamed_partition_its_own_spelling_of_the_directory(call: Call) -> None:
    """Spark renames the partition, then the directory that it finds at the default name, and alters the location in bulk."""
    name = make_table(call, "t", keys=[("bb", "string")])
    base = path_of(place(call, name))
    put(add_at(call, name, "X", f"file:{base}/BB=X"))
    path_of(rename_part(call, name, ["X"], ["Z"])).rename(base / "BB=Z")
    changed = deepcopy(get_partition(call, name, ["Z"]))
    changed.sd.location = f"file:{base}/BB=Z"
    alter_partitions(call, name, [changed])
    assert path_of(rename_part(call, name, ["Z"], ["A"])) == base / "bb=A"
    assert (base / "bb=A" / "file").exists()


@pytest.mark.parametrize("below", ["", "/bb=Z/inner"])
def test_a_partition_at_or_above_its_new_place_stays(call: Call, below: str) -> None:
    name = make_table(call, "t", keys=[("bb", "string")])
    base = path_of(place(call, name))
    file = put(add_at(call, name, "X", f"file://{base}{below}"))
    assert path_of(rename_part(call, name, ["X"], ["Z"])) == file.parent
    assert file.exists()


def test_a_rename_onto_a_taken_directory_is_refused_before_anything_changes(call: Call) -> None:
    name = make_table(call, "t", keys=[("bb", "string")])
    base = path_of(place(call, name))
    file = put(add_at(call, name, "X", f"file:{base}/BB=X"))
    put(base / "bb=Z")
    with pytest.raises(InvalidOperation, match="already exists"):
        rename_part(call, name, ["X"], ["Z"])
    assert path_of(get_partition(call, name, ["X"]).sd.location) == file.parent
    assert file.exists()
