"""The release of a Hive client: it is derived from the client's calls, and special characters depend on it."""

from __future__ import annotations

import pytest

from metastore.errors import InvalidObject, InvalidOperation
from metastore.methods import METHODS
from metastore.service.call.context import Call
from metastore.service.call.releases import ReleaseTraces, Sign
from metastore.service.catalog.tables.alter_table import alter_table
from metastore.service.catalog.tables.tables import get_table
from tests.support.catalog.catalog import make_database, make_table

CALLS = {
    "2.3": [("get_database", ("db",)), ("get_table", ("db", "t")), ("drop_partitions_req", (None,))],
    "3": [("get_database", ("@hive#db",)), ("get_table_req", (None,)), ("get_partitions", ("@hive#db", "t", 1))],
    "4": [("get_database_req", (None,)), ("get_table_req", (None,))],
    "4 with calls of 3": [("get_database", ("@hive#db",)), ("create_table_req", (None,))],
    "Trino": [("get_database", ("db",)), ("get_table_req", (None,))],
}


@pytest.mark.parametrize(
    ("client", "is_2_3", "is_3"),
    [("2.3", True, False), ("3", False, True), ("4", False, False), ("4 with calls of 3", False, False), ("Trino", False, False)],
)
def test_the_calls_show_the_release(client: str, is_2_3: bool, is_3: bool) -> None:
    release = ReleaseTraces()
    for method, arguments in CALLS[client]:  # type: ignore[attr-defined]
        if (sign := METHODS[method].sign) is not None:
            release.note(sign, arguments)
    assert (release.is_2_3, release.is_3) == (is_2_3, is_3)


def test_hive_3_is_refused_special_characters(call: Call) -> None:
    table = make_table(call, "t")
    renamed = get_table(call, table)
    renamed.tableName = "a-b"
    call.client.release.note(Sign.MARKS_CATALOG, ("@hive#default",))
    with pytest.raises(InvalidObject, match="a-b is not a valid database name"):
        make_database(call, "a-b")
    with pytest.raises(InvalidObject, match="a-b is not a valid object name"):
        make_table(call, "a-b")
    with pytest.raises(InvalidOperation, match="a-b is not a valid object name"):
        alter_table(call, table, renamed)
    call.client.release.note(Sign.SINCE_4, ())
    make_table(call, "a-b")
