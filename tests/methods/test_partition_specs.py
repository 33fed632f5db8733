"""Hive 4.1's request for partitions by names, values or expressions: some of their fields, as specs that share storage descriptors."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path

import pytest

from metastore.app import build, close
from metastore.binary import from_bytes, to_bytes
from metastore.client import Client, connect
from metastore.config import Config
from metastore.idl import (
    GetPartitionsByFilterRequest,
    GetPartitionsByNamesRequest,
    GetPartitionsFilterSpec,
    GetPartitionsPsWithAuthRequest,
    GetPartitionsRequest,
    GetProjectionsSpec,
    MetaException,
    Partition,
    PartitionFilterMode,
    PartitionsByExprRequest,
    PartitionSpec,
    PartitionsRequest,
    StorageDescriptor,
)
from metastore.methods import METHODS
from metastore.service.catalog.catalogs import create_startup_objects
from metastore.service.catalog.partitions.alter_partitions import alter_partitions
from metastore.service.catalog.partitions.partitions import get_partitions
from metastore.store.core import migrate
from metastore.wire.connection.server import ServerThread
from metastore.wire.sockets.settings import WireSettings
from tests.support.catalog.catalog import add_partitions, call_of, make_table

BY_NAMES, BY_VALUES, BY_EXPR = PartitionFilterMode.BY_NAMES, PartitionFilterMode.BY_VALUES, PartitionFilterMode.BY_EXPR
VALUES = [["a", "1"], ["a", "2"], ["b", "1"], ["b", "3"]]
ELSEWHERE = ["b", "3"]


@pytest.fixture
def all_parts() -> list[Partition]:
    return []


@pytest.fixture
def client(tmp_path: Path, all_parts: list[Partition]) -> Iterator[Client]:
    """A client of a server with a table of four partitions. One has a location elsewhere and one has a format of its own."""
    url = f"sqlite:///{tmp_path / 'm.db'}"
    metastore = build(Config(db=url, warehouse=str(tmp_path / "warehouse"), data_directory=str(tmp_path / "data")))
    migrate.upgrade(metastore.database)
    create_startup_objects(metastore)
    call = call_of(metastore)
    name = make_table(call, "t", [("x", "int"), ("y", "string")], keys=[("ds", "string"), ("hr", "int")])
    add_partitions(call, name, VALUES)
    changed = deepcopy(get_partitions(call, name))
    for partition in changed:
        partition.parameters = {"numFiles": "1", "numRows": partition.values[1], "totalSize": "5", "note": "n"}
        if partition.values == ELSEWHERE:
            partition.sd.location = f"file:{tmp_path}/elsewhere"
    changed[1].sd.inputFormat = "other"
    alter_partitions(call, name, changed)
    all_parts += get_partitions(call, name)
    with ServerThread(WireSettings(port=0), metastore, METHODS) as server, connect(server.uri) as client:
        yield client
    close(metastore)


def ask(
    client: Client, by: GetPartitionsFilterSpec | None = None, wanted: GetProjectionsSpec | None = None, table: str = "t"
) -> list[PartitionSpec]:
    request = GetPartitionsRequest(dbName="default", tblName=table, filterSpec=by, projectionSpec=wanted)  # type: ignore[arg-type]  # may be left out
    return client.get_partitions_with_specs(request).partitionSpec


def by(mode: int | None, *filters: str) -> GetPartitionsFilterSpec:
    return GetPartitionsFilterSpec(filterMode=mode, filters=list(filters))


def fields(*names: str, include: str | None = None, exclude: str | None = None) -> GetProjectionsSpec:
    return GetProjectionsSpec(fieldList=list(names), includeParamKeyPattern=include, excludeParamKeyPattern=exclude)  # type: ignore[arg-type]


def together(specs: list[PartitionSpec]) -> list[Partition]:
    """Return the partitions that a client assembles from specs, as Hive's PartitionSpecProxy does."""
    out = []
    for spec in specs:
        assert (spec.catName, spec.dbName, spec.tableName) == ("hive", "default", "t")
        if spec.partitionList is not None:
            assert spec.sharedSDPartitionSpec is None
            out += spec.partitionList.partitions
            continue
        shared = spec.sharedSDPartitionSpec
        assert shared is not None
        assert spec.rootPath == shared.sd.location
        for slim in shared.partitions:
            sd = deepcopy(shared.sd)
            if slim.relativePath is not None:
                sd.location += slim.relativePath
            out.append(
                Partition(
                    catName="hive",
                    dbName="default",
                    tableName="t",
                    values=slim.values,
                    createTime=slim.createTime,
                    lastAccessTime=slim.lastAccessTime,
                    parameters=slim.parameters,
                    sd=sd,
                )
            )
    return sorted(out, key=lambda partition: partition.values or [])


