"""Hive prunes partitions in the server by the expressions that it serialises, and drops partitions by them, for each type of key."""

from __future__ import annotations

import pytest

from tests.hive4.conftest import Story
from tests.support.engines.hive import HiveError

pytestmark = pytest.mark.slow

KEYS = {
    "string": ("'a'", "'b'", "'c'", "'d e'", "'é/ü'"),
    "varchar(10)": ("'a'", "'b'", "'c'", "'d'", "'e'"),
    "int": ("1", "2", "3", "10", "100"),
    "bigint": ("1", "2", "3", "10", "5000000000"),
    "decimal(10,2)": ("0.10", "0.25", "2.00", "10.00", "12345678.91"),
    "date": tuple(f"DATE '{day}'" for day in ("1999-12-31", "2020-01-01", "2020-01-02", "2020-02-29", "2021-01-01")),
    "timestamp": tuple(f"TIMESTAMP '{time}'" for time in (
        "1999-12-31 23:59:59", "2020-01-01 00:00:00", "2020-01-01 00:00:00.5", "2020-01-02 10:11:12", "2021-01-01 00:00:00",
    )),
}  # fmt: skip
"""Types of keys, each with ascending values."""


def table(story: Story, key: str) -> tuple[str, ...]:
    """Make a table with one row in each of the type's five partitions; return the values."""
    values = KEYS[key]
    story.sql(f"CREATE EXTERNAL TABLE t (id int) PARTITIONED BY (k {key}) STORED AS TEXTFILE")
    rows = ", ".join(f"({number}, {value})" for number, value in enumerate(values))
    story.sql(f"INSERT INTO t PARTITION (k) VALUES {rows}")
    return values


def conditions(low: str, first: str, second: str, third: str, high: str) -> dict[str, set[int]]:
    """Return conditions on five ascending values, each with the indexes of the values that fulfil it."""
    return {
        f"k = {first}": {1}, f"k <> {first}": {0, 2, 3, 4}, f"k > {first}": {2, 3, 4}, f"k >= {first}": {1, 2, 3, 4}, f"k < {first}": {0},
        f"k <= {first}": {0, 1}, f"k IN ({low}, {second}, {high})": {0, 2, 4}, f"k NOT IN ({low}, {second})": {1, 3, 4},
        f"k BETWEEN {first} AND {third}": {1, 2, 3}, f"k NOT BETWEEN {first} AND {third}": {0, 4}, f"k = {low} OR k > {third}": {0, 4},
        f"k > {low} AND k < {high} AND NOT k = {second}": {1, 3}, "k IS NULL": set(), "k IS NOT NULL": {0, 1, 2, 3, 4},
        f"k > {third} AND id < 4": set(),
    }  # fmt: skip


@pytest.mark.parametrize("key", KEYS)
def test_selects_read_the_right_partitions(story: Story, key: str) -> None:
    values = table(story, key)
    for condition, numbers in conditions(*values).items():
        found = {int(row[0]) for row in story.sql(f"SELECT id FROM t WHERE {condition}")}
        assert found == numbers, condition


@pytest.mark.parametrize("key", KEYS)
def test_partitions_are_dropped_by_comparisons(story: Story, key: str) -> None:
    values = table(story, key)

    def left() -> set[int]:
        return {int(row[0]) for row in story.sql("SELECT id FROM t")}

    story.sql(f"ALTER TABLE t DROP PARTITION (k > {values[3]})")
    assert left() == {0, 1, 2, 3}
    story.sql(f"ALTER TABLE t DROP PARTITION (k <= {values[0]}), PARTITION (k = {values[2]})")
    assert left() == {1, 3}
    story.sql("SET hive.exec.drop.ignorenonexistent = false")
    with pytest.raises(HiveError):
        story.sql(f"ALTER TABLE t DROP PARTITION (k = {values[0]})")
    story.sql(f"ALTER TABLE t DROP IF EXISTS PARTITION (k = {values[0]})")
    assert left() == {1, 3}
    story.sql(f"ALTER TABLE t DROP PARTITION (k <> {values[1]})")
    assert left() == {1}
    assert len(story.sql("SHOW PARTITIONS t")) == 1


def test_several_keys_functions_and_the_default_partition(story: Story) -> None:
    story.sql("CREATE EXTERNAL TABLE t (id int) PARTITIONED BY (ds string, hr int) STORED AS TEXTFILE")
    story.sql(
        "INSERT INTO t PARTITION (ds, hr) VALUES (1, '2024-01-01', 1), (2, '2024-01-01', 2), (3, '2024-01-02', 1), (4, '2024-02-01', 10), "
        "(5, NULL, 3), (6, '2024-01-02', NULL)"
    )
    selected = {
        "ds = '2024-01-01' AND hr = 2": {2}, "ds > '2024-01-01' AND hr < 10": {3}, "hr > 2": {4, 5}, "hr IS NULL": {6},
        "ds = '__HIVE_DEFAULT_PARTITION__'": {5},
        "ds = '2024-01-01' OR hr = 10": {1, 2, 4}, "(ds, hr) IN (('2024-01-01', 1), ('2024-02-01', 10))": {1, 4},
        "substr(ds, 1, 7) = '2024-01'": {1, 2, 3, 6}, "upper(ds) = '2024-01-02' AND hr = 1": {3}, "cast(hr AS string) = '10'": {4},
        "year(ds) = 2024 AND hr + 1 = 2": {1, 3}, "ds LIKE '2024-0_-01'": {1, 2, 4}, "coalesce(hr, 7) = 7": {6}, "hr = 1 AND id > 1": {3},
        "cast(ds AS date) >= DATE '2024-01-02'": {3, 4, 6}, "hr IN (1, 2) AND ds BETWEEN '2024-01-01' AND '2024-01-31'": {1, 2, 3},
    }  # fmt: skip
    for condition, numbers in selected.items():
        assert {int(row[0]) for row in story.sql(f"SELECT id FROM t WHERE {condition}")} == numbers, condition
    assert story.sql("SHOW PARTITIONS t WHERE hr > 2 AND ds > '2024'") == [("ds=2024-02-01/hr=10",)]
    ordered = story.sql("SHOW PARTITIONS t WHERE ds = '2024-01-01' OR hr = 10 ORDER BY hr DESC LIMIT 2")
    assert ordered == [("ds=2024-02-01/hr=10",), ("ds=2024-01-01/hr=2",)]
    story.sql("ALTER TABLE t DROP PARTITION (ds > '2024-01-01', hr < 10)")
    assert {int(row[0]) for row in story.sql("SELECT id FROM t")} == {1, 2, 4, 5, 6}
    story.sql("ALTER TABLE t DROP PARTITION (ds = '__HIVE_DEFAULT_PARTITION__'), PARTITION (hr = 2)")
    assert {int(row[0]) for row in story.sql("SELECT id FROM t")} == {1, 4, 6}


def test_partitions_are_exchanged(story: Story) -> None:
    for name in ("source", "target"):
        story.sql(f"CREATE TABLE {name} (id int) PARTITIONED BY (ds string, hr int) STORED AS TEXTFILE TBLPROPERTIES ('external' = 'TRUE')")
    story.sql("INSERT INTO source PARTITION (ds, hr) VALUES (1, 'a', 1), (2, 'a', 2), (3, 'b', 1)")
    story.sql("ALTER TABLE target EXCHANGE PARTITION (ds = 'a') WITH TABLE source")
    assert sorted(story.sql("SELECT id FROM target")) == [("1",), ("2",)]
    assert story.sql("SELECT id FROM source") == [("3",)]
