"""Find and read Hive's tables and columns, whose names differ between versions of its schema and kinds of database.

On PostgreSQL some names are in capitals and some are not. Columns differ between versions: a missing one is read as NULL, and a missing
table has no rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import sqlalchemy as sa

from metastore.store.core.clauses import Among
from metastore.store.core.database import Session
from metastore.store.drivers.contract import Row

PAGE = 5000
"""Rows of one query."""
_COLUMNS = {
    "postgresql": sa.text("SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = current_schema()"),
    "mysql": sa.text("SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = database()"),
}
_YES = frozenset({True, "1", "t", "T", "Y", "y", "true", b"\x01", b"1"})


def flag(value: Any) -> bool:
    """Return a truth value, which is a bit, a boolean, a number or a letter."""
    return value in _YES


class HiveSchema:
    """The tables of one database, in one session."""

    def __init__(self, session: Session, kind: str) -> None:
        self.session = session
        self._tables: dict[str, tuple[str, dict[str, str]]] = {}
        for table, column in session.rows(_COLUMNS[kind]):
            self._tables.setdefault(table.upper(), (table, {}))[1][column.upper()] = column
        self._made: dict[str, sa.TableClause] = {}
        self._clauses: dict[Any, Any] = {}
        self._empty: dict[str, bool] = {}

    def has(self, table: str, column: str | None = None) -> bool:
        """Return whether there is a table, and such a column of it."""
        return table in self._tables and (column is None or column in self._tables[table][1])

    def name_of(self, table: str) -> sa.sql.quoted_name:
        """Return the name of a table as this database spells it."""
        return _quoted(self._tables[table][0])

    def is_empty(self, table: str) -> bool:
        """Return whether a table has no rows, or is not there."""
        if table not in self._empty:
            self._empty[table] = not self.has(table) or not self.session.rows(self._select(table, ()).limit(1))
        return self._empty[table]

    def _select(self, table: str, columns: Sequence[str]) -> sa.Select[Any]:
        named = self._table(table)
        known = self._tables[table][1]
        found: list[Any] = [named.c[known[name]] if name in known else sa.null().label(name) for name in columns]
        return sa.select(*(found or [sa.literal_column("1")])).select_from(named)

    def _table(self, table: str) -> sa.TableClause:
        if table not in self._made:
            name, columns = self._tables[table]
            self._made[table] = sa.table(_quoted(name), *(sa.column(_quoted(column)) for column in columns.values()))
        return self._made[table]

    def _column(self, table: str, name: str) -> sa.ColumnElement[Any]:
        return self._table(table).c[self._tables[table][1][name]]

    def rows(self, table: str, *columns: str) -> Sequence[Row]:
        """Return all rows of a small table."""
        return () if self.is_empty(table) else self.session.rows(self._select(table, columns))

    def pages(self, table: str, key: str, *columns: str) -> Iterator[Sequence[Row]]:
        """Yield the rows of a table, a page at a time, ascending by a unique number, which comes first."""
        if self.is_empty(table):
            return
        statement = self._select(table, (key, *columns))
        number = self._column(table, key)
        first = statement.order_by(number).limit(PAGE)
        after = first.where(number > sa.bindparam("after"))
        rows = self.session.rows(first)
        while rows:
            yield rows
            rows = self.session.rows(after, after=rows[-1][0]) if len(rows) == PAGE else ()

    def above(self, table: str, by: str, value: int, *columns: str) -> Sequence[Row]:
        """Return the rows in which a column is above a number, that column first."""
        return () if self.is_empty(table) else self.session.rows(self._clause("above", table, (by, *columns), by), value=value)

    def numbers(self, table: str, column: str, by: str, value: int) -> Sequence[Row]:
        """Return one column of the rows in which another one has a value."""
        return self.session.rows(self._clause("numbers", table, (column,), by), value=value)

    def among(self, table: str, by: str, keys: Iterable[int], *columns: str, order: str | None = None) -> Iterator[Row]:
        """Yield the rows in which a column is among numbers, that column first. Rows of one number are in the order of another column."""
        given = sorted({key for key in keys if key is not None})
        if not given or self.is_empty(table):
            return
        clause = self._clause("among", table, (by, *columns), by, order)
        for begin in range(0, len(given), PAGE):
            yield from self.session.rows(clause, keys=given[begin : begin + PAGE])

    def grouped(self, table: str, by: str, keys: Iterable[int], *columns: str, order: str | None = None) -> dict[int, list[Row]]:
        """Return the rows of `among` without their first column, grouped by it."""
        found: dict[int, list[Row]] = {}
        for row in self.among(table, by, keys, *columns, order=order):
            found.setdefault(row[0], []).append(row[1:])
        return found

    def maps(self, table: str, by: str, keys: Iterable[int]) -> dict[int, dict[str, str]]:
        """Return parameters by the number of their owner; a value that is NULL is empty, as Hive has it."""
        found: dict[int, dict[str, str]] = {}
        for owner, name, value in self.among(table, by, keys, "PARAM_KEY", "PARAM_VALUE"):
            found.setdefault(owner, {})[name] = value or ""
        return found

    def lists(self, table: str, by: str, keys: Iterable[int], column: str) -> dict[int, list[Any]]:
        """Return lists, whose items are numbered, by the number of their owner."""
        return {key: [row[0] for row in rows] for key, rows in self.grouped(table, by, keys, column, order="INTEGER_IDX").items()}

    def _clause(self, use: str, table: str, columns: tuple[str, ...], by: str, order: str | None = None) -> Any:
        key = (use, table, columns, by, order)
        if key not in self._clauses:
            statement = self._select(table, columns)
            column = self._column(table, by)
            if use == "among":
                statement = statement.where(Among(column, "keys"))
                if order is not None:
                    statement = statement.order_by(column, self._column(table, order))
            elif use == "above":
                statement = statement.where(column > sa.bindparam("value"))
            else:
                statement = statement.where(column == sa.bindparam("value"))
            self._clauses[key] = statement
        return self._clauses[key]


def _quoted(name: str) -> sa.sql.quoted_name:
    return sa.sql.quoted_name(name, True)
