"""Look up the owners of transactions, locks and compactions, and the objects that a request names by a number. Never decides."""

from __future__ import annotations

from collections.abc import Sequence

from metastore.rules.names import normalize
from metastore.service.call.context import Call
from metastore.service.call.names import TableName
from metastore.store.authorization import authorization
from metastore.store.catalog.tables import view_sources


def of_others(call: Call, keys: Sequence[int]) -> list[int]:
    """Return the transactions that exist and belong to somebody else."""
    wanted = [key for key in dict.fromkeys(keys) if key]
    found = call.database.read(lambda session: authorization.users_of_transactions(session, wanted)) if wanted else {}
    return [key for key, user in found.items() if user is None or user != call.client.user]


def of_others_between(call: Call, low: int, high: int) -> list[int]:
    """Return the transactions from one id to another that are somebody else's."""
    found = call.database.read(lambda session: authorization.users_of_range(session, low, high))
    return [key for key, user in found.items() if user is None or user != call.client.user]


def is_lock_of_other(call: Call, key: int) -> bool:
    """Return whether a lock exists and is somebody else's."""
    is_there, user = call.database.read(lambda session: authorization.user_of_lock(session, key))
    return is_there and (user is None or user != call.client.user)


def table_of_key(call: Call, key: int) -> TableName | None:
    """Return the table that has a key, None for none."""
    found = call.database.read(lambda session: authorization.names_of(session, [key]))
    return TableName(*found[key]) if key in found else None


def sources(call: Call, text: str, catalog: str | None) -> list[TableName]:
    """Return the tables that a materialized view's source text may name: the existing ones of its readings, the first if none exists."""
    names = [TableName(*each) for each in sorted(view_sources.readings(normalize(catalog or call.config.default_catalog), text))]
    return [each for each in names if _is_there(call, each)] or names[:1] if len(names) > 1 else names


def locked_table(call: Call, catalog: str, database: str, name: str) -> str:
    """Return the table that a lock is on: the table of the whole name if it exists, else of the part before the dot."""
    whole = normalize(name)
    before, dot, _ = whole.partition(".")
    return before if dot and not _is_there(call, TableName(catalog, database, whole)) else whole


def _is_there(call: Call, name: TableName) -> bool:
    found = call.database.read(lambda session: authorization.facts(session, *name))
    return found is not None and found.table is not None


def compacted(call: Call, keys: Sequence[int]) -> list[tuple[int, TableName]]:
    """Return entries of the compaction queue and the tables that they are about."""
    found = call.database.read(lambda session: authorization.compacted(session, list(keys))) if keys else []
    return [(key, TableName(*name)) for key, *name in found]