def values(specs: list[PartitionSpec]) -> list[list[str]]:
    return [partition.values for partition in together(specs)]


def test_without_fields_and_filter_all_come_back_grouped_by_their_storage(client: Client, all_parts: list[Partition]) -> None:
    specs = ask(client)
    assert [len(spec.sharedSDPartitionSpec.partitions) for spec in specs[:-1]] == [2, 1]  # type: ignore[union-attr]
    assert [partition.values for partition in specs[-1].partitionList.partitions] == [ELSEWHERE]  # type: ignore[union-attr]
    found = together(specs)
    for partition in (*found, *all_parts):
        partition.writeId = None
    assert found == [from_bytes(Partition, to_bytes(partition)) for partition in all_parts]


def test_older_listings_share_descriptors_where_the_table_says_so(client: Client, all_parts: list[Partition]) -> None:
    def listings() -> list[list[PartitionSpec]]:
        return [client.get_partitions_pspec("default", "t", -1), client.get_part_specs_by_filter("default", "t", "hr > 0", -1)]

    for specs in listings():
        assert [spec.sharedSDPartitionSpec for spec in specs] == [None]
    table = client.get_table("default", "t")
    for value, shared in (("TRUE", 2), ("false", 0)):
        table.parameters["hive.hcatalog.partition.spec.grouping.enabled"] = value
        client.alter_table("default", "t", table)
        for specs in listings():
            assert [spec.sharedSDPartitionSpec is not None for spec in specs] == [True] * shared + [False]
            assert [each.values for each in together(specs)] == [each.values for each in all_parts]
            assert [each.sd for each in together(specs)] == [each.sd for each in all_parts]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (by(BY_NAMES, "ds=b/hr=1", "ds=a/hr=2", "ds=x/hr=9"), [VALUES[1], VALUES[2]]),
        (by(BY_NAMES), []),
        (by(BY_VALUES, "a"), VALUES[:2]),
        (by(BY_VALUES, "", "1"), [VALUES[0], VALUES[2]]),
        (by(BY_VALUES), VALUES),
        (by(BY_EXPR, "hr > 1", "ds = 'a' or ds = 'b'"), [VALUES[1], VALUES[3]]),
        (by(BY_EXPR, "", "ds = 'a'", "  "), VALUES[:2]),
        (by(BY_EXPR, ""), VALUES),
        (by(BY_EXPR, " \n"), VALUES),
        (by(None, "ds = 'a'"), VALUES),
    ],
)
@pytest.mark.parametrize("wanted", [None, fields("values")])
def test_filters_of_each_kind(
    client: Client, spec: GetPartitionsFilterSpec, expected: list[list[str]], wanted: GetProjectionsSpec | None
) -> None:
    assert values(ask(client, spec, wanted)) == expected


