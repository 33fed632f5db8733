import datetime
from collections.abc import Sequence
from copy import copy
from types import SimpleNamespace

import pytest

from metastore.binary import each_to_bytes
from metastore.errors import InvalidObject, MetaError, NoSuchObject, RequestTooLarge
from metastore.idl import (
    FieldSchema,
    HiveObjectPrivilege,
    HiveObjectRef,
    HiveObjectType,
    Partition,
    PartitionValuesRequest,
    PrincipalPrivilegeSet,
    PrincipalType,
    PrivilegeBag,
    PrivilegeGrantInfo,
)
from metastore.methods import METHODS
from metastore.service.call.context import Call
from metastore.service.call.names import TableName
from metastore.service.catalog.partitions import partitions
from metastore.service.catalog.partitions.add_partitions import add_partitions as add
from metastore.service.catalog.partitions.add_partitions import append_partition, append_partition_by_name
from metastore.service.catalog.partitions.drop_partitions import drop_partition, drop_partition_by_name, drop_partitions
from metastore.service.catalog.partitions.expressions import (
    Dropped,
    drop_partitions_by_expressions,
    get_partition_names_by_expression,
    get_partitions_by_expression,
)
from metastore.service.catalog.privilege_sets import Grantee
from metastore.service.catalog.privileges import grant
from metastore.service.catalog.tables import tables
from metastore.service.catalog.tables.alter_table import alter_table
from tests.support.catalog.catalog import MetastoreMaker, add_partitions, call_of, make_table
from tests.support.catalog.replies import in_structs

NOWHERE = TableName("hive", "default", "nope")


def days(call: Call, name: str = "t") -> TableName:
    """Make a table with the partitions ds=2024-01-01..03 x hr=8..10 (nine)."""
    table = make_table(call, name, keys=[("ds", "string"), ("hr", "int")])
    add_partitions(call, table, [[f"2024-01-0{day}", str(hour)] for day in (1, 2, 3) for hour in (8, 9, 10)])
    return table


def values(found: Sequence[object]) -> list[list[str]]:
    return [partition.values for partition in found]  # type: ignore[attr-defined]


def test_names_are_listed_in_the_order_of_their_bytes(call: Call) -> None:
    name = make_table(call, "t", keys=[("p", "string")])
    add_partitions(call, name, [["b"], ["B"], ["a/b"], ["é"], ["10"], ["9"], [""]])
    assert partitions.get_partition_names(call, name) == ["p=10", "p=9", "p=B", "p=__HIVE_DEFAULT_PARTITION__", "p=a%2Fb", "p=b", "p=é"]
    assert partitions.get_partition_names(call, name, 2) == ["p=10", "p=9"]
    assert partitions.get_partition_names(call, name, 0) == []


def test_prefixes_and_locations_with_spaces_at_their_end(call: Call) -> None:
    name = make_table(call, "t", keys=[("k", "string")])
    given = ["a", "a ", "a  ", "a b", " ", "b"]
    add_partitions(call, name, [[each] for each in given])
    found = partitions.get_partitions(call, name, partitions.by_filter("k like 'a%'"))
    assert sorted(values(found)) == [["a"], ["a "], ["a  "], ["a b"]]
    assert values(partitions.get_partitions(call, name, partitions.by_filter("k = 'a '"))) == [["a "]]


def test_partitions_stay_where_a_table_was_whose_location_ends_in_a_space(call: Call) -> None:
    name = make_table(call, "t", keys=[("k", "string")])
    table = tables.get_table(call, name)
    first = table.sd.location = f"{table.sd.location} "
    alter_table(call, name, table)
    given = ["a", "a "]
    add_partitions(call, name, [[each] for each in given])
    table.sd.location = f"{first}/u"
    alter_table(call, name, table)
    found = partitions.get_partitions_by_names(call, name, [f"k={each}" for each in given])
    assert sorted(each.sd.location for each in found) == [f"{first}/k={each}" for each in given]


def test_values_that_differ_in_case_or_trailing_space_are_partitions_of_their_own(call: Call) -> None:
    name = make_table(call, "t", keys=[("p", "string")])
    add_partitions(call, name, [["a"], ["A"], ["a "]])
    assert sorted(values(partitions.get_partitions(call, name))) == [["A"], ["a"], ["a "]]


