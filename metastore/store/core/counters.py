"""Numbers that are issued once: each has a row that its taker holds until the transaction ends. Never gives one back."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import mysql, postgresql, sqlite

from metastore.store.core.clauses import PerDatabase
from metastore.store.core.database import Session
from metastore.store.drivers.answer import Answer, Later
from metastore.store.schema.model import counters

TRANSACTION = "transaction"
"""The counter of transaction ids."""


def taking(table: sa.Table, column: str, first: int, raised: str | None = None) -> PerDatabase:
    """Return the statement that adds `count` to a column of a row and returns the sum. A new row begins at `first`.

    Its parameters are the columns of the table's key, `count`, and a value to which the column `raised` is raised if it is lower. `take`
    runs the statement.
    """
    value, count = table.c[column], sa.bindparam("count", type_=sa.BigInteger())
    keys: dict[str, Any] = {key.name: sa.bindparam(key.name) for key in table.primary_key.columns}
    start = count if first == 0 else count + sa.literal_column(str(first))
    given = {**keys, **({} if raised is None else {raised: sa.bindparam(raised)})}

    def raising(greatest: str, new: Any) -> dict[str, Any]:
        return {} if raised is None else {raised: getattr(sa.func, greatest)(table.c[raised], new[raised])}

    added = mysql.insert(table).values({**given, column: sa.func.last_insert_id(start)})
    own: dict[str, sa.ClauseElement] = {}
    for kind, insert, greatest in (("postgresql", postgresql.insert, "greatest"), ("sqlite", sqlite.insert, "max")):
        clause: Any = insert(table).values({**given, column: start})
        own[kind] = clause.on_conflict_do_update(
            index_elements=list(keys), set_={column: value + count, **raising(greatest, clause.excluded)}
        ).returning(value)
    usual = added.on_duplicate_key_update({column: sa.func.last_insert_id(value + count), **raising("greatest", added.inserted)})
    return PerDatabase(usual, **own)


def take(session: Session, clause: PerDatabase, count: int, **keys: str | int) -> Answer:
    """Run a statement that `taking` made, together with the next one; `taken` reads the answer."""
    return session.enqueue(clause, count=count, **keys)


def taken(answer: Answer) -> int:
    """Return the new value."""
    return int(answer.rows[0][0]) if answer.rows else answer.key


NUMBERS = taking(counters, "value", 0)
VALUE = sa.select(counters.c.value).where(counters.c.name == sa.bindparam("key"))
LOCK = VALUE.with_for_update()
SHARE = VALUE.with_for_update(read=True)
SET = sa.update(counters).where(counters.c.name == sa.bindparam("key")).values(value=sa.bindparam("new"))
RAISE = (
    sa.update(counters)
    .where(counters.c.name == sa.bindparam("key"), counters.c.value < sa.bindparam("least"))
    .values(value=sa.bindparam("least"))
)


def value(session: Session, name: str) -> int:
    """Return the last number issued, 0 before the first."""
    return session.number(VALUE, key=name) or 0


def share(session: Session, name: str) -> Later[int]:
    """Return the last number issued, 0 before the first, with the next statement. No other is issued until the transaction ends."""
    answer = session.enqueue(SHARE, key=name)
    return lambda: int(answer.rows[0][0]) if answer.rows else 0


def lock(session: Session, name: str) -> int:
    """Keep others from locking a counter, or taking a number, until the transaction ends. Return the last number, 0 before the first."""
    found = session.number(LOCK, key=name)
    if found is None:
        session.insert_missing(counters, [{"name": name, "value": 0}])
        found = session.number(LOCK, key=name)
    return found or 0


def set_last(session: Session, name: str, number: int) -> None:
    """Set the last number that a locked counter has issued."""
    session.execute(SET, key=name, new=number)


def raise_to(session: Session, name: str, least: int) -> bool:
    """Raise the last number issued to `least`; return whether it was lower."""
    session.insert_missing(counters, [{"name": name, "value": 0}])
    return session.execute(RAISE, key=name, least=least) > 0
