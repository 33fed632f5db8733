"""Indexes of Hive 2.3 over the wire: their answers, and the refusals that its methods declare."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from metastore import idl
from metastore.client import Client, connect
from tests.support.servers.servers import serving


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    """A client of a server that has a table t."""
    with serving("--warehouse", str(tmp_path / "warehouse"), home=tmp_path) as server, connect(server.uri) as made:
        made.create_table(table("t"))
        yield made


def table(name: str, kind: str = "MANAGED_TABLE") -> Any:
    return idl.Table(dbName="default", tableName=name, sd=storage(), parameters={}, partitionKeys=[], tableType=kind)


def storage() -> Any:
    return idl.StorageDescriptor(
        cols=[idl.FieldSchema(name="a", type="int")], inputFormat="in", outputFormat="out", parameters={},
        serdeInfo=idl.SerDeInfo(serializationLib="lib", parameters={}),
    )  # fmt: skip


def index(name: str, of: str = "t") -> Any:
    return idl.Index(
        indexName=name, indexHandlerClass="h", dbName="default", origTableName=of, indexTableName=f"t_{name}", sd=storage(), parameters={}
    )


def test_an_index_is_made_read_altered_and_dropped(client: Client) -> None:
    made = client.add_index(index("i"), table("t_i", "INDEX_TABLE"))
    client.add_index(index("j"), table("t_j", "INDEX_TABLE"))
    assert client.get_index_by_name("default", "t", "i") == made
    assert [each.indexName for each in client.get_indexes("default", "t", -1)] == ["i", "j"]
    assert client.get_index_names("default", "t", 1) == ["i"]
    made.parameters = {"p": "q"}
    client.alter_index("default", "t", "i", made)
    assert client.get_index_by_name("default", "t", "i").parameters["p"] == "q"
    assert client.drop_index_by_name("default", "t", "i", True) is True
    client.drop_table("default", "t", True)
    assert client.get_all_tables("default") == []
    assert client.get_indexes("default", "t", -1) == client.get_index_names("default", "t", -1) == []


def test_refusals_are_of_the_types_that_methods_declare(client: Client) -> None:
    client.add_index(index("i"), table("t_i", "INDEX_TABLE"))
    with pytest.raises(idl.AlreadyExistsException, match=r"Index already exists: hive\.default\.t\.i"):
        client.add_index(index("i"), table("t_i", "INDEX_TABLE"))
    with pytest.raises(idl.InvalidObjectException, match="the orginal table do not exist"):
        client.add_index(index("k", of="none"), table("t_k", "INDEX_TABLE"))
    with pytest.raises(idl.InvalidOperationException, match="new index is invalid"):
        client.alter_index("default", "t", "i", None)
    with pytest.raises(idl.MetaException, match="index none doesn't exist"):
        client.alter_index("default", "t", "none", index("i"))
    for method in (client.get_index_by_name, client.drop_index_by_name):
        with pytest.raises(idl.NoSuchObjectException, match=r"default\.t index=none not found"):
            method("default", "t", "none")
    with pytest.raises(idl.MetaException, match="Please do drop index instead"):
        client.drop_table("default", "t_i", True)
