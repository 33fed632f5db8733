"""Streams keep NOT NULL, fill in defaults that are constants, and do not open tables with a check."""

from __future__ import annotations

from datetime import datetime, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from metastore.client import Client
from metastore.streaming import BadRecord, Delimited, NotStreamable, Rows, StreamingConnection, StrictJson
from tests.streaming.conftest import TableMaker
from tests.streaming.reading import rows
from tests.support.catalog.constraints import constrain
from tests.support.servers.servers import Server

COLUMNS = "id int, v varchar(4), n float, d decimal(5,2), w string"
DEFAULTS = {"v": "cast('it\\'s mine' as varchar(4))", "n": "cast(0.1 as float)", "d": "1.5BD"}
FILLED = {"v": "it's", "n": pytest.approx(0.1, abs=1e-7), "d": Decimal("1.50"), "w": None}


@pytest.mark.parametrize(
    ("writer", "given", "null"),
    [
        (Rows(), {"id": 1}, {"id": None}),
        (Rows(), pa.record_batch({"id": pa.array([1])}), pa.record_batch({"v": pa.array(["a"])})),
        (StrictJson(), '{"ID": 1}', "{}"),
        (Delimited(names=["id"]), "1", "\\N"),
    ],
    ids=["dicts", "Arrow", "JSON", "text"],
)
def test_records_have_defaults_and_values(
    server: Server, client: Client, make_table: TableMaker, writer: Any, given: Any, null: Any
) -> None:
    table = make_table(COLUMNS)
    constrain(client, f"default.{table.tableName}", not_null={"nn_id": "id"}, defaults=DEFAULTS)
    name = f"default.{table.tableName}"
    with StreamingConnection(server.uri, name, writer) as connection, connection.batch(1) as batch, batch.transaction():
        with pytest.raises(BadRecord, match=r"column id is NOT NULL \(constraint nn_id\), and a row has no value for it: row 1 of 1"):
            batch.write(null)
        assert batch.write(given) == 1
    assert rows(client, table) == [{"id": 1, **FILLED}]


def test_a_given_null_is_stored_as_null(server: Server, client: Client, make_table: TableMaker) -> None:
    table = make_table(COLUMNS)
    constrain(client, f"default.{table.tableName}", defaults={**DEFAULTS, "w": "upper('w')"})
    with StreamingConnection(server.uri, f"default.{table.tableName}") as connection, connection.batch(1) as batch, batch.transaction():
        with pytest.raises(
            BadRecord, match=r"column w is not given, and this writer can not compute its default upper\('w'\) \(constraint of_w\)"
        ):
            batch.write({"id": 1})
        batch.write([{"id": 1, "v": None, "n": None, "d": None, "w": "x"}, {"id": 2, "w": None}])
    assert rows(client, table) == [{"id": 1, "v": None, "n": None, "d": None, "w": "x"}, {"id": 2, **FILLED}]


@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo"])
def test_a_default_of_now_is_the_wall_clock_of_the_zone(server: Server, client: Client, make_table: TableMaker, zone: str) -> None:
    table = make_table("id int, t timestamp, d date")
    constrain(client, f"default.{table.tableName}", defaults={"t": "current_timestamp()", "d": "CURRENT_DATE"})
    hours = {"UTC": 0, "Asia/Tokyo": 9}[zone]
    with StreamingConnection(server.uri, f"default.{table.tableName}", zone=zone) as connection, connection.batch(1) as batch:
        before = datetime.now(timezone.utc).timestamp()
        with batch.transaction():
            batch.write({"id": 1})
        after = datetime.now(timezone.utc).timestamp()
    (row,) = rows(client, table)
    assert before <= row["t"].replace(tzinfo=timezone.utc).timestamp() - hours * 3600 <= after
    assert row["d"] == row["t"].date()


def test_a_table_with_a_check_is_not_opened(server: Server, client: Client, make_table: TableMaker) -> None:
    """A table with a check is not opened, and no batch is begun on a table that has got one since."""
    table = make_table("id int")
    name = f"default.{table.tableName}"
    with StreamingConnection(server.uri, name) as connection:
        with connection.batch(1) as batch, batch.transaction():
            batch.write({"id": None})
        constrain(client, name, checks={"few": "id < 10"}, not_null={"nn": "id"})
        refused = r"this writer can not evaluate the constraint few, which is CHECK \(id < 10\); write the rows with AcidTable"
        with pytest.raises(NotStreamable, match=refused):
            connection.batch(1)
        with pytest.raises(NotStreamable, match=refused):
            StreamingConnection(server.uri, name)
    assert rows(client, table) == [{"id": None}]
