"""Read the columns and constraints of a CREATE TABLE or ALTER TABLE as Hive writes them; types are not changed.

columns("id bigint NOT NULL, name varchar(20) COMMENT 'who'")
"""

from __future__ import annotations

from dataclasses import dataclass, field

from metastore.spark.grammar.tokens import Reader

_SYNONYMS = {
    "integer": "int",
    "long": "bigint",
    "short": "smallint",
    "byte": "tinyint",
    "numeric": "decimal",
    "dec": "decimal",
    "real": "float",
    "character": "char",
    "timestamp_ltz": "timestamp",
    "timestamp_ntz": "timestamp",
}
KEYS = ("PRIMARY", "UNIQUE", "FOREIGN")
_OF_TABLES = ("CONSTRAINT", *KEYS, "CHECK")
_OF_COLUMNS = ("CONSTRAINT", "NOT", "NULL", "PRIMARY", "UNIQUE", "DEFAULT", "CHECK", "REFERENCES", "COMMENT", "FIRST", "AFTER")


@dataclass(frozen=True)
class Column:
    """A column: `kind` is Hive's type as text, empty where only the name was given."""

    name: str
    kind: str
    comment: str | None = None


@dataclass(frozen=True)
class Constraint:
    """A constraint: `kind` is PRIMARY, UNIQUE, FOREIGN, NOT NULL, DEFAULT or CHECK; `text` the expression of a default or check."""

    kind: str
    columns: tuple[str, ...] = ()
    name: str | None = None
    text: str = ""
    references: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    """The table and the columns to which a foreign key refers."""
    enable: bool = True
    validate: bool = False
    rely: bool = False


@dataclass
class Columns:
    """The columns of a definition in their order, and the constraints on them."""

    columns: list[Column] = field(default_factory=list)
    constraints: list[Constraint] = field(default_factory=list)


def columns(text: str, *, types: bool = True) -> Columns:
    """Read columns that commas divide. With `types` False a column may be without one. WrongStatement."""
    reader = Reader(text)
    found = listed(reader, types=types)
    reader.expect_end()
    return found


def listed(reader: Reader, *, types: bool = True) -> Columns:
    """Take columns and constraints as long as commas follow. WrongStatement."""
    out = Columns()
    while True:
        if reader.next().word in _OF_TABLES and reader.next(1).kind != "end" and _is_constraint(reader):
            out.constraints.append(constraint(reader))
        else:
            column(reader, out, types=types)
        if not reader.takes(","):
            return out


def _is_constraint(reader: Reader) -> bool:
    """Return whether a constraint follows, not a column with such a name: the second word of a constraint is not a type."""
    return reader.sees("CONSTRAINT") or reader.sees("PRIMARY", "KEY") or reader.sees("FOREIGN", "KEY") or reader.next(1).text == "("


def column(reader: Reader, out: Columns, *, types: bool = True) -> Column:
    """Take a column with its constraints and comment, and add all to `out`. WrongStatement."""
    name = reader.identifier().lower()
    reader.takes(":")
    kind = kind_of(reader) if types or (reader.next().kind in ("word", "quoted") and not reader.sees("COMMENT")) else ""
    comment = None
    while (word := reader.next().word) in _OF_COLUMNS and word not in ("FIRST", "AFTER"):
        if reader.takes("COMMENT"):
            comment = reader.string()
        elif not reader.takes("NULL"):
            out.constraints.append(constraint(reader, name))
    out.columns.append(Column(name, kind, comment))
    return out.columns[-1]


def kind_of(reader: Reader) -> str:
    """Take a type and return it as Hive's metastore writes it: in lower case, without blanks. WrongStatement."""
    name = reader.identifier().lower()
    name = _SYNONYMS.get(name, name)
    if name == "double":
        reader.takes("PRECISION")
    if name == "char" and reader.takes("VARYING"):
        name = "varchar"
    if name == "timestamp" and reader.takes("WITH", "LOCAL", "TIME", "ZONE"):
        return "timestamp with local time zone"
    if name == "timestamp":
        reader.takes("WITHOUT", "TIME", "ZONE")
    if reader.takes("<"):
        return f"{name}<{_inner_kinds(reader, name)}>"
    if reader.sees("("):
        return f"{name}({','.join(part.strip() for part in reader.inner().split(','))})"
    return "decimal(10,0)" if name == "decimal" else name


def _inner_kinds(reader: Reader, name: str) -> str:
    out = []
    while not reader.takes(">"):
        if name == "struct":
            inner = reader.identifier().lower()
            reader.takes(":")
            out.append(f"{inner}:{kind_of(reader)}")
            reader.takes("NOT", "NULL")
            if reader.takes("COMMENT"):
                reader.string()
        else:
            out.append(kind_of(reader))
        if not reader.takes(",") and not reader.sees(">"):
            reader.fail("`,` or `>`")
    return ",".join(out)


def constraint(reader: Reader, column: str | None = None) -> Constraint:
    """Take a constraint, of a column or of the whole table. WrongStatement."""
    name = reader.identifier().lower() if reader.takes("CONSTRAINT") else None
    names: tuple[str, ...] = () if column is None else (column,)
    text = ""
    references: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    if reader.takes("NOT", "NULL"):
        kind = "NOT NULL"
    elif reader.takes("DEFAULT"):
        kind, text = "DEFAULT", _expression(reader)
    elif reader.takes("CHECK"):
        kind, text = "CHECK", reader.inner().strip()
    elif reader.takes("PRIMARY", "KEY"):
        kind = "PRIMARY"
    elif reader.takes("UNIQUE"):
        kind = "UNIQUE"
    elif reader.takes("FOREIGN", "KEY") or reader.sees("REFERENCES"):
        kind = "FOREIGN"
    else:
        reader.fail("a constraint")
    if kind in KEYS and column is None:
        names = tuple(each.lower() for each in reader.listed())
    if kind == "FOREIGN":
        reader.expect("REFERENCES")
        references = tuple(each.lower() for each in reader.names()), tuple(each.lower() for each in reader.listed())
    enable, validate, rely = _options(reader, kind not in KEYS)
    return Constraint(kind, names, name, text, references, enable, validate, rely)


def _options(reader: Reader, enable: bool) -> tuple[bool, bool, bool]:
    """Read the words on enforcing: (enable, validate, rely). An enforced constraint is relied on, as in Hive."""
    validate, rely = False, enable
    while True:
        if reader.takes("NOT", "ENFORCED") or reader.takes("DISABLE"):
            enable = rely = False
        elif reader.takes("ENFORCED") or reader.takes("ENABLE"):
            enable = True
        elif (word := reader.takes_one("VALIDATE", "NOVALIDATE")) is not None:
            validate = word == "VALIDATE"
        elif (word := reader.takes_one("RELY", "NORELY")) is not None:
            rely = word == "RELY"
        else:
            return enable, validate, rely


def _expression(reader: Reader) -> str:
    """Take the expression of a default: a constant, a call, a cast. WrongStatement."""
    start = reader.place
    reader.takes_one("-", "+")
    if reader.next().word in ("DATE", "TIMESTAMP") and reader.next(1).kind == "string":
        reader.take()
    if reader.next().kind == "string":
        reader.string()
    elif reader.sees("("):
        reader.inner()
    else:
        reader.take()
        if reader.sees("("):
            reader.inner()
    return reader.since(start)
