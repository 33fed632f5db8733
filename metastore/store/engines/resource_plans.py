"""Rows of resource plans, each with all that belongs to it. One function per statement."""

from __future__ import annotations

from typing import Any

import orjson
import sqlalchemy as sa

from metastore.idl import WMFullResourcePlan, WMMapping, WMPool, WMPoolTrigger, WMResourcePlan, WMResourcePlanStatus, WMTrigger
from metastore.store.core import counters
from metastore.store.core.clauses import constant
from metastore.store.core.database import Session
from metastore.store.drivers.contract import Row
from metastore.store.schema.workloads import resource_plans

PLAN = resource_plans.c
LOCK = "resource_plans"
"""The counter whose row every change of resource plans holds: they are changed seldom, and a change may concern two of them."""
IN_NAMESPACE = PLAN.namespace == sa.bindparam("namespace_key")
KEY = sa.and_(IN_NAMESPACE, PLAN.name == sa.bindparam("name_key"))
PLANS = sa.select(PLAN.namespace, PLAN.name, PLAN.status, PLAN.body)
ALL = PLANS.where(IN_NAMESPACE).order_by(PLAN.name)
FIND = PLANS.where(KEY)
FIND_ACTIVE = PLANS.where(IN_NAMESPACE, PLAN.status == constant(WMResourcePlanStatus.ACTIVE))
UPDATE = sa.update(resource_plans).where(KEY).values(name=sa.bindparam("name"), status=sa.bindparam("status"), body=sa.bindparam("body"))
DELETE = sa.delete(resource_plans).where(KEY)


def _struct(row: Row) -> WMFullResourcePlan:
    namespace, name, status, text = row
    body = orjson.loads(text)
    of_plan = {"resourcePlanName": name, "ns": namespace}
    return WMFullResourcePlan(
        plan=WMResourcePlan(
            name=name, status=status, queryParallelism=body["query_parallelism"], defaultPoolPath=body["default_pool"], ns=namespace
        ),
        pools=[
            WMPool(poolPath=path, allocFraction=fraction, queryParallelism=parallelism, schedulingPolicy=policy, **of_plan)
            for path, fraction, parallelism, policy in body["pools"]
        ],
        triggers=[
            WMTrigger(triggerName=trigger, triggerExpression=when, actionExpression=action, isInUnmanaged=unmanaged, **of_plan)
            for trigger, when, action, unmanaged in body["triggers"]
        ]
        or None,
        mappings=[
            WMMapping(entityType=kind, entityName=entity, poolPath=pool, ordering=ordering, **of_plan)
            for kind, entity, pool, ordering in body["mappings"]
        ]
        or None,
        poolTriggers=[WMPoolTrigger(pool=pool, trigger=trigger) for pool, trigger in body["pool_triggers"]] or None,
    )


def _values(full: WMFullResourcePlan) -> dict[str, Any]:
    plan = full.plan
    body = {
        "query_parallelism": plan.queryParallelism,
        "default_pool": plan.defaultPoolPath,
        "pools": sorted([each.poolPath, each.allocFraction, each.queryParallelism, each.schedulingPolicy] for each in full.pools),
        "triggers": sorted(
            [each.triggerName, each.triggerExpression, each.actionExpression, each.isInUnmanaged] for each in full.triggers or ()
        ),
        "mappings": sorted([each.entityType, each.entityName, each.poolPath, each.ordering] for each in full.mappings or ()),
        "pool_triggers": sorted([each.pool, each.trigger] for each in full.poolTriggers or ()),
    }
    return {"name": plan.name, "status": plan.status, "body": orjson.dumps(body).decode()}


def lock(session: Session) -> None:
    """Keep others from changing resource plans until the transaction ends."""
    counters.lock(session, LOCK)


def find(session: Session, namespace: str, name: str) -> WMFullResourcePlan | None:
    """Return a plan, or None."""
    row = session.row(FIND, namespace_key=namespace, name_key=name)
    return None if row is None else _struct(row)


def find_active(session: Session, namespace: str) -> WMFullResourcePlan | None:
    """Return the active plan of a namespace, or None."""
    row = session.row(FIND_ACTIVE, namespace_key=namespace)
    return None if row is None else _struct(row)


def all_of(session: Session, namespace: str) -> list[WMFullResourcePlan]:
    """Return the plans of a namespace, ascending by name."""
    return [_struct(row) for row in session.rows(ALL, namespace_key=namespace)]


def insert(session: Session, full: WMFullResourcePlan) -> None:
    """Add a plan."""
    session.insert(resource_plans, namespace=full.plan.ns, **_values(full))


def update(session: Session, name: str, full: WMFullResourcePlan) -> None:
    """Change the plan with a name, and possibly the name: the plan's contents do not contain it."""
    session.execute(UPDATE, namespace_key=full.plan.ns, name_key=name, **_values(full))


def delete(session: Session, namespace: str, name: str) -> None:
    """Remove a plan with all that belongs to it."""
    session.execute(DELETE, namespace_key=namespace, name_key=name)
