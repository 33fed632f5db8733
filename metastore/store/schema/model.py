"""Declare the relational model; `migrations/` creates it. This module never runs a statement.

A partition is one row. Parts that many rows share (column lists, storage formats) are stored once per table under a hash of their content.
Nested things that are never searched are JSON text. Text compares by its bytes on every database.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, ForeignKey, Index, Integer, MetaData, String, Table, Text, UniqueConstraint, text
from sqlalchemy.dialects import mysql
from sqlalchemy.schema import SchemaItem
from sqlalchemy.types import TypeEngine

from metastore.places import LENGTH

metadata = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
    }
)


def table(name: str, *items: SchemaItem, sqlite_autoincrement: bool = False) -> Table:
    """Declare a table of the schema."""
    return Table(name, metadata, *items, sqlite_autoincrement=sqlite_autoincrement)


ID = BigInteger().with_variant(Integer(), "sqlite")
"""A 64 bit key; SQLite numbers rows by itself only in a column called INTEGER."""

JSON_TEXT = Text().with_variant(mysql.LONGTEXT(), "mysql")
"""JSON, or any text that is never searched."""


def name_type(length: int) -> TypeEngine[str]:
    """Return a text type that is compared by bytes; `length` counts characters and is a limit on MySQL only, for its indexes."""
    return Text().with_variant(Text(collation="C"), "postgresql").with_variant(String(length), "mysql")


NAME = name_type(256)
PLACE = name_type(LENGTH)
"""One text for all spellings of a location (`places.place_of`), cut to the length that every database can index."""
LONG_NAME = name_type(766)
"""The longest text that MySQL can index beside a 64 bit key (3,072 bytes)."""


def named_by_table() -> tuple[Column[str], ...]:
    """Return the first columns of the key of rows that belong to a table by its names, which MySQL can index beside two 64 bit numbers."""
    return (
        Column("catalog", name_type(128), primary_key=True),
        Column("database", name_type(128), primary_key=True),
        Column("table", NAME, primary_key=True),
    )


server_info = table(
    "server_info",
    Column("name", NAME, primary_key=True),
    Column("value", JSON_TEXT, nullable=False),
)

catalogs = table(
    "catalogs",
    Column("name", NAME, primary_key=True),
    Column("description", JSON_TEXT),
    Column("location", JSON_TEXT),
    Column("create_time", BigInteger, nullable=False),
)

databases = table(
    "databases",
    Column("id", ID, primary_key=True),
    Column("catalog", NAME, ForeignKey("catalogs.name"), nullable=False),
    Column("name", NAME, nullable=False),
    Column("description", JSON_TEXT),
    Column("location", JSON_TEXT),
    Column("managed_location", JSON_TEXT),
    Column("parameters", JSON_TEXT, nullable=False),
    Column("owner_name", NAME),
    Column("owner_type", Integer),
    Column("create_time", BigInteger, nullable=False),
    Column("type", Integer, nullable=False, server_default="1"),
    Column("connector_name", NAME),
    Column("remote_name", NAME),
    Column("place", PLACE, comment="one text for all spellings of the location"),
    Column("managed_place", PLACE, comment="one text for all spellings of the location"),
    UniqueConstraint("catalog", "name"),
    Index(None, "place"),
    Index(None, "managed_place"),
)

tables = table(
    "tables",
    Column("id", ID, primary_key=True),
    Column("database_id", ID, ForeignKey("databases.id"), nullable=False),
    Column("name", NAME, nullable=False),
    Column("type", NAME, nullable=False),
    Column("owner", NAME),
    Column("owner_type", Integer),
    Column("create_time", BigInteger, nullable=False),
    Column("last_access_time", BigInteger, nullable=False),
    Column("retention", BigInteger, nullable=False),
    Column("location", JSON_TEXT),
    Column("columns_hash", BigInteger),
    Column("storage_hash", BigInteger),
    Column("partition_keys", JSON_TEXT, nullable=False),
    Column("parameters", JSON_TEXT, nullable=False),
    Column("comment", JSON_TEXT, comment="the parameter of that name, for listings"),
    Column("view_original_text", JSON_TEXT),
    Column("view_expanded_text", JSON_TEXT),
    Column("rewrite_enabled", Integer, nullable=False),
    Column("write_id", BigInteger, nullable=False, server_default="-1"),
    Column("creation_metadata", JSON_TEXT),
    Column("place", PLACE, comment="one text for all spellings of the location"),
    UniqueConstraint("database_id", "name"),
    Index(None, "type"),
    Index(None, "place"),
    sqlite_autoincrement=True,
)

descriptors = table(
    "descriptors",
    Column("table_id", ID, primary_key=True, autoincrement=False),
    Column("hash", BigInteger, primary_key=True, autoincrement=False, comment="63 bits of the body's BLAKE2b"),
    Column("body", JSON_TEXT, nullable=False, comment="a list of columns, or a storage format"),
)

partitions = table(
    "partitions",
    Column("id", ID, primary_key=True),
    Column("table_id", ID, nullable=False),
    Column("name", LONG_NAME, nullable=False),
    Column("partition_values", JSON_TEXT, nullable=False),
    Column("location", JSON_TEXT, comment="begins with ./ where it lies below the table's"),
    Column("columns_hash", BigInteger),
    Column("storage_hash", BigInteger),
    Column("parameters", JSON_TEXT, nullable=False),
    Column("create_time", BigInteger, nullable=False),
    Column("last_access_time", BigInteger, nullable=False),
    Column("write_id", BigInteger, nullable=False, server_default="-1"),
    Column("place", PLACE, comment="no value at the table's place and the own name"),
    UniqueConstraint("table_id", "name"),
    Index(None, "place", postgresql_where=text("place IS NOT NULL"), sqlite_where=text("place IS NOT NULL")),
    sqlite_autoincrement=True,
)

table_statistics = table(
    "table_statistics",
    Column("table_id", ID, primary_key=True, autoincrement=False),
    Column("engine", name_type(64), primary_key=True),
    Column("columns", JSON_TEXT, nullable=False, comment="column name -> statistics"),
)

partition_statistics = table(
    "partition_statistics",
    Column("partition_id", ID, primary_key=True, autoincrement=False),
    Column("engine", name_type(64), primary_key=True),
    Column("table_id", ID, nullable=False),
    Column("columns", JSON_TEXT, nullable=False, comment="column name -> statistics"),
    Column("named", BigInteger, comment="hash of the columns' names"),
    Index(None, "table_id"),
)

constraints = table(
    "constraints",
    Column("id", ID, primary_key=True),
    Column("table_id", ID, ForeignKey("tables.id"), nullable=False),
    Column("kind", name_type(16), nullable=False),
    Column("name", NAME, nullable=False),
    Column("parent_table_id", ID),
    Column("body", JSON_TEXT, nullable=False),
    UniqueConstraint("table_id", "name"),
    Index(None, "parent_table_id"),
)

functions = table(
    "functions",
    Column("id", ID, primary_key=True),
    Column("database_id", ID, ForeignKey("databases.id"), nullable=False),
    Column("name", NAME, nullable=False),
    Column("class_name", JSON_TEXT),
    Column("owner_name", NAME),
    Column("owner_type", Integer),
    Column("create_time", BigInteger, nullable=False),
    Column("type", Integer, nullable=False),
    Column("resources", JSON_TEXT, nullable=False),
    UniqueConstraint("database_id", "name"),
)

types = table(
    "types",
    Column("name", NAME, primary_key=True),
    Column("body", JSON_TEXT, nullable=False, comment="[type1, type2, [[field, type, comment], ...]]"),
)

partition_marks = table(
    "partition_marks",
    Column("table_id", ID, primary_key=True, autoincrement=False),
    Column("partition", LONG_NAME, primary_key=True),
    Column("time", BigInteger, nullable=False, comment="in milliseconds"),
    Index(None, "time"),
)

roles = table(
    "roles",
    Column("name", NAME, primary_key=True),
    Column("create_time", BigInteger, nullable=False),
    Column("owner_name", NAME),
)

role_grants = table(
    "role_grants",
    Column("role_name", NAME, ForeignKey("roles.name"), primary_key=True),
    Column("principal_name", NAME, primary_key=True),
    Column("principal_type", Integer, primary_key=True, autoincrement=False),
    Column("grant_option", Integer, nullable=False),
    Column("grant_time", BigInteger, nullable=False),
    Column("grantor", NAME),
    Column("grantor_type", Integer),
)

credentials = table(
    "credentials",
    Column("id", ID, primary_key=True),
    Column("user_name", NAME, nullable=False, index=True),
    Column("kind", Text, nullable=False),
    Column("hash", Text, nullable=False),
    Column("groups", JSON_TEXT, nullable=False),
    Column("comment", JSON_TEXT),
    Column("create_time", BigInteger, nullable=False),
    Column("expire_time", BigInteger),
    sqlite_autoincrement=True,
)
"""The server's own users: their passwords and keys, hashed (`service.accounts.users`). Times are in seconds."""

