"""Comparison of two metastores' replies: which differences count."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from thriftpy2.thrift import TApplicationException, TMessageType

from metastore import idl
from metastore.methods import METHODS
from metastore.shadow.comparing import differences
from metastore.shadow.ignored import FIELDS, NUMBERS, PARAMETERS, PARAMETERS_STAND_FOR, STANDS_FOR
from metastore.shadow.relay import is_compared
from metastore.wire.messages.protocol import Dialect, decode, write_message
from metastore.wire.sockets.settings import WireSettings


def result(method: str, **fields: Any) -> Any:
    return getattr(idl.service, f"{method}_result")(**fields)


def table(name: str = "t", **fields: Any) -> Any:
    columns = [idl.FieldSchema("a", "int"), idl.FieldSchema("b", "string")]
    sd = idl.StorageDescriptor(cols=columns, bucketCols=["a", "b"], parameters={})
    return idl.Table(tableName=name, dbName="d", sd=sd, **{"parameters": {"x": "1"}, **fields})


def paths(method: str, one: Any, other: Any) -> list[str]:
    return [each.path for each in differences(method, result(method, success=one), result(method, success=other))]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"createTime": 5}, []),
        ({"retention": 0}, []),
        ({"partitionKeys": []}, []),
        ({"writeId": -1}, []),
        ({"writeId": 3}, ["success.writeId"]),
        ({"owner": ""}, ["success.owner"]),
        ({"parameters": {"x": "2", "y": ""}}, ["success.parameters[x]", "success.parameters[y]"]),
        ({"parameters": {"x": "1", "transient_lastDdlTime": "9"}}, []),
        ({"parameters": {"x": "1", "numFiles": "0", "totalSize": "0"}}, []),
        ({"parameters": {"x": "1", "numFiles": "0", "totalSize": "7"}}, ["success.parameters[totalSize]"]),
    ],
)
def test_fields_of_a_table(fields: dict[str, Any], expected: list[str]) -> None:
    assert paths("get_table", table(), table(**fields)) == expected


@pytest.mark.parametrize("change", ["cols", "bucketCols"])
def test_lists_within_a_table_have_an_order(change: str) -> None:
    other = table()
    setattr(other.sd, change, getattr(other.sd, change)[::-1])
    assert paths("get_table", table(), other) != []


def test_lists_of_names_and_objects_have_none() -> None:
    assert paths("get_all_tables", ["a", "b"], ["b", "a"]) == []
    assert paths("get_all_tables", ["a", "b"], ["b", "c"]) == ["success[a]", "success[c]"]
    assert paths("get_all_tables", ["a", "a"], ["a"]) == ["success.size"]
    one, other = [table("t"), table("u")], [table("u", owner="eve"), table("t")]
    assert paths("get_table_objects_by_name", one, other) == ["success[hive.d.u].owner"]
    assert paths("get_table_objects_by_name", one, one[:1]) == ["success[hive.d.u]"]
    wrapped = idl.GetTablesResult(tables=one), idl.GetTablesResult(tables=one[::-1])
    assert paths("get_table_objects_by_name_req", *wrapped) == []
    assert paths("partition_name_to_vals", ["1", "2"], ["2", "1"]) == ["success[0]", "success[1]"]
    for one, other in (([idl.Partition(values=["1", "2"])], [idl.Partition(values=["2", "1"])]),):
        assert paths("get_partition", one[0], other[0]) != []
        assert paths("get_partitions", one, other) != []


@pytest.mark.parametrize("protocol", ["binary", "compact"])
def test_skewed_locations_are_read_and_compared(protocol: str) -> None:
    """The map of skewed locations has lists as keys, which Python's dicts can not have."""
    made = []
    for place in ("x", "y"):
        one = table()
        one.sd.skewedInfo = idl.SkewedInfo(["a"], [["1"]], {("1",): place})
        raw = write_message(Dialect(protocol, framed=False), "get_table", TMessageType.REPLY, 1, result("get_table", success=one))
        made.append(decode(raw, protocol, WireSettings(), idl.service.get_table_result).success)
    assert paths("get_table", made[0], deepcopy(made[0])) == []
    assert paths("get_table", *made) == ["success.sd.skewedInfo.skewedColValueLocationMaps[1]"]


