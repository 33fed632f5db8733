"""The client over the wire: settings of its connection, errors that its methods declare, and the owner of its databases."""

from __future__ import annotations

from getpass import getuser

import pytest
from thriftpy2.thrift import TApplicationException

from metastore.client import connect
from metastore.idl import (
    Database,
    FieldSchema,
    InvalidOperationException,
    MetaException,
    PrincipalType,
    SerDeInfo,
    StorageDescriptor,
    Table,
)
from tests.support.servers.servers import Server

TYPES = "hive.metastore.disallow.incompatible.col.type.changes"


def described(name: str, *columns: str) -> Table:
    sd = StorageDescriptor(
        cols=[FieldSchema(name=column, type="int") for column in columns],
        serdeInfo=SerDeInfo(serializationLib="lib", parameters={}),
        inputFormat="in",
        outputFormat="out",
        parameters={},
    )
    return Table(dbName="default", tableName=name, sd=sd, partitionKeys=[], parameters={}, tableType="MANAGED_TABLE")


@pytest.mark.on_one_database
def test_a_setting_ends_with_its_connection_on_any_worker(server: Server) -> None:
    with connect(server.uri) as first:
        first.create_table(described("t", "a"))
        altered = first.get_table("default", "t")
        altered.sd.cols[0].type = "date"
        first.setMetaConf(TYPES, "false")
        for _ in range(8):
            with connect(server.uri) as other:
                assert other.getMetaConf(TYPES) == "true"
                with pytest.raises(InvalidOperationException):
                    other.alter_table("default", "t", altered)
                other.setMetaConf(TYPES, "false")
            assert first.getMetaConf(TYPES) == "false"
        first.alter_table("default", "t", altered)
        with pytest.raises(MetaException, match="Invalid configuration key nope"):
            first.setMetaConf("nope", "1")


@pytest.mark.on_one_database
def test_a_missing_object_is_reported_as_the_method_declares(server: Server) -> None:
    with connect(server.uri) as client:
        client.create_table(described("t", "a"))
        with pytest.raises(MetaException, match="nope"):
            client.truncate_table("default", "nope", [])
        with pytest.raises(MetaException, match="nope"):
            client.truncate_table("default", "nope", ["k=1"])
        with pytest.raises(TApplicationException, match=r"Internal error processing get_table_objects_by_name: .*missing"):
            client.get_table_objects_by_name("missing", ["t"])
        assert client.get_table_objects_by_name("missing", []) == []


@pytest.mark.on_one_database
def test_a_database_belongs_to_who_made_it(server: Server) -> None:
    with connect(server.uri) as client:
        client.create_database(Database(name="one", parameters={}))
        assert client.set_ugi("bob", ["staff"]) == ["staff"]
        client.create_database(Database(name="two", parameters={}))
        client.create_database(Database(name="three", parameters={}, ownerName="eve"))
        found = [client.get_database(name) for name in ("one", "two", "three")]
    assert [(each.ownerName, each.ownerType) for each in found] == [(owner, PrincipalType.USER) for owner in (getuser(), "bob", "eve")]
