"""Fill Hive's schema 4.0.0 on PostgreSQL with very many partitions, by statements of the database."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing

from sqlalchemy.engine import make_url

from tests.support.databases import databases

CREATED = 1_700_000_000
"""The time at which all of it was made."""


def fill(url: str, tables: int, partitions: int, parameters: Sequence[str] = ("numRows",)) -> None:
    """Add a database `big` of tables with partitions, each of which has some parameters and statistics of two columns."""
    number = tables * partitions
    statements = f"""
CREATE TEMP TABLE t AS SELECT n + 1 AS key, 't' || lpad(n::text, 5, '0') AS name, {number} + n + 1 AS sd
    FROM generate_series(0, {tables - 1}) n;
CREATE TEMP TABLE p AS SELECT (t.key - 1) * {partitions} + n + 1 AS key, t.key AS owner, t.name AS table, n, lpad(n::text, 6, '0') AS value,
    'ds=' || lpad(n::text, 6, '0') AS name FROM t, generate_series(0, {partitions - 1}) n;
INSERT INTO "DBS" ("DB_ID", "DB_LOCATION_URI", "NAME", "OWNER_NAME", "OWNER_TYPE", "CTLG_NAME", "CREATE_TIME", "TYPE")
    VALUES (1000, 's3a://b/big.db', 'big', 'etl', 'USER', 'hive', {CREATED}, 'NATIVE');
INSERT INTO "CDS" VALUES (1);
INSERT INTO "COLUMNS_V2" VALUES (1, NULL, 'id', 'bigint', 0), (1, NULL, 'name', 'string', 1);
INSERT INTO "SERDES" ("SERDE_ID", "SLIB") SELECT n, 'lib' FROM generate_series(1, {number + tables}) n;
INSERT INTO "SDS" ("SD_ID", "INPUT_FORMAT", "IS_COMPRESSED", "LOCATION", "NUM_BUCKETS", "OUTPUT_FORMAT", "SERDE_ID", "CD_ID",
    "IS_STOREDASSUBDIRECTORIES") SELECT key, 'in', false, 's3a://b/big.db/' || "table" || '/' || name, -1, 'out', key, 1, false FROM p
    UNION ALL SELECT sd, 'in', false, 's3a://b/big.db/' || name, -1, 'out', sd, 1, false FROM t;
INSERT INTO "TBLS" ("TBL_ID", "CREATE_TIME", "DB_ID", "LAST_ACCESS_TIME", "OWNER", "OWNER_TYPE", "RETENTION", "SD_ID", "TBL_NAME",
    "TBL_TYPE", "IS_REWRITE_ENABLED") SELECT key, {CREATED}, 1000, 0, 'etl', 'USER', 0, sd, name, 'EXTERNAL_TABLE', false FROM t;
INSERT INTO "TABLE_PARAMS" SELECT key, 'EXTERNAL', 'TRUE' FROM t;
INSERT INTO "PARTITION_KEYS" SELECT key, NULL, 'ds', 'string', 0 FROM t;
INSERT INTO "PARTITIONS" ("PART_ID", "CREATE_TIME", "LAST_ACCESS_TIME", "PART_NAME", "SD_ID", "TBL_ID")
    SELECT key, {CREATED}, 0, name, key, owner FROM p;
INSERT INTO "PARTITION_KEY_VALS" SELECT key, value, 0 FROM p;
INSERT INTO "PARTITION_PARAMS" SELECT key, each, n::text FROM p, unnest(ARRAY{list(parameters)}) each;
INSERT INTO "PART_COL_STATS" ("CS_ID", "CAT_NAME", "DB_NAME", "TABLE_NAME", "PARTITION_NAME", "COLUMN_NAME", "COLUMN_TYPE", "PART_ID",
    "LONG_LOW_VALUE", "LONG_HIGH_VALUE", "NUM_NULLS", "NUM_DISTINCTS", "LAST_ANALYZED", "ENGINE")
    SELECT key * 2 + place, 'hive', 'big', "table", name, "column", 'bigint', key, 0, n, 0, n, {CREATED}, 'hive'
    FROM p, (VALUES (0, 'id'), (1, 'name')) columns (place, "column");
ANALYZE
"""
    with closing(databases.connect(make_url(url))) as connection, closing(connection.cursor()) as cursor:
        cursor.execute(statements)
