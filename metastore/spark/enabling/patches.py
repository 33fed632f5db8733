"""Enable and disable the replacements of methods of PySpark's classes, which are in the other modules.

    enable(spark)
    spark.sql("UPDATE emp SET salary = salary + 1")       spark.table, spark.read.table, df.write, df.writeTo too
    disable()

The classes are patched, so that every session of the program has the replacements, also one that `getOrCreate` returns to a library.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from pyspark.sql import DataFrame, DataFrameReader, DataFrameWriter, DataFrameWriterV2, SparkSession
from pyspark.sql.sql_formatter import SQLStringFormatter

from metastore.spark.dialect.running import check_not_blind, sql
from metastore.spark.dialect.session import PLAIN_SQL, PLAIN_TABLE, Names, SqlSession
from metastore.spark.dialect.sources import in_quotes
from metastore.spark.enabling import writers
from metastore.spark.enabling.writers import Said, column_name, flat
from metastore.spark.session.catalog import metastore_uri, name_parts
from metastore.spark.session.connections import connected

_PLAIN: dict[tuple[type, str], Callable[..., Any]] = {}
"""PySpark's own methods that are replaced at present, by class and name."""


def enable(spark: SparkSession | None = None) -> None:
    """Make this program's SQL, `table`, `read.table`, `write` and `writeTo` right for transactional tables. One call is enough.

    It is in effect for all present and later sessions of the program. ValueError where the session that is given has no metastore.
    """
    if spark is not None:
        metastore_uri(spark)
    if _PLAIN:
        return
    for (owner, name), ours in _OURS.items():
        plain = getattr(owner, name)
        _PLAIN[owner, name] = plain
        setattr(owner, name, wraps(plain)(ours))


def disable() -> None:
    """Restore PySpark's own methods."""
    while _PLAIN:
        (owner, name), plain = _PLAIN.popitem()
        setattr(owner, name, plain)


def _has_metastore(spark: SparkSession) -> bool:
    try:
        SqlSession.of(spark)
    except ValueError:
        return False
    return True


def _sql(self: SparkSession, sqlQuery: str, args: Any = None, **kwargs: Any) -> DataFrame:  # noqa: N803  # PySpark's names
    if not _has_metastore(self):
        return PLAIN_SQL(self, sqlQuery, args, **kwargs)
    if not kwargs:
        return sql(self, sqlQuery, args)
    formatter = SQLStringFormatter(self)
    try:
        return sql(self, formatter.format(sqlQuery, **kwargs), args)
    finally:
        formatter.clear()


def _table(self: SparkSession, tableName: str) -> DataFrame:  # noqa: N803  # see above
    return _read(self, tableName, lambda: PLAIN_TABLE(self, tableName))


def _read_table(self: DataFrameReader, tableName: str) -> DataFrame:  # noqa: N803  # see above
    plain = _PLAIN[DataFrameReader, "table"]
    return _read(self._spark, tableName, lambda: plain(self, tableName))  # the reader's session has no public name


def _read(spark: SparkSession, name: str, plain: Callable[[], DataFrame]) -> DataFrame:
    """Return the rows of a table or view, by SQL where it is transactional or a view, which may be over one."""
    if not _has_metastore(spark):
        return plain()
    session = SqlSession.of(spark)
    parts = name_parts(name)
    with connected(session.uri) as client:
        names = Names(session, client)
        is_ours = names.may_be_ours(parts)
    if is_ours:
        return sql(spark, f"SELECT * FROM {'.'.join(in_quotes(part) for part in parts)}")  # noqa: S608  # a name in quotes
    frame = plain()
    check_not_blind(frame, names.plain)
    return frame


def _said(writer: Any) -> Said:
    """Return the noted settings of a writer, which has no way to read them."""
    found: Said = writer.__dict__.setdefault("_metastore_said", Said())
    return found


def _noted(owner: type, name: str, note: Callable[[Said, tuple[Any, ...], dict[str, Any]], None]) -> Callable[..., Any]:
    """Return a method of a writer that does the same as before, and notes its arguments."""

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        out = _PLAIN[owner, name](self, *args, **kwargs)
        note(_said(self), args, kwargs)
        return out

    return method


