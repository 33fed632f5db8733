"""The number of SQL statements of each operation: the same for one partition and for fifty.

The numbers are in statement_counts.json (`tests/support/databases/statement_counts.py`). BEGIN and COMMIT are not counted; the one INSERT
into the notification log is. A change of a number is a change of speed: explain it in the commit.
"""

from collections.abc import Callable
from copy import deepcopy
from pathlib import Path

import pytest

from metastore.idl import Partition
from metastore.service.call.context import Call
from metastore.service.call.names import TableName
from metastore.service.catalog import databases
from metastore.service.catalog.exchange import exchange_partitions
from metastore.service.catalog.partitions import partitions
from metastore.service.catalog.partitions.add_partitions import add_partitions as add
from metastore.service.catalog.partitions.alter_partitions import alter_partitions, rename_partition
from metastore.service.catalog.partitions.drop_partitions import drop_partitions
from metastore.service.catalog.tables import tables
from metastore.service.catalog.tables.alter_table import alter_table
from tests.support.catalog.catalog import add_partitions, make_database, make_table
from tests.support.databases import statement_counts
from tests.support.databases.statement_counts import StatementCounts, stored

READS: dict[str, Callable[[Call, TableName], object]] = {
    "get_database": lambda call, name: databases.get_database(call, "hive", "default"),
    "get_databases": lambda call, name: databases.get_databases(call, "hive", None),
    "get_table": tables.get_table,
    "get_tables": lambda call, name: tables.get_tables(call, "hive", "default", "*"),
    "get_table_meta": lambda call, name: tables.get_table_meta(call, "hive", "default", "*", []),
    "get_table_objects_by_name": lambda call, name: tables.get_table_objects_by_name(call, "hive", "default", ["t"]),
    "get_partition_names": partitions.get_partition_names,
    "get_partition": lambda call, name: partitions.get_partition(call, name, ["1"]),
    "get_partitions": partitions.get_partitions,
    "get_partitions_by_names": lambda call, name: partitions.get_partitions_by_names(call, name, ["k=1", "k=2"]),
    "get_partitions_by_filter": lambda call, name: partitions.get_partitions(call, name, partitions.by_filter("k = '1'")),
    "get_partitions_by_values": lambda call, name: partitions.get_partitions(call, name, partitions.by_values(["1"])),
}


@pytest.mark.parametrize("operation", READS)
@pytest.mark.parametrize("size", [1, 50])
def test_reads(call: Call, counts: StatementCounts, operation: str, size: int) -> None:
    name = make_table(call, "t", keys=[("k", "string")])
    add_partitions(call, name, [[str(number)] for number in range(1, size + 1)])
    READS[operation](call, name)
    counts(operation, lambda: READS[operation](call, name))


def new_partitions(call: Call, name: TableName, size: int) -> list[Partition]:
    sd = deepcopy(tables.get_table(call, name).sd)
    sd.location = None  # type: ignore[assignment]  # the default place
    return [
        Partition(values=[str(number)], dbName=name.database, tableName=name.table, parameters={}, sd=deepcopy(sd))
        for number in range(size)
    ]


@pytest.mark.parametrize("size", [1, 50])
def test_bulk_writes_of_partitions(call: Call, counts: StatementCounts, size: int) -> None:
    name = make_table(call, "t", keys=[("k", "string")])
    new = new_partitions(call, name, size)
    counts("add", lambda: add(call, name, new))
    altered = deepcopy(partitions.get_partitions(call, name))
    for partition in altered:
        partition.parameters = {"changed": "yes"}
    counts("alter", lambda: alter_partitions(call, name, altered))
    names = partitions.get_partition_names(call, name)
    other = make_table(call, "other", keys=[("k", "string"), ("l", "string")])
    target = make_table(call, "target", keys=[("k", "string"), ("l", "string")])
    add_partitions(call, other, [["1", str(number)] for number in range(size)])
    counts("exchange", lambda: exchange_partitions(call, {"k": "1"}, other, target))
    counts("drop", lambda: drop_partitions(call, name, names, delete_data=True, if_exists=False))


@pytest.mark.parametrize("size", [1, 50])
def test_changes_of_a_table(call: Call, counts: StatementCounts, size: int) -> None:
    name = counts("create", lambda: make_table(call, "t", keys=[("k", "string")]))
    add(call, name, new_partitions(call, name, size))
    table = deepcopy(tables.get_table(call, name))
    table.parameters["x"] = "y"
    counts("alter", lambda: alter_table(call, name, table))
    table.tableName = "renamed"
    renamed = TableName("hive", "default", "renamed")
    counts("rename", lambda: alter_table(call, name, table))
    part = deepcopy(partitions.get_partition(call, renamed, ["0"]))
    part.values = ["other"]
    counts("rename a partition", lambda: rename_partition(call, renamed, ["0"], part))
    counts("drop", lambda: tables.drop_table(call, renamed, delete_data=True))


@pytest.mark.parametrize("size", [1, 20])
def test_a_database_is_dropped_with_its_tables(call: Call, counts: StatementCounts, size: int) -> None:
    make_database(call, "d")
    for number in range(size):
        make_table(call, f"t{number}", database="d")
    counts("drop", lambda: databases.drop_database(call, "hive", "d", delete_data=True, cascade=True))


def test_the_file_holds_nothing_else() -> None:
    """The file has no numbers of tests that were renamed or removed."""
    for test, operations in stored().items():
        module, _, function = test.partition(".")
        texts = [path.read_text() for path in Path(__file__).parents[1].rglob(f"{module}.py")]
        (text,) = [text for text in texts if f"def {function}(" in text]
        assert [operation for operation in operations if f'"{operation.split(",")[0]}' not in text.replace('f"', '"')] == []


def test_numbers_are_written_and_compared(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statement_counts, "FILE", tmp_path / "counts.json")
    (tmp_path / "counts.json").write_text("{}")
    written = StatementCounts("module.test", call.database, update=True)
    written("read", lambda: databases.get_databases(call, "hive", None))
    written.write()
    assert stored() == {"module.test": {"read": {call.database.driver.name: 1}}}
    compared = StatementCounts("module.test", call.database, update=False)
    compared("read", lambda: databases.get_databases(call, "hive", None))
    with pytest.raises(AssertionError, match="counted twice"):
        compared("read", lambda: None)
    with pytest.raises(AssertionError, match=r"read on \w+: 0 statements, not 1"):
        StatementCounts("module.test", call.database, update=False)("read", lambda: None)
