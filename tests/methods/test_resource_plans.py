"""Resource plans over the wire: every method has its answer, and every refusal is an exception that its method declares."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from metastore import idl
from metastore.client import Client, connect
from tests.support.servers.servers import serving

PLAN = {"resourcePlanName": "p"}
ACTIVE, DISABLED = idl.WMResourcePlanStatus.ACTIVE, idl.WMResourcePlanStatus.DISABLED


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    """A client of a server that has a resource plan p."""
    with serving("--warehouse", str(tmp_path / "warehouse"), home=tmp_path) as server, connect(server.uri) as made:
        made.create_resource_plan(idl.WMCreateResourcePlanRequest(resourcePlan=idl.WMResourcePlan(name="p")))
        yield made


def activate(client: Client) -> idl.WMFullResourcePlan:
    changes = idl.WMNullableResourcePlan(status=ACTIVE)
    reply = client.alter_resource_plan(idl.WMAlterResourcePlanRequest(**PLAN, resourcePlan=changes, isEnableAndActivate=True))
    assert reply.fullResourcePlan is not None
    return reply.fullResourcePlan


def test_a_plan_is_made_filled_activated_and_dropped(client: Client) -> None:
    assert client.get_active_resource_plan(idl.WMGetActiveResourcePlanRequest()).resourcePlan is None
    pool = idl.WMPool(**PLAN, poolPath="etl", allocFraction=0.5, queryParallelism=2, schedulingPolicy="fifo")
    client.create_wm_pool(idl.WMCreatePoolRequest(pool=pool))
    client.create_wm_pool(idl.WMCreatePoolRequest(pool=idl.WMPool(**PLAN, poolPath="extra")))
    changed = idl.WMNullablePool(**PLAN, poolPath="default", allocFraction=0.5)
    client.alter_wm_pool(idl.WMAlterPoolRequest(pool=changed, poolPath="default"))
    client.drop_wm_pool(idl.WMDropPoolRequest(**PLAN, poolPath="extra"))
    trigger = idl.WMTrigger(**PLAN, triggerName="slow", triggerExpression="ELAPSED_TIME > 10", actionExpression="KILL")
    client.create_wm_trigger(idl.WMCreateTriggerRequest(trigger=trigger))
    client.create_wm_trigger(idl.WMCreateTriggerRequest(trigger=idl.WMTrigger(**PLAN, triggerName="extra")))
    client.alter_wm_trigger(idl.WMAlterTriggerRequest(trigger=idl.WMTrigger(**PLAN, triggerName="slow", actionExpression="MOVE TO etl")))
    client.drop_wm_trigger(idl.WMDropTriggerRequest(**PLAN, triggerName="extra"))
    for path, drop in (("default", False), ("etl", False), ("default", True)):
        client.create_or_drop_wm_trigger_to_pool_mapping(
            idl.WMCreateOrDropTriggerToPoolMappingRequest(**PLAN, triggerName="slow", poolPath=path, drop=drop)
        )
    for name in ("ann", "bob"):
        mapping = idl.WMMapping(**PLAN, entityType="USER", entityName=name, poolPath="default")
        client.create_or_update_wm_mapping(idl.WMCreateOrUpdateMappingRequest(mapping=mapping))
    mapping = idl.WMMapping(**PLAN, entityType="USER", entityName="ann", poolPath="etl", ordering=2)
    client.create_or_update_wm_mapping(idl.WMCreateOrUpdateMappingRequest(mapping=mapping, update=True))
    client.drop_wm_mapping(idl.WMDropMappingRequest(mapping=idl.WMMapping(**PLAN, entityType="USER", entityName="bob")))

    full = activate(client)
    assert full == client.get_resource_plan(idl.WMGetResourcePlanRequest(**PLAN)).resourcePlan
    assert full == client.get_active_resource_plan(idl.WMGetActiveResourcePlanRequest(ns="default")).resourcePlan
    assert full.plan == idl.WMResourcePlan(name="p", status=ACTIVE, defaultPoolPath="default", ns="default")
    assert [(each.poolPath, each.allocFraction) for each in full.pools] == [("default", 0.5), ("etl", 0.5)]
    assert [(each.entityName, each.poolPath, each.ordering) for each in full.mappings or ()] == [("ann", "etl", 2)]
    assert [(each.pool, each.trigger) for each in full.poolTriggers or ()] == [("etl", "slow")]
    triggers = client.get_triggers_for_resourceplan(idl.WMGetTriggersForResourePlanRequest(**PLAN)).triggers
    assert triggers == full.triggers
    assert [(each.triggerName, each.actionExpression, each.isInUnmanaged) for each in triggers or ()] == [("slow", "MOVE TO etl", False)]
    found = client.validate_resource_plan(idl.WMValidateResourcePlanRequest(**PLAN))
    assert (found.errors, found.warnings) == ([], [])

    changes = idl.WMNullableResourcePlan(status=DISABLED)
    client.alter_resource_plan(idl.WMAlterResourcePlanRequest(resourcePlan=changes, isForceDeactivate=True))
    client.drop_resource_plan(idl.WMDropResourcePlanRequest(**PLAN))
    assert client.get_all_resource_plans(idl.WMGetAllResourcePlanRequest()).resourcePlans == []


def test_refusals_are_of_the_types_that_methods_declare(client: Client) -> None:
    """Hive's server answers the first five with an internal error, because its methods do not declare the exceptions that it raises."""
    create = idl.WMCreateResourcePlanRequest
    rename = idl.WMNullableResourcePlan(name="q")
    client.create_resource_plan(create(resourcePlan=idl.WMResourcePlan(name="q")))
    with pytest.raises(idl.MetaException, match="There is no resource plan named: none in default"):
        client.create_resource_plan(create(resourcePlan=idl.WMResourcePlan(name="r"), copyFrom="none"))
    with pytest.raises(idl.MetaException, match="Resource plan name should be unique: q"):
        client.alter_resource_plan(idl.WMAlterResourcePlanRequest(**PLAN, resourcePlan=rename))
    with pytest.raises(idl.InvalidObjectException, match="Invalid scheduling policy lifo"):
        client.create_wm_pool(idl.WMCreatePoolRequest(pool=idl.WMPool(**PLAN, poolPath="x", schedulingPolicy="lifo")))
    activate(client)
    with pytest.raises(idl.MetaException, match="Resource plan must be disabled to edit it"):
        client.create_wm_pool(idl.WMCreatePoolRequest(pool=idl.WMPool(**PLAN, poolPath="x")))
    with pytest.raises(idl.MetaException, match="The name of the resource plan is missing"):
        client.get_resource_plan(idl.WMGetResourcePlanRequest())
    with pytest.raises(idl.InvalidOperationException, match="Resource plan must be disabled to edit it"):
        client.drop_wm_pool(idl.WMDropPoolRequest(**PLAN, poolPath="default"))
    with pytest.raises(idl.AlreadyExistsException, match="Resource plan already exists: p"):
        client.create_resource_plan(create(resourcePlan=idl.WMResourcePlan(name="P")))
    with pytest.raises(idl.MetaException, match="Cannot drop an active resource plan"):
        client.drop_resource_plan(idl.WMDropResourcePlanRequest(**PLAN))
