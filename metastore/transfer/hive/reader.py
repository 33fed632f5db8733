"""Read the records of a Java metastore's database in one snapshot. Never changes a row: the transaction only reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import sqlalchemy as sa

from metastore.errors import InvalidInput
from metastore.store.core.database import Database
from metastore.transfer.contract import Changes
from metastore.transfer.hive import grants, objects, transactions
from metastore.transfer.hive.schema import HiveSchema
from metastore.transfer.hive.tables import Tables
from metastore.transfer.records import KINDS, OF_TABLES, Key, Record, ids_text
from metastore.transfer.selection import Selection

READ: dict[str, Callable[[HiveSchema, objects.Databases], Iterator[Record]]] = {
    **objects.READ,
    "role_grant": grants.role_grants,
    "privilege": grants.privileges,
    "position": transactions.positions,
    "transaction": transactions.transactions,
    "replicated_transaction": transactions.replicated,
    "transaction_component": transactions.components,
    "write_id_position": transactions.write_id_positions,
    "write_id": transactions.write_ids,
    "min_history": transactions.min_history,
    "compaction": transactions.compactions,
}
"""The functions by the kind of record; a Java metastore has none of the others."""
VERSIONS = ("2.3", "3.", "4.")
"""Beginnings of the versions of Hive's schema that are read."""
NOT_READ = {
    "HIVE_LOCKS": ("transaction", "locks: the client of an open transaction asks for them again"),
    "MATERIALIZATION_REBUILD_LOCKS": ("transaction", "locks of rebuilds of materialized views"),
    "DELEGATION_TOKENS": ("credential", "delegation tokens: clients log in again"),
    "IDXS": ("index", "indexes of Hive 2: make them again"),
    "NOTIFICATION_LOG": ("position", "events: consumers that have read all of them continue"),
    "TXN_WRITE_NOTIFICATION_LOG": ("transaction", "files that open transactions wrote, for their events"),
    "RUNTIME_STATS": ("transaction", "statistics of queries that ran"),
    "SCHEDULED_EXECUTIONS": ("scheduled_query", "executions of scheduled queries"),
    "REPLICATION_METRICS": ("replicated_transaction", "metrics of replication"),
}
"""Tables that are not read, with the kind of record that they belong to and the text of a warning for those who want that kind."""


def version_of(database: Database) -> str | None:
    """Return the version of Hive's schema in a database, None for a database that has none."""
    with database.reading() as session:
        schema = HiveSchema(session, database.driver.name)
        rows = schema.rows("VERSION", "SCHEMA_VERSION") if schema.has("TBLS") else ()
        return None if not rows else str(rows[0][0])


class HiveReader:
    """The database of a Java metastore as a source of records."""

    def __init__(self, database: Database) -> None:
        """InvalidInput for a version of the schema that is not read."""
        self.database = database
        self.name = database.url.render_as_string()
        self.skipped: list[str] = []
        self.kinds = frozenset({*READ, *OF_TABLES})
        self.seen: Callable[[Record], Record] | None = None
        self.version = version_of(database) or "none"
        if not self.version.startswith(VERSIONS):
            raise InvalidInput(f"database {self.name} has Hive's schema {self.version}; 2.3 to 4.x are read: run schematool -upgradeSchema")

    def close(self) -> None:
        """Close the connections."""
        self.database.close()

    def partitions(self) -> int:
        """Count the partitions."""
        with self.database.reading() as session:
            table = HiveSchema(session, self.database.driver.name).name_of("PARTITIONS")
            return session.number(sa.select(sa.func.count()).select_from(sa.table(table))) or 0

    def tables(self, selection: Selection) -> set[Key]:
        """Return the names of the tables."""
        with self.database.reading() as session:
            schema = HiveSchema(session, self.database.driver.name)
            databases = objects.databases(schema)
            rows = [row for rows in schema.pages("TBLS", "TBL_ID", "DB_ID", "TBL_NAME") for row in rows]
        found = {(*databases[database], name) for _, database, name in rows if database in databases}
        return {names for names in found if selection.wants_key("table", names)}

    def changes(self, after: int) -> Changes | None:
        """Return the changes in the notification log; None where it is empty or begins later."""
        with self.database.reading() as session:
            schema = HiveSchema(session, self.database.driver.name)
            last = max([0, *(row[0] - 1 for row in schema.rows("NOTIFICATION_SEQUENCE", "NEXT_EVENT_ID"))])
            events = [
                row for row in schema.above("NOTIFICATION_LOG", "EVENT_ID", after, "CAT_NAME", "DB_NAME", "TBL_NAME") if row[0] <= last
            ]
        return Changes.of(last, (row[1:] for row in events)) if len(events) >= last - after else None

    def records(self, selection: Selection) -> Iterator[Record]:
        """Yield the records that are wanted. MetaError when the database refuses."""
        with self.database.reading() as session:
            schema = HiveSchema(session, self.database.driver.name)
            databases = objects.databases(schema)
            self.skipped = [*_not_read(schema, selection)]
            for kind in KINDS:
                if kind == "table":
                    yield from Tables(schema, databases).records(selection)
                elif kind not in OF_TABLES and kind in READ and selection.wants(kind):
                    yield from (record for record in READ[kind](schema, databases) if selection.wants_key(kind, record.key))


def _not_read(schema: HiveSchema, selection: Selection) -> Iterator[str]:
    """Yield texts on open transactions and on the rows that are not read, of the kinds that are wanted."""
    opened = [row[0] for rows in schema.pages("TXNS", "TXN_ID", "TXN_STATE") for row in rows if row[1] == transactions.OPEN]
    if opened and selection.wants("transaction"):
        yield (
            f"{len(opened)} open transactions ({ids_text(opened)}) stay open: their clients may continue at the new server, which "
            "aborts those without heartbeats"
        )
    if selection.wants("write_id") and not schema.has("NEXT_WRITE_ID") and not schema.is_empty("COMPLETED_TXN_COMPONENTS"):
        yield "write ids: Hive 2 has none; its transactional tables need a major compaction before, as for an upgrade to Hive 3"
    for table, (kind, text) in NOT_READ.items():
        if selection.wants(kind) and not schema.is_empty(table):
            yield text
    if selection.wants("property") and any(row[0] is not None for row in schema.rows("METASTORE_DB_PROPERTIES", "PROPERTYCONTENT")):
        yield "property maps of Hive 4"
