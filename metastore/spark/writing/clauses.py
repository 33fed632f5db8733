"""Values that an update, or a clause of a merge, gives to columns: names are resolved and checked before anything is computed.

A column is named as Spark names it: in any case, in back quotes where it must be, with the table's alias before it (`target.amount`), and
with fields of structs behind it (`address.city`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # the name that everyone gives it
from pyspark.sql.types import DataType, StructType

from metastore.spark.session.assignment import stored, type_of
from metastore.spark.session.catalog import AcidTableInfo, WrongColumns, name_parts

Expression = str | Column
"""SQL text or a column."""
TARGET = "target"
"""The name by which expressions may call the table unless it has an alias of its own."""
_NULL_IN_LIST = re.compile(r"\bin\b.*\bnull\b", re.IGNORECASE | re.DOTALL)
_PUSHDOWN = "spark.sql.orc.filterPushdown"
Path = tuple[str, ...]
"""A column's name, in lower case, and the names of fields within it."""
Default = Callable[[str], Column]
"""A function that returns the value of a column that is not given."""


def column(value: Expression) -> Column:
    """Return an expression as a column. TypeError for others, such as None, from which Spark would make a join without condition."""
    if not isinstance(value, (str, Column)):
        raise TypeError(f"{value!r} is not an expression: give SQL text or a column")
    return F.expr(value) if isinstance(value, str) else value


def field(alias: str, name: str) -> Column:
    """Return the column of an aliased frame, with any characters in its name."""
    return F.col(f"`{alias}`.{_in_quotes(name)}")


def quoted(names: Iterable[str]) -> list[Column]:
    """Return the columns of exactly these names."""
    return [F.col(_in_quotes(name)) for name in names]


def _in_quotes(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


def fitting(info: AcidTableInfo, name: str, rows: DataFrame) -> Callable[[Column], Column]:
    """Return the function that makes a value computed from rows fit a column of the table. DoesNotFit."""
    return lambda value: stored(info, name, value, type_of(rows, value))


def set_columns(info: AcidTableInfo, values: Mapping[str, Expression], alias: str, default: Default) -> dict[str, Column]:
    """Return the new values of the columns that an update sets; `alias` belongs to the frame with the old ones.

    The word DEFAULT stands for a column's default. A struct whose fields are set keeps its other fields. WrongColumns for a missing column,
    and for one that is set twice.
    """
    if not values:
        raise WrongColumns(f"{info.full_name}: the update sets no column")
    paths = {_path(info, name, alias): value for name, value in values.items()}
    _check_apart(info, list(values), list(paths))
    out: dict[str, Column] = {}
    for path, given in paths.items():
        name, inner = path[0], path[1:]
        # Within another expression Spark refuses functions that make several rows of one, such as `explode`.
        value = default(name) if _is_default(info, given) and not inner else F.coalesce(column(given))
        out[name] = _with_field(out.get(name, field(alias, name)), info.schema[name].dataType, inner, value) if inner else value
    return out


def wholly_set(info: AcidTableInfo, values: Mapping[str, Expression], alias: str) -> set[str]:
    """Return the columns that an update replaces entirely: those that it sets, and not only some fields of them. WrongColumns."""
    return {path[0] for path in (_path(info, name, alias) for name in values) if len(path) == 1}


def inserted_columns(info: AcidTableInfo, values: Mapping[str, Expression], alias: str, default: Default) -> dict[str, Column]:
    """Return the values of all columns for an insert; missing ones have their defaults.

    WrongColumns for a missing column, one that is given twice, and a missing partition column.
    """
    paths = {_path(info, name, alias): value for name, value in values.items()}
    _check_apart(info, list(values), list(paths))
    if within := [name for name, path in zip(values, paths, strict=True) if len(path) > 1]:
        raise WrongColumns(f"{info.full_name}: {', '.join(within)} is within a column; an inserted row needs the column as a whole")
    out = {path[0]: column(value) for path, value in paths.items() if not _is_default(info, value)}
    if missing := [name for name in info.partition_columns.names if name not in out]:
        raise WrongColumns(f"{info.full_name} is partitioned by {', '.join(missing)}, which the inserted rows do not have")
    return {name: out[name] if name in out else default(name) for name in info.schema.names}


def all_columns(info: AcidTableInfo, source: DataFrame, alias: str, mentioned: Iterable[Expression], *, insert: bool) -> dict[str, Column]:
    """Return the source's values for all columns of the table; partition columns that the source of an update lacks are left out.

    WrongColumns for any other column of the table that the source lacks, and for one of the source that is neither in the table nor in one
    of the expressions `mentioned`: one of the two is misspelled.
    """
    given = info.given(source.columns)
    may_lack = set() if insert else {*info.partition_columns.names, *info.bucket_columns}
    wanted = [name for name in info.schema.names if name in given or name not in may_lack]
    if missing := [name for name in wanted if name not in given]:
        raise WrongColumns(
            f"{info.full_name}: the source of the merge has no column {', '.join(missing)}; its columns are {', '.join(source.columns)}"
        )
    text = " ".join(str(each) for each in mentioned).lower()
    if unknown := [name for name in given if name not in info.schema.names and not re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text)]:
        raise WrongColumns(
            f"{info.full_name} has no column {', '.join(unknown)}, which the source of the merge has; its columns are "
            f"{', '.join(info.schema.names)}"
        )
    return {name: field(alias, given[name]) for name in wanted}


