"""How many SQL statements each operation runs: pinned, and the same for one partition and for fifty.

BEGIN and COMMIT are not counted; the one INSERT into the notification log is. A change of a number here is a change of speed: say in the
commit why.
"""

from collections.abc import Callable
from copy import deepcopy

import pytest

from metastore.idl import Partition
from metastore.service import databases, partitions, tables
from metastore.service.add_partitions import add_partitions as add
from metastore.service.alter_partitions import alter_partitions, rename_partition
from metastore.service.alter_table import alter_table
from metastore.service.context import Call
from metastore.service.drop_partitions import drop_partitions
from metastore.service.exchange import exchange_partitions
from metastore.service.names import TableName
from tests.support.catalog import Statements, add_partitions, make_database, make_table

READS: dict[str, tuple[int, Callable[[Call, TableName], object]]] = {
    "get_database": (1, lambda call, name: databases.get_database(call, "hive", "default")),
    "get_databases": (1, lambda call, name: databases.get_databases(call, "hive", None)),
    "get_table": (1, tables.get_table),
    "get_tables": (1, lambda call, name: tables.get_tables(call, "hive", "default", "*")),
    "get_table_meta": (1, lambda call, name: tables.get_table_meta(call, "hive", "default", "*", [])),
    "get_table_objects_by_name": (1, lambda call, name: tables.get_table_objects_by_name(call, "hive", "default", ["t"])),
    "get_partition_names": (1, partitions.get_partition_names),
    "get_partition": (2, lambda call, name: partitions.get_partition(call, name, ["1"])),
    "get_partitions": (2, partitions.get_partitions),
    "get_partitions_by_names": (2, lambda call, name: partitions.get_partitions_by_names(call, name, ["k=1", "k=2"])),
    "get_partitions_by_filter": (2, lambda call, name: partitions.get_partitions_by_filter(call, name, "k = '1'")),
    "get_partitions_by_values": (2, lambda call, name: partitions.get_partitions_by_values(call, name, ["1"])),
}


@pytest.mark.parametrize("operation", READS)
@pytest.mark.parametrize("size", [1, 50])
def test_reads(call: Call, statements: Statements, operation: str, size: int) -> None:
    expected, work = READS[operation]
    name = make_table(call, "t", keys=[("k", "string")])
    add_partitions(call, name, [[str(number)] for number in range(1, size + 1)])
    work(call, name)
    with statements() as seen:
        work(call, name)
    assert len(seen) == expected, seen


def new_partitions(call: Call, name: TableName, size: int) -> list[Partition]:
    sd = deepcopy(tables.get_table(call, name).sd)
    sd.location = None  # type: ignore[assignment]  # the default place
    return [
        Partition(values=[str(number)], dbName=name.database, tableName=name.table, parameters={}, sd=deepcopy(sd))
        for number in range(size)
    ]


@pytest.mark.parametrize("size", [1, 50])
def test_bulk_writes_of_partitions(call: Call, statements: Statements, size: int) -> None:
    name = make_table(call, "t", keys=[("k", "string")])
    new = new_partitions(call, name, size)
    with statements() as adding:
        add(call, name, new)
    altered = deepcopy(partitions.get_partitions(call, name))
    for partition in altered:
        partition.parameters = {"changed": "yes"}
    with statements() as altering:
        alter_partitions(call, name, altered)
    names = partitions.get_partition_names(call, name)
    other = make_table(call, "other", keys=[("k", "string"), ("l", "string")])
    target = make_table(call, "target", keys=[("k", "string"), ("l", "string")])
    add_partitions(call, other, [["1", str(number)] for number in range(size)])
    with statements() as exchanging:
        exchange_partitions(call, {"k": "1"}, other, target)
    with statements() as dropping:
        drop_partitions(call, name, names, delete_data=True, if_exists=False)
    counts = {"add": len(adding), "alter": len(altering), "exchange": len(exchanging), "drop": len(dropping)}
    assert counts == {"add": 5, "alter": 5, "exchange": 12, "drop": 8}, (adding, altering, exchanging, dropping)


@pytest.mark.parametrize("size", [1, 50])
def test_changes_of_a_table(call: Call, statements: Statements, size: int) -> None:
    with statements() as creating:
        name = make_table(call, "t", keys=[("k", "string")])
    add(call, name, new_partitions(call, name, size))
    table = deepcopy(tables.get_table(call, name))
    table.parameters["x"] = "y"
    with statements() as altering:
        alter_table(call, name, table)
    table.tableName = "renamed"
    renamed = TableName("hive", "default", "renamed")
    with statements() as renaming:
        alter_table(call, name, table)
    part = deepcopy(partitions.get_partition(call, renamed, ["0"]))
    part.values = ["other"]
    with statements() as renaming_partition:
        rename_partition(call, renamed, ["0"], part)
    with statements() as dropping:
        tables.drop_table(call, renamed, delete_data=True)
    counts = {
        "create": len(creating),
        "alter": len(altering),
        "rename": len(renaming),
        "rename_partition": len(renaming_partition),
        "drop": len(dropping),
    }
    assert counts == {"create": 6, "alter": 7, "rename": 12, "rename_partition": 8, "drop": 13}, counts


@pytest.mark.parametrize("size", [1, 20])
def test_a_database_is_dropped_with_its_tables(call: Call, statements: Statements, size: int) -> None:
    make_database(call, "d")
    for number in range(size):
        make_table(call, f"t{number}", database="d")
    with statements() as seen:
        databases.drop_database(call, "hive", "d", delete_data=True, cascade=True)
    assert len(seen) == 19, seen
