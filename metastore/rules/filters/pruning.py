"""Judge partitions by an expression of Hive's: each matches, does not, or may. Asks no store.

Values compare as Hive's functions compare them: null makes a comparison null, numbers compare as numbers of the wider type, texts with
dates as dates. A function that is not known here, or a cast whose outcome is not certain, gives "unknown", so a partition is never left
out wrongly. Source: Hive's PartitionPruner.prunePartitionNames, GenericUDFBaseCompare, FunctionRegistry.getCommonClassForComparison.
"""

from __future__ import annotations

import datetime
import operator
import struct
from collections.abc import Callable, Sequence
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

from metastore.errors import MetaError
from metastore.rules.filters.expressions import NULL_TYPE, Constant, Expression, FunctionCall, KeyColumn
from metastore.rules.filters.nodes import And, Comparison, In, Node, Or
from metastore.rules.filters.operators import COMPARE
from metastore.rules.like import sql_matcher
from metastore.rules.values import types
from metastore.rules.values.comparable import key_type
from metastore.rules.values.partition_names import DEFAULT_PARTITION

Values = Sequence[str]
Evaluator = Callable[[Values], Any]


class _Unknown:
    """The value of an expression that can not be computed here."""


UNKNOWN = _Unknown()

_WHETHER: dict[str, Callable[[Any], bool]] = {
    "is null": lambda value: value is None,
    "is not null": lambda value: value is not None,
    "is true": lambda value: value is True,
    "is false": lambda value: value is False,
    "is not true": lambda value: value is not True,
    "is not false": lambda value: value is not False,
}
_BYTES = {"tinyint": 1, "smallint": 2, "int": 4, "bigint": 8}
_TEXTS = frozenset(("string", "varchar", "char"))


def compile_expression(
    expression: Expression, keys: Sequence[tuple[str, str]], default_name: str = DEFAULT_PARTITION
) -> Callable[[Values], bool | None]:
    """Return the evaluator of a partition's values, in the order of `keys` (name, Hive type): True, False, or None for "may match".

    MetaError for a column that is not a key.
    """
    evaluate = _Compiler(keys, default_name).compile(expression)

    def judge(values: Values) -> bool | None:
        result = evaluate(values)
        if result is None:
            # Hive leaves out partitions with an unknown result if one of their values is the default partition's.
            return False if any(not value or value == default_name for value in values) else None
        return result if isinstance(result, bool) else None

    return judge


def weakened(expression: Expression, default_name: str = DEFAULT_PARTITION) -> Node | None:
    """Return a filter of equalities on text keys that passes all partitions which an expression may select; None where it has none."""
    if not isinstance(expression, FunctionCall):
        return None
    arguments = expression.arguments
    if expression.function in {"and", "or"}:
        parts = [weakened(each, default_name) for each in arguments]
        found = tuple(part for part in parts if part is not None)
        if not found or (expression.function == "or" and len(found) < len(parts)):
            return None
        return found[0] if len(found) == 1 else (And if expression.function == "and" else Or)(found)
    if expression.function == "=" and len(arguments) == 2:
        for column, constant in (arguments, arguments[::-1]):
            if isinstance(column, KeyColumn) and _is_plain(column, constant, default_name):
                return Comparison(column.name, "=", constant.value)  # type: ignore[union-attr]  # a constant
    if expression.function == "in" and isinstance(arguments[0], KeyColumn):
        column, rest = arguments[0], arguments[1:]
        if all(_is_plain(column, each, default_name) for each in rest):
            return In(column.name, tuple(each.value for each in rest))  # type: ignore[union-attr]  # constants
    return None


def _is_plain(column: KeyColumn, constant: Expression, default_name: str) -> bool:
    """Return whether a constant is the very text that a matching partition has."""
    return (
        isinstance(constant, Constant)
        and isinstance(constant.value, str)
        and constant.value not in ("", default_name)
        and types.type_name(column.type) == "string"
        and types.type_name(constant.type) == "string"
    )


def _is_default(expression: Expression, default_name: str) -> bool:
    return isinstance(expression, Constant) and expression.value == default_name


