"""The method table: from the name of a Thrift method to the function that answers it.

Each module here holds the methods of one noun in `METHODS`; it unpacks a request struct and calls `service`.
No rule of the catalog stands here.
"""

from __future__ import annotations

from metastore.wire.methods import (
    catalogs,
    compactions,
    constraints,
    data_connectors,
    delegation_tokens,
    exchange,
    fb303,
    functions,
    indexes,
    legacy,
    locks,
    measurements,
    notifications,
    partitions,
    privileges,
    procedures,
    properties,
    registry,
    resource_plans,
    scheduled_queries,
    server,
    statistics,
    tables,
    transactions,
    types,
)
from metastore.wire.methods.table import Handler, merge

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
