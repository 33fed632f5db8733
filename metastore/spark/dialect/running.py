"""Run one statement in a session: by this package where it names transactional tables, else by Spark."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from functools import partial
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from metastore.acid.folders.table import NotTransactional
from metastore.rules.catalog.table_kinds import is_transactional
from metastore.spark.dialect import altering, analyzing, describing, showing, views
from metastore.spark.dialect.changing import change
from metastore.spark.dialect.creating import create
from metastore.spark.dialect.explaining import explain
from metastore.spark.dialect.inserting import insert, is_insert
from metastore.spark.dialect.jvm import kind, read_by_spark
from metastore.spark.dialect.queries import query
from metastore.spark.dialect.relations import is_change
from metastore.spark.dialect.session import Names, SqlSession
from metastore.spark.dialect.sources import edited
from metastore.spark.grammar import alterations, statements
from metastore.spark.grammar.creating import CreateTable
from metastore.spark.grammar.reading import Unread, read, with_columns
from metastore.spark.grammar.tokens import WrongStatement
from metastore.spark.grammar.tokens import statements as divided
from metastore.spark.migration import to_transactional
from metastore.spark.session.catalog import AcidTableInfo
from metastore.spark.session.connections import connected

Args = Mapping[str, Any] | Sequence[Any] | None


class ReadBlindly(NotTransactional):
    """Spark itself would read a transactional table, without its transactions."""


def sql(spark: SparkSession, text: str, args: Args = None) -> DataFrame:
    """Run a SQL statement, over transactional tables too, and return its rows as `spark.sql` does.

    All transactional tables of a statement are read at one moment and written in one transaction. UPDATE, DELETE and MERGE return the
    numbers of changed rows. WrongStatement for a statement that Spark lacks, with the remedy; else the errors of AcidTable's operations, of
    the metastore, and of Spark. ValueError where the session has no metastore. A statement that fails has written nothing.
    """
    session = SqlSession.of(spark)
    found = divided(text)
    if len(found) != 1:
        return session.plain(text, args)
    with connected(session.uri) as client:
        names = Names(session, client)
        frame = _run(session, names, session.doors.substituted(found[0]), args)
    if frame is not None:
        return frame
    frame = session.plain(text, args)
    check_not_blind(frame, names.plain)
    return frame


def check_not_blind(frame: DataFrame, plain: Container[str] = ()) -> None:
    """Raise ReadBlindly for a frame in which Spark reads a transactional table itself; `plain` as in `read_by_spark`."""
    if names := read_by_spark(frame, plain):
        raise ReadBlindly(
            f"Spark would read {', '.join(names)} without its transactions: name the table in the statement, not by IDENTIFIER or "
            "a view that Spark resolves, or use AcidTable"
        )


def _run(session: SqlSession, names: Names, text: str, args: Args) -> DataFrame | None:
    """Return the answer of a statement, None for a statement that Spark has to run."""
    own = read(text)
    if own is not None:
        frame = _own(session, names, own, args)
        if frame is not None or not _reads(own):
            return frame
    text = with_columns(text, partial(_columns, names))
    plan = session.doors.parse(text)
    named = session.doors.named(plan)
    if named is not None and not any(names.may_be_ours(each) for each in named):
        return None
    if args:
        names_before = text
        text = _with_values(session, text, plan, args)
        plan = session.doors.parse(text) if text != names_before else plan
    if kind(plan) == "ExplainCommand" and (frame := explain(session, names, text, plan)) is not None:
        return frame
    if is_change(plan) and (frame := change(session, names, text, plan)) is not None:
        return frame
    if is_insert(plan) and (frame := insert(session, names, text, plan)) is not None:
        return frame
    return query(session, names, text, plan)


def _reads(own: object) -> bool:
    """Return whether a statement that Spark has to run may still read transactional tables, as CREATE TABLE .. AS."""
    return isinstance(own, CreateTable) and own.query is not None


def _columns(names: Names, table: list[str]) -> list[str] | None:
    """Return the columns of a transactional table, None for any other."""
    info = names.transactional(table)
    return None if info is None else list(info.schema.names)


def _with_values(session: SqlSession, text: str, plan: Any, args: Mapping[str, Any] | Sequence[Any]) -> str:
    """Return a text with its parameters replaced by their values. WrongStatement for one without a value."""
    places = sorted({(start, end, name) for name, start, end in session.doors.parameters(plan)}, key=lambda each: each[0])
    by_name = {str(name).lower(): value for name, value in args.items()} if isinstance(args, Mapping) else {}
    by_place = iter(() if isinstance(args, Mapping) else args)
    edits = []
    for start, end, name in places:
        try:
            value = next(by_place) if name is None else by_name[name.lower()]
        except (StopIteration, KeyError):
            raise WrongStatement(f"the parameter {'?' if name is None else ':' + name} has no value: give it in args") from None
        edits.append((start, end, session.doors.literal(value)))
    return edited(text, edits)


def _own(session: SqlSession, names: Names, own: object, args: Args) -> DataFrame | None:
    """Run a statement that our own grammar has read."""
    run = partial(_inner, session, names, args=args)
    if isinstance(own, statements.Refused):
        if own.table is None or names.transactional(own.table) is not None:
            raise WrongStatement(own.reason)
        return None
    if isinstance(own, Unread):
        if names.transactional(own.table) is not None:
            raise own.error
        return None
    if isinstance(own, CreateTable):
        return create(session, names, own, run)
    if isinstance(own, statements.CreateView):
        return views.create_view(session, names, own, run)
    if isinstance(own, statements.Keep):
        return views.keep(session, names, own, run)
    if isinstance(own, statements.ShowTables):
        return describing.tables(session, names, own)
    if isinstance(own, statements.DropDatabase):
        altering.empty(session, names, own)
        return None
    if isinstance(own, statements.OfTable):
        return _of_table(session, names, own)
    return _of_session(session, names, own)


def _inner(session: SqlSession, names: Names, text: str, *, args: Args) -> DataFrame:
    """Run a query that is part of another statement."""
    frame = _run(session, names, text, args)
    return session.plain(text, args) if frame is None else frame


def _of_session(session: SqlSession, names: Names, own: object) -> DataFrame | None:
    if isinstance(own, statements.Transact):
        if own.word == "START":
            session.begin()
        else:
            session.end(commit=own.word == "COMMIT")
        return session.nothing()
    if isinstance(own, statements.ShowTransactions):
        return showing.transactions(session, names.client)
    if isinstance(own, statements.ShowLocks):
        return showing.locks(session, names, own)
    if isinstance(own, statements.ShowCompactions):
        return showing.compactions(session, names, own)
    assert isinstance(own, statements.Abort)
    return showing.abort(session, names.client, own)


def _of_table(session: SqlSession, names: Names, own: statements.OfTable) -> DataFrame | None:
    found = names.find(own.table)
    if not isinstance(found, AcidTableInfo):
        return None
    if not is_transactional(found.table):
        return _converted(session, found, own) if isinstance(own, alterations.SetProperties) else None
    if isinstance(own, statements.Compact):
        return showing.compact(session, names, found, own)
    if isinstance(own, statements.Describe):
        return describing.describe(session, names.client, found, own)
    if isinstance(own, statements.ShowOfTable):
        return describing.show(session, names.client, found, own)
    if isinstance(own, statements.Analyze):
        return analyzing.analyze(session, names.client, found, own)
    action: Callable[[], None]
    if isinstance(own, statements.Truncate):
        action = partial(altering.truncate, session, names, found, own)
    elif isinstance(own, statements.DropTable):
        action = partial(altering.drop_table, session, found, own)
    else:
        action = partial(altering.alter, session, names, found, own)
    action()
    return session.nothing()


def _converted(session: SqlSession, info: AcidTableInfo, statement: alterations.SetProperties) -> DataFrame | None:
    """Make a plain table transactional where a statement sets its properties to that; None for other properties."""
    given = {name.lower(): (value or "").lower() for name, value in statement.properties.items()}
    if given.get("transactional") != "true" or set(given) - {"transactional", "transactional_properties"}:
        return None
    session.outside("a change of a table's definition")
    kind_given = given.get("transactional_properties")
    insert_only = None if kind_given is None else kind_given == "insert_only"
    to_transactional(session.spark, f"`{info.database}`.`{info.name}`", insert_only=insert_only, uri=session.uri)
    return session.nothing()
