import pytest
from thriftpy2.thrift import TType

from metastore import idl
from metastore.cli.common.structs import Misfit, to_json, to_thrift

TABLE = {
    "dbName": "taxi",
    "tableName": "trips",
    "createTime": 7,
    "sd": {
        "cols": [{"name": "id", "type": "bigint"}],
        "numBuckets": -1,
        "skewedInfo": {"skewedColNames": ["id"], "skewedColValues": [["1"], ["2"]]},
    },
    "parameters": {"EXTERNAL": "TRUE"},
    "temporary": False,
    "ownerType": "ROLE",
}


def test_a_struct_comes_back_as_it_went() -> None:
    table = to_thrift(TType.STRUCT, idl.Table, TABLE, "table")
    assert table.sd.cols == [idl.FieldSchema(name="id", type="bigint")]
    assert table.ownerType == idl.PrincipalType.ROLE
    assert to_json(table) == TABLE


def test_binary_is_base64() -> None:
    request = to_thrift(TType.STRUCT, idl.PartitionsByExprRequest, {"dbName": "d", "tblName": "t", "expr": "AAH/"}, "req")
    assert request.expr == b"\x00\x01\xff"
    assert to_json(request)["expr"] == "AAH/"


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([], r"table: expected an object of Table, got \[\]"),
        ({"name": "x"}, "table: Table has no field name; it has tableName"),
        ({"createTime": "7"}, "table.createTime: expected a whole number, got '7'"),
        ({"temporary": 1}, "table.temporary: expected true or false"),
        ({"ownerType": "KING"}, "table.ownerType: expected one of .*ROLE"),
        ({"sd": {"cols": [{"name": 3}]}}, r"table.sd.cols\[0\].name: expected a text"),
        ({"parameters": {"a": 1}}, "table.parameters.a: expected a text"),
    ],
)
def test_a_value_that_does_not_fit_is_named_with_its_place(value: object, message: str) -> None:
    with pytest.raises(Misfit, match=message):
        to_thrift(TType.STRUCT, idl.Table, value, "table")
