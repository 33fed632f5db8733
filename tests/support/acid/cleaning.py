"""A compactor's steps, done by a test, and the queue and directories that a cleaner leaves."""

from pathlib import Path

import pytest
import sqlalchemy as sa

from metastore.idl import (
    CompactionInfoStruct,
    CompactionRequest,
    CompactionType,
    ShowCompactRequest,
    ShowCompactResponseElement,
    TxnType,
)
from metastore.rules.transactions.compactions import INITIATED
from metastore.service.call.context import Call, Metastore
from metastore.service.call.names import TableName
from metastore.service.compaction import compaction_workers, compactions
from metastore.store.compaction import compactions as rows
from metastore.store.compaction.compactions import CompactedObject
from metastore.store.core.database import Session
from metastore.store.schema.model import compactions as queue
from tests.support.acid import acid_steps as acid

MAJOR, MINOR = CompactionType.MAJOR, CompactionType.MINOR


def shown(call: Call) -> list[ShowCompactResponseElement]:
    return compactions.show(call, ShowCompactRequest(order="compactionid"))


def states(call: Call) -> list[str]:
    return [each.state for each in shown(call)]


def names(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


def work(
    call: Call,
    name: TableName,
    folder: Path,
    highest: int,
    *,
    partition: str | None = None,
    kind: int = MAJOR,
    ends: str = "c",
    refused: bool = False,
) -> tuple[CompactionInfoStruct, int]:
    """Compact as a worker does: queue, take, transaction, directory, mark, end the transaction (o leaves it open).

    With `refused` the entry is queued without a request, which would be refused: older servers have such entries.
    """
    if refused:
        queue_unasked(call, name, "a" if kind == MAJOR else "i")
    else:
        asked = compactions.compact(call, CompactionRequest(dbname=name.database, tablename=name.table, partitionname=partition, type=kind))
        assert asked.accepted, asked.errormessage
    info = compaction_workers.find_next(call, "w")
    assert info is not None
    transaction = acid.begin(call.metastore, kind=TxnType.COMPACTION)
    info.highestWriteId = highest
    compaction_workers.update_state(call, info, transaction)
    made = f"base_{highest:07d}" if kind == MAJOR else f"delta_0000001_{highest:07d}"
    acid.fill(folder / f"{made}_v{transaction:07d}")
    compaction_workers.mark_compacted(call, info)
    if ends != "o":
        acid.end(call.metastore, transaction, ends)
    return info, transaction


def queue_unasked(call: Call, name: TableName, kind: str = "a") -> None:
    """Put a compaction of a whole table into the queue, without the checks that refuse some tables."""
    where = CompactedObject(*name, None)
    call.database.write(lambda session: rows.insert(session, where, kind, INITIATED, {"enqueued_ms": 1}))


def written(call: Call, name: TableName, folder: Path, times: int, **options: object) -> None:
    for _ in range(times):
        acid.write(call.metastore, name, str(folder), **options)  # type: ignore[arg-type]


def stuck(monkeypatch: pytest.MonkeyPatch, metastore: Metastore) -> None:
    """Make the file system refuse to delete the second delta."""
    files = metastore.warehouse._systems._local
    set_aside = files.set_aside

    def refuse(old: str, new: str, *, may_remove: bool) -> bool:
        if "0000002_0000002_" in old:
            raise OSError(5, "it is stuck")
        return set_aside(old, new, may_remove=may_remove)

    monkeypatch.setattr(files, "set_aside", refuse)


def rush(session: Session) -> None:
    """End the pause after a cleaning that failed."""
    session.execute(sa.update(queue).values(retry_after_ms=sa.literal_column("1")))
