"""Imports over Thrift from a server of this project, as from any other: objects that it returns are imported, the others are named."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from thriftpy2.thrift import TApplicationException

from metastore import idl
from metastore.client import connect
from metastore.errors import MetaError
from metastore.transfer.comparing import compare
from metastore.transfer.moving import move
from metastore.transfer.opening import Asking, reader, writer
from metastore.transfer.records import Record
from metastore.transfer.selection import EVERYTHING, Selection, selection
from metastore.transfer.thrift import tables
from metastore.transfer.thrift.calls import Calls
from metastore.transfer.thrift.reader import ThriftReader
from tests.support.catalog.full_catalog import Filler
from tests.support.servers.servers import serving


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """URI of a server with every kind of object, and URL of its database."""
    home = tmp_path_factory.mktemp("served")
    url = f"sqlite:///{home / 'metastore.db'}"
    options = ("--db", url, "--set", f"warehouse={home / 'warehouse'}", "--set", "compactor_cleaner=false")
    with serving(*options, home=home) as server:
        with connect(server.uri) as client:
            Filler(client, f"file:{home / 'data'}").everything()
        yield server.uri, url


def test_a_server_answers_with_the_objects_of_its_database(served: tuple[str, str]) -> None:
    one, other = reader(served[0], Asking(connections=3)), reader(served[1])
    found = compare(one, other, EVERYTHING)
    assert found.differences == []
    assert {"table", "partition", "constraint", "privilege", "resource_plan", "write_id_position"} <= set(found.counts)
    assert "compaction" in found.left_out
    assert "schema" in found.left_out
    one.close()
    other.close()


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (selection(kinds=["table"]), []),
        (selection(["sales"]), ["schemas", "2 open transactions"]),
        (selection(kinds=["type", "property", "role"]), ["properties, types"]),
        (selection(without=["type", "property"]), ["schemas, scheduled queries", "the queue", "2 open transactions"]),
    ],
)
def test_only_objects_of_wanted_kinds_are_named_as_not_moved(served: tuple[str, str], wanted: Selection, expected: list[str]) -> None:
    source = reader(served[0])
    skipped = move(source, None, wanted).skipped
    source.close()
    assert len(skipped) == len(expected)
    assert all(text.startswith(begin) for text, begin in zip(skipped, expected, strict=True)), skipped


@pytest.mark.on_one_database
def test_an_import_over_thrift(served: tuple[str, str], fresh_database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages are small; readers do not see rows of aborted and open transactions afterwards."""
    monkeypatch.setattr(tables, "PAGE", 3)
    source, target = reader(served[0]), writer(fresh_database_url)
    moved = move(source, target, EVERYTHING)
    target.close()
    assert moved.skipped[-1].startswith("2 open transactions (3, 4) count as aborted")
    back = reader(fresh_database_url)
    assert compare(source, back, EVERYTHING).differences == []
    described = [record.key for record in source.records(EVERYTHING) if record.kind == "descriptor"]
    assert len(described) == len({*described}) == 4
    back.close()
    source.close()
    with serving("--db", fresh_database_url, home=tmp_path) as server, connect(server.uri) as client:
        found = client.get_valid_write_ids(idl.GetValidWriteIdsRequest(fullTableNames=["sales.acid"])).tblValidWriteIds[0]
        visible = [each for each in range(1, 9) if each <= found.writeIdHighWaterMark and each not in found.invalidWriteIds]
        assert visible == [1]
        (new,) = client.open_txns(idl.OpenTxnRequest(1, "u", "h")).txn_ids
        given = client.allocate_table_write_ids(idl.AllocateTableWriteIdsRequest(dbName="sales", tableName="acid", txnIds=[new]))
        assert given.txnToWriteIds[0].writeId == 4


def test_a_part_over_thrift(served: tuple[str, str]) -> None:
    source = reader(served[0])
    found = list(source.records(selection(["sales.o*"])))
    assert {record.key for record in found if record.kind == "table"} == {("hive", "sales", "orders")}
    done = EVERYTHING._replace(done={("hive", "sales", "orders")})
    assert not [record for record in source.records(done) if record.kind == "partition"]
    source.close()


class Recorder:
    """A client that answers from a table of results and notes the time of each call."""

    def __init__(self, results: dict[str, Any], noted: list[float], pause: float = 0.0) -> None:
        self.results, self.noted, self.pause = results, noted, pause

    def call(self, method: str, *_: Any) -> Any:
        self.noted.append(time.monotonic())
        time.sleep(self.pause)
        result = self.results[method]
        if isinstance(result, Exception):
            raise result
        return result

    def close(self) -> None: ...


def calls(results: dict[str, Any], noted: list[float], connections: int = 1, rate: float | None = None) -> Calls:
    return Calls(lambda: Recorder(results, noted), connections, rate)  # type: ignore[arg-type, return-value]


def test_no_more_calls_begin_than_are_allowed() -> None:
    noted: list[float] = []
    begun = time.monotonic()
    limited = calls({"m": 1}, noted, connections=4, rate=50)
    assert list(limited.each(lambda _: limited.ask("m"), range(20))) == [1] * 20
    assert all(at - begun >= number / 50 for number, at in enumerate(sorted(noted)))


def test_results_come_in_order_and_few_are_begun_ahead() -> None:
    begun: list[int] = []
    gate = threading.Event()

    def work(item: int) -> int:
        begun.append(item)
        gate.wait(30)
        return item

    asked = calls({}, [], connections=2)
    each = asked.each(work, range(100))
    gate.set()
    assert next(each) == 0
    assert len(begun) <= 2 + 2 * 2
    assert list(each) == list(range(1, 100))


def test_unknown_methods_and_refusals() -> None:
    unknown = TApplicationException(TApplicationException.UNKNOWN_METHOD, "m")
    noted: list[float] = []
    asked = calls({"m": unknown, "n": idl.MetaException("broken"), "o": idl.NoSuchObjectException("gone")}, noted)
    assert asked.ask("m", absent="none") == "none"
    assert not asked.knows("m")
    assert asked.ask("m", absent="none") == "none"
    assert len(noted) == 1
    with pytest.raises(MetaError, match="n: broken"):
        asked.ask("n")
    assert asked.ask("o", absent=1, missing=(idl.NoSuchObjectException,)) == 1


def test_a_server_that_is_not_there() -> None:
    source = reader("thrift://127.0.0.1:1")
    with pytest.raises(MetaError, match=r"get_catalogs: No metastore answers"):
        list(source.records(EVERYTHING))


def test_a_table_that_goes_meanwhile_is_left_out(served: tuple[str, str]) -> None:
    source = reader(served[0])
    assert isinstance(source, ThriftReader)
    names = [("hive", "sales", "gone"), ("hive", "sales", "v")]
    found: list[Record] = list(source._tables.records(EVERYTHING, names))
    assert [record.key for record in found] == names[1:]
    source.close()
