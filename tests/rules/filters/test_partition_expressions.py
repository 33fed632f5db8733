"""Hive's serialised expressions are read as Hive wrote them and judged as Hive judges. Other bytes are refused."""

from __future__ import annotations

import datetime
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from metastore.errors import MetaError
from metastore.rules.filters import (
    NotUnderstood,
    compile_expression,
    is_expression,
    leading_prefixes,
    pruning,
    read_expression,
    weakened,
)
from metastore.rules.filters.expressions import Constant, FunctionCall, KeyColumn
from metastore.rules.values.partition_names import DEFAULT_PARTITION, partition_values
from tests.support.engines.hive_expressions import EXPRESSIONS, KEYS, PARTITIONS

if TYPE_CHECKING:
    from typing_extensions import Self

NOT_UNDERSTOOD = {"year(d) = 2020"}
"""Expressions with functions whose serialised objects have classes that this server does not read."""
MORE_THAN_HIVE = {
    "upper(ds) = 'A' OR n = 5", "n = 5 AND upper(ds) = 'A'", "ds > n", "cast(ds AS int) > 5", "f IN (1.5, 2)",
}  # fmt: skip
"""More partitions may match than in Hive: functions that are not computed, texts that may not be numbers, floats beside decimals."""
FIRST = EXPRESSIONS["ds > '2020'", "4.0.1"].data


def judged(data: bytes) -> dict[str, bool | None]:
    judge = compile_expression(read_expression(data), KEYS)
    return {name: judge(partition_values(name)) for name in PARTITIONS}


@pytest.mark.parametrize(("text", "version"), EXPRESSIONS)
def test_partitions_are_kept_as_hive_keeps_them(text: str, version: str) -> None:
    data, kept, unknown = EXPRESSIONS[text, version]
    if text in NOT_UNDERSTOOD:
        with pytest.raises(NotUnderstood, match=r"class hive\.ql\.udf\.UDFYear, which is not known here"):
            read_expression(data)
        return
    verdicts = judged(data)
    found = {name for name, verdict in verdicts.items() if verdict is not False}
    if text in MORE_THAN_HIVE:
        assert kept <= found
        assert {name for name, verdict in verdicts.items() if verdict} <= kept
    else:
        assert found == kept
        assert (None in verdicts.values()) == unknown


@pytest.mark.parametrize(("text", "version"), [each for each in EXPRESSIONS if each[0] not in NOT_UNDERSTOOD])
def test_the_names_that_are_read_hold_all_that_are_kept(text: str, version: str) -> None:
    data, kept, _ = EXPRESSIONS[text, version]
    prefixes = leading_prefixes(weakened(read_expression(data)), KEYS)
    assert prefixes is None or all(any(name.startswith(prefix) for prefix in prefixes) for name in kept)


@pytest.mark.parametrize("version", ["3.1.3", "4.0.1"])
def test_equality_on_the_first_text_key_narrows_the_read(version: str) -> None:
    def prefixes(text: str) -> list[str] | None:
        return leading_prefixes(weakened(read_expression(EXPRESSIONS[text, version].data)), KEYS)

    assert prefixes("ds = '2020'") == ["ds=2020/"]
    assert prefixes("ds = 'a' OR ds = 'b'") == prefixes("ds IN ('a', 'b')") == ["ds=a/", "ds=b/"]
    assert prefixes("ds != '2020'") is None


@pytest.mark.parametrize("version", ["3.1.3", "4.0.1"])
def test_the_tree_has_the_meaning_of_the_clients_filter(version: str) -> None:
    tree = read_expression(EXPRESSIONS["n > 5 AND n <= 7", version].data)
    assert isinstance(tree, FunctionCall)
    assert tree.function == "and"
    more, less = tree.arguments
    assert isinstance(more, FunctionCall)
    assert isinstance(less, FunctionCall)
    assert (more.function, less.function) == (">", "<=")
    column, constant = more.arguments
    assert isinstance(column, KeyColumn)
    assert isinstance(constant, Constant)
    assert (column.name, column.type, constant.value, constant.type) == ("n", "int", 5, "int")


def test_a_column_that_is_no_key_is_named() -> None:
    with pytest.raises(MetaError, match="names the column ds, which is not a partitioning key"):
        compile_expression(read_expression(FIRST), [("other", "string")])


@pytest.mark.parametrize("data", [b"", b"\x00", b"ds = 'a'", b"\x01\x00java.lang.Runtime", bytes(100)])
def test_bytes_that_are_not_an_expression_are_refused(data: bytes) -> None:
    assert not is_expression(data)
    with pytest.raises(MetaError, match="is not one that Hive's client serialises"):
        read_expression(data)


