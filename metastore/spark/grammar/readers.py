"""Read the statements of `statements.py`, each from behind its first word."""

from __future__ import annotations

from metastore.spark.grammar.statements import (
    Abort,
    Analyze,
    Compact,
    CreateView,
    Describe,
    DropDatabase,
    DropTable,
    Keep,
    Name,
    Refused,
    ShowCompactions,
    ShowLocks,
    ShowOfTable,
    ShowTables,
    ShowTransactions,
    Spec,
    Truncate,
    partition,
    value,
)
from metastore.spark.grammar.tokens import Reader


def show(reader: Reader) -> object | None:
    """Read a SHOW."""
    if reader.takes("TRANSACTIONS"):
        reader.expect_end()
        return ShowTransactions()
    if reader.takes("LOCKS"):
        return _locks(reader)
    if reader.takes("COMPACTIONS"):
        return _compactions(reader)
    if reader.takes("TABLE", "EXTENDED"):
        database = reader.names() if reader.takes_one("FROM", "IN") is not None else None
        reader.expect("LIKE")
        pattern = reader.string()
        return ShowTables(pattern, database) if reader.at_end() else None
    if reader.takes("CREATE", "TABLE"):
        return ShowOfTable(reader.names(), "CREATE TABLE") if not _has_more(reader) else None
    if (what := reader.takes_one("PARTITIONS", "TBLPROPERTIES", "COLUMNS")) is None:
        return None
    if what == "COLUMNS" and reader.takes_one("IN", "FROM") is None:
        return None
    name = reader.names()
    if what == "COLUMNS" and reader.takes_one("IN", "FROM") is not None:
        name = [reader.identifier(), name[-1]]
    key = None
    if what == "TBLPROPERTIES" and reader.takes("("):
        key = reader.string() if reader.next().kind == "string" else ".".join(reader.names())
        reader.expect(")")
    spec = partition(reader)
    reader.expect_end()
    return ShowOfTable(name, what, spec, key)


def _has_more(reader: Reader) -> bool:
    """Return whether more than a name follows, as in SHOW CREATE TABLE t AS SERDE, which is Spark's."""
    ahead = 0
    while reader.next(ahead).kind in ("word", "quoted", "number") and reader.next(ahead + 1).text == ".":
        ahead += 2
    return reader.next(ahead + 1).kind != "end"


def _locks(reader: Reader) -> ShowLocks:
    if reader.takes("DATABASE") or reader.takes("SCHEMA"):
        name = reader.identifier()
        reader.takes("EXTENDED")
        reader.expect_end()
        return ShowLocks(database=name.lower())
    if reader.at_end() or reader.takes("EXTENDED"):
        reader.expect_end()
        return ShowLocks()
    table = reader.names()
    spec = partition(reader)
    reader.takes("EXTENDED")
    reader.expect_end()
    return ShowLocks(table, None, spec)


_FILTERS = ("POOL", "TYPE", "STATUS", "ORDER", "LIMIT", "PARTITION")


def _compactions(reader: Reader) -> ShowCompactions:
    out: dict[str, object] = {}
    if reader.takes("COMPACTIONID") or reader.takes("COMPACT_ID"):
        reader.expect("=")
        out["id"] = reader.number()
    elif reader.takes_one("SCHEMA", "DATABASE") is not None:
        out["database"] = reader.identifier().lower()
    elif not reader.at_end() and reader.next().word not in _FILTERS:
        out["table"] = reader.names()
        out["partition"] = partition(reader)
    for word, name in (("POOL", "pool"), ("TYPE", "kind"), ("STATUS", "state")):
        if reader.takes(word):
            out[name] = reader.string()
    if reader.takes("ORDER", "BY"):
        start = reader.place
        while not reader.at_end() and not reader.sees("LIMIT"):
            reader.take()
        out["order"] = reader.since(start)
    if reader.takes("LIMIT"):
        out["limit"] = reader.number()
    reader.expect_end()
    return ShowCompactions(**out)  # type: ignore[arg-type]  # the fields of that class


