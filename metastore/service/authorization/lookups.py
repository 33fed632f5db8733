"""Tell whose transactions, locks and compactions are, and what a request means that it names by a number. Never decides."""

from __future__ import annotations

from collections.abc import Sequence

from metastore.service.context import Call
from metastore.service.names import TableName
from metastore.store import authorization


def of_others(call: Call, keys: Sequence[int]) -> list[int]:
    """Return those of the transactions that are there and somebody else's."""
    wanted = [key for key in dict.fromkeys(keys) if key]
    found = call.database.read(lambda session: authorization.users_of_transactions(session, wanted)) if wanted else {}
    return [key for key, user in found.items() if user is None or user != call.client.user]


def of_others_between(call: Call, low: int, high: int) -> list[int]:
    """Return the transactions from one id to another that are somebody else's."""
    found = call.database.read(lambda session: authorization.users_of_range(session, low, high))
    return [key for key, user in found.items() if user is None or user != call.client.user]


def is_lock_of_other(call: Call, key: int) -> bool:
    """Tell whether a lock is there and somebody else's."""
    is_there, user = call.database.read(lambda session: authorization.user_of_lock(session, key))
    return is_there and (user is None or user != call.client.user)


def table_of_key(call: Call, key: int) -> TableName | None:
    """Return the table that has a key, None for none."""
    found = call.database.read(lambda session: authorization.names_of(session, [key]))
    return TableName(*found[key]) if key in found else None


def compacted(call: Call, keys: Sequence[int]) -> list[tuple[int, TableName]]:
    """Return entries of the compaction queue and the tables that they are about."""
    found = call.database.read(lambda session: authorization.compacted(session, list(keys))) if keys else []
    return [(key, TableName(*name)) for key, *name in found]
