"""Methods of column statistics."""

from __future__ import annotations

from typing import Any

from metastore.idl import (
    AggrStats,
    ColumnStatistics,
    PartitionsStatsResult,
    SetPartitionsStatsResponse,
    TableStatsResult,
)
from metastore.methods.catalog import partition_rules as rules
from metastore.methods.forms import unpack
from metastore.methods.forms.entry import changes, reads
from metastore.methods.forms.rules import WRITES, needs, on_table
from metastore.rules.statistics import statistics_validity
from metastore.rules.transactions.snapshots import Snapshot
from metastore.service.call.context import Call
from metastore.service.call.names import TableName
from metastore.service.call.releases import Sign
from metastore.service.catalog.statistics import delete_statistics, statistics, write_statistics


def _name(call: Call, args: Any) -> TableName:
    return unpack.table(call, args.db_name, args.tbl_name)


def _update_table(call: Call, args: Any) -> bool:
    write_statistics.update_table(call, write_statistics.name_of(call, args.stats_obj), args.stats_obj)
    return True


def _update_partition(call: Call, args: Any) -> bool:
    write_statistics.update_partitions(call, write_statistics.name_of(call, args.stats_obj), [args.stats_obj])
    return True


def _set(call: Call, request: Any) -> bool:
    by = statistics_validity.writer(request.writeId, request.validWriteIdList)
    return write_statistics.set_statistics(call, request.colStats or [], merged=bool(request.needMerge), engine=request.engine, by=by)


def _set_req(call: Call, args: Any) -> SetPartitionsStatsResponse:
    return SetPartitionsStatsResponse(result=_set(call, args.req))


def _get_table(call: Call, args: Any) -> ColumnStatistics:
    return statistics.get_table_column(call, _name(call, args), unpack.required(call, args.col_name, "col_name"))


def _get_partition(call: Call, args: Any) -> ColumnStatistics:
    column = unpack.required(call, args.col_name, "col_name")
    return statistics.get_partition(call, _name(call, args), args.part_name, column)


def _seen(request: Any) -> Snapshot | None:
    return statistics_validity.seen_by(request.validWriteIdList)


def _get_table_req(call: Call, args: Any) -> TableStatsResult:
    request = args.request
    found = statistics.get_table(call, unpack.target(call, request), request.colNames, request.engine, _seen(request))
    return TableStatsResult(tableStats=found.statsObj)


def _get_partitions_req(call: Call, args: Any) -> PartitionsStatsResult:
    request = args.request
    found = statistics.get_stored(call, unpack.target(call, request), request.partNames, request.colNames, request.engine, _seen(request))
    return PartitionsStatsResult(partStats=found)  # type: ignore[arg-type]  # rows stand for structs, see wire/codec


def _get_aggregated(call: Call, args: Any) -> AggrStats:
    request = args.request
    return statistics.get_aggregated(
        call, unpack.target(call, request), request.partNames, request.colNames, request.engine, _seen(request)
    )


def _one(column: str | None) -> list[str] | None:
    return None if column is None else [column]


def _delete_from_table(call: Call, args: Any) -> bool:
    delete_statistics.from_table(call, _name(call, args), _one(args.col_name), args.engine)
    return True


def _delete_from_partition(call: Call, args: Any) -> bool:
    delete_statistics.from_partitions(call, _name(call, args), [args.part_name], _one(args.col_name), args.engine)
    return True


def _delete_req(call: Call, args: Any) -> bool:
    request = args.req
    name = unpack.table(call, request.db_name, request.tbl_name, request.cat_name)
    partitions = None if request.tableLevel else request.part_names
    delete_statistics.delete(call, name, partitions, request.col_names, request.engine)
    return True


METHODS = (
    changes(
        "update_table_column_statistics",
        _update_table,
        needs(rules.writes_statistics(lambda args: [args.stats_obj]), operation="ANALYZE_TABLE"),
    ),
    changes(
        "update_table_column_statistics_req",
        _set_req,
        needs(rules.writes_statistics(lambda args: args.req.colStats or ()), operation="ANALYZE_TABLE"),
        sign=Sign.SINCE_4,
    ),
    changes(
        "update_partition_column_statistics",
        _update_partition,
        needs(rules.writes_statistics(lambda args: [args.stats_obj]), operation="ANALYZE_TABLE"),
    ),
    changes(
        "update_partition_column_statistics_req",
        _set_req,
        needs(rules.writes_statistics(lambda args: args.req.colStats or ()), operation="ANALYZE_TABLE"),
        sign=Sign.SINCE_4,
    ),
    changes(
        "set_aggr_stats_for",
        lambda call, args: _set(call, args.request),
        needs(rules.writes_statistics(lambda args: args.request.colStats or ()), operation="ANALYZE_TABLE"),
    ),
    reads("get_table_column_statistics", _get_table, rules.READ_STATISTICS, replica=True),
    reads("get_partition_column_statistics", _get_partition, rules.READ_STATISTICS, replica=True),
    reads("get_table_statistics_req", _get_table_req, rules.READS_STATISTICS_OF_REQUEST, replica=True),
    reads("get_partitions_statistics_req", _get_partitions_req, rules.READS_STATISTICS_OF_REQUEST, replica=True),
    reads("get_aggr_stats_for", _get_aggregated, rules.READS_STATISTICS_OF_REQUEST),
    changes("delete_table_column_statistics", _delete_from_table, needs(on_table(WRITES, *rules.named_flat()), operation="ANALYZE_TABLE")),
    changes(
        "delete_partition_column_statistics",
        _delete_from_partition,
        needs(on_table(WRITES, *rules.named_flat()), operation="ANALYZE_TABLE"),
    ),
    changes(
        "delete_column_statistics_req",
        _delete_req,
        needs(on_table(WRITES, "req.db_name", "req.tbl_name", "req.cat_name"), operation="ANALYZE_TABLE"),
        sign=Sign.SINCE_4,
    ),
)
