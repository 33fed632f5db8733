"""Transactions of the pipeline's own: a failed commit ends one too, and no heartbeat is sent after its end."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from metastore.acid.transactions import Transaction
from metastore.client import connect
from metastore.idl import AbortTxnRequest, TxnAbortedException
from tests.support.servers.servers import Server, serving


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with serving("--warehouse", str(tmp_path / "warehouse"), "--workers", "1", home=tmp_path / "home") as running:
        yield running


def kept_alive(transaction: Transaction) -> bool:
    """Return whether heartbeats are still sent a moment later."""
    name = f"heartbeat-{transaction.id}"
    for thread in threading.enumerate():
        if thread.name == name:
            thread.join(5)
    return any(thread.name == name for thread in threading.enumerate())


def test_a_commit_that_no_server_answers_ends_the_transaction(server: Server) -> None:
    reader, writer = (Transaction.begin(server.uri, read_only=read_only) for read_only in (True, False))
    server.kill()
    for transaction in (reader, writer):
        with pytest.raises(OSError, match="No metastore answers"):
            transaction.commit()
        assert not transaction.is_open
        assert not kept_alive(transaction)
    with pytest.raises(OSError, match="No metastore answers"):
        Transaction.begin(server.uri)


def test_a_commit_that_is_refused_ends_the_transaction(server: Server) -> None:
    transaction = Transaction.begin(server.uri)
    with connect(server.uri) as client:
        client.abort_txn(AbortTxnRequest(txnid=transaction.id))
    with pytest.raises(TxnAbortedException):
        transaction.commit()
    assert not transaction.is_open
    assert not kept_alive(transaction)
