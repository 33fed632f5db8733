"""Write column statistics of tables and partitions, or join them with what is there. Names of columns and partitions are normalised here.

Source: Hive's HMSHandler (update_*_column_statistics, set_aggr_stats_for). `statistics.py` reads them, `delete_statistics.py` removes them.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import copy
from functools import partial
from operator import attrgetter
from typing import NamedTuple, TypeVar

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
from metastore.store.drivers import Differs
from metastore.store.tables import Known

_table_named = attrgetter("statsDesc.catName", "statsDesc.dbName", "statsDesc.tableName")

Place = TypeVar("Place", int, str)
"""The key of a table, or the name of a partition."""

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
    columns = _normalized(table, _columns_of(table), set(), new)
    data = statistics.encode(columns)
    encoded = _encoded(columns, iter(data), int(time.time()))
    with change(call, UpdateStatistics(client=call.info, table=table, statistics=[new], data=data)) as current:

        def work(session: Session) -> bool:
            key = tables.lock(session, *name)
            found = None if key is None else tables.find(call.database, session, *name)
            if key is None or found is None:
                raise NoSuchObject(f"{name} table not found")
            old = State(found.parameters, found.writeId or -1)
            change = _change(str(name), old, tuple(encoded), by, transactional=is_transactional(found), merged=merged)
            if change.columns:
                there = {key: statistics.of_table(session, key, engine)}
                written = _together(there, {key: change.columns}, {key: encoded}, {key: columns}, merged=merged)
                statistics.write_table(session, key, engine, written[key])
            if change.state != old:
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
    columns: tuple[str, ...]
    joins: bool = True


def _change(label: str, old: State, new: tuple[str, ...], by: Writer, *, transactional: bool, merged: bool) -> Change:
    """Source: Hive's HMSHandler.updateTableColumnStatsWithMerge and ObjectStore.updateTableColumnStatistics. MetaError."""
    write_id = accuracy.new_write_id(old.write_id, by) if transactional else old.write_id
    if merged:
        if transactional and by.seen is not None and not accuracy.holds(old.parameters, old.write_id, by.seen):
            return Change(State(accuracy.without_mark(old.parameters), write_id), (), joins=False)
        exact = accuracy.exact_columns(old.parameters)
        new = tuple(column for column in new if column in exact)
        if not new:
            return Change(old, ())
    marked = accuracy.with_columns(old.parameters, new)
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
    names = stored_names(call, table, [each.statsDesc.partName for each in new])
    if len(set(names)) < len(names):
        twice = next(each for number, each in enumerate(names) if each in names[:number])
        raise MetaError(f"Partition {twice} of {name} comes more than once in one request for statistics")
    data: list[str] = []
    with change(call, UpdateStatistics(client=call.info, table=table, statistics=new, data=data)) as current:

        def work(session: Session, *, overwrites: bool) -> bool:
            table_id = table.id
            locking = partitions.Locking(session, table, names, known.state)
            session.send()
            old = None
            if not overwrites:
                old = statistics.of_partitions_later(session, table_id, names, engine)
                session.send()
            fitting: set[tuple[str, str]] = set()
            has = _columns_of(table)
            columns = {partition: _normalized(table, has, fitting, each) for partition, each in zip(names, new, strict=True)}
            data[:] = data or statistics.encode([column for each in columns.values() for column in each])
            texts, now = iter(data), int(time.time())
            encoded = {partition: _encoded(each, texts, now) for partition, each in columns.items()}
            alone = {partition: statistics.stored(each) for partition, each in encoded.items() if overwrites and each}
            rows = locking.rows()
            if rows is None or table_id is None:
                raise NoSuchObject(f"{name} table not found")
            keys = {row[1]: row[0] for row in rows}
            if missing := columns.keys() - keys:
                raise NoSuchObject(f"Partition {min(missing)} of {name} doesn't exist: no statistics were written")
            if alone:
                statistics.overwrite_partitions(session, table_id, engine, {keys[each]: stored for each, stored in alone.items()})
                session.send()
            changed, written, joins = _changes(table, statistics.locked(rows), encoded, by, merged=merged)
            if changed:
                statistics.set_parameters(session, table_id, changed)
            if old is not None and written:
                together = _together(statistics.by_name(old.rows), written, encoded, columns, merged=merged)
                stored = {keys[partition]: statistics.stored(each) for partition, each in together.items()}
                statistics.write_partitions(session, table_id, engine, stored)
            return joins

        if call.database.driver.can_overwrite and not merged:
            with suppress(Differs):
                return current.write(partial(work, overwrites=True))
        return current.write(partial(work, overwrites=False))