class _Compiler:
    def __init__(self, keys: Sequence[tuple[str, str]], default_name: str) -> None:
        self.positions = {name.lower(): position for position, (name, _) in enumerate(keys)}
        self.types = [kind for _, kind in keys]
        self.default_name = default_name
        self.done: dict[int, tuple[Expression, Evaluator]] = {}
        """A node and its evaluator, by the node's identity. The node is kept so that no later node takes its place in memory."""

    def compile(self, node: Expression) -> Evaluator:
        found = self.done.get(id(node))
        if found is None:
            found = self.done[id(node)] = node, self.made(node)
        return found[1]

    def made(self, node: Expression) -> Evaluator:
        if isinstance(node, KeyColumn):
            return self.column(node)
        if isinstance(node, Constant):
            value = _as_type(node.value, node.type)
            return lambda values: value
        function, arguments = node.function, node.arguments
        if function in {"and", "or"}:
            return _decided(self.parts(function, arguments), decides=function == "or")
        if function == "not" and len(arguments) == 1:
            return _negated(self.compile(arguments[0]))
        if function in _WHETHER and len(arguments) == 1:
            return _whether(_WHETHER[function], self.compile(arguments[0]))
        if function in {"=", "!=", "<=>"} and any(_is_default(each, self.default_name) for each in arguments):
            column = next((each for each in arguments if not _is_default(each, self.default_name)), arguments[0])
            return _whether(_WHETHER["is not null" if function == "!=" else "is null"], self.compile(column))
        if function in COMPARE and len(arguments) == 2:
            return self.comparison(COMPARE[function], *arguments)
        if function == "<=>" and len(arguments) == 2:
            return self.null_safe(*arguments)
        if function == "in" and len(arguments) > 1:
            return self.membership(arguments[0], arguments[1:])
        if function == "between" and len(arguments) == 4:
            return self.between(*arguments)
        if function == "cast" and len(arguments) >= 1:
            return self.cast(arguments[0], node.type)
        if function == "like" and len(arguments) == 2:
            return self.like(*arguments)
        return lambda values: UNKNOWN

    def parts(self, function: str, arguments: Sequence[Expression]) -> list[Evaluator]:
        """Return the parts of `and` or `or`, with one look-up for all equalities of a column: thousands of terms cost as much as one."""
        sign, wanted, out = "=" if function == "or" else "!=", dict[tuple[str, str], tuple[KeyColumn, list[Expression]]](), []
        for each in arguments:
            equality = _equality(each, sign, self.default_name)
            if equality is None:
                out.append(self.compile(each))
            else:
                column, constant = equality
                wanted.setdefault((column.name, column.type), (column, []))[1].append(constant)
        for column, constants in wanted.values():
            among = self.membership(column, constants)
            out.append(among if function == "or" else _negated(among))
        return out

    def column(self, node: KeyColumn) -> Evaluator:
        position = self.positions.get(node.name)
        if position is None:
            raise MetaError(f"The partition expression names the column {node.name}, which is not a partitioning key for the table")
        hive_type = self.types[position]
        if not _kind(hive_type):
            return lambda values: UNKNOWN
        read, default_name = key_type(hive_type).read_value, self.default_name
        known: dict[str, Any] = {}

        def value(values: Values) -> Any:
            text = values[position]
            if text not in known:
                known[text] = None if not text or text == default_name else _as_type(read(text), hive_type)
            return known[text]

        return value

    def comparison(self, sign: Callable[[Any, Any], bool], left: Expression, right: Expression) -> Evaluator:
        return _compared(sign, self.compile(left), self.compile(right), _common(left.type, right.type))

    def null_safe(self, left: Expression, right: Expression) -> Evaluator:
        one, other, equal = self.compile(left), self.compile(right), self.comparison(operator.eq, left, right)

        def evaluate(values: Values) -> Any:
            a, b = one(values), other(values)
            if a is UNKNOWN or b is UNKNOWN:
                return UNKNOWN
            return a is b if a is None or b is None else equal(values)

        return evaluate

    def membership(self, node: Expression, wanted: Sequence[Expression]) -> Evaluator:
        if isinstance(node, FunctionCall) and node.function == "struct":
            rows = [_constants_of(each, node) for each in wanted]
            known = [row for row in rows if row is not None]
            if len(known) == len(rows):
                return self.struct_membership(node, wanted, known)
            return _decided([self.equal_structs(node, each) for each in wanted], decides=True)
        read, constants = self.compile(node), [each.value for each in wanted if isinstance(each, Constant)]
        if len(constants) == len(wanted) and None not in constants and all(_kind(each.type) == _kind(node.type) != "" for each in wanted):
            among = frozenset(_as_type(each, node.type) for each in constants)
            return lambda values: value if (value := read(values)) is None or value is UNKNOWN else value in among
        return _decided([self.comparison(operator.eq, node, each) for each in wanted], decides=True)

    def struct_membership(self, node: FunctionCall, wanted: Sequence[Expression], rows: Sequence[tuple[Any, ...]]) -> Evaluator:
        """Return a look-up of the values of all keys together. Where one is null or unknown, they are compared one by one."""
        reads, among = [self.compile(each) for each in node.arguments], frozenset(rows)
        one_by_one: list[Evaluator] = []

        def evaluate(values: Values) -> Any:
            row = tuple(read(values) for read in reads)
            if None not in row and UNKNOWN not in row:
                return row in among
            if not one_by_one:
                one_by_one.append(_decided([self.equal_structs(node, each) for each in wanted], decides=True))
            return one_by_one[0](values)

        return evaluate

    def equal_structs(self, node: FunctionCall, wanted: Expression) -> Evaluator:
        if isinstance(wanted, FunctionCall) and wanted.function == "struct" and len(wanted.arguments) == len(node.arguments):
            others: Sequence[Expression] = wanted.arguments
        elif isinstance(wanted, Constant) and isinstance(wanted.value, list) and len(wanted.value) == len(node.arguments):
            others = [Constant(value, each.type) for value, each in zip(wanted.value, node.arguments, strict=True)]
        else:
            return lambda values: UNKNOWN
        equal = [self.comparison(operator.eq, each, other) for each, other in zip(node.arguments, others, strict=True)]
        both = _decided(equal, decides=False)
        return lambda values: UNKNOWN if (result := both(values)) is None else result

    def between(self, negated: Expression, node: Expression, low: Expression, high: Expression) -> Evaluator:
        inside = _decided([self.comparison(operator.ge, node, low), self.comparison(operator.le, node, high)], decides=False)
        if not isinstance(negated, Constant) or not isinstance(negated.value, bool):
            return lambda values: UNKNOWN
        if not negated.value:
            return inside
        return _negated(inside)

    def cast(self, node: Expression, target: str) -> Evaluator:
        inner, source = self.compile(node), _kind(node.type)

        def evaluate(values: Values) -> Any:
            value = inner(values)
            return value if value is None or value is UNKNOWN else _cast(value, source, target)

        return evaluate

    def like(self, node: Expression, pattern: Expression) -> Evaluator:
        if not isinstance(pattern, Constant) or not isinstance(pattern.value, str) or _kind(node.type) != "text":
            return lambda values: UNKNOWN
        inner, matches = self.compile(node), sql_matcher(pattern.value)
        return lambda values: matches(value) if isinstance(value := inner(values), str) else value


