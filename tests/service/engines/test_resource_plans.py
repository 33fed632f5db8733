"""Resource plans: their values, the order of their statuses, and refused changes. The messages are those of Hive's server."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from metastore.errors import AlreadyExists, InvalidObject, InvalidOperation, MetaError, MetastoreError, NoSuchObject
from metastore.idl import WMAlterResourcePlanRequest, WMNullableResourcePlan, WMPool, WMResourcePlan
from metastore.service.call.context import Call
from metastore.service.engines import resource_plan_contents as contents
from metastore.service.engines.resource_plans import (
    ACTIVE,
    DISABLED,
    ENABLED,
    alter_resource_plan,
    create_resource_plan,
    drop_resource_plan,
    get_active_resource_plan,
    get_resource_plan,
    validate_resource_plan,
)
from tests.support.catalog.catalog import MetastoreMaker, call_of
from tests.support.catalog.plans import alter, create, pool, states, trigger
from tests.support.databases.statement_counts import StatementCounts

pytestmark = pytest.mark.on_one_database


def test_a_new_plan_is_disabled_and_has_a_pool_for_all_queries(call: Call) -> None:
    create(call, " Plan_1 ")
    create(call, "plan_2", parallelism=10)
    full = get_resource_plan(call, "PLAN_1", None)
    assert full.plan == WMResourcePlan(name="plan_1", status=DISABLED, defaultPoolPath="default", ns="default")
    assert full.pools == [WMPool(resourcePlanName="plan_1", poolPath="default", allocFraction=1.0, queryParallelism=4, ns="default")]
    assert full.mappings is full.triggers is full.poolTriggers is None
    full = get_resource_plan(call, "plan_2", "default")
    assert (full.plan.queryParallelism, full.pools[0].queryParallelism) == (10, 10)
    assert states(call) == {"plan_1": DISABLED, "plan_2": DISABLED}
    assert get_active_resource_plan(call, None) is None


def test_the_size_of_the_pool_is_a_setting(make_metastore: MetastoreMaker) -> None:
    create(call_of(make_metastore(wm_default_pool_size=7)), "seven")
    call = call_of(make_metastore(wm_default_pool_size=0))
    create(call, "none", parallelism=3)
    assert get_resource_plan(call, "seven", None).pools[0].queryParallelism == 7
    full = get_resource_plan(call, "none", None)
    assert (full.pools, full.plan.defaultPoolPath) == ([], None)
    with pytest.raises(InvalidOperation, match=r"ResourcePlan: none is invalid: \[Root has no children\]"):
        alter(call, "none", status=ENABLED)


def test_namespaces_have_plans_of_their_own(call: Call) -> None:
    for namespace in (None, "Other"):
        create(call, "p", namespace=namespace)
        alter(call, "p", ns=namespace, activate=True, status=ACTIVE)
    assert states(call) == states(call, "other") == {"p": ACTIVE}
    active = get_active_resource_plan(call, "OTHER")
    assert active is not None
    assert active.plan.ns == active.pools[0].ns == "other"
    move = WMAlterResourcePlanRequest(resourcePlanName="p", resourcePlan=WMNullableResourcePlan(ns="other"))
    with pytest.raises(InvalidOperation, match="Cannot change ns; from default to other"):
        alter_resource_plan(call, move)
    with pytest.raises(NoSuchObject, match="There is no resource plan named: p in third"):
        get_resource_plan(call, "p", "third")


def test_impossible_creations_are_refused(call: Call) -> None:
    create(call, "p")
    refused: list[tuple[type[MetastoreError], str, Callable[[], None]]] = [
        (AlreadyExists, "Resource plan already exists: p", lambda: create(call, "P")),
        (InvalidObject, r"Resource name cannot be empty\.", lambda: create(call, " ")),
        (InvalidObject, r"Query parallelism should be positive\.", lambda: create(call, "q", parallelism=0)),
        (NoSuchObject, "There is no resource plan named: none in default", lambda: create(call, "q", like="none")),
        (MetaError, "The resource plan is missing: set it", lambda: create_resource_plan(call, None, None)),
        (MetaError, "The name of the resource plan is missing: set it", lambda: create_resource_plan(call, WMResourcePlan(), None)),
    ]
    for kind, text, work in refused:
        with pytest.raises(kind, match=text):
            work()
    assert states(call) == {"p": DISABLED}


def test_a_plan_like_another_has_its_content(call: Call) -> None:
    create(call, "p", parallelism=5)
    pool(call, "p", "default.a", 0.5, policy="fifo")
    trigger(call, "p", "t")
    contents.create_or_drop_trigger_in_pool(call, "p", None, "t", "default.a", drop=False)
    create(call, "q", parallelism=77, like="P")
    old, new = get_resource_plan(call, "p", None), get_resource_plan(call, "q", None)
    assert [each.resourcePlanName for each in (*new.pools, *(new.triggers or ()))] == ["q"] * 3
    for each in (*new.pools, *(new.triggers or ())):
        each.resourcePlanName = "p"
    new.plan.name = "p"
    assert new == old


def test_a_plan_s_own_values_change_while_it_is_disabled(call: Call) -> None:
    create(call, "p")
    create(call, "taken")
    pool(call, "p", "b")
    alter(call, "p", name="Q", isSetQueryParallelism=True, queryParallelism=30, isSetDefaultPoolPath=True, defaultPoolPath="B")
    assert get_resource_plan(call, "q", None).plan == WMResourcePlan(
        name="q", status=DISABLED, queryParallelism=30, defaultPoolPath="b", ns="default"
    )
    alter(call, "q", isSetQueryParallelism=True, isSetDefaultPoolPath=True)
    alter(call, "q", name="q", queryParallelism=3, defaultPoolPath="b")
    plan = get_resource_plan(call, "q", None).plan
    assert (plan.queryParallelism, plan.defaultPoolPath) == (None, None)
    refused: list[tuple[type[MetastoreError], str, dict[str, object]]] = [
        (AlreadyExists, "Resource plan name should be unique: taken", {"name": "taken"}),
        (InvalidOperation, r"Cannot rename to empty value\.", {"name": " "}),
        (InvalidOperation, r"queryParallelism should be positive\.", {"isSetQueryParallelism": True, "queryParallelism": 0}),
        (NoSuchObject, "Cannot find pool: none", {"isSetDefaultPoolPath": True, "defaultPoolPath": "none"}),
        (InvalidOperation, r"Cannot change values during status switch\.", {"name": "r", "status": ENABLED}),
        (InvalidOperation, r"Cannot change values during status switch\.", {"isSetQueryParallelism": True, "status": ENABLED}),
        (InvalidOperation, r"Cannot change values during status switch\.", {"isSetDefaultPoolPath": False, "status": ENABLED}),
    ]
    for kind, text, changes in refused:
        with pytest.raises(kind, match=text):
            alter(call, "q", **changes)
    alter(call, "q", name="Q", status=ENABLED)
    for changes in ({"name": "r"}, {"isSetQueryParallelism": True}, {}):  # type: ignore[assignment]
        with pytest.raises(InvalidOperation, match=r"Resource plan must be disabled to edit it\."):
            alter(call, "q", **changes)
    assert states(call) == {"q": ENABLED, "taken": DISABLED}


def test_which_status_follows_which(call: Call) -> None:
    create(call, "p")
    create(call, "q")
    with pytest.raises(InvalidOperation, match="Resource plan p is disabled and should be enabled before activation"):
        alter(call, "p", status=ACTIVE)
    assert alter(call, "p", status=DISABLED) is None
    assert alter(call, "p", status=ENABLED) is None
    assert alter(call, "p", status=ENABLED) is None
    active = alter(call, "p", status=ACTIVE)
    assert active == get_active_resource_plan(call, None) == get_resource_plan(call, "p", None)
    assert alter(call, "p", status=ACTIVE) is None
    for status in (ENABLED, DISABLED):
        with pytest.raises(
            InvalidOperation, match="Resource plan p is active; activate another plan first, or disable workload management"
        ):
            alter(call, "p", status=status)
    active = alter(call, "q", activate=True, status=ACTIVE)
    assert active is not None
    assert active.plan.name == "q"
    assert states(call) == {"p": ENABLED, "q": ACTIVE}
    assert alter(call, None, force=True, status=ENABLED) is None
    assert states(call) == {"p": ENABLED, "q": ENABLED}
    with pytest.raises(NoSuchObject, match="There is no active resource plan in default"):
        alter(call, None, force=True, status=ENABLED)
    alter(call, "q", status=ACTIVE)
    alter(call, "q", force=True, status=DISABLED)
    alter(call, "p", status=DISABLED)
    assert states(call) == {"p": DISABLED, "q": DISABLED}
    with pytest.raises(InvalidOperation, match="Invalid status: 9"):
        alter(call, "p", status=9)
    with pytest.raises(MetaError, match="Invalid request; multiple flags are set"):
        alter(call, "p", activate=True, replace=True, status=ACTIVE)
    with pytest.raises(NoSuchObject, match="There is no resource plan named: none in default"):
        alter(call, "none", status=ENABLED)


def test_a_plan_with_errors_is_not_enabled(call: Call) -> None:
    create(call, "p", parallelism=6)
    pool(call, "p", "default.a", 1.5)
    errors = [
        "Sum of all pools' query parallelism: 7 exceeds resource plan query parallelism: 6",
        "Sum of children pools' alloc fraction should be less than 1 got: 1.5 for pool: default",
    ]
    found = validate_resource_plan(call, "P", None)
    assert (found.errors, found.warnings) == (errors, [])
    for activate, status in ((False, ENABLED), (True, ACTIVE)):
        with pytest.raises(InvalidOperation) as error:
            alter(call, "p", activate=activate, status=status)
        assert error.value.message == f"ResourcePlan: p is invalid: [{errors[0]}, {errors[1]}]"
    contents.drop_pool(call, "p", "default.a", None)
    alter(call, "p", isSetQueryParallelism=True, queryParallelism=9)
    found = validate_resource_plan(call, "p", "default")
    assert (found.errors, found.warnings) == (
        [],
        ["Sum of all pools' query parallelism: 6 is less than resource plan query parallelism: 9"],
    )
    alter(call, "p", status=ENABLED)


def test_all_but_the_active_plan_can_be_dropped(call: Call) -> None:
    for name in ("p", "q"):
        create(call, name)
        alter(call, name, activate=True, status=ACTIVE)
    with pytest.raises(MetaError, match="Cannot drop an active resource plan"):
        drop_resource_plan(call, "q", None)
    drop_resource_plan(call, "P", None)
    assert states(call) == {"q": ACTIVE}
    with pytest.raises(NoSuchObject, match="There is no resource plan named: p in default"):
        drop_resource_plan(call, "p", None)
    create(call, "p")
    assert states(call) == {"p": DISABLED, "q": ACTIVE}


def test_a_plan_takes_the_place_of_another(call: Call) -> None:
    create(call, "p")
    create(call, "q", like="p")
    pool(call, "q", "extra")
    assert alter(call, "q", replace=True, name="P") is None
    (old,) = set(states(call)) - {"p"}
    assert old.startswith("p_old_20")
    assert [each.poolPath for each in get_resource_plan(call, "p", None).pools] == ["default", "extra"]
    assert [each.poolPath for each in get_resource_plan(call, old, None).pools] == ["default"]
    alter(call, old, activate=True, status=ACTIVE)
    now_active = alter(call, "p", replace=True, status=ACTIVE)
    assert now_active is not None
    assert (now_active.plan.name, now_active.plan.status, len(now_active.pools)) == (old, ACTIVE, 2)
    assert sorted(states(call).values(), key=str) == [ACTIVE, DISABLED]


def test_a_plan_that_is_replaced_at_once_keeps_a_name_of_its_own(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("metastore.service.engines.resource_plans.time.strftime", lambda _form: "2026_01_31_23_59_59")
    create(call, "p")
    for _ in range(3):
        create(call, "q")
        alter(call, "q", replace=True, name="p")
    old = "p_old_2026_01_31_23_59_59"
    assert sorted(states(call)) == ["p", old, f"{old}_1", f"{old}_2"]


def test_impossible_replacements_are_refused(call: Call) -> None:
    create(call, "p")
    create(call, "q")
    refused: list[tuple[type[MetastoreError], str, str | None, dict[str, object]]] = [
        (InvalidOperation, "Cannot replace without specifying the source plan", None, {"name": "p"}),
        (InvalidOperation, r"Cannot change values during replace\.", "q", {"name": "p", "queryParallelism": 3}),
        (InvalidOperation, r"Cannot change values during replace\.", "q", {"name": "p", "defaultPoolPath": "x"}),
        (InvalidOperation, "Must specify a name, or the active plan; received None, ENABLED", "q", {"status": ENABLED}),
        (InvalidOperation, "Must specify a name, or the active plan; received p, ACTIVE", "q", {"name": "p", "status": ACTIVE}),
        (InvalidOperation, "A plan cannot replace itself", "q", {"name": "Q"}),
        (NoSuchObject, "There is no resource plan named: none in default", "q", {"name": "none"}),
        (NoSuchObject, "There is no resource plan named: none in default", "none", {"name": "p"}),
        (NoSuchObject, "There is no active resource plan in default", "q", {"status": ACTIVE}),
    ]
    for kind, text, name, changes in refused:
        with pytest.raises(kind, match=text):
            alter(call, name, replace=True, **changes)
    assert states(call) == {"p": DISABLED, "q": DISABLED}


def test_at_most_one_plan_is_active_when_several_clients_activate_one(call: Call) -> None:
    names = [f"p{number}" for number in range(4)]
    for name in names:
        create(call, name)

    def work(name: str) -> None:
        for _ in range(10):
            alter(call, name, activate=True, status=ACTIVE)
            assert list(states(call).values()).count(ACTIVE) == 1

    with ThreadPoolExecutor(len(names)) as threads:
        list(threads.map(work, names))
    assert sorted(states(call).values(), key=str) == [ACTIVE, *[ENABLED] * 3]


def test_of_two_who_create_a_plan_one_does(call: Call) -> None:
    def work(name: str) -> str:
        try:
            create(call, name)
        except AlreadyExists:
            return "there"
        return "made"

    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(work, [f"p{number // 4}" for number in range(40)]))
    assert (found.count("made"), len(states(call))) == (10, 10)


@pytest.mark.parametrize("size", [1, 20])
def test_statement_counts(call: Call, counts: StatementCounts, size: int) -> None:
    create(call, "first")
    counts("create", lambda: create(call, "p"))
    for number in range(size):
        pool(call, "p", f"p{number}")
        create(call, f"q{number}")
    counts("create like another", lambda: create(call, "copy", like="p"))
    counts("read", lambda: get_resource_plan(call, "p", None))
    counts("list", lambda: states(call))
    counts("validate", lambda: validate_resource_plan(call, "p", None))
    counts("rename", lambda: alter(call, "p", name="r"))
    alter(call, "copy", activate=True, status=ACTIVE)
    counts("read the active one", lambda: get_active_resource_plan(call, None))
    counts("enable and activate", lambda: alter(call, "r", activate=True, status=ACTIVE))
    counts("replace", lambda: alter(call, "copy", replace=True, status=ACTIVE))
    counts("drop", lambda: drop_resource_plan(call, "q0", None))
