"""Read a statement that is Hive's alone, by its first words.

read("ALTER TABLE emp COMPACT 'major' AND WAIT")       Compact(table=["emp"], kind="major", waits=True, ..)
read("SELECT 1")                                        None: Spark's own parser reads it
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from metastore.spark.grammar.alterations import alter
from metastore.spark.grammar.creating import create_table
from metastore.spark.grammar.readers import abort, analyze, create_view, describe, drop, explain, export_import, keep, show, truncate
from metastore.spark.grammar.statements import OfTable, Refused, Transact
from metastore.spark.grammar.tokens import Reader, WrongStatement

_ASKS = re.compile(r"(?i)\btransactional['\"`]?\s*=\s*['\"]?true|\bcreate\s+transactional\b")


@dataclass(frozen=True)
class Unread(OfTable):
    """A statement that can not be read. It fails with `error` if its table is transactional; for another table Spark may accept it."""

    error: WrongStatement


def read(text: str) -> object | None:
    """Return the parsed statement, None for one that Spark's own parser reads. WrongStatement."""
    reader = Reader(text)
    word = reader.take().word
    if word not in _READERS:
        return None
    try:
        return _READERS[word](reader, word)
    except WrongStatement as error:
        table = _table(text)
        if table is None:
            raise
        return Unread(table, error)


def _table(text: str) -> list[str] | None:
    """Return the table that an unreadable statement names, None where it names none."""
    reader = Reader(text)
    first = reader.take().word
    if first not in ("DESCRIBE", "DESC"):
        while not reader.takes("TABLE"):
            if reader.at_end():
                return None
            reader.take()
    for words in (("TABLE",), ("EXTENDED",), ("FORMATTED",), ("IF", "NOT", "EXISTS"), ("IF", "EXISTS")):
        reader.takes(*words)
    try:
        return reader.names()
    except WrongStatement:
        return None


def _create(reader: Reader, _: str) -> object | None:
    replace = reader.takes("OR", "REPLACE")
    if reader.takes("MATERIALIZED", "VIEW"):
        return Refused("materialized views are Hive's: make one there, or a table of the rows with CREATE TABLE .. AS SELECT")
    start = reader.place
    try:
        found = create_table(reader, replace=replace)
    except WrongStatement:
        if _ASKS.search(reader.text):
            raise
        return None  # Spark may accept it for a table that is not transactional
    if found is not None:
        return found
    reader.place = start
    return create_view(reader, replace=replace)


def _load(reader: Reader, _: str) -> object | None:
    while not reader.at_end() and not reader.takes("INTO", "TABLE"):
        reader.take()
    reason = "LOAD DATA moves files without reading their rows: insert the rows, as in INSERT INTO t SELECT * FROM parquet.`/path`"
    return None if reader.at_end() else Refused(reason, reader.names())


def _transact(reader: Reader, word: str) -> object | None:
    if word == "START":
        reader.expect("TRANSACTION")
        if not reader.at_end():
            reader.fail("the end of the statement (there are no isolation levels: each statement reads a snapshot of its own)")
    reader.takes("WORK")
    return Transact(word) if reader.at_end() else None


_READERS: dict[str, Callable[[Reader, str], object | None]] = {
    "SHOW": lambda reader, _: show(reader),
    "ABORT": lambda reader, _: abort(reader),
    "ALTER": lambda reader, _: alter(reader),
    "DESCRIBE": lambda reader, _: describe(reader),
    "DESC": lambda reader, _: describe(reader),
    "TRUNCATE": lambda reader, _: truncate(reader),
    "DROP": lambda reader, _: drop(reader),
    "ANALYZE": lambda reader, _: analyze(reader),
    "CREATE": _create,
    "LOAD": _load,
    "START": _transact,
    "COMMIT": _transact,
    "ROLLBACK": _transact,
    **dict.fromkeys(("CACHE", "UNCACHE", "REFRESH", "MSCK"), keep),
    "EXPLAIN": lambda reader, _: explain(reader),
    **dict.fromkeys(("EXPORT", "IMPORT", "LOCK", "UNLOCK"), export_import),
}


def with_columns(text: str, columns: Callable[[list[str]], list[str] | None]) -> str:
    """Return a MERGE whose `INSERT VALUES` name the columns, as Spark requires; `columns` returns a table's, or None."""
    reader = Reader(text)
    if reader.take().word != "MERGE" or not reader.takes("INTO"):
        return text
    table = reader.names()
    places = []
    while not reader.at_end():
        if reader.takes("INSERT", "VALUES"):
            reader.place -= 1
            places.append(reader.next().start)
        else:
            reader.take()
    names = columns(table) if places else None
    for place in reversed(places if names else []):
        text = f"{text[:place]}({', '.join(f'`{name}`' for name in names or [])}) {text[place:]}"
    return text
