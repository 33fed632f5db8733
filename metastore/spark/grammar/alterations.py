"""Alterations of a transactional table, and how ALTER TABLE is read."""

from __future__ import annotations

from dataclasses import dataclass, field

from metastore.spark.grammar.columns import Column, Columns, Constraint, column, constraint, listed
from metastore.spark.grammar.readers import compact
from metastore.spark.grammar.statements import Compact, Name, OfTable, Refused, Spec, partition, value
from metastore.spark.grammar.tokens import Reader

_BOUNDS = ("=", "<", ">", "!")


@dataclass(frozen=True)
class Rename(OfTable):
    to: Name


@dataclass(frozen=True)
class AddColumns(OfTable):
    columns: list[Column]
    replace: bool = False


@dataclass(frozen=True)
class ChangeColumn(OfTable):
    """The change of a column's name, type, comment or place; a field that is None stays unchanged."""

    name: str
    to: str | None = None
    kind: str | None = None
    comment: str | None = None
    after: str | None = None
    """The column behind which it is moved; empty for the first place."""
    constraints: list[Constraint] = field(default_factory=list)


@dataclass(frozen=True)
class SetProperties(OfTable):
    properties: dict[str, str | None]
    """The properties to set; one with None is removed."""


@dataclass(frozen=True)
class AddPartitions(OfTable):
    partitions: list[tuple[Spec, str | None]]
    """The values of each partition, and its location or None."""
    if_not_exists: bool = False


@dataclass(frozen=True)
class DropPartitions(OfTable):
    filters: list[list[tuple[str, str, str | None]]]
    """The conditions (column, operator, value) of each filter: all of them have to hold."""
    if_exists: bool = False


@dataclass(frozen=True)
class RenamePartition(OfTable):
    partition: Spec
    to: Spec


@dataclass(frozen=True)
class AddConstraint(OfTable):
    constraint: Constraint


@dataclass(frozen=True)
class DropConstraint(OfTable):
    name: str


def alter(reader: Reader) -> object | None:
    """Read the rest of a statement after ALTER; None unless it is about a table, and for forms that only Spark has."""
    if reader.takes("MATERIALIZED", "VIEW"):
        return Refused("materialized views are Hive's: alter it there")
    if not reader.takes("TABLE"):
        return None
    table = reader.names()
    spec = partition(reader)
    if reader.takes("COMPACT"):
        return compact(reader, table, spec)
    found = _alteration(reader, table, spec)
    if isinstance(found, Refused):
        return found
    reader.expect_end()
    return found


def _alteration(reader: Reader, table: Name, spec: Spec | None) -> OfTable | Refused | Compact:
    if reader.takes("RENAME", "TO"):
        if reader.takes("PARTITION"):
            reader.place -= 1
            to = partition(reader)
            return RenamePartition(table, spec or {}, to or {})
        return Rename(table, reader.names())
    if reader.takes("RENAME", "COLUMN"):
        name = reader.identifier().lower()
        reader.expect("TO")
        return ChangeColumn(table, name, to=reader.identifier().lower())
    if reader.takes("ADD", "COLUMNS") or reader.takes("ADD", "COLUMN"):
        return AddColumns(table, _columns(reader))
    if reader.takes("REPLACE", "COLUMNS"):
        return AddColumns(table, _columns(reader), replace=True)
    if (word := reader.takes_one("CHANGE", "ALTER")) is not None:
        reader.takes("COLUMN")
        return _change(reader, table) if word == "CHANGE" else _alter_column(reader, table)
    if reader.takes("SET", "TBLPROPERTIES"):
        return SetProperties(table, dict(reader.properties()))
    if reader.takes("UNSET", "TBLPROPERTIES"):
        reader.takes("IF", "EXISTS")
        return SetProperties(table, dict.fromkeys(_names_in_quotes(reader)))
    if reader.takes("ADD", "CONSTRAINT"):
        reader.place -= 1
        return AddConstraint(table, constraint(reader))
    if reader.takes("DROP", "CONSTRAINT"):
        return DropConstraint(table, reader.identifier().lower())
    if reader.sees("ADD", "IF") or reader.sees("ADD", "PARTITION"):
        return _add_partitions(reader, table)
    if reader.sees("DROP", "IF") or reader.sees("DROP", "PARTITION"):
        return _drop_partitions(reader, table)
    said = reader.rest()
    return Refused(
        f"ALTER TABLE {'.'.join(table)} {said[:80]}: not supported for transactional tables on Spark; supported: ADD, CHANGE, REPLACE and "
        "RENAME COLUMN(S), RENAME TO, SET TBLPROPERTIES, ADD, DROP and RENAME PARTITION, ADD and DROP CONSTRAINT, COMPACT",
        table,
    )


