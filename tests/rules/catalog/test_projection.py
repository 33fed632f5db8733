"""Partitions as specs, if their table or the partitions have no location. With a server: `tests/methods/test_partition_specs.py`."""

import pytest

from metastore.idl import Partition, PartitionSpec, StorageDescriptor, Table
from metastore.rules.catalog.projection import as_specs

COLUMNS: list[str] = []


def partition(value: str, location: str | None) -> Partition:
    return Partition(values=[value], sd=StorageDescriptor(location=location, bucketCols=COLUMNS))  # type: ignore[arg-type]  # may be left out


def table(location: str | None) -> Table:
    return Table(dbName="d", tableName="t", catName="c", sd=StorageDescriptor(location=location))  # type: ignore[arg-type]


def shared(spec: PartitionSpec) -> tuple[str | None, list[tuple[str, str | None]]]:
    assert spec.sharedSDPartitionSpec is not None
    return spec.rootPath, [(slim.values[0], slim.relativePath) for slim in spec.sharedSDPartitionSpec.partitions]


def test_those_without_a_place_share_a_descriptor_of_their_own() -> None:
    below, without, bare = as_specs(
        table("/t"),
        [
            partition("1", "/t/k=1"),
            partition("2", None),
            partition("3", "/t/k=3"),
            Partition(values=["4"]),
        ],
    )
    assert shared(below) == ("/t", [("1", "/k=1"), ("3", "/k=3")])
    assert shared(without) == (None, [("2", None)])
    assert shared(bare) == (None, [("4", None)])


@pytest.mark.parametrize("owner", [table(None), table(""), Table(dbName="d", tableName="t", catName="c")])
def test_below_a_table_without_a_place_each_keeps_its_own(owner: Table) -> None:
    without, listed = as_specs(owner, [partition("1", "/x/k=1"), partition("2", None), partition("3", "/y")])
    assert shared(without) == (None, [("2", None)])
    assert listed.partitionList is not None
    assert [each.sd.location for each in listed.partitionList.partitions] == ["/x/k=1", "/y"]
