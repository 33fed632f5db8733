"""Trino's own server works on a metastore: tables, partitions, statistics, views, roles, transactional and Iceberg tables."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from decimal import Decimal
from itertools import count

import pytest
from trino.exceptions import TrinoQueryError

from metastore.client import connect
from metastore.idl import ShowLocksRequest
from tests.support.databases import databases
from tests.support.engines.trino_server import USER, Trino, trino_on
from tests.support.servers.servers import serving

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
_NUMBERS = count()


@pytest.fixture(scope="module", params=databases.KINDS)
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Trino, str]]:
    """Trino on a server with two workers on each kind of database, and the server's address."""
    folder = tmp_path_factory.mktemp("trino")
    with contextmanager(databases.fresh)(request.param, folder) as url:
        options = ("--db", url, "--warehouse", f"file:{folder}/warehouse", "--workers", "2", "--set", f"admin_users={USER}")
        with serving(*options, home=folder / "server") as server, trino_on(server, folder / "warehouse", folder) as trino:
            yield trino, server.uri


@pytest.fixture
def trino(place: tuple[Trino, str]) -> Trino:
    return place[0]


@pytest.fixture
def schema(trino: Trino) -> Iterator[str]:
    """A schema with nothing in it, which must be empty again at the end."""
    name = f"s{next(_NUMBERS)}"
    trino.run(f"CREATE SCHEMA {name}")
    yield name
    trino.run(f"DROP SCHEMA {name}")
    assert not (trino.warehouse / f"{name}.db").exists()


def refused(trino: Trino, statement: str, why: str) -> None:
    with pytest.raises(TrinoQueryError) as raised:
        trino.run(statement)
    assert raised.value.error_name == why, raised.value


def test_schemas(trino: Trino, schema: str) -> None:
    assert (schema,) in trino.run("SHOW SCHEMAS")
    assert f"file:{trino.warehouse}/{schema}.db" in trino.run(f"SHOW CREATE SCHEMA {schema}")[0][0]
    refused(trino, f"CREATE SCHEMA {schema}", "SCHEMA_ALREADY_EXISTS")
    trino.run(f"CREATE TABLE {schema}.t (a int)")
    refused(trino, f"DROP SCHEMA {schema}", "SCHEMA_NOT_EMPTY")
    refused(trino, f"CREATE TABLE {schema}.t (a int)", "TABLE_ALREADY_EXISTS")
    refused(trino, f"SELECT * FROM {schema}.other", "TABLE_NOT_FOUND")
    trino.run(f"DROP TABLE {schema}.t")


def test_tables_of_partitions(trino: Trino, schema: str) -> None:
    table = f"{schema}.trips"
    trino.run(
        f"CREATE TABLE {table} (id bigint, fare decimal(10,2), at timestamp(3), day varchar, hour integer) "
        "WITH (partitioned_by = ARRAY['day', 'hour'], format = 'PARQUET')"
    )
    trino.run(
        f"INSERT INTO {table} VALUES (1, 1.5, TIMESTAMP '2024-01-01 10:00:00', '2024-01-01', 10), (2, 2.5, NULL, '2024-01-02', 11), "
        "(3, NULL, NULL, NULL, 12), (4, 4.5, NULL, 'a/b=c', 12)"
    )
    trino.run(f"INSERT INTO {table} SELECT id + 10, fare, at, day, hour FROM {table} WHERE hour = 10")
    assert trino.run(f"SELECT id, fare, day, hour FROM {table} ORDER BY id") == [
        (1, Decimal("1.50"), "2024-01-01", 10), (2, Decimal("2.50"), "2024-01-02", 11), (3, None, None, 12),
        (4, Decimal("4.50"), "a/b=c", 12), (11, Decimal("1.50"), "2024-01-01", 10),
    ]  # fmt: skip
    partitions = f'SELECT * FROM {schema}."trips$partitions" ORDER BY hour, day'
    assert trino.run(partitions) == [("2024-01-01", 10), ("2024-01-02", 11), ("a/b=c", 12), (None, 12)]
    assert trino.run(f"SELECT count(*) FROM {table} WHERE day IS NULL AND hour > 10") == [(1,)]
    assert trino.run(f"SELECT id FROM {table} WHERE day = 'a/b=c'") == [(4,)]
    assert (trino.warehouse / f"{schema}.db" / "trips" / "day=a%2Fb%3Dc" / "hour=12").is_dir()
    trino.run(f"DELETE FROM {table} WHERE hour = 11")
    assert not (trino.warehouse / f"{schema}.db" / "trips" / "day=2024-01-02").exists()
    trino.run(f"CALL system.create_empty_partition('{schema}', 'trips', ARRAY['day', 'hour'], ARRAY['2025-01-01', '9'])")
    (trino.warehouse / f"{schema}.db" / "trips" / "day=found" / "hour=1").mkdir(parents=True)
    trino.run(f"CALL system.sync_partition_metadata('{schema}', 'trips', 'FULL')")
    assert [row for row in trino.run(partitions) if row[1] < 10] == [("found", 1), ("2025-01-01", 9)]
    trino.run(f"CALL system.unregister_partition('{schema}', 'trips', ARRAY['day', 'hour'], ARRAY['2025-01-01', '9'])")
    assert ("2025-01-01", 9) not in trino.run(partitions)
    trino.run(f"ALTER TABLE {table} RENAME TO {schema}.moved")
    assert trino.run(f"SHOW TABLES FROM {schema}") == [("moved",)]
    assert trino.run(f"SELECT count(*) FROM {schema}.moved") == [(4,)]
    trino.run(f"DROP TABLE {schema}.moved")
    assert list((trino.warehouse / f"{schema}.db").iterdir()) == []