def test_any_other_class_is_refused_by_its_name() -> None:
    data = FIRST.replace(b"GenericUDFOPGreaterTha\xee", b"GenericUDFReflectEvi\xec")
    with pytest.raises(NotUnderstood, match=r"an object of the class .*GenericUDFReflectEvil, which is not known here"):
        read_expression(data)


@given(data=st.binary(max_size=300))
def test_garbage_gives_the_clear_error_only(data: bytes) -> None:
    for version in ("3.1.3", "4.0.1"):
        begins = EXPRESSIONS["ds > '2020'", version].data[:40]
        for attempt in (data, begins + data):
            with suppress(MetaError):
                read_expression(attempt)


@given(
    each=st.sampled_from(sorted(EXPRESSIONS)),
    changes=st.lists(st.tuples(st.integers(0, 5000), st.integers(0, 255)), min_size=1, max_size=4),
    cut=st.integers(0, 5000),
)
@example(each=("ds > '2020'", "4.0.1"), changes=[(0, 1)], cut=0)
def test_spoiled_expressions_give_the_clear_error_only(each: tuple[str, str], changes: list[tuple[int, int]], cut: int) -> None:
    data = bytearray(EXPRESSIONS[each].data)
    for position, value in changes:
        data[position % len(data)] = value
    attempt = bytes(data[: len(data) - cut % len(data)])
    try:
        judge = compile_expression(read_expression(attempt), KEYS)
    except MetaError:
        return
    for name in PARTITIONS[:5]:
        assert judge(partition_values(name)) in {True, False, None}


