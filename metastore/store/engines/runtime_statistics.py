"""Rows of runtime statistics. One function per statement."""

from __future__ import annotations

from base64 import b64decode, b64encode

import sqlalchemy as sa

from metastore.idl import RuntimeStat
from metastore.store.core.clauses import Among
from metastore.store.core.database import Session
from metastore.store.schema.engines import runtime_statistics

STATISTIC = runtime_statistics.c
WEIGHTS = (
    sa.select(STATISTIC.id, STATISTIC.weight)
    .where(STATISTIC.create_time < sa.bindparam("before"))
    .order_by(STATISTIC.create_time.desc(), STATISTIC.id.desc())
)
FIND = (
    sa.select(STATISTIC.create_time, STATISTIC.weight, STATISTIC.payload)
    .where(Among(STATISTIC.id, "keys"))
    .order_by(STATISTIC.create_time.desc(), STATISTIC.id.desc())
)
OLD = (
    sa.select(STATISTIC.id)
    .where(STATISTIC.create_time <= sa.bindparam("before"))
    .order_by(STATISTIC.create_time)
    .limit(sa.bindparam("most"))
)
DELETE = sa.delete(runtime_statistics).where(Among(STATISTIC.id, "keys"))


def insert(session: Session, statistics: RuntimeStat) -> None:
    """Add statistics."""
    payload = b64encode(statistics.payload).decode()
    session.insert(runtime_statistics, create_time=statistics.createTime, weight=statistics.weight, payload=payload)


def weights(session: Session, before: int) -> list[tuple[int, int]]:
    """Return the keys and weights of all statistics made before a time, the newest first."""
    return [(row[0], row[1]) for row in session.rows(WEIGHTS, before=before)]


def find(session: Session, keys: list[int]) -> list[RuntimeStat]:
    """Return the statistics with these keys, the newest first."""
    return [
        RuntimeStat(createTime=created, weight=weight, payload=b64decode(payload))
        for created, weight, payload in session.rows(FIND, keys=keys)
    ]


def old(session: Session, before: int, most: int) -> list[int]:
    """Return the keys of some statistics made at or before a time."""
    return session.column(OLD, before=before, most=most)


def delete(session: Session, keys: list[int]) -> None:
    """Remove statistics."""
    session.execute(DELETE, keys=keys)
