"""Find the partitions that a writer reaches, and add those that are new. It makes no directories."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy

from metastore.client import Client
from metastore.idl import AddPartitionsRequest, Partition, Table
from metastore.rules.partition_names import make_partition_name, partition_values


def found_or_added(client: Client, table: Table, names: Sequence[str]) -> dict[str, Partition]:
    """Return partitions by their names `k=v/..`; new ones lie below the table. The Thrift exceptions of add_partitions_req."""
    there = _found(client, table, names)
    if missing := [name for name in names if name not in there]:
        _add(client, table, missing)
        there |= _found(client, table, missing)
    return there


def _found(client: Client, table: Table, names: Sequence[str]) -> dict[str, Partition]:
    keys = [key.name for key in table.partitionKeys]
    found: Sequence[Partition] = client.get_partitions_by_names(table.dbName, table.tableName, list(names))
    return {make_partition_name(keys, partition.values): partition for partition in found}


def _add(client: Client, table: Table, names: Sequence[str]) -> None:
    new = []
    for name in names:
        sd = copy(table.sd)
        sd.location = f"{table.sd.location.rstrip('/')}/{name}"
        new.append(Partition(values=partition_values(name), dbName=table.dbName, tableName=table.tableName, sd=sd, parameters={}))
    client.add_partitions_req(
        AddPartitionsRequest(dbName=table.dbName, tblName=table.tableName, parts=new, ifNotExists=True, needResult=False)
    )