class Writer:
    """Writes conjunctions as Kryo 5 does."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.objects = 0

    def kind(self, name: str) -> bytes:
        if name in self.names:
            return bytes((1, self.names.index(name)))
        self.names.append(name)
        return bytes((1, len(self.names) - 1)) + name[:-1].encode() + bytes((ord(name[-1]) | 0x80,))

    def new(self, name: str) -> bytes:
        self.objects += 1
        return self.kind(name) + b"\x01"

    def text(self, text: str) -> bytes:
        self.objects += 1
        return b"\x01" + text[:-1].encode() + bytes((ord(text[-1]) | 0x80,))

    def boolean(self) -> bytes:
        return self.new("org.apache.hadoop.hive.serde2.typeinfo.PrimitiveTypeInfo") + self.text("boolean")

    def conjunction(self, levels: int, *, twice: bool) -> bytes:
        """Return `levels` nested conjunctions, the innermost of a column. With `twice`, each refers to its argument again."""
        plan = "org.apache.hadoop.hive.ql.plan.ExprNode"
        if levels == 0:
            return self.new(plan + "ColumnDesc") + self.text("col") + b"\0\0" + self.text("tab") + self.boolean()
        data = self.new(plan + "GenericFuncDesc") + self.new("java.util.ArrayList") + bytes((3 if twice else 2,))
        argument = self.objects
        data += self.conjunction(levels - 1, twice=twice)
        if twice:
            again = self.kind(plan + ("GenericFuncDesc" if levels > 1 else "ColumnDesc"))
            data += again + bytes(((argument + 2) & 0x7F | 0x80, (argument + 2) >> 7))
        function = self.new("org.apache.hadoop.hive.ql.udf.generic.GenericUDFOPAnd") + b"\0"
        return data + function + b"\0" + self.boolean()


def test_deep_nesting_ends_in_an_error() -> None:
    assert isinstance(read_expression(Writer().conjunction(50, twice=False)), FunctionCall)
    with pytest.raises(NotUnderstood, match="nested more than"):
        read_expression(Writer().conjunction(250, twice=False))


def test_an_expression_that_refers_to_its_parts_again_and_again_does_not_explode() -> None:
    judge = compile_expression(read_expression(Writer().conjunction(10, twice=True)), [("col", "boolean")])
    assert (judge(["true"]), judge(["false"])) == (True, False)
    with pytest.raises(NotUnderstood, match="more than 200000 parts"):
        read_expression(Writer().conjunction(40, twice=True))


COLUMNS = {"ds": KeyColumn("ds", "string"), "n": KeyColumn("n", "int"), "d": KeyColumn("d", "date")}
CONSTANTS = {
    "ds": st.sampled_from(["a", "b", "", None]),
    "n": st.sampled_from([1, 2, 5, 2**40, None]),
    "d": st.sampled_from([datetime.date(2020, 1, 1), datetime.date(2020, 2, 1), None]),
}
WORDS = st.sampled_from(["a", "b", "1", "2", "x", "2020-01-01", "2020-01", DEFAULT_PARTITION, ""])


@st.composite
def comparisons(draw: st.DrawFn) -> FunctionCall:
    column = COLUMNS[draw(st.sampled_from(sorted(COLUMNS)))]
    constant = Constant(draw(CONSTANTS[column.name]), draw(st.sampled_from([column.type, column.type, "bigint", "string"])))
    if type(constant.value) is not {"string": str, "int": int, "bigint": int, "date": datetime.date}[constant.type]:
        constant = Constant(constant.value, column.type)
    pair = draw(st.permutations([column, constant]))
    return FunctionCall(draw(st.sampled_from(["=", "=", "=", "!="])), tuple(pair), "boolean")


@pytest.mark.parametrize("function", ["and", "or"])
def test_a_constant_that_its_type_can_not_hold_is_null(function: str) -> None:
    large = FunctionCall("=" if function == "or" else "!=", (KeyColumn("n", "int"), Constant(2**40, "int")), "boolean")
    other = FunctionCall(large.function, (KeyColumn("n", "int"), Constant(5, "int")), "boolean")
    judge = compile_expression(FunctionCall(function, (large, other), "boolean"), [("n", "int")])
    assert judge(("1",)) is None
    assert judge(("5",)) is (function == "or")


@given(
    st.lists(comparisons(), min_size=1, max_size=8),
    st.sampled_from(["and", "or"]),
    st.lists(st.tuples(WORDS, WORDS, WORDS), min_size=1),
)
def test_many_equalities_are_judged_as_each_would_be(
    terms: list[FunctionCall], function: str, partitions: list[tuple[str, str, str]]
) -> None:
    apart = tuple(FunctionCall("not", (FunctionCall("not", (term,), "boolean"),), "boolean") for term in terms)
    together, one_by_one = (
        compile_expression(FunctionCall(function, arguments, "boolean"), [(column.name, column.type) for column in COLUMNS.values()])
        for arguments in (tuple(terms), apart)
    )
    for values in partitions:
        assert together(values) is one_by_one(values)


@given(
    st.lists(st.tuples(CONSTANTS["ds"], CONSTANTS["n"], st.booleans()), min_size=1, max_size=5),
    st.lists(st.tuples(WORDS, WORDS), min_size=1),
)
def test_structs_are_looked_up_as_each_would_be_compared(rows: list[tuple[str, int, bool]], partitions: list[tuple[str, str]]) -> None:
    node, keys = FunctionCall("struct", (COLUMNS["ds"], COLUMNS["n"]), "struct<>"), [("ds", "string"), ("n", "int")]
    wanted = [
        Constant([ds, n], "struct<>") if as_list else FunctionCall("struct", (Constant(ds, "string"), Constant(n, "int")), "struct<>")
        for ds, n, as_list in rows
    ]
    judge = compile_expression(FunctionCall("in", (node, *wanted), "boolean"), keys)
    for ds, number in partitions:
        equal = (ds, int(number)) in {row[:2] for row in rows} if number.isdigit() and ds not in ("", DEFAULT_PARTITION) else False
        verdict = judge((ds, number))
        assert verdict is True if equal else verdict is not True
        if number.isdigit() and ds not in ("", DEFAULT_PARTITION) and not any(None in row for row in rows):
            assert verdict is equal


class ConstantInUsedMemory(Constant):
    """A constant in the memory of a freed one. Python may reuse freed memory at any time; this class does so each time."""

    places: ClassVar[list[Self]] = []

    def __new__(cls, value: Any, type: str) -> Self:  # noqa: A002, ARG004  # as the base class names them
        unheld = next(sys.getrefcount(each) for each in [object()])
        for place in (each for each in cls.places if sys.getrefcount(each) == unheld):
            return place
        new = super().__new__(cls)
        cls.places.append(new)
        return new


def test_a_constant_is_not_taken_for_an_earlier_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pruning, "Constant", ConstantInUsedMemory)
    node = FunctionCall("struct", (COLUMNS["ds"], COLUMNS["n"]), "struct<>")
    rows = [ConstantInUsedMemory([ds, n], "struct<>") for ds, n in [(None, 5), ("a", 2)]]
    judge = compile_expression(FunctionCall("in", (node, *rows), "boolean"), [("ds", "string"), ("n", "int")])
    assert judge(("a", "2")) is True
    assert len(ConstantInUsedMemory.places) > len(rows)
