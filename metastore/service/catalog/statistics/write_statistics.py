"""Write column statistics of tables and partitions, or merge them with stored ones. Names of columns and partitions are normalised here.

Source: Hive's HMSHandler (update_*_column_statistics, set_aggr_stats_for). `statistics.py` reads them, `delete_statistics.py` removes them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from operator import attrgetter
from typing import NamedTuple, TypeVar

from metastore.errors import MetaError, NoSuchObject
from metastore.idl import ColumnStatistics, ColumnStatisticsObj, Table
from metastore.listeners.events import UpdateStatistics
from metastore.rules.catalog.table_kinds import is_transactional
from metastore.rules.statistics import statistics_validity
from metastore.rules.statistics.statistics import merge
from metastore.rules.statistics.statistics_validity import NOBODY, StatisticsWriter
from metastore.rules.transactions.snapshots import Snapshot
from metastore.service.call.context import Call
from metastore.service.call.names import TableName, table_name
from metastore.service.catalog.statistics.statistics import ENGINE, partitions_named
from metastore.service.catalog.statistics.written_columns import WrittenColumns, checked, columns_of, encoded, with_columns
from metastore.service.catalog.tables.tables import find_table, on_cached_table
from metastore.service.changes.change import change
from metastore.store.catalog import statistics
from metastore.store.catalog.partitions import partitions
from metastore.store.catalog.tables import tables
from metastore.store.catalog.tables.tables import Known
from metastore.store.core.database import Session

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
    call: Call, new: Sequence[ColumnStatistics], *, merged: bool = False, engine: str | None = None, by: StatisticsWriter = NOBODY
) -> bool:
    """Write the statistics of one table or of partitions of one table; columns that are not named keep theirs.

    With `merged` they are merged with the stored ones where these are exact: statistics of only a part of the data are not stored. Return
    False if the statistics of a transactional table could not be merged, because the writer does not see the counted rows; then none are
    exact. NoSuchObject for a missing table or partition. MetaError for a column that the table lacks, for statistics of several tables, for
    a partition that is in the list twice, and without a transaction where a transactional table's number of rows would stay exact.
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


def check_brought(call: Call, table: Table, brought: Iterable[ColumnStatistics]) -> None:
    """Raise the errors of `write_brought` before the object with the statistics is made. InvalidObject, MetaError."""
    given = list(brought)
    for each in given:
        name_of(call, each)
    columns_of(table, given)


def write_brought(call: Call, name: TableName, brought: Iterable[tuple[ColumnStatistics, int | None]]) -> None:
    """Write the statistics that were sent with a new table or new partitions, each with the write id under which they were made.

    Hive's replication sends them: at the source they were exact. Statistics of another table are ignored, and so are a transactional
    table's without a write id. NoSuchObject, MetaError.
    """
    transactional = is_transactional(find_table(call, name))
    by_write_id: dict[int, list[ColumnStatistics]] = {}
    for new, write_id in brought:
        if new.statsObj and name_of(call, new) == name and (not transactional or (write_id or 0) > 0):
            by_write_id.setdefault((write_id or 0) if transactional else 0, []).append(new)
    for number, of in by_write_id.items():
        set_statistics(call, of, by=StatisticsWriter(number, Snapshot(number)) if transactional else NOBODY)


def update_table(
    call: Call, name: TableName, new: ColumnStatistics, *, merged: bool = False, engine: str | None = None, by: StatisticsWriter = NOBODY
) -> bool:
    """Write statistics of a table's columns, as `set_statistics` does. NoSuchObject, MetaError."""
    table = find_table(call, name)
    engine = engine or new.engine or ENGINE
    (columns,) = columns_of(table, [new])
    of_event = [with_columns(new, columns.structs)]
    with change(call, UpdateStatistics(client=call.info, table=table, statistics=of_event, data=[columns.data])) as current:

        def work(session: Session) -> bool:
            key = tables.lock(session, *name)
            found = None if key is None else tables.find(session, *name)
            if key is None or found is None:
                raise NoSuchObject(f"{name} table not found")
            old = StatisticsState(found.parameters, found.writeId or -1)
            there = statistics.of_table(session, key, engine)
            effect = _effect(str(name), old, there, columns, by, transactional=is_transactional(found), merged=merged)
            if effect.columns:
                stored = _together({key: there}, {key: effect.columns}, {key: columns}, merged=merged)
                statistics.write_table(session, key, engine, stored[key])
            if effect.state != old:
                tables.set_parameters(session, key, effect.state.parameters, effect.state.write_id)
            return effect.joins

        return current.write(work)


class StatisticsState(NamedTuple):
    """The statistics' state in the row of a table or partition."""

    parameters: dict[str, str]
    write_id: int


class Effect(NamedTuple):
    """The effect of a request: the new state, the written columns, and whether they could be merged with the stored ones."""

    state: StatisticsState
    columns: tuple[str, ...]
    joins: bool = True


def _effect(
    label: str,
    old: StatisticsState,
    there: statistics.Encoded,
    columns: WrittenColumns,
    by: StatisticsWriter,
    *,
    transactional: bool,
    merged: bool,
) -> Effect:
    """Return the effect of a request on the statistics of a place. The stored ones, `there`, matter only to a merge. MetaError.

    A column whose old statistics can not be merged with the new ones keeps the old ones, which are not exact any longer. Source: Hive's
    HMSHandler.updateTableColumnStatsWithMerge and ObjectStore.updateTableColumnStatistics.
    """
    new = columns.names
    write_id = statistics_validity.new_write_id(old.write_id, by) if transactional else old.write_id
    if merged:
        if transactional and by.seen is not None and not statistics_validity.is_valid(old.parameters, old.write_id, by.seen):
            return Effect(StatisticsState(statistics_validity.without_mark(old.parameters), write_id), (), joins=False)
        exact = statistics_validity.exact_columns(old.parameters)
        if other := exact.intersection(columns.of_other_kinds(there)):
            old = old._replace(parameters=statistics_validity.without_columns(old.parameters, other))
        new = tuple(column for column in new if column in exact and column not in other)
        if not new:
            return Effect(old, ())
    marked = statistics_validity.with_columns(old.parameters, new)
    if transactional:
        marked = statistics_validity.after_change(label, old.parameters, marked, old.write_id, by, columns=True)
    return Effect(old if marked is old.parameters and write_id == old.write_id else StatisticsState(marked, write_id), new)


