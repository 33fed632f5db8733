"""Write column statistics of tables and partitions, or join them with what is there. Names of columns and partitions are normalised here.

Source: Hive's HMSHandler (update_*_column_statistics, set_aggr_stats_for). `statistics.py` reads them, `delete_statistics.py` removes them.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from copy import copy
from operator import attrgetter
from typing import Any, NamedTuple, TypeVar

from metastore.errors import InvalidObject, MetaError, NoSuchObject
from metastore.idl import ColumnStatistics, ColumnStatisticsObj, Table
from metastore.listeners.events import UpdateStatistics
from metastore.rules import accuracy
from metastore.rules.accuracy import NOBODY, Writer
from metastore.rules.names import normalize
from metastore.rules.statistics import merge
from metastore.rules.table_kinds import is_transactional
from metastore.service.change import change
from metastore.service.context import Call
from metastore.service.names import TableName, table_name
from metastore.service.statistics import ENGINE, stored_names
from metastore.service.tables import find_table, on_known_table
from metastore.store import partitions, statistics, tables
from metastore.store.database import Session
from metastore.store.tables import Known

_table_named = attrgetter("statsDesc.catName", "statsDesc.dbName", "statsDesc.tableName")

Place = TypeVar("Place", int, str)
"""The key of a table, or the name of a partition."""

Column = tuple[ColumnStatisticsObj, list[Any]]
"""The statistics of a column, and what is stored of them."""


def name_of(call: Call, new: ColumnStatistics) -> TableName:
    """Return the table that statistics are about. MetaError."""
    if new is None or new.statsDesc is None:
        raise MetaError("Column statistics need a statsDesc that names their table")
    description = new.statsDesc
    return table_name(description.dbName, description.tableName, description.catName, call.config.default_catalog)


def set_statistics(
    call: Call, new: Sequence[ColumnStatistics], *, merged: bool = False, engine: str | None = None, by: Writer = NOBODY
) -> bool:
    """Write the statistics of one table or of partitions of one table; columns that are not named keep theirs.

    With `merged` they are joined with what is there, where that is exact: what counts only a part of the data is not stored. False when
    statistics of a transactional table could not be joined since the writer does not see what they count; then none are exact.
    NoSuchObject for a missing table or partition; MetaError for a column that the table lacks, for statistics of several tables, for a
    partition that comes twice, and for what a transactional table's number of rows would be exact beside without a transaction.
    """
    if not new:
        return True
    name = name_of(call, new[0])
    if new[0].statsDesc.isTblLevel:
        if len(new) > 1:
            raise MetaError(f"Expecting only 1 ColumnStatistics for table's column stats, but find {len(new)}")
        return update_table(call, name, new[0], merged=merged, engine=engine, by=by)
    said = _table_named(new[0])
    for each in new:
        if each.statsDesc.isTblLevel or (_table_named(each) != said and name_of(call, each) != name):
            raise MetaError(f"Column statistics of several objects in one request: all must be of partitions of {name}")
    return update_partitions(call, name, new, merged=merged, engine=engine, by=by)


def update_table(
    call: Call, name: TableName, new: ColumnStatistics, *, merged: bool = False, engine: str | None = None, by: Writer = NOBODY
) -> bool:
    """Write statistics of a table's columns, as `set_statistics` does. NoSuchObject, MetaError."""
    table = find_table(call, name)
    engine = engine or new.engine or ENGINE
    columns = _normalized(table, _columns_of(table), new)
    data = statistics.encode(columns)
    wanted = _dated(columns, iter(data), int(time.time()))
    with change(call, UpdateStatistics(client=call.info, table=table, statistics=[new], data=data)) as current:

        def work(session: Session) -> bool:
            key = tables.lock(session, *name)
            found = None if key is None else tables.find(call.database, session, *name)
            if key is None or found is None:
                raise NoSuchObject(f"{name} table not found")
            state = State(found.parameters, found.writeId or -1)
            change = _change(str(name), state, wanted, by, transactional=is_transactional(found), merged=merged)
            if change.columns:
                old = statistics.of_table(session, key, engine)
                together = _together({key: old}, {key: change.columns}, merged=merged)
                statistics.write_table(session, key, engine, together[key])
            if change.state != state:
                tables.set_parameters(session, key, change.state.parameters, change.state.write_id)
            return change.joins

        return current.write(work)


class State(NamedTuple):
    """What the row of a table or partition says of its statistics."""

    parameters: dict[str, str]
    write_id: int


class Change(NamedTuple):
    """What a request makes of it, the columns that are written, and whether they could be joined with what is there."""

    state: State
    columns: list[Column]
    joins: bool = True


def _change(
    label: str, old: State, new: list[Column], by: Writer, *, transactional: bool, merged: bool
) -> Change:
    """Source: Hive's HMSHandler.updateTableColumnStatsWithMerge and ObjectStore.updateTableColumnStatistics. MetaError."""
    write_id = accuracy.new_write_id(old.write_id, by) if transactional else old.write_id
    if merged:
        if transactional and by.seen is not None and not accuracy.holds(old.parameters, old.write_id, by.seen):
            return Change(State(accuracy.without_mark(old.parameters), write_id), [], joins=False)
        exact = accuracy.exact_columns(old.parameters)
        new = [column for column in new if column[0].colName in exact]
        if not new:
            return Change(old, [])
    marked = accuracy.with_columns(old.parameters, [struct.colName for struct, _ in new])
    if transactional:
        marked = accuracy.after_change(label, old.parameters, marked, old.write_id, by, columns=True)
    return Change(old if marked is old.parameters and write_id == old.write_id else State(marked, write_id), new)


