"""Imports from databases that Java's metastore 4.0.1 has filled, and from other versions of its schema."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from sqlalchemy.engine import make_url

from metastore import idl
from metastore.client import connect
from metastore.errors import InvalidInput, MetaError
from metastore.transfer.comparing import compare
from metastore.transfer.hive.reader import NOT_READ, HiveReader
from metastore.transfer.moving import move
from metastore.transfer.opening import reader, writer
from metastore.transfer.records import KINDS, Record
from metastore.transfer.selection import EVERYTHING, TOGETHER, selection
from tests.support.catalog.full_catalog import Filler
from tests.support.catalog.same_replies import differences
from tests.support.databases import databases
from tests.support.engines.java_metastore import copy_rows, java_metastore, make_schema
from tests.support.servers.servers import serving
from tests.transfer.test_export import invisible

pytestmark = pytest.mark.slow
QUIET = ("--set", "compactor_cleaner=false")
"""Options of a server that cleans no imported rows while a test reads them."""
BIT_VECTORS = "bitVectors is only in the second"
"""An accepted difference: Java's database has bit vectors, and its server answers without them by default."""


class Java(NamedTuple):
    """A Java metastore with every kind of object."""

    uri: str
    url: str


@pytest.fixture(scope="module", params=databases.SERVERS)
def java(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Java]:
    folder = tmp_path_factory.mktemp("java")
    with contextmanager(databases.fresh)(request.param, folder) as url, java_metastore(url, folder / "server") as uri:
        with connect(uri) as client:
            Filler(client, f"file:{folder / 'data'}").everything()
        yield Java(uri, url)


@pytest.fixture
def imported(java: Java, tmp_path: Path) -> str:
    """URL of an imported database."""
    url = f"sqlite:///{tmp_path / 'imported.db'}"
    source, target = reader(java.url), writer(url)
    moved = move(source, target, EVERYTHING)
    source.close()
    target.close()
    assert moved.skipped[0].startswith("2 open transactions (3, 4) stay open")
    assert moved.skipped[1:] == ["locks: the client of an open transaction asks for them again"]
    return url


def test_an_import_has_the_content_of_java(java: Java, imported: str) -> None:
    one, other = reader(java.url), reader(imported)
    found = compare(one, other, EVERYTHING)
    assert found.differences == []
    assert found.equal
    assert found.counts["partition"] == (13, 13)
    one.close()
    other.close()


def test_a_client_sees_no_difference(java: Java, imported: str, tmp_path: Path) -> None:
    with serving("--db", imported, *QUIET, home=tmp_path) as server, connect(java.uri) as one, connect(server.uri) as other:
        found = [words for words in differences(one, other) if ".id is" not in words and BIT_VECTORS not in words]
        assert found == []
        statistics = idl.TableStatsRequest("sales", "bucketed", ["id"], catName="hive", engine="hive")
        assert other.get_table_statistics_req(statistics).tableStats[0].statsData.longStats.bitVectors.startswith(b"HLL")


def test_its_server_answers_with_the_objects_of_its_database(java: Java) -> None:
    """Records read from Hive's tables are the same as those read through Java's server."""
    one, other = reader(java.url), reader(java.uri)
    found = compare(one, other, EVERYTHING)
    assert found.differences == []
    assert len(found.counts) > 12
    one.close()
    other.close()


def test_open_transactions_go_on_at_the_new_server(java: Java, imported: str, tmp_path: Path) -> None:
    with serving("--db", imported, *QUIET, home=tmp_path) as server, connect(server.uri) as client:
        client.heartbeat(idl.HeartbeatRequest(txnid=3))
        client.commit_txn(idl.CommitTxnRequest(txnid=3))
        found = client.get_valid_write_ids(idl.GetValidWriteIdsRequest(fullTableNames=["sales.acid"])).tblValidWriteIds[0]
        assert (found.writeIdHighWaterMark, found.invalidWriteIds) == (3, [2])
        (new,) = client.open_txns(idl.OpenTxnRequest(1, "u", "h")).txn_ids
        with connect(java.uri) as old:
            last = old.get_open_txns().txn_high_water_mark
        assert new == last + 1
        given = client.allocate_table_write_ids(idl.AllocateTableWriteIdsRequest(dbName="sales", tableName="acid", txnIds=[new]))
        assert given.txnToWriteIds[0].writeId == 4


def test_the_source_is_only_read(java: Java) -> None:
    source = reader(java.url)
    assert isinstance(source, HiveReader)
    with pytest.raises(MetaError, match=r"(?i)read.only"), source.database.reading() as session:
        session.cursor.execute('DELETE FROM "SORT_COLS"' if "postgresql" in java.url else "DELETE FROM SORT_COLS")
    assert source.partitions() == 13
    source.close()


def test_a_part_of_it(java: Java) -> None:
    source = reader(java.url)
    found = list(source.records(selection(["sales.o*"])))
    assert {record.key for record in found if record.kind == "table"} == {("hive", "sales", "orders")}
    assert {record.kind for record in found}.isdisjoint({"role", "transaction", "position"})
    found = list(source.records(selection(exclude=["sales"])))
    assert not [record for record in found if record.kind == "table"]
    source.close()


def test_readers_see_the_same_rows_of_a_table_that_came_alone(java: Java, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'part.db'}"
    source, target = reader(java.url), writer(url)
    move(source, target, selection(["sales.acid"]))
    source.close()
    target.close()
    with serving("--db", url, *QUIET, home=tmp_path) as server, connect(server.uri) as client:
        for each in client.open_txns(idl.OpenTxnRequest(5, "u", "h")).txn_ids:
            client.commit_txn(idl.CommitTxnRequest(txnid=each))
        assert invisible(client) == [2, 3]


