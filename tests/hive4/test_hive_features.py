"""Hive 4's engine keeps connectors, databases on other systems and scheduled queries in this server."""

from __future__ import annotations

import pytest

from metastore import idl
from tests.hive4.conftest import Story
from tests.support.engines.hive import Hive, HiveError

pytestmark = pytest.mark.slow


def text(rows: list[tuple[str, ...]]) -> str:
    return "\n".join("\t".join(map(str, row)) for row in rows)


def test_connectors_and_the_databases_on_them(story: Story) -> None:
    sql, name, far = story.sql, f"{story.name}_pg", f"{story.name}_far"
    options = "COMMENT 'theirs' WITH DCPROPERTIES ('hive.sql.dbcp.username'='u')"
    sql(f"CREATE CONNECTOR {name} TYPE 'postgres' URL 'jdbc:postgresql://h/d' {options}")
    assert (name,) in sql("SHOW CONNECTORS")
    with pytest.raises(HiveError, match="already exists"):
        sql(f"CREATE CONNECTOR {name} TYPE 'postgres' URL 'jdbc:postgresql://h/d'")
    sql(f"CREATE CONNECTOR IF NOT EXISTS {name} TYPE 'postgres' URL 'jdbc:postgresql://other/d'")
    sql(f"ALTER CONNECTOR {name} SET URL 'jdbc:postgresql://new/d'")
    sql(f"ALTER CONNECTOR {name} SET DCPROPERTIES ('k'='v')")
    sql(f"ALTER CONNECTOR {name} SET OWNER USER bob")
    described = text(sql(f"DESCRIBE CONNECTOR EXTENDED {name}"))
    for part in (name, "postgres", "jdbc:postgresql://new/d", "theirs", "bob", "hive.sql.dbcp.username=u", "k=v"):
        assert part in described
    sql(f"CREATE REMOTE DATABASE {far} USING {name} WITH DBPROPERTIES ('connector.remoteDbName'='theirs')")
    described = text(sql(f"DESCRIBE DATABASE EXTENDED {far}"))
    assert name in described
    assert "theirs" in described
    for statement in (f"CREATE TABLE {far}.t (a int)", f"SELECT * FROM {far}.t", f"DROP CONNECTOR {name}"):
        with pytest.raises(HiveError, match=f"REMOTE|{far}"):
            sql(statement)
    sql(f"DROP DATABASE {far}")
    sql(f"DROP CONNECTOR {name}")
    sql(f"DROP CONNECTOR IF EXISTS {name}")
    assert (name,) not in sql("SHOW CONNECTORS")


@pytest.fixture(scope="module")
def executing(engine: Hive) -> None:
    """Let the engine run scheduled queries, as HiveServer2 does."""
    engine.executor()


@pytest.mark.usefixtures("executing")
def test_scheduled_queries(story: Story) -> None:
    sql, client, name = story.sql, story.client, f"{story.name}_query"
    key = idl.ScheduledQueryKey(scheduleName=name, clusterNamespace="hive")
    sql("CREATE TABLE t (a int)")
    sql(f"CREATE SCHEDULED QUERY {name} CRON '0 0 0 1 1 ? 2030' AS INSERT INTO {story.name}.t VALUES (1)")
    made = client.get_scheduled_query(key)
    assert (made.enabled, made.schedule) == (True, "0 0 0 1 1 ? 2030")
    with pytest.raises(HiveError, match="already exists"):
        sql(f"CREATE SCHEDULED QUERY {name} CRON '0 0 0 1 1 ? 2030' AS SELECT 1")
    with pytest.raises(HiveError, match="Invalid QUARTZ schedule expression"):
        sql(f"ALTER SCHEDULED QUERY {name} CRON 'no schedule'")
    sql(f"ALTER SCHEDULED QUERY {name} DISABLED")
    assert not client.get_scheduled_query(key).enabled
    sql(f"ALTER SCHEDULED QUERY {name} EVERY 2 HOURS OFFSET BY '0:05:00'")
    sql(f"ALTER SCHEDULED QUERY {name} ENABLED")
    assert sql("SELECT * FROM t") == []
    for rows in (1, 2):  # the second is returned to the engine only after the end of the first is reported
        sql(f"ALTER SCHEDULED QUERY {name} EXECUTE")
        story.until(lambda rows=rows: sql("SELECT * FROM t") == [("1",)] * rows)  # type: ignore[misc]  # bound now
    sql(f"DROP SCHEDULED QUERY {name}")
    with pytest.raises(idl.NoSuchObjectException):
        client.get_scheduled_query(key)
    with pytest.raises(HiveError, match="There is no scheduled query"):
        sql(f"DROP SCHEDULED QUERY {name}")