def test_definitions_of_tables(trino: Trino, schema: str) -> None:
    table = f"{schema}.t"
    trino.run(f"CREATE TABLE {table} WITH (format = 'ORC') AS SELECT * FROM (VALUES (1, 'x'), (2, 'y')) v (a, b)")
    trino.run(f"ALTER TABLE {table} ADD COLUMN c double")
    trino.run(f"ALTER TABLE {table} RENAME COLUMN c TO d")
    trino.run(f"COMMENT ON TABLE {table} IS 'a comment'")
    trino.run(f"COMMENT ON COLUMN {table}.a IS 'the id'")
    assert trino.run(f"DESCRIBE {table}") == [("a", "integer", "", "the id"), ("b", "varchar(1)", "", ""), ("d", "double", "", "")]
    assert "COMMENT 'a comment'" in trino.run(f"SHOW CREATE TABLE {table}")[0][0]
    trino.run(f"ALTER TABLE {table} DROP COLUMN d")
    assert trino.run(f"SELECT * FROM {table} ORDER BY a") == [(1, "x"), (2, "y")]
    trino.run(f"CREATE TABLE {schema}.b (a int, b varchar) WITH (bucketed_by = ARRAY['a'], bucket_count = 2, format = 'ORC')")
    trino.run(f"INSERT INTO {schema}.b SELECT a, b FROM {table}")
    assert trino.run(f"SELECT b FROM {schema}.b WHERE a = 2") == [("y",)]
    columns = f"SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = '{schema}' ORDER BY 1, 2"
    assert trino.run(columns) == [("b", "a"), ("b", "b"), ("t", "a"), ("t", "b")]
    for name in ("b", "t"):
        trino.run(f"DROP TABLE {schema}.{name}")


def test_statistics(trino: Trino, schema: str) -> None:
    table = f"{schema}.t"
    trino.run(f"CREATE TABLE {table} (a bigint, b varchar, p integer) WITH (partitioned_by = ARRAY['p'])")
    trino.run(f"INSERT INTO {table} VALUES (1, 'xx', 1), (5, NULL, 1), (7, 'yyyy', 2)")
    stats = f"SHOW STATS FOR {table}"

    def by_column() -> dict[str | None, tuple[object, ...]]:
        return {row[0]: tuple(row[1:]) for row in trino.run(stats)}

    trino.run(f"ANALYZE {table}")
    found = by_column()
    assert found[None][3] == 3.0
    assert found["a"][2:] == (0.0, None, "1", "7")
    assert found["b"][2] == pytest.approx(1 / 3)
    assert found["p"][1] == 2.0
    trino.run(f"CALL system.drop_stats('{schema}', 't')")
    assert by_column()["a"][3:] == (None, None, None)
    trino.run(f"ANALYZE {table} WITH (partitions = ARRAY[ARRAY['1']])")
    assert [row[-2:] for row in trino.run(f"SHOW STATS FOR (SELECT * FROM {table} WHERE p = 1)") if row[0] == "a"] == [("1", "5")]
    trino.run(f"DROP TABLE {table}")


def test_views(trino: Trino, schema: str) -> None:
    trino.run(f"CREATE TABLE {schema}.t AS SELECT 1 a")
    trino.run(f"CREATE VIEW {schema}.v AS SELECT a FROM {schema}.t")
    assert trino.run(f"SELECT * FROM {schema}.v") == [(1,)]
    trino.run(f"CREATE OR REPLACE VIEW {schema}.v AS SELECT a + 1 a FROM {schema}.t")
    trino.run(f"ALTER VIEW {schema}.v RENAME TO {schema}.w")
    assert trino.run(f"SELECT * FROM {schema}.w") == [(2,)]
    tables = f"SELECT table_name, table_type FROM information_schema.tables WHERE table_schema = '{schema}' ORDER BY 1"
    assert trino.run(tables) == [("t", "BASE TABLE"), ("w", "VIEW")]
    trino.run(f"DROP VIEW {schema}.w")
    trino.run(f"DROP TABLE {schema}.t")