def test_a_dry_run_reads_all(java: Java) -> None:
    source = reader(java.url)
    moved = move(source, None, EVERYTHING)
    source.close()
    assert moved.counts["table"] == 6
    assert len(moved.skipped) == 2


def test_only_objects_of_wanted_kinds_are_named_as_not_moved(java: Java) -> None:
    """Open transactions and locks are named only if transactions are among the chosen kinds."""
    source = reader(java.url)
    together = [*TOGETHER[0]]
    choices = (selection(kinds=["table"]), selection(without=together), selection(["sales"]), selection(kinds=together))
    skipped = [[text.split(":")[0] for text in move(source, None, chosen).skipped] for chosen in choices]
    source.close()
    assert skipped == [[], [], *2 * [["2 open transactions (3, 4) stay open", "locks"]]]


def test_tables_that_are_not_read_belong_to_kinds_of_records() -> None:
    """Otherwise no choice of kinds could include such a table, and its warning would never be shown."""
    assert {kind for kind, _ in NOT_READ.values()} <= {*KINDS}


OLD = {"connector", "scheduled_query", "procedure", "package"}


def test_its_log_names_the_changed_objects(java: Java) -> None:
    """The rows are as a listener writes them, which Java's server does not have by default."""
    url = make_url(java.url)
    quote = '"{}"' if url.get_backend_name() == "postgresql" else "`{}`"
    log, sequence = (quote.format(name) for name in ("NOTIFICATION_LOG", "NOTIFICATION_SEQUENCE"))
    columns = ("NL_ID", "EVENT_ID", "EVENT_TIME", "EVENT_TYPE", "CAT_NAME", "DB_NAME", "TBL_NAME", "MESSAGE")
    into = f"INSERT INTO {log} ({', '.join(map(quote.format, columns))}) VALUES"
    source = reader(java.url)
    try:
        assert source.changes(0) is not None
        databases.execute(url, f"UPDATE {sequence} SET {quote.format('NEXT_EVENT_ID')} = 4")
        assert source.changes(0) is None
        for event, table in ((1, "'orders'"), (2, "NULL"), (3, "'v'")):
            databases.execute(url, f"{into} ({event + 10}, {event}, 1, 'X', 'hive', 'sales', {table}, 'm')")
        assert source.changes(0) == (3, {("hive", "sales", "orders"), ("hive", "sales", "v")})
        assert source.changes(2) == (3, {("hive", "sales", "v")})
        assert source.changes(3) == (3, frozenset())
        databases.execute(url, f"DELETE FROM {log} WHERE {quote.format('EVENT_ID')} = 1")
        assert source.changes(0) is None
        assert source.changes(1) == (3, {("hive", "sales", "v")})
        assert len(source.tables(EVERYTHING)) == 6
    finally:
        databases.execute(url, f"DELETE FROM {log}", f"UPDATE {sequence} SET {quote.format('NEXT_EVENT_ID')} = 1")
        source.close()


ABSENT = {"3.1.0": OLD, "2.3.0": {*OLD, "resource_plan", "schema", "schema_version", "write_id", "write_id_position"}}
"""The kinds without tables in a version of the schema."""


@pytest.mark.parametrize("version", ABSENT)
def test_older_schemas(java: Java, version: str, tmp_path: Path) -> None:
    """An older schema with the newest schema's rows: values without a table or column in it are absent, all others are the same."""
    kind = make_url(java.url).get_backend_name()
    with contextmanager(databases.fresh)(kind, tmp_path) as url:
        make_schema(make_url(url), version)
        copy_rows(make_url(java.url), make_url(url))
        one, other = reader(java.url), reader(url)
        whole, older = ({(record.kind, record.key): record for record in each.records(EVERYTHING)} for each in (one, other))
        assert {kind for kind, _ in whole} - {kind for kind, _ in older} - {"server"} == ABSENT[version]
        for key, record in older.items():
            if record.kind in ("function", "role", "role_grant", "partition", "descriptor", "compaction"):
                assert without_versions(record) == without_versions(whole[key])
            elif record.kind == "catalog":
                assert record.key[0] in ("hive", "lake")
        url_of_target = f"sqlite:///{tmp_path / 'x.db'}"
        target = writer(url_of_target)
        moved = move(other, target, EVERYTHING)
        assert any(text.startswith("write ids: Hive 2 has none") for text in moved.skipped) is (version == "2.3.0")
        target.close()
        back = reader(url_of_target)
        assert compare(other, back, EVERYTHING).differences == []
        for each in (one, other, back):
            each.close()


NEWER = {
    "pool",
    "initiator",
    "initiator_version",
    "worker_version",
    "cleaner_started_ms",
    "buckets",
    "order_by",
    "committed_ms",
    "write_id",
}
NEWER |= {"enqueued_ms", "statistics", "next_transaction_id", "transaction_id"}


def without_versions(record: Record) -> Record:
    return record._replace(body={name: value for name, value in record.body.items() if name not in NEWER})


def test_other_databases_are_refused(tmp_path: Path) -> None:
    for kind in ("postgresql", "mysql"):
        with contextmanager(databases.fresh)(kind, tmp_path) as url:
            with pytest.raises(InvalidInput, match="holds no metastore"):
                reader(url)
            make_schema(make_url(url), "4.0.0")
            databases.execute(
                make_url(url),
                {"postgresql": 'UPDATE "VERSION" SET "SCHEMA_VERSION" = \'1.2.0\'', "mysql": "UPDATE VERSION SET SCHEMA_VERSION = '1.2.0'"}[
                    kind
                ],
            )
            with pytest.raises(InvalidInput, match=r"has Hive's schema 1\.2\.0; 2\.3 to 4\.x are read"):
                reader(url)
