"""Values that a database can not hold: they are refused with a clear error, and nothing of them stays."""

from __future__ import annotations

import pytest

from metastore.errors import InvalidObject, MetaError, MetastoreError
from metastore.idl import Database
from metastore.service.call.context import Call
from metastore.service.call.names import TableName
from metastore.service.catalog.databases import create_database
from metastore.service.catalog.partitions import partitions
from metastore.service.catalog.tables import tables
from tests.support.catalog.catalog import add_partitions, make_table


def test_a_partition_name_of_800_characters(call: Call) -> None:
    name = make_table(call, "t", keys=[("k", "string")])
    with pytest.raises(MetastoreError, match=r"too long|Data too long"):  # on SQLite and PostgreSQL the name of the directory is too long
        add_partitions(call, name, [["v" * 800]])
    assert partitions.get_partition_names(call, name) == []


def test_an_owner_s_name_of_300_characters(call: Call) -> None:
    database = Database(name="d", ownerName="o" * 300)
    if call.database.driver.name == "mysql":
        with pytest.raises(InvalidObject, match="owner_name"):
            create_database(call, database)
    else:
        create_database(call, database)


def test_a_nul_in_a_description(call: Call) -> None:
    database = Database(name="d", description="a\0b")
    if call.database.driver.name == "postgresql":
        with pytest.raises(InvalidObject, match="NUL"):
            create_database(call, database)
    else:
        create_database(call, database)


def test_parameters_of_twenty_million_characters(call: Call) -> None:
    if call.database.driver.name == "mysql":
        with pytest.raises(MetaError, match="max_allowed_packet"):
            make_table(call, "t", parameters={"a": "x" * 20_000_000})
    else:
        make_table(call, "t", parameters={"a": "x" * 20_000_000})
    make_table(call, "u")
    assert tables.get_table(call, TableName("hive", "default", "u")).tableName == "u"
    assert len(tables.get_tables(call, "hive", "default", "t")) == (call.database.driver.name != "mysql")


def test_emoji_and_five_thousand_names(call: Call) -> None:
    name = make_table(call, "t", keys=[("k", "string")], parameters={"😀": "😀"})
    values = ["😀", *(str(number) for number in range(5000))]
    add_partitions(call, name, [[value] for value in values])
    found = partitions.get_partitions_by_names(call, name, [f"k={value}" for value in values])
    assert sorted(partition.values[0] for partition in found) == sorted(values)
    assert tables.get_table(call, name).parameters["😀"] == "😀"


def test_names_in_a_list_that_would_mean_something_in_an_array(call: Call) -> None:
    name = make_table(call, "t", keys=[("k", "string")])
    values = ["a,b", "a}b", "x y", 'q"', "b\\s", "NULL", "None", "1"]
    add_partitions(call, name, [[value] for value in values])
    names = partitions.get_partition_names(call, name)
    assert sorted(each.values[0] for each in partitions.get_partitions_by_names(call, name, names)) == sorted(values)
    assert partitions.get_partitions_by_names(call, name, ['k="', "k=\\", "{1}", '"', "\\", ","]) == []
