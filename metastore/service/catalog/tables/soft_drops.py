"""Leave the files of a dropped transactional table or partition to the cleaner: open readers may still use them. This module deletes
nothing itself.

Hive 4 drops this way where readers take no locks: the request asks for no data to be deleted, and names the transaction that drops.
Source: Hive's AcidEventListener.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from metastore.errors import MetaError
from metastore.rules.transactions.compactions import MAJOR, READY, write_properties
from metastore.service.call.clock import now_ms
from metastore.service.call.context import Call
from metastore.service.call.names import TableName
from metastore.store.compaction import compactions
from metastore.store.compaction.compactions import CompactedObject
from metastore.store.core.database import Session

TRANSACTION, WRITE_ID = "txnId", "writeId"


def dropping_transaction(environment: Mapping[str, str]) -> int:
    """Return the transaction in which a request drops, 0 for none. MetaError for one that is not a number."""
    return _number(environment, TRANSACTION)


def dropping_write_id(environment: Mapping[str, str]) -> int:
    """Return the write id with which a request drops, 0 for none. MetaError for one that is not a number."""
    return _number(environment, WRITE_ID)


def _number(environment: Mapping[str, str], key: str) -> int:
    text = environment.get(key) or "0"
    try:
        return int(text)
    except ValueError as error:
        raise MetaError(f"{key} of the request's environment is {text!r}: send a number") from error


def hand_over(
    call: Call, session: Session, name: TableName, places: Iterable[tuple[str | None, str]], environment: Mapping[str, str], *, purge: bool
) -> None:
    """Queue the files of a table (with the partition None) or of partitions, by location, for deletion after the last reader. MetaError."""
    compactions.insert_many(
        session,
        [
            {
                **CompactedObject(*name, partition)._asdict(),
                "type": MAJOR,
                "state": READY,
                "enqueued_ms": now_ms(),
                "run_as": call.client.user,
                "properties": write_properties({"location": location, "ifPurge": str(purge).lower()}),
                "highest_write_id": dropping_write_id(environment),
                "transaction_id": dropping_transaction(environment),
            }
            for partition, location in places
        ],
    )
