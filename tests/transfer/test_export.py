"""Exports over Thrift: into one of this project's servers, and back into Java's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from metastore import idl
from metastore.client import Client, connect
from metastore.errors import InvalidOperation
from metastore.transfer.comparing import compare
from metastore.transfer.dumps import DumpReader
from metastore.transfer.moving import Moved, move
from metastore.transfer.opening import reader, writer
from metastore.transfer.records import Key, Record
from metastore.transfer.selection import EVERYTHING, Selection
from metastore.transfer.thrift import writer as thrift_writer
from tests.support.databases import databases
from tests.support.engines.java_metastore import java_metastore
from tests.support.servers.servers import serving

SERVERS_OWN = ("create_time", "transient_lastDdlTime", "grant_time", "write_id")
"""Fields that the interface does not take: the target sets them itself."""
LEFT = (
    "position notification: the log of the server continues with its own ids",
    "compaction 1: no method takes it",
    "2 open transactions (3, 4) count as aborted: let them end before",
)


def exported(source: DumpReader, uri: str, *, resume: bool = False) -> Moved:
    target = writer(uri)
    moved = move(source, target, EVERYTHING, resume=resume)
    target.close()
    return moved


def invisible(client: Client) -> list[int]:
    """Return the write ids of the transactional table that no reader sees, up to the last one."""
    found = client.get_valid_write_ids(idl.GetValidWriteIdsRequest(fullTableNames=["sales.acid"])).tblValidWriteIds[0]
    (new,) = client.open_txns(idl.OpenTxnRequest(1, "u", "h")).txn_ids
    given = client.allocate_table_write_ids(idl.AllocateTableWriteIdsRequest(dbName="sales", tableName="acid", txnIds=[new]))
    client.abort_txn(idl.AbortTxnRequest(txnid=new))
    last = given.txnToWriteIds[0].writeId
    return [each for each in range(1, last) if each > found.writeIdHighWaterMark or each in found.invalidWriteIds]


@pytest.mark.on_one_database
def test_an_export_into_a_server_of_ours(
    dumped: DumpReader, fresh_database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(thrift_writer, "PAGE", 5)
    options = ("--db", fresh_database_url, "--set", f"warehouse={tmp_path / 'w'}", "--set", "compactor_cleaner=false")
    with serving(*options, home=tmp_path) as server:
        assert exported(dumped, server.uri).skipped == list(LEFT)
        back = reader(server.uri)
        found = compare(dumped, back, EVERYTHING, without_fields=SERVERS_OWN)
        back.close()
        own = [each for each in found.differences if not each.record.startswith(("position", "write_id_position"))]
        assert own == []
        with connect(server.uri) as client:
            assert client.get_ischema(idl.ISchemaName("hive", "sales", "s1")).description == "d"
            assert client.get_schema_version(idl.SchemaVersionDescriptor(idl.ISchemaName("hive", "sales", "s1"), 1)).fingerprint == "f"
            assert client.get_scheduled_query(idl.ScheduledQueryKey("nightly", "c1")).query == "select 1"
            assert invisible(client) == [2, 3]
        target = writer(server.uri)
        with pytest.raises(InvalidOperation, match="has tables: name an empty one"):
            move(dumped, target, EVERYTHING)
        target.close()
        again = exported(dumped, server.uri, resume=True)
        assert "table" not in again.counts


@pytest.mark.on_one_database
def test_refused_objects_are_named_and_the_rest_is_written(fresh_database_url: str, tmp_path: Path) -> None:
    """The refused object is a function of a missing database. The roles before and after it are written."""
    function: dict[str, object] = {"class_name": "c", "owner_name": None, "owner_type": None, "create_time": 0, "type": 1, "resources": []}
    given = [
        Record("role", ("one",), {"create_time": 0, "owner_name": None}),
        Record("function", ("hive", "gone", "f"), function),
        Record("role_grant", ("one", 1, "bob"), {"grant_option": 0, "grant_time": 0, "grantor": "admin", "grantor_type": 1}),
    ]

    class Given:
        name = "given"
        skipped: list[str] = []  # noqa: RUF012
        kinds: frozenset[str] = frozenset()
        seen = None

        def close(self) -> None: ...

        def tables(self, _: Selection) -> set[Key]:
            return set()

        def changes(self, after: int) -> None: ...

        def partitions(self) -> int:
            return 0

        def records(self, _: Selection) -> Iterator[Record]:
            return iter(given)

    with serving("--db", fresh_database_url, home=tmp_path) as server:
        target = writer(server.uri)
        moved = move(Given(), target, EVERYTHING)
        target.close()
        assert [text.split(":")[0] for text in moved.skipped] == ["function hive.gone.f"]
        with connect(server.uri) as client:
            members = client.get_principals_in_role(idl.GetPrincipalsInRoleRequest("one")).principalGrants
            assert [each.principalName for each in members] == ["bob"]


JAVAS = (*SERVERS_OWN, "numFiles", "totalSize", "numFilesErasureCoded", "COLUMN_STATS_ACCURATE")


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["postgresql", "mysql"])
def test_an_export_into_java(dumped: DumpReader, kind: str, tmp_path: Path) -> None:
    """An export to Java keeps bit vectors of statistics. It names the one managed table whose location Java refuses."""
    with contextmanager(databases.fresh)(kind, tmp_path) as url, java_metastore(url, tmp_path / "java") as uri:
        skipped = exported(dumped, uri).skipped
        assert skipped[0].startswith("table hive.sales.acid: create_table_req: A managed table's location should be located within managed")
        assert skipped[1:] == list(LEFT)
        back = reader(url)
        kept = EVERYTHING._replace(
            exclude=(("*", "sales", "acid"),),
            kinds=EVERYTHING.kinds - {"position", "transaction", "transaction_component", "write_id_position", "write_id", "compaction"},
        )
        differing = [each for each in compare(dumped, back, kept, without_fields=JAVAS).differences if not without_times(each.words)]
        back.close()
        assert differing == []
        with connect(uri) as client:
            assert invisible(client) == [2, 3]
            assert client.get_open_txns().txn_high_water_mark > 4


def without_times(words: str) -> bool:
    """Return whether only the times when statistics were made differ."""
    return all(part.startswith("statistics.") and "[1] is" in part for part in words.split("; "))
