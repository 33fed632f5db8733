"""The kinds of statements that are Hive's alone, or that Spark can not run on transactional tables, and the reading of their parts.

read("ALTER TABLE emp COMPACT 'major' AND WAIT")       Compact(table=["emp"], kind="major", waits=True, ..)
read("SELECT 1")                                        None: Spark's own parser reads it
"""

from __future__ import annotations

from dataclasses import dataclass, field

from metastore.spark.grammar.tokens import Reader

Name = list[str]
Spec = dict[str, str | None]
"""Values of partition columns; None is null."""


@dataclass(frozen=True)
class OfTable:
    """A statement about one table: where that is not transactional, the statement is Spark's."""

    table: Name


@dataclass(frozen=True)
class Refused:
    """A statement that is not possible on transactional tables. With a `table` it is refused only if that is transactional."""

    reason: str
    table: Name | None = None


@dataclass(frozen=True)
class Transact:
    """START TRANSACTION, COMMIT or ROLLBACK: `word` is its first word."""

    word: str


@dataclass(frozen=True)
class ShowTransactions:
    pass


@dataclass(frozen=True)
class ShowLocks:
    table: Name | None = None
    database: str | None = None
    partition: Spec | None = None


@dataclass(frozen=True)
class ShowCompactions:
    table: Name | None = None
    database: str | None = None
    partition: Spec | None = None
    id: int | None = None
    pool: str | None = None
    kind: str | None = None
    state: str | None = None
    order: str | None = None
    limit: int | None = None


@dataclass(frozen=True)
class Abort:
    """ABORT TRANSACTIONS or COMPACTIONS."""

    what: str
    ids: list[int]


@dataclass(frozen=True)
class Compact(OfTable):
    kind: str
    partition: Spec | None = None
    waits: bool = False
    pool: str | None = None
    properties: dict[str, str] = field(default_factory=dict)
    buckets: int | None = None
    order: str | None = None


@dataclass(frozen=True)
class Describe(OfTable):
    how: str = ""
    """EXTENDED, FORMATTED or nothing."""
    partition: Spec | None = None
    column: str | None = None


@dataclass(frozen=True)
class ShowOfTable(OfTable):
    what: str
    """CREATE TABLE, PARTITIONS, TBLPROPERTIES or COLUMNS."""
    partition: Spec | None = None
    key: str | None = None


@dataclass(frozen=True)
class ShowTables:
    """SHOW TABLE EXTENDED; without a database it is about the current one."""

    pattern: str
    database: Name | None = None


@dataclass(frozen=True)
class DropDatabase:
    """DROP DATABASE .. CASCADE."""

    database: Name


@dataclass(frozen=True)
class Truncate(OfTable):
    partition: Spec | None = None


@dataclass(frozen=True)
class DropTable(OfTable):
    if_exists: bool = False
    purge: bool = False


@dataclass(frozen=True)
class Analyze(OfTable):
    partition: Spec | None = None
    columns: list[str] | None = None
    """The columns to count; all, if it is empty."""
    no_scan: bool = False


@dataclass(frozen=True)
class Keep(OfTable):
    """CACHE TABLE, UNCACHE TABLE, REFRESH TABLE, MSCK: `what` is the first word."""

    what: str
    query: str | None = None
    lazy: bool = False


@dataclass(frozen=True)
class CreateView(OfTable):
    query: str
    columns: list[tuple[str, str | None]] = field(default_factory=list)
    """Names and comments."""
    temporary: str = ""
    """TEMPORARY, GLOBAL or nothing."""
    replace: bool = False
    if_not_exists: bool = False
    comment: str | None = None
    properties: dict[str, str] = field(default_factory=dict)


def partition(reader: Reader) -> Spec | None:
    """Take `PARTITION (k='v', ..)`, None without. WrongStatement."""
    if not reader.takes("PARTITION"):
        return None
    reader.expect("(")
    out: Spec = {}
    while True:
        name = reader.identifier().lower()
        reader.expect("=")
        out[name] = value(reader)
        if not reader.takes(","):
            break
    reader.expect(")")
    return out


def value(reader: Reader) -> str | None:
    """Take a constant: a text, a number, a date, null. WrongStatement."""
    if reader.takes("NULL"):
        return None
    if reader.next().word in ("DATE", "TIMESTAMP") and reader.next(1).kind == "string":
        reader.take()
    if reader.next().kind == "string":
        return reader.string()
    sign = "-" if reader.takes("-") else ""
    if reader.next().kind not in ("number", "word"):
        reader.fail("a constant")
    return sign + reader.take().text
