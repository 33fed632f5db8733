"""Methods that take Hive's serialised expressions answer over the wire, in every protocol, with all their fields."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from metastore.app import build, close
from metastore.client import Client, connect
from metastore.config import Config
from metastore.idl import (
    DropPartitionsExpr,
    DropPartitionsRequest,
    MetaException,
    NoSuchObjectException,
    PartitionsByExprRequest,
    RequestPartsSpec,
)
from metastore.methods import METHODS
from metastore.rules.values.partition_names import partition_values
from metastore.service.catalog.catalogs import create_startup_objects
from metastore.store.core import migrate
from metastore.wire.connection.server import ServerThread
from metastore.wire.sockets.settings import WireSettings
from tests.support.catalog.catalog import add_partitions, call_of, make_table
from tests.support.engines.hive_expressions import EXPRESSIONS, KEYS, PARTITIONS

SURE, UNSURE = EXPRESSIONS["ds = '2020'", "4.0.1"], EXPRESSIONS["year(d) = 2020", "3.1.3"]


@pytest.fixture(params=["binary", "compact"])
def client(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Client]:
    url = f"sqlite:///{tmp_path / 'm.db'}"
    metastore = build(Config(db=url, warehouse=str(tmp_path / "warehouse"), data_directory=str(tmp_path / "data")))
    migrate.upgrade(metastore.database)
    create_startup_objects(metastore)
    call = call_of(metastore)
    name = make_table(call, "t", [("x", "int")], keys=KEYS)
    add_partitions(call, name, [partition_values(each) for each in PARTITIONS])
    with ServerThread(WireSettings(port=0), metastore, METHODS) as server, connect(server.uri, protocol=request.param) as client:
        yield client
    close(metastore)


def asked(data: bytes, **fields: object) -> PartitionsByExprRequest:
    return PartitionsByExprRequest(dbName="default", tblName="t", expr=data, **fields)  # type: ignore[arg-type]  # fields of the struct


def dropping(*data: bytes, **fields: object) -> DropPartitionsRequest:
    parts = RequestPartsSpec(exprs=[DropPartitionsExpr(expr=each) for each in data])
    return DropPartitionsRequest(dbName="default", tblName="t", parts=parts, **fields)  # type: ignore[arg-type]  # fields of the struct


def test_partitions_names_and_whether_one_is_unknown(client: Client) -> None:
    for wanted, count, unknown in ((SURE, len(SURE.kept), False), (UNSURE, len(PARTITIONS), True)):
        found = client.get_partitions_by_expr(asked(wanted.data))
        assert (len(found.partitions), found.hasUnknownPartitions) == (count, unknown)
        specs = client.get_partitions_spec_by_expr(asked(wanted.data))
        assert (len(specs.partitionsSpec[0].partitionList.partitions), specs.hasUnknownPartitions) == (count, unknown)
    assert set(client.get_partition_names_req(asked(SURE.data))) == SURE.kept
    assert len(client.get_partition_names_req(asked(b"\xff", maxParts=3, order="1:-"))) == 3


def test_drops_by_expressions(client: Client) -> None:
    with pytest.raises(MetaException, match=r"class .*UDFYear, which is not known here"):
        client.drop_partitions_req(dropping(SURE.data, UNSURE.data))
    dropped = client.drop_partitions_req(dropping(SURE.data)).partitions
    assert len(dropped) == len(SURE.kept)
    assert client.drop_partitions_req(dropping(SURE.data, ifExists=True)).partitions == []
    with pytest.raises(NoSuchObjectException, match="Some partitions to drop are missing"):
        client.drop_partitions_req(dropping(SURE.data, ifExists=False))
    with pytest.raises(MetaException, match="is neither a serialised expression of Hive's client nor a filter string"):
        client.get_partitions_by_expr(asked(b"\xfe\xff"))


def test_exchange_answers_an_empty_partition_or_all(client: Client) -> None:
    client.create_table(_like(client, "other"))
    assert client.exchange_partition({"ds": "a"}, "default", "t", "default", "other").values is None
    back = client.exchange_partitions({"ds": "a"}, "default", "other", "default", "t")
    assert {each.values[0] for each in back} == {"a"}


def _like(client: Client, name: str):  # type: ignore[no-untyped-def]  # a struct
    table = client.get_table("default", "t")
    table.tableName, table.sd.location = name, None
    return table
