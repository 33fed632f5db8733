"""Declare the tables of objects that engines keep here for themselves; `schema` declares the others. This module never runs a statement.

Connectors to other systems, scheduled queries, statistics of finished queries, metrics of replication, procedures and packages, properties.
Nothing else refers to them. Times are in seconds.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, ForeignKey, Index, Integer, UniqueConstraint

from metastore.store.schema.model import ID, JSON_TEXT, NAME, name_type, table

data_connectors = table(
    "data_connectors",
    Column("name", NAME, primary_key=True),
    Column("type", JSON_TEXT),
    Column("url", JSON_TEXT),
    Column("description", JSON_TEXT),
    Column("parameters", JSON_TEXT, nullable=False),
    Column("owner_name", NAME),
    Column("owner_type", Integer),
    Column("create_time", BigInteger, nullable=False),
)

scheduled_queries = table(
    "scheduled_queries",
    Column("id", ID, primary_key=True),
    Column("namespace", NAME, nullable=False, comment="of the cluster that runs it"),
    Column("name", NAME, nullable=False),
    Column("enabled", Integer, nullable=False),
    Column("schedule", JSON_TEXT, nullable=False, comment="as Quartz writes it"),
    Column("user", NAME),
    Column("query", JSON_TEXT, nullable=False),
    Column("next_time", BigInteger, comment="when it is due; no value for never"),
    Column("execution_id", BigInteger, comment="of the execution that is under way"),
    UniqueConstraint("namespace", "name"),
    Index(None, "namespace", "next_time"),
    sqlite_autoincrement=True,
)

scheduled_executions = table(
    "scheduled_executions",
    Column("id", ID, primary_key=True),
    Column("query_id", ID, ForeignKey("scheduled_queries.id", ondelete="CASCADE"), nullable=False),
    Column("state", Integer, nullable=False, comment="QueryState of the interface"),
    Column("start_time", BigInteger, nullable=False),
    Column("end_time", BigInteger),
    Column("report_time", BigInteger, comment="when its executor reported last; no value once it has ended"),
    Column("executor_query_id", JSON_TEXT),
    Column("error", JSON_TEXT),
    Index(None, "query_id"),
    Index(None, "report_time"),
    Index(None, "start_time"),
    sqlite_autoincrement=True,
)

runtime_statistics = table(
    "runtime_statistics",
    Column("id", ID, primary_key=True),
    Column("create_time", BigInteger, nullable=False),
    Column("weight", BigInteger, nullable=False),
    Column("payload", JSON_TEXT, nullable=False, comment="base64"),
    Index(None, "create_time"),
    sqlite_autoincrement=True,
)

replication_metrics = table(
    "replication_metrics",
    Column("execution_id", BigInteger, primary_key=True, autoincrement=False, comment="of the scheduled query"),
    Column("policy", NAME, nullable=False),
    Column("dump_execution_id", BigInteger, nullable=False),
    Column("metadata", JSON_TEXT),
    Column("progress", JSON_TEXT),
    Column("message_format", JSON_TEXT),
    Column("start_time", BigInteger, nullable=False),
    Index(None, "policy"),
    Index(None, "start_time"),
)

procedures = table(
    "procedures",
    Column("id", ID, primary_key=True),
    Column("database_id", ID, ForeignKey("databases.id"), nullable=False),
    Column("name", NAME, nullable=False),
    Column("owner_name", NAME),
    Column("source", JSON_TEXT, nullable=False),
    UniqueConstraint("database_id", "name"),
)

packages = table(
    "packages",
    Column("id", ID, primary_key=True),
    Column("database_id", ID, ForeignKey("databases.id"), nullable=False),
    Column("name", NAME, nullable=False),
    Column("owner_name", NAME),
    Column("header", JSON_TEXT, nullable=False),
    Column("body", JSON_TEXT, nullable=False),
    UniqueConstraint("database_id", "name"),
)

PART = name_type(300)
"""The longest text of which MySQL can index two columns as one key."""

properties = table(
    "properties",
    Column("map", PART, primary_key=True, comment="the name space and up to three parts of the key, with dots"),
    Column("name", PART, primary_key=True),
    Column("value", JSON_TEXT, nullable=False),
)
