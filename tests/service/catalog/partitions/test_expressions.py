"""Partitions by the expressions of Hive's clients: they are read, listed and dropped, or the request is refused."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy

import pytest

from metastore.errors import MetaError, NoSuchObject, RequestTooLarge
from metastore.rules.values.partition_names import partition_values
from metastore.service.call.context import Call
from metastore.service.call.names import TableName
from metastore.service.catalog.partitions import expressions, partition_queries
from metastore.service.catalog.partitions.alter_partitions import alter_partitions
from metastore.service.catalog.partitions.expressions import Dropped, get_partition_names_by_expression, get_partitions_by_expression
from metastore.service.catalog.partitions.partitions import get_partition, get_partition_names
from tests.support.catalog.catalog import MetastoreMaker, add_partitions, call_of, make_table
from tests.support.databases.statement_counts import StatementCounts
from tests.support.engines.hive_expressions import EXPRESSIONS, KEYS, PARTITIONS

NAME = TableName("hive", "default", "t")
NOTHING = b"\xff"


def expression(text: str, version: str = "4.0.1") -> bytes:
    return EXPRESSIONS[text, version].data


@pytest.fixture
def table(call: Call) -> TableName:
    """A table with a key of each type and the sixty partitions that Hive judged."""
    name = make_table(call, "t", [("x", "int")], keys=KEYS)
    add_partitions(call, name, [partition_values(each) for each in PARTITIONS])
    return name


def drop(call: Call, *wanted: bytes, if_exists: bool = False, level: int | None = None) -> set[str]:
    dropped = expressions.drop_partitions_by_expressions(
        call, NAME, [Dropped(each, level) for each in wanted], delete_data=False, if_exists=if_exists
    )
    return {"/".join(each.values) for each in dropped}


def values(names: Sequence[str]) -> set[str]:
    return {"/".join(partition_values(name)) for name in names}


@pytest.mark.parametrize("version", ["3.1.3", "4.0.1"])
def test_partitions_and_names_are_as_hive_keeps_them(call: Call, table: TableName, version: str) -> None:
    for text in ("ds > '2020'", "ds = '2020'", "n IN (1, 2, 3)", "d > DATE '2020-01-01'", "ds <=> 'a'", "n IN (5, NULL)"):
        wanted = EXPRESSIONS[text, version]
        found = get_partitions_by_expression(call, table, wanted.data)
        names = get_partition_names_by_expression(call, table, wanted.data)
        assert set(names) == wanted.kept
        assert [each.values for each in found.items] == [partition_values(name) for name in names]
        assert found.is_certain != wanted.unknown


def test_an_unknown_expression_may_mean_any_partition(call: Call, table: TableName) -> None:
    found = get_partitions_by_expression(call, table, expression("year(d) = 2020"))
    assert (len(found.items), found.is_certain) == (60, False)
    found = get_partitions_by_expression(call, table, expression("n = 5 AND upper(ds) = 'A'"))
    assert {each.values[1] for each in found.items} == {"5", "__HIVE_DEFAULT_PARTITION__"}
    assert not found.is_certain


def test_limits_and_no_expression(call: Call, table: TableName) -> None:
    names = sorted(PARTITIONS, key=str.encode)
    for empty in (b"", NOTHING):
        assert get_partition_names_by_expression(call, table, empty, 3) == names[:3]
        assert len(get_partitions_by_expression(call, table, empty).items) == 60
    kept = sorted(EXPRESSIONS["ds > '2020'", "4.0.1"].kept, key=str.encode)
    found = get_partitions_by_expression(call, table, expression("ds > '2020'"), 2)
    assert [each.values for each in found.items] == [partition_values(name) for name in kept[:2]]


def test_names_come_in_the_order_that_is_asked_for(call: Call) -> None:
    make_table(call, "t", keys=[("ds", "string"), ("n", "int")])
    add_partitions(call, NAME, [["a", "9"], ["a", "10"], ["b", "9"], ["b", ""]])

    def ordered(order: str) -> list[str]:
        return [name.replace("__HIVE_DEFAULT_PARTITION__", "-") for name in
                get_partition_names_by_expression(call, NAME, NOTHING, order=order)]  # fmt: skip

    assert ordered("1:+") == ["ds=b/n=-", "ds=a/n=9", "ds=b/n=9", "ds=a/n=10"]
    assert ordered("1,0:--") == ["ds=a/n=10", "ds=b/n=9", "ds=a/n=9", "ds=b/n=-"]
    assert ordered("0,1:-+") == ["ds=b/n=-", "ds=b/n=9", "ds=a/n=9", "ds=a/n=10"]
    assert ordered("no order") == ["ds=a/n=10", "ds=a/n=9", "ds=b/n=9", "ds=b/n=-"]
    with pytest.raises(MetaError, match="The order 2:- names a missing partition key: give positions from 0 to 1"):
        ordered("2:-")


def test_expressions_drop_their_partitions_together(call: Call, table: TableName) -> None:
    first, second = EXPRESSIONS["ds = '2020'", "4.0.1"], EXPRESSIONS["n IN (1, 2, 3)", "3.1.3"]
    assert drop(call, first.data, second.data) == values([*first.kept, *second.kept])
    assert set(get_partition_names(call, table)) == set(PARTITIONS) - first.kept - second.kept
    with pytest.raises(NoSuchObject, match=r"Some partitions to drop are missing: an expression selects none of hive\.default\.t"):
        drop(call, expression("ds > '2020'"), first.data)
    assert drop(call, first.data, if_exists=True) == set()
    assert set(get_partition_names(call, table)) == set(PARTITIONS) - first.kept - second.kept


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("year(d) = 2020", "class hive.ql.udf.UDFYear, which is not known here"),
        ("upper(ds) = 'A' OR n = 5", "Unexpected unknown partitions to drop: the expression can not be evaluated for some partitions of"),
    ],
)
def test_partitions_that_are_not_certain_are_not_dropped(call: Call, table: TableName, text: str, match: str) -> None:
    with pytest.raises(MetaError, match=match):
        drop(call, expression("ds = '2020'"), expression(text))
    assert len(get_partition_names(call, table)) == 60


def test_a_part_of_an_archive_is_not_dropped(call: Call) -> None:
    make_table(call, "t", keys=[("ds", "string"), ("n", "int")])
    add_partitions(call, NAME, [["2020", "1"], ["2021", "1"]])
    archived = deepcopy(get_partition(call, NAME, ["2020", "1"]))
    archived.parameters |= {"is_archived": "true", "archiving_level": "1"}
    alter_partitions(call, NAME, [archived])
    with pytest.raises(MetaError, match=r"Cannot drop a subset of partitions in an archive, partition ds=2020/n=1 of default\.t"):
        drop(call, expression("ds = '2020'"), level=2)
    assert drop(call, expression("ds = '2020'"), level=1) == {"2020/1"}


def test_a_filter_string_stands_for_an_expression(call: Call, table: TableName) -> None:
    kept = EXPRESSIONS["ds IN ('a', 'b')", "4.0.1"].kept
    text = b"(ds='a') OR (ds='b')"
    assert set(get_partition_names_by_expression(call, table, text)) == kept
    assert drop(call, text) == values(list(kept))


def test_a_drop_by_filter_takes_no_partition_that_can_not_be_judged(call: Call) -> None:
    name = make_table(call, "t", keys=[("my-key", "date"), ("größe", "int"), ("s", "string")])
    add_partitions(call, name, [["2020-01", "5", "abc"], ["2020-01-01", "5", "a.*"], ["2020-01-01", "x", "b"], ["2020-01-02", "6", "c"]])
    for text, unjudged in (
        ("my-key = '2020-01-01'", "my-key=2020-01/größe=5/s=abc"),
        ("größe = 5", "my-key=2020-01-01/größe=x/s=b"),
        ("my-key < +10000-01-01", "my-key=2020-01-01/größe=5/s=a.%2A, .*"),
        ("s like 'a.*'", "my-key=2020-01/größe=5/s=abc"),
        ("my-key = '2020-01-01' and s != 'c'", "my-key=2020-01/größe=5/s=abc"),
    ):
        with pytest.raises(MetaError, match=f"Unexpected unknown partitions to drop: .*: {unjudged}; compare keys"):
            drop(call, text.encode())
        found = get_partitions_by_expression(call, name, text.encode())
        assert not found.is_certain
        assert len(found.items) > 0
    assert len(get_partition_names(call, name)) == 4
    assert drop(call, "my-key = '2020-01-02' and größe = 6".encode()) == {"2020-01-02/6/c"}
    assert drop(call, b"s = 'abc' or s = 'b'") == {"2020-01/5/abc", "2020-01-01/x/b"}


@pytest.mark.parametrize("data", [b"\x00\x01", b"\xfe\xff", b"\x80abc", b"ds ="])
def test_garbage_is_a_clear_error(call: Call, table: TableName, data: bytes) -> None:
    for use in (get_partitions_by_expression, get_partition_names_by_expression):
        with pytest.raises(
            MetaError, match=r"parsing partition filter|is neither a serialised expression of Hive's client nor a filter string"
        ):
            use(call, table, data)
    with pytest.raises(MetaError):
        drop(call, data)
    assert len(get_partition_names(call, table)) == 60


def test_hive_s_proxy_without_its_engine_refuses(make_metastore: MetastoreMaker, call: Call, table: TableName) -> None:
    proxy = "org.apache.hadoop.hive.metastore.DefaultPartitionExpressionProxy"
    refusing = call_of(make_metastore(expression_proxy=proxy))
    for use in (get_partitions_by_expression, get_partition_names_by_expression):
        with pytest.raises(MetaError, match=r"java\.lang\.UnsupportedOperationException"):
            use(refusing, table, expression("ds > '2020'"))
    with pytest.raises(MetaError, match=r"java\.lang\.UnsupportedOperationException"):
        drop(refusing, expression("ds > '2020'"))
    assert len(get_partitions_by_expression(refusing, table, b"").items) == 60


def test_a_request_for_too_many_is_refused(make_metastore: MetastoreMaker, table: TableName) -> None:
    limited = call_of(make_metastore(limit_partition_request=5))
    with pytest.raises(RequestTooLarge, match=r"Number of partitions scanned \(="):
        get_partitions_by_expression(limited, table, expression("ds IS NOT NULL"))


@pytest.mark.parametrize("text", ["ds = '2020'", "ds > '2020'", "year(d) = 2020"])
def test_statements_do_not_grow_with_the_selected_partitions(call: Call, counts: StatementCounts, table: TableName, text: str) -> None:
    counts("get partitions", lambda: get_partitions_by_expression(call, table, expression(text)))


@pytest.mark.parametrize("many", [1, 30])
@pytest.mark.parametrize("key", ["n", "s"])
def test_a_drop_by_many_expressions_reads_the_table_once(call: Call, counts: StatementCounts, many: int, key: str) -> None:
    name = make_table(call, "t", keys=[("s", "string"), ("n", "int")])
    add_partitions(call, name, [[f"s{number}", str(number)] for number in range(40)])
    texts = [f"n = {number}" if key == "n" else f"s >= 's{number}' and s <= 's{number}'" for number in range(many)]
    dropped = counts("drop", lambda: drop(call, *(text.encode() for text in texts)))
    assert dropped == {f"s{number}/{number}" for number in range(many)}
    assert len(get_partition_names(call, name)) == 40 - many


def test_expressions_drop_the_same_page_by_page(call: Call, table: TableName, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition_queries, "AT_ONCE", 3)
    monkeypatch.setattr(partition_queries, "PAGE", 7)
    first, second = EXPRESSIONS["ds = '2020'", "4.0.1"], EXPRESSIONS["n IN (1, 2, 3)", "3.1.3"]
    with pytest.raises(MetaError, match="Unexpected unknown partitions"):
        drop(call, first.data, expression("upper(ds) = 'A' OR n = 5"))
    assert drop(call, first.data, second.data) == values([*first.kept, *second.kept])
    with pytest.raises(NoSuchObject, match="Some partitions to drop are missing"):
        drop(call, expression("ds > '2020'"), first.data)
