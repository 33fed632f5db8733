"""Calls for which Hive 3's and Hive 4's own clients expect different answers. The cases are from Hive's own tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from thriftpy2.thrift import TApplicationException

from metastore import idl
from metastore.app import build, close
from metastore.client import Client, connect
from metastore.config import Config
from metastore.idl import Function, FunctionType, GetProjectionsSpec, GetTablesRequest, MetaException, Partition, PrincipalType
from metastore.service.catalog.catalogs import create_startup_objects
from metastore.store.core import migrate
from metastore.wire.connection.server import ServerThread
from metastore.wire.sockets.settings import WireSettings
from tests.support.catalog.catalog import add_partitions, call_of, make_database, make_table


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerThread]:
    """A server with a partitioned table."""
    metastore = build(
        Config(db=f"sqlite:///{tmp_path / 'm.db'}", warehouse=str(tmp_path / "warehouse"), data_directory=str(tmp_path / "data"))
    )
    migrate.upgrade(metastore.database)
    create_startup_objects(metastore)
    call = call_of(metastore)
    name = make_table(call, "t", [("x", "int")], keys=[("ds", "string"), ("hr", "string")])
    add_partitions(call, name, [["a", "1"], ["b", "1"]])
    make_database(call, "other")
    make_table(call, "t2", database="other")
    with ServerThread(WireSettings(port=0), metastore) as started:
        yield started
    close(metastore)


@pytest.fixture
def client(server: ServerThread) -> Iterator[Client]:
    """A client of no known release."""
    with connect(server.uri, timeout=20) as connected:
        yield connected


@pytest.fixture
def hive_3(server: ServerThread) -> Iterator[Client]:
    with connect(server.uri, timeout=20) as connected:
        connected.get_database("@hive#default")
        yield connected


@pytest.fixture
def hive_4(server: ServerThread) -> Iterator[Client]:
    with connect(server.uri, timeout=20) as connected:
        connected.get_database_req(idl.GetDatabaseRequest(name="default", catalogName="hive"))
        yield connected


def function(**changes: object) -> Function:
    values: dict[str, object] = {
        "functionName": "f", "dbName": "default", "className": "c", "ownerName": "o", "ownerType": PrincipalType.USER,
        "functionType": FunctionType.JAVA, "createTime": 1, "resourceUris": [],
    }  # fmt: skip
    return Function(**(values | changes))


def test_a_missing_argument_ends_the_connection_of_hive_3_alone(hive_3: Client, hive_4: Client, client: Client) -> None:
    for other in (hive_4, client):
        with pytest.raises(MetaException, match="needs ownerType and functionType"):
            other.create_function(function(functionType=None))
        assert other.get_all_databases() == ["default", "other"]
    with pytest.raises(ConnectionResetError):
        hive_3.create_function(function(functionType=None))


def test_a_listing_as_specs_without_a_table_ends_the_connection_of_hive_4_too(hive_4: Client, client: Client) -> None:
    with pytest.raises(MetaException, match="needs the names"):
        client.get_partitions_pspec("default", None, -1)
    with pytest.raises(ConnectionResetError):
        hive_4.get_partitions_pspec("default", None, -1)


def test_an_invalid_function_is_reported_by_an_exception_that_the_release_knows(hive_3: Client, hive_4: Client, client: Client) -> None:
    client.create_function(function())
    for other in (hive_4, client):
        with pytest.raises(MetaException, match="not a valid object name"):
            other.alter_function("default", "f", function(functionName="g;"))
        with pytest.raises(MetaException, match="needs the names"):
            other.create_function(function(dbName=None))
    with pytest.raises(TApplicationException, match="not a valid object name"):
        hive_3.alter_function("default", "f", function(functionName="g;"))
    with pytest.raises(idl.NoSuchObjectException, match="set dbName"):
        hive_3.create_function(function(dbName=None))


def test_metas_name_the_catalog_to_hive_4_alone(hive_3: Client, hive_4: Client, client: Client) -> None:
    assert [each.catName for each in hive_4.get_table_meta("default", "*", None)] == ["hive"]
    for other in (hive_3, client):
        assert [each.catName for each in other.get_table_meta("default", "*", None)] == [None]


def test_partitions_that_spell_their_table_in_two_ways_are_refused_to_hive_4(hive_4: Client, client: Client) -> None:
    def added(by: Client, *tables: tuple[str, str, str]) -> int:
        sd = by.get_table("default", "t").sd
        sd.location = None
        new = [Partition(dbName=each, tableName=name, values=[value, "1"], sd=sd, parameters={}) for each, name, value in tables]
        return by.add_partitions(new)

    assert added(hive_4, ("DEFAULT", "T", "c"), ("DEFAULT", "T", "d")) == 2
    assert added(client, ("default", "t", "e"), ("DEFAULT", "T", "f")) == 2
    for other in (("DEFAULT", "t"), ("default", "T")):
        with pytest.raises(MetaException, match=r"does not belong to target table"):
            added(hive_4, ("default", "t", "g"), (*other, "h"))
    sd = hive_4.get_table("default", "t").sd
    sd.location = None
    new = [Partition(dbName="default", tableName=name, values=[name, "9"], sd=sd, parameters={}) for name in ("t", "T")]
    with pytest.raises(MetaException, match=r"does not belong to target table"):
        hive_4.add_partitions_req(idl.AddPartitionsRequest(dbName="default", tblName="t", parts=new, ifNotExists=False))
    assert len(client.get_partition_names("default", "t", -1)) == 6


def test_the_error_of_a_filter_on_a_missing_table_has_both_forms_of_its_name(client: Client) -> None:
    with pytest.raises(idl.NoSuchObjectException) as raised:
        client.get_partitions_by_filter("@hive#invDBName", "invTableName", 'p1 = "p11"', -1)
    assert "Specified catalog.database.table does not exist : hive.invdbname.invtablename" in raised.value.message
    assert "invDBName.invTableName table not found" in raised.value.message


def test_partitions_by_names_of_a_missing_database_are_no_such_object(client: Client) -> None:
    with pytest.raises(idl.NoSuchObjectException, match="database"):
        client.get_partitions_by_names_req(idl.GetPartitionsByNamesRequest(db_name="", tbl_name="t", names=["ds=a/hr=1"]))


def test_the_names_of_partitions_of_a_missing_table_are_none_to_hive_4(client: Client) -> None:
    def names(table: str) -> list[str]:
        return client.fetch_partition_names_req(idl.PartitionsRequest(dbName="default", tblName=table, maxParts=-1))

    assert names("t") == ["ds=a/hr=1", "ds=b/hr=1"]
    assert names("missing") == []
    with pytest.raises(MetaException, match="needs the names"):
        names("")


@pytest.mark.parametrize("values", [[], None])
def test_partitions_by_leading_values_need_a_value(client: Client, values: list[str] | None) -> None:
    with pytest.raises(MetaException, match="list of partition values is null or empty"):
        client.get_partition_names_ps_req(idl.GetPartitionNamesPsRequest(dbName="default", tblName="t", partValues=values, maxParts=-1))


PS: dict[str, Callable[[Client, list[str] | None, int], list[Partition]]] = {
    "get_partitions_ps": lambda client, values, most: client.get_partitions_ps("default", "t", values, most),
    "get_partitions_ps_with_auth": lambda client, values, most: client.get_partitions_ps_with_auth("default", "t", values, most, "u", []),
    "get_partitions_ps_with_auth_req": lambda client, values, most: (
        client.get_partitions_ps_with_auth_req(
            idl.GetPartitionsPsWithAuthRequest(dbName="default", tblName="t", partVals=values, maxParts=most)
        ).partitions
    ),
}


@pytest.mark.parametrize("method", PS)
def test_partitions_of_no_leading_values_are_all_where_a_client_may_ask_for_all(
    server: ServerThread, client: Client, tmp_path: Path, method: str
) -> None:
    """Hive 4.0.1's server does the same. With a limit it first counts, by a name that no values can make."""
    for most, found in ((-1, 2), (0, 0), (1, 1), (5, 2)):
        for values in ([], None):  # type: ignore[var-annotated]
            assert len(PS[method](client, values, most)) == found
    limited = build(Config(db=f"sqlite:///{tmp_path / 'm.db'}", data_directory=str(tmp_path / "limited"), limit_partition_request=3))
    with ServerThread(WireSettings(port=0), limited) as other, connect(other.uri, timeout=20) as careful:
        assert len(PS[method](careful, [], 3)) == 2
        for most in (-1, 4):
            with pytest.raises(MetaException, match=r"values is null or empty: .* or ask for 3 partitions at the most"):
                PS[method](careful, [], most)
    close(limited)


