from copy import deepcopy
from pathlib import Path

import pytest

from metastore.errors import (
    AlreadyExists,
    InvalidObject,
    InvalidOperation,
    MetaError,
    NoSuchObject,
    UnknownDatabase,
    UnknownTable,
)
from metastore.idl import CreationMetadata, FieldSchema, Partition, SerDeInfo, SkewedInfo, StorageDescriptor, Table
from metastore.service.call.context import Call
from metastore.service.call.names import TableName
from metastore.service.catalog import catalogs
from metastore.service.catalog.partitions import partitions
from metastore.service.catalog.partitions.add_partitions import add_partitions as add
from metastore.service.catalog.tables import tables
from metastore.service.catalog.tables.alter_table import alter_table
from metastore.service.catalog.tables.create_table import create_table
from tests.support.catalog.catalog import MetastoreMaker, add_partitions, call_of, make_database, make_table

pytestmark = pytest.mark.on_one_database


def path_of(location: str) -> str:
    return location.removeprefix("file:")


def full_table() -> Table:
    """Return a table that uses every part of a storage descriptor."""
    return Table(
        tableName="full",
        dbName="default",
        owner="bob",
        retention=7,
        tableType="MANAGED_TABLE",
        parameters={"a": "b", "umlaut": "äöü 漢字"},
        sd=StorageDescriptor(
            cols=[FieldSchema("Id", "int", "the key"), FieldSchema("m", "map<string,array<int>>")],
            inputFormat="in",
            outputFormat="out",
            compressed=True,
            numBuckets=4,
            bucketCols=["id"],
            parameters={"sd": "p"},
            storedAsSubDirectories=True,
            serdeInfo=SerDeInfo(name="n", serializationLib="lib", parameters={"field.delim": "\u0001"}),
            skewedInfo=SkewedInfo(
                skewedColNames=["Id"], skewedColValues=[["1"], ["2"]], skewedColValueLocationMaps={("1",): "file:/x/one"}
            ),
        ),
        partitionKeys=[FieldSchema("Day", "date", "when")],
    )


def test_a_table_comes_back_as_it_was_made(call: Call) -> None:
    made = full_table()
    create_table(call, deepcopy(made))
    found = tables.get_table(call, TableName("hive", "default", "full"))
    assert [column.name for column in found.sd.cols] == ["id", "m"]
    assert found.partitionKeys == [FieldSchema("day", "date", "when")]
    assert found.sd.location == f"{call.warehouse.root}/full"
    assert found.sd.skewedInfo == made.sd.skewedInfo
    assert found.sd.serdeInfo.parameters == {"field.delim": "\u0001"}
    assert (found.sd.numBuckets, found.sd.bucketCols, found.sd.compressed, found.sd.storedAsSubDirectories) == (4, ["id"], True, True)
    assert {key: found.parameters[key] for key in made.parameters} == made.parameters
    assert found.parameters["transient_lastDdlTime"] == str(found.createTime)
    assert (found.owner, found.retention, found.tableType, found.catName) == ("bob", 7, "MANAGED_TABLE", "hive")
    assert Path(path_of(found.sd.location)).is_dir()


@pytest.mark.parametrize("name", ["", "a/b", "../x", "/x", "file:///x", "a\0b", "a\\b"])
def test_a_bad_table_name_is_refused_and_leaves_no_directory(call: Call, name: str) -> None:
    before = sorted(Path(path_of(call.warehouse.root)).rglob("*"))
    with pytest.raises(InvalidObject):
        make_table(call, name)
    assert sorted(Path(path_of(call.warehouse.root)).rglob("*")) == before


def test_bad_columns_are_refused(call: Call) -> None:
    with pytest.raises(InvalidObject, match="Invalid column type: nonsense"):
        make_table(call, "t", columns=[("a", "nonsense")])
    with pytest.raises(InvalidObject, match="conflicts with table columns"):
        make_table(call, "t", columns=[("a", "int")], keys=[("A", "int")])


def test_a_table_needs_its_database_and_a_free_name(call: Call) -> None:
    with pytest.raises(NoSuchObject, match=r"The database hive.nope does not exist"):
        make_table(call, "t", database="nope")
    make_table(call, "t")
    with pytest.raises(AlreadyExists, match=r"Table hive.default.t already exists"):
        make_table(call, "T")
    assert Path(path_of(f"{call.warehouse.root}/t")).is_dir()


