"""Rows of calls that take data away: whether they were committed. One function per statement; never touches a directory."""

from __future__ import annotations

import sqlalchemy as sa

from metastore.store.core.database import Session
from metastore.store.schema.model import deletions

ROW = deletions.c
TAKEN_BACK = sa.select(ROW.taken_back).where(ROW.number == sa.bindparam("key")).with_for_update()
DELETE_OLD = sa.delete(deletions).where(ROW.number < sa.bindparam("before"))


def insert(session: Session, number: str) -> None:
    """Note, within a call's transaction, that it takes data away under a number."""
    session.enqueue_insert(deletions, ("number", "taken_back"), [(number, 0)])


def was_committed(session: Session, number: str) -> bool:
    """Wait for the end of a call's transaction; return whether it was committed. One that was not can not commit from now on."""
    session.insert_missing(deletions, [{"number": number, "taken_back": 1}])
    return session.number(TAKEN_BACK, key=number) == 0


def delete_before(session: Session, number: str) -> None:
    """Remove the rows of calls whose numbers are below another."""
    session.execute(DELETE_OLD, before=number)
