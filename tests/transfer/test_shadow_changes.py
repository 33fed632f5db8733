"""`metastore shadow --send-changes` between real servers: changes go to both sides, and both have the same state at each call."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from thriftpy2.thrift import TApplicationException, TMessageType

from metastore import idl
from metastore.client import Client, connect
from metastore.shadow.upstream import LIMITS
from metastore.wire.messages.protocol import Dialect, read_message, write_message
from metastore.wire.sockets.transport import EndOfStream, Feed
from tests.support.servers.servers import Server, free_port, serving
from tests.support.servers.shadow import shadowing
from tests.support.servers.waiting import until

CLIENTS = 6
ROUNDS = 15


def both(stack: ExitStack, tmp_path: Path, *more: str) -> tuple[Server, Server]:
    """Start two empty servers that share a warehouse; `more` are options of the second."""
    options = ("--workers", "1", "--warehouse", str(tmp_path / "warehouse"))
    old = stack.enter_context(serving(*options, home=tmp_path / "old"))
    return old, stack.enter_context(serving(*options, *more, home=tmp_path / "new"))


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[Server, Server]]:
    with ExitStack() as stack:
        yield both(stack, tmp_path)


def table(name: str) -> Any:
    sd = idl.StorageDescriptor(cols=[idl.FieldSchema("a", "int")], serdeInfo=idl.SerDeInfo(name="s"))
    return idl.Table(dbName="default", tableName=name, sd=sd, parameters={}, tableType="MANAGED_TABLE")


def test_changes_go_to_both(pair: tuple[Server, Server], tmp_path: Path) -> None:
    """Both sides have a change before the client's reply. Ids of transactions and locks are the same, and both sides keep them alive."""
    old, new = pair
    with shadowing(old.uri, new.uri, tmp_path / "shadow", "--send-changes") as shadow:
        with connect(shadow.uri) as client, connect(new.uri) as direct:
            client.create_table(table("t"))
            assert direct.get_table("default", "t").tableName == "t"
            (txn,) = client.open_txns(idl.OpenTxnRequest(1, "ann", "h")).txn_ids
            component = idl.LockComponent(type=idl.LockType.SHARED_WRITE, level=idl.LockLevel.TABLE, dbname="default", tablename="t")
            held = client.lock(idl.LockRequest(component=[component], txnid=txn, user="ann", hostname="h"))
            client.check_lock(idl.CheckLockRequest(lockid=held.lockid, txnid=txn))
            client.heartbeat(idl.HeartbeatRequest(lockid=held.lockid, txnid=txn))
            client.commit_txn(idl.CommitTxnRequest(txnid=txn))
            assert direct.get_open_txns().txn_high_water_mark == txn
            client.getVersion()
            client.drop_table("default", "t", True)
            assert direct.get_all_tables("default") == []
        counts = shadow.end()
    wanted = ("create_table", "open_txns", "lock", "check_lock", "heartbeat", "commit_txn", "drop_table")
    assert counts == {name: {"same": 1} for name in sorted(wanted)}


def test_a_change_that_one_side_refuses_is_a_difference(pair: tuple[Server, Server], tmp_path: Path) -> None:
    old, new = pair
    for server, name in ((old, "first"), (new, "second")):
        with connect(server.uri) as direct:
            direct.create_table(table(name))
    with shadowing(old.uri, new.uri, tmp_path / "shadow", "--send-changes") as shadow:
        with connect(shadow.uri) as client:
            with pytest.raises(idl.AlreadyExistsException):
                client.create_table(table("first"))
            client.create_table(table("second"))
        assert shadow.end() == {"create_table": {"different": 2}}
    one, other = shadow.differences()
    assert (one["path"], one["primary"].split(":")[0], one["secondary"]) == ("", "AlreadyExistsException", "an answer")
    assert (other["path"], other["primary"], other["secondary"].split(":")[0]) == ("", "an answer", "AlreadyExistsException")


@pytest.mark.parametrize("accepts", [True, False])
def test_moves_in_one_warehouse(tmp_path: Path, accepts: bool) -> None:
    """The secondary finds the directories already moved. It accepts that only with its setting for that."""
    with ExitStack() as stack:
        old, new = both(stack, tmp_path, "--set", f"accept_moved_directories={str(accepts).lower()}")
        shadow = stack.enter_context(shadowing(old.uri, new.uri, tmp_path / "shadow", "--send-changes"))
        client = stack.enter_context(connect(shadow.uri))
        for name in ("t", "source", "target"):
            made = table(name)
            made.partitionKeys = [idl.FieldSchema("p", "string")]
            client.create_table(made)
        partition = client.append_partition("default", "t", ["a"])
        partition.values = ["b"]
        client.rename_partition("default", "t", ["a"], partition)
        client.append_partition("default", "source", ["a"])
        client.exchange_partition({"p": "a"}, "default", "source", "default", "target")
        renamed = client.get_table("default", "t")
        renamed.tableName = "u"
        client.alter_table("default", "t", renamed)
        outcomes = {name: {*counts} for name, counts in shadow.end().items()}
        if not accepts:
            assert {outcomes.pop(name).pop() for name in ("rename_partition", "exchange_partition", "alter_table")} == {"different"}
        assert all(each == {"same"} for each in outcomes.values()), shadow.differences()
        with connect(new.uri) as direct:
            if accepts:
                assert direct.get_partition_names("default", "u", -1) == ["p=b"]
                (moved,) = direct.get_partitions("default", "u", -1)
                assert moved.sd.location == f"file:{tmp_path}/warehouse/u/p=b"
                assert direct.get_partition_names("default", "target", -1) == ["p=a"]
    assert (tmp_path / "warehouse/u/p=b").is_dir()
    assert (tmp_path / "warehouse/target/p=a").is_dir()


