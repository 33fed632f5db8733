"""Declare the table of Hive's workload management. This module never runs a statement.

A resource plan is small, is read as a whole and is changed by one at a time, so its contents are one text in its row.
"""

from __future__ import annotations

from sqlalchemy import Column, Integer

from metastore.store.schema.model import JSON_TEXT, NAME, table

resource_plans = table(
    "resource_plans",
    Column("namespace", NAME, primary_key=True),
    Column("name", NAME, primary_key=True),
    Column("status", Integer, nullable=False, comment="WMResourcePlanStatus of the interface"),
    Column("body", JSON_TEXT, nullable=False, comment="query parallelism, default pool, pools, triggers, mappings"),
)