def update_partitions(
    call: Call,
    name: TableName,
    new: Sequence[ColumnStatistics],
    *,
    merged: bool = False,
    engine: str | None = None,
    by: StatisticsWriter = NOBODY,
) -> bool:
    """Write statistics of columns of partitions with a fixed number of statements, as `set_statistics` does. NoSuchObject, MetaError."""
    engine = engine or new[0].engine or ENGINE
    return on_cached_table(call, name, lambda known: _update(call, name, known, new, engine, merged=merged, by=by))


def _update(
    call: Call, name: TableName, known: Known, new: Sequence[ColumnStatistics], engine: str, *, merged: bool, by: StatisticsWriter
) -> bool:
    """Write statistics of partitions of a table as it was read; return whether they could be merged, if the request merges."""
    table = known.table
    names = partitions_named(call, table, [each.statsDesc.partName for each in new])
    if len(set(names)) < len(names):
        twice = next(each for number, each in enumerate(names) if each in names[:number])
        raise MetaError(f"Partition {twice} of {name} occurs more than once in one request for statistics")
    keys, structs = checked(table, new)
    columns = cache(lambda: encoded(structs))
    of_event = [with_columns(each, structs[key]) for each, key in zip(new, keys, strict=True)]
    event = UpdateStatistics(client=call.info, table=table, statistics=of_event)
    with change(call, event) as current:

        def work(session: Session) -> bool:
            locking = partitions.Locking(session, table, names, known)
            old = statistics.of_other_columns(session, table.id, names, engine, unread)
            made = columns()  # the database locks while this encodes
            new = {partition: made[key] for partition, key in zip(names, keys, strict=True)}
            current.event = replace(event, data=[made[key].data for key in keys])
            rows = locking.rows()
            if rows is None or table.id is None:
                raise NoSuchObject(f"{name} table not found")
            places = {row[1]: row[0] for row in rows}
            if missing := set(names) - places.keys():
                raise NoSuchObject(f"Partition {min(missing)} of {name} doesn't exist: no statistics were written")
            there = old()
            changed, written, joins = _effects(table, statistics.locked(rows), there, new, by, merged=merged)
            if changed:
                statistics.set_parameters(session, table.id, changed)
            stored = _stored(there, written, new, merged=merged)
            statistics.write_partitions(session, table.id, engine, {places[each]: of for each, of in stored.items()})
            return joins

        of_one_request = {tuple(struct.colName for struct in of) for of in structs.values()}
        unread = of_one_request.pop() if len(of_one_request) == 1 and not merged else ()
        return current.write(work)


def _stored(
    old: Mapping[str, statistics.Encoded], written: Mapping[str, Collection[str]], new: Mapping[str, WrittenColumns], *, merged: bool
) -> dict[str, statistics.Stored]:
    """Return the rows of statistics to store, by partition name. For a partition without `old` statistics a row has only the new ones."""
    if merged:
        return {each: statistics.stored(of) for each, of in _together(old, written, new, merged=True).items()}
    return {each: statistics.stored({**old[each], **new[each].encoded}) if each in old else new[each].stored() for each in written}


def _effects(
    table: Table,
    locked: Iterable[statistics.Partition],
    there: Mapping[str, statistics.Encoded],
    new: Mapping[str, WrittenColumns],
    by: StatisticsWriter,
    *,
    merged: bool,
) -> tuple[list[statistics.Partition], dict[str, tuple[str, ...]], bool]:
    """Return the partitions whose rows change, the written columns by partition, and whether all could be merged. MetaError."""
    transactional = is_transactional(table)
    changed: list[statistics.Partition] = []
    written: dict[str, tuple[str, ...]] = {}
    joins = True
    for each in locked:
        label = f"{table.catName}.{table.dbName}.{table.tableName} {each.name}"
        old = StatisticsState(each.decoded(), each.write_id)
        of = _effect(label, old, there.get(each.name, {}), new[each.name], by, transactional=transactional, merged=merged)
        if of.state != old:
            changed.append(each.changed(of.state.parameters, of.state.write_id))
        if of.columns:
            written[each.name] = of.columns
        joins = joins and of.joins
    return changed, written, joins


def _together(
    old: Mapping[Place, statistics.Encoded], written: Mapping[Place, Collection[str]], new: Mapping[Place, WrittenColumns], *, merged: bool
) -> dict[Place, statistics.Encoded]:
    """Return the statistics that will be stored, by place: the old ones, and the written columns."""
    if merged:
        new = encoded(
            {
                key: [_merged(old.get(key, {}), struct) for struct in new[key].structs if struct.colName in names]
                for key, names in written.items()
            }
        )
    return {key: {**old.get(key, {}), **new[key].encoded} for key in written}


def _merged(old: statistics.Encoded, new: ColumnStatisticsObj) -> ColumnStatisticsObj:
    return merge(statistics.decode(new.colName, old[new.colName]), new) if new.colName in old else new
