"""Let Spark keep a table's constraints: rows that violate one fail the job that writes them, absent columns take their defaults.

Checks are computed as Hive does: without ANSI's errors, so that a failed cast is null and a check that is null passes, and in the JVM's
zone, as data columns are. This module writes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # the name that everyone gives it

from metastore.acid.values.characters import limit_of
from metastore.acid.values.constraints import CanNotKeepConstraint, Constraints, Declared
from metastore.rules.engines.hive_sql import respelled
from metastore.spark.reading.reading import time_zone
from metastore.spark.session.assignment import DoesNotFit, stored, type_of, violation
from metastore.spark.session.catalog import AcidTableInfo

_AS_HIVE = {"spark.sql.ansi.enabled": "false", "spark.sql.caseSensitive": "false"}


def default(spark: SparkSession, table: AcidTableInfo, constraints: Constraints, name: str) -> Column:
    """Return the value of a column that is not given, under its name: its default, or null. CanNotKeepConstraint."""
    kind = table.kinds[name.lower()]
    found = constraints.defaults.get(name.lower())
    if found is None:
        return F.lit(None).cast(table.schema[name].dataType).alias(name)
    try:
        value = F.expr(spelled_for_spark(spark, found.text))
        if (limit := limit_of(kind)) is not None:
            value = value.substr(1, limit[1])  # Hive casts the default to the column's type, which cuts it
        return stored(table, name, value, type_of(spark.range(0), value))
    except (AnalysisException, ParseException, DoesNotFit) as error:
        raise _not_computed(table, f"default {found.text} of column {name}", found, error) from error


def kept(table: AcidTableInfo, constraints: Constraints, rows: DataFrame) -> DataFrame:
    """Return rows of the table's columns; one that violates a constraint fails the job. CanNotKeepConstraint."""
    if not constraints.not_null and not constraints.checks:
        return rows
    spark = rows.sparkSession
    columns = {name: F.col(f"`{name.replace('`', '``')}`") for name in rows.columns}
    first, *others = rows.columns
    value = columns[first]
    for column in constraints.not_null:
        if column in table.kinds:
            value = F.when(columns[column].isNull(), violation(F.lit(constraints.no_value(column)))).otherwise(value)
    row = F.struct(*columns.values()).cast("string")
    with _as_hive(spark):
        for declared in constraints.checks:
            said = f"{table.full_name}: the constraint {declared.name}, CHECK ({declared.text}), is violated by the row "
            try:
                holds = F.coalesce(F.expr(spelled_for_spark(spark, declared.text)).cast("boolean"), F.lit(True))
                rows.select(holds)
            except (AnalysisException, ParseException) as error:
                raise _not_computed(table, f"CHECK ({declared.text})", declared, error) from error
            value = F.when(~holds, violation(F.concat(F.lit(said), row))).otherwise(value)
        return rows.select(value.alias(first), *(columns[name] for name in others))


def _not_computed(table: AcidTableInfo, what: str, declared: Declared, error: Exception) -> CanNotKeepConstraint:
    return CanNotKeepConstraint(
        f"{table.full_name}: Spark can not compute the {what} (constraint {declared.name}); write the rows with Hive, or disable the "
        f"constraint: {str(error)[:500]}"
    )


def spelled_for_spark(spark: SparkSession, text: str) -> str:
    """Return an expression of Hive in a form that has the same meaning in Spark under any settings."""
    zone = time_zone(spark)

    def moment(value: str) -> str:
        return f"'{value if ':' in value else f'{value} 00:00:00'} {zone}'"

    def string(value: str) -> str:
        return f"cast(X'{value.encode().hex()}' as string)" if "'" in value or "\\" in value else f"'{value}'"

    return respelled(text, string, moment)


@contextmanager
def _as_hive(spark: SparkSession) -> Iterator[None]:
    """Have Spark compute the expressions of plans that are made within as Hive does. Spark has only session settings for that."""
    wanted = {**_AS_HIVE, "spark.sql.session.timeZone": time_zone(spark)}
    before = {name: spark.conf.get(name, None) for name in wanted}
    try:
        for name, value in wanted.items():
            spark.conf.set(name, value)
        yield
    finally:
        for name, old in before.items():
            if old is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, old)