def _note_mode(said: Said, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    said.mode = _first(args, kwargs) or said.mode


def _note_format(said: Said, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    said.format = str(_first(args, kwargs))


def _first(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return args[0] if args else next(iter(kwargs.values()), None)


def _note_option(said: Said, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    name, value = (*args, *kwargs.values())[:2]
    said.options[str(name)] = _text(value)


def _note_options(said: Said, _: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    said.options |= {name: _text(value) for name, value in kwargs.items()}


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _note_partitions(said: Said, args: tuple[Any, ...], _: dict[str, Any]) -> None:
    columns = args[0] if len(args) == 1 and isinstance(args[0], (list, tuple)) else args
    said.partitioned_by = list(columns)


def _note_buckets(said: Said, args: tuple[Any, ...], _: dict[str, Any]) -> None:
    said.buckets, said.clustered_by = int(args[0]), flat(args[1:]) if len(args) == 2 else [*flat(args[1:2]), *map(str, args[2:])]


def _insert_into(self: Any, tableName: str, overwrite: bool | None = None) -> None:  # noqa: N803  # see above
    replaces = overwrite if overwrite is not None else _said(self).mode == "overwrite"
    if not _has_metastore(self._spark) or not writers.insert_into(self._df, tableName, overwrite=replaces):
        _PLAIN[DataFrameWriter, "insertInto"](self, tableName, overwrite)


def _save_as_table(
    self: Any,
    name: str,
    format: str | None = None,  # noqa: A002  # see above
    mode: str | None = None,
    partitionBy: Any = None,  # noqa: N803  # see above
    **options: Any,
) -> None:
    said = _said(self)
    keys = [partitionBy] if isinstance(partitionBy, str) else partitionBy
    whole = Said(
        name,
        mode or said.mode,
        format or said.format,
        {**said.options, **{key: _text(value) for key, value in options.items()}},
        [column_name(each) for each in keys or said.partitioned_by],
        said.clustered_by,
        said.buckets,
    )
    if not _has_metastore(self._spark) or not writers.save_as_table(self._df, whole):
        _PLAIN[DataFrameWriter, "saveAsTable"](self, name, format, mode, partitionBy, **options)


def _write_to(self: Any, df: DataFrame, table: str) -> None:
    _PLAIN[DataFrameWriterV2, "__init__"](self, df, table)
    _said(self).table = table


def _named(self: Any) -> Said:
    said = _said(self)
    said.partitioned_by = [column_name(each) for each in said.partitioned_by]
    return said


def _created(name: str, **how: bool) -> Callable[[Any], None]:
    def method(self: Any) -> None:
        if not _has_metastore(self._spark) or not writers.create(self._df, _named(self), **how):
            _PLAIN[DataFrameWriterV2, name](self)

    return method


def _append(self: Any) -> None:
    if not _has_metastore(self._spark) or not writers.append(self._df, _said(self).table):
        _PLAIN[DataFrameWriterV2, "append"](self)


def _overwrite(self: Any, condition: Any) -> None:
    if not _has_metastore(self._spark) or not writers.overwrite(self._df, _said(self).table, condition):
        _PLAIN[DataFrameWriterV2, "overwrite"](self, condition)


def _overwrite_partitions(self: Any) -> None:
    if not _has_metastore(self._spark) or not writers.overwrite_partitions(self._df, _said(self).table):
        _PLAIN[DataFrameWriterV2, "overwritePartitions"](self)


_OURS: dict[tuple[type, str], Callable[..., Any]] = {
    (SparkSession, "sql"): _sql,
    (SparkSession, "table"): _table,
    (DataFrameReader, "table"): _read_table,
    (DataFrameWriter, "insertInto"): _insert_into,
    (DataFrameWriter, "saveAsTable"): _save_as_table,
    **{
        (DataFrameWriter, name): _noted(DataFrameWriter, name, note)
        for name, note in (
            ("mode", _note_mode),
            ("format", _note_format),
            ("option", _note_option),
            ("options", _note_options),
            ("partitionBy", _note_partitions),
            ("bucketBy", _note_buckets),
        )
    },
    (DataFrameWriterV2, "__init__"): _write_to,
    **{
        (DataFrameWriterV2, name): _noted(DataFrameWriterV2, name, note)
        for name, note in (
            ("using", _note_format),
            ("option", _note_option),
            ("options", _note_options),
            ("tableProperty", _note_option),
            ("partitionedBy", _note_partitions),
        )
    },
    (DataFrameWriterV2, "create"): _created("create", replace=False, must_be_there=False),
    (DataFrameWriterV2, "createOrReplace"): _created("createOrReplace", replace=True, must_be_there=False),
    (DataFrameWriterV2, "replace"): _created("replace", replace=True, must_be_there=True),
    (DataFrameWriterV2, "append"): _append,
    (DataFrameWriterV2, "overwrite"): _overwrite,
    (DataFrameWriterV2, "overwritePartitions"): _overwrite_partitions,
}
