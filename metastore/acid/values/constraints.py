"""A table's enabled constraints that writers keep, as the metastore has them: NOT NULL, CHECK, DEFAULT.

Hive's engine checks those that are `ENABLE` for every row that it writes, in an update for the row as a whole, and fails the statement.
VALIDATE and RELY are for its optimizer alone. A check whose result is NULL passes. A column that a writer does not give takes its default;
one that it gives as null is null. Source: Hive's ConstraintExprGenerator and tests/hive4/spark/test_spark_constraints.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.compute as pc

from metastore.acid.values.characters import limit_of
from metastore.acid.values.exact import checked
from metastore.acid.values.types import arrow_type
from metastore.client import Client, is_unknown_method
from metastore.idl import CheckConstraintsRequest, DefaultConstraintsRequest, NotNullConstraintsRequest, Table
from metastore.rules.engines.hive_sql import constant
from metastore.rules.values.times import timestamp


class ConstraintViolated(ValueError):
    """A row does not keep a constraint of its table; nothing was written."""


class CanNotKeepConstraint(Exception):
    """A constraint of the table can not be checked by this writer. The text has its name, and the remedy."""


class Declared(NamedTuple):
    """A constraint: its name, and the text of its check or default, as Hive writes it."""

    name: str
    text: str = ""


def wall_clock(zone: str) -> datetime:
    """Return the present wall-clock time of a zone."""
    return datetime.now(ZoneInfo(zone)).replace(tzinfo=None)


@dataclass(frozen=True)
class Constraints:
    """The enabled constraints of a table; columns are in lower case."""

    table: str
    not_null: dict[str, Declared] = field(default_factory=dict)
    checks: tuple[Declared, ...] = ()
    defaults: dict[str, Declared] = field(default_factory=dict)

    @classmethod
    def read(cls, client: Client, table: Table) -> Constraints:
        """Read a table's constraints from the metastore; none from one without methods for them, such as Hive 2's. MetaException."""

        def listed(method: str, request: Callable[..., Any]) -> list[Any]:
            try:
                asked = request(catName=table.catName or "hive", db_name=table.dbName, tbl_name=table.tableName)
                (found,) = vars(client.call(method, asked)).values()
            except Exception as error:
                if not is_unknown_method(error):
                    raise
                return []
            return [each for each in found or () if each.enable_cstr]

        defaults = listed("get_default_constraints", DefaultConstraintsRequest)
        return cls(
            f"{table.dbName}.{table.tableName}",
            {each.column_name.lower(): Declared(each.nn_name) for each in listed("get_not_null_constraints", NotNullConstraintsRequest)},
            tuple(Declared(each.dc_name, each.check_expression) for each in listed("get_check_constraints", CheckConstraintsRequest)),
            {each.column_name.lower(): Declared(each.dc_name, each.default_value) for each in defaults},
        )

    def no_value(self, column: str) -> str:
        """Return the error's text for a row without a value for a NOT NULL column."""
        return f"{self.table}: column {column} is NOT NULL (constraint {self.not_null[column].name}), and a row has no value for it"

    def check_not_null(self, rows: pa.RecordBatch) -> None:
        """Raise ConstraintViolated for a column, by its name in lower case, that has no value in some row."""
        for name in self.not_null:
            place = rows.schema.get_field_index(name)
            if place >= 0 and rows.column(place).null_count:
                number = pc.index(pc.is_null(rows.column(place)), True).as_py()
                raise ConstraintViolated(f"{self.no_value(name)}: row {number + 1} of {rows.num_rows}")

    def refuse_checks(self, instead: str) -> None:
        """Raise CanNotKeepConstraint where the table has a check; `instead` is the remedy."""
        if self.checks:
            name, text = self.checks[0]
            raise CanNotKeepConstraint(
                f"{self.table}: this writer can not evaluate the constraint {name}, which is CHECK ({text}); {instead}, or disable the "
                "constraint"
            )

    def constant(self, column: str, kind: str, now: datetime) -> Any:
        """Return the default of a column of a Hive type, None for one without; `now` is the wall-clock time. CanNotKeepConstraint."""
        found = self.defaults.get(column)
        if found is None:
            return None
        try:
            return checked(pa.array([_cast(constant(found.text, now), kind)], arrow_type(kind)), kind)[0].as_py()
        except (ValueError, TypeError, ArithmeticError, pa.ArrowException) as error:  # NoConstant is one
            raise CanNotKeepConstraint(
                f"{self.table}: column {column} is not given, and this writer can not compute its default {found.text} (constraint "
                f"{found.name}): give the column ({error})"
            ) from error

    def constants(self, columns: Iterable[tuple[str, str]], given: Iterable[str], now: datetime) -> dict[str, Any]:
        """Return the defaults of the (name, Hive type) columns that are not given. CanNotKeepConstraint."""
        absent = set(given)
        return {name: self.constant(name, kind, now) for name, kind in columns if name in self.defaults and name not in absent}


def _cast(value: Any, kind: str) -> Any:
    """Return a constant as Hive casts it to a column's type. ValueError, ArithmeticError."""
    name = kind.strip().lower()
    limit = limit_of(kind)
    if value is None:
        return None
    if limit is not None and isinstance(value, str):
        return value[: limit[1]]
    if name in ("tinyint", "smallint", "int", "integer", "bigint"):
        return int(Decimal(value))
    if name in ("float", "double"):
        return float(value)
    if name.startswith("decimal"):
        return Decimal(value) if isinstance(value, str) else value
    if isinstance(value, str) and name in ("date", "timestamp"):
        return date.fromisoformat(value) if name == "date" else timestamp(value)
    return value