def abort(reader: Reader) -> Abort:
    """Read ABORT TRANSACTIONS or COMPACTIONS with their numbers."""
    what = reader.takes_one("TRANSACTIONS", "COMPACTIONS")
    if what is None:
        reader.fail("TRANSACTIONS or COMPACTIONS")
    ids = [reader.number()]
    while not reader.at_end():
        reader.takes(",")
        ids.append(reader.number())
    return Abort(str(what), ids)


def compact(reader: Reader, table: Name, spec: Spec | None) -> Compact:
    """Read the rest after `ALTER TABLE t [PARTITION ..] COMPACT`."""
    kind = reader.string().lower()
    waits, pool, properties, buckets, order = False, None, {}, None, None
    while not reader.at_end():
        if reader.takes("AND", "WAIT"):
            waits = True
        elif reader.takes("POOL"):
            pool = reader.string()
        elif reader.takes("CLUSTERED", "INTO"):
            buckets = reader.number()
            reader.expect("BUCKETS")
        elif reader.takes("ORDER", "BY"):
            order = f"ORDER BY {reader.rest()}"
        else:
            reader.takes("WITH", "OVERWRITE")
            reader.expect("TBLPROPERTIES")
            properties = reader.properties()
    return Compact(table, kind, spec, waits, pool, properties, buckets, order)


_NO_COLUMN = ("DATABASE", "SCHEMA", "FUNCTION", "QUERY", "CATALOG", "NAMESPACE", "PROCEDURE", "CONNECTOR", "DATACONNECTOR")
_QUERIES = ("SELECT", "WITH", "FROM", "VALUES", "TABLE", "MAP", "REDUCE")


def describe(reader: Reader) -> Describe | None:
    """Read DESCRIBE of a table, a partition or a column; None for one of anything else."""
    if reader.next().word in _NO_COLUMN and reader.next(1).kind in ("word", "quoted"):
        return None
    if reader.next().word in _QUERIES and reader.next(1).kind != "end" and reader.next().word != "TABLE":
        return None
    reader.takes("TABLE")
    how = reader.takes_one("EXTENDED", "FORMATTED") or ""
    if reader.at_end() or reader.next().text == "(":
        return None
    table = reader.names()
    spec = partition(reader)
    column = None if reader.at_end() else ".".join(reader.names())
    if reader.takes("AS", "JSON"):
        return None
    reader.expect_end()
    return Describe(table, how, spec, column)


def truncate(reader: Reader) -> Truncate:
    """Read TRUNCATE."""
    reader.expect("TABLE")
    table = reader.names()
    spec = partition(reader)
    reader.takes("FORCE")
    reader.expect_end()
    return Truncate(table, spec)


def drop(reader: Reader) -> DropTable | DropDatabase | Refused | None:
    """Read DROP TABLE, and DROP DATABASE with all that is in it; None for any other DROP."""
    if reader.takes_one("DATABASE", "SCHEMA", "NAMESPACE") is not None:
        reader.takes("IF", "EXISTS")
        database = reader.names()
        return DropDatabase(database) if reader.takes("CASCADE") else None
    if reader.takes("MATERIALIZED", "VIEW"):
        return Refused("materialized views are Hive's: drop it there")
    if not reader.takes("TABLE"):
        return None
    if_exists = reader.takes("IF", "EXISTS")
    table = reader.names()
    return DropTable(table, if_exists, reader.takes("PURGE"))


