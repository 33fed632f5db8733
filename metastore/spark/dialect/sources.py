"""Show transactional tables to Spark: their names in a text are replaced by temporary views of the rows that one snapshot sees.

sources = Sources(session, names)
text = sources.replaced(text, plan)           # SELECT * FROM __acid_7 AS `emp`
with sources.shown(transaction.rows):         # the views are there for as long as plans are made
    session.plain(text)
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from pyspark.sql import DataFrame

from metastore.rules.catalog.table_kinds import is_transactional
from metastore.spark.dialect.jvm import Node
from metastore.spark.dialect.relations import Relation, relations
from metastore.spark.dialect.session import Names, SqlSession, View
from metastore.spark.grammar.tokens import Token, WrongStatement, tokens
from metastore.spark.session.catalog import AcidTableInfo

DEPTH = 20
"""The most levels of views within views that are followed."""
ROW_ID = "ROW__ID"
_FILE_NAME = "INPUT__FILE__NAME"
_NUMBERS = itertools.count()
Edit = tuple[int, int, str]
"""A piece of a text, from and to, and its replacement."""


def in_quotes(name: str) -> str:
    """Return a name in back quotes."""
    return f"`{name.replace('`', '``')}`"


def edited(text: str, edits: Sequence[Edit]) -> str:
    """Return a text with pieces of it replaced."""
    for start, end, new in sorted(edits, reverse=True):
        text = text[:start] + new + text[end:]
    return text


class Sources:
    """The transactional tables that one statement reads, and the views over them."""

    def __init__(self, session: SqlSession, names: Names) -> None:
        self._session = session
        self._names = names
        self._shown: dict[str, tuple[AcidTableInfo, str]] = {}
        self._views: dict[str, tuple[str | None, str, View]] = {}
        self._row_ids = False

    @property
    def tables(self) -> list[AcidTableInfo]:
        """The tables, each once."""
        return [info for info, _ in self._shown.values()]

    def replaced(self, text: str, plan: Node) -> str:
        """Return a statement that reads views in the place of transactional tables. WrongStatement for a clause that they do not allow."""
        out, is_other = self._replaced(text, relations(self._session.doors, plan), None, 0)
        self._row_ids = is_other and _asks_row_ids(text)
        return out

    def _replaced(self, text: str, found: Sequence[Relation], database: str | None, depth: int) -> tuple[str, bool]:
        """Return a text, and whether it reads a transactional table; `database` is for a view's unqualified names."""
        pieces = tokens(text) if found else []
        edits: list[Edit] = []
        is_other = False
        for each in found:
            means = self._names.find(each.names, database)
            view = self._view_of(means, each, depth)
            if view is not None:
                is_other = True
                edits += _edits(pieces, each, view)
            elif database is not None and len(each.names) == 1 and means is not None:
                edits.append((each.start, each.end, f"{in_quotes(database)}.{in_quotes(each.names[0])}"))
        return edited(text, edits), is_other

    def _view_of(self, means: AcidTableInfo | View | None, relation: Relation, depth: int) -> str | None:
        """Return the temporary view that replaces a relation, None where Spark reads it itself."""
        if isinstance(means, View):
            return self._nested(means, depth)
        if means is None or not is_transactional(means.table):
            return None
        if relation.is_travelled:
            raise WrongStatement(
                f"{means.full_name} is transactional: SQL reads its rows as they are now; leave VERSION, TIMESTAMP or SYSTEM_TIME AS OF out"
            )
        if means.full_name not in self._shown:
            self._shown[means.full_name] = (means, f"__acid_{next(_NUMBERS)}")
        return self._shown[means.full_name][1]

    def _nested(self, view: View, depth: int) -> str | None:
        """Return the temporary view that replaces a view, None for one of plain tables alone."""
        if depth == DEPTH:
            raise WrongStatement(f"{view.name}: views are nested more than {DEPTH} deep, or one reads itself")
        if view.name not in self._views:
            doors = self._session.doors
            text, is_other = self._replaced(view.text, relations(doors, doors.parse(view.text)), view.database, depth + 1)
            self._views[view.name] = (f"__acid_{next(_NUMBERS)}" if is_other else None, text, view)
        return self._views[view.name][0]

    @contextmanager
    def shown(self, rows: Callable[..., DataFrame]) -> Iterator[None]:
        """A context with the views in the session; `rows` returns a table's rows, with `row_id` also their ids. Make plans within it."""
        made: list[str] = []
        spark = self._session.spark
        try:
            for info, shown in self._shown.values():
                rows(info, row_id=self._row_ids).createOrReplaceTempView(shown)
                made.append(shown)
            for name, text, view in self._views.values():
                if name is None:
                    continue
                frame = self._session.plain(text)
                if view.columns and len(view.columns) != len(frame.columns):
                    raise WrongStatement(
                        f"the view {view.name} has {len(view.columns)} columns, and its query {len(frame.columns)}: create it again"
                    )
                (frame.toDF(*view.columns) if view.columns else frame).createOrReplaceTempView(name)
                made.append(name)
            yield
        finally:
            for name in made:
                spark.catalog.dropTempView(name)


def _edits(pieces: Sequence[Token], relation: Relation, view: str) -> list[Edit]:
    """Return the changes that let a text read a view under the name of a relation."""
    edits: list[Edit] = [(relation.start, relation.end, view)]
    before = [piece.word for piece in pieces if piece.end <= relation.start][-2:]
    if not relation.has_alias and "TABLE" not in before[-1:] and before != ["TABLE", "("]:
        place = _behind_sample(pieces, relation.end)
        alias = f" AS {in_quotes(relation.names[-1])}"
        edits = [(relation.start, relation.end, view + alias)] if place == relation.end else [*edits, (place, place, alias)]
    if len(relation.names) > 1 and not relation.has_alias:
        edits += _qualifiers(pieces, relation)
    return edits


def _behind_sample(pieces: Sequence[Token], place: int) -> int:
    """Return the place for the alias of a table that ends at `place`: behind its TABLESAMPLE."""
    later = [piece for piece in pieces if piece.start >= place]
    for word in ("TABLESAMPLE", "REPEATABLE"):
        if later and later[0].word == word:
            depth = 0
            for number, piece in enumerate(later):
                depth += (piece.text == "(") - (piece.text == ")")
                if piece.text == ")" and depth == 0:
                    place, later = piece.end, later[number + 1 :]
                    break
    return place


def _qualifiers(pieces: Sequence[Token], relation: Relation) -> list[Edit]:
    """Return the changes that leave the database out of `database.table.column`."""
    names = [name.lower() for name in relation.names]
    length = 2 * len(names)
    out: list[Edit] = []
    for number in range(len(pieces) - length):
        part = pieces[number : number + length]
        if [piece.name.lower() for piece in part[::2]] == names and all(piece.text == "." for piece in part[1::2]):
            out.append((part[0].start, part[length - 2].start, ""))
    return out


def _asks_row_ids(text: str) -> bool:
    """Return whether a text names the ids of rows. WrongStatement where it asks for all columns beside them."""
    pieces = tokens(text)
    names = {piece.name.upper() for piece in pieces if piece.kind in ("word", "quoted")}
    if _FILE_NAME in names:
        raise WrongStatement(f"{_FILE_NAME} is not supported on Spark: use input_file_name()")
    stars = any(
        piece.text == "*" and before.word in ("SELECT", "DISTINCT", "ALL", ",", ".") for before, piece in itertools.pairwise(pieces)
    )
    if ROW_ID in names and stars:
        raise WrongStatement(f"{ROW_ID} and * do not go together on Spark, where * would hold the ids too: name the columns")
    return ROW_ID in names
