"""Methods of resource plans and their contents."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from metastore.idl import (
    WMAlterPoolResponse,
    WMAlterResourcePlanResponse,
    WMAlterTriggerResponse,
    WMCreateOrDropTriggerToPoolMappingResponse,
    WMCreateOrUpdateMappingResponse,
    WMCreatePoolResponse,
    WMCreateResourcePlanResponse,
    WMCreateTriggerResponse,
    WMDropMappingResponse,
    WMDropPoolResponse,
    WMDropResourcePlanResponse,
    WMDropTriggerResponse,
    WMGetActiveResourcePlanResponse,
    WMGetAllResourcePlanResponse,
    WMGetResourcePlanResponse,
    WMGetTriggersForResourePlanResponse,
)
from metastore.methods.forms.entry import changes, reads
from metastore.methods.forms.rules import ADMIN, Handler
from metastore.service.call.context import Call
from metastore.service.engines import resource_plan_contents as contents
from metastore.service.engines import resource_plans as plans


def _answering(response: Callable[[], Any], work: Callable[[Call, Any], None]) -> Handler:
    """Return a handler that hands the request to `work` and answers with an empty response."""

    def answer(call: Call, args: Any) -> Any:
        work(call, args.request)
        return response()

    return answer


def _get_resource_plan(call: Call, args: Any) -> WMGetResourcePlanResponse:
    return WMGetResourcePlanResponse(resourcePlan=plans.get_resource_plan(call, args.request.resourcePlanName, args.request.ns))


def _get_active_resource_plan(call: Call, args: Any) -> WMGetActiveResourcePlanResponse:
    return WMGetActiveResourcePlanResponse(resourcePlan=plans.get_active_resource_plan(call, args.request.ns))


def _get_all_resource_plans(call: Call, args: Any) -> WMGetAllResourcePlanResponse:
    return WMGetAllResourcePlanResponse(resourcePlans=plans.get_all_resource_plans(call, args.request.ns))


def _get_triggers(call: Call, args: Any) -> WMGetTriggersForResourePlanResponse:
    return WMGetTriggersForResourePlanResponse(triggers=contents.get_triggers(call, args.request.resourcePlanName, args.request.ns))


METHODS = (
    changes(
        "create_resource_plan",
        _answering(
            WMCreateResourcePlanResponse, lambda call, request: plans.create_resource_plan(call, request.resourcePlan, request.copyFrom)
        ),
        ADMIN,
    ),
    reads("get_resource_plan", _get_resource_plan, ADMIN),
    reads("get_active_resource_plan", _get_active_resource_plan, ADMIN),
    reads("get_all_resource_plans", _get_all_resource_plans, ADMIN),
    changes(
        "alter_resource_plan",
        lambda call, args: WMAlterResourcePlanResponse(fullResourcePlan=plans.alter_resource_plan(call, args.request)),
        ADMIN,
    ),
    reads(
        "validate_resource_plan",
        lambda call, args: plans.validate_resource_plan(call, args.request.resourcePlanName, args.request.ns),
        ADMIN,
    ),
    changes(
        "drop_resource_plan",
        _answering(WMDropResourcePlanResponse, lambda call, request: plans.drop_resource_plan(call, request.resourcePlanName, request.ns)),
        ADMIN,
    ),
    changes("create_wm_pool", _answering(WMCreatePoolResponse, lambda call, request: contents.create_pool(call, request.pool)), ADMIN),
    changes(
        "alter_wm_pool",
        _answering(WMAlterPoolResponse, lambda call, request: contents.alter_pool(call, request.pool, request.poolPath)),
        ADMIN,
    ),
    changes(
        "drop_wm_pool",
        _answering(
            WMDropPoolResponse, lambda call, request: contents.drop_pool(call, request.resourcePlanName, request.poolPath, request.ns)
        ),
        ADMIN,
    ),
    changes(
        "create_wm_trigger",
        _answering(WMCreateTriggerResponse, lambda call, request: contents.create_trigger(call, request.trigger)),
        ADMIN,
    ),
    changes(
        "alter_wm_trigger", _answering(WMAlterTriggerResponse, lambda call, request: contents.alter_trigger(call, request.trigger)), ADMIN
    ),
    changes(
        "drop_wm_trigger",
        _answering(
            WMDropTriggerResponse,
            lambda call, request: contents.drop_trigger(call, request.resourcePlanName, request.triggerName, request.ns),
        ),
        ADMIN,
    ),
    reads("get_triggers_for_resourceplan", _get_triggers, ADMIN),
    changes(
        "create_or_drop_wm_trigger_to_pool_mapping",
        _answering(
            WMCreateOrDropTriggerToPoolMappingResponse,
            lambda call, request: contents.create_or_drop_trigger_in_pool(
                call, request.resourcePlanName, request.ns, request.triggerName, request.poolPath, drop=bool(request.drop)
            ),
        ),
        ADMIN,
    ),
    changes(
        "create_or_update_wm_mapping",
        _answering(
            WMCreateOrUpdateMappingResponse,
            lambda call, request: contents.create_or_update_mapping(call, request.mapping, update=bool(request.update)),
        ),
        ADMIN,
    ),
    changes(
        "drop_wm_mapping", _answering(WMDropMappingResponse, lambda call, request: contents.drop_mapping(call, request.mapping)), ADMIN
    ),
)
