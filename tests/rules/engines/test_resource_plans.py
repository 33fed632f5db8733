"""The errors of a resource plan, in Hive's words."""

from __future__ import annotations

import pytest

from metastore.errors import InvalidObject
from metastore.idl import WMFullResourcePlan, WMPool, WMResourcePlan
from metastore.rules.engines.resource_plans import is_policy, pool_path, shortcomings


def plan(*pools: tuple[str, float | None, int | None], parallelism: int | None = None, policy: str | None = None) -> WMFullResourcePlan:
    made = [WMPool(poolPath=path, allocFraction=part, queryParallelism=number, schedulingPolicy=policy) for path, part, number in pools]
    return WMFullResourcePlan(plan=WMResourcePlan(name="p", queryParallelism=parallelism), pools=made)


@pytest.mark.parametrize(
    ("full", "errors"),
    [
        (plan(("default", 1.0, 4)), []),
        (plan(("a", 0.7, 1), ("b", 0.3, 1), ("a.x", 0.2, 1), ("a.y", 0.8, 1)), []),
        (plan(("a", 1.0, 1), ("a.x", 0.1, 1)), []),
        (plan(), ["Root has no children"]),
        (plan(("a", 0.5, 1)), ["Sum of root children pools' alloc fraction should be 1.0 got: 0.5 for pool: "]),
        (plan(("a", 1.5, 1)), ["Sum of root children pools' alloc fraction should be 1.0 got: 1.5 for pool: "]),
        (plan(("a", 0.999995, 1)), []),
        (
            plan(("a", 1.0, 1), ("a.x", 0.3, 1), ("a.y", 0.75, 1)),
            ["Sum of children pools' alloc fraction should be less than 1 got: 1.05 for pool: a"],
        ),
        (plan(("a", 1.0, 1), ("b.x", 0.3, 1)), ["Pool does not exists but has children: b"]),
        (plan(("a", 1.0, 0)), ["Invalid query parallelism for pool: a"]),
        (plan(("a", None, None)), ["Sum of root children pools' alloc fraction should be 1.0 got: 0.0 for pool: "]),
        (plan(("a", 1.0, 1), policy="lifo"), ["Invalid scheduling policy lifo for pool: a"]),
        (plan(("a", 1.0, 5), parallelism=4), ["Sum of all pools' query parallelism: 5 exceeds resource plan query parallelism: 4"]),
        (
            plan(("a", 1.0, 1), parallelism=0),
            [
                "Query parallelism should for resource plan be positive. Got: 0",
                "Sum of all pools' query parallelism: 1 exceeds resource plan query parallelism: 0",
            ],
        ),
    ],
)
def test_errors(full: WMFullResourcePlan, errors: list[str]) -> None:
    assert shortcomings(full) == (errors, [])


def test_a_plan_that_leaves_queries_over_is_warned_of() -> None:
    text = "Sum of all pools' query parallelism: 9 is less than resource plan query parallelism: 10"
    assert shortcomings(plan(("a", 1.0, 5), ("a.x", 1.0, 4), parallelism=10)) == ([], [text])


@pytest.mark.parametrize(("name", "known"), [(None, True), (" Fair ", True), ("fifo", True), ("default", True), ("", False), ("x", False)])
def test_scheduling_policies(name: str | None, known: bool) -> None:
    assert is_policy(name) is known


@pytest.mark.parametrize("path", ["", " ", "a.", ".a", "a..b"])
def test_a_pool_s_path_has_no_empty_part(path: str) -> None:
    assert pool_path(" A.b ") == "a.b"
    with pytest.raises(InvalidObject, match="has an empty part"):
        pool_path(path)
