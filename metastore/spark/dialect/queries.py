"""Run statements that read transactional tables and write none: queries, EXPLAIN, and writes to other tables."""

from __future__ import annotations

from pyspark.sql import DataFrame

from metastore.spark.dialect.jvm import Node, is_command
from metastore.spark.dialect.session import Names, SqlSession
from metastore.spark.dialect.sources import Sources
from metastore.spark.transaction.readers import LEASE, Reader


def query(session: SqlSession, names: Names, text: str, plan: Node) -> DataFrame | None:
    """Run a statement over a snapshot of the transactional tables that it reads; None where it reads none.

    The frame holds the snapshot as a frame of `AcidTable.toDF` does; within a transaction it can be computed until that ends.
    """
    sources = Sources(session, names)
    text = sources.replaced(text, plan)
    if not sources.tables:
        return None
    if session.transaction is not None:
        transaction = session.transaction
        transaction.lock_to_read(sources.tables)
        transaction.pin(sources.tables)
        try:
            with sources.shown(transaction.rows):
                return session.plain(text)
        finally:
            transaction.pin([])
    reader = Reader(session.spark, session.uri, [(table.database, table.name) for table in sources.tables], LEASE)
    try:
        with sources.shown(reader.rows):
            frame = session.plain(text)
    except BaseException:
        reader.close()
        raise
    if is_command(frame):
        reader.close()
    return frame
