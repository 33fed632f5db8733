"""Pools, triggers and mappings of a resource plan: they are edited and follow their pools; wrong edits get the errors of Hive's server."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from math import inf, nan

import pytest

from metastore.errors import AlreadyExists, InvalidObject, InvalidOperation, MetaError, MetastoreError, NoSuchObject
from metastore.idl import WMFullResourcePlan, WMMapping, WMNullablePool, WMPool, WMTrigger
from metastore.service.call.context import Call
from metastore.service.engines import resource_plan_contents as contents
from metastore.service.engines.resource_plans import ENABLED, get_resource_plan
from tests.support.catalog.plans import alter, create, link, pool, trigger
from tests.support.databases.statement_counts import StatementCounts

pytestmark = pytest.mark.on_one_database

Refusals = list[tuple[type[MetastoreError], str, Callable[[], None]]]


@pytest.fixture(autouse=True)
def plan(call: Call) -> None:
    """A disabled plan p."""
    create(call, "p")


def full(call: Call) -> WMFullResourcePlan:
    return get_resource_plan(call, "p", None)


def pools(call: Call) -> dict[str, tuple[float | None, int | None, str | None]]:
    return {each.poolPath: (each.allocFraction, each.queryParallelism, each.schedulingPolicy) for each in full(call).pools}


def links(call: Call) -> list[tuple[str, str]]:
    return [(each.pool, each.trigger) for each in full(call).poolTriggers or ()]


def mappings(call: Call) -> list[tuple[str, str, str | None, int | None]]:
    return [(each.entityType, each.entityName, each.poolPath, each.ordering) for each in full(call).mappings or ()]


def change_pool(call: Call, path: str, **changes: object) -> None:
    contents.alter_pool(call, WMNullablePool(resourcePlanName="p", **changes), path)  # type: ignore[arg-type]  # any field


def send(call: Call, kind: str, name: str, path: str | None, *, update: bool = False, ordering: int | None = None) -> None:
    mapping = WMMapping(resourcePlanName="p", entityType=kind, entityName=name, poolPath=path, ordering=ordering)
    contents.create_or_update_mapping(call, mapping, update=update)


def drop_mapping(call: Call, kind: str, name: str) -> None:
    contents.drop_mapping(call, WMMapping(resourcePlanName="p", entityType=kind, entityName=name))


def check(refused: Refusals) -> None:
    for kind, text, work in refused:
        with pytest.raises(kind, match=text):
            work()


def test_pools_are_made_changed_and_dropped(call: Call) -> None:
    pool(call, "P", "Default.A", 0.3, 3, "fair")
    contents.create_pool(call, WMPool(resourcePlanName="p", poolPath="default.b"))
    assert pools(call) == {"default": (1.0, 4, None), "default.a": (0.3, 3, "fair"), "default.b": (0.0, 0, None)}
    change_pool(call, "DEFAULT.B", allocFraction=0.7, queryParallelism=1, isSetSchedulingPolicy=True, schedulingPolicy="FIFO")
    change_pool(call, "default.a", poolPath="default.a", isSetSchedulingPolicy=True)
    assert pools(call) == {"default": (1.0, 4, None), "default.a": (0.3, 3, None), "default.b": (0.7, 1, "FIFO")}
    change_pool(call, "default.b", schedulingPolicy="fair", isSetSchedulingPolicy=False)
    assert pools(call)["default.b"] == (0.7, 1, "FIFO")
    contents.drop_pool(call, "p", "Default.b", None)
    assert list(pools(call)) == ["default", "default.a"]


def test_impossible_pools_are_refused(call: Call) -> None:
    pool(call, "p", "default.a")
    pool(call, "p", "default.ab")
    check(
        [
            (AlreadyExists, r"Pool already exists: default\.a", lambda: pool(call, "p", "default.A")),
            (NoSuchObject, "Pool path is invalid, the parent does not exist", lambda: pool(call, "p", "none.a")),
            (InvalidObject, "Invalid scheduling policy lifo", lambda: pool(call, "p", "x", policy="lifo")),
            (InvalidObject, "has an empty part", lambda: pool(call, "p", "default.")),
            (InvalidObject, "Alloc fraction nan of a pool is not a number", lambda: pool(call, "p", "x", fraction=nan)),
            (InvalidObject, "Alloc fraction inf of a pool is not a number", lambda: change_pool(call, "default", allocFraction=inf)),
            (NoSuchObject, "There is no resource plan named: none in default", lambda: pool(call, "none", "x")),
            (MetaError, "The pool is missing: set it", lambda: contents.create_pool(call, None)),
            (MetaError, "The name of the pool is missing: set it", lambda: contents.create_pool(call, WMPool(resourcePlanName="p"))),
            (NoSuchObject, "Cannot find pool: none", lambda: change_pool(call, "none", queryParallelism=1)),
            (
                InvalidObject,
                "Invalid scheduling policy lifo",
                lambda: change_pool(call, "default", isSetSchedulingPolicy=True, schedulingPolicy="lifo"),
            ),
            (InvalidObject, "has an empty part", lambda: change_pool(call, "default", poolPath="")),
            (MetaError, "The pool is missing: set it", lambda: contents.alter_pool(call, None, "default")),
            (InvalidOperation, "Cannot drop default pool of a resource plan", lambda: contents.drop_pool(call, "p", "default", None)),
            (NoSuchObject, "Cannot delete pool: none", lambda: contents.drop_pool(call, "p", "none", None)),
        ]
    )
    alter(call, "p", isSetDefaultPoolPath=True)
    check([(InvalidOperation, "Cannot drop a pool that has child pools", lambda: contents.drop_pool(call, "p", "default", None))])
    contents.drop_pool(call, "p", "default.a", None)
    assert list(pools(call)) == ["default", "default.ab"]


def test_the_children_of_a_pool_follow_it(call: Call) -> None:
    for path in ("default.a", "default.a.b", "defaults", "defaults.a"):
        pool(call, "p", path)
    trigger(call, "p", "t")
    for path in ("default.a", "defaults"):
        link(call, "p", "t", path)
    send(call, "USER", "u", "default.a.b")
    change_pool(call, "default", poolPath="Other")
    assert list(pools(call)) == ["defaults", "defaults.a", "other", "other.a", "other.a.b"]
    assert links(call) == [("defaults", "t"), ("other.a", "t")]
    assert mappings(call) == [("USER", "u", "other.a.b", 0)]
    assert full(call).plan.defaultPoolPath == "other"
    check(
        [
            (NoSuchObject, "Pool path is invalid, the parent does not exist", lambda: change_pool(call, "other", poolPath="none.x")),
            (NoSuchObject, "Pool path is invalid, the parent does not exist", lambda: change_pool(call, "other", poolPath="other.x")),
            (AlreadyExists, "Pool already exists: defaults", lambda: change_pool(call, "other", poolPath="defaults")),
        ]
    )
    change_pool(call, "other.a", poolPath="defaults.b")
    assert list(pools(call)) == ["defaults", "defaults.a", "defaults.b", "defaults.b.b", "other"]


def test_triggers_are_made_changed_and_dropped(call: Call) -> None:
    trigger(call, "p", "T_1", "ELAPSED_TIME > 10", "MOVE TO x")
    trigger(call, "p", "t_0")
    contents.alter_trigger(call, WMTrigger(resourcePlanName="p", triggerName="t_1", isInUnmanaged=True))
    contents.alter_trigger(
        call, WMTrigger(resourcePlanName="p", triggerName="t_0", triggerExpression="X > 1", actionExpression="MOVE TO y")
    )
    assert contents.get_triggers(call, "P", None) == [
        WMTrigger("p", "t_0", "X > 1", "MOVE TO y", isInUnmanaged=False, ns="default"),
        WMTrigger("p", "t_1", "ELAPSED_TIME > 10", "MOVE TO x", isInUnmanaged=True, ns="default"),
    ]
    link(call, "p", "t_0", "default")
    contents.drop_trigger(call, "p", "T_0", None)
    assert ([each.triggerName for each in full(call).triggers or ()], links(call)) == (["t_1"], [])
    check(
        [
            (AlreadyExists, "Trigger already exists, use alter: t_1", lambda: trigger(call, "p", "T_1")),
            (InvalidObject, "Trigger name cannot be empty", lambda: trigger(call, "p", " ")),
            (NoSuchObject, "There is no resource plan named: none in default", lambda: trigger(call, "none", "t")),
            (MetaError, "The trigger is missing: set it", lambda: contents.create_trigger(call, None)),
            (MetaError, "The trigger is missing: set it", lambda: contents.alter_trigger(call, None)),
            (
                NoSuchObject,
                "Cannot find trigger with name: none",
                lambda: contents.alter_trigger(call, WMTrigger(resourcePlanName="p", triggerName="none")),
            ),
            (NoSuchObject, "Cannot delete trigger: none", lambda: contents.drop_trigger(call, "p", "none", None)),
            (
                NoSuchObject,
                "There is no resource plan named: none in default",
                lambda: contents.drop_trigger(call, "none", "t_1", None),
            ),
        ]
    )
    with pytest.raises(NoSuchObject, match="There is no resource plan named: none in default"):
        contents.get_triggers(call, "none", None)


def test_a_trigger_is_in_any_number_of_pools(call: Call) -> None:
    pool(call, "p", "a")
    for name in ("t", "u"):
        trigger(call, "p", name)
    for _ in range(2):
        link(call, "p", "T", "A")
    link(call, "p", "t", "default")
    link(call, "p", "u", "a")
    assert links(call) == [("a", "t"), ("a", "u"), ("default", "t")]
    for _ in range(2):
        link(call, "p", "t", "a", drop=True)
    assert links(call) == [("a", "u"), ("default", "t")]
    contents.drop_pool(call, "p", "a", None)
    assert links(call) == [("default", "t")]
    for drop in (False, True):
        check(
            [
                (NoSuchObject, "Cannot find pool: none", lambda drop=drop: link(call, "p", "t", "none", drop=drop)),  # type: ignore[misc]
                (
                    NoSuchObject,
                    "Cannot find trigger with name: none",
                    lambda drop=drop: link(call, "p", "none", "default", drop=drop),  # type: ignore[misc]
                ),
            ]
        )


def test_users_groups_and_applications_are_mapped_to_pools(call: Call) -> None:
    pool(call, "p", "a")
    send(call, "user", "Alice", "A", ordering=3)
    send(call, " Group ", "g", None)
    send(call, "APPLICATION", "app", "default")
    send(call, "GROUP", "alice", "default")
    assert mappings(call) == [
        ("APPLICATION", "app", "default", 0),
        ("GROUP", "alice", "default", 0),
        ("GROUP", "g", None, 0),
        ("USER", "alice", "a", 3),
    ]
    send(call, "USER", "ALICE", "default", update=True)
    send(call, "GROUP", "g", "a", update=True, ordering=5)
    send(call, "APPLICATION", "app", None, update=True)
    assert mappings(call) == [
        ("APPLICATION", "app", None, 0),
        ("GROUP", "alice", "default", 0),
        ("GROUP", "g", "a", 5),
        ("USER", "alice", "default", 3),
    ]
    check(
        [
            (AlreadyExists, "Mapping already exists, use update: USER:alice", lambda: send(call, "USER", "alice", "a")),
            (NoSuchObject, "Cannot find mapping for USER:bob", lambda: send(call, "USER", "bob", "a", update=True)),
            (NoSuchObject, "Cannot find pool: none", lambda: send(call, "USER", "bob", "none")),
            (InvalidObject, "Entity type ROLE of a mapping is none of USER, GROUP, APPLICATION", lambda: send(call, "ROLE", "r", "a")),
            (MetaError, "The mapping is missing: set it", lambda: contents.create_or_update_mapping(call, None, update=False)),
            (MetaError, "The mapping is missing: set it", lambda: contents.drop_mapping(call, None)),
            (NoSuchObject, "Cannot delete mapping: USER:bob", lambda: drop_mapping(call, "USER", "bob")),
            (InvalidOperation, r"Please remove all mappings for this pool\.", lambda: contents.drop_pool(call, "p", "a", None)),
        ]
    )
    drop_mapping(call, "group", "G")
    contents.drop_pool(call, "p", "a", None)
    assert [each[:2] for each in mappings(call)] == [("APPLICATION", "app"), ("GROUP", "alice"), ("USER", "alice")]


def test_an_enabled_plan_is_not_edited(call: Call) -> None:
    trigger(call, "p", "t")
    send(call, "USER", "u", "default")
    alter(call, "p", status=ENABLED)
    before = full(call)
    edits: list[Callable[[], None]] = [
        lambda: pool(call, "p", "x"),
        lambda: change_pool(call, "default", queryParallelism=1),
        lambda: contents.drop_pool(call, "p", "default", None),
        lambda: trigger(call, "p", "x"),
        lambda: contents.alter_trigger(call, WMTrigger(resourcePlanName="p", triggerName="t", isInUnmanaged=True)),
        lambda: contents.drop_trigger(call, "p", "t", None),
        lambda: link(call, "p", "t", "default"),
        lambda: link(call, "p", "t", "default", drop=True),
        lambda: send(call, "USER", "x", "default"),
        lambda: send(call, "USER", "u", None, update=True),
        lambda: drop_mapping(call, "USER", "u"),
    ]
    check([(InvalidOperation, r"Resource plan must be disabled to edit it\.", edit) for edit in edits])
    assert full(call) == before


def test_no_edit_of_several_at_once_is_lost(call: Call) -> None:
    def work(number: int) -> None:
        pool(call, "p", f"p{number}")
        trigger(call, "p", f"t{number}")
        link(call, "p", f"t{number}", f"p{number}")
        send(call, "USER", f"u{number}", f"p{number}")

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(work, range(20)))
    found = full(call)
    assert (len(found.pools), len(found.triggers or ()), len(links(call)), len(mappings(call))) == (21, 20, 20, 20)


@pytest.mark.parametrize("size", [1, 20])
def test_statement_counts(call: Call, counts: StatementCounts, size: int) -> None:
    for number in range(size):
        pool(call, "p", f"p{number}")
    counts("create a pool", lambda: pool(call, "p", "default.a"))
    counts("move a pool", lambda: change_pool(call, "default", poolPath="other"))
    counts("create a trigger", lambda: trigger(call, "p", "t"))
    counts("let a pool have it", lambda: link(call, "p", "t", "other"))
    counts("map a user", lambda: send(call, "USER", "u", "other"))
    counts("list triggers", lambda: contents.get_triggers(call, "p", None))
    counts("drop the trigger", lambda: contents.drop_trigger(call, "p", "t", None))
