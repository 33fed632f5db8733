"""Every method of the interface, by name: one entry each.

A module is named after a noun, such as `tables`, and holds the handlers and the entries of its methods. A handler unpacks a request and
calls `service`; it holds no rule of the catalog. Modules called `.._rules` hold the entries' rules of privileges.
"""

from __future__ import annotations

from itertools import chain

from metastore.methods.accounts import delegation_tokens, privileges
from metastore.methods.catalog import catalogs, constraints, exchange, functions, partition_changes, partitions, statistics, tables, types
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
from metastore.methods.forms.entry import Method, joined
from metastore.methods.operations import fb303, legacy, notifications, server
from metastore.methods.transactions import compactions, locks, transactions

__all__ = ["METHODS", "Method"]

_NOUNS = (
    catalogs, tables, partitions, partition_changes, exchange, statistics, functions, constraints, types,
    transactions, locks, compactions,
    privileges, delegation_tokens,
    data_connectors, indexes, measurements, procedures, properties, registry, resource_plans, scheduled_queries,
    fb303, legacy, notifications, server,
)  # fmt: skip

METHODS: dict[str, Method] = joined(chain.from_iterable(noun.METHODS for noun in _NOUNS))
