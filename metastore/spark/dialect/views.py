"""Run CREATE VIEW over transactional tables. A permanent view is stored as by Hive: its names are qualified."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import DataFrame

from metastore import idl
from metastore.idl import FieldSchema, SerDeInfo, StorageDescriptor, Table
from metastore.rules.catalog.table_kinds import is_transactional
from metastore.spark.definition.tables import of_schema
from metastore.spark.dialect.relations import relations
from metastore.spark.dialect.session import Names, SqlSession, View
from metastore.spark.dialect.sources import Edit, Sources, edited, in_quotes
from metastore.spark.grammar.statements import CreateView, Keep
from metastore.spark.grammar.tokens import WrongStatement
from metastore.spark.session.catalog import AcidTableInfo

_INPUT = "org.apache.hadoop.mapred.SequenceFileInputFormat"
_OUTPUT = "org.apache.hadoop.hive.ql.io.HiveSequenceFileOutputFormat"
"""The formats that Hive writes into the definition of a view."""


def create_view(session: SqlSession, names: Names, statement: CreateView, run: Callable[[str], DataFrame]) -> DataFrame | None:
    """Make a view; None for one of other tables. WrongStatement, and the Thrift exceptions of the metastore."""
    plan = session.doors.parse(statement.query)
    sources = Sources(session, names)
    sources.replaced(statement.query, plan)
    if not sources.tables:
        return None
    text = _whole(session, names, statement)
    frame = run(statement.query)
    columns = [name for name, _ in statement.columns] or [name.lower() for name in frame.columns]
    if len(columns) != len(frame.columns):
        raise WrongStatement(f"the view {'.'.join(statement.table)} has {len(columns)} columns, and its query {len(frame.columns)}")
    if twice := sorted({name for name in columns if columns.count(name) > 1}):
        raise WrongStatement(
            f"the view {'.'.join(statement.table)} has the column {', '.join(twice)} twice: give names, as in CREATE VIEW v (a, b)"
        )
    frame = frame.toDF(*columns)
    if statement.temporary:
        _temporary(session, statement, View(".".join(statement.table), text, tuple(columns)), frame)
    else:
        session.outside("CREATE VIEW")
        _permanent(names, statement, text, frame)
    return session.nothing()


def _whole(session: SqlSession, names: Names, statement: CreateView) -> str:
    """Return the query of a view with the databases of its tables, so that it means the same wherever it is read."""
    edits: list[Edit] = []
    for each in relations(session.doors, session.doors.parse(statement.query)):
        found = names.find(each.names)
        is_temporary = session.doors.temporary_view([name.lower() for name in each.names]) is not None
        if is_temporary and not statement.temporary:
            raise WrongStatement(f"{'.'.join(each.names)} is a temporary view, which a permanent view can not read: CREATE TEMPORARY VIEW")
        if len(each.names) == 1 and not is_temporary and found is not None:
            edits.append((each.start, each.end, f"{in_quotes(names.database)}.{in_quotes(each.names[0].lower())}"))
    return edited(statement.query, edits)


def _temporary(session: SqlSession, statement: CreateView, view: View, frame: DataFrame) -> None:
    name = statement.table[-1]
    if len(statement.table) > 1:
        raise WrongStatement(f"the temporary view {'.'.join(statement.table)} does not belong to a database: write {name}")
    key = ("global_temp", name.lower()) if statement.temporary == "GLOBAL" else (name.lower(),)
    if statement.if_not_exists and session.doors.temporary_view(key) is not None:
        return
    if statement.temporary == "GLOBAL":
        (frame.createOrReplaceGlobalTempView if statement.replace else frame.createGlobalTempView)(name)
    else:
        (frame.createOrReplaceTempView if statement.replace else frame.createTempView)(name)
    session.views[key] = View(view.name, view.text, view.columns, None, session.doors.temporary_view(key) or 0)


def _permanent(names: Names, statement: CreateView, text: str, frame: DataFrame) -> None:
    place = names.place(statement.table)
    if place is None:
        raise WrongStatement(f"{'.'.join(statement.table)} is in another catalog, which can not read transactional tables")
    comments = dict(statement.columns)
    properties = dict(statement.properties) | ({} if statement.comment is None else {"comment": statement.comment})
    table = Table(
        dbName=place[0],
        tableName=place[1],
        owner=frame.sparkSession.sparkContext.sparkUser(),
        tableType="VIRTUAL_VIEW",
        viewOriginalText=statement.query,
        viewExpandedText=text,
        partitionKeys=[],
        parameters=properties,
        sd=StorageDescriptor(
            cols=[FieldSchema(name=each.name, type=each.kind, comment=comments.get(each.name)) for each in of_schema(frame.schema).columns],
            inputFormat=_INPUT,
            outputFormat=_OUTPUT,
            serdeInfo=SerDeInfo(parameters={}),
            bucketCols=[],
            sortCols=[],
            parameters={},
            numBuckets=-1,
        ),
    )
    try:
        old = AcidTableInfo.read(names.client, *place).table
    except idl.NoSuchObjectException:
        names.client.create_table_req(
            idl.CreateTableRequest(table=table, processorCapabilities=["HIVESQL"], processorIdentifier="metastore-spark")
        )
        return
    if statement.if_not_exists:
        return
    if not statement.replace or old.tableType != "VIRTUAL_VIEW":
        raise WrongStatement(f"{'.'.join(place)} is there already: drop it, or, if it is a view, CREATE OR REPLACE VIEW")
    names.client.alter_table(*place, table)


def keep(session: SqlSession, names: Names, statement: Keep, run: Callable[[str], DataFrame]) -> DataFrame | None:
    """Run CACHE TABLE name AS a query, or a CACHE, UNCACHE, REFRESH or MSCK; None without a transactional table. WrongStatement."""
    if statement.query is not None:
        sources = Sources(session, names)
        sources.replaced(statement.query, session.doors.parse(statement.query))
        if not sources.tables:
            return None
        name = statement.table[-1]
        frame = run(statement.query)
        frame.createOrReplaceTempView(name)
        try:
            session.spark.catalog.cacheTable(name)
            if not statement.lazy:
                frame.count()
        except BaseException:
            session.spark.catalog.dropTempView(name)
            raise
        return session.nothing()
    found = names.find(statement.table)
    if not isinstance(found, AcidTableInfo) or not is_transactional(found.table):
        return None
    if statement.what == "CACHE":
        raise WrongStatement(f"{found.full_name} is transactional: cache its present rows with CACHE TABLE name AS SELECT ..")
    if statement.what == "MSCK":
        raise WrongStatement(
            f"{found.full_name} is transactional: its partitions are in the metastore; ALTER TABLE .. ADD PARTITION adds one"
        )
    return session.nothing()
