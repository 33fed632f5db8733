"""Hadoop's short names of principals: the translations of TestKerberosName, and rules and names that can not be read."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metastore.errors import InvalidInput
from metastore.rules.accounts.kerberos_names import NameRules, Principal, parse_principal

REALM = "EXAMPLE.COM"
HADOOP = """RULE:[1:$1@$0](.*@YAHOO\\.COM)s/@.*//
RULE:[2:$1](johndoe)s/^.*$/guest/
RULE:[2:$1;$2](^.*;admin$)s/;admin$//
RULE:[2:$2](root)
DEFAULT"""
LOWER = """RULE:[1:$1]/L
RULE:[2:$1;$2](^.*;admin$)s/;admin$///L
RULE:[2:$1;$2](^.*;guest$)s/;guest$//g/L
RULE:[2:$1]/L
DEFAULT"""


@pytest.mark.parametrize(
    ("rules", "principal", "user"),
    [
        (HADOOP, "omalley@EXAMPLE.COM", "omalley"),
        (HADOOP, "hdfs/10.0.0.1@EXAMPLE.COM", "hdfs"),
        (HADOOP, "oom@YAHOO.COM", "oom"),
        (HADOOP, "johndoe/zoo@FOO.COM", "guest"),
        (HADOOP, "joe/admin@FOO.COM", "joe"),
        (HADOOP, "joe/root@FOO.COM", "root"),
        (LOWER, "Joe@FOO.COM", "joe"),
        (LOWER, "Joe/admin@FOO.COM", "joe"),
        (LOWER, "Joe/guestguest@FOO.COM", "joe"),
        ("DEFAULT", "alice", "alice"),
        ("RULE:[1:$1](a.*)s/a/b/ RULE:[1:$1]s/a/b/g", "banana@X", "bbnbnb"),
        ("RULE:[1:$1]s/(.)(.)/$2\\$$1/", "ab@X", "b$a"),
        ("RULE:[1:$1]s/(x)?a/$1b/", "a@X", "b"),
        ("RULE:[2:$2-$1]DEFAULT", "hive/host@X", "host-hive"),
    ],
)
def test_a_principal_has_the_short_name_of_its_first_rule(rules: str, principal: str, user: str) -> None:
    assert NameRules(rules, REALM).short_name(principal) == user


@pytest.mark.parametrize("principal", ["foo@ACME.COM", "root/joe@FOO.COM"])
def test_a_principal_that_no_rule_fits_is_refused(principal: str) -> None:
    with pytest.raises(InvalidInput, match=rf"No rule of kerberos_name_rules names the user of {principal}"):
        NameRules(HADOOP, REALM).short_name(principal)


@pytest.mark.parametrize("name", ["a/b/c@FOO.COM", "a@foo/bar.com", "", "@FOO", "a@", "a@b@c", "a\\/b@EXAMPLE.COM", "a" * 2000])
def test_other_names_are_no_principals(name: str) -> None:
    with pytest.raises(InvalidInput, match="is not a Kerberos name"):
        parse_principal(name)


def test_a_rule_must_make_a_short_name() -> None:
    with pytest.raises(InvalidInput, match=r"RULE:\[1:\$1@\$0\] makes 'alice@X', which is not a short name"):
        NameRules("RULE:[1:$1@$0]", REALM).short_name("alice@X")


def test_a_rule_that_names_nobody_is_passed_over() -> None:
    assert NameRules("RULE:[1:$1]s/.*// DEFAULT", REALM).short_name("alice@EXAMPLE.COM") == "alice"


@pytest.mark.parametrize(
    ("rules", "reason"),
    [
        ("DEFAULT nonsense", "'nonsense' is not a rule"),
        ("RULE:[:$1]", "is not a rule"),
        ("RULE:[1:$2]", r"\$2 in RULE:\[1:\$2\] names no part"),
        ("RULE:[1:$]", "names no part"),
        ("RULE:[1:$1](*)", "can not be read"),
        ("RULE:[1:$1]s/[/x/", "can not be read"),
        ("RULE:[1:$1]s/a/$1/", "names no group"),
        ("RULE:[1:$1]s/a/$/", "names no group"),
    ],
)
def test_rules_that_can_not_be_read_are_refused_at_once(rules: str, reason: str) -> None:
    with pytest.raises(InvalidInput, match=reason):
        NameRules(rules, REALM)


@given(st.text(max_size=40), st.text(alphabet="aB/@\\.$", max_size=30))
def test_any_text_is_read_or_refused(rules: str, principal: str) -> None:
    for given_rules in (rules, HADOOP):
        try:
            found = NameRules(given_rules, REALM).short_name(principal)
        except InvalidInput:
            continue
        assert found
        assert not set(found) & set("/@")


def test_a_principal_is_written_as_it_was_read() -> None:
    assert str(parse_principal("hive/h@R")) == "hive/h@R"
    assert parse_principal("hive@R") == Principal("hive", None, "R")
