"""Send heartbeats for a transaction that another process began. This module never ends the transaction."""

from __future__ import annotations

import threading
from contextlib import suppress

from metastore import idl
from metastore.acid.transactions import TransactionLost
from metastore.client import connect
from metastore.idl import HeartbeatRequest

INTERVAL_SECONDS = 60.0


class Heartbeats:
    """A context in which a transaction gets heartbeats. Only `check` shows whether the transaction has ended."""

    def __init__(self, uri: str, transaction: int) -> None:
        self._uri = uri
        self._client = connect(uri)
        self._request = HeartbeatRequest(lockid=0, txnid=transaction)
        self._ended = threading.Event()

    def __enter__(self) -> Heartbeats:  # noqa: PYI034  # Self needs Python 3.11
        threading.Thread(target=self._beat, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()

    def check(self) -> None:
        """Ask the server whether the transaction is open. TransactionLost."""
        with connect(self._uri) as client:
            try:
                client.heartbeat(self._request)
            except (idl.NoSuchTxnException, idl.TxnAbortedException) as error:
                raise TransactionLost(f"transaction {self._request.txnid} is lost: {error}") from error

    def _beat(self) -> None:
        while True:
            with suppress(Exception):
                self._client.heartbeat(self._request)
            if self._ended.wait(INTERVAL_SECONDS):
                self._client.close()
                return
