"""Column statistics of tables and partitions: write, read, join, delete. Names of columns and partitions are normalised here.

Source: Hive's HMSHandler (update_*, get_*, delete_*_column_statistics, set_aggr_stats_for) and StatsSetupConst for the marker
COLUMN_STATS_ACCURATE. Nothing here looks at the data of a table.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from copy import copy

import orjson

from metastore.errors import InvalidObject, MetaError, NoSuchObject
from metastore.idl import AggrStats, ColumnStatistics, ColumnStatisticsDesc, ColumnStatisticsObj, Table
from metastore.listeners.events import DeleteStatistics, UpdateStatistics
from metastore.rules.names import normalize
from metastore.rules.partition_names import plain_names, values_for_keys
from metastore.rules.statistics import aggregate, merge
from metastore.service.change import change
from metastore.service.context import Call
from metastore.service.names import TableName, table_name
from metastore.service.partitions import partition_name
from metastore.service.tables import find_table
from metastore.store import statistics, tables
from metastore.store.database import Session

ENGINE = "hive"
ACCURATE = "COLUMN_STATS_ACCURATE"
NDV_TUNER = "metastore.stats.ndv.tuner"


def name_of(call: Call, new: ColumnStatistics) -> TableName:
    """Return the table that statistics are about. MetaError."""
    if new is None or new.statsDesc is None:
        raise MetaError("Column statistics need a statsDesc that names their table")
    description = new.statsDesc
    return table_name(description.dbName, description.tableName, description.catName, call.config.default_catalog)


def set_statistics(call: Call, new: Sequence[ColumnStatistics], *, merged: bool = False, engine: str | None = None) -> None:
    """Write the statistics of one table or of partitions of one table; columns that are not named keep theirs.

    With `merged` they are joined with what is there. NoSuchObject for a missing table or partition; MetaError for a column that the
    table lacks, for statistics of several tables, and for a partition that comes twice.
    """
    if not new:
        return
    name = name_of(call, new[0])
    if new[0].statsDesc.isTblLevel:
        if len(new) > 1:
            raise MetaError(f"Expecting only 1 ColumnStatistics for table's column stats, but find {len(new)}")
        update_table(call, name, new[0], merged=merged, engine=engine)
        return
    for each in new:
        if each.statsDesc.isTblLevel or name_of(call, each) != name:
            raise MetaError(f"Column statistics of several objects in one request: all must be of partitions of {name}")
    update_partitions(call, name, new, merged=merged, engine=engine)


def update_table(call: Call, name: TableName, new: ColumnStatistics, *, merged: bool = False, engine: str | None = None) -> None:
    """Write statistics of a table's columns. NoSuchObject, MetaError."""
    table = find_table(call, name)
    engine = engine or new.engine or ENGINE
    wanted = _normalized(table, new)
    with change(call, UpdateStatistics(client=call.info, table=table, statistics=[new])) as current:

        def work(session: Session) -> None:
            key = tables.lock(session, *name)
            found = None if key is None else tables.find(call.database, session, *name)
            if key is None or found is None:
                raise NoSuchObject(f"{name} table not found")
            old = statistics.of_table(session, key, engine)
            statistics.write_table(session, key, engine, _together(old, wanted, merged=merged))
            marked = with_marker(found.parameters, [column.colName for column in wanted])
            if marked != found.parameters:
                tables.set_parameters(session, key, marked)

        current.write(work)


def update_partitions(
    call: Call, name: TableName, new: Sequence[ColumnStatistics], *, merged: bool = False, engine: str | None = None
) -> None:
    """Write statistics of columns of partitions with a fixed number of statements. NoSuchObject, MetaError."""
    table = find_table(call, name)
    engine = engine or new[0].engine or ENGINE
    wanted: dict[str, list[ColumnStatisticsObj]] = {}
    for each in new:
        partition = _partition_name(call, table, each.statsDesc.partName)
        if partition in wanted:
            raise MetaError(f"Partition {partition} of {name} comes more than once in one request for statistics")
        wanted[partition] = _normalized(table, each)
    with change(call, UpdateStatistics(client=call.info, table=table, statistics=new)) as current:

        def work(session: Session) -> None:
            if table.id is None or tables.share(session, *name) != table.id:
                raise NoSuchObject(f"{name} table not found")
            locked = statistics.lock_partitions(session, table, list(wanted))
            missing = wanted.keys() - {partition.name for partition in locked}
            if missing:
                raise NoSuchObject(f"Partition {min(missing)} of {name} doesn't exist: no statistics were written")
            old = statistics.of_keys(session, [partition.key for partition in locked], engine)
            statistics.write_partitions(session, table.id, engine, {
                partition.key: _together(old.get(partition.key, {}), wanted[partition.name], merged=merged) for partition in locked
            })
            marked = [
                partition._replace(parameters=with_marker(partition.parameters, [column.colName for column in wanted[partition.name]]))
                for partition in locked
            ]
            changed = [after for before, after in zip(locked, marked, strict=True) if before.parameters != after.parameters]
            if changed:
                statistics.set_parameters(session, table.id, changed)

        current.write(work)


