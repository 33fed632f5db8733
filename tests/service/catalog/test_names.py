"""Names of databases and tables on real directories: each that Hive 4 accepts is accepted, and none leaves its parent."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path

import pytest

from metastore.errors import InvalidObject, InvalidOperation, MetaError, MetastoreError
from metastore.idl import Catalog, CreationMetadata, Database
from metastore.service.call.context import Call
from metastore.service.call.names import TableName
from metastore.service.catalog.catalogs import create_catalog, create_startup_objects
from metastore.service.catalog.databases import create_database, drop_database, get_database, get_databases
from metastore.service.catalog.tables.alter_table import alter_table
from metastore.service.catalog.tables.tables import drop_table, get_table, get_tables
from tests.support.catalog.catalog import MetastoreMaker, call_of, make_database, make_table

pytestmark = pytest.mark.on_one_database

SPECIAL = ["a-b", "a b", "a.b", "a@b", "x$y", ".hidden", "50%", "%2e%2e", "a:b", "'q'", '"', "`", "a=b", "a..b"]
HOSTILE = [
    "..",
    ".",
    "../x",
    "../../x",
    "a/../../x",
    "/x",
    "a/b",
    "file:/x",
    "a\\b",
    "..\\x",
    "a\0b",
    "\0",
    "a\nb",
    "größe",
    "日期",
    " ",
    "",
    "a" * 300,
    "‥",
    "\uff0e\uff0e",
]


def inside(root: Path) -> set[str]:
    return {str(path.relative_to(root)) for path in root.rglob("*") if path.is_dir() and "data" not in path.parts[len(root.parts) :][:1]}


@pytest.mark.parametrize("name", SPECIAL)
def test_a_database_and_a_table_with_special_characters_live_as_any_other(call: Call, tmp_path: Path, name: str) -> None:
    make_database(call, name)
    assert name in get_databases(call, "hive", None)
    root = get_database(call, "hive", name).locationUri
    assert root == f"file:{tmp_path}/warehouse/{name}.db"
    table = make_table(call, name, database=name)
    location = Path(get_table(call, table).sd.location.removeprefix("file:"))
    assert location.is_dir()
    assert location.parent == tmp_path / "warehouse" / f"{name}.db"
    assert get_tables(call, "hive", name, None) == [name]
    other = make_table(call, "plain", database=name)
    drop_table(call, table, delete_data=True)
    assert not location.exists()
    assert Path(get_table(call, other).sd.location.removeprefix("file:")).is_dir()
    drop_database(call, "hive", name, delete_data=True, cascade=True)
    assert inside(tmp_path) == {"warehouse"}


@pytest.mark.parametrize("name", SPECIAL)
def test_a_table_is_renamed_to_special_characters_with_its_directory(call: Call, tmp_path: Path, name: str) -> None:
    make_database(call, name)
    old = make_table(call, "t")
    (tmp_path / "warehouse" / "t" / "file").touch()
    new = deepcopy(get_table(call, old))
    new.dbName = new.tableName = name
    alter_table(call, old, new)
    location = Path(get_table(call, TableName("hive", name, name)).sd.location.removeprefix("file:"))
    assert location.parent == tmp_path / "warehouse" / f"{name}.db"
    assert [path.name for path in location.iterdir()] == ["file"]
    assert not (tmp_path / "warehouse" / "t").exists()


@pytest.mark.parametrize("name", HOSTILE)
def test_a_name_never_leaves_its_parent(call: Call, tmp_path: Path, name: str) -> None:
    kept = make_table(call, "kept")
    before = inside(tmp_path)
    with pytest.raises(InvalidObject):
        create_database(call, Database(name=name))
    with pytest.raises((InvalidObject, MetaError)):
        make_table(call, name)
    with pytest.raises(InvalidObject):
        create_catalog(call, Catalog(name=name, locationUri=str(tmp_path / "catalog")))
    new = deepcopy(get_table(call, kept))
    new.tableName = name
    with pytest.raises(InvalidOperation):
        alter_table(call, kept, new)
    new.tableName, new.dbName = "kept", name
    with pytest.raises(MetastoreError):
        alter_table(call, kept, new)
    assert get_table(call, kept).tableName == "kept"
    assert inside(tmp_path) == before
    assert not (tmp_path.parent / "x").exists()


def test_special_characters_can_be_switched_off(make_metastore: MetastoreMaker) -> None:
    metastore = make_metastore(special_characters_in_table_names=False)
    create_startup_objects(metastore)
    call = call_of(metastore)
    with pytest.raises(InvalidObject, match="a-b is not a valid database name"):
        make_database(call, "a-b")
    with pytest.raises(InvalidObject, match="a-b is not a valid object name"):
        make_table(call, "a-b")


def test_a_table_with_dots_that_a_view_is_made_from_is_kept_and_renamed_in_it(call: Call) -> None:
    make_database(call, "d.e")
    used = make_table(call, "a.b", database="d.e")
    view = make_table(call, "v", kind="MATERIALIZED_VIEW")
    stored = deepcopy(get_table(call, view))
    stored.creationMetadata = CreationMetadata(catName="hive", dbName="default", tblName="v", tablesUsed=["d.e.a.b"])
    alter_table(call, view, stored)
    with pytest.raises(MetaError, match="used in the following materialized views"):
        drop_table(call, used, delete_data=True)
    new = deepcopy(get_table(call, used))
    new.tableName = "c"
    alter_table(call, used, new)
    assert set(get_table(call, view).creationMetadata.tablesUsed) == {"d.e.c"}