def test_a_partition_comes_back_with_the_tables_columns_and_its_own_place(call: Call) -> None:
    name = days(call)
    found = partitions.get_partition(call, name, ["2024-01-02", "9"])
    assert found.sd.location == f"{call.warehouse.root}/t/ds=2024-01-02/hr=9"
    assert [column.name for column in found.sd.cols] == ["a", "b"]
    assert (found.dbName, found.tableName, found.catName, found.values) == ("default", "t", "hive", ["2024-01-02", "9"])
    assert partitions.get_partition_by_name(call, name, "hr=9/ds=2024-01-02") == found


def test_tuples_stand_for_the_structs_of_a_listing(call: Call) -> None:
    name = days(call)
    elsewhere = partitions.get_partitions(call, name)[:2]
    elsewhere[0].sd.location = f"{call.warehouse.root}/elsewhere"
    elsewhere[1].sd.cols = [FieldSchema("other", "int", None)]
    elsewhere[0].values, elsewhere[1].values = ["2024-01-09", "1"], ["2024-01-09", "2"]
    add(call, name, elsewhere)
    reader = Grantee("alice", [])
    for listed in (
        lambda form: partitions.get_partitions(call, name, form=form),
        lambda form: partitions.get_partitions(call, name, partitions.EVERY.first(2), reader, form=form),
        lambda form: partitions.get_partitions_by_names(call, name, ["ds=2024-01-09/hr=1", "ds=2024-01-09/hr=2"], form=form),
        lambda form: partitions.get_partitions(call, name, partitions.by_values(["2024-01-01"]), form=form),
        lambda form: partitions.get_partitions(call, name, partitions.by_filter("hr > 8"), form=form),
    ):
        structs, tuples = listed(partitions.STRUCTS), listed(partitions.TUPLES)
        assert structs
        assert all(isinstance(each, tuple) for each in tuples)
        assert each_to_bytes(in_structs("get_partitions", tuples)) == each_to_bytes(structs)


def test_a_principal_is_shown_its_privileges_in_a_listing(call: Call) -> None:
    name = days(call)
    table = tables.get_table(call, name)
    table.parameters["PARTITION_LEVEL_PRIVILEGE"] = "true"
    alter_table(call, name, table)
    for found in partitions.get_partitions(call, name, partitions.EVERY.first(2), Grantee("alice", ["staff"]), form=partitions.TUPLES):
        assert found.privileges == PrincipalPrivilegeSet({"alice": []}, {"staff": []}, {"public": []})
    for found in partitions.get_partitions(call, name, partitions.EVERY.first(2), Grantee(None, [])):
        assert found.privileges == PrincipalPrivilegeSet({}, {}, {})
    for found in partitions.get_partitions(call, name, partitions.EVERY.first(2), Grantee("", [""])):
        assert found.privileges == PrincipalPrivilegeSet({"": []}, {"": []}, {"public": []})
    first = partitions.get_partitions(call, name)[0]
    where = HiveObjectRef(HiveObjectType.PARTITION, name.database, name.table, first.values)
    given = {
        kind: PrivilegeGrantInfo("SELECT", 7, "ann", PrincipalType.USER, kind == PrincipalType.USER)
        for kind in (PrincipalType.USER, PrincipalType.GROUP, PrincipalType.ROLE)
    }
    principals = zip(("alice", "staff", "public"), given.items(), strict=True)
    grant(call, PrivilegeBag([HiveObjectPrivilege(where, who, kind, info, "SQL") for who, (kind, info) in principals]))
    alice = Grantee("alice", ["staff"])
    granted = PrincipalPrivilegeSet(*({who: [info]} for who, info in zip(("alice", "staff", "public"), given.values(), strict=True)))
    for found in (
        partitions.get_partitions(call, name, partitions.EVERY.first(1), alice)[0],
        partitions.get_partition(call, name, first.values, alice),
    ):
        assert found.privileges == granted
    assert partitions.get_partitions(call, name, partitions.EVERY.first(2), alice)[1].privileges.userPrivileges == {"alice": []}


