"""Change a table: columns, parameters, type, name, place. Source: Hive's HiveAlterHandler.alterTable."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from copy import copy

import structlog

from metastore.errors import InvalidObject, InvalidOperation, MetaError, NoSuchObject
from metastore.idl import Database, FieldSchema, Table
from metastore.listeners.events import AlterTable
from metastore.rules.catalog.columns import ColumnsDifference, difference, follow, is_clustered, lost_columns, repeated_column, strangers
from metastore.rules.catalog.table_kinds import VIEWS, is_transactional, keeps_own_columns, table_label
from metastore.rules.catalog.table_types import moves_on_rename
from metastore.rules.names import normalize, validate_table_name
from metastore.rules.statistics import statistics_validity
from metastore.rules.statistics.statistics_validity import NOBODY, StatisticsWriter
from metastore.rules.values.types import columns_equal, invalid_column, validate_column_changes
from metastore.service.call.context import Call
from metastore.service.call.names import TableName, table_name
from metastore.service.catalog import constraints, translation
from metastore.service.catalog.statistics import quick_stats
from metastore.service.catalog.tables.tables import find_table
from metastore.service.changes.change import change
from metastore.service.changes.occupants import occupants
from metastore.store.catalog import databases, dependents, statistics
from metastore.store.catalog.partitions import partitions
from metastore.store.catalog.tables import tables, view_sources
from metastore.store.core.database import Session
from metastore.store.transactions.write_ids import TableKey
from metastore.warehouse import Reach
from metastore.warehouse.locations import same_place

log = structlog.get_logger()

EXPECTED_KEY, EXPECTED_VALUE = "expected_parameter_key", "expected_parameter_value"
DDL_TIME = "transient_lastDdlTime"


def alter_table(
    call: Call,
    name: TableName,
    new: Table,
    *,
    environment: Mapping[str, str] | None = None,
    cascade: bool = False,
    by: StatisticsWriter = NOBODY,
) -> None:
    """Replace a table's definition. With another name the table is renamed, and its directory and statistics follow.

    InvalidOperation for a missing table, a taken name and a change that is not allowed; MetaError for a lost compare-and-swap, whose text
    Iceberg clients recognise by its beginning, and for statistics of a transactional table that would be exact without a transaction.
    """
    environment = environment or {}
    cascade = cascade or environment.get("CASCADE", "").lower() == "true"
    try:
        old = find_table(call, name)
    except NoSuchObject as error:
        raise InvalidOperation(f"table {name} doesn't exist") from error
    new_name = _check(call, name, old, new, environment)
    event = AlterTable(client=call.info, before=old, after=new, environment=environment)
    with change(call, event, ("table", *new_name)) as current:

        def work(session: Session) -> None:
            new_database = _lock(call, session, name, new_name)
            before = tables.find(session, *name)
            if before is None or before.id is None:
                raise InvalidOperation(f"table {name} doesn't exist")
            _compare(before, new, environment)
            database = databases.find(session, new_name.catalog, new_name.database)
            assert database is not None
            after = translation.on_alter(call, database, before, _merged(before, new, new_name, follows=not call.client.release.is_4))
            move = _new_place(call, session, before, after, database)
            reach = quick_stats.reach_of(call, after)
            _count(call, session, before, after, environment, reach, by, moves=bool(move))
            after.id = before.id
            tables.update(session, before.id, new_database, after, before)
            _follow(call, session, before, after, cascade=cascade, moved=bool(move))
            if new_name != name:
                view_sources.rename_table(session, name, new_name)
                if is_transactional(after):
                    dependents.rename_table(session, TableKey(*name), TableKey(*new_name))
            if move:
                if call.warehouse.is_directory(move[0]):
                    current.move_directory(*move)
            elif _lies_elsewhere(before, after):
                current.make_directories([after.sd.location], reach)
            current.event = AlterTable(client=call.info, before=before, after=after, environment=environment)

        current.write(work)


def _count(
    call: Call,
    session: Session,
    before: Table,
    after: Table,
    environment: Mapping[str, str],
    reach: Reach,
    by: StatisticsWriter,
    *,
    moves: bool,
) -> None:
    """Set the statistics parameters of a changed table, and remove statistics of data that it no longer has. MetaError."""
    assert before.id is not None
    has_other_data = not moves and not after.partitionKeys and _lies_elsewhere(before, after) and not keeps_own_columns(after)
    if has_other_data and not quick_stats.are_given(environment):
        after.parameters = statistics_validity.of_other_data(before.parameters or {}, after.parameters)
        statistics.delete_table(session, before.id)
    keeps = (before.dbName, before.tableName) != (after.dbName, after.tableName) and moves_on_rename(before)
    if _gathers(call, after, environment) and not keeps:
        after.parameters = quick_stats.from_directory(call, after.parameters, after.sd.location, environment, reach, force=True)
    after.parameters = quick_stats.without_marker(after.parameters)
    if is_transactional(before):
        label = str(TableName(before.catName or "", before.dbName, before.tableName))
        counted = quick_stats.not_declared_exact(before.parameters or {}, after.parameters)
        after.parameters = statistics_validity.after_change(label, before.parameters or {}, counted, before.writeId, by)
        after.writeId = statistics_validity.new_write_id(before.writeId, by)
    elif is_transactional(after):
        after.parameters = statistics_validity.without_mark(after.parameters)
    if before.sd is not None and after.sd is not None and (lost := lost_columns(before.sd.cols, after.sd.cols)):
        after.parameters = statistics_validity.without_columns(after.parameters, lost)


def _lies_elsewhere(before: Table, after: Table) -> bool:
    """Return whether the request gives the table another directory."""
    if after.sd is None or before.sd is None or after.tableType in VIEWS or not after.sd.location:
        return False
    return not before.sd.location or not same_place(before.sd.location, after.sd.location)


def _gathers(call: Call, table: Table, environment: Mapping[str, str]) -> bool:
    """Return whether basic statistics of an unpartitioned table's directory are to be set."""
    wanted = quick_stats.wanted(call, table.parameters, environment)
    return wanted and not table.partitionKeys and table.tableType not in VIEWS and bool(table.sd.location)


