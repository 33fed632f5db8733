"""Rows of write ids: the counter of each table, the id of each transaction, and the lowest that an open reader needs.

One function per statement. Who allocates or commits changes holds the table's counter until the transaction ends.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from functools import cache
from typing import Any, NamedTuple

import sqlalchemy as sa

from metastore.store import counters
from metastore.store.answer import Answer
from metastore.store.clauses import Among, AmongKeys, bare
from metastore.store.components import Intent
from metastore.store.database import Session
from metastore.store.schema import min_history, write_id_counters, write_ids

N, I = write_id_counters.c, write_ids.c  # noqa: E741  # beside the N of its counter
COLUMNS = ("transaction_id", "catalog", "database", "table", "write_id")
NEXT = counters.taking(write_id_counters, "next", 1)
TABLE = (I.catalog == sa.bindparam("catalog_key"), I.database == sa.bindparam("database_key"), I.table == sa.bindparam("table_key"))
COUNTER = (N.catalog == sa.bindparam("catalog_key"), N.database == sa.bindparam("database_key"), N.table == sa.bindparam("table_key"))
THEIRS = (
    Among(I.transaction_id, "keys"), I.catalog == sa.bindparam("catalog_key"), bare(I.database) == sa.bindparam("database_key"),
    bare(I.table) == sa.bindparam("table_key"),
)
OF_TRANSACTIONS = sa.select(I.transaction_id, I.write_id).where(*THEIRS).order_by(I.write_id)
OF_TRANSACTION = sa.select(I.catalog, I.database, I.table, I.write_id).where(I.transaction_id == sa.bindparam("key"))
OWNER = sa.select(I.transaction_id).where(*TABLE, I.write_id == sa.bindparam("key"))
LAST = sa.select(N.next - sa.literal_column("1")).where(*COUNTER)
SET_NEXT = sa.update(write_id_counters).where(*COUNTER).values(next=sa.bindparam("number"))
FORGET = sa.delete(write_ids).where(*TABLE)
FORGET_TRANSACTIONS = sa.delete(write_ids).where(*THEIRS)
SEED = sa.insert(write_id_counters).values({name: sa.bindparam(name) for name in ("catalog", "database", "table", "next")})
_AMONG = AmongKeys(catalogs=N.catalog, databases=N.database, tables=N.table)
HOLD = sa.select(N.catalog, N.database, N.table).where(_AMONG).order_by(N.catalog, N.database, N.table).with_for_update()
HOLD_ONE = sa.select(N.catalog, N.database, N.table).where(*COUNTER).with_for_update()

_NO: sa.ColumnElement[int] = sa.literal_column("0")


def _unranged(column: sa.ColumnElement[int]) -> sa.ColumnElement[int]:
    """Return a column as an expression without an index: MariaDB counts the rows of each range that exceptions leave of one."""
    return column + _NO


_THEIRS = sa.and_(
    I.catalog == N.catalog, I.database == N.database, I.table == N.table, _unranged(I.transaction_id) <= sa.bindparam("mark")
)
_BELOW = sa.select(I.write_id).where(_THEIRS).order_by(I.write_id.desc()).limit(sa.literal_column("1")).scalar_subquery()


_LAST: sa.ColumnElement[int] = sa.literal_column(str(2**63 - 1))
"""Above all ids. PostgreSQL takes a range with two ends to be small, one with an end that it does not know for a third of the table."""


@cache
def snapshot_query(*, one: bool, excepts: bool) -> sa.CompoundSelect[Any]:
    """Return the query of a snapshot with or without exceptions, for one table or many: first what is told of tables, then write ids.

    What a snapshot sees is looked for in order, so that PostgreSQL goes by the index: the lowest is most often seen, while a table of
    others' may come first in the heap.
    """
    seen = sa.select(sa.literal_column("1")).where(
        _THEIRS, *((sa.not_(Among(_unranged(I.transaction_id), "exceptions")),) if excepts else ())
    ).order_by(I.write_id).limit(sa.literal_column("1")).scalar_subquery()
    theirs = (
        (bare(I.database) == sa.bindparam("database_key"), bare(I.table) == sa.bindparam("table_key")) if one
        else (Among(bare(I.database), "databases"), Among(bare(I.table), "tables"))
    )
    later = (I.transaction_id > sa.bindparam("mark"), I.transaction_id < _LAST)
    return sa.union_all(
        sa.select(
            N.catalog, N.database, N.table, _NO.label("write_id"), _NO.label("transaction_id"),
            (N.next - sa.literal_column("1")).label("last"), _BELOW.label("below"), sa.func.coalesce(seen, _NO).label("seen"),
        ).where(*(COUNTER if one else (_AMONG,))),
        *(
            sa.select(I.catalog, I.database, I.table, I.write_id, I.transaction_id, _NO, _NO, _NO).where(*theirs, *which)
            for which in (later, (Among(I.transaction_id, "exceptions"),))[: 1 + excepts]
        ),
    )


class Key(NamedTuple):
    """A table by its normalised names."""

    catalog: str
    database: str
    table: str

    @classmethod
    def of(cls, intent: Intent) -> Key:
        """Return the table that a transaction means to write to."""
        return cls(intent[0], intent[1], intent[2] or "")


class Mark(NamedTuple):
    """Of a table: the last write id, the highest of a transaction of the snapshot, and whether one of those is seen."""

    last: int
    below: int | None
    seen: bool


def _named(key: Key) -> dict[str, str]:
    return {"catalog_key": key.catalog, "database_key": key.database, "table_key": key.table}


def _among(keys: Iterable[Key]) -> dict[str, list[str]]:
    catalogs, databases, tables = zip(*sorted(keys), strict=True)
    return {"catalogs": list(catalogs), "databases": list(databases), "tables": list(tables)}


def take(session: Session, key: Key, count: int) -> Answer:
    """Take write ids of a table, together with the next statement; `taken` reads the answer."""
    return counters.take(session, NEXT, count, catalog=key.catalog, database=key.database, table=key.table)


def taken(answer: Answer, count: int) -> range:
    """Return the write ids that were taken."""
    following = counters.taken(answer)
    return range(following - count, following)


def of_transactions(session: Session, key: Key, transactions: Sequence[int]) -> dict[int, int]:
    """Return the write ids that transactions have in a table."""
    return dict(session.rows(OF_TRANSACTIONS, keys=list(transactions), **_named(key)))


def of_transaction(session: Session, transaction: int) -> Answer:
    """Ask for the write ids that a transaction has, together with the next statement; `by_table` reads the answer."""
    return session.later(OF_TRANSACTION, key=transaction)


def by_table(answer: Answer) -> dict[Key, int]:
    """Return the last write id of a transaction in each table."""
    return {Key(*names): int(number) for *names, number in sorted(answer.rows)}


def owner(session: Session, key: Key, write_id: int) -> int | None:
    """Return the transaction that has a write id of a table."""
    row = session.row(OWNER, key=write_id, **_named(key))
    return None if row is None else int(row[0])


def insert(session: Session, key: Key, pairs: Iterable[tuple[int, int]]) -> None:
    """Add pairs of a transaction and its write id in a table."""
    session.insert_later(write_ids, COLUMNS, [(transaction, *key, write_id) for transaction, write_id in pairs])


def forget(session: Session, key: Key, transactions: Sequence[int] | None = None) -> None:
    """Remove the write ids of a table, or those of some transactions in it."""
    if transactions is None:
        session.execute(FORGET, **_named(key))
    else:
        session.execute(FORGET_TRANSACTIONS, keys=list(transactions), **_named(key))


def last(session: Session, key: Key) -> int | None:
    """Return the last write id of a table; None when it never had a counter."""
    row = session.row(LAST, **_named(key))
    return None if row is None else int(row[0])


def set_next(session: Session, key: Key, number: int) -> None:
    """Let a table go on with a write id. Its counter must be there."""
    session.execute(SET_NEXT, number=number, **_named(key))


def seed(session: Session, key: Key, following: int) -> None:
    """Make the counter of a table, which must have none."""
    session.execute(SEED, catalog=key.catalog, database=key.database, table=key.table, next=following)


def hold(session: Session, keys: Collection[Key]) -> Answer:
    """Keep all others who allocate write ids in tables, or commit changes of them, waiting until the transaction ends.

    It goes together with the next statement; `make_missing` reads the answer.
    """
    if len(keys) == 1:
        return session.later(HOLD_ONE, **_named(next(iter(keys))))
    return session.later(HOLD, **_among(keys))


def make_missing(session: Session, keys: Collection[Key], held: Answer) -> bool:
    """Make the counters of tables that have none; tell whether some had none: they are to be held then."""
    missing = set(keys) - {Key(*row) for row in held.rows}
    if missing:
        session.insert_missing(write_id_counters, [{**key._asdict(), "next": 1} for key in sorted(missing)])
    return bool(missing)


def snapshot(
    session: Session, keys: Iterable[Key], mark: int, exceptions: Sequence[int]
) -> tuple[dict[Key, Mark], dict[Key, list[tuple[int, int]]]]:
    """Return what a snapshot of transactions makes of tables, and perhaps of others; those without write ids are missing.

    Second, the write ids that it does not see, ascending, each with its transaction.
    """
    marks: dict[Key, Mark] = {}
    unseen: dict[Key, list[tuple[int, int]]] = {}
    below = [key for key in exceptions if key <= mark]
    tables = list(keys)
    values: dict[str, Any] = _named(tables[0]) if len(tables) == 1 else _among(tables)
    if below:
        values["exceptions"] = below
    for row in session.rows(snapshot_query(one=len(tables) == 1, excepts=bool(below)), mark=mark, **values):
        key = Key(*row[:3])
        if row[3]:
            unseen.setdefault(key, []).append((int(row[3]), int(row[4])))
        else:
            marks[key] = Mark(int(row[5]), row[6], bool(row[7]))
    for pairs in unseen.values():
        pairs.sort()
    return marks, unseen


def insert_history(session: Session, transaction: int, lowest: Iterable[tuple[Key, int]]) -> None:
    """Note the lowest write ids that an open transaction's snapshot may look behind; what is noted stays."""
    session.insert_missing(min_history, [
        {"transaction_id": transaction, **key._asdict(), "write_id": write_id} for key, write_id in lowest
    ])
