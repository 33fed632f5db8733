"""Short forms of the calls in tests of transactions, write ids and locks."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence

import sqlalchemy as sa

from metastore.idl import (
    AbortTxnRequest,
    AllocateTableWriteIdsRequest,
    CommitTxnRequest,
    DataOperationType,
    LockComponent,
    LockLevel,
    LockRequest,
    LockType,
    OpenTxnRequest,
    TableValidWriteIds,
)
from metastore.rules.transactions.snapshots import aborted_of
from metastore.service.call.clock import now_ms
from metastore.service.call.context import Call
from metastore.service.transactions import locks, transactions, write_ids
from metastore.service.transactions.commit import commit_transaction
from metastore.store.schema import model as schema

INSERT, UPDATE, DELETE, SELECT = DataOperationType.INSERT, DataOperationType.UPDATE, DataOperationType.DELETE, DataOperationType.SELECT
READ, WRITE, EXCLUSIVE, EXCL_WRITE = LockType.SHARED_READ, LockType.SHARED_WRITE, LockType.EXCLUSIVE, LockType.EXCL_WRITE


def tick() -> None:
    """Wait until a time-out of one millisecond has passed."""
    before = now_ms()
    while now_ms() - before < 3:
        time.sleep(0.001)


def begin(call: Call, count: int = 1, **options: object) -> list[int]:
    """Open transactions."""
    return transactions.open_transactions(call, OpenTxnRequest(num_txns=count, user="alice", hostname="here", **options))  # type: ignore[arg-type]


def begin_one(call: Call, **options: object) -> int:
    return begin(call, **options)[0]


def commit(call: Call, key: int, **options: object) -> None:
    commit_transaction(call, CommitTxnRequest(txnid=key, **options))  # type: ignore[arg-type]


def abort(call: Call, key: int, **options: object) -> None:
    transactions.abort_transaction(call, AbortTxnRequest(txnid=key, **options))  # type: ignore[arg-type]


def component(
    kind: int,
    table: str | None = "t",
    partition: str | None = None,
    *,
    database: str = "db",
    operation: int | None = SELECT,
    dynamic: bool = False,
    transactional: bool | None = True,
) -> LockComponent:
    level = LockLevel.DB if table is None else LockLevel.TABLE if partition is None else LockLevel.PARTITION
    return LockComponent(
        type=kind,
        level=level,
        dbname=database,
        tablename=table,
        partitionname=partition,
        operationType=operation,
        isTransactional=transactional,
        isDynamicPartitionWrite=dynamic,
    )


def ask(call: Call, *components: LockComponent, transaction: int = 0, waits: bool = True, **options: object) -> tuple[int, int]:
    """Ask for a lock as a client of Hive 4 does; return its id and state."""
    request = LockRequest(
        component=list(components),
        txnid=transaction,
        user="alice",
        hostname="here",
        zeroWaitReadEnabled=not waits,
        **options,  # type: ignore[arg-type]
    )
    answer = locks.lock(call, request)
    return answer.lockid, answer.state


def write(
    call: Call, transaction: int, operation: int = UPDATE, table: str = "t", partition: str | None = None, database: str = "db"
) -> int:
    """Allocate a write id and lock a table or partition to write to it."""
    number = allocate(call, [transaction], table, database)[transaction]
    kind = READ if operation == INSERT else WRITE
    ask(call, component(kind, table, partition, database=database, operation=operation), transaction=transaction)
    return number


def allocate(call: Call, keys: Sequence[int], table: str = "t", database: str = "db", **options: object) -> dict[int, int]:
    """Allocate write ids; return them by transaction."""
    request = AllocateTableWriteIdsRequest(dbName=database, tableName=table, txnIds=list(keys), **options)  # type: ignore[arg-type]
    return write_ids.allocate_write_ids(call, request)


def valid(call: Call, table: str = "db.t", **options: object) -> tuple[int, list[int], set[int], int | None]:
    """Return a table's snapshot: the mark, the unseen ids, the aborted ids among them, and the lowest open id."""
    (found,) = write_ids.get_valid_write_ids(call, [table], **options)  # type: ignore[arg-type]
    return shown(found)


def shown(found: TableValidWriteIds) -> tuple[int, list[int], set[int], int | None]:
    gone = aborted_of(found.invalidWriteIds, found.abortedBits)
    return found.writeIdHighWaterMark, found.invalidWriteIds, set(gone), found.minOpenWriteId


def rows(call: Call, table: sa.Table, /, *columns: str, **where: object) -> list[tuple[object, ...]]:
    """Return columns of the rows of a table, in the order of its key."""
    query = sa.select(*(table.c[column] for column in columns)).order_by(*table.primary_key.columns)
    for name, value in where.items():
        query = query.where(table.c[name].is_(None) if value is None else table.c[name] == sa.bindparam(f"{name}_value"))
    values: Mapping[str, object] = {f"{name}_value": value for name, value in where.items() if value is not None}
    return [tuple(row) for row in call.database.read(lambda session: session.rows(query, **values))]


def intended(call: Call, *columns: str, **where: object) -> list[tuple[object, ...]]:
    """Return columns of the components that open transactions intend to write, or aborted ones intended to write."""
    return rows(call, schema.transaction_components, *columns, committed_ms=None, **where)


def completed(call: Call, *columns: str, **where: object) -> list[tuple[object, ...]]:
    """Return columns of the components that committed transactions wrote."""
    found = rows(call, schema.transaction_components, "committed_ms", *columns, **where)
    return [tuple(row) for time, *row in found if time is not None]


def judged_by(call: Call, *columns: str, **where: object) -> list[tuple[object, ...]]:
    """Return columns of the components that conflicts are judged by: those with a commit id."""
    found = rows(call, schema.transaction_components, "commit_id", *columns, **where)
    return [tuple(row) for number, *row in found if number is not None]


def count(call: Call, tables: Iterable[sa.Table]) -> dict[str, int]:
    """Return the number of rows of each table."""
    found = {}
    for table in tables:
        query = sa.select(sa.func.count()).select_from(table)
        found[table.name] = call.database.read(lambda session, query=query: session.rows(query))[0][0]  # type: ignore[misc]
    return found


def ranges(call: Call, table: str = "t") -> list[tuple[object, ...]]:
    """Return the ranges of write ids that a table has: first and last transaction and first write id."""
    return rows(call, schema.write_id_ranges, "first_transaction", "last_transaction", "first_write_id", table=table)


def singles(call: Call, table: str = "t") -> list[tuple[object, ...]]:
    """Return the other write ids of a table, each after its transaction."""
    return rows(call, schema.write_ids, "transaction_id", "write_id", table=table)


def holds(call: Call, keys: Sequence[int]) -> set[object]:
    """Return the bits that transactions have."""
    return {rows(call, schema.transactions, "holds", id=key)[0][0] for key in keys}
