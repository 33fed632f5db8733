from copy import deepcopy
from typing import Any

import pytest

from metastore.errors import InvalidObject, MetaError
from metastore.idl import (
    SQLCheckConstraint,
    SQLDefaultConstraint,
    SQLForeignKey,
    SQLNotNullConstraint,
    SQLPrimaryKey,
    SQLUniqueConstraint,
)
from metastore.service.call.context import Call
from metastore.service.call.names import TableName
from metastore.service.catalog import constraints
from metastore.service.catalog.tables.alter_table import alter_table
from metastore.service.catalog.tables.tables import drop_table, get_table
from tests.support.catalog.catalog import columns_of, make_table
from tests.support.databases.statement_counts import StatementCounts

pytestmark = pytest.mark.on_one_database

FLAGS: dict[str, Any] = {"enable_cstr": True, "validate_cstr": False, "rely_cstr": True}


def primary(table: TableName, *columns: str, name: str | None = "pk") -> list[Any]:
    return [
        SQLPrimaryKey(
            table_db=table.database, table_name=table.table, column_name=column, key_seq=number, pk_name=name, catName="hive", **FLAGS
        )
        for number, column in enumerate(columns, 1)
    ]


def unique(table: TableName, *columns: str, name: str | None = "uk") -> list[Any]:
    return [
        SQLUniqueConstraint(
            table_db=table.database, table_name=table.table, column_name=column, key_seq=number, uk_name=name, catName="hive", **FLAGS
        )
        for number, column in enumerate(columns, 1)
    ]


def foreign(child: TableName, columns: list[str], parent: TableName, parents: list[str], name: str | None = "fk") -> list[Any]:
    return [
        SQLForeignKey(
            pktable_db=parent.database,
            pktable_name=parent.table,
            pkcolumn_name=there,
            fktable_db=child.database,
            fktable_name=child.table,
            fkcolumn_name=here,
            key_seq=number,
            update_rule=1,
            delete_rule=2,
            fk_name=name,
            pk_name="pk",
            catName="hive",
            **FLAGS,
        )
        for number, (here, there) in enumerate(zip(columns, parents, strict=True), 1)
    ]


def others(table: TableName) -> list[Any]:
    place: dict[str, Any] = {"catName": "hive", "table_db": table.database, "table_name": table.table, **FLAGS}
    return [
        SQLNotNullConstraint(column_name="a", nn_name="nn1", **place),
        SQLNotNullConstraint(column_name="b", nn_name="nn2", **place),
        SQLDefaultConstraint(column_name="b", default_value="'x'", dc_name="dc", **place),
        SQLCheckConstraint(column_name="a", check_expression="a > 0", dc_name="cc", **place),
        SQLCheckConstraint(column_name=None, check_expression="a > length(b)", dc_name="cc2", **place),
    ]


def fk_names(call: Call, parent: TableName | None, child: TableName | None) -> list[tuple[str, str, str, str]]:
    found = constraints.get_foreign_keys(
        call,
        "hive",
        parent[1:] if parent else (None, None),
        child[1:] if child else (None, None),  # type: ignore[arg-type]
    )
    return [(key.fktable_name, key.fkcolumn_name, key.pktable_name, key.pkcolumn_name) for key in found]


def test_constraints_of_every_kind_come_back(call: Call) -> None:
    table = make_table(call, "t")
    for structs in (primary(table, "b", "a"), unique(table, "a"), *([each] for each in others(table))):
        constraints.add(call, structs)
    every = constraints.get_all(call, table)
    assert every.primaryKeys == primary(table, "b", "a")
    assert every.uniqueConstraints == unique(table, "a")
    assert every.notNullConstraints == others(table)[:2]
    assert every.defaultConstraints == others(table)[2:3]
    assert every.checkConstraints == others(table)[3:]
    assert every.foreignKeys == []
    assert constraints.get(call, table, constraints.PRIMARY) == primary(table, "b", "a")


