"""Hive reads rows of our own stream while the batch is open and afterwards. Rows are in the buckets where Hive looks for them."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest

from metastore.streaming import StreamingConnection, StrictJson
from tests.hive4.conftest import Story

pytestmark = pytest.mark.slow


def test_a_batch_is_read_while_it_grows(story: Story) -> None:
    story.sql(
        "CREATE TABLE alerts (id int, msg string) STORED AS ORC TBLPROPERTIES ('transactional' = 'true', 'no_auto_compaction' = 'true')"
    )
    story.sql("INSERT INTO alerts VALUES (0, 'of Hive')")
    assert story.sql("SELECT count(*) FROM alerts") == [("1",)]
    with StreamingConnection(story.place.uri, f"{story.name}.alerts") as connection, connection.batch(4) as batch:
        with batch.transaction():
            batch.write([{"id": 1, "msg": "hello"}, {"id": 2, "msg": "welcome"}])
        wanted = [("0", "of Hive"), ("1", "hello"), ("2", "welcome")]
        assert story.sql("SELECT * FROM alerts ORDER BY id") == wanted
        batch.begin_next()
        batch.write({"id": 3, "msg": "taken back"})
        assert story.sql("SELECT * FROM alerts ORDER BY id") == wanted
        batch.abort()
        with batch.transaction():
            batch.write({"id": 4, "msg": None})
        wanted.append(("4", "NULL"))
        assert story.sql("SELECT * FROM alerts ORDER BY id") == wanted
        assert story.sql("SELECT count(*) FROM alerts") == [("4",)]
        assert story.sql("SELECT max(id) FROM alerts") == [("4",)]
    assert story.sql("SELECT * FROM alerts ORDER BY id") == wanted
    assert story.sql("SELECT ROW__ID.writeid, ROW__ID.bucketid, ROW__ID.rowid, id FROM alerts ORDER BY id") == [
        ("1", "536870912", "0", "0"), ("2", "536870912", "0", "1"), ("2", "536870912", "1", "2"), ("4", "536870912", "0", "4"),
    ]  # fmt: skip
    story.sql("INSERT INTO alerts VALUES (5, 'of Hive')")
    assert story.sql("SELECT count(*), max(id) FROM alerts") == [("5", "5")]
    story.sql("DELETE FROM alerts WHERE id = 5")
    story.sql("UPDATE alerts SET msg = 'seen' WHERE id = 2")
    story.sql("DELETE FROM alerts WHERE id = 1")
    story.engine.compact(story.name, "alerts", "MAJOR")
    story.until(lambda: story.compactions("alerts") == [("MAJOR", "succeeded")])
    assert story.sql("SELECT * FROM alerts ORDER BY id") == [("0", "of Hive"), ("2", "seen"), ("4", "NULL")]


def test_hive_counts_the_rows(story: Story) -> None:
    """Hive answers counts from statistics while they are exact; a stream does not update them."""
    story.sql("CREATE TABLE t (id int) PARTITIONED BY (p string) STORED AS ORC TBLPROPERTIES ('transactional' = 'true')")
    story.sql("INSERT INTO t PARTITION (p = 'a') VALUES (1)")
    for number in (2, 4):
        with StreamingConnection(story.place.uri, f"{story.name}.t") as connection, connection.batch(2) as batch, batch.transaction():
            batch.write([{"id": number, "p": "a"}, {"id": 100 + number, "p": "b"}])
        assert story.sql("SELECT count(*), min(id), max(id) FROM t WHERE p = 'a'") == [(str(number), "1", str(number))]
        story.sql(f"INSERT INTO t PARTITION (p = 'a') VALUES ({number + 1})")
        assert story.sql("SELECT count(*), max(id) FROM t WHERE p = 'a'") == [(str(number + 1), str(number + 1))]
        assert story.sql("SELECT count(*), max(id) FROM t") == [(str(number * 3 // 2 + 1), str(100 + number))]


TYPES = {
    "b": "boolean", "t": "tinyint", "s": "smallint", "i": "int", "l": "bigint", "f": "float", "d": "double", "n": "decimal(20,4)",
    "x": "string", "c": "char(5)", "v": "varchar(5)", "day": "date", "ts": "timestamp", "a": "array<int>", "m": "map<string,int>",
    "st": "struct<p:int,q:string>",
}  # fmt: skip
RECORD = (
    '{"b": true, "t": -1, "s": 300, "i": -70000, "l": 9007199254740993, "f": 1.5, "d": -2.25, "n": "-12345678901234.5678", "x": "Grüße",'
    ' "c": "ab", "v": "abc", "day": "1969-12-31", "ts": "2024-05-01 12:34:56.789012", "a": [1, null], "m": {"k": 1},'
    ' "st": {"p": 1, "q": "z"}}'
)


def test_every_type(story: Story) -> None:
    columns = ", ".join(f"{name} {kind}" for name, kind in TYPES.items())
    story.sql(f"CREATE TABLE t ({columns}) PARTITIONED BY (p date) STORED AS ORC TBLPROPERTIES ('transactional' = 'true')")
    connection = StreamingConnection(story.place.uri, f"{story.name}.t", StrictJson(), partition={"p": "2024-05-01"})
    with connection, connection.batch(2) as batch, batch.transaction():
        batch.write([RECORD, "{}", RECORD.replace("2024-05-01 12:34:56.789012", "1960-01-01 00:00:00.5")])
        batch.write('{"ts": "9999-12-31 23:59:59", "day": "0001-01-03"}')
    found = story.sql("SELECT * FROM t")
    first = (
        "true", "-1", "300", "-70000", "9007199254740993", "1.5", "-2.25", "-12345678901234.5678", "Grüße", "ab   ", "abc", "1969-12-31",
        "2024-05-01 12:34:56.789012", "[1,null]", '{"k":1}', '{"p":1,"q":"z"}', "2024-05-01",
    )  # fmt: skip
    assert found[0] == first
    assert found[1] == (*["NULL"] * 16, "2024-05-01")
    assert found[2] == tuple("1960-01-01 00:00:00.5" if value == first[12] else value for value in first)
    assert found[3][11:13] == ("0001-01-03", "9999-12-31 23:59:59")
    assert story.sql("SELECT i FROM t WHERE n < 0 AND day < DATE'1970-01-01' AND ts > TIMESTAMP'2000-01-01 00:00:00'") == [("-70000",)]


@pytest.mark.parametrize("version", ["1", "2"])
@pytest.mark.parametrize("kind", ["int", "string", "decimal(10,2)", "date"])
def test_hive_finds_rows_in_their_buckets(story: Story, version: str, kind: str) -> None:
    """Hive's own insert of the same keys goes into the same buckets, and a sample of a bucket reads that file alone."""
    for table in ("ours", "theirs"):
        story.sql(
            f"CREATE TABLE {table} (k {kind}, v int) CLUSTERED BY (k) INTO 4 BUCKETS STORED AS ORC "
            f"TBLPROPERTIES ('transactional' = 'true', 'bucketing_version' = '{version}', 'no_auto_compaction' = 'true')"
        )
    keys: dict[str, list[object]] = {
        "int": [*range(-20, 20)], "string": [f"k{number}ä" for number in range(40)],
        "decimal(10,2)": [Decimal(number).scaleb(-2) for number in range(-2000, 2000, 100)],
        "date": [date(2024, 1, 1 + number % 28) for number in range(40)],
    }  # fmt: skip
    with StreamingConnection(story.place.uri, f"{story.name}.ours") as connection, connection.batch(1) as batch, batch.transaction():
        batch.write([{"k": key, "v": number} for number, key in enumerate(keys[kind])])
    story.sql("INSERT INTO theirs SELECT * FROM ours")
    query = "SELECT v, shiftright(ROW__ID.bucketid, 16) & 4095 FROM {} ORDER BY v"
    ours = story.sql(query.format("ours"))
    assert ours == story.sql(query.format("theirs"))
    assert len(ours) == 40
    for number in range(4):
        sample = story.sql(f"SELECT v FROM ours TABLESAMPLE (BUCKET {number + 1} OUT OF 4 ON k) ORDER BY v")
        assert sample == [(v,) for v, bucket in ours if bucket == str(number)]
    assert story.sql("SELECT count(*) FROM ours o JOIN theirs t ON o.k = t.k AND o.v = t.v") == [("40",)]