def test_a_missing_partition_or_table_is_reported(call: Call) -> None:
    name = days(call)
    for work in (
        lambda: partitions.get_partition(call, name, ["2024-01-02", "11"]),
        lambda: partitions.get_partition_by_name(call, name, "ds=2024-01-02/hr=11"),
        lambda: partitions.get_partition_by_name(call, name, "ds=2024-01-02"),
        lambda: partitions.get_partitions(call, NOWHERE),
        lambda: partitions.get_partition_names(call, NOWHERE),
        lambda: partitions.get_partitions(call, NOWHERE, partitions.by_filter("")),
    ):
        with pytest.raises(NoSuchObject):
            work()
    with pytest.raises(MetaError, match="Invalid partition key & values"):
        partitions.get_partition(call, name, ["2024-01-02"])


def test_named_partitions_are_returned_and_unknown_names_left_out(call: Call) -> None:
    name = days(call)
    wanted = ["ds=2024-01-03/hr=8", "ds=2024-01-01/hr=8", "ds=2024-01-09/hr=8", "ds=2024-01-01/hr=8"]
    assert values(partitions.get_partitions_by_names(call, name, wanted)) == [["2024-01-01", "8"], ["2024-01-03", "8"]]
    assert partitions.get_partitions_by_names(call, name, []) == []


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["2024-01-02"], 3),
        (["2024-01-02", ""], 3),
        (["", "9"], 3),
        (["2024-01-02", "9"], 1),
        (["", ""], 9),
        (["2024"], 0),
    ],
)
def test_partial_values_select_partitions(call: Call, given: list[str], expected: int) -> None:
    name = days(call)
    found = partitions.get_partitions(call, name, partitions.by_values(given))
    assert len(found) == expected
    assert len(partitions.get_partition_names_by_values(call, name, given)) == expected
    assert len(partitions.get_partitions(call, name, partitions.by_values(given).first(1))) == min(1, expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 9),
        ("ds = '2024-01-02'", 3),
        ('ds >= "2024-01-02" and hr < 10', 4),
        ("hr in (8, 10)", 6),
        ("hr between 9 and 10", 6),
        ("(ds = '2024-01-01' and hr = 8) or (ds = '2024-01-03' and hr = 10)", 2),
        ("ds like '2024-01-0_'", 9),
        ("hr > 9", 3),
        ("9 < hr", 3),
        ("ds = '2024-01-02' and ds = '2024-01-03'", 0),
        ("hr != 9", 6),
    ],
)
def test_a_filter_selects_partitions(call: Call, text: str, expected: int) -> None:
    name = days(call)
    assert len(partitions.get_partitions(call, name, partitions.by_filter(text))) == expected
    assert partitions.get_num_partitions_by_filter(call, name, text) == expected


@pytest.mark.parametrize(
    ("kind", "text", "chosen"),
    [
        ("string", "k = 'b'", ["b"]),
        ("char(3)", "k = 'b'", ["b"]),
        ("varchar(5)", "k > 'a'", ["b"]),
        ("tinyint", "k > 9", ["10"]),
        ("smallint", "k > 9", ["10"]),
        ("int", "k > 9", ["10"]),
        ("bigint", "k > 9", ["10"]),
        ("date", "k >= '2024-02-01'", ["2024-02-01"]),
        ("timestamp", "k >= '2024-02-01 00:00:00'", ["2024-02-01 10:00:00"]),
        ("decimal(10,2)", "k > 9", ["10.50"]),
        ("boolean", "k = 'true'", ["true"]),
    ],
)
def test_filters_work_on_every_type_of_key(call: Call, kind: str, text: str, chosen: list[str]) -> None:
    stored = {
        "string": ["a", "b"],
        "char(3)": ["a", "b"],
        "varchar(5)": ["a", "b"],
        "date": ["2024-01-31", "2024-02-01"],
        "timestamp": ["2024-01-31 10:00:00", "2024-02-01 10:00:00"],
        "decimal(10,2)": ["9.00", "10.50"],
        "boolean": ["true", "false"],
    }.get(kind, ["9", "10"])
    name = make_table(call, "t", keys=[("k", kind)])
    add_partitions(call, name, [[value] for value in [*stored, ""]])
    assert values(partitions.get_partitions(call, name, partitions.by_filter(text))) == [[value] for value in chosen]