privileges = table(
    "privileges",
    Column("id", ID, primary_key=True),
    Column("object_type", Integer, nullable=False),
    Column("database_id", ID),
    Column("table_id", ID),
    Column("partition_id", ID),
    Column("column_name", NAME),
    Column("connector_name", NAME),
    Column("principal_name", NAME, nullable=False),
    Column("principal_type", Integer, nullable=False),
    Column("privilege", name_type(64), nullable=False),
    Column("grant_option", Integer, nullable=False),
    Column("create_time", BigInteger, nullable=False),
    Column("grantor", NAME),
    Column("grantor_type", Integer),
    Column("authorizer", NAME),
    Index(None, "table_id"),
    Index(None, "database_id"),
    Index(None, "connector_name"),
    Index(None, "principal_name"),
)

location_grants = table(
    "location_grants",
    Column("id", ID, primary_key=True),
    Column("principal_name", NAME, nullable=False),
    Column("principal_type", Integer, nullable=False),
    Column("location", JSON_TEXT, nullable=False, comment="the principal may use it and what lies below it"),
    Index(None, "principal_name"),
)

counters = table(
    "counters",
    Column("name", name_type(64), primary_key=True),
    Column("value", BigInteger, nullable=False, comment="the last number given out; who takes one holds the row until it commits"),
)

