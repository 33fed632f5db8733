"""Short forms with which tests make and change resource plans."""

from __future__ import annotations

from metastore.idl import WMAlterResourcePlanRequest, WMFullResourcePlan, WMNullableResourcePlan, WMPool, WMResourcePlan, WMTrigger
from metastore.service.call.context import Call
from metastore.service.engines import resource_plan_contents as contents
from metastore.service.engines import resource_plans


def create(call: Call, name: str, parallelism: int | None = None, namespace: str | None = None, like: str | None = None) -> None:
    resource_plans.create_resource_plan(call, WMResourcePlan(name=name, queryParallelism=parallelism, ns=namespace), like)


def alter(
    call: Call,
    name: str | None,
    /,
    *,
    activate: bool = False,
    force: bool = False,
    replace: bool = False,
    ns: str | None = None,
    **changes: object,
) -> WMFullResourcePlan | None:
    """Change a plan; the first three are the flags of the request, `changes` are fields of WMNullableResourcePlan."""
    new = WMNullableResourcePlan(**changes)  # type: ignore[arg-type]  # any field
    request = WMAlterResourcePlanRequest(
        resourcePlanName=name, resourcePlan=new, isEnableAndActivate=activate, isForceDeactivate=force, isReplace=replace, ns=ns
    )
    return resource_plans.alter_resource_plan(call, request)


def states(call: Call, namespace: str | None = None) -> dict[str, int | None]:
    """Return the status of each plan of a namespace by its name."""
    return {plan.name: plan.status for plan in resource_plans.get_all_resource_plans(call, namespace)}


def pool(call: Call, plan: str, path: str, fraction: float = 0.0, parallelism: int = 1, policy: str | None = None) -> None:
    contents.create_pool(
        call,
        WMPool(resourcePlanName=plan, poolPath=path, allocFraction=fraction, queryParallelism=parallelism, schedulingPolicy=policy),
    )


def trigger(call: Call, plan: str, name: str, when: str = "BYTES_READ > '1kb'", action: str = "KILL") -> None:
    contents.create_trigger(call, WMTrigger(resourcePlanName=plan, triggerName=name, triggerExpression=when, actionExpression=action))


def link(call: Call, plan: str, name: str, path: str, *, drop: bool = False) -> None:
    contents.create_or_drop_trigger_in_pool(call, plan, None, name, path, drop=drop)
