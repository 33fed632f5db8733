"""Tables: read, list, drop, truncate. `create_table` and `alter_table` have modules of their own."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from typing import NamedTuple, TypeVar, cast

from metastore.errors import InvalidOperation, MetaError, MetastoreError, NoSuchObject, UnknownDatabase, UnknownTable
from metastore.idl import CreationMetadata, FieldSchema, Table, TableMeta
from metastore.listeners.events import AlterPartitions, AlterTable, DropTable, ReadTable
from metastore.rules.catalog.table_kinds import INDEX_TABLE, VIEWS, is_transactional, purges_data
from metastore.rules.filters import TableFacts, compile_table_filter, keys_in, parse
from metastore.rules.names import exact_name, is_class_name, normalize, pattern_matcher
from metastore.rules.statistics import statistics_validity
from metastore.service.call.clock import now_ms
from metastore.service.call.context import Call
from metastore.service.call.names import TableName
from metastore.service.catalog.databases import get_databases, named_views, refuse_remote, skips_trash
from metastore.service.catalog.partitions.partitions import names_as_stored
from metastore.service.catalog.partitions.partitions import partition_names as partition_names_of
from metastore.service.catalog.tables import empty_bases, soft_drops
from metastore.service.changes import deletion
from metastore.service.changes.change import change
from metastore.service.changes.deletion import Doomed
from metastore.store.catalog import catalogs, databases, dependents, statistics
from metastore.store.catalog.partitions import partitions
from metastore.store.catalog.tables import indexes, tables, view_sources
from metastore.store.catalog.tables.tables import Known
from metastore.store.core.database import Session
from metastore.store.drivers.answer import Answer
from metastore.store.transactions.write_ids import TableKey

T = TypeVar("T")


def find_table(call: Call, name: TableName) -> Table:
    """Return a table without notifying listeners. NoSuchObject."""
    database = call.database
    found = database.read(lambda session: tables.find(session, *name))
    if found is None:
        raise NoSuchObject(f"{name} table not found")
    return found


def on_cached_table(call: Call, name: TableName, work: Callable[[Known], T]) -> T:
    """Run `work` on a table as this process read it last. Where that fails, read the table and run `work` again.

    `work` fails when the row that it locks has changed meanwhile. A failure while it holds an unchanged row (`is_current`) is final.
    Listeners never get an outdated table: with any listener but the notification log, which is notified inside the transaction, the table
    is read first. NoSuchObject, and the errors of `work`.
    """
    database, listeners = call.database, call.listeners
    known = tables.cached(database, *name) if listeners.only_log and not listeners.pre and not listeners.post else None
    if known is not None:
        try:
            return work(known)
        except MetastoreError:
            if known.is_current:
                raise
    found = database.read(lambda session: tables.find_and_cache(session, *name))
    if found is None:
        raise NoSuchObject(f"{name} table not found")
    return work(found)


def get_table(call: Call, name: TableName) -> Table:
    """Return a table. NoSuchObject; MetaError for one of a database of type REMOTE."""
    try:
        table = find_table(call, name)
    except NoSuchObject:
        refuse_remote(call, name.catalog, name.database)
        raise
    if call.listeners.pre:
        call.listeners.before(ReadTable(client=call.info, table=table))
    return table


def get_table_objects_by_name(
    call: Call, catalog: str, database: str | None, names: Sequence[str] | None, must_exist: bool = False
) -> list[Table]:
    """Return the named tables that exist.

    Without names the result is empty even for a missing database, as in Java's server, unless the database `must_exist`. UnknownDatabase;
    InvalidOperation for a null or empty argument.
    """
    if not database:
        raise UnknownDatabase("DB name is null or empty")
    if names is None:
        raise InvalidOperation(f"{database} cannot find null tables")
    wanted = list(dict.fromkeys(normalize(name) for name in names))
    if not wanted and not must_exist:
        return []

    def work(session: Session) -> list[Table]:
        found = tables.find_many(session, catalog, database, wanted) if wanted else []
        if not found and databases.find(session, catalog, database) is None:
            raise UnknownDatabase(f"Could not find database {catalog}.{database}")
        return found

    found = call.database.read(work)
    for table in found if call.listeners.pre else ():
        call.listeners.before(ReadTable(client=call.info, table=table))
    return found


def get_table_objects_by_pattern(call: Call, catalog: str, database_pattern: str | None, pattern: str) -> list[Table]:
    """Return the tables that match in the databases that match. Hive 4's client lists names with it. UnknownDatabase without one."""
    if not database_pattern:
        raise UnknownDatabase("DB name is null or empty")
    matching = get_databases(call, catalog, database_pattern)
    if not matching and exact_name(database_pattern) is not None:
        raise UnknownDatabase(f"Could not find database {catalog}.{database_pattern}")
    listed = [(name, matching_tables(call, catalog, name, pattern)) for name in matching]
    return [table for name, names in listed for table in get_table_objects_by_name(call, catalog, name, names)]