@pytest.mark.parametrize(("text", "chosen"), [
    ('my-key = "x"', 1), ("größe >= 5", 2), ('日期="一"', 1), ("$d = '1' and a.b = 1", 1), ("sp ace in (6, 8)", 2),
    ('(my-key = "x" or 8 = sp ace)', 2),
    ('my-key like "%y%"', 1), ("my-key not like 'x%' and größe < 7.5", 1), ("`my-key` = 'x'", 1), ('my-key = "nope"', 0),
])  # fmt: skip
def test_keys_of_any_name_are_filtered_by_in_every_call(call: Call, text: str, chosen: int) -> None:
    keys = [("my-key", "string"), ("größe", "int"), ("日期", "string"), ("$d", "string"), ("a.b", "int"), ("sp ace", "int")]
    name = make_table(call, "t", keys=keys)
    add_partitions(call, name, [["x", "5", "一", "1", "1", "6"], ["y", "7", "二", "2", "2", "8"]])
    assert len(partitions.get_partitions(call, name, partitions.by_filter(text))) == chosen
    assert len(partitions.get_partitions(call, name, partitions.by_filter(text).first(1))) == min(chosen, 1)
    assert partitions.get_num_partitions_by_filter(call, name, text) == chosen
    wanted = [FieldSchema("my-key", "string")]
    assert len(partitions.get_partition_values(call, name, wanted, text, distinct=True, ascending=True, limit=-1)) == chosen
    assert len(get_partitions_by_expression(call, name, text.encode()).items) == chosen
    assert len(get_partition_names_by_expression(call, name, text.encode())) == chosen
    assert len(drop_partitions_by_expressions(call, name, [Dropped(text.encode())], delete_data=True, if_exists=True)) == chosen


def test_partitions_that_can_not_be_judged_are_returned(call: Call) -> None:
    name = make_table(call, "t", keys=[("d", "date"), ("n", "int")])
    add_partitions(call, name, [["2020-01", "1"], ["+10000-01-01", "x"], ["2020-01-01", "2"], ["", "1"]])
    for text, chosen in (("d = '2020-01-01'", 3), ("d > '2021-01-01' and n = 1", 2), ("n = 3", 1), ("d < +10000-01-01", 3)):
        assert len(partitions.get_partitions(call, name, partitions.by_filter(text))) == chosen, text
        assert partitions.get_num_partitions_by_filter(call, name, text) == chosen, text


def test_a_partition_whose_name_begins_with_that_of_another_is_found_once(call: Call) -> None:
    name = make_table(call, "t", keys=(("k", "string"),))
    add_partitions(call, name, [["1"], ["10"], ["2"]])
    for text in ("(k) in ('1', '10')", "k = '1' or k = '10'"):
        assert values(partitions.get_partitions(call, name, partitions.by_filter(text))) == [["1"], ["10"]]
        assert partitions.get_num_partitions_by_filter(call, name, text) == 2


def test_a_bad_filter_is_a_clear_error(call: Call) -> None:
    name = days(call)
    with pytest.raises(MetaError, match="Error parsing partition filter"):
        partitions.get_partitions(call, name, partitions.by_filter("ds = = 'x'"))
    with pytest.raises(MetaError, match=r"Specified key <?nope>? is not a partitioning key for the table"):
        partitions.get_partitions(call, name, partitions.by_filter("nope = 'x'"))


def test_a_limit_refuses_large_answers_before_they_are_made(make_metastore: MetastoreMaker, call: Call) -> None:
    name = days(call)
    limited = call_of(make_metastore(limit_partition_request=5))
    for work in (
        lambda: partitions.get_partitions(limited, name),
        lambda: partitions.get_partitions(limited, name, partitions.EVERY.first(6)),
        lambda: partitions.get_partitions(limited, name, partitions.by_filter("hr > 7")),
    ):
        with pytest.raises(RequestTooLarge, match=r"limit\.partition\.request"):
            work()
    assert len(partitions.get_partitions(limited, name, partitions.EVERY.first(5))) == 5
    assert len(partitions.get_partitions(limited, name, partitions.by_values(["2024-01-01"]).first(6))) == 3


def test_values_of_keys_are_listed(call: Call) -> None:
    name = days(call)
    keys = [FieldSchema("hr", "int")]
    rows = partitions.get_partition_values(call, name, keys, None, distinct=True, ascending=True, limit=-1)
    assert rows == [["10"], ["8"], ["9"]]
    rows = partitions.get_partition_values(call, name, keys, "ds = '2024-01-01'", distinct=False, ascending=False, limit=2)
    assert rows == [["9"], ["8"]]


