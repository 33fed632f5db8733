"""An intruder has objects of the same names as another user's, in another catalog and in another database, and mixes both in one call.
Nothing of the other user changes, and no reply shows anything of it: the authorizer judges the same object that the method works on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from itertools import combinations
from typing import Any

import pytest
from thriftpy2.thrift import TPayload

from metastore import idl
from metastore.client import Client
from metastore.methods import METHODS
from tests.service.authorization.everything import HUSH, Names, arguments, columns, outcome, storage
from tests.service.authorization.test_every_method import World, world

__all__ = ["world"]
pytestmark = pytest.mark.slow

OWN_CATALOG, OWN_DATABASE, INTRUDER = "own_catalog", "own_database", "mallory"
CATALOG_FIELDS = ("catName", "catalogName", "cat_name", "catalog")
Leaf = tuple[Any, Any]
"""A struct and the name of one of its fields, or a list and an index."""


def make_lookalikes(world: World, names: Names, folder: str) -> None:
    """Make objects of the same names for the intruder, in a catalog and in a database of the intruder's own."""
    outcome(lambda: world.admin.create_catalog(idl.CreateCatalogRequest(idl.Catalog(name=OWN_CATALOG, locationUri=f"{folder}/own"))))
    for catalog, database in ((OWN_CATALOG, names.database), ("hive", OWN_DATABASE)):
        made = idl.Database(name=database, catalogName=catalog, ownerName=INTRUDER, ownerType=1, parameters={})
        outcome(partial(world.admin.create_database, made))
        for name in (names.table, names.other):
            table = idl.Table(
                catName=catalog, dbName=database, tableName=name, owner=INTRUDER, sd=storage(), partitionKeys=columns("k"),
                tableType="MANAGED_TABLE", parameters={},
            )  # fmt: skip
            table.sd.cols = columns("c", "d")
            outcome(partial(world.nobody.create_table, table))
            part = idl.Partition(catName=catalog, dbName=database, tableName=name, values=["v"], sd=table.sd, parameters={})
            outcome(partial(world.nobody.add_partition, part))


def of_the_other(admin: Client, names: Names) -> list[str]:
    """Return the replies that an admin gets about the other user's objects."""
    database, out = names.database, []
    out.append(repr(admin.get_database(database)))
    for name in admin.get_all_tables(database):
        constraints = idl.AllTableConstraintsRequest(dbName=database, tblName=name, catName="hive")
        ref = idl.HiveObjectRef(objectType=idl.HiveObjectType.TABLE, dbName=database, objectName=name, catName="hive")
        names_of_parts = admin.get_partition_names(database, name, -1)
        stats = idl.PartitionsStatsRequest(dbName=database, tblName=name, colNames=["c"], partNames=names_of_parts, engine="hive")
        calls = [
            partial(admin.get_table, database, name),
            partial(admin.get_partitions, database, name, -1),
            partial(admin.get_all_table_constraints, constraints),
            partial(admin.list_privileges, None, None, ref),
            partial(admin.get_partitions_statistics_req, stats),
            partial(admin.get_table_column_statistics, database, name, "c"),
        ]
        out += [repr(outcome(call)) for call in calls]
    out += [repr(admin.get_function(database, each)) for each in admin.get_functions(database, "*")]
    out += [repr(each) for each in admin.show_compact(idl.ShowCompactRequest()).compacts if each.dbname == database]
    write_ids = idl.GetValidWriteIdsRequest(fullTableNames=[f"{database}.{names.table}"])
    out.append(repr(admin.get_valid_write_ids(write_ids)))
    return [re.sub(r"transient_lastDdlTime': '\d+'", "", each) for each in out]


def leaves(value: Any) -> Iterator[Leaf]:
    """Yield the leaf of each text in arguments."""
    inner = vars(value).items() if isinstance(value, TPayload) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inner:
        if isinstance(each, str):
            yield value, key
        else:
            yield from leaves(each)


def at(leaf: Leaf) -> str:
    holder, key = leaf
    text: str = holder[key] if isinstance(holder, list) else getattr(holder, key)
    return text


def put(leaf: Leaf, text: str | None) -> None:
    holder, key = leaf
    if isinstance(holder, list):
        holder[key] = text
    else:
        setattr(holder, key, text)


def own_name(leaf: Leaf, names: Names) -> str | None:
    """Return the intruder's counterpart of a name; None for a text that is not a name of a catalog or database."""
    text = at(leaf)
    if leaf[1] in CATALOG_FIELDS:
        return OWN_CATALOG
    if text == names.database:
        return OWN_DATABASE
    return f"{OWN_DATABASE}.{names.table}" if text == f"{names.database}.{names.table}" else None


def mixtures(method: str, names: Names) -> Iterator[tuple[str, Any]]:
    """Yield arguments that name objects of both users, each after a text about the fields that name the intruder's."""
    number = sum(own_name(leaf, names) is not None for leaf in leaves(arguments(method, names)))
    few = [frozenset(each) for size in (1, 2) for each in combinations(range(number), size)]
    for own in dict.fromkeys([*few, *(frozenset(range(number)) - each for each in few)]):
        args = arguments(method, names)
        found = [leaf for leaf in leaves(args) if own_name(leaf, names) is not None]
        for place, leaf in enumerate(found):
            if place in own:
                put(leaf, own_name(leaf, names))
        yield f"{[found[place][1] for place in own]} of {[leaf[1] for leaf in found]}", args
    for place in range(number):
        args = arguments(method, names)
        found = [leaf for leaf in leaves(args) if own_name(leaf, names) is not None]
        if found[place][1] not in CATALOG_FIELDS and at(found[place]) == names.database:
            put(found[place], f"@{OWN_CATALOG}#{names.database}")
            for leaf in found:
                if leaf[1] in CATALOG_FIELDS:
                    put(leaf, None)
            yield f"a catalog before {found[place][1]}", args


def test_names_of_ones_own_open_nothing_of_others(world: World, tmp_path: Any) -> None:
    names, wrong, mixed = world.estate.make(), list[str](), 0
    make_lookalikes(world, names, str(tmp_path))
    before = of_the_other(world.admin, names)
    for method in sorted(METHODS):
        if method in ("set_ugi", "shutdown"):
            continue
        for what, args in mixtures(method, names):
            mixed += 1
            make_lookalikes(world, names, str(tmp_path))
            fields = {field[1]: getattr(args, field[1]) for field in args.thrift_spec.values()}
            reply = outcome(partial(world.nobody.call, method, **fields))
            if HUSH in repr(reply).replace(f"{HUSH}_cc", ""):  # the request has this name of a constraint
                wrong.append(f"{method} tells with {what}: {reply}")
            after = of_the_other(world.admin, names)
            if after != before:
                wrong.append(f"{method} changes with {what}: {set(after) ^ set(before)}")
                names = world.estate.make()
                before = of_the_other(world.admin, names)
    assert mixed > len(METHODS)
    assert not wrong, "\n".join(wrong)