def _check(call: Call, name: TableName, old: Table, new: Table, environment: Mapping[str, str]) -> TableName:
    """Refuse an alter that is not allowed; return the table's new name."""
    new_name = table_name(new.dbName, new.tableName, new.catName or name.catalog, call.config.default_catalog)
    if new_name.catalog != name.catalog:
        raise InvalidOperation(f"Tables cannot be moved between catalogs, old catalog {name.catalog}, new catalog {new_name.catalog}")
    if new.sd is None and new.tableType not in VIEWS:
        raise MetaError(f"{name}: the new table has no storage descriptor: set sd")
    if new.sd is not None and new.tableType not in VIEWS and (not new.sd.location or new.sd.serdeInfo is None):
        raise MetaError(f"{name}: the new table's storage descriptor needs location and serdeInfo")
    try:
        validate_table_name(new_name.table, call.takes_special_characters)
    except InvalidObject as error:
        raise InvalidOperation(error.message) from error
    columns = new.sd.cols if new.sd is not None else []
    if columns is None:
        raise MetaError(f"{name}: the new table has no list of columns; send an empty one if it has none")
    _check_columns(name, old, new, columns, environment)
    if checks_types(call, old) and not keeps_own_columns(new) and old.sd is not None:
        validate_column_changes(old.sd.cols, columns)
    return new_name


def _check_columns(name: TableName, old: Table, new: Table, columns: list[FieldSchema], environment: Mapping[str, str]) -> None:
    """Refuse invalid and repeated columns and partition keys, and other keys unless the request allows them."""
    if wrong := invalid_column(columns):
        raise InvalidOperation(f"Invalid column {wrong}")
    if environment.get("allow_partition_key_change", "").lower() != "true" and not _same_keys(old, new):
        raise InvalidOperation("partition keys can not be changed.")
    same_keys = columns_equal(old.partitionKeys, new.partitionKeys or [])
    if not same_keys and (wrong := invalid_column(new.partitionKeys or [])):
        raise InvalidOperation(f"Invalid partition column {wrong}")
    same = same_keys and columns_equal(old.sd.cols if old.sd is not None else [], columns)
    if not same and (twice := repeated_column(columns, new.partitionKeys)):
        raise InvalidOperation(f"Table {name} would have the column {twice} twice; names are the same in any case")


