"""Statements of Hive's documentation and of everyday use, each right, or refused with a way out."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from metastore.client import Client
from metastore.spark import AcidTable, sql

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]

SMALL = "id int, name string, salary int"
WIDE = (
    "id int, name string, salary int, did int, addr struct<city:string>, `we ird` int, tags array<string>, a int, b int, x int, y string, "
    "xs array<int>, m map<string,int>, d date, s struct<b:struct<c:int>>"
)
ACID = "STORED AS ORC TBLPROPERTIES ('transactional'='true')"

RIGHT: dict[str, list[str]] = {
    SMALL: [
        "set hive.support.concurrency = true",
        "set hive.txn.manager = org.apache.hadoop.hive.ql.lockmgr.DbTxnManager",
        "INSERT INTO emp VALUES\n(1, 'Jerry', 5000),\n(2, 'Tom',   8000),\n(3, 'Kate',  6000)",
        "select * from emp",
        "INSERT INTO emp VALUES(4, 'Allen', 8000)",
        "delete from emp where id =2",
        "Show Compactions",
        "describe formatted emp",
        'insert into emp (id, name, salary)\nvalues (1,"allen",18)',
        "show tables",
        "DESCRIBE EXTENDED emp",
        "SHOW TRANSACTIONS",
        "SHOW CREATE TABLE emp",
        "ALTER TABLE t DROP PARTITION (r='x')",
        "CREATE TABLE acidtbl (a INT, b STRING)",
        "CREATE TRANSACTIONAL TABLE made(key string, value string) PARTITIONED BY(ds string) STORED AS ORC",
        "CREATE TABLE made(a int, b int) STORED AS ORC TBLPROPERTIES ('transactional'='true', 'transactional_properties'='insert_only')",
        (
            'CREATE TABLE made (id int, name string) CLUSTERED BY (id) INTO 2 BUCKETS STORED AS ORC TBLPROPERTIES ("transactional"="true", '
            '"compactor.mapreduce.map.memory.mb"="2048", "compactorthreshold.hive.compactor.delta.num.threshold"="4")'
        ),
        (
            "CREATE TABLE IF NOT EXISTS made (a bigint COMMENT 'x', m map<string,struct<x:int,y:array<string>>>) COMMENT 'c' "
            f"PARTITIONED BY (d date COMMENT 'day', r string) CLUSTERED BY (a) INTO 4 BUCKETS {ACID}"
        ),
        (
            "CREATE TABLE made (a int) ROW FORMAT SERDE 'org.apache.hadoop.hive.ql.io.orc.OrcSerde' STORED AS INPUTFORMAT "
            "'org.apache.hadoop.hive.ql.io.orc.OrcInputFormat' OUTPUTFORMAT 'org.apache.hadoop.hive.ql.io.orc.OrcOutputFormat' "
            "TBLPROPERTIES ('transactional'='true')"
        ),
        (
            "CREATE TABLE Persons (ID INT NOT NULL, Name STRING NOT NULL, Age INT, Creator STRING DEFAULT CURRENT_USER(), "
            f"CreateDate DATE DEFAULT CURRENT_DATE(), PRIMARY KEY (ID) DISABLE NOVALIDATE) {ACID}"
        ),
        f"CREATE TABLE made {ACID} AS SELECT * FROM emp WHERE id > 1",
        f"CREATE TABLE made PARTITIONED BY (d) {ACID} AS SELECT a, d FROM t",
        "CREATE TABLE made STORED AS PARQUET AS SELECT * FROM emp",
        "CREATE TABLE made LIKE emp",
        f"CREATE TABLE made LIKE src {ACID}",
        "CREATE TABLE made (a int, p string) USING orc TBLPROPERTIES ('transactional'='true') PARTITIONED BY (p)",
        "CREATE VIEW made AS SELECT id, name FROM emp WHERE salary > 10",
        "CREATE OR REPLACE TEMPORARY VIEW tv AS SELECT * FROM emp",
        "DROP TABLE IF EXISTS emp PURGE",
        "DROP TABLE emp",
        "TRUNCATE TABLE emp",
        "TRUNCATE TABLE t PARTITION (r='x')",
        "ALTER TABLE emp SET TBLPROPERTIES ('transactional'='true', 'k'='v')",
        "ALTER TABLE emp UNSET TBLPROPERTIES ('k')",
        "ALTER TABLE src SET TBLPROPERTIES ('transactional'='true')",
        "ALTER TABLE emp RENAME TO emp2",
        "ALTER TABLE emp ADD COLUMNS (x int COMMENT 'c', y string)",
        "ALTER TABLE emp CHANGE COLUMN name full_name string",
        "ALTER TABLE emp CHANGE salary salary bigint COMMENT 'wider'",
        "ALTER TABLE emp RENAME COLUMN name TO n2",
        "ALTER TABLE emp ALTER COLUMN salary TYPE bigint",
        "ALTER TABLE emp REPLACE COLUMNS (id int, name string, salary bigint, more date)",
        "ALTER TABLE t ADD IF NOT EXISTS PARTITION (d='2024-01-01', r='new')",
        "ALTER TABLE t DROP IF EXISTS PARTITION (d<'2024-01-01')",
        "ALTER TABLE t PARTITION (d='2024-01-01', r='x') RENAME TO PARTITION (d='2024-01-01', r='renamed')",
        "ALTER TABLE emp ADD CONSTRAINT pk PRIMARY KEY (id) DISABLE NOVALIDATE",
        "ANALYZE TABLE t COMPUTE STATISTICS FOR COLUMNS",
        "ANALYZE TABLE emp COMPUTE STATISTICS",
        "ANALYZE TABLE emp COMPUTE STATISTICS NOSCAN",
        "ALTER TABLE emp COMPACT 'major'",
        "ALTER TABLE t PARTITION (d='2024-01-01', r='x') COMPACT 'minor'",
        "ALTER TABLE emp COMPACT 'MAJOR' WITH OVERWRITE TBLPROPERTIES ('compactor.mapreduce.map.memory.mb'='3072')",
        "ALTER TABLE emp COMPACT 'major' POOL 'p1'",
        "SHOW COMPACTIONS SCHEMA default",
        "SHOW COMPACTIONS t PARTITION (d='2024-01-01', r='x') POOL 'p' TYPE 'major' STATUS 'initiated'",
        "SHOW COMPACTIONS COMPACTIONID=1",
        "SHOW LOCKS",
        "SHOW LOCKS emp EXTENDED",
        "SHOW LOCKS t PARTITION (d='2024-01-01', r='x')",
        "SHOW LOCKS DATABASE default",
        "ABORT COMPACTIONS 4 5",
        "SHOW PARTITIONS t",
        "SHOW TBLPROPERTIES emp",
        "SHOW TBLPROPERTIES emp('transactional')",
        "SHOW COLUMNS IN emp",
        "EXPLAIN SELECT * FROM emp",
        "EXPLAIN UPDATE emp SET salary = 1 WHERE id = 2",
        "EXPLAIN EXTENDED DELETE FROM emp WHERE id IN (SELECT id FROM src)",
        "EXPLAIN INSERT INTO emp SELECT * FROM emp",
        "EXPLAIN MERGE INTO emp USING src s ON emp.id = s.id WHEN MATCHED THEN DELETE",
        "DESC EXTENDED t PARTITION (d='2024-01-01', r='x')",
        "DESCRIBE FORMATTED t PARTITION (d='2024-01-01', r='x')",
        "DESCRIBE emp name",
        "DESCRIBE FORMATTED emp name",
        "REFRESH TABLE emp",
        "INSERT INTO TABLE emp SELECT * FROM src",
        "INSERT INTO emp (id, name) SELECT id, name FROM src",
        "INSERT OVERWRITE TABLE emp SELECT * FROM src WHERE id > 1",
        "INSERT INTO t PARTITION (d='2024-01-01', r='x') VALUES (1, 'a'), (2, 'b')",
        "INSERT INTO t PARTITION (d, r) SELECT id, name, date '2024-01-05', 'z' FROM src",
        "INSERT INTO t PARTITION (d='2024-01-01', r) SELECT id, name, 'w' FROM src",
        "INSERT OVERWRITE TABLE t PARTITION (d='2024-01-01', r='x') SELECT id, name FROM src",
        "INSERT OVERWRITE TABLE t PARTITION (d='2024-01-01', r='x') IF NOT EXISTS SELECT id, name FROM src",
        "FROM src INSERT INTO emp SELECT id, name, 1 INSERT OVERWRITE TABLE t PARTITION (d, r) SELECT id, name, current_date(), 'q'",
        "WITH x AS (SELECT 1 AS a) INSERT INTO emp SELECT a, 'n', 2 FROM x",
        "INSERT INTO emp WITH x AS (SELECT 1 AS a) SELECT a, 'n', 2 FROM x",
        "INSERT INTO emp VALUES (1, concat('a', 'b'), NULL), (2, date_format(current_date(), 'yyyy'), -1)",
        "INSERT INTO emp REPLACE WHERE id = 1 SELECT * FROM src",
        "INSERT INTO emp BY NAME SELECT name, id, salary FROM src",
        "INSERT INTO src SELECT * FROM emp",
        "UPDATE emp SET salary = salary * 2, name = upper(name) WHERE id IN (1, 2, null) AND name RLIKE '^a'",
        "UPDATE emp AS e SET e.salary = 1 WHERE e.id = 1",
        "UPDATE emp SET salary = (SELECT max(salary) FROM src) WHERE id IN (SELECT id FROM src)",
        "UPDATE emp SET salary = 0 WHERE EXISTS (SELECT 1 FROM src g WHERE g.id = emp.id)",
        "UPDATE emp SET salary = DEFAULT",
        "DELETE FROM emp",
        "DELETE FROM emp e WHERE NOT EXISTS (SELECT 1 FROM src k WHERE k.id = e.id AND k.salary < e.salary)",
        "DELETE FROM t WHERE d = DATE '2024-01-01' AND cast(d as timestamp) < TIMESTAMP '2024-01-01 00:00:00' - INTERVAL 3 DAYS",
        (
            "MERGE INTO emp AS t USING src AS s ON t.id = s.id "
            "WHEN MATCHED AND s.salary = 1 THEN DELETE WHEN MATCHED AND t.salary <> s.salary "
            "THEN UPDATE SET salary = s.salary, name = s.name WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.name, s.salary)"
        ),
        (
            "MERGE INTO emp USING (SELECT id, max(salary) AS x FROM src GROUP BY id) s ON emp.id = s.id "
            "WHEN NOT MATCHED AND s.x > 1 THEN INSERT "
            "(id, salary) VALUES (s.id, s.x)"
        ),
        (
            "MERGE INTO emp t USING src s ON t.id = s.id "
            "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT * WHEN NOT MATCHED BY SOURCE "
            "AND t.salary < 0 THEN DELETE"
        ),
        "VALUES (1, 2)",
        "TABLE emp",
        "CACHE TABLE cached AS SELECT * FROM emp",
        "WITH a AS (SELECT * FROM emp), b AS (SELECT * FROM a WHERE id > 1) SELECT * FROM a UNION ALL SELECT * FROM b",
        "SELECT ROW__ID, id FROM emp",
        "FROM emp SELECT id WHERE id > 1",
        "FROM emp |> WHERE id > 1 |> SELECT id",
        "SELECT id, (SELECT max(salary) FROM src o WHERE o.id = emp.id) FROM emp",
        "SELECT * FROM emp TABLESAMPLE (100 PERCENT) AS e CLUSTER BY id",
        "SELECT emp.id FROM emp TABLESAMPLE (100 PERCENT) DISTRIBUTE BY id SORT BY id",
        "SELECT /*+ BROADCAST(e) */ * FROM emp e",
        "SELECT * FROM emp, LATERAL (SELECT max(id) AS m FROM src WHERE src.id = emp.id) z",
    ],
    WIDE: [
        "SELECT e.*, s.name FROM emp e JOIN src s ON e.did = s.id LEFT SEMI JOIN t ON t.a = e.id WHERE e.id > 1",
        "SELECT `e`.`ID`, Name FROM `EMP` e LATERAL VIEW explode(tags) x AS tag",
        "SELECT a, count(*) FROM emp GROUP BY a GROUPING SETS ((a), ()) HAVING count(*) > 1 ORDER BY 2 DESC NULLS LAST LIMIT 10",
        "SELECT * FROM (SELECT row_number() OVER (PARTITION BY a ORDER BY b DESC) rn, t.* FROM emp t) x WHERE rn = 1",
        "SELECT transform(xs, x -> x + 1), filter(xs, (x, i) -> i > 1) FROM emp",
        "SELECT * FROM emp WHERE name = 'it''s' OR name = 'it\\'s' OR name = \"dq\"",
        "SELECT s.b.c, m['k'], cast(x AS decimal(10,2)), x DIV 2, x % 3, x ^ 1 FROM emp",
        "SELECT x, y FROM emp PIVOT (sum(a) FOR b IN (1, 2))",
        "SELECT CASE WHEN a = 1 THEN 1 ELSE 2 END, interval 1 day, 1L, 1S, 1.0BD, X'1F', timestamp_ntz '2024-01-01' FROM emp",
        "SELECT trim(BOTH ' ' FROM name), extract(year FROM d), a <=> b, !(a = 1), name LIKE ANY ('x','y') FROM emp",
        "UPDATE emp SET addr.city = 'x', `we ird` = `we ird` + 1",
        (
            "MERGE INTO emp t USING src s ON t.id <=> s.id "
            "WHEN MATCHED THEN UPDATE SET t.addr.city = s.name WHEN NOT MATCHED BY SOURCE THEN "
            "UPDATE SET salary = 0"
        ),
        "INSERT INTO emp (id, addr, m) SELECT 1, named_struct('city', 'y'), map('k', 1)",
    ],
}
REFUSED = {
    "CREATE TABLE made USING hive_acid AS SELECT 1 AS a": "",
    f"CREATE TABLE made (a int) CLUSTERED BY (a) SORTED BY (a ASC) INTO 4 BUCKETS {ACID}": "leave SORTED BY out",
    f"CREATE MATERIALIZED VIEW mv {ACID} AS SELECT id FROM emp": "CREATE TABLE .. AS SELECT",
    "ALTER TABLE emp REPLACE COLUMNS (a int)": "CREATE TABLE .. AS",
    "ALTER TABLE emp SET TBLPROPERTIES ('transactional'='false')": "to_plain",
    "ALTER TABLE emp SET LOCATION '/x'": "ADD and DROP CONSTRAINT",
    "ALTER TABLE emp EXECUTE ROLLBACK('2024-01-01 00:00:00')": "ADD and DROP CONSTRAINT",
    "ALTER TABLE t COMPACT 'major'": "name one",
    "ALTER TABLE emp COMPACT 'tiny'": "the types are",
    "MSCK REPAIR TABLE t": "ADD PARTITION",
    "SHOW PARTITIONS emp": "is not partitioned",
    "EXPLAIN LOCKS UPDATE emp SET salary = 1": "SHOW LOCKS",
    "EXPORT TABLE emp TO '/x/y'": "CREATE TABLE .. AS SELECT",
    "IMPORT TABLE emp2 FROM '/x/y'": "CREATE TABLE .. AS SELECT",
    "LOAD DATA INPATH '/x' OVERWRITE INTO TABLE emp PARTITION (d='1')": "INSERT INTO",
    "LOCK TABLE emp SHARED": "START TRANSACTION",
    "UNLOCK TABLE emp": "metastore locks release",
    "COMMIT": "START TRANSACTION",
    "SELECT INPUT__FILE__NAME, id FROM emp": "input_file_name",
    "SELECT *, ROW__ID FROM emp": "name the columns",
    "SELECT * FROM emp FOR SYSTEM_TIME AS OF '2024-01-01 00:00:00'": "leave VERSION",
    "SELECT * FROM emp VERSION AS OF 3": "leave VERSION",
    "SELECT * FROM emp TIMESTAMP AS OF '2024-01-01'": "leave VERSION",
    "CACHE TABLE emp": "CACHE TABLE name AS",
    "DESCRIBE emp nope": "its columns are",
    "ALTER TABLE emp CHANGE name name string FIRST": "by position",
    "DELETE FROM emp WHERE id = ?": "has no value|PARAMETER",
}  # fmt: skip


@pytest.fixture(scope="module")
def place(spark: SparkSession, client_of_module: Client) -> Iterator[str]:
    spark.sql("CREATE DATABASE stmts")
    spark.sql("USE stmts")
    yield "stmts"
    spark.sql("USE default")
    _clear(client_of_module)
    client_of_module.drop_database("stmts", True, True)


@pytest.fixture(scope="module")
def client_of_module(server: object) -> Iterator[Client]:
    from metastore.client import connect

    with connect(server.uri) as connected:  # type: ignore[attr-defined]  # the server of the suite
        yield connected


def _clear(client: Client) -> None:
    for table in client.get_all_tables("stmts"):
        client.drop_table("stmts", table, True)


def _prepare(spark: SparkSession, client: Client, shape: str) -> None:
    _clear(client)
    emp = AcidTable.create(spark, "stmts.emp", shape)
    emp.insert(spark.sql("select 1 id, 'Jerry' name, 5000 salary union all select 2, 'it''s', 1"))
    t = AcidTable.create(spark, "stmts.t", "a int, b string", partitioned_by="d date, r string")
    t.insert(spark.sql("select 1 a, 'b' b, date '2024-01-01' d, 'x' r"))
    spark.sql("CREATE TABLE stmts.src STORED AS ORC AS SELECT 1 AS id, 'n' AS name, 1 AS salary UNION ALL SELECT 9, 'm', 2")


def _changes(statement: str) -> bool:
    return statement.split(maxsplit=1)[0].upper() not in ("SELECT", "SHOW", "DESCRIBE", "DESC", "EXPLAIN", "SET", "TABLE", "VALUES")


def test_each_is_right(spark: SparkSession, client_of_module: Client, place: str) -> None:
    failed = {}
    for shape, statements in RIGHT.items():
        is_fresh = False
        for statement in statements:
            if not is_fresh:
                _prepare(spark, client_of_module, shape)
            is_fresh = not _changes(statement)
            try:
                sql(spark, statement).collect()
            except Exception as error:  # noqa: BLE001  # all of them are reported together
                failed[statement] = f"{type(error).__name__}: {str(error)[:300]}"
    spark.catalog.clearCache()
    assert failed == {}


def test_each_is_refused_with_a_way_out(spark: SparkSession, client_of_module: Client, place: str) -> None:
    _prepare(spark, client_of_module, SMALL)
    wrong = {}
    for statement, message in REFUSED.items():
        try:
            sql(spark, statement).collect()
        except Exception as error:  # noqa: BLE001  # see above
            if not re.search(message, str(error)):
                wrong[statement] = f"{type(error).__name__}: {str(error)[:300]}"
        else:
            wrong[statement] = "was not refused"
    assert wrong == {}
    assert len(sql(spark, "SELECT * FROM emp").collect()) == 2