def analyze(reader: Reader) -> Analyze | None:
    """Read ANALYZE TABLE; None for ANALYZE TABLES."""
    if not reader.takes("TABLE"):
        return None
    table = reader.names()
    spec: Spec | None = None
    if reader.sees("PARTITION"):
        reader.takes("PARTITION")
        spec = {}
        for part in _parts(reader.inner()):
            inner = Reader(part)
            name = inner.identifier().lower()
            if inner.takes("="):
                spec[name] = value(inner)
    reader.expect("COMPUTE", "STATISTICS")
    columns: list[str] | None = None
    no_scan = reader.takes("NOSCAN")
    if reader.takes("FOR"):
        reader.takes("ALL")
        reader.expect("COLUMNS")
        columns = []
        while not reader.at_end():
            reader.takes(",")
            columns.append(reader.identifier().lower())
    reader.expect_end()
    return Analyze(table, spec, columns, no_scan)


def _parts(text: str) -> list[str]:
    return [part for part in text.split(",") if part.strip()]


def keep(reader: Reader, what: str) -> Keep | None:
    """Read a statement on Spark's cache, or a repair; None for one that names no table."""
    lazy = reader.takes("LAZY")
    reader.takes("REPAIR")
    if not reader.takes("TABLE"):
        return None
    if what == "UNCACHE":
        reader.takes("IF", "EXISTS")
    table = reader.names()
    if reader.takes("OPTIONS"):
        reader.properties()
    if what != "CACHE":
        return Keep(table, what)
    is_query = reader.takes("AS") or not reader.at_end()
    return Keep(table, what, reader.rest() if is_query else None, lazy)


def create_view(reader: Reader, *, replace: bool) -> CreateView | None:
    """Read the rest after CREATE [OR REPLACE]; None unless it is a view."""
    temporary = ""
    if reader.takes("GLOBAL", "TEMPORARY") or reader.takes("GLOBAL", "TEMP"):
        temporary = "GLOBAL"
    elif reader.takes_one("TEMPORARY", "TEMP") is not None:
        temporary = "TEMPORARY"
    if not reader.takes("VIEW"):
        return None
    if_not_exists = reader.takes("IF", "NOT", "EXISTS")
    table = reader.names()
    columns: list[tuple[str, str | None]] = []
    if reader.takes("("):
        while True:
            name = reader.identifier().lower()
            columns.append((name, reader.string() if reader.takes("COMMENT") else None))
            if not reader.takes(","):
                break
        reader.expect(")")
    comment, properties = None, {}
    while not reader.takes("AS"):
        if reader.takes("COMMENT"):
            comment = reader.string()
        elif reader.takes("TBLPROPERTIES"):
            properties = reader.properties()
        else:
            return None  # USING, or clauses of later releases of Spark
    return CreateView(table, reader.rest(), columns, temporary, replace, if_not_exists, comment, properties)


def export_import(reader: Reader, what: str) -> Refused:
    """Refuse EXPORT, IMPORT, LOCK and their like."""
    return Refused(f"{what} is not supported on Spark: {_INSTEAD[what]}")


_EXPLAINS = ("LOCKS", "AUTHORIZATION", "DEPENDENCY", "VECTORIZATION", "CBO", "AST", "DDL", "REOPTIMIZATION", "DEBUG", "DETAIL", "LINEAGE")


def explain(reader: Reader) -> Refused | None:
    """Refuse Hive's kinds of EXPLAIN; None for those that Spark has."""
    word = reader.next().word
    if word not in _EXPLAINS or reader.next(1).kind == "end":
        return None
    instead = (
        "SHOW LOCKS shows the locks that are held while a statement runs"
        if word == "LOCKS"
        else "Spark has EXPLAIN EXTENDED, FORMATTED, COST and CODEGEN"
    )
    return Refused(f"EXPLAIN {word} is not supported on Spark: {instead}")


_INSTEAD = {
    "EXPORT": "write the rows into a plain table with CREATE TABLE .. AS SELECT",
    "IMPORT": "make a table of the rows with CREATE TABLE .. AS SELECT",
    "LOCK": "each statement takes its own locks; START TRANSACTION .. COMMIT holds locks over several",
    "UNLOCK": "locks end with their transaction; `metastore locks release` releases those of others",
}