transactions = table(
    "transactions",
    Column("id", ID, primary_key=True, autoincrement=False),
    Column("state", name_type(1), nullable=False, comment="o open, a aborted, c committed"),
    Column("type", Integer, nullable=False, comment="TxnType of the interface"),
    Column("user", NAME),
    Column("host", NAME),
    Column("agent", JSON_TEXT),
    Column("started_ms", BigInteger, nullable=False),
    Column("heartbeat_ms", BigInteger, nullable=False),
    Column("ended_ms", BigInteger),
    Column("commit_id", BigInteger, comment="a mark not below that of its commit: who began above it sees its writes"),
    Column("holds", Integer, nullable=False, server_default="0", comment="bits of store/transactions.py: where it may have rows"),
    Index(None, "state", "id", postgresql_where=text("state <> 'c'")),  # PostgreSQL may read all of a full index for an id
)

replicated_transactions = table(
    "replicated_transactions",
    Column("policy", NAME, primary_key=True),
    Column("source_id", BigInteger, primary_key=True, autoincrement=False),
    Column("transaction_id", BigInteger, nullable=False),
    Index(None, "transaction_id"),
)

transaction_components = table(
    "transaction_components",
    Column("id", ID, primary_key=True),
    Column("transaction_id", BigInteger, nullable=False),
    Column("catalog", NAME, nullable=False),
    Column("database", NAME, nullable=False),
    Column("table", NAME),
    Column("partition", LONG_NAME),
    Column("operation", name_type(1), nullable=False, comment="i insert, u update, d delete, c compaction, p abort clean-up"),
    Column("write_id", BigInteger),
    Column("committed_ms", BigInteger, comment="when the transaction committed; no value before, nor if it aborted"),
    Column("commit_id", BigInteger, comment="of a committed update or delete: the last transaction id given out by then"),
    Index(None, "transaction_id"),
    Index(None, "database", "table", "commit_id"),
)

