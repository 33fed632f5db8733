"""Resource plans of Hive's workload management: create, read, alter, validate, drop. Source: Hive's HMSHandler and ObjectStore.

A plan's contents are in `service.engines.resource_plan_contents`. This server stores plans; HiveServer2 enforces them.
"""

from __future__ import annotations

import time
from itertools import count
from typing import TypeVar

from metastore.errors import AlreadyExists, InvalidObject, InvalidOperation, MetaError, NoSuchObject
from metastore.idl import (
    WMAlterResourcePlanRequest,
    WMFullResourcePlan,
    WMNullableResourcePlan,
    WMPool,
    WMResourcePlan,
    WMResourcePlanStatus,
    WMValidateResourcePlanResponse,
)
from metastore.rules.engines.resource_plans import namespace_of, shortcomings
from metastore.rules.names import normalize
from metastore.service.call.context import Call
from metastore.store.core.database import Session
from metastore.store.engines import resource_plans

T = TypeVar("T")
ACTIVE, ENABLED, DISABLED = WMResourcePlanStatus.ACTIVE, WMResourcePlanStatus.ENABLED, WMResourcePlanStatus.DISABLED
_NAMES = {ACTIVE: "ACTIVE", ENABLED: "ENABLED", DISABLED: "DISABLED", None: None}
DEFAULT_POOL = "default"


def required(value: T | None, what: str) -> T:
    """Return a part of a request. MetaError if it is not there."""
    if value is None:
        raise MetaError(f"The {what} is missing: set it")
    return value


def name_of(name: str | None, what: str) -> str:
    """Return a name as it is stored. MetaError for none."""
    return normalize(required(name, f"name of the {what}"))


def found(session: Session, namespace: str, name: str | None) -> WMFullResourcePlan:
    """Return a plan. NoSuchObject, MetaError."""
    wanted = name_of(name, "resource plan")
    full = resource_plans.find(session, namespace, wanted)
    if full is None:
        raise NoSuchObject(f"There is no resource plan named: {wanted} in {namespace}")
    return full


def _active(session: Session, namespace: str) -> WMFullResourcePlan:
    full = resource_plans.find_active(session, namespace)
    if full is None:
        raise NoSuchObject(f"There is no active resource plan in {namespace}: activate one, or name a plan")
    return full


def check_editable(full: WMFullResourcePlan) -> None:
    """Raise InvalidOperation unless a plan is disabled."""
    if full.plan.status != DISABLED:
        raise InvalidOperation("Resource plan must be disabled to edit it.")


def create_resource_plan(call: Call, plan: WMResourcePlan | None, copy_from: str | None) -> None:
    """Add a disabled plan: with one pool for all queries, or with another plan's contents. AlreadyExists, InvalidObject, NoSuchObject."""
    given = required(plan, "resource plan")
    name, namespace, parallelism = name_of(given.name, "resource plan"), namespace_of(given.ns), given.queryParallelism
    if not name:
        raise InvalidObject("Resource name cannot be empty.")
    if copy_from is None and parallelism is not None and parallelism <= 0:
        raise InvalidObject("Query parallelism should be positive.")

    def work(session: Session) -> None:
        resource_plans.lock(session)
        if resource_plans.find(session, namespace, name) is not None:
            raise AlreadyExists(f"Resource plan already exists: {name}")
        full = _with_default_pool(call, parallelism) if copy_from is None else found(session, namespace, copy_from)
        full.plan.name, full.plan.ns, full.plan.status = name, namespace, DISABLED
        resource_plans.insert(session, full)

    call.database.write(work)


def _with_default_pool(call: Call, parallelism: int | None) -> WMFullResourcePlan:
    """Return a plan without a name. It has one pool for all queries if the setting `wm_default_pool_size` is positive."""
    size = call.config.wm_default_pool_size
    full = WMFullResourcePlan(plan=WMResourcePlan(queryParallelism=parallelism), pools=[])
    if size > 0:
        full.pools = [WMPool(poolPath=DEFAULT_POOL, allocFraction=1.0, queryParallelism=parallelism or size)]
        full.plan.defaultPoolPath = DEFAULT_POOL
    return full


def get_resource_plan(call: Call, name: str | None, namespace: str | None) -> WMFullResourcePlan:
    """Return a plan with all that belongs to it. NoSuchObject."""
    return call.database.read(lambda session: found(session, namespace_of(namespace), name))


def get_active_resource_plan(call: Call, namespace: str | None) -> WMFullResourcePlan | None:
    """Return the active plan of a namespace; None if no plan is active."""
    return call.database.read(lambda session: resource_plans.find_active(session, namespace_of(namespace)))


def get_all_resource_plans(call: Call, namespace: str | None) -> list[WMResourcePlan]:
    """Return the plans of a namespace, ascending by name, without their contents."""
    return [full.plan for full in call.database.read(lambda session: resource_plans.all_of(session, namespace_of(namespace)))]


def validate_resource_plan(call: Call, name: str | None, namespace: str | None) -> WMValidateResourcePlanResponse:
    """Return errors for which a plan can not be enabled, and warnings. NoSuchObject."""
    errors, warnings = shortcomings(get_resource_plan(call, name, namespace))
    return WMValidateResourcePlanResponse(errors=errors, warnings=warnings)


def drop_resource_plan(call: Call, name: str | None, namespace: str | None) -> None:
    """Remove a plan with all that belongs to it. NoSuchObject; MetaError for the active one, as in Hive."""

    def work(session: Session) -> None:
        resource_plans.lock(session)
        plan = found(session, namespace_of(namespace), name).plan
        if plan.status == ACTIVE:
            raise MetaError("Cannot drop an active resource plan")
        resource_plans.delete(session, namespace_of(plan.ns), plan.name)

    call.database.write(work)


