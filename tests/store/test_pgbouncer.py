"""PgBouncer between the server and PostgreSQL, by session, and by transaction, which the settings of the server have to declare."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest
from sqlalchemy.engine import URL, make_url

from metastore.app import build, close, prepare
from metastore.config import Config
from metastore.errors import MetaError
from metastore.idl import AllocateTableWriteIdsRequest, CommitTxnRequest, LockComponent, LockRequest, LockState, OpenTxnRequest
from metastore.service.catalog.partitions import partitions
from metastore.service.catalog.tables import tables
from metastore.service.transactions.commit import commit_transaction
from metastore.service.transactions.locks import lock
from metastore.service.transactions.transactions import open_transactions
from metastore.service.transactions.write_ids import allocate_write_ids
from tests.support.catalog.catalog import add_partitions, call_of, make_table
from tests.support.databases import databases
from tests.support.databases.pgbouncer import PROGRAM, pooler

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="PgBouncer is not installed")

OTHERS = "not pgbouncer and not test_postgresql and not without_statistics and not test_plans"
"""All tests but the ones of this file, of prepared statements, and of query plans."""


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[URL]:
    """The URL of a PostgreSQL database without tables."""
    for url in databases.fresh("postgresql", tmp_path):
        yield make_url(url)


def config_of(url: URL, folder: Path) -> Config:
    return Config(db=url.render_as_string(hide_password=False), warehouse=str(folder / "warehouse"), data_directory=str(folder / "data"))


def test_a_server_says_at_its_start_that_sessions_are_parted(empty: URL, tmp_path: Path) -> None:
    with pooler(empty, "transaction") as url:
        with pytest.raises(MetaError, match=r"prepared_statements=false"):
            prepare(config_of(url, tmp_path))
        assert databases.execute(empty, "SELECT relname FROM pg_class WHERE relname = 'databases'") == []


def test_a_url_says_true_or_false(empty: URL, tmp_path: Path) -> None:
    with pytest.raises(MetaError, match="write true or false"):
        prepare(config_of(empty.update_query_dict({"prepared_statements": "no"}), tmp_path))


@pytest.mark.parametrize(
    ("mode", "query"), [("session", {}), ("session", {"prepared_statements": "false"}), ("transaction", {"prepared_statements": "false"})]
)
def test_everything_works_behind_a_pooler(mode: str, query: dict[str, str], empty: URL, tmp_path: Path) -> None:
    with ExitStack() as stack:
        url = stack.enter_context(pooler(empty, mode)).update_query_dict(query)
        prepare(config_of(url, tmp_path))
        metastore = build(config_of(url, tmp_path))
        stack.callback(close, metastore)
        call = call_of(metastore)

        def work(number: int) -> None:
            name = make_table(call, f"t{number}", keys=[("k", "int")])
            for first in range(0, 400, 100):  # few rows go as arrays, many as a stream
                add_partitions(call, name, [[str(value)] for value in range(first, first + 100)])
            assert len(partitions.get_partitions(call, name, partitions.by_filter("k > 300"))) == 99
            for _ in range(5):
                (transaction,) = open_transactions(call, OpenTxnRequest(num_txns=1, user="u", hostname="h"))
                request = AllocateTableWriteIdsRequest(dbName="default", tableName=name.table, txnIds=[transaction])
                assert list(allocate_write_ids(call, request)) == [transaction]
                component = LockComponent(type=1, level=2, dbname="default", tablename=name.table, operationType=4)
                assert lock(call, LockRequest(component=[component], txnid=transaction, user="u", hostname="h")).state == LockState.ACQUIRED
                commit_transaction(call, CommitTxnRequest(txnid=transaction))
            tables.drop_table(call, name, delete_data=True)

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(work, range(8)))
        assert tables.get_tables(call, "hive", "default", "*") == []


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_the_suite_passes_where_sessions_are_parted() -> None:
    with pooler(databases.server("postgresql"), "transaction") as url:
        address = url.update_query_dict({"prepared_statements": "false"}).render_as_string(hide_password=False)
        command = [sys.executable, "-m", "pytest", "-q", "tests/service", "tests/races", "-k", f"postgresql and {OTHERS}"]
        done = subprocess.run(
            command, env={**os.environ, "METASTORE_TEST_POSTGRESQL": address}, capture_output=True, text=True, check=False
        )
    assert done.returncode == 0, done.stdout[-4000:]