def _equality(node: Expression, sign: str, default_name: str) -> tuple[KeyColumn, Constant] | None:
    """Return the column and the constant of its own type that an expression compares by `sign`; None for any other expression.

    A constant that its type can not hold is null: a comparison with it is unknown, which a look-up can not express.
    """
    if not isinstance(node, FunctionCall) or node.function != sign or len(node.arguments) != 2:
        return None
    for column, constant in (node.arguments, node.arguments[::-1]):
        if not _is_of_type(column, constant):
            continue
        assert isinstance(column, KeyColumn)
        assert isinstance(constant, Constant)
        if constant.value != default_name and _as_type(constant.value, column.type) is not None:
            return column, constant
    return None


def _is_of_type(column: Expression, constant: Expression) -> bool:
    """Return whether a column is compared with a constant of its own type that is not null."""
    return (
        isinstance(column, KeyColumn)
        and isinstance(constant, Constant)
        and constant.value is not None
        and types.type_name(constant.type) == types.type_name(column.type)
    )


def _constants_of(wanted: Expression, node: FunctionCall) -> tuple[Any, ...] | None:
    """Return the constants that the columns of a struct have to equal; None unless each is a constant of its column's type."""
    if isinstance(wanted, Constant) and isinstance(wanted.value, list):
        given: Sequence[Expression] = [Constant(value, each.type) for value, each in zip(wanted.value, node.arguments, strict=False)]
    else:
        given = wanted.arguments if isinstance(wanted, FunctionCall) and wanted.function == "struct" else ()
    if len(given) != len(node.arguments):
        return None
    out = []
    for column, constant in zip(node.arguments, given, strict=True):
        if not _is_of_type(column, constant) or not _kind(column.type):
            return None
        out.append(_as_type(constant.value, column.type))  # type: ignore[union-attr]  # a constant
    return tuple(out)


def _negated(inner: Evaluator) -> Evaluator:
    return lambda values: not result if isinstance(result := inner(values), bool) else result


def _decided(parts: Sequence[Evaluator], *, decides: bool) -> Evaluator:
    """Return `or` (one True decides) or `and` (one False does); otherwise unknown wins over null."""

    def evaluate(values: Values) -> Any:
        outcome: Any = not decides
        for part in parts:
            result = part(values)
            if result is decides:
                return decides
            if not isinstance(result, bool):
                outcome = None if result is None and outcome is not UNKNOWN else UNKNOWN
        return outcome

    return evaluate


def _whether(holds: Callable[[Any], bool], inner: Evaluator) -> Evaluator:
    return lambda values: UNKNOWN if (result := inner(values)) is UNKNOWN else holds(result)