def test_keys_in_another_case_name_no_partition_to_hive_s_own_clients(hive_3: Client, hive_4: Client, client: Client) -> None:
    for name in ("DS=a/hr=1", "hr=1/Ds=a", "DS=a/HR=1"):
        assert client.get_partition_by_name("default", "t", name).values == ["a", "1"]
        assert [each.values for each in client.get_partitions_by_names("default", "t", [name, "ds=b/hr=1"])] == [["a", "1"], ["b", "1"]]
        for hive in (hive_3, hive_4):
            with pytest.raises(idl.NoSuchObjectException, match="the table's keys are ds, hr"):
                hive.get_partition_by_name("default", "t", name)
            assert [each.values for each in hive.get_partitions_by_names("default", "t", [name, "ds=b/hr=1"])] == [["b", "1"]]


def test_partitions_come_with_the_privileges_of_the_user_in_the_request(client: Client) -> None:
    table = client.get_table("default", "t")
    table.parameters["PARTITION_LEVEL_PRIVILEGE"] = "true"
    client.alter_table("default", "t", table)
    for values in (None, ["a"]):
        request = idl.GetPartitionsPsWithAuthRequest(
            dbName="default", tblName="t", partVals=values, maxParts=-1, userName="u", groupNames=["g"]
        )
        found = client.get_partitions_ps_with_auth_req(request).partitions
        assert [each.privileges.userPrivileges for each in found] == [{"u": []}] * (2 if values is None else 1)
        for user, groups in ((None, None), ("u", None), (None, ["g"])):
            request.userName, request.groupNames = user, groups
            assert client.get_partitions_ps_with_auth_req(request).partitions[0].privileges is None
            found = client.get_partitions_ps_with_auth("default", "t", values or ["a"], -1, user, groups)
            assert found[0].privileges is None


