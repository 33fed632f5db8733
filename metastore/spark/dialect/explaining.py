"""EXPLAIN of changes and inserts on transactional tables: how Spark finds the rows. Nothing is written."""

from __future__ import annotations

from pyspark.sql import DataFrame

from metastore.spark.dialect.changing import condition_of
from metastore.spark.dialect.inserting import inserts, is_insert
from metastore.spark.dialect.jvm import Node, explained, kind
from metastore.spark.dialect.relations import is_change, target
from metastore.spark.dialect.session import Names, SqlSession
from metastore.spark.dialect.sources import Sources
from metastore.spark.session.catalog import AcidTableInfo
from metastore.spark.transaction.readers import LEASE, Reader


def explain(session: SqlSession, names: Names, text: str, plan: Node) -> DataFrame | None:
    """Return the plan of the query for the rows of a change or an insert; None for a write to another table, and for other statements."""
    inner = plan.logicalPlan()
    if not is_change(inner) and not is_insert(inner):
        return None
    written = [inner] if is_change(inner) else inserts(inner)
    found = [(name, names.transactional(name[0])) for each in written if (name := target(each)) is not None]
    tables = [info for _, info in found if info is not None]
    if not tables:
        return None
    sources = Sources(session, names)
    text = sources.replaced(text, plan)
    every = {info.full_name: info for info in [*sources.tables, *(tables if is_change(inner) else [])]}
    mode = str(plan.mode().name())
    reader = Reader(session.spark, session.uri, [(info.database, info.name) for info in every.values()], LEASE)
    try:
        with sources.shown(reader.rows):
            inner = session.doors.parse(text).logicalPlan()
            frames = [_found(session, inner, found[0][0][1], reader, tables[0])] if is_change(inner) else _rows(session, inner)
            return session.spark.createDataFrame([("\n".join(explained(frame, mode) for frame in frames),)], "plan string")
    finally:
        reader.close()


def _rows(session: SqlSession, plan: Node) -> list[DataFrame]:
    wrap = plan if kind(plan) == "UnresolvedWith" else None
    return [session.doors.frame(each.query() if wrap is None else session.doors.inner_query(wrap, each.query())) for each in inserts(plan)]


def _found(session: SqlSession, plan: Node, alias: str, reader: Reader, info: AcidTableInfo) -> DataFrame:
    rows = reader.rows(next(each for each in reader.tables if each.full_name == info.full_name)).alias(alias)
    if kind(plan) == "MergeIntoTable":
        return rows.join(session.doors.frame(plan.sourceTable()), session.doors.column(plan.mergeCondition()))
    condition = condition_of(session.doors, plan)
    return rows if condition is None else rows.where(condition)