def _partition_name(call: Call, table: Table, name: str | None) -> str:
    if name is None:
        raise MetaError(f"Statistics of a partition of {table.dbName}.{table.tableName} need its name: set statsDesc.partName")
    if plain_names(tuple([key.name for key in table.partitionKeys])).fullmatch(name):
        return name
    lowered = "/".join(key.lower() + mark + value for key, mark, value in (part.partition("=") for part in name.split("/")))
    return partition_name(call, table, values_for_keys([key.name for key in table.partitionKeys], lowered))


def _normalized(table: Table, new: ColumnStatistics) -> list[ColumnStatisticsObj]:
    """Return statistics with lower-case names and types; check that the table has the columns."""
    known = {column.name for column in table.sd.cols} if table.sd is not None else set()
    out = []
    for column in new.statsObj or []:
        if column.colName is None or column.statsData is None:
            raise InvalidObject(f"Statistics of {table.dbName}.{table.tableName} without colName or statsData can not be stored")
        column_name, column_type = normalize(column.colName), (column.colType or "").lower()
        stored = column
        if column_name != column.colName or column_type != column.colType:
            stored = copy(column)
            stored.colName, stored.colType = column_name, column_type
        if column_name not in known:
            raise MetaError(f"Column {stored.colName} doesn't exist in table {table.tableName} in database {table.dbName}")
        out.append(stored)
    return out


def _together(old: statistics.Encoded, new: Iterable[ColumnStatisticsObj], *, merged: bool) -> statistics.Encoded:
    """Return the statistics that will be stored."""
    now = int(time.time())
    out = dict(old)
    for column in new:
        if merged and column.colName in old:
            column = merge(statistics.decode(column.colName, old[column.colName]), column)  # noqa: PLW2901  # the joined one is stored
        out[column.colName] = statistics.encode(column, now)
    return out


def with_marker(parameters: Mapping[str, str], columns: Iterable[str]) -> dict[str, str]:
    """Return parameters that say that these columns' statistics are accurate."""
    marker = _marker(parameters)
    accurate = marker.get("COLUMN_STATS")
    marker["COLUMN_STATS"] = {**(accurate if isinstance(accurate, dict) else {}), **dict.fromkeys(columns, "true")}
    return {**parameters, ACCURATE: orjson.dumps(marker).decode()}


def without_marker(parameters: Mapping[str, str], columns: Iterable[str]) -> dict[str, str]:
    """Return parameters that no longer say so."""
    marker = _marker(parameters)
    accurate = marker.get("COLUMN_STATS")
    if not isinstance(accurate, dict):
        return dict(parameters)
    gone = set(columns)
    marker["COLUMN_STATS"] = {name: value for name, value in accurate.items() if name not in gone}
    if not marker["COLUMN_STATS"]:
        del marker["COLUMN_STATS"]
    out = {**parameters, ACCURATE: orjson.dumps(marker).decode()}
    if not marker:
        del out[ACCURATE]
    return out


def _marker(parameters: Mapping[str, str]) -> dict[str, dict[str, str] | str]:
    try:
        found = orjson.loads(parameters.get(ACCURATE) or "{}")
    except orjson.JSONDecodeError:
        return {}
    return found if isinstance(found, dict) else {}


def get_table(call: Call, name: TableName, columns: Sequence[str] | None, engine: str | None = None) -> ColumnStatistics:
    """Return the statistics of those of the columns that have any. NoSuchObject for a missing table."""

    def work(session: Session) -> statistics.Encoded:
        key = tables.key(session, *name)
        if key is None:
            raise NoSuchObject(f"{name} table not found")
        return statistics.of_table(session, key, engine or ENGINE)

    found = call.database.read(work)
    return _struct(name, None, found, columns, engine)


def get_partitions(
    call: Call, name: TableName, partitions: Sequence[str] | None, columns: Sequence[str] | None, engine: str | None = None
) -> dict[str, ColumnStatistics]:
    """Return by partition name the statistics of those of the columns that have any. NoSuchObject for a missing table."""
    wanted = set(_columns(columns))
    return {
        partition: _struct(name, partition, raw, columns, engine)
        for partition, raw in _read(call, name, partitions, engine).items() if wanted & raw.keys()
    }


def get_partition(call: Call, name: TableName, partition: str | None, column: str, engine: str | None = None) -> ColumnStatistics:
    """Return the statistics of one column of a partition. NoSuchObject when there are none."""
    found = get_partitions(call, name, [partition or ""], [column], engine)
    if not found:
        raise NoSuchObject(f"{name} partition {partition}: column {column} has no statistics")
    return next(iter(found.values()))


def get_table_column(call: Call, name: TableName, column: str, engine: str | None = None) -> ColumnStatistics:
    """Return the statistics of one column of a table. NoSuchObject when there are none."""
    found = get_table(call, name, [column], engine)
    if not found.statsObj:
        raise NoSuchObject(f"{name}: column {column} has no statistics")
    return found


