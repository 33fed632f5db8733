from getpass import getuser
from pathlib import Path

import pytest

from metastore.errors import AlreadyExists, InvalidObject, InvalidOperation, MetaError, NoSuchObject
from metastore.idl import Catalog, CreationMetadata, Database, PrincipalType
from metastore.service.call.context import Call
from metastore.service.call.names import TableName
from metastore.service.catalog import catalogs, databases
from metastore.service.catalog.tables import tables
from tests.support.catalog.catalog import MetastoreMaker, add_partitions, call_of, make_database, make_table

pytestmark = pytest.mark.on_one_database


def path_of(location: str) -> str:
    return location.removeprefix("file:")


def test_a_new_server_has_a_catalog_a_database_and_two_roles(call: Call) -> None:
    assert catalogs.get_catalogs(call) == ["hive"]
    default = databases.get_database(call, "hive", "default")
    assert (default.ownerName, default.ownerType, default.locationUri) == ("public", PrincipalType.ROLE, call.warehouse.root)
    catalogs.create_startup_objects(call.metastore)
    assert catalogs.get_catalogs(call) == ["hive"]


def test_a_database_lies_below_the_warehouse_and_comes_back_as_it_was_made(call: Call) -> None:
    databases.create_database(
        call, Database(name="Sales", description="all of it", parameters={"k": "v"}, ownerName="bob", ownerType=PrincipalType.USER)
    )
    found = databases.get_database(call, "HIVE", "SALES")
    assert found.name == "sales"
    assert found.locationUri == f"{call.warehouse.root}/sales.db"
    assert (found.description, found.parameters, found.ownerName) == ("all of it", {"k": "v"}, "bob")
    assert Path(path_of(found.locationUri)).is_dir()


def test_the_default_database_of_a_catalog_names_it_as_it_was_asked_for(call: Call) -> None:
    catalogs.create_catalog(call, Catalog(name="Sales", locationUri=f"{call.warehouse.root}/sales"))
    assert databases.get_database(call, "sales", "default").description == "Default database for catalog Sales"


def test_a_database_without_an_owner_belongs_to_the_caller(make_metastore: MetastoreMaker, call: Call) -> None:
    for name, owner, kind in (("one", None, None), ("two", "bob", None), ("three", None, PrincipalType.ROLE)):
        databases.create_database(call, Database(name=name, ownerName=owner, ownerType=kind))
        found = databases.get_database(call, "hive", name)
        assert (found.ownerName, found.ownerType) == (owner or "alice", kind or PrincipalType.USER)
    catalogs.create_catalog(call, Catalog(name="other", locationUri=f"{call.warehouse.root}/other"))
    found = databases.get_database(call, "other", "default")
    assert (found.ownerName, found.ownerType) == ("alice", PrincipalType.USER)
    nobody = call_of(call.metastore)
    nobody.client.user = None
    databases.create_database(nobody, Database(name="four"))
    found = databases.get_database(call, "hive", "four")
    assert (found.ownerName, found.ownerType) == (getuser(), PrincipalType.USER)


def test_the_external_root_is_the_default_place_and_the_managed_location_is_kept(make_metastore: MetastoreMaker, tmp_path: Path) -> None:
    metastore = make_metastore(external_warehouse=str(tmp_path / "external"))
    catalogs.create_startup_objects(metastore)
    call = call_of(metastore)
    databases.create_database(call, Database(name="d", managedLocationUri=f"{metastore.warehouse.root}/special"))
    found = databases.get_database(call, "hive", "d")
    assert found.locationUri == f"file:{tmp_path}/external/d.db"
    assert found.managedLocationUri == f"{metastore.warehouse.root}/special"


def location_of(call: Call, name: TableName) -> str:
    return tables.get_table(call, name).sd.location