def update_partitions(
    call: Call, name: TableName, new: Sequence[ColumnStatistics], *, merged: bool = False, engine: str | None = None, by: Writer = NOBODY
) -> bool:
    """Write statistics of columns of partitions with a fixed number of statements, as `set_statistics` does. NoSuchObject, MetaError."""
    engine = engine or new[0].engine or ENGINE
    return on_known_table(call, name, lambda known: _update(call, name, known, new, engine, merged=merged, by=by))


def _update(
    call: Call, name: TableName, known: Known, new: Sequence[ColumnStatistics], engine: str, *, merged: bool, by: Writer
) -> bool:
    table = known.table
    label, has, transactional = str(name), _columns_of(table), is_transactional(table)
    columns: dict[str, list[ColumnStatisticsObj]] = {}
    for partition, each in zip(stored_names(call, table, [each.statsDesc.partName for each in new]), new, strict=True):
        if partition in columns:
            raise MetaError(f"Partition {partition} of {name} comes more than once in one request for statistics")
        columns[partition] = _normalized(table, has, each)
    data: list[str] = []
    with change(call, UpdateStatistics(client=call.info, table=table, statistics=new, data=data)) as current:

        def work(session: Session) -> bool:
            table_id = table.id
            locking = partitions.Locking(session, table, list(columns), known.state)
            session.send()
            old, overwrites = None, session.can_overwrite and not merged
            if not overwrites:
                old = statistics.of_partitions_later(session, table_id, list(columns), engine)
                session.send()
            data[:] = data or statistics.encode([column for each in columns.values() for column in each])
            texts, now = iter(data), int(time.time())
            wanted = {partition: _dated(each, texts, now) for partition, each in columns.items()}
            alone = {partition: statistics.stored(_encoded(each)) for partition, each in wanted.items() if overwrites and each}
            rows = locking.rows()
            if rows is None or table_id is None:
                raise NoSuchObject(f"{name} table not found")
            keys = {row[1]: row[0] for row in rows}
            if missing := wanted.keys() - keys:
                raise NoSuchObject(f"Partition {min(missing)} of {name} doesn't exist: no statistics were written")
            done = None
            if alone:
                done = statistics.overwrite_partitions(session, table_id, engine, {keys[each]: alone[each] for each in alone})
            locked = statistics.locked(rows)
            states = [State(each.parameters, each.write_id) for each in locked]
            changes = [
                _change(f"{label} {each.name}", state, wanted[each.name], by, transactional=transactional, merged=merged)
                for each, state in zip(locked, states, strict=True)
            ]
            changed = [
                each._replace(parameters=change.state.parameters, write_id=change.state.write_id)
                for each, state, change in zip(locked, states, changes, strict=True) if change.state != state
            ]
            if changed:
                statistics.set_parameters(session, table_id, changed)
            written = {each.name: change.columns for each, change in zip(locked, changes, strict=True) if change.columns}

            def join() -> None:
                if written and (done is None or done.count < len(written)):
                    there = old or statistics.of_partitions_later(session, table_id, list(written), engine)
                    together = _together(statistics.by_name(there.rows), written, merged=merged)
                    stored = {keys[partition]: statistics.stored(each) for partition, each in together.items()}
                    statistics.write_partitions(session, table_id, engine, stored)

            if done is None:
                join()
            else:
                current.at_last = join
            return all(change.joins for change in changes)

        return current.write(work)


def _columns_of(table: Table) -> frozenset[str]:
    return frozenset(column.name for column in table.sd.cols) if table.sd is not None else frozenset()


def _normalized(table: Table, known: Collection[str], new: ColumnStatistics) -> list[ColumnStatisticsObj]:
    """Return statistics with lower-case names and types; check that the table has the columns."""
    out = []
    for column in new.statsObj or []:
        if column.colName in known and column.colType is not None and column.colType.islower() and column.statsData is not None:
            out.append(column)
            continue
        if column.colName is None or column.statsData is None:
            raise InvalidObject(f"Statistics of {table.dbName}.{table.tableName} without colName or statsData can not be stored")
        stored = copy(column)
        stored.colName, stored.colType = normalize(column.colName), (column.colType or "").lower()
        if stored.colName not in known:
            raise MetaError(f"Column {stored.colName} doesn't exist in table {table.tableName} in database {table.dbName}")
        out.append(stored)
    return out


def _together(
    old: Mapping[Place, statistics.Encoded], new: Mapping[Place, Sequence[Column]], *, merged: bool
) -> dict[Place, statistics.Encoded]:
    """Return the statistics that will be stored, by the place that what is there and what is new are of."""
    if merged:
        structs = {key: [_merged(old.get(key, {}), struct) for struct, _ in columns] for key, columns in new.items()}
        data, now = iter(statistics.encode([struct for columns in structs.values() for struct in columns])), int(time.time())
        new = {key: _dated(columns, data, now) for key, columns in structs.items()}
    return {key: {**old.get(key, {}), **_encoded(columns)} for key, columns in new.items()}


def _encoded(columns: Iterable[Column]) -> statistics.Encoded:
    return {struct.colName: encoded for struct, encoded in columns}


def _dated(columns: Sequence[ColumnStatisticsObj], data: Iterator[str], now: int) -> list[Column]:
    """Return columns with what is stored of them; each takes its own of the data."""
    return [(struct, [struct.colType, now, next(data)]) for struct in columns]


def _merged(old: statistics.Encoded, new: ColumnStatisticsObj) -> ColumnStatisticsObj:
    return merge(statistics.decode(new.colName, old[new.colName]), new) if new.colName in old else new