def checks_types(call: Call, table: Table) -> bool:
    """Return whether a column's type may only change to a type as which its data can be read."""
    if not call.config.disallow_incompatible_col_type_changes or table.tableType in VIEWS or keeps_own_columns(table):
        return False
    serde = table.sd.serdeInfo if table.sd is not None else None
    return serde is None or serde.serializationLib not in call.config.allow_incompatible_col_type_changes_serdes


def _same_keys(old: Table, new: Table) -> bool:
    """Return whether the partition keys have the same names; types and comments may differ."""
    return [normalize(key.name) for key in old.partitionKeys] == [normalize(key.name) for key in new.partitionKeys or []]


def _lock(call: Call, session: Session, name: TableName, new_name: TableName) -> int:
    """Lock the rows that change, databases before tables; return the key of the table's new database."""
    keys = {where: databases.share(session, *where) for where in sorted({name[:2], new_name[:2]})}
    key = keys[new_name[:2]]
    if key is None:
        raise InvalidOperation(f"Unable to change partition or table. Database {new_name.database} does not exist")
    if tables.lock(session, *name) is None:
        raise InvalidOperation(f"table {name} doesn't exist")
    if new_name != name and tables.find(session, *new_name) is not None:
        raise InvalidOperation(f"new table {new_name.database}.{new_name.table} already exists")
    return key


def _compare(before: Table, new: Table, environment: Mapping[str, str]) -> None:
    """Compare a parameter with the value that the request expects. The row is locked: of two callers that expect the same, one fails."""
    key = environment.get(EXPECTED_KEY)
    if key is None:
        return
    if (new.parameters or {}).get(key) is None:
        raise MetaError(f"New value for expected key {key} is not set")
    found, expected = before.parameters.get(key), environment.get(EXPECTED_VALUE)
    if found != expected:
        raise MetaError(
            f"The table has been modified. The parameter value for key '{key}' is '{found}'. The expected was value was '{expected}'"
        )


def _merged(before: Table, new: Table, new_name: TableName, *, follows: bool) -> Table:
    """Return the table to store: the new definition with the fields that an alter never changes.

    With `follows`, bucket, sort and skew columns follow a rename; Hive 4's client renames them itself. InvalidOperation.
    """
    after = copy(new)
    after.catName, after.dbName, after.tableName = new_name
    after.sd = copy(new.sd)
    if before.sd is not None and after.sd is not None and is_clustered(after.sd):
        after.sd = follow(after.sd, difference(before.sd.cols, after.sd.cols).renamed) if follows else after.sd
        if missing := strangers(after.sd, before.sd):
            raise InvalidOperation(f"Table {new_name} would have no columns {missing}, by which it is bucketed, sorted or skewed")
    after.partitionKeys = new.partitionKeys or []
    after.createTime = before.createTime
    after.owner = new.owner if new.owner is not None else before.owner
    after.ownerType = new.ownerType or before.ownerType
    after.tableType = new.tableType or before.tableType
    after.creationMetadata = new.creationMetadata or before.creationMetadata
    after.parameters = dict(new.parameters or {})
    if after.parameters.get(DDL_TIME) in (None, "", "0"):
        after.parameters[DDL_TIME] = str(int(time.time()))
    return after


