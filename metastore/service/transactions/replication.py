"""Questions of replication about transactions, besides their replay: the replayed ones, a table's write ids, the last event applied.

Source: Hive's ReplTableWriteIdStateFunction, CommitTxnFunction.updateReplId.
"""

from __future__ import annotations

from metastore.errors import MetaError, NoSuchObject
from metastore.idl import CompactionRequest, CompactionType, Database, ReplLastIdInfo, ReplTblWriteIdStateRequest, TxnType
from metastore.rules.names import normalize, with_catalog
from metastore.rules.transactions.snapshots import hidden_valid, parse_table
from metastore.rules.transactions.transactions import INSERT, Intent
from metastore.rules.values.partition_names import canonical_name
from metastore.service.call.clock import now_ms
from metastore.service.call.context import Call
from metastore.service.call.names import TableName, database_name, table_name
from metastore.service.compaction import compactions
from metastore.store.catalog import databases
from metastore.store.catalog.partitions import partitions
from metastore.store.catalog.tables import tables
from metastore.store.core.database import Session
from metastore.store.transactions import components, transactions, write_ids
from metastore.store.transactions.transactions import ABORTED, COMPONENTS, WRITE_IDS
from metastore.store.transactions.write_ids import TableKey

LAST_ID = "repl.last.id"
SOURCE = "repl.source.for"
"""Parameter of a database that names the policies by which it is replicated."""


def is_source(database: Database) -> bool:
    """Return whether a database is replicated to elsewhere."""
    return bool((database.parameters or {}).get(SOURCE))


def replayed_transactions(call: Call, policy: str) -> dict[int, int]:
    """Return the open transactions that replicate others under a policy, by the id at their source."""
    return call.database.read(lambda session: transactions.targets(session, policy))


def note_last_id(call: Call, session: Session, info: ReplLastIdInfo) -> None:
    """Set the parameter of the last event applied on a database and, if named, a table and partitions of it. NoSuchObject."""
    catalog, name = database_name(info.database, info.catalog, call.config.default_catalog)
    value = str(info.lastReplId)
    found = databases.find(session, catalog, name or "") if databases.lock(session, catalog, name or "") is not None else None
    if found is None or name is None:
        raise NoSuchObject(f"DB with name {info.database} does not exist in catalog {catalog}")
    found.parameters = {**(found.parameters or {}), LAST_ID: value}
    databases.update(session, catalog, name, found)
    if info.table is None:
        return
    wanted = TableName(catalog, name, normalize(info.table))
    table = tables.find(session, *wanted) if tables.lock(session, *wanted) is not None else None
    if table is None or table.id is None:
        raise NoSuchObject(f"Table with name {info.table} does not exist in db {catalog}.{name}")
    tables.set_parameters(session, table.id, {**table.parameters, LAST_ID: value})
    if info.partitionList:
        rows = partitions.lock_named(session, table, info.partitionList)
        for _, _, partition in rows:
            partition.parameters = {**(partition.parameters or {}), LAST_ID: value}
        missing = sorted(set(info.partitionList) - {row[1] for row in rows})
        if missing:
            raise NoSuchObject(f"Partition {missing[0]} of {wanted} does not exist: its last replicated event can not be noted")
        partitions.replace(session, table, rows)


def set_write_id_state(call: Call, request: ReplTblWriteIdStateRequest) -> None:
    """Let a table without write ids continue with the next write id of its source. MetaError.

    Aborted write ids get aborted transactions, and a major compaction is queued that removes their files. A valid write id above them gets
    a transaction that counts as committed. Otherwise the rows up to it would not be seen before the next write, as on Hive's server.
    """
    name = table_name(request.dbName, request.tableName, None, call.config.default_catalog)
    key = TableKey(*name)
    if not request.validWriteIdlist:
        raise MetaError(f"the write ids of {name} at its source are missing: send validWriteIdlist")
    _, seen = parse_table(request.validWriteIdlist)
    aborted = sorted(seen.aborted)

    parts: list[str | None] = [canonical_name(name) for name in request.partNames] if request.partNames else [None]

    def work(session: Session) -> bool:
        if write_ids.last(session, key) is not None:
            return False
        write_ids.seed(session, key, seen.mark + 1)
        if aborted:
            seen_one = hidden_valid(min(seen.mark, seen.min_open - 1), seen.aborted)
            numbers = sorted([*aborted, *(() if seen_one is None else (seen_one,))])
            owners = dict(zip(numbers, transactions.take_ids(session, len(numbers))(), strict=True))
            write_ids.insert(session, key, ((id_, number) for number, id_ in owners.items()))
            write_ids.set_last(session, key, owners[numbers[-1]])
            ids = [owners[number] for number in aborted]
            transactions.insert(session, ids, ABORTED, TxnType.DEFAULT, (request.user, request.hostName, None), now_ms())
            transactions.add_holds_of_many(session, ids, WRITE_IDS | COMPONENTS)
            components.insert(session, ((owners[number], Intent(*key, part, INSERT, number)) for number in aborted for part in parts))
        return bool(aborted)

    if call.database.write(work):
        for part in parts:
            database = with_catalog(key.catalog, key.database, call.config.default_catalog)
            wanted = CompactionRequest(dbname=database, tablename=key.table, partitionname=part, type=CompactionType.MAJOR)
            compactions.compact(call, wanted)
