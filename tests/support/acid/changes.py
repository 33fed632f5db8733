"""The rows that committed transactions leave: components, locks, commit ids for conflicts, and events."""

from __future__ import annotations

from metastore.idl import NotificationEventRequest
from metastore.service.call.context import Call, Client
from metastore.service.operations import notifications
from metastore.store.schema import model as schema
from metastore.store.transactions.write_ids import TableKey
from tests.support.acid import txns

TABLE = TableKey("hive", "db", "t")


def of_another(call: Call) -> Call:
    return Call(call.metastore, Client("127.0.0.1:2", user="bob"), "test")


def left(call: Call) -> int:
    """Return the number of intents, locks and their components; it is 0 after all transactions have committed."""
    return len(txns.intended(call, "id")) + sum(txns.count(call, [schema.locks, schema.lock_components]).values())


def judged_by(call: Call) -> list[tuple[object, ...]]:
    return txns.judged_by(call, "transaction_id", "commit_id", "table", "partition", "operation")


def completed(call: Call, key: int) -> list[tuple[object, ...]]:
    return txns.completed(call, "table", "partition", "operation", "write_id", transaction_id=key)


def events(call: Call) -> list[str | None]:
    found = [each.eventType for each in notifications.get_next(call, NotificationEventRequest(lastEvent=0))]
    return [each for each in found if each not in {"OPEN_TXN", "ALLOC_WRITE_ID"}]
