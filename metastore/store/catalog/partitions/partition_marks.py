"""Rows of marks that clients set on partitions, whether the partitions are there or not. One function per statement."""

from __future__ import annotations

import sqlalchemy as sa

from metastore.store.core.database import Session
from metastore.store.schema.model import partition_marks

MARK = partition_marks.c
ONE = sa.and_(MARK.table_id == sa.bindparam("table_key"), MARK.partition == sa.bindparam("partition_key"))
FIND = sa.select(MARK.time).where(ONE)
DELETE = sa.delete(partition_marks).where(ONE)
DELETE_OLD = sa.delete(partition_marks).where(MARK.time < sa.bindparam("before"))


def mark(session: Session, table_id: int, partition: str, time: int) -> None:
    """Set a mark, or the time of one that is there; `time` in milliseconds."""
    session.execute(DELETE, table_key=table_id, partition_key=partition)
    session.insert(partition_marks, table_id=table_id, partition=partition, time=time)


def is_marked(session: Session, table_id: int, partition: str) -> bool:
    """Return whether a mark is set."""
    return session.exists(FIND, table_key=table_id, partition_key=partition)


def delete_before(session: Session, time: int) -> None:
    """Remove the marks set before a time in milliseconds."""
    session.execute(DELETE_OLD, before=time)