def test_errors_are_compared_by_their_kind() -> None:
    missing, other = (result("get_table", o2=idl.NoSuchObjectException(message=text)) for text in ("one", "other"))
    broken = result("get_table", o1=idl.MetaException(message="m"))
    internal = TApplicationException(TApplicationException.INTERNAL_ERROR, "i")
    assert differences("get_table", missing, other) == []
    assert differences("get_table", internal, TApplicationException(TApplicationException.INTERNAL_ERROR, "j")) == []
    (found,) = differences("get_table", missing, broken)
    assert (found.path, found.primary, found.secondary) == ("", "NoSuchObjectException: one", "MetaException: m")
    (found,) = differences("get_table", result("get_table", success=table()), internal)
    assert (found.primary, found.secondary) == ("an answer", "TApplicationException 6: i")


def test_only_reads_of_a_metastores_content_are_compared() -> None:
    assert all(map(is_compared, ("get_table", "get_partitions_by_expr", "list_privileges", "set_ugi", "show_locks")))
    assert not any(map(is_compared, ("drop_table", "open_txns", "heartbeat", "shutdown", "no_such_method")))


def test_with_changes_all_is_compared_but_facts_of_one_side() -> None:
    assert all(is_compared(name, with_changes=True) for name in ("get_table", "drop_table", "open_txns", "heartbeat", "setMetaConf"))
    assert not any(is_compared(name, with_changes=True) for name in ("shutdown", "get_delegation_token", "no_such_method"))


def test_secrets_are_of_one_side() -> None:
    secrets = {name for name in METHODS if "token" in name or "master_key" in name}
    assert len(secrets) == 11
    assert not any(is_compared(name, with_changes=True) for name in secrets)


def test_numbers_are_compared_where_changes_are_sent() -> None:
    one, other = (result("open_txns", success=idl.OpenTxnsResponse(txn_ids=[number])) for number in (1, 2))
    assert [each.path for each in differences("open_txns", one, other, same_numbers=True)] != []
    held = [result("lock", success=idl.LockResponse(lockid=number, state=idl.LockState.ACQUIRED)) for number in (1, 2)]
    assert differences("lock", *held) == []
    assert [each.path for each in differences("lock", *held, same_numbers=True)] == ["success.lockid"]


@pytest.mark.parametrize(
    "method", ["get_fields", "get_fields_with_environment_context", "get_schema", "get_schema_with_environment_context"]
)
def test_lists_of_columns_have_an_order(method: str) -> None:
    columns = table().sd.cols
    assert paths(method, columns, columns[::-1]) != []


def test_lists_of_columns_in_a_response_have_an_order() -> None:
    columns = table().sd.cols
    for method, response in (("get_fields_req", idl.GetFieldsResponse), ("get_schema_req", idl.GetSchemaResponse)):
        assert paths(method, response(fields=columns), response(fields=columns[::-1])) != []


def test_fields_that_are_left_out_are_part_of_the_interface_and_documented() -> None:
    structs = [each for each in vars(idl).values() if hasattr(each, "thrift_spec")]
    fields = {name for each in structs for field in each.thrift_spec.values() for name in (field[1], f"{each.__name__}.{field[1]}")}
    assert {*FIELDS, *NUMBERS, *STANDS_FOR} - fields == set()
    page = (Path(__file__).parents[2] / "docs" / "shadow.md").read_text()
    named = (*FIELDS, *NUMBERS, *PARAMETERS, *PARAMETERS_STAND_FOR, *STANDS_FOR)
    assert [name for name in named if f"`{name}`" not in page] == []
    assert "parameters" not in FIELDS
    assert all(PARAMETERS.values())