def test_a_location_that_can_not_be_made_leaves_no_table(call: Call, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    table = full_table()
    table.sd.location = f"file:{tmp_path}/file/below"
    with pytest.raises(MetaError, match="unable to create one"):
        create_table(call, table)
    with pytest.raises(NoSuchObject):
        tables.get_table(call, TableName("hive", "default", "full"))


def test_the_location_of_a_view_is_kept_and_no_directory_of_its_own(call: Call, tmp_path: Path) -> None:
    """Views of Iceberg have a location."""
    place = tmp_path / "warehouse" / "t"
    make_table(call, "t")
    (place / "file").write_text("1")
    view = Table(
        tableName="v",
        dbName="default",
        tableType="VIRTUAL_VIEW",
        viewOriginalText="select 1",
        sd=StorageDescriptor(cols=[FieldSchema("a", "int")], location=f"file:{place}", serdeInfo=SerDeInfo(parameters={})),
        parameters={},
    )
    create_table(call, view)
    name = TableName("hive", "default", "v")
    assert tables.get_table(call, name).sd.location == f"file:{place}"
    tables.truncate_table(call, name, None, None)
    renamed = tables.get_table(call, name)
    renamed.tableName = "w"
    alter_table(call, name, renamed)
    assert tables.get_table(call, name._replace(table="w")).sd.location == f"file:{place}"
    tables.drop_table(call, name._replace(table="w"), delete_data=True)
    assert (place / "file").exists()
    create_table(call, view)
    tables.drop_table(call, TableName("hive", "default", "t"), delete_data=True)
    assert not place.exists()


def test_a_view_has_no_directory_and_a_materialized_view_has_one(call: Call) -> None:
    for kind in ("VIRTUAL_VIEW", "MATERIALIZED_VIEW"):
        create_table(
            call,
            Table(
                tableName=kind,
                dbName="default",
                tableType=kind,
                viewOriginalText="select 1",
                viewExpandedText="select 1",
                rewriteEnabled=True,
                sd=StorageDescriptor(cols=[FieldSchema("a", "int")], serdeInfo=SerDeInfo(parameters={})),
                creationMetadata=CreationMetadata(catName="hive", dbName="default", tblName=kind, tablesUsed=["default.base"]),
            ),
        )
    view = tables.get_table(call, TableName("hive", "default", "virtual_view"))
    assert (view.sd.location, view.viewOriginalText) == (None, "select 1")
    made = tables.get_table(call, TableName("hive", "default", "materialized_view"))
    assert Path(path_of(made.sd.location)).is_dir()
    assert made.creationMetadata is not None
    assert made.creationMetadata.tablesUsed == ["default.base"]
    assert tables.materialized_views(call, "hive", "default") == ["materialized_view"]
    name = make_table(call, "base")
    with pytest.raises(MetaError, match=r"used in the following materialized views \['default.materialized_view'\]"):
        tables.drop_table(call, name, delete_data=True)


def test_type_and_external_parameter_agree(call: Call) -> None:
    first = make_table(call, "a", kind="MANAGED_TABLE", parameters={"EXTERNAL": "true"})
    second = make_table(call, "b", kind="EXTERNAL_TABLE")
    assert tables.get_table(call, first).tableType == "EXTERNAL_TABLE"
    assert tables.get_table(call, second).tableType == "MANAGED_TABLE"
    table = deepcopy(tables.get_table(call, second))
    table.parameters["EXTERNAL"] = "TRUE"
    alter_table(call, second, table)
    assert tables.get_table(call, second).tableType == "EXTERNAL_TABLE"


def test_tables_are_listed_by_pattern_and_type(call: Call) -> None:
    make_database(call, "d")
    for name in ("sales_b", "sales_a", "hr"):
        make_table(call, name, database="d")
    make_table(call, "out", database="d", kind="EXTERNAL_TABLE", parameters={"EXTERNAL": "TRUE", "comment": "c"})
    assert tables.get_tables(call, "hive", "d", None) == ["hr", "out", "sales_a", "sales_b"]
    assert tables.get_tables(call, "hive", "d", "SALES*") == ["sales_a", "sales_b"]
    assert tables.matching_tables(call, "hive", "d", None, "EXTERNAL_TABLE") == ["out"]
    assert tables.get_tables(call, "hive", "nope", None) == []
    meta = tables.get_table_meta(call, "hive", "d|nope", "*", ["EXTERNAL_TABLE"])
    assert [(each.dbName, each.tableName, each.tableType, each.comments) for each in meta] == [("d", "out", "EXTERNAL_TABLE", "c")]
    assert len(tables.get_table_meta(call, "hive", "d", "*", [])) == 4
    assert tables.get_table_names_by_filter(call, "hive", "d", 'hive_filter_field_params__comment = "c"', -1) == ["out"]
    assert tables.get_table_names_by_filter(call, "hive", "d", 'hive_filter_field_owner__ like "ali.*"', 2) == ["hr", "out"]
    with pytest.raises(MetaError):
        tables.get_table_names_by_filter(call, "hive", "d", "nonsense = 1", -1)


def test_several_tables_are_read_at_once(call: Call) -> None:
    make_table(call, "a")
    make_table(call, "b")
    found = tables.get_table_objects_by_name(call, "hive", "default", ["b", "nope", "A", "a"])
    assert [table.tableName for table in found] == ["a", "b"]
    with pytest.raises(UnknownDatabase, match="nope"):
        tables.get_table_objects_by_name(call, "hive", "nope", ["a"])
    with pytest.raises(InvalidOperation):
        tables.get_table_objects_by_name(call, "hive", "default", None)


def test_schema_is_columns_then_partition_keys(call: Call) -> None:
    name = make_table(call, "t", columns=[("a", "int")], keys=[("p", "string")])
    assert [field.name for field in tables.get_fields(call, name)] == ["a"]
    assert [field.name for field in tables.get_schema(call, name)] == ["a", "p"]
    with pytest.raises(UnknownTable):
        tables.get_schema(call, TableName("hive", "default", "nope"))


@pytest.mark.parametrize(
    ("serde", "is_class"),
    [("no.such.class", False), ("a..B", False), ("1.B", False), ("a b", False), ("a.B$C", True), ("lib", True), ("", True)],
)
def test_the_columns_of_a_serde_that_no_engine_can_load_are_not_returned(call: Call, serde: str, is_class: bool) -> None:
    table = full_table()
    table.sd.serdeInfo.serializationLib = serde
    create_table(call, table)
    name = TableName("hive", "default", table.tableName)
    for ask in (tables.get_fields, tables.get_schema):
        if is_class:
            assert ask(call, name)[0].type == table.sd.cols[0].type
        else:
            with pytest.raises(MetaError, match="not a name of a class in Java"):
                ask(call, name)


def test_a_drop_takes_data_of_managed_tables_and_of_external_ones_that_purge(call: Call) -> None:
    external = {"EXTERNAL": "TRUE"}
    kept = make_table(call, "kept", kind="EXTERNAL_TABLE", parameters=external)
    purged = make_table(call, "purged", kind="EXTERNAL_TABLE", parameters={**external, "external.table.purge": "true"})
    managed = make_table(call, "managed")
    spared = make_table(call, "spared")
    for name in (kept, purged, managed):
        tables.drop_table(call, name, delete_data=True)
    tables.drop_table(call, spared, delete_data=False)
    root = Path(path_of(call.warehouse.root))
    assert sorted(entry.name for entry in root.iterdir()) == ["kept", "spared"]
    with pytest.raises(NoSuchObject, match=r"hive.default.kept table not found"):
        tables.drop_table(call, kept, delete_data=True)


def test_a_drop_takes_partitions_that_lie_elsewhere(call: Call, tmp_path: Path) -> None:
    name = make_table(call, "t", keys=[("p", "string")])
    add_partitions(call, name, [["1"]])
    table = tables.get_table(call, name)
    sd = deepcopy(table.sd)
    sd.location = f"file:{tmp_path}/elsewhere"
    add(call, name, [Partition(values=["2"], dbName="default", tableName="t", sd=sd, parameters={})])
    assert (tmp_path / "elsewhere").is_dir()
    tables.drop_table(call, name, delete_data=True)
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize("mode", ["legacy", "strict"])
def test_a_client_may_want_external_tables_by_default(make_metastore: MetastoreMaker, tmp_path: Path, mode: str) -> None:
    """Hive 4 does with `hive.create.as.external.legacy`, and nevertheless declares that it can write transactional tables."""
    metastore = make_metastore(table_translation=mode, external_warehouse=str(tmp_path / "ext"))
    catalogs.create_startup_objects(metastore)
    call = call_of(metastore)
    able = ["HIVEFULLACIDWRITE", "HIVEMANAGEDINSERTWRITE"]
    name = make_table(call, "t", environment={"create_table_as_external": "true"}, capabilities=able)
    found = tables.get_table(call, name)
    assert (found.tableType, found.parameters["external.table.purge"]) == ("EXTERNAL_TABLE", "TRUE")
    assert path_of(found.sd.location) == f"{tmp_path}/ext/t"


def test_truncate_empties_a_table_and_named_partitions(call: Call) -> None:
    plain, parted = make_table(call, "t"), make_table(call, "p", keys=[("k", "string")])
    add_partitions(call, parted, [["1"], ["2"]])
    for place in ("t", "p/k=1", "p/k=2"):
        Path(path_of(call.warehouse.root), place, "data").write_text("x")
    tables.truncate_table(call, plain, None, None)
    tables.truncate_table(call, parted, ["k=1"], None)
    root = Path(path_of(call.warehouse.root))
    assert [sorted(entry.name for entry in (root / place).iterdir()) for place in ("t", "p/k=1", "p/k=2")] == [[], [], ["data"]]


def test_a_truncate_of_a_missing_partition_is_refused_and_empties_nothing(call: Call) -> None:
    plain, parted = make_table(call, "t"), make_table(call, "p", keys=[("k", "string")])
    add_partitions(call, parted, [["1"]])
    file, other = (Path(path_of(call.warehouse.root), place, "data") for place in ("p/k=1", "t"))
    file.write_text("x")
    other.write_text("x")
    for name, wanted, missing in (
        (parted, ["k=1", "k=nope"], "k=nope"),
        (parted, ["nope"], "nope"),
        (parted, ["other=1"], "other=1"),
    ):
        with pytest.raises(MetaError, match=missing):
            tables.truncate_table(call, name, wanted, None)
    for name in (TableName("hive", "default", "nope"), TableName("hive", "nope", "t"), TableName("nope", "default", "t")):
        with pytest.raises(NoSuchObject, match="nope"):
            tables.truncate_table(call, name, None, None)
    tables.truncate_table(call, plain, ["k=1"], None)
    assert file.exists()
    assert other.exists()


def test_a_rename_takes_directory_partitions_and_database(call: Call) -> None:
    make_database(call, "d")
    name = make_table(call, "t", keys=[("k", "string")])
    add_partitions(call, name, [["1"]])
    table = deepcopy(tables.get_table(call, name))
    table.tableName, table.dbName = "renamed", "d"
    alter_table(call, name, table)
    new = TableName("hive", "d", "renamed")
    found = tables.get_table(call, new)
    assert found.sd.location == f"{call.warehouse.root}/d.db/renamed"
    (partition,) = partitions.get_partitions(call, new)
    assert partition.sd.location == f"{found.sd.location}/k=1"
    assert Path(path_of(partition.sd.location)).is_dir()
    with pytest.raises(NoSuchObject):
        tables.get_table(call, name)


def test_an_external_table_stays_where_it_is_when_renamed(call: Call) -> None:
    name = make_table(call, "t", kind="EXTERNAL_TABLE", parameters={"EXTERNAL": "TRUE"}, keys=[("k", "string")])
    add_partitions(call, name, [["1"]])
    table = deepcopy(tables.get_table(call, name))
    table.tableName = "renamed"
    alter_table(call, name, table)
    new = TableName("hive", "default", "renamed")
    assert tables.get_table(call, new).sd.location == f"{call.warehouse.root}/t"
    assert partitions.get_partitions(call, new)[0].sd.location == f"{call.warehouse.root}/t/k=1"


def test_partitions_stay_where_they_are_when_the_table_gets_another_location(call: Call, tmp_path: Path) -> None:
    name = make_table(call, "t", keys=[("k", "string")])
    add_partitions(call, name, [["1"]])
    table = deepcopy(tables.get_table(call, name))
    table.sd.location = f"file:{tmp_path}/moved"
    alter_table(call, name, table)
    assert partitions.get_partitions(call, name)[0].sd.location == f"{call.warehouse.root}/t/k=1"


def test_a_rename_onto_a_taken_name_or_directory_changes_nothing(call: Call) -> None:
    name = make_table(call, "t")
    make_table(call, "taken")
    table = deepcopy(tables.get_table(call, name))
    table.tableName = "taken"
    with pytest.raises(InvalidOperation, match="already exists"):
        alter_table(call, name, table)
    Path(path_of(call.warehouse.root), "folder").mkdir()
    table.tableName = "folder"
    with pytest.raises(InvalidOperation, match="already exists"):
        alter_table(call, name, table)
    assert tables.get_table(call, name).sd.location == f"{call.warehouse.root}/t"
    assert Path(path_of(call.warehouse.root), "t").is_dir()


def test_forbidden_changes_are_refused(call: Call) -> None:
    name = make_table(call, "t", columns=[("a", "int")], keys=[("k", "string")])

    def altered(**changes: object) -> Table:
        table = deepcopy(tables.get_table(call, name))
        for field, value in changes.items():
            setattr(table, field, value)
        return table

    narrower = altered()
    narrower.sd.cols = [FieldSchema("a", "tinyint")]
    for table in (
        altered(partitionKeys=[FieldSchema("other", "string")]),
        altered(tableName="a/b"),
        altered(dbName="nope"),
        altered(catName="other"),
        narrower,
    ):
        with pytest.raises(InvalidOperation):
            alter_table(call, name, table)
    with pytest.raises(InvalidOperation, match="doesn't exist"):
        alter_table(call, TableName("hive", "default", "nope"), altered())


def test_columns_change_in_the_table_and_with_cascade_in_its_partitions(call: Call) -> None:
    name = make_table(call, "t", columns=[("a", "int")], keys=[("k", "string")])
    add_partitions(call, name, [["1"], ["2"]])
    table = deepcopy(tables.get_table(call, name))
    table.sd.cols = [FieldSchema("a", "bigint"), FieldSchema("b", "string")]
    alter_table(call, name, table)
    assert [column.type for column in tables.get_table(call, name).sd.cols] == ["bigint", "string"]
    assert [column.type for column in partitions.get_partitions(call, name)[0].sd.cols] == ["int"]
    alter_table(call, name, table, environment={"CASCADE": "true"})
    assert [[column.name for column in part.sd.cols] for part in partitions.get_partitions(call, name)] == [["a", "b"], ["a", "b"]]


def test_compare_and_swap_takes_only_the_expected_value(call: Call) -> None:
    name = make_table(call, "t", parameters={"metadata_location": "v1"})
    table = deepcopy(tables.get_table(call, name))
    expected = {"expected_parameter_key": "metadata_location", "expected_parameter_value": "v1", "DO_NOT_UPDATE_STATS": "true"}
    table.parameters["metadata_location"] = "v2"
    alter_table(call, name, table, environment=expected)
    table.parameters["metadata_location"] = "v3"
    with pytest.raises(MetaError, match=r"^The table has been modified\. The parameter value for key 'metadata_location' is 'v2'"):
        alter_table(call, name, table, environment=expected)
    del table.parameters["metadata_location"]
    with pytest.raises(MetaError, match="New value for expected key"):
        alter_table(call, name, table, environment=expected)
    assert tables.get_table(call, name).parameters["metadata_location"] == "v2"


def test_basic_statistics_come_from_the_directory_unless_the_request_says_no(call: Call) -> None:
    name = make_table(call, "t")
    Path(path_of(call.warehouse.root), "t", "data").write_text("12345")
    Path(path_of(call.warehouse.root), "t", "_hidden").write_text("12345")
    table = deepcopy(tables.get_table(call, name))
    alter_table(call, name, table, environment={"DO_NOT_UPDATE_STATS": "true"})
    assert "totalSize" not in tables.get_table(call, name).parameters
    alter_table(call, name, table)
    found = tables.get_table(call, name).parameters
    assert (found["numFiles"], found["totalSize"]) == ("1", "5")


@pytest.mark.parametrize(
    ("serde", "free"), [("org.apache.hadoop.hive.ql.io.orc.OrcSerde", False), ("org.apache.iceberg.mr.hive.HiveIcebergSerDe", True)]
)
def test_only_some_serdes_may_change_a_type_to_one_that_reads_differently(call: Call, serde: str, free: bool) -> None:
    name = make_table(call, "t")
    table = deepcopy(tables.get_table(call, name))
    table.sd.serdeInfo.serializationLib = serde
    alter_table(call, name, table)
    table.sd.cols = [FieldSchema(table.sd.cols[0].name, "map<string,int>"), *table.sd.cols[1:]]
    if not free:
        with pytest.raises(InvalidOperation, match="incompatible"):
            alter_table(call, name, table)
    else:
        alter_table(call, name, table)
        assert tables.get_table(call, name).sd.cols[0].type == "map<string,int>"