def get_tables(call: Call, catalog: str, database: str | None, pattern: str | None) -> list[str]:
    """Return the names of the tables that match a pattern; empty for a missing database. MetaError for one of type REMOTE."""
    found = matching_tables(call, catalog, database, pattern)
    if not found and database is not None:
        refuse_remote(call, catalog, database)
    return found


def matching_tables(call: Call, catalog: str, database: str | None, pattern: str | None, table_type: str | None = None) -> list[str]:
    """Return the names of the tables that match a pattern and, if given, a type; empty for a missing database, and one of type REMOTE."""
    if database is None:
        raise MetaError("Database name cannot be null.")
    matches = pattern_matcher(pattern)
    found = call.database.read(lambda session: tables.names(session, catalog, database, table_type or None))
    return [name for name in found if matches(name)]


def get_table_meta(
    call: Call, catalog: str, database_pattern: str | None, pattern: str | None, types: Sequence[str] | None
) -> list[TableMeta]:
    """Return catalog, name, type, comment and owner of the tables of all databases that match; without catalog for Hive 3's client."""
    shown_catalog = catalog if call.client.release.is_4 else None
    in_database, matches = pattern_matcher(database_pattern), pattern_matcher(pattern)
    return [
        TableMeta(
            dbName=row.database,
            tableName=row.name,
            tableType=row.type,
            comments=row.comment,
            catName=shown_catalog,
            ownerName=row.owner,
            ownerType=row.owner_type,
        )
        for row in call.database.read(lambda session: tables.meta(session, catalog, exact_name(database_pattern)))
        if (not types or row.type in types) and in_database(row.database) and matches(row.name)
    ]


def get_table_names_by_filter(call: Call, catalog: str, database: str | None, text: str | None, limit: int) -> list[str]:
    """Return the names of the tables that pass a table filter, ascending; at most `limit` of them unless it is negative.

    A missing database has none. UnknownDatabase for an empty name, InvalidOperation without a filter, MetaError.
    """
    if not database:
        raise UnknownDatabase("DB name is null or empty")
    if text is None:
        raise InvalidOperation(f"{text} cannot apply null filter")

    passes = compile_table_filter(parse(text, keys_in(text)))
    rows = call.database.read(lambda session: tables.facts(session, catalog, database))
    if not rows and call.database.read(lambda session: catalogs.find(session, catalog)) is None:
        raise UnknownDatabase(f"Could not find database {catalog}.{database}: there is no catalog {catalog}")
    names = [row.name for row in rows if passes(TableFacts(*row))]
    return names if limit < 0 else names[:limit]


def get_fields(call: Call, name: TableName) -> list[FieldSchema]:
    """Return a table's data columns as they are stored. UnknownTable; MetaError for a serde that no engine can load."""
    return _with_columns(call, name)[1]


def get_schema(call: Call, name: TableName) -> list[FieldSchema]:
    """Return a table's data columns and partition keys. Raises as `get_fields`."""
    table, columns = _with_columns(call, name)
    return [*columns, *table.partitionKeys]


def _with_columns(call: Call, name: TableName) -> tuple[Table, list[FieldSchema]]:
    try:
        table = find_table(call, name)
    except NoSuchObject as error:
        raise UnknownTable(error.message) from error
    if table.sd is None:
        return table, []
    serde = table.sd.serdeInfo.serializationLib if table.sd.serdeInfo is not None else None
    if serde and not is_class_name(serde):
        raise MetaError(
            f"The columns of {name} are defined by its serde {serde}, which is not a name of a class in Java: correct the serde"
        )
    return table, table.sd.cols


def drop_table(
    call: Call, name: TableName, *, delete_data: bool, ignore_unknown: bool = False, environment: Mapping[str, str] | None = None
) -> None:
    """Remove a table; its data is deleted if requested and the table purges it. NoSuchObject, MetaError."""
    try:
        table = find_table(call, name)
    except NoSuchObject:
        if ignore_unknown:
            return
        raise NoSuchObject(f"{name} table not found") from None
    _drop(call, name, table, environment or {}, delete_data=delete_data)


def drop_table_and(call: Call, name: TableName, work: Callable[[Session], object], *, delete_data: bool) -> None:
    """Remove a table, and run `work` in the same transaction once it is locked. NoSuchObject, MetaError, and the errors of `work`."""
    _drop(call, name, find_table(call, name), {}, delete_data=delete_data, work=work)


class _Dropped(NamedTuple):
    name: TableName
    event: DropTable
    data: list[str]
    """Locations, the table's own last."""


