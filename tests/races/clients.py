"""Processes of clients that call a server at once, as engines do. Their observations are judged elsewhere."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from signal import SIGKILL
from traceback import format_exc
from typing import Any, TypeVar

from thriftpy2.thrift import TApplicationException

from metastore.app import build, close
from metastore.config import Config
from metastore.errors import MetastoreError
from metastore.idl import (
    AllocateTableWriteIdsRequest,
    CommitTxnRequest,
    DataOperationType,
    LockComponent,
    LockLevel,
    LockRequest,
    LockState,
    LockType,
    OpenTxnRequest,
    TxnAbortedException,
    service,
)
from metastore.methods import METHODS
from metastore.methods.interface.errors import failure
from metastore.service.call.context import Call
from metastore.service.call.context import Client as Caller
from tests.support.catalog.replies import in_structs

T = TypeVar("T")
CONTEXT = get_context("fork")


def in_processes(work: Callable[[int], T], number: int) -> list[T]:
    """Run `work` in several processes, each with its number. Return their results. AssertionError if one fails."""
    pipes: dict[Connection, BaseProcess] = {}
    for place in range(number):
        ours, theirs = CONTEXT.Pipe(duplex=False)
        process = CONTEXT.Process(target=_report, args=(work, place, theirs))
        process.start()
        theirs.close()
        pipes[ours] = process
    results: dict[Connection, T] = {}
    try:
        while len(results) < number:
            for pipe in pipes.keys() & wait(pipes.keys() - results.keys()):
                failure, results[pipe] = pipe.recv()
                assert failure is None, failure
    finally:
        for each in pipes.values():
            if len(results) < number:
                each.kill()
            each.join()
    return [results[pipe] for pipe in pipes]


def _report(work: Callable[[int], T], place: int, results: Connection) -> None:
    try:
        results.send((None, work(place)))
    except BaseException:
        results.send((format_exc(), None))
        raise


def die() -> None:
    """End this process as `kill -9` does."""
    os.kill(os.getpid(), SIGKILL)


class Within:
    """A client with a server in its own process, without a socket. It has the methods of `Client`, without the cost of the wire."""

    def __init__(self, config: Config) -> None:
        self._metastore = build(config)
        self._client = Caller("within", user="alice")

    def __enter__(self) -> Within:  # noqa: PYI034  # Self needs Python 3.11
        return self

    def __exit__(self, *_: object) -> None:
        close(self._metastore)

    def __getattr__(self, method: str) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            arguments = getattr(service, f"{method}_args")()
            for field, value in zip(arguments.thrift_spec.values(), args, strict=False):
                setattr(arguments, field[1], value)
            try:
                return in_structs(method, METHODS[method].handler(Call(self._metastore, self._client, method), arguments))
            except MetastoreError as error:
                reply = failure(method, error)
                if isinstance(reply, TApplicationException):
                    raise reply from error
                raise next(each for each in vars(reply).values() if each is not None) from error

        return call


def open_many(client: Any, number: int) -> list[int]:
    return list(client.open_txns(OpenTxnRequest(num_txns=number, user="alice", hostname="here")).txn_ids)


def open_one(client: Any) -> int:
    return open_many(client, 1)[0]


def ask(client: Any, key: int, name: str, kind: int, operation: int) -> tuple[int, int]:
    """Request a lock on a table `database.table` for a transaction, or for none (0). Return the lock's id and state."""
    database, _, table = name.partition(".")
    component = LockComponent(
        type=kind, level=LockLevel.TABLE, dbname=database, tablename=table, operationType=operation, isTransactional=True
    )
    answer = client.lock(LockRequest(component=[component], txnid=key, user="alice", hostname="here", zeroWaitReadEnabled=False))
    return answer.lockid, answer.state


def exclusive(client: Any, key: int, name: str) -> tuple[int, int]:
    return ask(client, key, name, LockType.EXCLUSIVE, DataOperationType.NO_TXN)


def allocate(client: Any, keys: Sequence[int], name: str) -> list[int]:
    """Allocate a write id in a table for each of the transactions, in ascending order."""
    database, _, table = name.partition(".")
    request = AllocateTableWriteIdsRequest(dbName=database, tableName=table, txnIds=list(keys))
    return [int(each.writeId) for each in client.allocate_table_write_ids(request).txnToWriteIds]


def note_update(client: Any, key: int, name: str) -> None:
    """Take the lock by which a transaction declares an update of a table. It is granted at once, beside other writers."""
    assert ask(client, key, name, LockType.SHARED_WRITE, DataOperationType.UPDATE)[1] == LockState.ACQUIRED


def wins(client: Any, key: int) -> bool:
    """Commit; return False if the transaction was aborted for a conflict."""
    try:
        client.commit_txn(CommitTxnRequest(txnid=key))
    except TxnAbortedException as error:
        assert "write conflict" in error.message, error.message  # noqa: PT017  # anything else is a failure
        return False
    return True
