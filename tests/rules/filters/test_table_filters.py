"""Table filters: the tables that `get_table_names_by_filter` selects."""

from __future__ import annotations

import pytest

from metastore.errors import MetaError
from metastore.rules.filters import TableFacts, compile_table_filter, keys_in, parse

TABLES = [
    TableFacts("t1", "MANAGED_TABLE", "alice", 30, {"table_type": "ICEBERG", "n": "1"}),
    TableFacts("t2", "EXTERNAL_TABLE", "bob", 60, {"table_type": "iceberg", "discover.partitions": "true"}),
    TableFacts("v1", "VIRTUAL_VIEW", None, 90, {}),
]


def select(text: str) -> list[str]:
    predicate = compile_table_filter(parse(text, keys_in(text)))
    return [facts.name for facts in TABLES if predicate(facts)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ["t1", "t2", "v1"]),
        ("hive_filter_field_owner__ = 'alice'", ["t1"]),
        ("hive_filter_field_owner__ != 'alice'", ["t2"]),
        ("hive_filter_field_owner__ like '.*o.*'", ["t2"]),
        ("hive_filter_field_owner__ like 'alice|bob'", ["t1", "t2"]),
        ("hive_filter_field_last_access__ > 30", ["t2", "v1"]),
        ("30 < hive_filter_field_last_access__", ["t2", "v1"]),
        ("hive_filter_field_last_access__ between 30 and 60", ["t1", "t2"]),
        ("hive_filter_field_last_access__ not between 30 and 60", ["v1"]),
        ("hive_filter_field_params__table_type = 'ICEBERG'", ["t1"]),
        ("hive_filter_field_params__table_type like '.*'", ["t1", "t2"]),
        ("hive_filter_field_params__table_type <> 'ICEBERG'", ["t2"]),
        ("hive_filter_field_params__n = 1", ["t1"]),
        ("hive_filter_field_params__discover__partitions = 'true'", ["t2"]),
        ("`hive_filter_field_params__discover.partitions` = 'true'", ["t2"]),
        ("hive_filter_field_params__discover.partitions = 'true'", ["t2"]),
        ("hive_filter_field_params__discover.partitions='true' or hive_filter_field_params__n not like '2.*'", ["t1", "t2"]),
        ("hive_filter_field_tableName__ like '(?i)T.*'", ["t1", "t2"]),
        ("hive_filter_field_tableName__ like 't.*' and hive_filter_field_tableType__ = 'EXTERNAL_TABLE'", ["t2"]),
        ("(hive_filter_field_tableType__) in ('MANAGED_TABLE', 'VIRTUAL_VIEW')", ["t1", "v1"]),
        ("(hive_filter_field_tableType__) not in ('MANAGED_TABLE', 'VIRTUAL_VIEW')", ["t2"]),
        ("hive_filter_field_owner__ = 'bob' or hive_filter_field_last_access__ = 90", ["t2", "v1"]),
    ],
)
def test_tables_are_selected_by_their_facts(text: str, expected: list[str]) -> None:
    assert select(text) == expected


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("owner = 'x'", "Invalid key name"),
        ("hive_filter_field_last_access__ like '1'", "Like is not supported"),
        ("hive_filter_field_last_access__ = 'x'", "number of seconds"),
        ("hive_filter_field_params__n > 1", "are supported operators"),
        ("hive_filter_field_owner__ like '('", "Invalid pattern"),
    ],
)
def test_conditions_that_tables_do_not_have_are_a_meta_error(text: str, reason: str) -> None:
    with pytest.raises(MetaError, match=reason):
        select(text)