def test_constraints_are_made_with_the_table(call: Call) -> None:
    parent = make_table(call, "parent", constraints=primary(TableName("hive", "default", "parent"), "a"))
    name = TableName("hive", "default", "t")
    both = [*primary(name, "a"), *unique(name, "a", "b", name=None), *foreign(name, ["a"], parent, ["a"]), *others(name)]
    make_table(call, "t", constraints=both)
    assert len(constraints.get(call, name)) == len(both)
    assert fk_names(call, parent, name) == [("t", "a", "parent", "a")]
    with pytest.raises(InvalidObject, match="column"):
        make_table(call, "u", constraints=primary(TableName("hive", "default", "u"), "zz"))
    with pytest.raises(Exception, match="not found"):
        get_table(call, TableName("hive", "default", "u"))


def test_a_key_without_name_gets_one_of_its_own(call: Call) -> None:
    table = make_table(call, "t")
    constraints.add(call, [*unique(table, "a", "b", name=None), *unique(table, "b", name=None)])
    found = constraints.get(call, table, constraints.UNIQUE)
    assert [(key.column_name, key.key_seq) for key in found] == [("a", 1), ("b", 2), ("b", 1)]
    assert found[0].uk_name == found[1].uk_name != found[2].uk_name
    assert found[0].uk_name.startswith("uk_")


def test_constraints_that_do_not_fit_are_refused(call: Call) -> None:
    table = make_table(call, "t")
    missing = TableName("hive", "default", "nope")
    constraints.add(call, primary(table, "a"))
    with pytest.raises(MetaError, match="Primary key already exists for"):
        constraints.add(call, primary(table, "b", name="other"))
    with pytest.raises(InvalidObject, match="Constraint name already exists: pk"):
        constraints.add(call, unique(table, "b", name="PK"))
    with pytest.raises(InvalidObject, match="Parent column not found: zz"):
        constraints.add(call, unique(table, "zz"))
    with pytest.raises(InvalidObject, match="Parent table not found"):
        constraints.add(call, unique(missing, "a"))
    assert constraints.get(call, missing) == []


def test_a_foreign_key_needs_a_key_with_the_same_columns_and_types(call: Call) -> None:
    parent = make_table(call, "parent")
    child = make_table(call, "child", [("x", "int"), ("y", "string"), ("z", "bigint")])
    with pytest.raises(MetaError, match="no primary or unique key"):
        constraints.add(call, foreign(child, ["x"], parent, ["a"]))
    constraints.add(call, primary(parent, "a", "b"))
    constraints.add(call, unique(parent, "a"))
    with pytest.raises(MetaError, match="z bigint refers to a int"):
        constraints.add(call, foreign(child, ["z"], parent, ["a"]))
    with pytest.raises(MetaError, match="no primary or unique key"):
        constraints.add(call, foreign(child, ["y"], parent, ["b"]))
    with pytest.raises(InvalidObject, match="Parent table not found"):
        constraints.add(call, foreign(child, ["y"], TableName("hive", "default", "nope"), ["b"]))
    constraints.add(call, foreign(child, ["y", "x"], parent, ["b", "a"]))
    constraints.add(call, foreign(child, ["x"], parent, ["a"], name="second"))
    first, _, second = constraints.get_foreign_keys(call, "hive", (None, None), ("default", "child"))
    assert (first.pk_name, second.pk_name) == ("pk", "uk")
    assert (first.update_rule, first.delete_rule, first.key_seq) == (1, 2, 1)


def test_a_table_may_refer_to_itself(call: Call) -> None:
    table = make_table(call, "t", [("a", "int"), ("up", "int")])
    constraints.add(call, primary(table, "a"))
    constraints.add(call, foreign(table, ["up"], table, ["a"]))
    assert fk_names(call, table, table) == [("t", "up", "t", "a")]


def test_foreign_keys_follow_a_renamed_table_and_go_with_a_dropped_one(call: Call) -> None:
    parent, child = make_table(call, "parent"), make_table(call, "child")
    constraints.add(call, primary(parent, "a"))
    constraints.add(call, foreign(child, ["a"], parent, ["a"]))
    new = get_table(call, parent)
    new.tableName = "renamed"
    alter_table(call, parent, new)
    renamed = parent._replace(table="renamed")
    assert fk_names(call, renamed, child) == fk_names(call, None, child) == [("child", "a", "renamed", "a")]
    assert fk_names(call, parent, None) == []
    assert constraints.get(call, renamed, constraints.PRIMARY)[0].table_name == "renamed"
    drop_table(call, renamed, delete_data=False)
    assert fk_names(call, None, child) == []


