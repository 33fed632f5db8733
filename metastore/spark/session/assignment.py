"""Give values the types of the columns that they are written into, in any session as Spark's ANSI store assignment does, and chars as Hive.

    assigned(value, there, "varchar(3)", "db.t: column v")  of a value whose type in Spark is `there`

A value that its column can not hold fails the job that computes it; `naming_the_column` turns that into DoesNotFit. Beyond Spark's rules a
text is converted to the number, date or the like that it spells, and a number that a float would make infinite does not fit.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  # the name that everyone gives it
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DateType,
    DoubleType,
    FloatType,
    MapType,
    NullType,
    NumericType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from metastore.acid.values.characters import is_limited, limit_of
from metastore.acid.values.constraints import ConstraintViolated
from metastore.acid.values.exact import Changed, named_once
from metastore.acid.values.types import parts
from metastore.spark.session.catalog import AcidTableInfo, spark_type

MARK, VIOLATED = "DOES_NOT_FIT", "CONSTRAINT_VIOLATED"
_MARKED = re.compile(rf"\[({MARK}|{VIOLATED})\] (.*?) \[\1\]", re.DOTALL)
_NESTED = (StructType, ArrayType, MapType)
_TIMES = (DateType, TimestampType, TimestampNTZType)


class DoesNotFit(ValueError):
    """A value does not fit its column, by its type or its content; nothing was written."""


@contextmanager
def naming_the_column() -> Iterator[None]:
    """Raise DoesNotFit for Spark's error on a value that does not fit, ConstraintViolated for a row that breaks a constraint."""
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        found = _MARKED.search(str(error))
        if found is None:
            raise
        raise (DoesNotFit if found[1] == MARK else ConstraintViolated)(found[2]) from error


def type_of(rows: DataFrame, value: Column) -> DataType:
    """Return the type that a value has as a column of rows. AnalysisException."""
    return rows.select(value).schema[0].dataType


def stored(table: AcidTableInfo, name: str, value: Column, there: DataType) -> Column:
    """Return a value of a type of Spark as the column `name` of a table holds it, under that name. DoesNotFit."""
    return assigned(value, there, table.kinds[name.lower()], f"{table.full_name}: column {name}").alias(name)


def assigned(value: Column, there: DataType, kind: str, what: str) -> Column:
    """Return a value of Spark's type `there` as one of a Hive type; `what` names it in messages. DoesNotFit for types that never fit."""
    wanted = spark_type(kind)
    if isinstance(there, NullType):
        return value.cast(wanted)
    if there == wanted and not is_limited(kind):
        return value
    if isinstance(wanted, _NESTED) or isinstance(there, _NESTED):
        if type(there) is not type(wanted):
            raise _misfit(there, kind, what)
        return _nested(value, there, kind, what)
    return _simple(value, there, wanted, kind, what)


def _misfit(there: DataType, kind: str, what: str) -> DoesNotFit:
    return DoesNotFit(f"{what} is {kind}: a value of type {there.simpleString()} does not fit; cast it first")


def _nested(value: Column, there: Any, kind: str, what: str) -> Column:
    inner = parts(kind)
    if isinstance(there, ArrayType):
        return F.transform(value, lambda each: assigned(each, there.elementType, inner[0][1], what))
    if isinstance(there, MapType):
        return F.map_from_entries(
            F.transform(
                F.map_entries(value),
                lambda each: F.struct(
                    assigned(each["key"], there.keyType, inner[0][1], what).alias("key"),
                    assigned(each["value"], there.valueType, inner[1][1], what).alias("value"),
                ),
            )
        )
    try:
        given = named_once([(field.name.lower(), field) for field in there])
    except Changed as error:
        raise DoesNotFit(f"{what}: the field {error}") from error
    names = [name.lower() for name, _ in inner]
    if unknown := [field.name for name, field in given.items() if name not in names]:
        raise DoesNotFit(f"{what} has no field {', '.join(unknown)}; its fields are {', '.join(names)}")
    fields = [
        assigned(value[given[name].name], given[name].dataType, each, f"{what}.{name}")
        if name in given
        else F.lit(None).cast(spark_type(each))
        for name, (_, each) in zip(names, inner, strict=True)
    ]
    struct = F.struct(*(field.alias(name) for field, (name, _) in zip(fields, inner, strict=True)))
    return F.when(value.isNotNull(), struct)


def _simple(value: Column, there: DataType, wanted: DataType, kind: str, what: str) -> Column:
    of_one_sort = any(isinstance(there, sort) and isinstance(wanted, sort) for sort in (NumericType, _TIMES))
    if there != wanted and not of_one_sort and not isinstance(there, StringType) and not isinstance(wanted, StringType):
        raise _misfit(there, kind, what)
    out = value if there == wanted else tried(value, wanted)
    refused = refusal(value, f"{what} is {kind}")
    if (limit := limit_of(kind)) is not None:
        is_char, most = limit
        trimmed = F.rtrim(out)
        short = trimmed if is_char else out.substr(1, most)
        return F.when(F.length(trimmed) > most, refused).otherwise(short)
    lost = value.isNotNull() & out.isNull()
    if isinstance(wanted, FloatType) and isinstance(there, (DoubleType, StringType)):
        infinite = float("inf")
        lost |= (F.abs(out) == infinite) & (F.abs(tried(value, DoubleType())) != infinite)
    return F.when(lost, refused).otherwise(out)


def refusal(value: Column, what: str) -> Column:
    """Return a column that fails the job, by a message that `naming_the_column` understands, when it is computed for a value."""
    return _raised(MARK, F.concat(F.lit(f"{what} and can not hold '"), value.cast("string"), F.lit("'")))


def violation(text: Column) -> Column:
    """Return a column that fails the job with ConstraintViolated when it is computed."""
    return _raised(VIOLATED, text)


def _raised(mark: str, text: Column) -> Column:
    return F.raise_error(F.concat(F.lit(f"[{mark}] "), text, F.lit(f" [{mark}]")))


def tried(value: Column, wanted: DataType) -> Column:
    """Return a value as another type, null where it can not be: by ANSI's rules, not by the session's."""
    if hasattr(Column, "try_cast"):  # asked of the class: in PySpark 3.5 a column has any attribute, as a field of it
        return value.try_cast(wanted)
    context: Any = SparkContext._active_spark_context  # noqa: SLF001  # PySpark 3.5 has no method for it, and where a column is there is one
    column: Any = value
    jvm = context._jvm  # noqa: SLF001  # see above
    expressions = jvm.org.apache.spark.sql.catalyst.expressions
    kind = jvm.org.apache.spark.sql.types.DataType.fromJson(wanted.json())
    no_zone = jvm.scala.Option.empty()
    cast = expressions.Cast(column._jc.expr(), kind, no_zone, expressions.EvalMode.TRY())  # noqa: SLF001  # see above
    made: Any = Column
    return made(jvm.org.apache.spark.sql.Column(cast))  # type: ignore[no-any-return]  # Spark 4 has no such class