def ask_tables(client: Client, fields: list[str], **request: object) -> list[idl.Table]:
    spec = GetProjectionsSpec(fieldList=fields)
    wanted: dict[str, object] = {"dbName": "default", "tblNames": ["t"]}
    return client.get_table_objects_by_name_req(GetTablesRequest(**(wanted | request), projectionSpec=spec)).tables


def test_tables_come_with_the_fields_that_are_named(client: Client) -> None:
    (found,) = ask_tables(client, ["owner", "sd.location", "sd.serdeInfo.serializationLib"])
    whole = client.get_table("default", "t")
    assert (found.owner, found.sd.location, found.sd.serdeInfo.serializationLib) == (
        whole.owner, whole.sd.location, whole.sd.serdeInfo.serializationLib,
    )  # fmt: skip
    assert (found.dbName, found.tableName, found.parameters, found.sd.cols, found.sd.serdeInfo.parameters) == (None,) * 5
    assert found.createTime == whole.createTime
    assert ask_tables(client, ["owner", "sd.cols.name"]) == [whole]
    assert ask_tables(client, []) == [whole]


def test_fields_that_tables_lack_and_patterns_are_refused(client: Client) -> None:
    with pytest.raises(MetaException, match=r"Invalid field names nothing, sd\.none"):
        ask_tables(client, ["owner", "sd.none", "nothing"])
    with pytest.raises(MetaException, match="can not be chosen by patterns"):
        client.get_table_objects_by_name_req(
            GetTablesRequest(dbName="default", tblNames=["t"], projectionSpec=GetProjectionsSpec(excludeParamKeyPattern="a"))
        )


def test_tables_are_found_by_patterns_of_databases_too(client: Client) -> None:
    found = ask_tables(client, ["dbName", "tableName"], dbName="*", tblNames=None, tablesPattern="t*")
    assert [(each.dbName, each.tableName) for each in found] == [("default", "t"), ("other", "t2")]
    assert ask_tables(client, [], dbName="no*", tblNames=None, tablesPattern="t*") == []
    with pytest.raises(idl.UnknownDBException):
        ask_tables(client, [], dbName="missing", tblNames=None, tablesPattern="t*")


