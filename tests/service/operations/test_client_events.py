"""Events that clients send for the log: files that they wrote, and metadata that they read again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson
import pytest

from metastore.errors import MetaError, NoSuchObject
from metastore.idl import FireEventRequest, FireEventRequestData, WriteNotificationLogRequest
from metastore.service.call.context import Call
from metastore.service.call.names import TableName
from metastore.service.catalog.tables import tables
from metastore.service.operations import notifications
from tests.support.catalog.catalog import make_table
from tests.support.catalog.event_log import events, fire, message, newest, partitioned, written

pytestmark = pytest.mark.on_one_database


def test_the_reply_to_a_client_that_wrote_names_the_events(call: Call) -> None:
    name = partitioned(call, "1", "2")
    assert notifications.fire_listener_event(call, name, fire()) == [notifications.current_id(call)]
    kind, body = newest(call)
    assert (kind, body["replace"], body["files"], body["ptnObjJson"]) == ("INSERT", "true", ["file:/f###"], None)
    make_table(call, "between")
    ids = notifications.fire_listener_event(call, name, fire(None, ["1"], ["2"]))
    found = [event for event in events(call) if event.eventId in ids]
    assert [orjson.loads(message(event)["ptnObjJson"])["1"]["lst"][2:] for event in found] == [["1"], ["2"]]
    assert [event.eventId for event in events(call)] == list(range(1, ids[-1] + 1))


@pytest.mark.parametrize(
    ("request_", "error", "text"),
    [
        (fire(["9"]), NoSuchObject, "Partition k=9 of hive.default.t doesn't exist"),
        (fire(None, ["1"], None), MetaError, "Partition values must be set"),
        (
            FireEventRequest(successful=True, data=FireEventRequestData(refreshEvent=False), partitionVals=["9"]),
            NoSuchObject,
            "Partition k=9 of hive.default.t doesn't exist",
        ),
        (FireEventRequest(successful=True, data=FireEventRequestData()), MetaError, "neither insertData nor insertDatas nor refreshEvent"),
        (fire(["1"], filesAddedChecksum=["1", "2"]), MetaError, "names 1 files and 2 checksums"),
    ],
)
def test_a_wrong_event_of_a_client_leaves_nothing(call: Call, request_: FireEventRequest, error: type[Exception], text: str) -> None:
    name = partitioned(call, "1")
    last = notifications.current_id(call)
    with pytest.raises(error, match=text):
        notifications.fire_listener_event(call, name, request_)
    assert notifications.current_id(call) == last


def reload(call: Call, name: TableName, refreshes: bool, **of: Any) -> Mapping[str, Any]:
    """Report that a client read its cached metadata again, or forgot it; return the message of the one event."""
    data = FireEventRequestData(refreshEvent=refreshes)
    request = FireEventRequest(successful=True, data=data, dbName="default", tableName="t", **of)
    assert notifications.fire_listener_event(call, name, request) == [notifications.current_id(call)]
    event = events(call)[-1]
    assert (event.eventType, event.catName, event.dbName, event.tableName) == ("RELOAD", "hive", "default", "t")
    return message(event)


@pytest.mark.parametrize("refreshes", [True, False])
def test_a_client_that_read_again_is_logged(call: Call, refreshes: bool) -> None:
    name = partitioned(call, "1", "2", "3")

    def values(text: str) -> list[str]:
        found: list[str] = orjson.loads(text)["1"]["lst"][2:]
        return found

    body = reload(call, name, refreshes, tblParams={"by": "impala"})
    assert (body["db"], body["table"], body["refreshEvent"]) == ("default", "t", str(refreshes).lower())
    assert (body["ptnObjJson"], body["partitionListJson"]) == (None, None)
    assert orjson.loads(body["tableObjJson"])["9"]["map"][3]["by"] == "impala"
    assert "by" not in tables.get_table(call, name).parameters
    assert values(reload(call, name, refreshes, partitionVals=["2"])["ptnObjJson"]) == ["2"]
    several = reload(call, name, refreshes, batchPartitionValsForRefresh=[["1"], ["3"], ["gone"]])
    assert [values(text) for text in several["partitionListJson"]] == [["1"], ["3"]]
    assert several["ptnObjJson"] is None


def test_the_writes_of_a_transaction_are_returned_and_are_not_events(call: Call) -> None:
    name = partitioned(call, "1", "2")
    last = notifications.current_id(call)
    notifications.add_writes(call, name, [written(7, "file:/a", values=["1"]), written(7, "file:/b", values=["2"])])
    notifications.add_write(call, name, written(7, "file:/c", "file:/a", values=["1"]))
    notifications.add_write(call, name, written(8, "file:/z, y", "file:/x", values=["1"]))
    found = notifications.writes(call, 7, None, "*")
    assert [(each.partition, each.files) for each in found] == [
        ("k=1", "file:/a###delta_4_4]file:/c###delta_4_4"),
        ("k=2", "file:/b###delta_4_4"),
    ]
    assert [orjson.loads(each.partitionObj or "")["1"]["lst"][2:] for each in found] == [["1"], ["2"]]
    assert notifications.writes(call, 7, "default", "other") == []
    (other,) = notifications.writes(call, 8, None, None)
    assert other.files.split("]") == ["file:/z, y###delta_4_4", "file:/x###delta_4_4"], "as Hive's replication reads them"
    assert notifications.current_id(call) == last, "a write is reported with its transaction, not as an event"


def test_a_write_that_names_no_transaction_is_refused(call: Call) -> None:
    name = partitioned(call, "1")
    with pytest.raises(MetaError, match="needs txnId, writeId and fileInfo"):
        notifications.add_write(call, name, WriteNotificationLogRequest(txnId=7, writeId=1, db="default", table="t"))
