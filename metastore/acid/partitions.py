"""Find the partitions that a writer reaches, by value, and add those that are new. This module makes no directories."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy

from metastore.client import Client
from metastore.idl import AddPartitionsRequest, Partition, Table
from metastore.rules.values.partition_names import make_partition_name, partition_values
from metastore.rules.values.partition_values import has_several_texts, hive_name


class SeveralPartitions(Exception):
    """One value has several partitions, as `p=5` and `p=05` of a number: an overwrite of one would leave the rows of the other."""


def found_or_added(client: Client, table: Table, names: Sequence[str], *, overwrite: bool = False) -> dict[str, Partition]:
    """Return partitions by value, as `found` does. Missing ones are added first, with locations below the table's.

    The Thrift exceptions of add_partitions_req; SeveralPartitions.
    """
    there = found(client, table, names, overwrite=overwrite)
    if missing := [name for name in names if name not in there]:
        _add(client, table, missing)
        there |= _named(client, table, missing)
    return there


def found(client: Client, table: Table, names: Sequence[str], *, overwrite: bool = False) -> dict[str, Partition]:
    """Return the partitions with the values of some names `k=v/..`, given in Hive's own spelling (`rules/values/partition_values.py`).

    A partition whose name spells the values in another way is found as well. SeveralPartitions where an `overwrite` reaches a value that
    has more than one.
    """
    there = _named(client, table, names)
    if (overwrite or len(there) < len(names)) and any(has_several_texts(key.type) for key in table.partitionKeys):
        spelled = _other_spellings(client, table, set(names))
        _check_single(table, there, spelled if overwrite else {})
        others = _named(client, table, [each[0] for name, each in spelled.items() if name not in there])
        there |= {name: others[each[0]] for name, each in spelled.items() if name not in there and each[0] in others}
    return there


def _named(client: Client, table: Table, names: Sequence[str]) -> dict[str, Partition]:
    """Return the partitions that have exactly these names."""
    keys = [key.name for key in table.partitionKeys]
    partitions: Sequence[Partition] = client.get_partitions_by_names(table.dbName, table.tableName, list(names)) if names else []
    return {make_partition_name(keys, partition.values): partition for partition in partitions}


def _other_spellings(client: Client, table: Table, names: set[str]) -> dict[str, list[str]]:
    """Return the names of partitions that spell the values of given names in another way, by the given names."""
    keys = [(key.name, key.type) for key in table.partitionKeys]
    spelled: dict[str, list[str]] = {}
    for other in client.get_partition_names(table.dbName, table.tableName, -1):
        name = hive_name(keys, partition_values(other))
        if name in names and name != other:
            spelled.setdefault(name, []).append(other)
    return spelled


def _check_single(table: Table, there: dict[str, Partition], spelled: dict[str, list[str]]) -> None:
    for name, others in spelled.items():
        every = [*([name] if name in there else []), *others]
        if len(every) > 1:
            raise SeveralPartitions(
                f"{table.dbName}.{table.tableName}: {' and '.join(every)} are partitions of one value; move the rows of one into the other "
                "and drop it before you overwrite"
            )


def _add(client: Client, table: Table, names: Sequence[str]) -> None:
    new = []
    for name in names:
        sd = copy(table.sd)
        sd.location = f"{table.sd.location.rstrip('/')}/{name}"
        new.append(Partition(values=partition_values(name), dbName=table.dbName, tableName=table.tableName, sd=sd, parameters={}))
    client.add_partitions_req(
        AddPartitionsRequest(dbName=table.dbName, tblName=table.tableName, parts=new, ifNotExists=True, needResult=False)
    )