def test_transactional_tables(trino: Trino, place: tuple[Trino, str], schema: str) -> None:
    table = f"{schema}.t"
    trino.run(f"CREATE TABLE {table} (a int, b varchar) WITH (transactional = true, format = 'ORC')")
    trino.run(f"INSERT INTO {table} VALUES (1, 'x'), (2, 'y')")
    trino.run(f"INSERT INTO {table} VALUES (3, 'z')")
    trino.run(f"UPDATE {table} SET b = b || '!' WHERE a > 1")
    trino.run(f"DELETE FROM {table} WHERE a = 1")
    assert trino.run(f"SELECT * FROM {table} ORDER BY a") == [(2, "y!"), (3, "z!")]
    trino.run(
        f"MERGE INTO {table} t USING (VALUES (2, 'gone'), (9, 'new')) s (a, b) ON t.a = s.a "
        "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT VALUES (s.a, s.b)"
    )
    assert trino.run(f"SELECT * FROM {table} ORDER BY a") == [(3, "z!"), (9, "new")]
    with connect(place[1]) as client:
        assert client.show_locks(ShowLocksRequest()).locks == []
        assert client.get_open_txns().open_txns == []
    trino.run(f"DROP TABLE {table}")


def test_iceberg_tables(trino: Trino, schema: str) -> None:
    def run(statement: str) -> list[tuple[object, ...]]:
        return trino.run(statement, catalog="iceberg")

    table = f"{schema}.t"
    # More than Iceberg's default of four: on a slow machine each of four writers loses more races.
    run(f"CREATE TABLE {table} (a int, b varchar) WITH (partitioning = ARRAY['bucket(a, 2)'], max_commit_retry = 30)")
    run(f"INSERT INTO {table} VALUES (1, 'x'), (2, 'y')")
    run(f"UPDATE {table} SET b = 'z' WHERE a = 1")
    run(f"DELETE FROM {table} WHERE a = 2")
    run(f"ALTER TABLE {table} ADD COLUMN c double")
    run(f"ALTER TABLE {table} RENAME TO {schema}.moved")
    assert run(f"SELECT * FROM {schema}.moved") == [(1, "z", None)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda number: run(f"INSERT INTO {schema}.moved VALUES ({number}, 'w', 0.5)"), range(100, 108)))
    assert run(f"SELECT count(*) FROM {schema}.moved") == [(9,)]
    run(f"ALTER TABLE {schema}.moved EXECUTE optimize")
    run(f"CREATE MATERIALIZED VIEW {schema}.m AS SELECT b, count(*) n FROM {schema}.moved GROUP BY b")
    run(f"REFRESH MATERIALIZED VIEW {schema}.m")
    assert sorted(run(f"SELECT * FROM {schema}.m")) == [("w", 8), ("z", 1)]
    assert sorted(run(f"SHOW TABLES FROM {schema}")) == [("m",), ("moved",)]
    run(f"DROP MATERIALIZED VIEW {schema}.m")
    run(f"DROP TABLE {schema}.moved")


def test_roles_and_grants(trino: Trino) -> None:
    def run(statement: str) -> list[tuple[object, ...]]:
        return trino.run(statement, catalog="secured", role="admin")

    schema = f"s{next(_NUMBERS)}"
    run(f"CREATE SCHEMA {schema}")
    run("CREATE ROLE readers IN secured")
    assert sorted(run("SHOW ROLES FROM secured")) == [("admin",), ("public",), ("readers",)]
    run(f"GRANT readers TO USER {USER} IN secured")
    assert ("readers",) in run("SHOW ROLE GRANTS FROM secured")
    run(f"CREATE TABLE {schema}.t (a int)")
    run(f"GRANT SELECT ON {schema}.t TO ROLE readers")
    run(f"GRANT INSERT ON {schema}.t TO USER bob WITH GRANT OPTION")

    def grants() -> set[tuple[object, ...]]:
        return {(row[2], row[3], row[7], row[8]) for row in run(f"SHOW GRANTS ON TABLE {schema}.t") if row[2] != USER}

    assert grants() == {("readers", "ROLE", "SELECT", "NO"), ("bob", "USER", "INSERT", "YES")}
    run(f"REVOKE SELECT ON {schema}.t FROM ROLE readers")
    assert grants() == {("bob", "USER", "INSERT", "YES")}
    run(f"REVOKE readers FROM USER {USER} IN secured")
    run("DROP ROLE readers IN secured")
    assert sorted(run("SHOW ROLES FROM secured")) == [("admin",), ("public",)]
    run(f"DROP TABLE {schema}.t")
    run(f"DROP SCHEMA {schema}")