def test_a_dropped_constraint_is_gone_and_may_come_again(call: Call) -> None:
    table = make_table(call, "t")
    constraints.add(call, primary(table, "a"))
    constraints.drop(call, table, "PK")
    assert constraints.get(call, table) == []
    with pytest.raises(InvalidObject, match="does not exist"):
        constraints.drop(call, table, "pk")
    constraints.add(call, primary(table, "b"))


@pytest.mark.parametrize("number", [1, None])
def test_statements_do_not_grow_with_the_number_of_constraints(call: Call, counts: StatementCounts, number: int | None) -> None:
    table = make_table(call, "t")
    new = [*others(table), *primary(table, "a"), *unique(table, "a", "b")]
    counts("add", lambda: constraints.add(call, new[:number]))
    counts("read", lambda: constraints.get_all(call, table))


def with_columns(call: Call, name: TableName, *columns: tuple[str, str], **options: object) -> None:
    table = deepcopy(get_table(call, name))
    table.sd.cols = columns_of(*columns)
    alter_table(call, name, table, **options)  # type: ignore[arg-type]


def test_constraints_of_every_kind_follow_a_renamed_column(call: Call) -> None:
    table = make_table(call, "t", [("a", "int"), ("b", "string"), ("c", "int")])
    child = make_table(call, "child", [("x", "int"), ("b", "string")])
    for structs in (primary(table, "a", "b"), unique(table, "a"), *([each] for each in others(table))):
        constraints.add(call, structs)
    constraints.add(call, foreign(child, ["x"], table, ["a"]))
    constraints.add(call, foreign(table, ["c"], table, ["a"], name="self"))
    constraints.add(call, primary(child, "x"))
    with_columns(call, table, ("n", "int"), ("m", "string"), ("c", "int"))
    every = constraints.get_all(call, table)
    assert every.primaryKeys == primary(table, "n", "m")
    assert every.uniqueConstraints == unique(table, "n")
    assert [each.column_name for each in every.notNullConstraints] == ["n", "m"]
    assert [each.column_name for each in every.defaultConstraints] == ["m"]
    assert [(each.column_name, each.check_expression) for each in every.checkConstraints] == [("n", "n > 0"), (None, "n > length(m)")]
    assert fk_names(call, table, None) == [("child", "x", "t", "n"), ("t", "c", "t", "n")]
    with_columns(call, child, ("y", "int"), ("b", "string"), environment={"CASCADE": "true"})
    assert fk_names(call, table, child) == [("child", "y", "t", "n")]
    assert constraints.get(call, child, constraints.PRIMARY) == primary(child, "y")


def test_constraints_go_with_a_dropped_column_and_others_stay(call: Call) -> None:
    table = make_table(call, "t", [("c", "int"), ("d", "int"), ("a", "int"), ("b", "string")])
    child = make_table(call, "child", [("x", "int"), ("y", "int")])
    for structs in (primary(table, "a", "b"), unique(table, "a"), unique(table, "c", name="uc"), *([each] for each in others(table))):
        constraints.add(call, structs)
    constraints.add(call, foreign(child, ["x"], table, ["a"]))
    constraints.add(call, foreign(child, ["y"], table, ["c"], name="kept"))
    with_columns(call, table, ("c", "int"), ("d", "int"))
    assert constraints.get(call, table) == unique(table, "c", name="uc")
    assert fk_names(call, None, child) == [("child", "y", "t", "c")]
    with_columns(call, child, ("x", "int"))
    assert fk_names(call, None, child) == []


def test_constraints_stay_when_columns_are_added_moved_or_typed_otherwise(call: Call) -> None:
    table = make_table(call, "t", [("a", "int"), ("b", "string")])
    for structs in (primary(table, "a", "b"), *([each] for each in others(table))):
        constraints.add(call, structs)
    before = constraints.get(call, table)
    with_columns(call, table, ("a", "bigint"), ("b", "string"), ("c", "int"))
    assert constraints.get(call, table) == before