def alter_resource_plan(call: Call, request: WMAlterResourcePlanRequest) -> WMFullResourcePlan | None:
    """Change, enable, activate or disable a plan, or put it in another's place; return it if it became active.

    Without a name the active plan is meant. InvalidOperation, NoSuchObject, AlreadyExists, MetaError.
    """
    if sum(map(bool, (request.isEnableAndActivate, request.isReplace, request.isForceDeactivate))) > 1:
        raise MetaError("Invalid request; multiple flags are set")
    changes, namespace = required(request.resourcePlan, "changed resource plan"), namespace_of(request.ns)
    if changes.ns is not None and namespace_of(changes.ns) != namespace:
        raise InvalidOperation(f"Cannot change ns; from {namespace} to {changes.ns}")
    name = None if request.resourcePlanName is None else normalize(request.resourcePlanName)

    def work(session: Session) -> WMFullResourcePlan | None:
        resource_plans.lock(session)
        if request.isReplace:
            return _replace(session, namespace, name, changes)
        full = _active(session, namespace) if name is None else found(session, namespace, name)
        old = full.plan.name
        if changes.status is None:
            check_editable(full)
            _edit(session, full, changes)
        elif _edits(changes, old):
            raise InvalidOperation("Cannot change values during status switch.")
        elif changes.status == full.plan.status:
            return None
        else:
            _switch(session, full, changes.status, request)
        resource_plans.update(session, old, full)
        return resource_plans.find(session, namespace, old) if full.plan.status == ACTIVE else None

    return call.database.write(work)


def _edits(changes: WMNullableResourcePlan, name: str) -> bool:
    """Return whether a request changes more than the status."""
    given = (changes.isSetQueryParallelism, changes.isSetDefaultPoolPath)
    return given != (None, None) or (changes.name is not None and normalize(changes.name) != name)


def _edit(session: Session, full: WMFullResourcePlan, changes: WMNullableResourcePlan) -> None:
    """Change a plan's name, parallelism and default pool, each where that is asked for."""
    plan = full.plan
    if changes.name is not None:
        new = normalize(changes.name)
        if not new:
            raise InvalidOperation("Cannot rename to empty value.")
        if new != plan.name and resource_plans.find(session, namespace_of(plan.ns), new) is not None:
            raise AlreadyExists(f"Resource plan name should be unique: {new}")
        plan.name = new
    if changes.isSetQueryParallelism:
        if changes.queryParallelism is not None and changes.queryParallelism <= 0:
            raise InvalidOperation("queryParallelism should be positive.")
        plan.queryParallelism = changes.queryParallelism
    if changes.isSetDefaultPoolPath:
        plan.defaultPoolPath = changes.defaultPoolPath and normalize(changes.defaultPoolPath)
        if plan.defaultPoolPath is not None and plan.defaultPoolPath not in {pool.poolPath for pool in full.pools}:
            raise NoSuchObject(f"Cannot find pool: {plan.defaultPoolPath}")


def _switch(session: Session, full: WMFullResourcePlan, status: int, request: WMAlterResourcePlanRequest) -> None:
    """Give a plan another status, and a plan that was active before it the status ENABLED."""
    plan = full.plan
    if status not in (ACTIVE, ENABLED, DISABLED):
        raise InvalidOperation(f"Invalid status: {status}")
    if plan.status == ACTIVE and not request.isForceDeactivate:
        raise InvalidOperation(f"Resource plan {plan.name} is active; activate another plan first, or disable workload management.")
    if plan.status == DISABLED:
        if status == ACTIVE and not request.isEnableAndActivate:
            text = "is disabled and should be enabled before activation (or in the same command)"
            raise InvalidOperation(f"Resource plan {plan.name} {text}")
        errors, _ = shortcomings(full)
        if errors:
            raise InvalidOperation(f"ResourcePlan: {plan.name} is invalid: [{', '.join(errors)}]")
    if status == ACTIVE:
        before = resource_plans.find_active(session, namespace_of(plan.ns))
        if before is not None:
            before.plan.status = ENABLED
            resource_plans.update(session, before.plan.name, before)
    plan.status = status


def _replace(session: Session, namespace: str, name: str | None, changes: WMNullableResourcePlan) -> WMFullResourcePlan | None:
    """Give a plan the name and status of another, which is disabled and gets a name with the time. Return the plan if it is active now."""
    if name is None:
        raise InvalidOperation("Cannot replace without specifying the source plan")
    if changes.queryParallelism is not None or changes.defaultPoolPath is not None:
        raise InvalidOperation("Cannot change values during replace.")
    if (changes.name is not None) == (changes.status == ACTIVE):
        raise InvalidOperation(f"Must specify a name, or the active plan; received {changes.name}, {_NAMES.get(changes.status)}")
    replaced = _active(session, namespace) if changes.name is None else found(session, namespace, changes.name)
    full = found(session, namespace, name)
    place = replaced.plan.name
    if place == full.plan.name:
        raise InvalidOperation("A plan cannot replace itself")
    full.plan.name, full.plan.status = place, replaced.plan.status
    replaced.plan.name, replaced.plan.status = _name_of_replaced(session, namespace, place), DISABLED
    resource_plans.update(session, place, replaced)
    resource_plans.update(session, name, full)
    return resource_plans.find(session, namespace, place) if full.plan.status == ACTIVE else None


def _name_of_replaced(session: Session, namespace: str, name: str) -> str:
    """Return a name that no plan has: `plan_old_2026_01_31_23_59_59`, with `_1` and so on behind it if that is taken."""
    old = f"{name}_old_{time.strftime('%Y_%m_%d_%H_%M_%S')}"
    tried = (f"{old}_{number}" if number else old for number in count())
    return next(each for each in tried if resource_plans.find(session, namespace, each) is None)