def test_a_managed_table_lies_in_the_location_that_its_database_was_given(make_metastore: MetastoreMaker, tmp_path: Path) -> None:
    """Spark gives every database a location, and writes the tables of it there."""
    metastore = make_metastore(external_warehouse=str(tmp_path / "external"))
    catalogs.create_startup_objects(metastore)
    call = call_of(metastore)
    for place in (tmp_path / "external" / "d.db", tmp_path / "elsewhere"):
        databases.create_database(call, Database(name="d", locationUri=str(place)))
        name = make_table(call, "t", database="d")
        assert location_of(call, name) == f"file:{place}/t"
        assert location_of(call, make_table(call, "e", database="d", kind="EXTERNAL_TABLE", parameters={"EXTERNAL": "TRUE"})) == (
            f"file:{place}/e"
        )
        (place / "t" / "file").touch()
        databases.drop_database(call, "hive", "d", delete_data=True, cascade=True)
        assert not (place / "t").exists()


def test_a_database_at_its_default_place_has_its_managed_tables_in_the_managed_root(make_metastore: MetastoreMaker, tmp_path: Path) -> None:
    metastore = make_metastore(external_warehouse=str(tmp_path / "external"))
    catalogs.create_startup_objects(metastore)
    call = call_of(metastore)
    make_database(call, "d")
    assert location_of(call, make_table(call, "t", database="d")) == f"{metastore.warehouse.root}/d.db/t"
    assert location_of(call, make_table(call, "t")) == f"{metastore.warehouse.root}/t"


def test_managed_tables_follow_the_location_that_is_given_to_a_database_later(make_metastore: MetastoreMaker, tmp_path: Path) -> None:
    metastore = make_metastore(external_warehouse=str(tmp_path / "external"))
    catalogs.create_startup_objects(metastore)
    call = call_of(metastore)
    databases.create_database(call, Database(name="d", locationUri=str(tmp_path / "external" / "d.db")))
    databases.alter_database(call, "hive", "d", Database(name="d", locationUri=f"file:{tmp_path}/new"))
    assert location_of(call, make_table(call, "t", database="d")) == f"file:{tmp_path}/new/t"


@pytest.mark.parametrize("translation", ["legacy", "strict"])
@pytest.mark.parametrize("external", [False, True])
def test_databases_of_one_name_in_two_catalogs_share_no_directory(
    make_metastore: MetastoreMaker, tmp_path: Path, translation: str, external: bool
) -> None:
    metastore = make_metastore(table_translation=translation, **({"external_warehouse": str(tmp_path / "external")} if external else {}))
    catalogs.create_startup_objects(metastore)
    call = call_of(metastore)
    catalogs.create_catalog(call, Catalog(name="other", locationUri=str(tmp_path / "other")))
    places = []
    for catalog in ("hive", "other"):
        databases.create_database(call, Database(name="d", catalogName=catalog))
        name = make_table(call, "t", database=f"@{catalog}#d")._replace(catalog=catalog, database="d")
        places.append(path_of(location_of(call, name)))
        (Path(places[-1]) / "file").touch()
    assert places[1] == f"{tmp_path}/other/d.db/t"
    tables.drop_table(call, TableName("other", "d", "t"), delete_data=True)
    assert (Path(places[0]) / "file").exists()
    assert not Path(places[1]).exists()


@pytest.mark.parametrize(("external", "below"), [(True, "warehouse/d.db"), (False, "elsewhere")])
def test_where_a_transactional_table_of_a_database_elsewhere_lies(
    make_metastore: MetastoreMaker, tmp_path: Path, external: bool, below: str
) -> None:
    """With two roots it is placed as in 4.0.1. With one root it is in its database's location (record 46)."""
    roots = {"external_warehouse": str(tmp_path / "external")} if external else {}
    metastore = make_metastore(table_translation="strict", warehouse=str(tmp_path / "warehouse"), **roots)
    catalogs.create_startup_objects(metastore)
    call = call_of(metastore)
    databases.create_database(call, Database(name="d", locationUri=f"file:{tmp_path}/elsewhere"))
    acid = {"transactional": "true", "transactional_properties": "insert_only"}
    for name, parameters, place in (("acid", acid, below), ("plain", {"EXTERNAL": "TRUE"}, "elsewhere")):
        kind = "MANAGED_TABLE" if parameters is acid else "EXTERNAL_TABLE"
        made = make_table(call, name, database="d", kind=kind, parameters=parameters, capabilities=["HIVEMANAGEDINSERTWRITE"])
        assert path_of(location_of(call, made)) == f"{tmp_path}/{place}/{name}"