def _changes(
    table: Table, locked: Iterable[statistics.Partition], encoded: Mapping[str, statistics.Encoded], by: Writer, *, merged: bool
) -> tuple[list[statistics.Partition], dict[str, tuple[str, ...]], bool]:
    """Return the partitions whose rows change, the columns that are written, by partition, and whether all could be joined. MetaError."""
    transactional = is_transactional(table)
    changed: list[statistics.Partition] = []
    written: dict[str, tuple[str, ...]] = {}
    joins = True
    for each in locked:
        columns = tuple(encoded[each.name])
        if not transactional and not merged:  # as `_change` does it, of hundreds of partitions in half the time
            marked = accuracy.with_columns(each.parameters, columns)
            if marked is not each.parameters:
                changed.append(each._replace(parameters=marked))
            if columns:
                written[each.name] = columns
            continue
        old = State(each.parameters, each.write_id)
        of = _change(
            f"{table.catName}.{table.dbName}.{table.tableName} {each.name}", old, columns, by, transactional=transactional, merged=merged
        )
        if of.state != old:
            changed.append(each._replace(parameters=of.state.parameters, write_id=of.state.write_id))
        if of.columns:
            written[each.name] = of.columns
        joins = joins and of.joins
    return changed, written, joins


def _columns_of(table: Table) -> frozenset[str]:
    return frozenset(column.name for column in table.sd.cols) if table.sd is not None else frozenset()


def _normalized(
    table: Table, names: Collection[str], fitting: set[tuple[str, str]], new: ColumnStatistics
) -> Sequence[ColumnStatisticsObj]:
    """Return statistics with lower-case names and types; check that the table has the columns.

    `fitting` holds names and types of columns that need no change; hundreds of partitions of one request have the same.
    """
    for column in new.statsObj or ():
        if (column.colName, column.colType) not in fitting or column.statsData is None:
            break
    else:
        return new.statsObj or ()
    out = []
    for column in new.statsObj:
        if column.colName in names and column.colType is not None and column.colType.islower() and column.statsData is not None:
            fitting.add((column.colName, column.colType))
            out.append(column)
            continue
        if column.colName is None or column.statsData is None:
            raise InvalidObject(f"Statistics of {table.dbName}.{table.tableName} without colName or statsData can not be stored")
        stored = copy(column)
        stored.colName, stored.colType = normalize(column.colName), (column.colType or "").lower()
        if stored.colName not in names:
            raise MetaError(f"Column {stored.colName} doesn't exist in table {table.tableName} in database {table.dbName}")
        out.append(stored)
    return out


def _encoded(columns: Sequence[ColumnStatisticsObj], data: Iterator[str], now: int) -> statistics.Encoded:
    """Return what is stored of columns; each takes its own of the data."""
    return {column.colName: [column.colType, now, next(data)] for column in columns}


def _together(
    old: Mapping[Place, statistics.Encoded], written: Mapping[Place, Collection[str]], encoded: Mapping[Place, statistics.Encoded],
    structs: Mapping[Place, Sequence[ColumnStatisticsObj]], *, merged: bool,
) -> dict[Place, statistics.Encoded]:  # fmt: skip
    """Return the statistics that will be stored, by the place that they are of: what is there, and the columns that are written."""
    if merged:
        joined = {
            key: [_merged(old.get(key, {}), struct) for struct in structs[key] if struct.colName in names] for key, names in written.items()
        }
        data, now = iter(statistics.encode([struct for columns in joined.values() for struct in columns])), int(time.time())
        encoded = {key: _encoded(columns, data, now) for key, columns in joined.items()}
    return {key: {**old.get(key, {}), **encoded[key]} for key in written}


def _merged(old: statistics.Encoded, new: ColumnStatisticsObj) -> ColumnStatisticsObj:
    return merge(statistics.decode(new.colName, old[new.colName]), new) if new.colName in old else new