def _read(call: Call, name: TableName, partitions: Sequence[str] | None, engine: str | None) -> dict[str, statistics.Encoded]:
    if not partitions:
        return {}
    table = find_table(call, name)
    key = table.id
    assert key is not None
    names = [_partition_name(call, table, partition) for partition in dict.fromkeys(partitions)]
    return call.database.read(lambda session: statistics.of_partitions(session, key, names, engine or ENGINE))


def _columns(columns: Sequence[str] | None) -> list[str]:
    return list(dict.fromkeys(normalize(column) for column in columns or ()))


def _struct(
    name: TableName, partition: str | None, raw: statistics.Encoded, columns: Sequence[str] | None, engine: str | None
) -> ColumnStatistics:
    wanted = [column for column in _columns(columns) if column in raw]
    description = ColumnStatisticsDesc(
        isTblLevel=partition is None, dbName=name.database, tableName=name.table, partName=partition, catName=name.catalog,
        lastAnalyzed=max((raw[column][1] for column in wanted), default=None),
    )
    found = [statistics.decode(column, raw[column]) for column in wanted]
    return ColumnStatistics(statsDesc=description, statsObj=found, engine=engine or ENGINE)


def get_aggregated(
    call: Call, name: TableName, partitions: Sequence[str] | None, columns: Sequence[str] | None, engine: str | None = None
) -> AggrStats:
    """Return the statistics of columns over partitions, and how many partitions have them for all of the columns."""
    wanted = _columns(columns)
    if not wanted or not partitions:
        return AggrStats(colStats=[], partsFound=0)
    found = _read(call, name, partitions, engine)
    tuner = float(call.config.hive_value(NDV_TUNER, "0") or 0)
    joined = []
    for column in wanted:
        parts = [raw[column] for raw in found.values() if column in raw]
        if parts:
            joined.append(aggregate(statistics.decode_all(column, parts), tuner))
    return AggrStats(colStats=joined, partsFound=sum(set(wanted) <= raw.keys() for raw in found.values()))


def delete_from_table(call: Call, name: TableName, columns: Sequence[str] | None, engine: str | None = None) -> None:
    """Delete statistics of a table: of all columns, or of those named; of every engine without `engine`.

    NoSuchObject when the table is missing or has none of them.
    """
    table = find_table(call, name)
    wanted = _columns(columns) or None
    event = DeleteStatistics(client=call.info, table=table, partitions=[], columns=wanted or [])
    with change(call, event) as current:

        def work(session: Session) -> None:
            key = tables.lock(session, *name)
            found = None if key is None else tables.find(call.database, session, *name)
            if key is None or found is None:
                raise NoSuchObject(f"{name} table not found")
            gone = statistics.delete_table(session, key, wanted, engine)
            if not gone:
                raise NoSuchObject(f"Column stats doesn't exist for table {name}, columns {wanted or 'all'}")
            unmarked = without_marker(found.parameters, gone)
            if unmarked != found.parameters:
                tables.set_parameters(session, key, unmarked)

        current.write(work)


def delete_from_partitions(
    call: Call, name: TableName, partitions: Sequence[str], columns: Sequence[str] | None, engine: str | None = None
) -> None:
    """Delete statistics of partitions, as `delete_from_table` does for a table."""
    table = find_table(call, name)
    wanted = _columns(columns) or None
    names = [_partition_name(call, table, partition) for partition in partitions]
    event = DeleteStatistics(client=call.info, table=table, partitions=names, columns=wanted or [])
    with change(call, event) as current:

        def work(session: Session) -> None:
            if table.id is None or tables.share(session, *name) != table.id:
                raise NoSuchObject(f"{name} table not found")
            locked = statistics.lock_partitions(session, table, names)
            if missing := set(names) - {partition.name for partition in locked}:
                raise NoSuchObject(f"Partition {min(missing)} of {name} doesn't exist: no statistics were deleted")
            gone = statistics.delete_partitions(session, [partition.key for partition in locked], wanted, engine)
            if not gone:
                raise NoSuchObject(f"Column stats doesn't exist for partitions {names} of {name}, columns {wanted or 'all'}")
            unmarked = [
                partition._replace(parameters=without_marker(partition.parameters, gone.get(partition.key, ()))) for partition in locked
            ]
            changed = [after for before, after in zip(locked, unmarked, strict=True) if before.parameters != after.parameters]
            if changed:
                statistics.set_parameters(session, table.id, changed)

        current.write(work)


def delete(
    call: Call, name: TableName, partitions: Sequence[str] | None, columns: Sequence[str] | None, engine: str | None = None
) -> None:
    """Delete statistics of partitions if any are named, else of the table."""
    if partitions:
        delete_from_partitions(call, name, partitions, columns, engine)
    else:
        delete_from_table(call, name, columns, engine)