@pytest.mark.parametrize("sent", [None, [idl.FieldSchema("x", "bigint", None)]])
def test_partitions_sent_without_columns_get_those_of_the_request_or_of_the_table(
    client: Client, sent: list[idl.FieldSchema] | None
) -> None:
    sd = client.get_table("default", "t").sd
    sd.location, sd.cols = None, []
    want = [("x", "int" if sent is None else "bigint")]
    request = idl.AddPartitionsRequest(
        dbName="default", tblName="t", parts=[Partition(values=["c", "1"], dbName="default", tableName="t", sd=sd)], ifNotExists=False,
        needResult=True, skipColumnSchemaForPartition=True, partitionColSchema=sent,
    )  # fmt: skip
    added = client.add_partitions_req(request)
    assert [(each.name, each.type) for each in added.partitionColSchema] == want
    stored = client.get_partition("default", "t", ["c", "1"])
    assert [(each.name, each.type) for each in stored.sd.cols] == want
    stored.sd.cols = []
    client.alter_partitions_req(
        idl.AlterPartitionsRequest(
            dbName="default", tableName="t", partitions=[stored], skipColumnSchemaForPartition=True, partitionColSchema=sent
        )
    )
    assert [(each.name, each.type) for each in client.get_partition("default", "t", ["c", "1"]).sd.cols] == want


def test_filters_by_names_need_names(client: Client) -> None:
    by = idl.GetPartitionsFilterSpec(filterMode=idl.PartitionFilterMode.BY_NAMES)
    with pytest.raises(MetaException, match="names cannot be null"):
        client.get_partitions_with_specs(idl.GetPartitionsRequest(dbName="default", tblName="t", filterSpec=by))
    with pytest.raises(MetaException, match="Invalid field name ''"):
        client.get_partitions_with_specs(
            idl.GetPartitionsRequest(dbName="default", tblName="t", projectionSpec=GetProjectionsSpec(fieldList=[""]))
        )


def test_the_version_is_that_of_the_release_that_is_taken_after(hive_3: Client, hive_4: Client, client: Client) -> None:
    assert [each.getVersion() for each in (hive_3, hive_4, client)] == ["3.0", "4.0.1", "4.0.1"]


def test_bucket_columns_follow_a_rename_but_of_hive_4_which_renames_them_itself(hive_4: Client, client: Client) -> None:
    table = client.get_table("default", "t")
    table.sd.bucketCols, table.sd.numBuckets = ["x"], 2
    client.alter_table("default", "t", table)
    table.sd.cols = [idl.FieldSchema("y", "int", None)]
    with pytest.raises(idl.InvalidOperationException, match="would have no columns"):
        hive_4.alter_table_req(idl.AlterTableRequest(dbName="default", tableName="t", table=table))
    client.alter_table("default", "t", table)
    assert client.get_table("default", "t").sd.bucketCols == ["y"]
    table.sd.cols, table.sd.bucketCols = [idl.FieldSchema("z", "int", None)], ["z"]
    hive_4.alter_table_req(idl.AlterTableRequest(dbName="default", tableName="t", table=table))
    assert client.get_table("default", "t").sd.bucketCols == ["z"]


def test_a_missing_table_is_reported_as_each_method_does(client: Client) -> None:
    with pytest.raises(idl.InvalidObjectException, match="table not found"):
        client.get_partitions_by_names_req(idl.GetPartitionsByNamesRequest(db_name="default", tbl_name="missing", names=["a=1"]))
    with pytest.raises(idl.NoSuchObjectException, match=r"Specified catalog\.database\.table does not exist : hive\.default\.missing"):
        client.get_partitions_by_filter("default", "missing", "ds = 'a'", -1)
    with pytest.raises(idl.InvalidObjectException, match=r"hive\.missing does not exist"):
        client.create_table_req(
            idl.CreateTableRequest(table=idl.Table(tableName="n", dbName="missing", sd=client.get_table("default", "t").sd))
        )


def test_a_database_lies_where_hadoop_would_print_it(client: Client, tmp_path: Path) -> None:
    client.create_database(idl.Database(name="placed", locationUri=f"file://{tmp_path}/one/"))
    assert client.get_database("placed").locationUri == f"file:{tmp_path}/one"
    client.alter_database("placed", idl.Database(name="placed", locationUri=f"file://{tmp_path}/two", parameters={}))
    assert client.get_database("placed").locationUri == f"file:{tmp_path}/two"
