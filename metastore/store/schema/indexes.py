"""Declare the table of Hive 2.3's indexes. This module never runs a statement."""

from __future__ import annotations

from sqlalchemy import Column, ForeignKey

from metastore.store.schema.model import ID, JSON_TEXT, NAME, table

indexes = table(
    "indexes",
    Column("table_id", ID, ForeignKey("tables.id", ondelete="CASCADE"), primary_key=True, autoincrement=False),
    Column("name", NAME, primary_key=True),
    Column(
        "index_table_id",
        ID,
        ForeignKey("tables.id", ondelete="CASCADE"),
        nullable=False,
        unique=True,
        comment="the table that holds what the index knows",
    ),
    Column("body", JSON_TEXT, nullable=False, comment="class, times, parameters and storage descriptor"),
)