def _columns(reader: Reader) -> list[Column]:
    has_bracket = reader.takes("(")
    found = listed(reader)
    if has_bracket:
        reader.expect(")")
    reader.takes_one("CASCADE", "RESTRICT")
    return found.columns


def _change(reader: Reader, table: Name) -> ChangeColumn:
    """Read Hive's `CHANGE a b type`, and Spark's `CHANGE a TYPE type` and `CHANGE a b type`."""
    name = reader.identifier().lower()
    if reader.sees("TYPE") or reader.sees("COMMENT") or reader.sees("FIRST") or reader.sees("AFTER"):
        reader.place -= 1
        return _alter_column(reader, table)
    out = Columns()
    new = column(reader, out)
    after = _place(reader)
    reader.takes_one("CASCADE", "RESTRICT")
    return ChangeColumn(table, name, new.name, new.kind, new.comment, after, out.constraints)


def _alter_column(reader: Reader, table: Name) -> ChangeColumn:
    name = reader.identifier().lower()
    if reader.takes("TYPE"):
        inner = Columns()
        return ChangeColumn(table, name, kind=column(_with_name(reader), inner).kind)
    if reader.takes("COMMENT"):
        return ChangeColumn(table, name, comment=reader.string())
    after = _place(reader)
    if after is None:
        reader.fail("TYPE, COMMENT, FIRST or AFTER")
    return ChangeColumn(table, name, after=after)


def _with_name(reader: Reader) -> Reader:
    return Reader(f"c {reader.rest()}")


def _place(reader: Reader) -> str | None:
    if reader.takes("FIRST"):
        return ""
    return reader.identifier().lower() if reader.takes("AFTER") else None


def _names_in_quotes(reader: Reader) -> list[str]:
    reader.expect("(")
    out = [reader.string()]
    while reader.takes(","):
        out.append(reader.string())
    reader.expect(")")
    return out


def _add_partitions(reader: Reader, table: Name) -> AddPartitions:
    reader.expect("ADD")
    if_not_exists = reader.takes("IF", "NOT", "EXISTS")
    found: list[tuple[Spec, str | None]] = []
    while not reader.at_end():
        spec = partition(reader)
        if spec is None:
            reader.fail("PARTITION")
        found.append((spec or {}, reader.string() if reader.takes("LOCATION") else None))
        reader.takes(",")
    return AddPartitions(table, found, if_not_exists)


def _drop_partitions(reader: Reader, table: Name) -> DropPartitions:
    reader.expect("DROP")
    if_exists = reader.takes("IF", "EXISTS")
    filters = []
    while reader.takes("PARTITION"):
        reader.expect("(")
        terms = []
        while True:
            name = reader.identifier().lower()
            operator = ""
            while reader.next().text in _BOUNDS:
                operator += reader.take().text
            terms.append((name, operator or "=", value(reader)))
            if not reader.takes(","):
                break
        reader.expect(")")
        filters.append(terms)
        reader.takes(",")
    reader.takes_one("PURGE")
    return DropPartitions(table, filters, if_exists)
