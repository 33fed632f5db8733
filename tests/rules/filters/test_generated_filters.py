"""Generated filters: prefixes of names never lose a match, and many partitions are judged like each one alone."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from metastore.rules.filters import And, Between, Comparison, In, Node, Or, parse, select_partitions
from metastore.rules.filters import leading_prefixes as prefixes
from metastore.rules.values.partition_names import DEFAULT_PARTITION, make_partition_name


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a = 'x'", ["a=x/"]),
        ("a = 'x' and b = 'y/z'", ["a=x/b=y%2Fz/"]),
        ("(a) in ('x', 'y') and (b) in ('1', '2')", ["a=x/b=1/", "a=x/b=2/", "a=y/b=1/", "a=y/b=2/"]),
        ("a = 'x' or a = 'y'", ["a=x/", "a=y/"]),
        ("a = 'x' and a = 'y'", []),
        ("a = 'x' or b = 'y'", None),
        ("b = 'y'", None),
        ("a != 'x'", None),
        ("(a) not in ('x')", None),
        ("a > 'x'", None),
        ("a like 'x'", None),
        ("a = 'x' and c = 3", ["a=x/"]),
        ("a = 'x' and b = 'y' and c = 3", ["a=x/b=y/"]),
        ("a = ''", [f"a={DEFAULT_PARTITION}/"]),
        ("a = 'x' and (b = 'y' or c = 1)", ["a=x/"]),
    ],
)
def test_equality_on_leading_texts_narrows_the_names(text: str, expected: list[str] | None) -> None:
    assert prefixes(parse(text), [("a", "string"), ("b", "varchar(9)"), ("c", "int")]) == expected


def test_a_prefix_of_all_keys_is_the_whole_name() -> None:
    assert prefixes(parse("a = 'x'"), [("a", "string")]) == ["a=x"]
    assert prefixes(parse("a = 1"), [("a", "int")]) is None
    assert prefixes(parse("a = 'x'"), [("a", "char(3)")]) is None
    assert prefixes(None, [("a", "string")]) is None


def test_no_prefix_begins_with_another() -> None:
    assert prefixes(parse("(a) in ('1', '10', '2', '100')"), [("a", "string")]) == ["a=1", "a=2"]


def test_too_many_prefixes_are_none() -> None:
    many = ", ".join(f"'{number}'" for number in range(5000))
    assert prefixes(parse(f"(a) in ({many})"), [("a", "string")]) is None


texts = st.sampled_from(["", "x", "y", "a/b", "a%2Fb", "2020-01-31", "é", DEFAULT_PARTITION, "1", "x/b=y"])
keys = st.sampled_from(["a", "b", "A"])
signs = st.sampled_from(["=", "=", "!=", "<", "<=", ">", ">=", "like", "not like"])
leaves: st.SearchStrategy[Node] = (
    st.builds(Comparison, keys, signs, texts)
    | st.builds(In, keys, st.lists(texts, min_size=1, max_size=3).map(tuple), st.booleans())
    | st.builds(Between, keys, texts, texts, st.booleans())
    | st.builds(Comparison, st.just("c"), st.sampled_from(["=", "<"]), st.integers(0, 3))
)
nodes = st.recursive(
    leaves,
    lambda inner: (
        st.builds(And, st.lists(inner, min_size=2, max_size=3).map(tuple))
        | st.builds(Or, st.lists(inner, min_size=2, max_size=3).map(tuple))
    ),
    max_leaves=8,
)


@given(nodes, st.lists(st.tuples(texts, texts, st.sampled_from(["1", "2", "x"])), min_size=1, max_size=10))
@example(And((Comparison("a", "=", ""), In("a", (DEFAULT_PARTITION, "x"), False))), [("", "x", "1")])
def test_narrowing_never_loses_a_match(node: Node, partitions: list[tuple[str, str, str]]) -> None:
    columns = [("a", "string"), ("b", "varchar(30)"), ("c", "int")]
    narrowed = prefixes(node, columns)
    for position in select_partitions(node, columns, partitions).positions:
        if narrowed is not None:
            values = partitions[position]
            name = make_partition_name(["a", "b", "c"], values)
            assert any(name.startswith(prefix) for prefix in narrowed)


def plainly(node: Node, columns: list[tuple[str, str]], values: tuple[str, str, str]) -> bool:
    """Return whether a partition of two texts and an int matches: a slow, direct evaluation of the tree."""
    if isinstance(node, And):
        return all(plainly(child, columns, values) for child in node.children)
    if isinstance(node, Or):
        return any(plainly(child, columns, values) for child in node.children)
    if isinstance(node, In):
        return node.negated != any(plainly(Comparison(node.key, "=", value), columns, values) for value in node.values)
    if isinstance(node, Between):
        ends = Comparison(node.key, ">=", node.low), Comparison(node.key, "<=", node.high)
        return all(plainly(end, columns, values) for end in ends) != node.negated
    text = values["abc".index(node.key.lower())]
    if node.key == "c":
        return {"=": int(text) == node.value, "<": int(text) < node.value}[node.operator]  # type: ignore[operator]
    wanted = str(node.value)
    if wanted == DEFAULT_PARTITION:
        text = text or wanted
    return {
        "=": text == wanted,
        "!=": text != wanted,
        "<": text < wanted,
        "<=": text <= wanted,
        ">": text > wanted,
        ">=": text >= wanted,
        "like": text == wanted,
        "not like": text != wanted,
    }[node.operator]


@given(nodes, st.lists(st.tuples(texts, texts, st.sampled_from(["1", "2", "3"])), min_size=1, max_size=200))
def test_many_partitions_are_judged_as_each_would_be(node: Node, partitions: list[tuple[str, str, str]]) -> None:
    columns = [("a", "string"), ("b", "varchar(30)"), ("c", "int")]
    if "_" in str(node).replace(DEFAULT_PARTITION, "") or f"like', value='{DEFAULT_PARTITION}" in str(node):
        return  # a wildcard of LIKE, which `plainly` does not support
    found = select_partitions(node, columns, partitions)
    assert found.positions == [number for number, values in enumerate(partitions) if plainly(node, columns, values)]
    assert not found.unjudged or any(value in ("", DEFAULT_PARTITION) for values in partitions for value in values)