write_id_counters = table(
    "write_id_counters",
    *named_by_table(),
    Column("next", BigInteger, nullable=False, comment="the next write id; who allocates holds the row until it commits"),
    Column(
        "last_transaction", BigInteger, nullable=False, server_default="0", comment="no transaction above it has a write id of the table"
    ),
    Column(
        "last_change",
        BigInteger,
        nullable=False,
        server_default="0",
        comment="the highest commit id of a change of the table as a whole, or above it (MariaDB)",
    ),
)

write_ids = table(
    "write_ids",
    Column("transaction_id", BigInteger, primary_key=True, autoincrement=False),
    *named_by_table(),
    Column("write_id", BigInteger, primary_key=True, autoincrement=False),
    Index(None, "database", "table", "write_id"),
)

write_id_ranges = table(
    "write_id_ranges",
    *named_by_table(),
    Column("last_transaction", BigInteger, primary_key=True, autoincrement=False),
    Column("first_transaction", BigInteger, nullable=False, comment="its write id is the first, that of each following one is one higher"),
    Column("first_write_id", BigInteger, nullable=False),  # only the key's index: PostgreSQL would use another one now and then
)

min_history = table(
    "min_history",
    Column("transaction_id", BigInteger, primary_key=True, autoincrement=False),
    *named_by_table(),
    Column("write_id", BigInteger, nullable=False, comment="the lowest write id that the transaction's snapshot may still look behind"),
    Index(None, "database", "table"),
)

write_notifications = table(
    "write_notifications",
    Column("id", ID, primary_key=True),
    Column("transaction_id", BigInteger, nullable=False),
    Column("catalog", NAME, nullable=False),
    Column("database", NAME, nullable=False),
    Column("table", NAME, nullable=False),
    Column("partition", LONG_NAME),
    Column("write_id", BigInteger, nullable=False),
    Column("time", BigInteger, nullable=False, comment="seconds"),
    Column("body", JSON_TEXT, nullable=False, comment="files, table and partition as an event's message has them"),
    Index(None, "transaction_id"),
    Index(None, "database", "table"),
)

materialization_rebuilds = table(
    "materialization_rebuilds",
    Column("database", name_type(256), primary_key=True),
    Column("table", NAME, primary_key=True),
    Column("transaction_id", BigInteger, nullable=False),
    Column("heartbeat_ms", BigInteger, nullable=False),
)

locks = table(
    "locks",
    Column("id", ID, primary_key=True),
    Column("transaction_id", BigInteger, nullable=False),
    Column("state", name_type(1), nullable=False, comment="a acquired, w waiting"),
    Column("user", NAME),
    Column("host", NAME),
    Column("agent", JSON_TEXT),
    Column("heartbeat_ms", BigInteger, nullable=False),
    Column("acquired_ms", BigInteger),
    Column("writers_wait", Integer, nullable=False, server_default="0", comment="1: a shared write waits for a shared write, as in Hive 3"),
    Index(None, "transaction_id"),
    sqlite_autoincrement=True,
)

lock_queues = table(
    "lock_queues",
    Column("name", name_type(513), primary_key=True, comment="catalog.database; whoever changes its locks holds this row"),
    Column(
        "changes",
        BigInteger,
        nullable=False,
        server_default="0",
        comment="how often an exclusive lock was added (MariaDB), or write ids of a table went to another name or away",
    ),
)

lock_components = table(
    "lock_components",
    Column("lock_id", ID, ForeignKey("locks.id", ondelete="CASCADE"), primary_key=True, autoincrement=False),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("catalog", NAME, nullable=False),
    Column("database", NAME, nullable=False),
    Column("table", NAME),
    Column("partition", LONG_NAME),
    Column("type", Integer, nullable=False, comment="LockType of the interface"),
    Index(None, "database", "table", "type"),
)

