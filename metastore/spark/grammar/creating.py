"""CREATE TABLE as Hive writes it, and in Spark's spelling, for tables that are to be transactional."""

from __future__ import annotations

from dataclasses import dataclass, field

from metastore.spark.grammar.columns import Columns, listed
from metastore.spark.grammar.statements import Name
from metastore.spark.grammar.tokens import Reader


@dataclass
class CreateTable:
    """A CREATE TABLE; `query` is the query of CREATE TABLE .. AS, `like` the table of CREATE TABLE .. LIKE."""

    table: Name
    columns: Columns = field(default_factory=Columns)
    keys: Columns = field(default_factory=Columns)
    clustered_by: list[str] = field(default_factory=list)
    sorted_by: list[tuple[str, bool]] = field(default_factory=list)
    buckets: int = 0
    comment: str | None = None
    location: str | None = None
    properties: dict[str, str] = field(default_factory=dict)
    file_format: str | None = None
    classes: tuple[str, str, str] | None = None
    """Input format, output format, serde, where they are given."""
    serde: str | None = None
    serde_properties: dict[str, str] = field(default_factory=dict)
    transactional: bool = False
    """Whether the word TRANSACTIONAL is before TABLE."""
    if_not_exists: bool = False
    replace: bool = False
    like: Name | None = None
    query: str | None = None

    @property
    def is_transactional(self) -> bool:
        """Whether the statement asks for a transactional table."""
        said = {name.lower(): value.lower() for name, value in self.properties.items()}
        return self.transactional or said.get("transactional") == "true"


def create_table(reader: Reader, *, replace: bool) -> CreateTable | None:
    """Read the rest after CREATE [OR REPLACE]; None for an external or temporary table, and for other objects. WrongStatement."""
    transactional = reader.takes("TRANSACTIONAL") or reader.takes("MANAGED")
    if not reader.takes("TABLE"):
        return None
    if_not_exists = reader.takes("IF", "NOT", "EXISTS")
    out = CreateTable(reader.names(), transactional=transactional, replace=replace, if_not_exists=if_not_exists)
    if reader.takes("LIKE"):
        out.like = reader.names()
    elif reader.sees("(") and not _is_query(reader, 1):
        reader.expect("(")
        out.columns = listed(reader)
        reader.expect(")")
    while not reader.at_end():
        if reader.takes("AS") or _is_query(reader, 0):
            out.query = reader.rest()
        else:
            _clause(reader, out)
    return out


def _is_query(reader: Reader, ahead: int) -> bool:
    while reader.next(ahead).text == "(":
        ahead += 1
    return reader.next(ahead).word in ("SELECT", "WITH", "FROM", "VALUES") and reader.next(ahead + 1).kind != "end"


def _clause(reader: Reader, out: CreateTable) -> None:
    if reader.takes("COMMENT"):
        out.comment = reader.string()
    elif reader.takes("PARTITIONED", "BY"):
        reader.takes("SPEC")
        reader.expect("(")
        out.keys = listed(reader, types=False)
        reader.expect(")")
    elif reader.takes("CLUSTERED", "BY"):
        _clustered(reader, out)
    elif reader.takes("LOCATION"):
        out.location = reader.string()
    elif reader.takes("TBLPROPERTIES") or reader.takes("OPTIONS"):
        out.properties |= reader.properties()
    elif reader.takes("USING"):
        out.file_format = reader.identifier()
    elif reader.takes("STORED", "AS"):
        _stored(reader, out)
    elif reader.takes("ROW", "FORMAT"):
        _row_format(reader, out)
    elif reader.takes("WITH", "SERDEPROPERTIES"):
        out.serde_properties |= reader.properties()
    else:
        reader.fail("a clause of CREATE TABLE")


def _clustered(reader: Reader, out: CreateTable) -> None:
    out.clustered_by = [name.lower() for name in reader.listed()]
    if reader.takes("SORTED", "BY"):
        reader.expect("(")
        while True:
            name = reader.identifier().lower()
            out.sorted_by.append((name, reader.takes_one("ASC", "DESC") != "DESC"))
            if not reader.takes(","):
                break
        reader.expect(")")
    reader.expect("INTO")
    out.buckets = reader.number()
    reader.expect("BUCKETS")


def _stored(reader: Reader, out: CreateTable) -> None:
    if not reader.takes("INPUTFORMAT"):
        out.file_format = reader.identifier()
        return
    given = reader.string()
    reader.expect("OUTPUTFORMAT")
    out.classes = (given, reader.string(), "")


_DELIMITED = {
    ("FIELDS", "TERMINATED", "BY"): "field.delim",
    ("ESCAPED", "BY"): "escape.delim",
    ("COLLECTION", "ITEMS", "TERMINATED", "BY"): "collection.delim",
    ("MAP", "KEYS", "TERMINATED", "BY"): "mapkey.delim",
    ("LINES", "TERMINATED", "BY"): "line.delim",
    ("NULL", "DEFINED", "AS"): "serialization.null.format",
}


def _row_format(reader: Reader, out: CreateTable) -> None:
    if reader.takes("SERDE"):
        out.serde = reader.string()
        return
    reader.expect("DELIMITED")
    found = True
    while found:
        found = False
        for words, name in _DELIMITED.items():
            if reader.takes(*words):
                out.serde_properties[name] = reader.string()
                found = True
    if "field.delim" in out.serde_properties:
        out.serde_properties["serialization.format"] = out.serde_properties["field.delim"]
