"""A transactional table as initiator and cleaner see it: locations of it and its partitions, and which of its write ids are settled."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from metastore.errors import MetaError
from metastore.idl import Table
from metastore.rules.transactions.acid_directories import FolderEntry, SeenWriteIds, Transactions, parse
from metastore.service.call.context import Metastore
from metastore.store.catalog.partitions import partitions as partition_rows
from metastore.store.compaction import compaction_sources
from metastore.store.compaction.compactions import CompactedObject
from metastore.store.core.database import Session
from metastore.store.transactions.transactions import ABORTED, OPEN
from metastore.warehouse import acid


class Place(NamedTuple):
    """The location of an object's files, and its own parameters."""

    location: str
    parameters: dict[str, str]


def places(metastore: Metastore, session: Session, table: Table, wanted: Iterable[str | None]) -> dict[str | None, Place]:
    """Map each partition that exists to its place; None is the key for an unpartitioned table.

    A partitioned table has no files of its own, only its partitions. MetaError for a table without location.
    """
    names = list(wanted)
    out: dict[str | None, Place] = {}
    if None in names and not table.partitionKeys:
        out[None] = _place(table, table)
    named = [name for name in names if name is not None]
    for _, name, partition in partition_rows.named(session, table, named) if named else ():
        out[name] = _place(table, partition)
    return out


def _place(table: Table, owner: object) -> Place:
    location = getattr(getattr(owner, "sd", None), "location", None)
    if not location:
        raise MetaError(f"{table.catName}.{table.dbName}.{table.tableName} has no location: its files can not be looked at")
    return Place(location, getattr(owner, "parameters", None) or {})


def write_ids(session: Session, where: CompactedObject, high: int) -> SeenWriteIds:
    """Return the list of a table's write ids up to `high`."""
    found = compaction_sources.unsettled(session, where, high, [OPEN, ABORTED])
    opened = frozenset(number for number, state in found if state == OPEN)
    aborted = frozenset(number for number, state in found if state == ABORTED)
    return SeenWriteIds(high, opened, aborted, f"{where.database}.{where.table}")


def listed(metastore: Metastore, location: str) -> list[FolderEntry]:
    """Return the directories and files in a folder. MetaError."""
    return [FolderEntry(*each) for each in acid.listing(metastore.warehouse, location)]


def compactors(
    session: Session, entries: Iterable[FolderEntry], below: int, *, none_open: bool = False, own: int | None = None
) -> Transactions:
    """Return the transactions that made compacted directories and that a reader `below` does not see: uncommitted (`open`) or aborted ones.

    A transaction is seen that committed before the transaction `below` began. One without a row has committed: aborted ones stay until
    their files are removed. A lower id is not enough: a reader that began while the compactor was open does not see its files, and still
    needs the replaced ones. Where no transaction below is open (`none_open`), a commit whose order is not known yet is seen by all. So is
    the compaction `own`: its order has been checked by the caller.
    """
    made_by = sorted({parsed.visibility for entry in entries if (parsed := parse(entry.name)) is not None and parsed.visibility})
    states = compaction_sources.transaction_states(session, made_by)
    aborted = {key for key, (state, _) in states.items() if state == ABORTED}
    unseen = {key for key in made_by if key >= below and key not in states}
    for key, (state, commit) in states.items():
        late = not none_open if commit is None else commit >= below
        if key != own and (state == OPEN or (state != ABORTED and (key >= below or late))):
            unseen.add(key)
    return Transactions(open=unseen, aborted=aborted)