def _drop(
    call: Call,
    name: TableName,
    table: Table,
    environment: Mapping[str, str],
    *,
    delete_data: bool,
    work: Callable[[Session], object] | None = None,
) -> None:
    """Remove a table that was read before, and the tables of its indexes."""
    with change(call, DropTable(client=call.info, table=table, delete_data=delete_data, environment=environment)) as current:

        def remove(session: Session) -> None:
            answer = tables.lock_known(session, table, exclusively=True)
            index_tables = indexes.index_tables(session, cast(int, table.id))
            used = view_sources.made_from_table(session, name)
            held = _held(call, session, name, table, answer)
            if work is not None:
                work(session)
            if used:
                raise MetaError(f"Cannot drop table {name} as it is used in {named_views(call, used)}")
            if held.tableType == INDEX_TABLE and indexes.owner(session, cast(int, held.id)) is not None:
                raise MetaError(f"The table {name} is an index table. Please do drop index instead.")
            names = [TableName(*each) for each in index_tables()]
            dropped = [_take(call, session, name, held, environment, delete_data=delete_data)]
            for each in names:
                if tables.lock(session, *each) is not None and (found := tables.find(session, *each)) is not None:
                    dropped.append(_take(call, session, each, found, {}, delete_data=True))
                    call.listeners.before(dropped[-1].event)
            current.event, *current.further = [each.event for each in dropped]
            for each, event, data in dropped:
                batch = data, _purges(event.table, event.environment)
                current.deletion.take(session, Doomed(f"table {each}", [batch], below=data[-1] if data else None))

        current.write(remove)


def _take(call: Call, session: Session, name: TableName, table: Table, environment: Mapping[str, str], *, delete_data: bool) -> _Dropped:
    """Remove the rows of a locked table. MetaError where its data can not be deleted."""
    data = _data(call, session, name, table) if delete_data else []
    _remove(call, session, name, table, environment, delete_data=delete_data)
    return _Dropped(name, DropTable(client=call.info, table=table, delete_data=delete_data, environment=environment), data)


def _locked(call: Call, session: Session, name: TableName, table: Table) -> Table:
    """Lock a table that was read before; return it as it is now. NoSuchObject."""
    return _held(call, session, name, table, tables.lock_known(session, table, exclusively=True))


def _held(call: Call, session: Session, name: TableName, table: Table, answer: Answer) -> Table:
    """Return a table that `lock_known` locked, as it is now. NoSuchObject."""
    held = tables.locked(session, table, answer)
    if held is None or held.id is None:
        raise NoSuchObject(f"{name} table not found")
    return held


def _data(call: Call, session: Session, name: TableName, table: Table) -> list[str]:
    """Return the locations of the data to delete with a table, its own last. MetaError where it can not be deleted."""
    if not purges_data(table) or table.tableType in VIEWS or table.sd is None or not table.sd.location:
        return []
    if not call.warehouse.is_writable(table.sd.location.rstrip("/").rpartition("/")[0]):
        raise MetaError(f"{name} metadata not deleted since its parent directory is not writable: {table.sd.location}")
    return [*(partitions.locations_outside(session, table.id) if table.partitionKeys and table.id is not None else ()), table.sd.location]


def _remove(call: Call, session: Session, name: TableName, table: Table, environment: Mapping[str, str], *, delete_data: bool) -> None:
    """Remove the rows of a locked table with its transactional records; its files may follow later (see `soft_drops`)."""
    assert table.id is not None
    tables.delete(session, table.id, partitioned=bool(table.partitionKeys))
    if not is_transactional(table):
        return
    dependents.delete_table(session, TableKey(*name))
    if not delete_data and soft_drops.dropping_transaction(environment) and table.sd is not None and table.sd.location:
        soft_drops.hand_over(call, session, name, [(None, table.sd.location)], environment, purge=_purges(table, environment))


def _purges(table: Table, environment: Mapping[str, str]) -> bool:
    return environment.get("ifPurge", "").lower() == "true" or skips_trash(table)


