"""Contents of a resource plan: pools, triggers, mappings of users, groups and applications. Source: Hive's ObjectStore.

Each change stores the whole plan, which has to exist (NoSuchObject) and to be disabled (InvalidOperation). Names are kept in lower case.
"""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite

from metastore.errors import AlreadyExists, InvalidObject, InvalidOperation, NoSuchObject
from metastore.idl import WMFullResourcePlan, WMMapping, WMNullablePool, WMPool, WMPoolTrigger, WMTrigger
from metastore.rules.engines.resource_plans import ENTITY_TYPES, is_policy, namespace_of, parent_of, pool_path
from metastore.rules.names import normalize
from metastore.service.call.context import Call
from metastore.service.engines.resource_plans import check_editable, found, get_resource_plan, name_of, required
from metastore.store.core.database import Session
from metastore.store.engines import resource_plans


def _edit(call: Call, plan: str | None, namespace: str | None, change: Callable[[WMFullResourcePlan], None]) -> None:
    """Read a plan, let `change` work on it, and store it."""

    def work(session: Session) -> None:
        resource_plans.lock(session)
        full = found(session, namespace_of(namespace), plan)
        check_editable(full)
        change(full)
        resource_plans.update(session, full.plan.name, full)

    call.database.write(work)


def _fraction(number: float) -> float:
    if not isfinite(number):
        raise InvalidObject(f"Alloc fraction {number} of a pool is not a number: use one from 0.0 to 1.0")
    return number


def _policy(name: str | None) -> str | None:
    if not is_policy(name):
        raise InvalidObject(f"Invalid scheduling policy {name}: use fair, fifo or default")
    return name


def _pool(full: WMFullResourcePlan, path: str) -> WMPool:
    for pool in full.pools:
        if pool.poolPath == path:
            return pool
    raise NoSuchObject(f"Cannot find pool: {path}")


def _trigger(full: WMFullResourcePlan, name: str) -> WMTrigger:
    for trigger in full.triggers or ():
        if trigger.triggerName == name:
            return trigger
    raise NoSuchObject(f"Cannot find trigger with name: {name}")


def _check_place(path: str, others: set[str]) -> None:
    """Raise unless a pool can be at a path beside other pools: NoSuchObject, AlreadyExists."""
    if parent_of(path) and parent_of(path) not in others:
        raise NoSuchObject("Pool path is invalid, the parent does not exist")
    if path in others:
        raise AlreadyExists(f"Pool already exists: {path}")


def create_pool(call: Call, pool: WMPool | None) -> None:
    """Add a pool; without fraction and parallelism it gets nothing and runs nothing, as in Hive. AlreadyExists, InvalidObject."""
    given = required(pool, "pool")
    path = pool_path(name_of(given.poolPath, "pool"))
    new = WMPool(
        poolPath=path,
        allocFraction=_fraction(given.allocFraction or 0.0),
        queryParallelism=given.queryParallelism or 0,
        schedulingPolicy=_policy(given.schedulingPolicy),
    )

    def change(full: WMFullResourcePlan) -> None:
        _check_place(path, {each.poolPath for each in full.pools})
        full.pools.append(new)

    _edit(call, given.resourcePlanName, given.ns, change)


def alter_pool(call: Call, pool: WMNullablePool | None, path: str | None) -> None:
    """Change the fields of a pool that are set; pools below it and mappings follow it to another path. AlreadyExists, InvalidObject."""
    given, old = required(pool, "pool"), name_of(path, "pool")
    new = old if given.poolPath is None else pool_path(given.poolPath)

    def change(full: WMFullResourcePlan) -> None:
        found_pool = _pool(full, old)
        if given.allocFraction is not None:
            found_pool.allocFraction = _fraction(given.allocFraction)
        if given.queryParallelism is not None:
            found_pool.queryParallelism = given.queryParallelism
        if given.isSetSchedulingPolicy:
            found_pool.schedulingPolicy = _policy(given.schedulingPolicy)
        if new != old:
            _move(full, old, new)

    _edit(call, given.resourcePlanName, given.ns, change)


def _move(full: WMFullResourcePlan, old: str, new: str) -> None:
    """Give a pool and its descendants another path, wherever the plan names them."""

    def moved(path: str) -> str:
        return new + path[len(old) :] if path == old or path.startswith(f"{old}.") else path

    _check_place(new, {pool.poolPath for pool in full.pools if moved(pool.poolPath) == pool.poolPath})
    for pool in full.pools:
        pool.poolPath = moved(pool.poolPath)
    for link in full.poolTriggers or ():
        link.pool = moved(link.pool)
    for mapping in full.mappings or ():
        mapping.poolPath = mapping.poolPath and moved(mapping.poolPath)
    full.plan.defaultPoolPath = full.plan.defaultPoolPath and moved(full.plan.defaultPoolPath)


def drop_pool(call: Call, plan: str | None, path: str | None, namespace: str | None) -> None:
    """Remove a pool that is not the default, has no children and that nobody is mapped to. InvalidOperation, NoSuchObject."""
    gone = name_of(path, "pool")

    def change(full: WMFullResourcePlan) -> None:
        if full.plan.defaultPoolPath == gone:
            raise InvalidOperation("Cannot drop default pool of a resource plan")
        if any(pool.poolPath.startswith(f"{gone}.") for pool in full.pools):
            raise InvalidOperation("Cannot drop a pool that has child pools")
        if any(mapping.poolPath == gone for mapping in full.mappings or ()):
            raise InvalidOperation("Please remove all mappings for this pool.")
        kept = [pool for pool in full.pools if pool.poolPath != gone]
        if len(kept) == len(full.pools):
            raise NoSuchObject(f"Cannot delete pool: {gone}")
        full.pools = kept
        full.poolTriggers = [link for link in full.poolTriggers or () if link.pool != gone]

    _edit(call, plan, namespace, change)