def _is_default(info: AcidTableInfo, value: Expression) -> bool:
    """Return whether a value is the word DEFAULT, and the table has no column of this name."""
    return isinstance(value, str) and value.strip().lower() == "default" and "default" not in info.schema.names


def _path(info: AcidTableInfo, name: str, alias: str) -> Path:
    try:
        parts = [part.lower() for part in name_parts(name)]
    except ValueError as error:
        raise WrongColumns(f"{info.full_name}: {error}") from error
    columns = info.schema.names
    if len(parts) > 1 and parts[0] == alias.lower() and (parts[0] not in columns or parts[1] in columns):
        del parts[0]
    if parts[0] not in columns:
        raise WrongColumns(f"{info.full_name} has no column {name}; its columns are {', '.join(columns)}")
    _walk(info, name, info.schema[parts[0]].dataType, parts[1:])
    return tuple(parts)


def _walk(info: AcidTableInfo, name: str, kind: DataType, fields: Sequence[str]) -> None:
    for each in fields:
        inner = {inner.name.lower(): inner.dataType for inner in kind.fields} if isinstance(kind, StructType) else {}
        if each not in inner:
            raise WrongColumns(f"{info.full_name}: {name}: {kind.simpleString()} has no field {each}")
        kind = inner[each]


def _check_apart(info: AcidTableInfo, names: Sequence[str], paths: Sequence[Path]) -> None:
    """Refuse a column that is given twice, or once with a field of it."""
    within = any(one != other and other[: len(one)] == one for one in paths for other in paths)
    if len(paths) < len(names) or within:
        raise WrongColumns(f"{info.full_name}: a column is set twice by {', '.join(names)}")


def _with_field(struct: Column, kind: DataType, path: Path, value: Column) -> Column:
    """Return a struct with another value of a field; of one that is null the other fields are null, as in Spark's UPDATE."""
    if not path:
        return value
    assert isinstance(kind, StructType)
    return F.struct(
        *(
            (_with_field(struct[each.name], each.dataType, path[1:], value) if each.name.lower() == path[0] else struct[each.name]).alias(
                each.name
            )
            for each in kind.fields
        )
    )


@contextmanager
def judged_by_spark(spark: SparkSession, conditions: Iterable[Expression | None]) -> Iterator[None]:
    """Keep conditions such as `id in (1, null)` from ORC's reader: Spark's own conversion of them fails. Make plans within.

    Spark has only a session setting for that.
    """
    if not any(_NULL_IN_LIST.search(str(each)) for each in conditions if each is not None):
        yield
        return
    before = spark.conf.get(_PUSHDOWN)
    spark.conf.set(_PUSHDOWN, "false")
    try:
        yield
    finally:
        spark.conf.set(_PUSHDOWN, before or "true")


def first_that_holds(conditions: Sequence[Expression | None]) -> Column:
    """Return the place of the first condition that holds, -1 where none does; None always holds."""
    out = F.lit(-1)
    for place, condition in reversed(list(enumerate(conditions))):
        holds = F.lit(True) if condition is None else F.coalesce(column(condition), F.lit(False))
        out = F.when(holds, F.lit(place)).otherwise(out)
    return out


def chosen(action: Column, values: Sequence[Column | None], otherwise: Column, fit: Callable[[Column], Column]) -> Column:
    """Return the value that the clause of number `action` gives, made to fit its column; `otherwise` where it gives none."""
    out = otherwise
    for place, value in enumerate(values):
        if value is not None:
            out = F.when(action == place, fit(value)).otherwise(out)
    return out