def truncate_table(
    call: Call, name: TableName, partition_names: Sequence[str] | None, environment: Mapping[str, str] | None, write_id: int | None = None
) -> None:
    """Delete the data of a table or of named partitions, and their column statistics.

    Directories are kept, and so is other objects' data in them. Where the request asks that no data is deleted, an empty base of its write
    id hides the data of a transactional table (see `empty_bases`).

    NoSuchObject for a missing table; MetaError for a missing partition, and for a directory that another object shares, that is a root or
    that can not be reached: then nothing is changed.
    """
    table = find_table(call, name)
    environment = environment or {}
    keeps_data, transactional = empty_bases.keeps_data(environment), is_transactional(table)
    given = write_id if transactional and write_id is not None and write_id > 0 else None
    if keeps_data and transactional and given is None:
        raise MetaError(f"{name} is transactional: to truncate it without deleting data, send the writeId of the new base")
    after = Table(**table.__dict__)
    after.parameters = _truncated(table.parameters)
    after.writeId = given or table.writeId
    with change(call, AlterTable(client=call.info, before=table, after=after, truncates=True, environment=environment)) as current:

        def work(session: Session) -> None:
            held = _locked(call, session, name, table)
            if held.partitionKeys:
                chosen, event = _truncate_partitions(call, session, name, held, partition_names, environment, given)
                current.event = event
                parts: Sequence[str | None] = partition_names_of(call, held, [each.values for each in event.after])
            elif not partition_names:
                chosen, parts = _truncate_whole(call, session, name, held, given), [None]
            else:  # Hive's clients name partitions of tables that have none, and expect no error
                current.event = AlterTable(client=call.info, before=held, after=held, truncates=True, environment=environment)
                return
            if not keeps_data:
                below = held.sd.location if held.sd is not None else None
                current.deletion.empty(session, f"table {name}", chosen, below, purge=_purges(held, environment))
            elif given is not None:
                empty_bases.note(call, session, name, parts, given)
                empty_bases.write(current, list(chosen), given, empty_bases.TRUNCATED)

        current.write(work)


def _truncate_whole(call: Call, session: Session, name: TableName, table: Table, write_id: int | None) -> dict[str, list[str]]:
    """Note that a locked table without partitions has no rows; return the directories to empty, with the locations to keep there."""
    assert table.id is not None
    has_data = table.sd is not None and table.tableType not in VIEWS
    chosen = deletion.to_empty(call, session, name, table, [(None, table.sd.location)] if has_data else [])
    tables.set_parameters(session, table.id, _truncated(table.parameters), write_id)
    statistics.delete_table(session, table.id)
    return chosen


def _truncate_partitions(
    call: Call,
    session: Session,
    name: TableName,
    table: Table,
    names: Sequence[str] | None,
    environment: Mapping[str, str],
    write_id: int | None,
) -> tuple[dict[str, list[str]], AlterPartitions]:
    """Note that the named partitions of a locked table, all without names, have no rows; return the directories to empty, and the event."""
    if names:
        wanted = names_as_stored(call, table, names)
        found = partitions.lock_named(session, table, wanted)
        if missing := {*wanted} - {each for _, each, _ in found}:
            raise MetaError(f"Partition {min(missing)} of {name} doesn't exist: nothing was truncated")
    else:
        found = partitions.lock_all(session, table)
    places = [(each, partition.sd.location) for _, each, partition in found if partition.sd is not None]
    chosen = deletion.to_empty(call, session, name, table, places, wholly=not names)
    changed = [(key, each, copy(partition)) for key, each, partition in found]
    for _, _, partition in changed:
        partition.parameters = _truncated(partition.parameters)
        partition.writeId = write_id or partition.writeId
    if changed:
        partitions.replace(session, table, changed)
        statistics.delete_partitions(session, [key for key, _, _ in changed])
    before, after = [partition for _, _, partition in found], [partition for _, _, partition in changed]
    return chosen, AlterPartitions(client=call.info, table=table, before=before, after=after, truncates=True, environment=environment)


def _truncated(parameters: Mapping[str, str]) -> dict[str, str]:
    kept = {key: value for key, value in parameters.items() if not statistics_validity.counts(key)}
    return {**kept, "numFiles": "0", "totalSize": "0", "numRows": "0", "rawDataSize": "0", "transient_lastDdlTime": str(int(time.time()))}


def update_creation_metadata(call: Call, name: TableName, metadata: CreationMetadata) -> None:
    """Change the sources of a materialized view, and note that it was made now. NoSuchObject, MetaError.

    Hive compares that time with the window in which a view may lag behind (`rewriting.time.window`).
    """
    table = find_table(call, name)
    if table.tableType != "MATERIALIZED_VIEW" or table.id is None:
        raise MetaError(f"{name} is not a materialized view")
    key = table.id
    metadata.materializationTime = now_ms()
    call.database.write(lambda session: view_sources.set_sources(session, key, metadata))


def materialized_views(call: Call, catalog: str, database: str) -> list[str]:
    """Return the names of a database's materialized views that queries may be rewritten to, ascending."""
    found = call.database.read(lambda session: tables.materialized_views(session, catalog))
    return [table.tableName for table in found if table.dbName == database and table.rewriteEnabled]


def materialized_view_objects(call: Call) -> list[Table]:
    """Return the default catalog's materialized views that queries may be rewritten to."""
    catalog = call.config.default_catalog
    found = call.database.read(lambda session: tables.materialized_views(session, catalog))
    return [table for table in found if table.rewriteEnabled]
