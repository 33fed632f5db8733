"""Clauses that SQLAlchemy does not have: lists as parameters, and texts for each kind of database."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement


class PerDatabase(sa.ClauseElement):
    """A statement with an `own` form for some kinds of database, by the kind, and with the usual form for the others."""

    inherit_cache = False

    def __init__(self, usual: sa.ClauseElement, **own: sa.ClauseElement) -> None:
        self._usual, self._own = usual, own

    def of(self, kind: str) -> Any:
        """Return the statement for one kind of database."""
        return self._own.get(kind, self._usual)

    def compile(self, bind: Any = None, dialect: sa.Dialect | None = None, **options: Any) -> Any:
        """Compile the form of the statement for the dialect's kind of database."""
        assert dialect is not None
        return self.of(dialect.name).compile(bind, dialect, **options)


class listed(FunctionElement[str]):  # noqa: N801  # a function in statements
    """All values of a text column as one text, with commas between them, in no order; NULL for none."""

    inherit_cache = True
    name = "listed"
    type = sa.String()


@compiles(listed)
def _listed(element: listed, compiler: SQLCompiler, **kw: Any) -> str:
    return f"group_concat({compiler.process(element.clauses, **kw)})"


@compiles(listed, "postgresql")
def _listed_postgresql(element: listed, compiler: SQLCompiler, **kw: Any) -> str:
    return f"string_agg({compiler.process(element.clauses, **kw)}, ',')"


class _Condition(sa.ColumnElement[bool]):
    """A condition that is written in its own way for each kind of database."""

    inherit_cache = False
    type = sa.Boolean()
    _is_implicitly_boolean = True
    """Without it, SQLAlchemy writes `(...) = 1` for SQLite and MySQL, which then do not use an index."""


class Among(_Condition):
    """`column IN (the list bound as name)`: one parameter for a list of any length."""

    def __init__(self, column: sa.ColumnElement[Any], name: str) -> None:
        self.column = column
        self.bind = sa.bindparam(name, type_=sa.String())


@compiles(Among, "sqlite")
def _among_sqlite(element: Among, compiler: SQLCompiler, **kw: Any) -> str:
    return f"{compiler.process(element.column, **kw)} IN (SELECT value FROM json_each({compiler.process(element.bind, **kw)}))"


@compiles(Among, "postgresql")
def _among_postgresql(element: Among, compiler: SQLCompiler, **kw: Any) -> str:
    return f"{compiler.process(element.column, **kw)} = ANY({element.bind.key and f'%({element.bind.key})s'})"


@compiles(Among, "mysql")
def _among_mysql(element: Among, compiler: SQLCompiler, **kw: Any) -> str:
    return f"{compiler.process(element.column, **kw)} IN %({element.bind.key})s"


class AmongKeys(_Condition):
    """A condition for several columns: the values of a row are at one position of lists, one list for each column.

    PostgreSQL compares the columns together. The other databases compare each column by itself with its list, and may find more rows. For
    conditions by column, PostgreSQL would use the first column alone as long as it does not know the number of rows.
    """

    def __init__(self, **columns: sa.ColumnElement[Any]) -> None:
        self.each = [Among(column, name) for name, column in columns.items()]


@compiles(AmongKeys)
def _among_keys(element: AmongKeys, compiler: SQLCompiler, **kw: Any) -> str:
    return " AND ".join(compiler.process(each, **kw) for each in element.each)


@compiles(AmongKeys, "postgresql")
def _among_keys_postgresql(element: AmongKeys, compiler: SQLCompiler, **kw: Any) -> str:
    columns = ", ".join(compiler.process(each.column, **kw) for each in element.each)
    lists = ", ".join(f"CAST(%({each.bind.key})s AS text[])" for each in element.each)
    return f"({columns}) IN (SELECT * FROM unnest({lists}))"


def bound(columns: Iterable[str], but: Collection[str] = ()) -> dict[str, sa.BindParameter[Any]]:
    """Return a parameter for each of the columns except `but`, by name: the values of an insert or update."""
    return {name: sa.bindparam(name) for name in columns if name not in but}


def constant(value: int | str) -> sa.ColumnElement[Any]:
    """Return a value, which contains no quote, as a part of the statement's text instead of a parameter."""
    return sa.literal_column(str(value) if isinstance(value, int) else f"'{value}'")


def bare(column: sa.ColumnElement[str]) -> sa.ColumnElement[str]:
    """Return a column as an expression for which no index is used: rows are to be found by the other conditions.

    PostgreSQL may estimate fewer rows with a value of the column than with the ids that are asked for.
    """
    return column.concat(sa.literal_column("''"))


def unsynced(clause: sa.Update | sa.Delete) -> PerDatabase:
    """Return an update or delete whose commit PostgreSQL reports before it is on disk: a crash may undo it.

    Its whole transaction does not wait for the disk, so it has to be the only statement of one.
    """
    off = sa.func.set_config(*(sa.literal_column(text) for text in ("'synchronous_commit'", "'off'", "true")))
    return PerDatabase(clause, postgresql=clause.returning(off))


def looked_up(rows: sa.Select[Any], column: sa.Column[Any], name: str) -> PerDatabase:
    """Return a query of the rows whose column is in the list bound as `name`, which `ascending` made.

    PostgreSQL looks up one item after the other. Otherwise, as long as it estimates few rows, it would read all of them and compare each
    with the whole list: to find a thousand of ten thousand took 84 ms instead of 2.
    """
    given = sa.func.unnest(sa.cast(sa.bindparam(name), postgresql.ARRAY(sa.Text()))).table_valued("item").render_derived(name="given")
    found = rows.where(column == given.c.item).offset(sa.literal_column("0")).lateral("found")
    return PerDatabase(
        rows.where(Among(column, name)).order_by(column),
        postgresql=sa.select(*found.c).select_from(given.join(found, sa.true())).order_by(found.corresponding_column(column)),
    )


def ascending(items: Iterable[str]) -> list[str]:
    """Return the distinct items, in the order in which the databases compare text."""
    return sorted({*items})
