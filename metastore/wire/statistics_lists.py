"""Answer the statistics of many partitions from their stored bytes, without a struct for each. Binary protocol only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from struct import Struct

from thriftpy2.thrift import TType

from metastore.binary import list_from_bytes, to_bytes
from metastore.idl import ColumnStatisticsData, ColumnStatisticsObj, PartitionsStatsResult
from metastore.service.statistics import StoredColumn
from metastore.wire.encoding import Encoded

STRUCT_FIELD = Struct("!bh").pack
LIST_SIZE = Struct("!bi").pack
MAP_HEADER = Struct("!bhbbi").pack
SIZE = Struct("!i").pack
STOP = b"\0"
PARTITIONS = next(number for number, spec in PartitionsStatsResult.thrift_spec.items() if spec[1] == "partStats")
DATA = next(number for number, spec in ColumnStatisticsObj.thrift_spec.items() if spec[1] == "statsData")


def encoded(found: Mapping[str, Sequence[StoredColumn]], result: PartitionsStatsResult) -> Encoded:
    """Return the reply that tells the statistics of partitions by name; `result` has what else the reply says."""
    heads: dict[tuple[str, str], bytes] = {}
    parts = [MAP_HEADER(TType.MAP, PARTITIONS, TType.STRING, TType.LIST, len(found))]
    for name, columns in found.items():
        text = name.encode()
        parts += (SIZE(len(text)), text, LIST_SIZE(TType.STRUCT, len(columns)))
        for column, kind, data in columns:
            head = heads.get((column, kind))
            if head is None:
                before = to_bytes(ColumnStatisticsObj(colName=column, colType=kind))[:-1]
                head = heads[column, kind] = before + STRUCT_FIELD(TType.STRUCT, DATA)
            parts += (head, data, STOP)
    parts.append(to_bytes(result))

    def value() -> PartitionsStatsResult:
        result.partStats = {name: _structs(columns) for name, columns in found.items()}
        return result

    return Encoded(parts, value)


def _structs(columns: Sequence[StoredColumn]) -> list[ColumnStatisticsObj]:
    data = list_from_bytes(ColumnStatisticsData, [raw for _, _, raw in columns])
    return [ColumnStatisticsObj(colName=name, colType=kind, statsData=each) for (name, kind, _), each in zip(columns, data, strict=True)]