def test_only_the_fields_that_are_named_come_back(client: Client) -> None:
    assert together(ask(client, wanted=fields("values", "sd.cols.name", "sd.serdeInfo.serializationLib")))[0] == Partition(
        catName="hive",
        dbName="default",
        tableName="t",
        values=VALUES[0],
        sd=together(ask(client, wanted=fields("sd.cols.name", "sd.serdeInfo.serializationLib")))[0].sd,
    )
    sd = together(ask(client, wanted=fields("sd.cols.name", "sd.serdeInfo.serializationLib")))[0].sd
    assert [(column.name, column.type) for column in sd.cols] == [("x", None), ("y", None)]
    assert sd.serdeInfo.serializationLib
    assert sd.inputFormat is None
    whole = together(ask(client, wanted=fields("sd", "values")))
    assert [partition.sd.cols[1].type for partition in whole] == ["string"] * 4
    assert whole[0].parameters is None
    places = {tuple(partition.values): partition.sd.location for partition in together(ask(client, wanted=fields("sd.location", "values")))}
    assert places["a", "2"].endswith("/t/ds=a/hr=2")
    assert places["b", "3"].endswith("/elsewhere")
    assert [spec.sharedSDPartitionSpec.sd for spec in ask(client, wanted=fields("values"))] == [StorageDescriptor()]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (fields("values", "parameters", include="num%"), {"numFiles", "numRows"}),
        (fields("parameters", "values", exclude="num%"), {"totalSize", "note", "transient_lastDdlTime"}),
        (fields("parameters", "values", include="n%", exclude="num_iles"), {"numRows", "note"}),
        (fields(include="no_e"), {"note"}),
    ],
)
def test_parameters_are_chosen_by_patterns(client: Client, wanted: GetProjectionsSpec, expected: set[str]) -> None:
    for partition in together(ask(client, wanted=wanted)):
        assert set(partition.parameters) == expected


WHERE = {"dbName": "default", "tblName": "t"}
REQUESTS: dict[str, tuple[type, dict[str, object]]] = {
    "get_partitions_req": (PartitionsRequest, WHERE),
    "get_partitions_by_filter_req": (GetPartitionsByFilterRequest, {**WHERE, "filter": "hr > 0"}),
    "get_partitions_by_names_req": (GetPartitionsByNamesRequest, {"db_name": "default", "tbl_name": "t", "names": ["ds=a/hr=1"]}),
    "get_partitions_ps_with_auth_req": (GetPartitionsPsWithAuthRequest, {**WHERE, "partVals": ["a", ""]}),
    "get_partitions_by_expr": (PartitionsByExprRequest, {**WHERE, "expr": b""}),
}


@pytest.mark.parametrize("method", REQUESTS)
def test_the_requests_of_hive_4_choose_parameters_by_patterns_too(client: Client, all_parts: list[Partition], method: str) -> None:
    kind, arguments = REQUESTS[method]

    def asked(include: str | None, exclude: str | None) -> set[str]:
        reply = client.call(method, kind(**arguments, includeParamKeyPattern=include, excludeParamKeyPattern=exclude))
        found = reply if isinstance(reply, list) else reply.partitions
        assert found
        assert all(each.sd.cols for each in found)
        return {name for each in found for name in each.parameters}

    everything = {*all_parts[0].parameters}
    assert asked(None, None) == asked("", "") == everything
    assert asked("num%", None) == {"numFiles", "numRows"}
    assert asked("num%", "%Rows") == {"numFiles"}
    assert asked(None, "num%") == everything - {"numFiles", "numRows"}


@pytest.mark.parametrize(
    ("spec", "wanted", "table", "why"),
    [
        (None, fields("sd.nothing"), "t", "Invalid field name 'sd.nothing'"),
        (None, None, "other", "other table not found"),
        (by(BY_EXPR, "x = 1"), None, "t", "not a partitioning key"),
        (by(7), None, "t", "7 is not a PartitionFilterMode"),
    ],
)
def test_calls_that_can_not_be_answered_get_a_meta_exception(
    client: Client, spec: GetPartitionsFilterSpec | None, wanted: GetProjectionsSpec | None, table: str, why: str
) -> None:
    with pytest.raises(MetaException, match=why):
        ask(client, spec, wanted, table)
