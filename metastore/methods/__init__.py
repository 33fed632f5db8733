"""The method table: from the name of a Thrift method to the function that answers it.

Each module here holds the methods of one noun in `METHODS`; it unpacks a request struct and calls `service`.
No rule of the catalog stands here.
"""

from __future__ import annotations

from metastore.methods.accounts import delegation_tokens, privileges
from metastore.methods.catalog import catalogs, constraints, exchange, functions, partitions, statistics, tables, types
from metastore.methods.engines import (
    data_connectors,
    indexes,
    measurements,
    procedures,
    properties,
    registry,
    resource_plans,
    scheduled_queries,
)
from metastore.methods.forms.entry import Handler, merge
from metastore.methods.operations import fb303, legacy, notifications, server
from metastore.methods.transactions import compactions, locks, transactions

__all__ = ["METHODS", "Handler"]

METHODS: dict[str, Handler] = merge(
    (
        fb303,
        server,
        catalogs,
        data_connectors,
        tables,
        partitions,
        exchange,
        statistics,
        functions,
        constraints,
        locks,
        notifications,
        compactions,
        privileges,
        registry,
        delegation_tokens,
        procedures,
        properties,
        scheduled_queries,
        measurements,
        transactions,
        types,
        resource_plans,
        indexes,
        legacy,
    )
)