def _new_place(call: Call, session: Session, before: Table, after: Table, database: Database) -> tuple[str, str] | None:
    """Set the location after a rename; return the move of the directory, which may be missing, None for none.

    The directory moves when the server may move the table's data, it is at the old name's default place, and no other object's location is
    in it.
    """
    if before.sd is None or after.sd is None or not before.sd.location:
        return None
    old_place = before.sd.location
    after.sd.location = call.warehouse.qualified(after.sd.location, old_place)
    new_default = place_of_new_name(call, session, before, after, database)
    if new_default is None:
        return None
    found = occupants(session, [old_place], below=old_place)
    if others := sorted({each.label for each in found if each.table_id != before.id}):
        what = "the directory of a renamed table stays, other objects are in it"
        log.warning(what, object=table_label(before), location=old_place, kept=others)
        return None
    after.sd.location = new_default
    if call.warehouse.exists(new_default) and not call.warehouse.was_moved(old_place, new_default):
        raise InvalidOperation(f"New location for this table {table_label(after)} already exists : {new_default}")
    return old_place, new_default


def place_of_new_name(call: Call, session: Session, before: Table, after: Table, database: Database) -> str | None:
    """Return the default place of a table under its new name, None where its directory stays. Others' locations in it do not matter."""
    renamed = (before.dbName, before.tableName) != (after.dbName, after.tableName)
    if not renamed or not moves_on_rename(before) or not same_place(before.sd.location, after.sd.location):
        return None
    old_database = databases.find(session, before.catName or "", before.dbName)
    if old_database is None or not translation.lies_by_default(call, old_database, before):
        return None
    return translation.default_location(call, database, after)


def _follow(call: Call, session: Session, before: Table, after: Table, *, cascade: bool, moved: bool) -> None:
    """Let partitions, column statistics and constraints follow a changed table."""
    assert before.id is not None
    if before.sd is None or after.sd is None:
        return
    if after.partitionKeys and before.sd.location:
        if moved:
            partitions.follow(session, before.id, before.sd.location, after.sd.location)
        elif before.sd.location != after.sd.location and not same_place(before.sd.location, after.sd.location):
            partitions.detach(session, before.id, before.sd.location)
    lost: list[str] = []
    if not columns_equal(before.sd.cols, after.sd.cols):
        changed = difference(before.sd.cols, after.sd.cols)
        lost = lost_columns(before.sd.cols, after.sd.cols)
        if lost:
            statistics.delete_table(session, before.id, lost)
        if changed.gone and after.partitionKeys and not cascade:
            statistics.delete_columns_of_partitions(session, before.id, changed.gone)
        if changed.gone:
            constraints.follow_columns(session, before.id, changed)
    if cascade and after.partitionKeys:
        _cascade(call, session, after, None if lost else before.sd.cols)


def _cascade(call: Call, session: Session, table: Table, known: Sequence[FieldSchema] | None) -> None:
    """Give all partitions the table's columns; bucket, sort and skew columns follow, and statistics of columns that a partition loses are
    removed.

    Each partition is compared with its own old columns, which need not be the table's. A partition with the columns `known` loses none.
    InvalidOperation.
    """
    assert table.id is not None
    columns = table.sd.cols
    locked = partitions.lock_all(session, table) if known is None else partitions.lock_with_other_columns(session, table, known)
    partitions.set_columns(session, table.id, columns)
    differences: dict[int, tuple[ColumnsDifference, list[str]]] = {}  # partitions share lists of columns
    changed, lost_in = [], {}
    for key, name, partition in locked:
        if partition.sd is None or not partition.sd.cols:
            continue
        had = partition.sd.cols
        if id(had) not in differences:
            differences[id(had)] = difference(had, columns), lost_columns(had, columns)
        change_of_columns, lost = differences[id(had)]
        if lost:
            lost_in[key] = lost
        followed = follow(partition.sd, change_of_columns.renamed)
        sd = copy(followed)
        sd.cols = columns
        if missing := strangers(sd, partition.sd):
            raise InvalidOperation(f"Partition {name} of {table_label(table)} would have no columns {missing} to bucket, sort or skew by")
        parameters = statistics_validity.without_columns(partition.parameters, lost)
        if followed is not partition.sd or parameters != partition.parameters:
            stored = copy(partition)
            stored.sd, stored.parameters = sd, parameters
            changed.append((key, name, stored))
    if lost_in:
        statistics.delete_partition_columns(session, lost_in)
    if changed:
        partitions.replace(session, table, changed)