def test_a_database_is_not_renamed(call: Call) -> None:
    make_database(call, "d")
    with pytest.raises(InvalidOperation, match=r"Database hive.d can not be renamed to e"):
        databases.alter_database(call, "hive", "d", Database(name="e", description="new"))
    assert databases.get_database(call, "hive", "d").description is None
    databases.alter_database(call, "hive", "d", Database(name="D", description="new"))
    assert databases.get_database(call, "hive", "d").description == "new"


@pytest.mark.parametrize("name", ["", "a/b", "../x", "a\0b", "ä", "x" * 300])
def test_a_bad_name_is_refused_and_leaves_no_directory(call: Call, name: str) -> None:
    before = sorted(Path(path_of(call.warehouse.root)).rglob("*"))
    with pytest.raises(InvalidObject):
        databases.create_database(call, Database(name=name))
    assert sorted(Path(path_of(call.warehouse.root)).rglob("*")) == before


def test_a_name_that_comes_alone_is_passed_over(call: Call) -> None:
    make_database(call, "d")
    databases.alter_database(call, "hive", "d", Database(name="e"))
    assert databases.get_database(call, "hive", "d").name == "d"


def test_a_second_database_of_a_name_is_refused(call: Call) -> None:
    make_database(call, "d")
    with pytest.raises(AlreadyExists, match="Database d already exists"):
        make_database(call, "D")


def test_a_database_of_an_unknown_catalog_is_refused(call: Call) -> None:
    with pytest.raises(InvalidObject, match="No such catalog nope"):
        databases.create_database(call, Database(name="d", catalogName="nope"))


def test_databases_are_listed_by_pattern_in_order(call: Call) -> None:
    for name in ("sales_b", "sales_a", "hr"):
        make_database(call, name)
    assert databases.get_databases(call, "hive", None) == ["default", "hr", "sales_a", "sales_b"]
    assert databases.get_databases(call, "hive", "sales*|hr") == ["hr", "sales_a", "sales_b"]
    assert databases.get_databases(call, "nope", None) == []


def test_an_alter_changes_the_sent_fields_and_keeps_the_rest(call: Call) -> None:
    databases.create_database(call, Database(name="d", description="old", parameters={"k": "v"}))
    place = databases.get_database(call, "hive", "d").locationUri
    databases.alter_database(call, "hive", "d", Database(name="d", ownerName="eve", ownerType=PrincipalType.ROLE))
    found = databases.get_database(call, "hive", "d")
    assert (found.description, found.locationUri, found.ownerName, found.ownerType) == ("old", place, "eve", PrincipalType.ROLE)
    assert found.parameters == {}


def test_a_missing_database_is_reported(call: Call) -> None:
    for work in (
        lambda: databases.get_database(call, "hive", "nope"),
        lambda: databases.alter_database(call, "hive", "nope", Database(name="nope")),
        lambda: databases.drop_database(call, "hive", "nope", delete_data=True, cascade=False),
    ):
        with pytest.raises(NoSuchObject, match="nope"):
            work()
    databases.drop_database(call, "hive", "nope", delete_data=True, cascade=False, ignore_unknown=True)


def test_only_an_empty_database_is_dropped_without_cascade(call: Call) -> None:
    make_database(call, "d")
    make_table(call, "t", database="d")
    with pytest.raises(InvalidOperation, match=r"Database d is not empty. One or more tables exist."):
        databases.drop_database(call, "hive", "d", delete_data=True, cascade=False)
    assert tables.get_tables(call, "hive", "d", None) == ["t"]


def test_a_cascade_takes_tables_partitions_and_directories(call: Call) -> None:
    make_database(call, "d")
    place = path_of(databases.get_database(call, "hive", "d").locationUri)
    name = make_table(call, "t", keys=[("p", "string")], database="d")
    add_partitions(call, name, [["1"], ["2"]])
    databases.drop_database(call, "hive", "d", delete_data=True, cascade=True)
    assert not Path(place).exists()
    make_database(call, "d")
    assert tables.get_tables(call, "hive", "d", None) == []


