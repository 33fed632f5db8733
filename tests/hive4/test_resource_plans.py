"""Hive's engine makes, fills, validates, activates and replaces resource plans. The story is taken from Hive's own test resourceplan.q.

With `hive.in.test` the engine activates a plan without the workload manager of HiveServer2. With the other setting it accepts statements
that it leaves to HiveServer2.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest

from metastore import idl
from metastore.client import connect
from tests.support.databases import databases
from tests.support.engines.hive import Hive, HiveError, Rows, hive
from tests.support.servers.servers import serving

pytestmark = pytest.mark.slow

SETTINGS = {"hive.in.test": "true", "hive.test.authz.sstd.hs2.mode": "true"}
EDIT = "Resource plan must be disabled to edit it."


class Warehouse:
    """An engine and its server."""

    def __init__(self, engine: Hive, uri: str) -> None:
        self._engine = engine
        self.uri = uri

    def sql(self, statement: str) -> Rows:
        return self._engine.sql(statement)

    def run(self, steps: Sequence[str | tuple[str, str]]) -> None:
        """Run statements. A statement with a text has to be refused with that text in the error."""
        wrong = []
        for step in steps:
            statement, refusal = (step, "") if isinstance(step, str) else step
            try:
                self.sql(statement)
                said = ""
            except HiveError as error:
                said = str(error)
            if bool(said) != bool(refusal) or refusal not in said:
                wrong.append(f"{statement}: {said.splitlines()[:1] or 'done'} instead of {refusal or 'done'}")
        assert not wrong, "\n".join(wrong)

    def plans(self) -> dict[str, tuple[str, str]]:
        """Return status and parallelism of each plan by its name."""
        return {name: (status, limit.strip()) for name, status, limit in self.sql("SHOW RESOURCE PLANS")}

    def plan(self, name: str) -> set[str]:
        """Return the set of the lines about a plan. Hive shows children of one parent in no order."""
        return {line for (line,) in self.sql(f"SHOW RESOURCE PLAN `{name}`")}


@pytest.fixture(scope="module")
def warehouse(database_kind: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Warehouse]:
    folder = tmp_path_factory.mktemp("server")
    with contextmanager(databases.fresh)(database_kind, folder) as url:
        options = ("--db", url, "--warehouse", str(folder / "warehouse"))
        with serving(*options, home=folder) as server, hive(server.uri, folder / "hive", folder / "warehouse", SETTINGS) as engine:
            yield Warehouse(engine, server.uri)


@pytest.fixture(autouse=True)
def empty(warehouse: Warehouse) -> Iterator[None]:
    """Drop all plans."""
    yield
    plans = warehouse.sql("SHOW RESOURCE PLANS")
    if "ACTIVE" in {status for _, status, _ in plans}:
        warehouse.sql("DISABLE WORKLOAD MANAGEMENT")
    for name, *_ in plans:
        warehouse.sql(f"DROP RESOURCE PLAN `{name}`")


def test_plans_and_their_statuses(warehouse: Warehouse) -> None:
    assert warehouse.sql("SHOW RESOURCE PLANS") == []
    warehouse.run(
        [
            "CREATE RESOURCE PLAN plan_1",
            ("CREATE RESOURCE PLAN plan_1", "Resource plan plan_1 already exists"),
            "CREATE RESOURCE PLAN IF NOT EXISTS plan_1",
            "CREATE RESOURCE PLAN plan_2 WITH QUERY_PARALLELISM=10",
            ("ALTER RESOURCE PLAN plan_1 RENAME TO plan_2", "Resource plan name should be unique: "),
            "ALTER RESOURCE PLAN plan_1 RENAME TO plan_3",
            "ALTER RESOURCE PLAN plan_3 SET QUERY_PARALLELISM = 4",
            "ALTER RESOURCE PLAN plan_3 UNSET QUERY_PARALLELISM",
            ("ALTER RESOURCE PLAN plan_3 SET QUERY_PARALLELISM = 30, DEFAULT POOL = default1", "Cannot find pool: default1"),
            "ALTER RESOURCE PLAN plan_3 ENABLE",
            ("ALTER RESOURCE PLAN plan_3 RENAME TO plan_4", EDIT),
            ("ALTER RESOURCE PLAN plan_3 SET QUERY_PARALLELISM = 30", EDIT),
            "ALTER RESOURCE PLAN plan_3 DISABLE",
            ("ALTER RESOURCE PLAN plan_3 ACTIVATE", "Resource plan plan_3 is disabled and should be enabled before activation"),
            "ALTER RESOURCE PLAN plan_3 DISABLE",
            "ALTER RESOURCE PLAN plan_3 ENABLE",
            "ALTER RESOURCE PLAN plan_3 ACTIVATE",
            "ALTER RESOURCE PLAN plan_3 ACTIVATE",
            ("ALTER RESOURCE PLAN plan_3 ENABLE", "plan_3 is active; activate another plan first, or disable workload management."),
            ("ALTER RESOURCE PLAN plan_3 DISABLE", "plan_3 is active; activate another plan first, or disable workload management."),
        ]
    )
    assert warehouse.plans() == {"plan_2": ("DISABLED", "10"), "plan_3": ("ACTIVE", "")}
    assert warehouse.plan("plan_3") == {
        "plan_3[status=ACTIVE,parallelism=null,defaultPool=default]",
        " +  default[allocFraction=1.0,schedulingPolicy=null,parallelism=4]",
        "     |  mapped for default",
    }
    warehouse.run(
        [
            "DISABLE WORKLOAD MANAGEMENT",
            ("DISABLE WORKLOAD MANAGEMENT", "There is no active resource plan in default"),
            "ALTER RESOURCE PLAN plan_3 DISABLE",
            "ALTER RESOURCE PLAN plan_3 ENABLE ACTIVATE",
            "ALTER RESOURCE PLAN plan_2 ENABLE",
            "ALTER RESOURCE PLAN plan_2 ACTIVATE",
            ("DROP RESOURCE PLAN plan_2", "Cannot drop an active resource plan"),
        ]
    )
    assert warehouse.plans() == {"plan_2": ("ACTIVE", "10"), "plan_3": ("ENABLED", "")}
    warehouse.run(
        [
            "DROP RESOURCE PLAN plan_3",
            ("DROP RESOURCE PLAN plan_3", "Resource plan plan_3 does not exist"),
            "DROP RESOURCE PLAN IF EXISTS plan_3",
        ]
    )
    assert warehouse.plans() == {"plan_2": ("ACTIVE", "10")}


def test_pools_triggers_and_mappings(warehouse: Warehouse) -> None:
    warehouse.run(
        [
            "CREATE RESOURCE PLAN `table` WITH QUERY_PARALLELISM = 8",
            "CREATE RESOURCE PLAN other",
            "ALTER RESOURCE PLAN other ENABLE ACTIVATE",
            "CREATE TRIGGER `table`.`table` WHEN BYTES_WRITTEN > '100KB' DO MOVE TO `default`",
            ("CREATE TRIGGER `table`.`table` WHEN BYTES_WRITTEN > '100KB' DO KILL", "Trigger already exists, use alter: "),
            "CREATE TRIGGER `table`.trigger1 WHEN ELAPSED_TIME > 10 DO KILL",
            "CREATE TRIGGER `table`.trigger2 WHEN BYTES_READ > '1GB' DO KILL",
            ("CREATE TRIGGER `table`.bad WHEN BYTES_READ > '10k' DO KILL", "Invalid size unit k"),
            "ALTER TRIGGER `table`.trigger2 WHEN ELAPSED_TIME > '1hour' DO MOVE TO slow",
            "CREATE TRIGGER `table`.extra WHEN ELAPSED_TIME > 10 DO KILL",
            "DROP TRIGGER `table`.extra",
            ("CREATE TRIGGER other.t WHEN BYTES_READ > '1GB' DO KILL", EDIT),
            ("CREATE POOL other.p WITH ALLOC_FRACTION=1.0, QUERY_PARALLELISM=5", EDIT),
            ("CREATE POOL `table`.default WITH ALLOC_FRACTION=1.0, QUERY_PARALLELISM=5", "Pool already exists: "),
            "ALTER POOL `table`.default SET QUERY_PARALLELISM=4",
            "CREATE POOL `table`.default.c1 WITH ALLOC_FRACTION=0.3, QUERY_PARALLELISM=3, SCHEDULING_POLICY='fair'",
            "CREATE POOL `table`.default.c2 WITH QUERY_PARALLELISM=2, SCHEDULING_POLICY='fair', ALLOC_FRACTION=0.75",
            (
                "CREATE POOL `table`.nothing.c WITH ALLOC_FRACTION=0.3, QUERY_PARALLELISM=3",
                "Pool path is invalid, the parent does not exist",
            ),
        ]
    )
    fault = "Sum of children pools' alloc fraction should be less than 1 got: 1.05 for pool: default"
    assert (fault,) in warehouse.sql("ALTER RESOURCE PLAN `table` VALIDATE")
    warehouse.run(
        [
            ("ALTER RESOURCE PLAN `table` ENABLE ACTIVATE", "ResourcePlan: table is invalid: ["),
            "ALTER POOL `table`.default.c2 SET ALLOC_FRACTION = 0.7, QUERY_PARALLELISM = 1, SCHEDULING_POLICY='fifo'",
            "ALTER POOL `table`.default.c2 UNSET SCHEDULING_POLICY",
            "ALTER RESOURCE PLAN `table` SET QUERY_PARALLELISM = 20",
        ]
    )
    warning = "warn: Sum of all pools' query parallelism: 8 is less than resource plan query parallelism: 20"
    assert warehouse.sql("ALTER RESOURCE PLAN `table` VALIDATE") == [(warning,)]
    warehouse.run(
        [
            "ALTER POOL `table`.default SET PATH = def",
            ("DROP POOL `table`.default", "Cannot delete pool: default"),
            ("DROP POOL `table`.def", "Cannot drop default pool of a resource plan"),
            "ALTER POOL `table`.def.c1 ADD TRIGGER `table`",
            "ALTER POOL `table`.def.c2 ADD TRIGGER `table`",
            "ALTER TRIGGER `table`.trigger1 ADD TO POOL def.c2",
            "ALTER TRIGGER `table`.trigger1 ADD TO UNMANAGED",
            ("ALTER POOL `table`.nope ADD TRIGGER `table`", "Cannot find pool: nope"),
            ("ALTER POOL `table`.def ADD TRIGGER nope", "Cannot find trigger with name: nope"),
            "CREATE USER MAPPING 'user1' IN `table` TO def",
            ("CREATE USER MAPPING 'user1' IN `table` TO def", "Mapping already exists"),
            "CREATE USER MAPPING 'user2' IN `table` TO def WITH ORDER 1",
            "CREATE GROUP MAPPING 'group1' IN `table` TO def.c1",
            "CREATE APPLICATION MAPPING 'app1' IN `table` TO def.c1",
            "CREATE GROUP MAPPING 'group3' IN `table` UNMANAGED WITH ORDER 1",
            "ALTER USER MAPPING 'user1' IN `table` UNMANAGED",
            "ALTER USER MAPPING 'user2' IN `table` TO def.c1",
        ]
    )
    assert warehouse.plan("table") == {
        "table[status=DISABLED,parallelism=20,defaultPool=def]",
        " +  def[allocFraction=1.0,schedulingPolicy=null,parallelism=4]",
        "     |  mapped for default",
        "     +  c2[allocFraction=0.7,schedulingPolicy=null,parallelism=1]",
        "         |  trigger table: if (BYTES_WRITTEN > '100KB') { MOVE TO default }",
        "         |  trigger trigger1: if (ELAPSED_TIME > 10) { KILL }",
        "     +  c1[allocFraction=0.3,schedulingPolicy=fair,parallelism=3]",
        "         |  mapped for users: user2",
        "         |  mapped for groups: group1",
        "         |  mapped for applications: app1",
        " +  <unmanaged queries>",
        "     |  trigger trigger1: if (ELAPSED_TIME > 10) { KILL }",
        "     |  mapped for users: user1",
        "     |  mapped for groups: group3",
        " +  <unused triggers>",
        "     |  trigger trigger2: if (ELAPSED_TIME > '1hour') { MOVE TO slow }",
    }
    with connect(warehouse.uri) as client:
        full = client.get_resource_plan(idl.WMGetResourcePlanRequest(resourcePlanName="table")).resourcePlan
    assert full is not None
    assert {each.entityName: each.ordering for each in full.mappings or ()} == {"app1": 0, "group1": 0, "group3": 1, "user1": 0, "user2": 1}
    warehouse.run(
        [
            ("DROP POOL `table`.def.c1", "Please remove all mappings for this pool."),
            "DROP USER MAPPING 'user2' IN `table`",
            ("DROP USER MAPPING 'user2' IN `table`", "Cannot delete mapping"),
            "DROP GROUP MAPPING 'group1' IN `table`",
            "DROP APPLICATION MAPPING 'app1' IN `table`",
            "ALTER TRIGGER `table`.trigger1 DROP FROM POOL def.c2",
            "ALTER TRIGGER `table`.trigger1 DROP FROM UNMANAGED",
            "DROP POOL `table`.def.c1",
            "ALTER RESOURCE PLAN `table` UNSET DEFAULT POOL, QUERY_PARALLELISM",
            ("DROP POOL `table`.def", "Cannot drop a pool that has child pools"),
        ]
    )
    assert warehouse.plan("table") == {
        "table[status=DISABLED,parallelism=null,defaultPool=null]",
        " +  def[allocFraction=1.0,schedulingPolicy=null,parallelism=4]",
        "     +  c2[allocFraction=0.7,schedulingPolicy=null,parallelism=1]",
        "         |  trigger table: if (BYTES_WRITTEN > '100KB') { MOVE TO default }",
        " +  <unmanaged queries>",
        "     |  mapped for users: user1",
        "     |  mapped for groups: group3",
        " +  <unused triggers>",
        "     |  trigger trigger1: if (ELAPSED_TIME > 10) { KILL }",
        "     |  trigger trigger2: if (ELAPSED_TIME > '1hour') { MOVE TO slow }",
    }


def test_plans_are_copied_and_replaced(warehouse: Warehouse) -> None:
    warehouse.run(
        [
            "CREATE RESOURCE PLAN a WITH QUERY_PARALLELISM=7",
            "ALTER RESOURCE PLAN a ENABLE ACTIVATE",
            "CREATE RESOURCE PLAN b LIKE a",
            "CREATE POOL b.extra WITH SCHEDULING_POLICY='fair', QUERY_PARALLELISM=2, ALLOC_FRACTION=0.0",
            "CREATE RESOURCE PLAN c LIKE b",
            "CREATE POOL c.further WITH QUERY_PARALLELISM=3, ALLOC_FRACTION=0.0",
            "REPLACE RESOURCE PLAN b WITH c",
        ]
    )
    assert warehouse.plan("b") == {
        "b[status=DISABLED,parallelism=7,defaultPool=default]",
        " +  default[allocFraction=1.0,schedulingPolicy=null,parallelism=7]",
        "     |  mapped for default",
        " +  extra[allocFraction=0.0,schedulingPolicy=fair,parallelism=2]",
        " +  further[allocFraction=0.0,schedulingPolicy=null,parallelism=3]",
    }
    warehouse.run(["REPLACE ACTIVE RESOURCE PLAN WITH b"])
    assert "a[status=ACTIVE,parallelism=7,defaultPool=default]" in warehouse.plan("a")
    assert " +  further[allocFraction=0.0,schedulingPolicy=null,parallelism=3]" in warehouse.plan("a")
    warehouse.run(["CREATE RESOURCE PLAN d", "ALTER RESOURCE PLAN d ENABLE ACTIVATE WITH REPLACE"])
    assert "a[status=ACTIVE,parallelism=null,defaultPool=default]" in warehouse.plan("a")
    names = sorted(name.partition("_old_20")[0] for name, *_ in warehouse.sql("SHOW RESOURCE PLANS"))
    assert names == ["a", "a", "a", "b"]
