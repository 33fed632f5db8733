"""Hide rows of transactional tables behind a base without rows, where a request asks that no data is deleted. Open readers still see them.

Hive 4 truncates transactional tables and drops their partitions this way. The base counts once the transaction with its write id has
committed, and the cleaner removes the hidden files. Source: Hive's HMSHandler.truncateTableInternal and drop_partitions_req.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from metastore.errors import MetaError
from metastore.rules.transactions.acid_directories import base_name
from metastore.rules.transactions.transactions import INSERT, Intent
from metastore.service.call.clock import now_ms
from metastore.service.call.context import Call
from metastore.service.call.names import TableName
from metastore.service.transactions import fast_paths
from metastore.service.transactions.transactions import ended_error
from metastore.store.core.database import Session
from metastore.store.transactions import components, transactions, write_ids
from metastore.store.transactions.transactions import COMPONENTS
from metastore.store.transactions.write_ids import TableKey
from metastore.warehouse import acid
from metastore.warehouse.locations import join

if TYPE_CHECKING:
    from metastore.service.changes.change import Change

KEEPS_DATA = "truncateSkipDataDeletion"
TRUNCATED, DROPPED = "truncated", "dropped"
"""The reasons for a base that its mark can have."""


def keeps_data(environment: Mapping[str, str]) -> bool:
    """Return whether a request to truncate asks that no data is deleted."""
    return environment.get(KEEPS_DATA, "").lower() == "true"


def note(call: Call, session: Session, name: TableName, partitions: Iterable[str | None], write_id: int) -> None:
    """Note that the transaction with a write id truncates a table (the partition None) or partitions of it. MetaError if it has ended.

    Hive's server notes nothing. It therefore forgets an aborted transaction whose base still exists, and the base then counts. Its
    initiator also does not look at the files that a base hides before something else is written.
    """
    key = TableKey(*name)
    transaction = write_ids.owner(session, key, write_id)
    intents = [Intent(*key, partition, INSERT, write_id) for partition in partitions]
    if transaction is None or not intents:
        return
    if not transactions.add_holds(session, transaction, COMPONENTS, now_ms())():
        raise MetaError(ended_error(transaction, transactions.find(session, transaction), session).message)
    components.insert(session, ((transaction, intent) for intent in intents))
    fast_paths.locked(call, transaction, COMPONENTS, intents)


def write(current: Change, locations: Sequence[str], write_id: int, why: str) -> None:
    """Make the bases of a write id in the directories that exist, within the transaction; they are removed if it fails. MetaError."""
    if not locations:
        return
    warehouse = current.warehouse

    def one(location: str) -> None:
        if warehouse.is_directory(location):
            base = join(location, base_name(write_id))
            if warehouse.make(base) or not warehouse.can_rename(base):  # an object store has no directories to make
                current.if_it_fails(partial(warehouse.delete, base, purge=True))
            acid.mark_empty_base(warehouse, base, why)

    warehouse.each(one, locations, locations[0])
