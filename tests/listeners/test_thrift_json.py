"""Apache Thrift's own JSON protocol reads the structs inside messages as they were."""

from __future__ import annotations

import math
from typing import Any

import orjson
import pytest
from hive_metastore import ttypes
from thrift.protocol.TJSONProtocol import TJSONProtocol
from thrift.transport.TTransport import TMemoryBuffer

from metastore import idl
from metastore.listeners.notifications.thrift_json import StructWriter

COLUMNS = [idl.FieldSchema(name="a", type="int", comment='says "no"\n\\'), idl.FieldSchema(name="é表", type="map<string,int>")]


def storage(location: str | None = 'file:/w/a b/"k"=ü') -> idl.StorageDescriptor:
    return idl.StorageDescriptor(
        cols=COLUMNS,
        location=location,
        inputFormat="in",
        outputFormat="out",
        compressed=True,
        numBuckets=-1,
        serdeInfo=idl.SerDeInfo(name="", serializationLib="lib", parameters={"field.delim": "\u0001"}, serdeType=0),
        bucketCols=["a"],
        sortCols=[idl.Order(col="a", order=1)],
        parameters={},
        skewedInfo=idl.SkewedInfo(skewedColNames=["a"], skewedColValues=[["1"], ["2"]], skewedColValueLocationMaps={}),
        storedAsSubDirectories=False,
    )


def read(name: str, text: Any) -> Any:
    """Return the struct in a message's value, read by Apache Thrift's class of that name."""
    inner = orjson.loads(orjson.dumps(text)).encode()
    struct = getattr(ttypes, name)()
    return struct.read(TJSONProtocol(TMemoryBuffer(inner))) or struct


def same(ours: Any, theirs: Any) -> bool:
    """Return whether two structs have the same values. Fields that ours lacks are ignored, because their classes have defaults."""
    if hasattr(ours, "thrift_spec"):
        fields = [field[1] for field in ours.thrift_spec.values() if getattr(ours, field[1]) is not None]
        return all(same(getattr(ours, name), getattr(theirs, name)) for name in fields)
    if isinstance(ours, list):
        return len(ours) == len(theirs) and all(map(same, ours, theirs))
    return bool(ours == theirs)


def partition(*values: str, **fields: Any) -> idl.Partition:
    given = {"sd": storage(), "parameters": {"p": "q"}, "createTime": 1, "writeId": 2**40, **fields}
    return idl.Partition(values=list(values), dbName="d", tableName="t", catName="hive", **given)


STRUCTS: list[Any] = [
    idl.Table(
        dbName="d",
        tableName="t",
        owner="o",
        createTime=2**31 - 1,
        sd=storage(),
        partitionKeys=[],
        parameters={"x": "ü\t"},
        writeId=2**62,
        tableType="MANAGED_TABLE",
        rewriteEnabled=False,
        temporary=True,
        ownerType=1,
    ),
    idl.Table(dbName="d", tableName="v", viewOriginalText="SELECT 1"),
    partition("1", "é"),
    partition("1", sd=storage(None)),
    partition("1", sd=None),
    idl.Database(name="d", parameters={}, ownerType=idl.PrincipalType.ROLE),
    idl.ColumnStatistics(
        statsDesc=idl.ColumnStatisticsDesc(isTblLevel=True, dbName="d", tableName="t"),
        statsObj=[
            idl.ColumnStatisticsObj(
                colName="a",
                colType="double",
                statsData=idl.ColumnStatisticsData(
                    doubleStats=idl.DoubleColumnStatsData(lowValue=-1.5, highValue=1e300, numNulls=0, numDVs=3, bitVectors=b"\x00\xff1"),
                ),
            )
        ],
    ),
]


@pytest.mark.parametrize("struct", STRUCTS, ids=lambda struct: type(struct).__name__)
def test_it_comes_back(struct: Any) -> None:
    write = StructWriter()
    assert same(struct, read(type(struct).__name__, write.text(struct)))
    if isinstance(struct, idl.Partition):
        assert same(struct, read("Partition", write.partition(struct)))


def test_partitions_that_share_storage_keep_their_own_fields() -> None:
    write = StructWriter()
    other = storage("file:/z")
    other.serdeInfo = idl.SerDeInfo(serializationLib="other", parameters={})
    near = storage("file:/y")
    all_of_them = [partition("1"), partition("2", parameters={}), partition("3", sd=near), partition("4", sd=other), partition("5")]
    for each in all_of_them:
        assert same(each, read("Partition", write.partition(each)))


def test_a_text_that_is_not_a_number_is_a_string() -> None:
    data = idl.DoubleColumnStatsData(lowValue=-math.inf, highValue=math.nan, numNulls=0, numDVs=0)
    text = orjson.loads(orjson.dumps(StructWriter().text(data)))
    assert orjson.loads(text) == {"1": {"dbl": "-Infinity"}, "2": {"dbl": "NaN"}, "3": {"i64": 0}, "4": {"i64": 0}}


def test_a_map_with_lists_as_keys_is_written_as_the_protocol_does() -> None:
    skew = idl.SkewedInfo(skewedColValueLocationMaps={("1", "b"): "file:/x"})
    assert orjson.loads(orjson.dumps(StructWriter().text(skew))) == '{"3":{"map":["lst","str",1,{["str",2,"1","b"]:"file:/x"}]}}'
