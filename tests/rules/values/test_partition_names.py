"""Partition names: how values are escaped, read back, checked and searched for."""

from __future__ import annotations

import posixpath
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metastore.errors import InvalidObject, MetaError
from metastore.rules.values import partition_names as names

values = st.text(min_size=0, max_size=12) | st.sampled_from(["..", ".", "../../x", "/", "%2F", "a=b/c", "\0", "%", "é"])


def test_a_name_joins_lowered_keys_and_escaped_values() -> None:
    assert names.make_partition_name(["DT", "hr"], ["2020-01-01", "A:b/c"]) == "dt=2020-01-01/hr=A%3Ab%2Fc"


def test_exactly_the_characters_that_hive_escapes_are_escaped() -> None:
    changed = {chr(code) for code in range(0x250) if names.escape(chr(code)) != chr(code)}
    assert changed == {chr(code) for code in (*range(0x20), 0x7F)} | set("\"#%'*/:=?\\{[]^")
    assert names.escape("\x01") == "%01"
    assert names.escape("\x7f") == "%7F"
    assert names.escape(" }<>|&,@ü") == " }<>|&,@ü"


def test_an_empty_value_becomes_the_default_partition() -> None:
    assert names.make_partition_name(["a"], [""]) == "a=__HIVE_DEFAULT_PARTITION__"
    assert names.make_partition_name(["a"], [""], default_name="none") == "a=none"


def test_counts_that_differ_are_refused_with_both_lists() -> None:
    with pytest.raises(MetaError, match=r"Invalid partition key & values; keys \[a, b\], values \[1\]"):
        names.make_partition_name(["a", "b"], ["1"])
    with pytest.raises(MetaError, match=r"Invalid partition key & values; keys \[\], values \[\]"):
        names.make_partition_name([], [])


@pytest.mark.parametrize("text", ["%", "%4", "%zz", "100%", "%+1", "%²3"])
def test_a_percent_sign_without_two_digits_stays(text: str) -> None:
    assert names.unescape(text) == text


def test_lower_case_escapes_are_read_too() -> None:
    assert names.unescape("a%3ab") == "a:b"


@given(st.lists(values.filter(bool), min_size=1, max_size=4))
def test_written_values_read_the_same(written: list[str]) -> None:
    keys = [f"k{position}" for position in range(len(written))]
    name = names.make_partition_name(keys, written)
    assert names.partition_values(name) == written
    assert names.partition_spec(name) == dict(zip(keys, written, strict=True))
    assert names.values_for_keys(keys, name) == written


@given(st.lists(values, min_size=1, max_size=4), st.data())
def test_no_name_leaves_its_parent(written: list[str], data: st.DataObject) -> None:
    keys = data.draw(st.lists(values, min_size=len(written), max_size=len(written)))
    name = names.make_partition_name(keys, written)
    assert "\0" not in name
    assert name.count("/") == len(keys) - 1
    assert posixpath.normpath(posixpath.join("/w/t", name)) == "/w/t/" + name


@pytest.mark.parametrize("name", [None, "", "a", "a/b", "=1", "a=1/", "a=1//b=2", "/a=1"])
def test_names_that_are_no_list_of_pairs_are_refused(name: str | None) -> None:
    with pytest.raises(MetaError, match="Partition name is invalid"):
        names.partition_values(name)
    with pytest.raises(MetaError, match="Partition name is invalid"):
        names.partition_spec(name)


def test_a_value_may_hold_further_equals_signs() -> None:
    assert names.partition_spec("a=b=c") == {"a": "b=c"}


def test_values_follow_the_order_of_the_tables_keys() -> None:
    assert names.values_for_keys(["a", "b"], "b=2/a=1") == ["1", "2"]
    assert names.values_for_keys(["a", "b"], "a=1/b=2/c=3", may_have_more=True) == ["1", "2"]
    assert names.values_for_keys(["a", "B"], "A=1/b=2") == ["1", "2"]
    for wrong in ("a=1", "a=1/c=2", "nonsense", "", "a=1/b=2/c=3"):
        with pytest.raises(InvalidObject):
            names.values_for_keys(["a", "b"], wrong)
    for twice in ("a=1/b=2/a=1", "a=1/b=2/B=3", "a=1/b=2/c=3/c=3"):
        with pytest.raises(InvalidObject, match="twice"):
            names.values_for_keys(["a", "b"], twice, may_have_more=True)