def create_trigger(call: Call, trigger: WMTrigger | None) -> None:
    """Add a trigger, whose texts are the engine's matter. AlreadyExists, InvalidObject."""
    given = required(trigger, "trigger")
    name = name_of(given.triggerName, "trigger")
    if not name:
        raise InvalidObject("Trigger name cannot be empty.")
    new = WMTrigger(
        triggerName=name,
        triggerExpression=given.triggerExpression,
        actionExpression=given.actionExpression,
        isInUnmanaged=bool(given.isInUnmanaged),
    )

    def change(full: WMFullResourcePlan) -> None:
        if any(each.triggerName == name for each in full.triggers or ()):
            raise AlreadyExists(f"Trigger already exists, use alter: {name}")
        full.triggers = [*(full.triggers or ()), new]

    _edit(call, given.resourcePlanName, given.ns, change)


def alter_trigger(call: Call, trigger: WMTrigger | None) -> None:
    """Change the expression of a trigger, its action, and whether it is for unmanaged queries, each where it is given."""
    given = required(trigger, "trigger")
    name = name_of(given.triggerName, "trigger")

    def change(full: WMFullResourcePlan) -> None:
        old = _trigger(full, name)
        for field in ("triggerExpression", "actionExpression", "isInUnmanaged"):
            if getattr(given, field) is not None:
                setattr(old, field, getattr(given, field))

    _edit(call, given.resourcePlanName, given.ns, change)


def drop_trigger(call: Call, plan: str | None, name: str | None, namespace: str | None) -> None:
    """Remove a trigger, also from the pools that have it. NoSuchObject."""
    gone = name_of(name, "trigger")

    def change(full: WMFullResourcePlan) -> None:
        kept = [trigger for trigger in full.triggers or () if trigger.triggerName != gone]
        if len(kept) == len(full.triggers or ()):
            raise NoSuchObject(f"Cannot delete trigger: {gone}")
        full.triggers = kept
        full.poolTriggers = [link for link in full.poolTriggers or () if link.trigger != gone]

    _edit(call, plan, namespace, change)


def get_triggers(call: Call, plan: str | None, namespace: str | None) -> list[WMTrigger]:
    """Return a plan's triggers, ascending by name. NoSuchObject."""
    return get_resource_plan(call, plan, namespace).triggers or []


def create_or_drop_trigger_in_pool(
    call: Call, plan: str | None, namespace: str | None, trigger: str | None, pool: str | None, *, drop: bool
) -> None:
    """Add a trigger to a pool, or remove it. It may be there, or missing, already. NoSuchObject for either."""
    path, name = name_of(pool, "pool"), name_of(trigger, "trigger")

    def change(full: WMFullResourcePlan) -> None:
        _pool(full, path)
        _trigger(full, name)
        full.poolTriggers = [link for link in full.poolTriggers or () if (link.pool, link.trigger) != (path, name)]
        if not drop:
            full.poolTriggers.append(WMPoolTrigger(pool=path, trigger=name))

    _edit(call, plan, namespace, change)


def _entity(mapping: WMMapping) -> tuple[str, str]:
    """Return type and name of a mapping's user, group or application."""
    return (mapping.entityType or "").strip().upper(), name_of(mapping.entityName, "mapped user, group or application")


def create_or_update_mapping(call: Call, mapping: WMMapping | None, *, update: bool) -> None:
    """Send the queries of a user, group or application to a pool; without a pool they are not managed. AlreadyExists, NoSuchObject."""
    given = required(mapping, "mapping")
    kind, name = _entity(given)
    if kind not in ENTITY_TYPES:
        raise InvalidObject(f"Entity type {given.entityType} of a mapping is none of {', '.join(ENTITY_TYPES)}")
    path = None if given.poolPath is None else normalize(given.poolPath)

    def change(full: WMFullResourcePlan) -> None:
        if path is not None:
            _pool(full, path)
        old = next((each for each in full.mappings or () if (each.entityType, each.entityName) == (kind, name)), None)
        if old is None and update:
            raise NoSuchObject(f"Cannot find mapping for {kind}:{name}")
        if old is not None and not update:
            raise AlreadyExists(f"Mapping already exists, use update: {kind}:{name}")
        ordering = given.ordering if given.ordering is not None else 0 if old is None else old.ordering
        kept = [each for each in full.mappings or () if each is not old]
        full.mappings = [*kept, WMMapping(entityType=kind, entityName=name, poolPath=path, ordering=ordering)]

    _edit(call, given.resourcePlanName, given.ns, change)


def drop_mapping(call: Call, mapping: WMMapping | None) -> None:
    """Remove the mapping of a user, group or application. NoSuchObject."""
    given = required(mapping, "mapping")
    gone = _entity(given)

    def change(full: WMFullResourcePlan) -> None:
        kept = [each for each in full.mappings or () if (each.entityType, each.entityName) != gone]
        if len(kept) == len(full.mappings or ()):
            raise NoSuchObject(f"Cannot delete mapping: {':'.join(gone)}")
        full.mappings = kept

    _edit(call, given.resourcePlanName, given.ns, change)