def test_a_value_that_is_null_is_listed_once_however_it_was_spelled(call: Call) -> None:
    name = make_table(call, "t", keys=[("ds", "string"), ("hr", "string")])
    add_partitions(call, name, [["", "1"], ["__HIVE_DEFAULT_PARTITION__", "2"], ["a", ""]])
    ds, hr = FieldSchema("ds", "string"), FieldSchema("hr", "string")
    rows = partitions.get_partition_values(call, name, [ds], None, distinct=True, ascending=True, limit=-1)
    assert rows == [["__HIVE_DEFAULT_PARTITION__"], ["a"]]
    rows = partitions.get_partition_values(call, name, [ds, hr], None, distinct=False, ascending=False, limit=1)
    assert rows == [["a", "__HIVE_DEFAULT_PARTITION__"]]
    request = SimpleNamespace(request=PartitionValuesRequest("default", "t", [hr], maxParts=0))
    assert [each.row for each in METHODS["get_partition_values"].handler(call, request).partitionValues] == [
        ["1"],
        ["2"],
        ["__HIVE_DEFAULT_PARTITION__"],
    ]


def test_append_makes_a_partition_like_the_table(call: Call) -> None:
    name = make_table(call, "t", keys=[("ds", "string"), ("hr", "int")])
    first = append_partition(call, name, ["d", "1"])
    second = append_partition_by_name(call, name, "hr=2/ds=d")
    assert first.sd.location == f"{call.warehouse.root}/t/ds=d/hr=1"
    assert second.values == ["d", "2"]
    with pytest.raises(InvalidObject, match="missing hr"):
        append_partition_by_name(call, name, "ds=d")
    with pytest.raises(InvalidObject):
        append_partition(call, NOWHERE, ["x"])


def test_partitions_are_dropped_by_values_names_and_request(call: Call) -> None:
    name = days(call)
    drop_partition(call, name, ["2024-01-01", "8"], delete_data=True)
    drop_partition_by_name(call, name, "hr=9/ds=2024-01-01", delete_data=True)
    with pytest.raises(NoSuchObject):
        drop_partition(call, name, ["2024-01-01", "8"], delete_data=True)
    with pytest.raises(NoSuchObject):
        drop_partitions(call, name, ["ds=2024-01-02/hr=8", "ds=nope/hr=8"], delete_data=True, if_exists=False)
    assert len(partitions.get_partition_names(call, name)) == 7
    dropped = drop_partitions(call, name, ["ds=2024-01-02/hr=8", "ds=nope/hr=8"], delete_data=True, if_exists=True)
    assert values(dropped) == [["2024-01-02", "8"]]
    assert len(partitions.get_partition_names(call, name)) == 6


def test_emptied_directories_above_a_partition_go_up_to_the_tables(call: Call) -> None:
    name = days(call)
    names = [f"ds=2024-01-01/hr={hour}" for hour in (8, 9, 10)]
    drop_partitions(call, name, names, delete_data=True, if_exists=False)
    assert not call.warehouse.exists(f"{call.warehouse.root}/t/ds=2024-01-01")
    assert call.warehouse.exists(f"{call.warehouse.root}/t/ds=2024-01-02/hr=8")
    drop_partitions(call, name, partitions.get_partition_names(call, name), delete_data=True, if_exists=False)
    assert call.warehouse.exists(f"{call.warehouse.root}/t")


def test_a_column_added_to_the_table_is_in_new_partitions_only(call: Call) -> None:
    name = days(call)
    date = datetime.date(2030, 1, 1).isoformat()
    append_partition(call, name, [date, "1"])
    assert partitions.get_partition(call, name, [date, "1"]).sd.cols is partitions.get_partition(call, name, ["2024-01-01", "8"]).sd.cols


def test_a_partition_column_without_name_is_a_meta_error(call: Call) -> None:
    name = days(call)
    sd = copy(tables.get_table(call, name).sd)
    sd.cols, sd.location = [FieldSchema(type="string")], f"{call.warehouse.root}/t/new"
    with pytest.raises(MetaError, match="has no name"):
        add(call, name, [Partition(values=["d", "1"], dbName="default", tableName="t", sd=sd, parameters={})])