def test_all_clients_find_the_same_state_on_both_sides(pair: tuple[Server, Server], tmp_path: Path) -> None:
    old, new = pair
    begin = threading.Barrier(CLIENTS)

    def work(client: Client) -> None:
        begin.wait()
        for round_ in range(ROUNDS):
            name = f"t{round_ % 2}"
            with suppress(idl.AlreadyExistsException):
                client.create_table(table(name))
            client.get_all_tables("default")
            client.open_txns(idl.OpenTxnRequest(1, "ann", "h"))
            with suppress(idl.NoSuchObjectException):
                client.drop_table("default", name, True)

    with shadowing(old.uri, new.uri, tmp_path / "shadow", "--send-changes") as shadow:
        with ExitStack() as stack, ThreadPoolExecutor(CLIENTS) as pool:
            list(pool.map(work, [stack.enter_context(connect(shadow.uri)) for _ in range(CLIENTS)]))
        methods = ("create_table", "drop_table", "get_all_tables", "open_txns")
        assert shadow.end() == {method: {"same": CLIENTS * ROUNDS} for method in methods}


def test_a_secondary_that_is_gone_and_comes_back(tmp_path: Path) -> None:
    """The client gets the primary's answers meanwhile. Afterwards the shadow sends the user's name to the secondary again."""
    with ExitStack() as stack:
        old = stack.enter_context(serving("--workers", "1", home=tmp_path / "old"))
        again = ("--workers", "1", "--port", str(free_port()))
        new = stack.enter_context(serving(*again, home=tmp_path / "new"))
        shadow = stack.enter_context(shadowing(old.uri, new.uri, tmp_path / "shadow", "--send-changes"))
        client = stack.enter_context(connect(shadow.uri))
        client.set_ugi("ann", [])
        new.kill()
        client.create_table(table("t"))
        assert client.get_all_tables("default") == ["t"]
        new = stack.enter_context(serving(*again, home=tmp_path / "new"))
        direct = stack.enter_context(connect(new.uri))

        numbers = count()

        def arrived() -> list[str]:
            client.create_database(idl.Database(name=f"late{next(numbers)}", parameters={}))
            return direct.get_databases("late*")

        first, *_ = until(arrived, is_there=bool, missing="a database at the secondary")
        assert direct.get_database(first).ownerName == "ann"
        counts = shadow.end()
    assert counts["create_table"] == counts["get_all_tables"] == {"unanswered": 1}


def test_a_method_that_the_primary_lacks_is_not_sent(tmp_path: Path) -> None:
    """The secondary does not get the call: the client will repeat its request by another method."""
    dialect = Dialect("binary", framed=False)
    reply = write_message(
        dialect, "create_table_req", TMessageType.EXCEPTION, 0, TApplicationException(TApplicationException.UNKNOWN_METHOD, "none such")
    )

    def answer(listener: socket.socket) -> None:
        with listener.accept()[0] as sock, suppress(EndOfStream):
            feed = Feed(sock.recv)
            while True:
                read_message(feed, dialect, LIMITS, lambda *_: None)
                sock.sendall(reply)

    with ExitStack() as stack:
        listener = stack.enter_context(closing(socket.create_server(("127.0.0.1", 0))))
        primary = threading.Thread(target=answer, args=(listener,), daemon=True)
        primary.start()
        new = stack.enter_context(serving("--workers", "1", home=tmp_path / "new"))
        old = f"thrift://127.0.0.1:{listener.getsockname()[1]}"
        shadow = stack.enter_context(shadowing(old, new.uri, tmp_path / "shadow", "--send-changes"))
        with connect(shadow.uri) as client, pytest.raises(TApplicationException, match="none such"):
            client.create_table_req(idl.CreateTableRequest(table=table("t")))
        assert shadow.end() == {"create_table_req": {"unknown": 1}}
        with connect(new.uri) as direct:
            assert direct.get_all_tables("default") == []
        primary.join(30)
