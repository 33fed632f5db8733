"""Read Hive's type names; decide which are valid, which changes of a column's type are allowed, and which columns a table
may have.

Source: Hive's ColumnType (getTypeName, areColTypesCompatible), MetaStoreServerUtils (validateTblColumns,
validateSkewedColNames, validateSkewedColNamesSubsetCol, areSameColumns, throwExceptionIfIncompatibleColTypeChange) and
serde2's TypeInfoUtils for the grammar. This module never looks at a table that is stored.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from metastore.errors import InvalidObject, InvalidOperation, MetaError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from metastore.idl import FieldSchema, SkewedInfo

FROM_DESERIALIZER = "<derived from deserializer>"
"""The type of a column that the table's serde defines, not the metastore."""

STRINGS = frozenset({"string", "varchar", "char"})
INTEGERS = frozenset({"tinyint", "smallint", "int", "bigint"})
FLOATS = frozenset({"float", "double"})
NUMBERS = INTEGERS | FLOATS | {"decimal"}
TIMES = frozenset({"date", "datetime", "timestamp", "timestamp with time zone"})
PRIMITIVES = STRINGS | NUMBERS | TIMES | {"void", "boolean", "binary", "interval_year_month", "interval_day_time"}
NESTED = frozenset({"array", "map", "struct", "uniontype"})
FOREIGN = frozenset({"variant", "unknown"})
"""Types of Hive 4.2 and Iceberg 1.11 beside the others: `unknown` holds nothing but nulls."""

_WIDTH = {"tinyint": 1, "smallint": 2, "int": 3, "bigint": 4, "decimal": 5, "float": 6, "double": 7}
_ALIASES = {"integer": "int", "numeric": "decimal", "dec": "decimal", "list": "array"}
_WITH_ZONE = re.compile(r"(?i)\s*(?:timestamp\s*(?:\(\d+\)\s*)?with\s+(?:local\s+)?time\s+zone|timestamplocaltz|timestamptz)")
_FIRST_WORD = re.compile(r"\w*")
_PARAMETERS = re.compile(r"\s*\(\s*([0-9]{1,5})\s*(?:,\s*([0-9]{1,5})\s*)?\)")
_WORD = re.compile(r"\s*([A-Za-z_][A-Za-z0-9_]*)")
_MARK = re.compile(r"\s*(\S)")
_FIELD = re.compile(r"\s*(`(?:[^`]|``)+`|[^:<>,\s][^:<>,]*)\s*:")

MAXIMUM_NESTING = 100


@dataclass(frozen=True)
class HiveType:
    """A parsed type: its name, its numbers (`decimal(10,2)`), and for nested types the inner ones."""

    name: str
    parameters: tuple[int, ...] = ()
    children: tuple[HiveType, ...] = ()
    field_names: tuple[str, ...] = ()


@lru_cache(maxsize=4096)
def type_name(text: str) -> str:
    """Return the bare name of a type in lower case: `varchar` for `VARCHAR(20)`, `int` for `integer`."""
    lowered = text.strip().lower()
    if lowered.startswith("timestamp") and _WITH_ZONE.match(lowered):
        return "timestamp with time zone"
    match = _FIRST_WORD.match(lowered)
    word = match[0] if match else ""
    return _ALIASES.get(word, word)


def parse_type(text: str) -> HiveType:
    """Parse a type string such as `map<string,array<decimal(10,2)>>`; MetaError for any other text."""
    try:
        parsed, end = _parse(text, 0, 0)
        if text[end:].strip():
            raise ValueError(f"unexpected '{text[end:].strip()[:20]}'")
    except ValueError as error:
        raise MetaError(f"Invalid type '{text[:200]}': {error}") from error
    return parsed


def _parse(text: str, position: int, depth: int) -> tuple[HiveType, int]:
    if depth > MAXIMUM_NESTING:
        raise ValueError("it is nested too deeply")
    zone = _WITH_ZONE.match(text, position)
    if zone:
        return HiveType("timestamp with time zone"), zone.end()
    word = _WORD.match(text, position)
    if not word:
        raise ValueError(f"a type name is missing at position {position}")
    name = word[1].lower()
    name = _ALIASES.get(name, name)
    if name in NESTED:
        return _parse_nested(text, word.end(), name, depth)
    if name in FOREIGN:
        return HiveType(name), word.end()
    if name not in PRIMITIVES:
        raise ValueError(f"unknown type name '{name[:50]}'")
    numbers = _PARAMETERS.match(text, word.end())
    if not numbers:
        if name in {"char", "varchar"}:
            raise ValueError(f"{name} needs a length")
        return HiveType(name), word.end()
    parameters = tuple(int(number) for number in numbers.groups() if number is not None)
    _check_parameters(name, parameters)
    return HiveType(name, parameters), numbers.end()


def _check_parameters(name: str, parameters: tuple[int, ...]) -> None:
    if name in {"char", "varchar"}:
        longest = 255 if name == "char" else 65535
        if len(parameters) != 1 or not 1 <= parameters[0] <= longest:
            raise ValueError(f"the length of {name} must be from 1 to {longest}")
    elif name == "decimal":
        precision, scale = (*parameters, 0)[:2]
        if not (1 <= precision <= 38 and 0 <= scale <= precision):
            raise ValueError("a decimal's precision must be from 1 to 38, its scale from 0 to the precision")
    else:
        raise ValueError(f"{name} takes no parameters")