@pytest.mark.parametrize("spelled", ["a=1%3A0/b=x", "A=1:0/B=x", "b=x/a=1%3a0", "A=1%3A0/b=%78"])
def test_every_spelling_of_a_name_is_one_stored_name(spelled: str) -> None:
    assert names.stored_names(["a", "B"], [spelled, "a=2/b=y"]) == ["a=1%3A0/b=x", "a=2/b=y"]


def test_an_empty_value_in_a_name_is_the_default_partition() -> None:
    assert names.stored_names(["a"], ["a="], "__NONE__") == ["a=__NONE__"]
    with pytest.raises(InvalidObject, match="missing b"):
        names.stored_names(["a", "b"], ["a=1"])


@pytest.mark.parametrize(
    ("spelled", "expected"),
    [
        ("A=1:0/b=X", "a=1%3A0/b=X"), ("a=1%3a0", "a=1%3A0"), ("a=100%", "a=100%25"), ("a=100%25", "a=100%25"), ("a=b=c", "a=b%3Dc"),
        ("P", "p"), ("", ""),
    ],
)  # fmt: skip
def test_a_name_is_canonical_without_its_table(spelled: str, expected: str) -> None:
    assert names.canonical_name(spelled) == expected


@given(st.lists(values.filter(bool), min_size=1, max_size=3))
def test_a_stored_name_is_canonical(found: list[str]) -> None:
    keys = ["a", "b", "c d"][: len(found)]
    name = names.make_partition_name(keys, found)
    assert names.canonical_name(name) == name
    assert names.stored_names(keys, [name]) == [name]


def test_values_outside_the_whitelist_are_refused() -> None:
    pattern = r"[\x20-\x7E&&[^,]]*"  # the pattern of Hive's documentation
    names.validate_values(["abc", ""], pattern)
    names.validate_values(["ü"])
    with pytest.raises(MetaError, match=re.escape("Partition value 'ü' contains a character not matched by whitelist")):
        names.validate_values(["abc", "ü"], pattern)
    with pytest.raises(MetaError, match="'a,b' contains"):
        names.validate_values(["a,b"], pattern)
    with pytest.raises(MetaError, match="NUL"):
        names.validate_values(["a\0"])
    with pytest.raises(MetaError, match="null"):
        names.validate_values([None])


@pytest.mark.parametrize(
    ("partial", "prefix"),
    [
        ([], ""),
        (["1"], "a=1/"),
        (["1", ""], "a=1/"),
        (["", "2"], ""),
        (["1", "2"], "a=1/b=2/"),
        (["1", "2", "x/y"], "a=1/b=2/c=x%2Fy"),
        (["1", "", "3"], "a=1/"),
    ],
)
def test_partial_values_give_the_longest_literal_prefix(partial: list[str], prefix: str) -> None:
    assert names.partial_values(["a", "b", "c"], partial)[0] == prefix


short = st.sampled_from(["", "1", "11", "a/b", names.DEFAULT_PARTITION])


@given(st.lists(short, max_size=3), st.lists(short, min_size=3, max_size=3))
def test_the_prefix_never_loses_a_partition_that_the_predicate_selects(partial: list[str], stored: list[str]) -> None:
    keys = ["a", "b", "c"]
    prefix, matches = names.partial_values(keys, partial)
    if matches(stored):
        assert names.make_partition_name(keys, stored).startswith(prefix)
    assert matches(stored) == all(
        not wanted or wanted == (given or names.DEFAULT_PARTITION) for wanted, given in zip(partial, stored, strict=False)
    )


def test_more_partial_values_than_keys_are_refused() -> None:
    with pytest.raises(MetaError, match="Incorrect number of partition values"):
        names.partial_values(["a"], ["1", "2"])