@pytest.mark.parametrize("cascade", [False, True])
def test_a_database_that_is_replicated_stays(call: Call, cascade: bool) -> None:
    make_database(call, "d")
    databases.alter_database(call, "hive", "d", Database(name="d", parameters={"repl.source.for": "1"}))
    with pytest.raises(InvalidOperation, match=r"which is a source of replication: hive\.d; take repl\.source\.for out"):
        databases.drop_database(call, "hive", "d", delete_data=True, cascade=cascade)
    databases.alter_database(call, "hive", "d", Database(name="d", parameters={"repl.source.for": ""}))
    databases.drop_database(call, "hive", "d", delete_data=True, cascade=cascade)
    assert databases.get_databases(call, "hive", "d") == []


def test_a_database_whose_table_a_view_of_another_one_is_made_from_stays(call: Call) -> None:
    for database in ("d", "d2"):
        make_database(call, database)
    name = make_table(call, "t", database="d")
    for database in ("d", "d2"):
        view = make_table(call, "v", database=database, kind="MATERIALIZED_VIEW")
        tables.update_creation_metadata(call, view, CreationMetadata("hive", database, "v", tablesUsed=["d.t"]))
    place = path_of(tables.get_table(call, name).sd.location)
    with pytest.raises(MetaError, match=r"Cannot drop database d .* views \['d2.v'\]"):
        databases.drop_database(call, "hive", "d", delete_data=True, cascade=True)
    assert tables.get_tables(call, "hive", "d", None) == ["t", "v"]
    assert Path(place).is_dir()
    for database in ("d2", "d"):
        databases.drop_database(call, "hive", database, delete_data=True, cascade=True)
    assert not Path(place).exists()


def test_data_of_an_external_table_survives_its_database(call: Call) -> None:
    make_database(call, "d")
    make_table(call, "t", database="d", kind="EXTERNAL_TABLE", parameters={"EXTERNAL": "TRUE"})
    place = path_of(databases.get_database(call, "hive", "d").locationUri)
    databases.drop_database(call, "hive", "d", delete_data=True, cascade=True)
    assert Path(place, "t").is_dir()


def test_the_default_database_can_not_be_dropped(call: Call) -> None:
    with pytest.raises(MetaError, match="Can not drop default database in catalog hive"):
        databases.drop_database(call, "hive", "default", delete_data=True, cascade=True)


def test_a_catalog_has_databases_of_its_own(call: Call, tmp_path: Path) -> None:
    catalogs.create_catalog(call, Catalog(name="Lab", locationUri=f"file:{tmp_path}/lab"))
    databases.create_database(call, Database(name="d", catalogName="lab"))
    assert databases.get_database(call, "lab", "d").locationUri == f"file:{tmp_path}/lab/d.db"
    assert databases.get_databases(call, "lab", None) == ["d", "default"]
    with pytest.raises(InvalidOperation):
        catalogs.drop_catalog(call, "lab")
    databases.drop_database(call, "lab", "d", delete_data=True, cascade=False)
    catalogs.drop_catalog(call, "lab")
    assert catalogs.get_catalogs(call) == ["hive"]
    assert not (tmp_path / "lab").exists()


def test_a_catalog_is_altered_but_not_renamed(call: Call, tmp_path: Path) -> None:
    catalogs.create_catalog(call, Catalog(name="lab", locationUri=f"file:{tmp_path}/lab"))
    catalogs.alter_catalog(call, "lab", Catalog(name="lab", locationUri=f"file:{tmp_path}/lab2", description="x"))
    assert catalogs.get_catalog(call, "lab").description == "x"
    with pytest.raises(InvalidOperation):
        catalogs.alter_catalog(call, "lab", Catalog(name="other", locationUri="file:/x"))
    with pytest.raises(MetaError):
        catalogs.drop_catalog(call, "hive")
    with pytest.raises(NoSuchObject):
        catalogs.get_catalog(call, "nope")