def _parse_nested(text: str, position: int, name: str, depth: int) -> tuple[HiveType, int]:
    position = _expect(text, position, "<")
    children: list[HiveType] = []
    fields: list[str] = []
    if name == "struct" and _next(text, position) == ">":
        return HiveType(name), _expect(text, position, ">")
    while True:
        if name == "struct":
            field = _FIELD.match(text, position)
            if not field:
                raise ValueError(f"a field name is missing at position {position}")
            fields.append(field[1].strip())
            position = field.end()
        child, position = _parse(text, position, depth + 1)
        children.append(child)
        if _next(text, position) != ",":
            break
        position = _expect(text, position, ",")
    position = _expect(text, position, ">")
    wanted = {"array": 1, "map": 2}.get(name, len(children))
    if len(children) != wanted:
        raise ValueError(f"{name} holds {wanted} types, not {len(children)}")
    if name == "map" and children[0].name not in PRIMITIVES:
        raise ValueError("the key of a map must be primitive")
    return HiveType(name, (), tuple(children), tuple(fields)), position


def statement_type(text: str) -> str:
    """Write a type as SHOW CREATE TABLE of Hive does: the names of a struct's fields in backticks, so that any of them can be read again.

    A type without structs, and a text that is not a type, stay as they are.
    """
    if "struct" not in text.lower():
        return text
    try:
        return written(parse_type(text), _written_in_hive)
    except MetaError:
        return text


def _written_in_hive(kind: HiveType) -> str:
    name = "timestamp with local time zone" if kind.name == "timestamp with time zone" else kind.name
    return f"{name}({','.join(map(str, kind.parameters))})" if kind.parameters else name


def written(kind: HiveType, primitive: Callable[[HiveType], str]) -> str:
    """Write a type for an engine that writes primitive types in its own way; the names of a struct's fields are in backticks."""
    if kind.name not in NESTED:
        return primitive(kind)
    inner = [written(child, primitive) for child in kind.children]
    if kind.name == "struct":
        return f"struct<{', '.join(f'{_quoted(name)}:{each}' for name, each in zip(kind.field_names, inner, strict=True))}>"
    return f"{kind.name}<{','.join(inner)}>"


def _quoted(field: str) -> str:
    return field if field.startswith("`") else f"`{field.replace('`', '``')}`"


def _next(text: str, position: int) -> str:
    found = _MARK.match(text, position)
    return found[1] if found else ""


def _expect(text: str, position: int, character: str) -> int:
    found = _MARK.match(text, position)
    if not found or found[1] != character:
        raise ValueError(f"'{character}' is missing at position {position}")
    return found.end()


@lru_cache(maxsize=4096)
def is_compatible_change(old: str, new: str) -> bool:
    """Return whether a column of type `old` may become `new`: the same kind, strings, wider numbers, text of anything."""
    before, after = type_name(old), type_name(new)
    if before in (after, "unknown"):
        return True
    if before not in PRIMITIVES or after not in PRIMITIVES:
        return False
    if before in NUMBERS and after in NUMBERS:
        return _WIDTH[before] < _WIDTH[after]
    return before == "void" or (after in STRINGS and before in STRINGS | NUMBERS | TIMES)


def validate_column_changes(old: Sequence[FieldSchema], new: Sequence[FieldSchema]) -> None:
    """Raise InvalidOperation when a column's type becomes one that can not hold it; columns are paired by position."""
    wrong = [after.name for before, after in zip(old, new, strict=False) if not is_compatible_change(before.type or "", after.type or "")]
    if wrong:
        raise InvalidOperation(
            "The following columns have types incompatible with the existing columns in their respective positions :\n" + ",".join(wrong)
        )


def columns_equal(left: Sequence[FieldSchema] | None, right: Sequence[FieldSchema] | None) -> bool:
    """Return whether two column lists agree in names (any case), types and comments, in the same order."""
    if left is None or right is None:
        return left is right
    return [(c.name.lower(), c.type, c.comment) for c in left] == [(c.name.lower(), c.type, c.comment) for c in right]


def invalid_column(columns: Sequence[FieldSchema]) -> str | None:
    """Return the fault of the first bad column (`type: foo`), or None.

    Only the outermost name of a type is checked, as Hive does: tables of other engines hold types that Hive lacks
    inside. MetaError for a column without name or type.
    """
    for column in columns:
        if column.name is None or not column.name.strip() or column.type is None:
            raise MetaError(f"Column {column.name!r} needs a name and a type; its type is {column.type}")
        if "\0" in column.name:
            return f"name: {column.name}"
        if column.type != FROM_DESERIALIZER and type_name(column.type) not in PRIMITIVES | NESTED | FOREIGN:
            return f"type: {column.type}"
    return None


def validate_columns(
    columns: Sequence[FieldSchema] | None,
    partition_keys: Sequence[FieldSchema] | None = None,
    skewed: SkewedInfo | None = None,
) -> None:
    """Raise InvalidObject for a bad column, partition column or skewed column; MetaError when there is no list."""
    if columns is None:
        raise MetaError("A table needs a list of columns; send an empty one if it has none")
    if wrong := invalid_column(columns):
        raise InvalidObject(f"Invalid column {wrong}")
    if partition_keys and (wrong := invalid_column(partition_keys)):
        raise InvalidObject(f"Invalid partition column {wrong}")
    if skewed is not None and skewed.skewedColNames:
        known = {column.name.lower() for column in columns}
        strangers = [name for name in skewed.skewedColNames if name.lower() not in known]
        if strangers:
            raise InvalidObject(f"Invalid skew column [{', '.join(strangers)}]")
