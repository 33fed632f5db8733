"""Rows of leases: each names the process that runs a periodic job for all servers that share the database. One function per statement;
never runs a job.
"""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa

from metastore.store.core.clauses import Among, constant
from metastore.store.core.database import Session
from metastore.store.schema.model import leases

LEASE = leases.c
FIND = sa.select(LEASE.holder, LEASE.expires_ms).where(LEASE.name == sa.bindparam("key"))
TAKE = (
    sa.update(leases)
    .where(LEASE.name == sa.bindparam("key"), sa.or_(LEASE.holder == sa.bindparam("who"), LEASE.expires_ms <= sa.bindparam("now")))
    .values(holder=sa.bindparam("who"), expires_ms=sa.bindparam("until"))
)
HELD = (
    sa.select(LEASE.holder, LEASE.name, LEASE.expires_ms)
    .where(LEASE.expires_ms > sa.bindparam("now"))
    .order_by(LEASE.expires_ms.desc())
    .limit(constant(1))
)
GIVE_BACK = sa.update(leases).where(Among(LEASE.name, "names"), LEASE.holder == sa.bindparam("who")).values(expires_ms=constant(0))


def find(session: Session, name: str) -> tuple[str | None, int] | None:
    """Return the holder of a lease and its end in milliseconds; None for a lease without a row."""
    row = session.row(FIND, key=name)
    return None if row is None else (row[0], row[1])


def held(session: Session, now: int) -> tuple[str, str, int] | None:
    """Return holder, name and end in milliseconds of the held lease that ends last; None if no lease is held."""
    row = session.row(HELD, now=now)
    return None if row is None else (row[0], row[1], row[2])


def add(session: Session, name: str) -> None:
    """Add a lease without a holder, if it does not exist."""
    session.insert_missing(leases, [{"name": name, "holder": None, "expires_ms": 0}])


def take(session: Session, name: str, who: str, now: int, until: int) -> bool:
    """Take or extend a lease that `who` holds or that has expired; return whether `who` holds it now."""
    return session.execute(TAKE, key=name, who=who, now=now, until=until) > 0


def give_back(session: Session, names: Sequence[str], who: str) -> None:
    """End the leases, among some names, that `who` holds."""
    session.execute(GIVE_BACK, names=list(names), who=who)
