"""Rows and folders of transactional tables as writers, workers and aborts leave them, for tests of compaction."""

from __future__ import annotations

import time
from pathlib import Path

import sqlalchemy as sa

from metastore.idl import TxnType
from metastore.service.call.context import Metastore
from metastore.service.call.names import TableName
from metastore.store.core.database import Session
from metastore.store.schema.model import counters, transaction_components, transactions, write_id_counters, write_ids

LAST = sa.select(counters.c.value).where(counters.c.name == "transaction")
NEXT_WRITE_ID = sa.select(write_id_counters.c.next).where(
    write_id_counters.c.catalog == sa.bindparam("catalog_key"),
    write_id_counters.c.database == sa.bindparam("database_key"),
    write_id_counters.c.table == sa.bindparam("table_key"),
)
SET_LAST = sa.update(counters).where(counters.c.name == "transaction").values(value=sa.bindparam("last"))
SET_NEXT = (
    sa.update(write_id_counters)
    .where(
        write_id_counters.c.catalog == sa.bindparam("catalog_key"),
        write_id_counters.c.database == sa.bindparam("database_key"),
        write_id_counters.c.table == sa.bindparam("table_key"),
    )
    .values(next=sa.bindparam("following"))
)
END = (
    sa.update(transactions)
    .where(transactions.c.id == sa.bindparam("key"))
    .values(state=sa.bindparam("new_state"), ended_ms=sa.bindparam("now"), commit_id=sa.bindparam("number"))
)
BEAT = sa.update(transactions).where(transactions.c.id == sa.bindparam("key")).values(heartbeat_ms=sa.bindparam("now"))
_C = transaction_components.c
COMPONENTS = sa.select(transaction_components).where(_C.committed_ms.is_(None)).order_by(_C.id)
COMPLETED = sa.select(transaction_components).where(_C.committed_ms.is_not(None)).order_by(_C.id)


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def begin(metastore: Metastore, *, kind: int = TxnType.DEFAULT, started: int | None = None) -> int:
    """Open a transaction."""

    def work(session: Session) -> int:
        session.insert_missing(counters, [{"name": "transaction", "value": 0}])
        row = session.row(LAST)
        assert row is not None
        key = int(row[0]) + 1
        session.execute(SET_LAST, last=key)
        at = now_ms() if started is None else started
        columns = ("id", "state", "type", "user", "host", "started_ms", "heartbeat_ms")
        session.insert_many(transactions, columns, [(key, "o", kind, "alice", "here", at, at)])
        return key

    return metastore.database.write(work)


def end(metastore: Metastore, transaction: int, state: str = "c") -> None:
    """Commit or abort a transaction; its components stay unchanged."""

    def work(session: Session) -> None:
        row = session.row(LAST)
        assert row is not None
        session.execute(END, key=transaction, new_state=state, now=now_ms(), number=int(row[0]) if state == "c" else None)

    metastore.database.write(work)


def beat(metastore: Metastore, transaction: int, at: int) -> None:
    metastore.database.write(lambda session: session.execute(BEAT, key=transaction, now=at))


def allocate(metastore: Metastore, name: TableName, transaction: int) -> int:
    """Give a transaction the table's next write id."""

    def work(session: Session) -> int:
        keys = {"catalog_key": name.catalog, "database_key": name.database, "table_key": name.table}
        row = session.row(NEXT_WRITE_ID, **keys)
        number = 1 if row is None else int(row[0])
        if row is None:
            session.insert_many(write_id_counters, ("catalog", "database", "table", "next"), [(*name, 2)])
        else:
            session.execute(SET_NEXT, **keys, following=number + 1)
        session.insert_many(write_ids, ("transaction_id", "catalog", "database", "table", "write_id"), [(transaction, *name, number)])
        return number

    return metastore.database.write(work)


def intend(
    metastore: Metastore, name: TableName, transaction: int, write_id: int | None, partition: str | None = None, by: str = "i"
) -> None:
    """Add a component of an open transaction: a table or partition that it writes to."""
    columns = ("transaction_id", "catalog", "database", "table", "partition", "operation", "write_id")
    metastore.database.write(
        lambda session: session.insert_many(transaction_components, columns, [(transaction, *name, partition, by, write_id)])
    )


def complete(
    metastore: Metastore, name: TableName, transaction: int, write_id: int, partition: str | None = None, at: int | None = None
) -> None:
    """Add a component of a committed transaction: a table or partition that it wrote to."""
    columns = ("transaction_id", "catalog", "database", "table", "partition", "write_id", "operation", "committed_ms")
    row = (transaction, *name, partition, write_id, "i", now_ms() if at is None else at)
    metastore.database.write(lambda session: session.insert_many(transaction_components, columns, [row]))


def write(
    metastore: Metastore,
    name: TableName,
    location: str,
    *,
    partition: str | None = None,
    state: str = "c",
    size: int = 1,
    started: int | None = None,
    at: int | None = None,
) -> tuple[int, int]:
    """Write one delta in one transaction that commits, aborts or stays open (o); return its transaction and write id."""
    transaction = begin(metastore, started=started)
    write_id = allocate(metastore, name, transaction)
    fill(Path(location) / f"delta_{write_id:07d}_{write_id:07d}_0000", size)
    if state != "c":
        intend(metastore, name, transaction, write_id, partition)
    if state != "o":
        end(metastore, transaction, state)
    if state == "c":
        complete(metastore, name, transaction, write_id, partition, at)
    return transaction, write_id


def fill(folder: Path, size: int = 1) -> None:
    """Make a directory with a file of `size` bytes."""
    folder.mkdir(parents=True)
    (folder / "bucket_00000").write_bytes(b"x" * size)


def rows(metastore: Metastore, clause: sa.Select[tuple[object, ...]]) -> list[dict[str, object]]:
    """Return the rows of COMPONENTS or COMPLETED by column."""
    names = [column.name for column in clause.selected_columns]
    return [dict(zip(names, row, strict=True)) for row in metastore.database.read(lambda session: session.rows(clause))]