compactions = table(
    "compactions",
    Column("id", ID, primary_key=True),
    Column("catalog", NAME, nullable=False),
    Column("database", NAME, nullable=False),
    Column("table", NAME, nullable=False),
    Column("partition", LONG_NAME),
    Column("type", name_type(1), nullable=False, comment="a letter of rules/compactions.py"),
    Column("state", name_type(1), nullable=False, comment="a letter of rules/compactions.py"),
    Column("pool", NAME),
    Column("properties", JSON_TEXT),
    Column("buckets", Integer, comment="of a rebalance"),
    Column("order_by", JSON_TEXT, comment="of a rebalance"),
    Column("enqueued_ms", BigInteger, nullable=False),
    Column("started_ms", BigInteger),
    Column("heartbeat_ms", BigInteger, comment="of the worker, which holds the entry while it beats"),
    Column("ended_ms", BigInteger),
    Column("cleaner_started_ms", BigInteger),
    Column("committed_ms", BigInteger, comment="when the worker's transaction was seen to be committed"),
    Column("retry_after_ms", BigInteger, comment="the cleaner leaves the entry alone until then"),
    Column("retries", Integer, nullable=False, server_default="0", comment="how often the cleaner failed"),
    Column("initiator", NAME),
    Column("initiator_version", NAME),
    Column("worker", NAME),
    Column("worker_version", NAME),
    Column("run_as", NAME),
    Column("hadoop_job", NAME),
    Column("transaction_id", BigInteger, comment="of the worker"),
    Column("highest_write_id", BigInteger),
    Column("next_transaction_id", BigInteger, comment="readers below it may still see the old files"),
    Column("error", JSON_TEXT),
    Index(None, "state", "id"),
    Index(None, "database", "table"),
    Index(None, "transaction_id"),
    sqlite_autoincrement=True,
)

compaction_metrics = table(
    "compaction_metrics",
    Column("database", name_type(200), primary_key=True),
    Column("table", name_type(200), primary_key=True),
    Column("partition", name_type(300), primary_key=True, comment="empty for a table without partitions"),
    Column("type", name_type(32), primary_key=True, comment="NUM_OBSOLETE_DELTAS, NUM_DELTAS, NUM_SMALL_DELTAS"),
    Column("value", BigInteger, nullable=False),
    Column("version", Integer, nullable=False),
    Column("threshold", Integer),
)

notifications = table(
    "notifications",
    Column("sequence", ID, primary_key=True, comment="the order of writing; commits may come in another"),
    Column("id", BigInteger, unique=True, comment="given once the event is committed: without gaps, in an order that every reader sees"),
    Column("time", BigInteger, nullable=False, comment="seconds"),
    Column("type", name_type(64), nullable=False),
    Column("catalog", NAME),
    Column("database", NAME),
    Column("table", NAME),
    Column("message", JSON_TEXT, comment="or what the messages of several events are made of"),
    Column("format", name_type(32), nullable=False),
    Column("events", Integer, nullable=False, comment="how many the row stands for; `id` is that of the last"),
    sqlite_autoincrement=True,
)

leases = table(
    "leases",
    Column("name", name_type(64), primary_key=True),
    Column("holder", NAME),
    Column("expires_ms", BigInteger, nullable=False),
)

HASH = name_type(64)
"""SHA-256 in hexadecimal digits."""

delegation_tokens = table(
    "delegation_tokens",
    Column("hash", HASH, primary_key=True, comment="SHA-256 of the identifier"),
    Column("password", Text, nullable=False),
    Column("owner", NAME, nullable=False),
    Column("renewer", NAME, nullable=False),
    Column("real_user", NAME, nullable=False),
    Column("valid_until", BigInteger, nullable=False),
    Column("max_date", BigInteger, nullable=False, index=True),
)

foreign_tokens = table(
    "foreign_tokens",
    Column("hash", HASH, primary_key=True, comment="SHA-256 of the identifier"),
    Column("identifier", JSON_TEXT, nullable=False),
    Column("token", JSON_TEXT, nullable=False),
)

foreign_master_keys = table(
    "foreign_master_keys",
    Column("id", ID, primary_key=True),
    Column("body", JSON_TEXT, nullable=False),
    sqlite_autoincrement=True,
)

deletions = table(
    "deletions",
    Column("number", name_type(64), primary_key=True, comment="of a call that takes data away; begins with the time in milliseconds"),
    Column("taken_back", Integer, nullable=False, comment="1 where the call was not committed, and its data was put back"),
)
"""The calls that take data away, and whether they were committed (`service.changes.deletion`)."""