def _compared(sign: Callable[[Any, Any], bool], left: Evaluator, right: Evaluator, common: Callable[[Any], Any] | None) -> Evaluator:
    def evaluate(values: Values) -> Any:
        one, other = left(values), right(values)
        if one is None or other is None:
            return None
        if common is None or one is UNKNOWN or other is UNKNOWN:
            return UNKNOWN
        one, other = common(one), common(other)
        return UNKNOWN if one is UNKNOWN or other is UNKNOWN else sign(one, other)

    return evaluate


def _kind(hive_type: str) -> str:
    """Return the kind of values that a type has: text, number, float, date, timestamp, boolean or void; "" for any other."""
    name = types.type_name(hive_type)
    if name in _TEXTS:
        return "text"
    if name in types.INTEGERS or name == "decimal":
        return "number"
    if name in types.FLOATS:
        return "float"
    return name if name in {"date", "timestamp", "boolean", NULL_TYPE} else ""


def _common(left: str, right: str) -> Callable[[Any], Any] | None:
    """Return the conversion of values of two types to the one in which Hive compares them; None when that is not known here."""
    kinds = {_kind(left), _kind(right)} - {NULL_TYPE}
    if {types.type_name(left), types.type_name(right)} == {"float", "decimal"}:
        return None  # Hive 3 compares them as float, Hive 4 as double
    if kinds <= {"text"} or kinds in ({"date"}, {"timestamp"}, {"boolean"}, {"number"}):
        return lambda value: value
    if kinds <= {"float", "number"} or kinds == {"float", "text"}:
        return _to_float
    if kinds == {"number", "text"}:
        return None if "decimal" in (types.type_name(left), types.type_name(right)) else _to_float
    if kinds in ({"date", "timestamp"}, {"timestamp", "text"}):
        return _to_timestamp
    return _to_date if kinds == {"date", "text"} else None


def _as_type(value: Any, hive_type: str) -> Any:
    """Return a value as one of its type; None for one that the type can not hold, UNKNOWN where that is not certain."""
    if value is None or isinstance(value, list):
        return value
    name = types.type_name(hive_type)
    if name in _BYTES:
        limit = 1 << 8 * _BYTES[name] - 1
        return value if isinstance(value, int) and -limit <= value < limit else None
    if name == "float":
        return _single(value)
    if name == "char":
        return value.rstrip(" ")
    if name == "decimal" and isinstance(value, int):
        return Decimal(value)
    return value


def _single(value: float) -> Any:
    try:
        return struct.unpack("f", struct.pack("f", value))[0]
    except OverflowError:
        return UNKNOWN


def _to_float(value: Any) -> Any:
    if isinstance(value, str):
        value = key_type("double").read_value(value)
    try:
        return UNKNOWN if value is None else float(value)
    except OverflowError:
        return UNKNOWN


def _to_date(value: Any) -> Any:
    if isinstance(value, tuple):
        return value[0].date()
    if isinstance(value, str):
        try:
            return datetime.date.fromisoformat(value)
        except ValueError:
            return UNKNOWN
    return value


def _to_timestamp(value: Any) -> Any:
    if isinstance(value, datetime.date):
        return datetime.datetime.combine(value, datetime.time()), 0
    if isinstance(value, str):
        found = key_type("timestamp").read_value(value)
        return UNKNOWN if found is None else found
    return value


def _cast(value: Any, source: str, target: str) -> Any:
    """Return a value as another type where Hive's releases agree on the outcome, else UNKNOWN."""
    name, kind = types.type_name(target), _kind(target)
    if name in _TEXTS:
        if source == "date" or (source == "number" and isinstance(value, int)):
            value = str(value)
        if not isinstance(value, str):
            return UNKNOWN
        parameters = types.parse_type(target).parameters
        return _as_type(value[: parameters[0]] if parameters else value, target)
    if kind == "date":
        return _to_date(value) if source in {"date", "timestamp", "text"} else UNKNOWN
    if kind == "timestamp":
        return _to_timestamp(value) if source in {"date", "timestamp", "text"} else UNKNOWN
    if kind == "float":
        number = _to_float(value) if source in {"number", "float", "text"} else UNKNOWN
        return number if number is UNKNOWN else _as_type(number, target)
    if kind != "number" or source not in {"number", "text"}:
        return value if kind == source == "boolean" else UNKNOWN
    number = key_type("decimal").read_value(value) if isinstance(value, str) else value
    if name == "decimal":
        return UNKNOWN if number is None else _scaled(Decimal(number), target)
    fits = isinstance(number, int) and _as_type(number, target) is not None
    return number if fits else UNKNOWN


def _scaled(number: Decimal, target: str) -> Any:
    precision, scale = types.parse_type(target).parameters
    if number.adjusted() >= precision - scale:
        return UNKNOWN
    return number.quantize(Decimal(f"1e-{scale}"), ROUND_HALF_UP, Context(prec=100))
