"""Hive reads and changes tables that processes of the server have compacted; Hive runs no compaction worker here."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.hive4.conftest import OPTIONS, Place, Story
from tests.support.databases import databases
from tests.support.engines.hive import Hive, hive
from tests.support.servers.servers import serving

pytestmark = pytest.mark.slow
TYPES = "id int, t string, d decimal(20,4), day date, at timestamp, c char(5), a array<int>, m map<string,int>, s struct<x:int>"
VALUES = (
    "SELECT {0}, 'text {0}', {0}.25, date'1500-03-0{0}', timestamp'2024-10-27 02:30:00.12345678{0}', 'c{0}', array({0}, null), "
    "map('k', {0}), named_struct('x', {0})"
)


@pytest.fixture(scope="module")
def place(database_kind: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("server")
    with contextmanager(databases.fresh)(database_kind, folder) as url:
        options = ("--db", url, "--warehouse", str(folder / "warehouse"), *OPTIONS, "--set", "compactor_worker_threads=1")
        with serving(*options, home=folder) as server:
            yield Place(server.uri, folder / "warehouse")


@pytest.fixture(scope="module")
def engine(place: Place, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hive]:
    with hive(place.uri, tmp_path_factory.mktemp("hive"), place.warehouse) as started:
        yield started


def test_hive_reads_rows_that_a_server_compacted(story: Story) -> None:
    story.sql(f"CREATE TABLE t ({TYPES}) STORED AS ORC TBLPROPERTIES ('transactional' = 'true', 'no_auto_compaction' = 'true')")
    for number in range(1, 7):
        story.sql(f"INSERT INTO t {VALUES.format(number)}")
    story.sql("DELETE FROM t WHERE id = 2")
    story.sql("UPDATE t SET t = 'new' WHERE id = 3")
    expected = story.sql("SELECT * FROM t ORDER BY id")
    assert len(expected) == 5
    for kind, directories in (("MINOR", ["delete_delta", "delta"]), ("MAJOR", ["base"])):
        story.engine.compact(story.name, "t", kind)
        story.until(lambda kind=kind: (kind, "succeeded") in story.compactions("t"))  # type: ignore[misc]
        assert [name.rpartition("_v")[0].rstrip("0123456789_") for name in story.directories("t")] == directories
        assert story.sql("SELECT * FROM t ORDER BY id") == expected
        story.sql("UPDATE t SET t = 'newer' WHERE id = 4")
        story.sql("DELETE FROM t WHERE id = 5")
        expected = story.sql("SELECT * FROM t ORDER BY id")
    assert [row[1] for row in expected] == ["text 1", "new", "newer", "text 6"]


def test_an_insert_only_table_and_its_due_compaction(story: Story) -> None:
    kind = "'transactional' = 'true', 'transactional_properties' = 'insert_only'"
    due = "'compactorthreshold.hive.compactor.delta.num.threshold' = '2'"
    story.sql(f"CREATE TABLE t (id int, c char(4)) PARTITIONED BY (k string) STORED AS ORC TBLPROPERTIES ({kind}, {due})")
    for number in range(4):
        story.sql(f"INSERT INTO t PARTITION (k = 'x') VALUES ({number}, 'v{number}')")
    story.until(lambda: any(state == "succeeded" for _, state in story.compactions("t")))
    assert [row[0] for row in story.sql("SELECT * FROM t ORDER BY id")] == ["0", "1", "2", "3"]
    assert story.sql("SELECT count(*) FROM t WHERE c = 'v2'") == [("1",)]
    assert len(story.directories("t", "k=x")) < 4
