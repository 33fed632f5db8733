from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator

import pytest
from thriftpy2.protocol import TBinaryProtocol, TCompactProtocol
from thriftpy2.thrift import TApplicationException, TClient
from thriftpy2.transport import TBufferedTransport, TFramedTransport, TSocket

from metastore import idl
from metastore.client import Client, connect
from metastore.methods.interface.signatures import signature
from metastore.wire.connection.server import ServerThread
from metastore.wire.messages.protocol import Dialect, write_message
from tests.support.servers.stub_server import Start, Stub

DIALECTS = [(protocol, framed) for protocol in ("binary", "compact") for framed in (False, True)]


@pytest.fixture(params=DIALECTS, ids=lambda d: f"{d[0]}-{'framed' if d[1] else 'buffered'}")
def client(request: pytest.FixtureRequest, server: ServerThread) -> Iterator[Client]:
    protocol, framed = request.param
    with connect(server.uri, timeout=10, framed=framed, protocol=protocol) as client:
        yield client


def application_error(client: Client, method: str, *args: object) -> TApplicationException:
    with pytest.raises(TApplicationException) as caught:
        client.call(method, *args)
    return caught.value


def test_every_dialect_is_recognised_on_one_port(client: Client) -> None:
    assert client.getStatus() == 2
    table = client.get_table("d", "t")
    assert (table.dbName, table.tableName, table.parameters) == ("d", "t", {"k": "v"})


@pytest.mark.parametrize("protocol", [TBinaryProtocol, TCompactProtocol])
@pytest.mark.parametrize("transport", [TBufferedTransport, TFramedTransport])
def test_thriftpy2s_own_client_is_served(server: ServerThread, protocol: type, transport: type) -> None:
    trans = transport(TSocket(server.host, server.port))
    trans.open()
    client = TClient(idl.service, protocol(trans))
    assert client.getName()
    assert client.get_table("d", "t").tableName == "t"
    with pytest.raises(idl.NoSuchObjectException):
        client.get_table("d", "missing")
    client.close()


def test_a_declared_error_reaches_the_client_and_the_connection_lives(client: Client) -> None:
    with pytest.raises(idl.NoSuchObjectException) as caught:
        client.get_table("d", "missing")
    assert caught.value.message == "Table d.missing is not there"
    assert client.getStatus() == 2


def test_an_unknown_method_answers_with_javas_text_and_the_connection_lives(client: Client) -> None:
    error = application_error(client, "drop_table", "d", "t", False)
    assert (error.type, error.message) == (TApplicationException.UNKNOWN_METHOD, "Invalid method name: 'drop_table'")
    assert client.getStatus() == 2


def test_an_undeclared_error_becomes_a_meta_exception_where_that_is_declared(client: Client) -> None:
    with pytest.raises(idl.MetaException) as caught:
        client.get_metastore_db_uuid()
    assert caught.value.message == "undeclared there"


def test_an_undeclared_error_without_meta_exception_is_an_internal_error(client: Client) -> None:
    error = application_error(client, "heartbeat", idl.HeartbeatRequest())
    assert (error.type, error.message) == (
        TApplicationException.INTERNAL_ERROR, "Internal error processing heartbeat: undeclared, and no MetaException either",
    )  # fmt: skip
    assert client.getStatus() == 2


def test_a_bug_in_a_handler_becomes_a_meta_exception(client: Client) -> None:
    with pytest.raises(idl.MetaException) as caught:
        client.alter_table("d", "t", idl.Table())
    assert caught.value.message == "ValueError: a bug"


def test_a_result_of_the_wrong_type_is_an_internal_error_and_no_half_reply(client: Client) -> None:
    error = application_error(client, "get_databases", "*")
    assert error.type == TApplicationException.INTERNAL_ERROR
    assert client.getStatus() == 2


def test_a_result_may_bring_its_own_bytes(client: Client) -> None:
    assert client.get_role_names() == ["a=1", "a=2"]
    assert client.getStatus() == 2


def test_oneway_methods_have_no_reply_and_end_nothing(client: Client) -> None:
    client.shutdown()
    client.reinitialize()
    assert client.getStatus() == 2


def test_a_skewed_table_arrives_with_tuple_keys(client: Client, stub: Stub) -> None:
    skewed = idl.SkewedInfo(
        skewedColNames=["a", "b"],
        skewedColValues=[["1", "2"]],
        skewedColValueLocationMaps={("1", "2"): "file:/x", ("3", "4"): "file:/y"},
    )
    client.create_table(idl.Table(tableName="t", sd=idl.StorageDescriptor(skewedInfo=skewed), parameters={"p": "q"}))
    table = stub.seen[0].tbl
    assert table.sd.skewedInfo == skewed
    assert table.parameters == {"p": "q"}
    assert client.getStatus() == 2


def test_a_field_that_was_not_sent_is_none(client: Client, stub: Stub) -> None:
    client.create_table(idl.Table(tableName="t"))
    table = stub.seen[0].tbl
    assert (table.writeId, table.ownerType, table.temporary, table.parameters) == (None, None, None, None)


def test_an_empty_container_is_not_an_absent_one(client: Client, stub: Stub) -> None:
    client.create_table(idl.Table(parameters={}, partitionKeys=[]))
    table = stub.seen[0].tbl
    assert (table.parameters, table.partitionKeys) == ({}, [])


def test_text_that_is_no_utf8_is_an_error_that_names_the_field(client: Client) -> None:
    with pytest.raises(idl.MetaException) as caught:
        client.get_table(b"d\xff", "t")
    assert caught.value.message == "get_table_args.dbname of get_table is not UTF-8; send text as UTF-8"
    assert client.getStatus() == 2


def test_text_that_is_no_utf8_is_the_one_error_that_get_config_value_declares(client: Client) -> None:
    with pytest.raises(idl.ConfigValSecurityException, match="name of get_config_value is not UTF-8"):
        client.get_config_value(b"hive\xff", "x")
    assert client.getStatus() == 2


def test_text_of_any_script_passes(client: Client) -> None:
    assert client.get_table("δ", "表\U0001f600").tableName == "表\U0001f600"


def test_long_strings_pass(client: Client) -> None:
    name = "x" * 3_000_000
    assert client.get_table("d", name).tableName == name
    assert client.get_table("d", "t").tableName == "t"


def test_create_ischema_fails_in_the_field_of_both_releases(server: ServerThread) -> None:
    with socket.create_connection((server.host, server.port), 10) as sock:
        arguments = idl.service.create_ischema_args(schema=idl.ISchema())
        sock.sendall(write_message(Dialect("binary", framed=True), "create_ischema", 1, 5, arguments))
        frame = receive_frame(sock)
    assert b"\x0c\xff\xff\x0b\x00\x01" in frame
    assert b"\x0c\x00\x02\x0b\x00\x01" in frame


def receive_frame(sock: socket.socket) -> bytes:
    size = int.from_bytes(receive(sock, 4), "big")
    return receive(sock, size)


def receive(sock: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        part = sock.recv(size - len(data))
        assert part
        data += part
    return data


def test_pipelined_calls_are_answered_in_order(server: ServerThread) -> None:
    dialect = Dialect("binary", framed=False)
    calls = [
        write_message(dialect, "get_table", 1, number, idl.service.get_table_args(dbname="d", tbl_name="t" * number))
        for number in range(200)
    ]
    expected = [
        write_message(
            dialect, "get_table", 2, number,
            idl.service.get_table_result(
                success=idl.Table(dbName="d", tableName="t" * number, parameters={"k": "v"})
            ),
        )
        for number in range(200)
    ]  # fmt: skip
    with socket.create_connection((server.host, server.port), 10) as sock:
        writer = threading.Thread(target=sock.sendall, args=(b"".join(calls),))
        writer.start()
        received = receive(sock, sum(map(len, expected)))
        writer.join()
    assert received == b"".join(expected)


def test_an_old_message_without_version_header_is_answered(raw: socket.socket) -> None:
    raw.sendall(b"\0\0\0\x09getStatus\x01\0\0\0\x07\0")
    assert receive(raw, 4) == b"\x80\x01\0\x02"
    assert receive(raw, 13) == b"\0\0\0\x09getStatus"


def test_the_object_of_a_call_has_the_clients_name(client: Client, stub: Stub) -> None:
    client.create_database(idl.Database(name="Sales"))
    assert [each.object for each in stub.ends.seen] == ["Sales"]


def test_every_call_ends_at_the_listeners_with_its_object(client: Client, stub: Stub) -> None:
    client.get_table("d", "t")
    with pytest.raises(idl.NoSuchObjectException):
        client.get_table("d", "missing")
    first, second = stub.ends.seen
    assert (first.client.method, first.success, first.object) == ("get_table", True, "d.t")
    assert (type(second.error).__name__, second.success, second.object) == ("NoSuchObject", False, "d.missing")


def test_a_failing_listener_does_not_fail_the_call(client: Client, stub: Stub) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError

    stub.ends.ended = fail  # type: ignore[assignment, method-assign]
    assert client.getStatus() == 2


def test_a_silent_connection_gives_its_thread_back_and_is_still_served(start: Start) -> None:
    server = start(park_after=0.01)
    with connect(server.uri, timeout=10) as client:
        for _ in range(3):
            assert client.getStatus() == 2
            wait_until(lambda: not server._worker._active)
    wait_until(lambda: not server._worker._parked)


def test_a_connection_that_is_silent_too_long_is_closed(start: Start) -> None:
    server = start(park_after=0.01, idle_timeout=0.05)
    with socket.create_connection((server.host, server.port), 10) as sock:
        assert sock.recv(1) == b""


def wait_until(condition: Callable[[], bool]) -> None:
    done = threading.Event()
    for _ in range(1000):
        if condition():
            return
        done.wait(0.01)
    raise AssertionError("the condition never held")


SCHEDULED = idl.ScheduledQuery(scheduleKey=idl.ScheduledQueryKey(scheduleName="nightly", clusterNamespace="hive"))


@pytest.mark.parametrize(
    ("method", "args", "subject"),
    [
        ("drop_table", {"dbname": "d", "name": "t"}, "d.t"),
        ("create_table", {"tbl": idl.Table(dbName="d", tableName="t")}, "d.t"),
        ("create_table_req", {"request": idl.CreateTableRequest(table=idl.Table(dbName="d", tableName="t"))}, "d.t"),
        ("alter_database", {"dbname": "d", "db": idl.Database(name="d")}, "d"),
        ("create_function", {"func": idl.Function(dbName="d", functionName="f")}, "d.f"),
        ("abort_txn", {"rqst": idl.AbortTxnRequest(txnid=7)}, "txnid 7"),
        ("abort_txn", {}, ""),
        ("heartbeat", {"ids": idl.HeartbeatRequest(lockid=0, txnid=5)}, "txnid 5"),
        ("unlock", {"rqst": idl.UnlockRequest(lockid=3)}, "lockid 3"),
        ("abort_txns", {"rqst": idl.AbortTxnsRequest(txn_ids=list(range(1, 99)))}, "txn_ids 1, 2, 3, 4, 5, 6, 7, 8, 9, 10"),
        ("compact2", {"rqst": idl.CompactionRequest(dbname="d", tablename="t")}, "d.t"),
        ("get_dataconnector_req", {"request": idl.GetDataConnectorRequest(connectorName="pg")}, "pg"),
        ("find_package", {"request": idl.GetPackageRequest(dbName="d", packageName="p")}, "d.p"),
        ("drop_stored_procedure", {"request": idl.StoredProcedureRequest(dbName="d", procName="p")}, "d.p"),
        ("scheduled_query_maintenance", {"request": idl.ScheduledQueryMaintenanceRequest(scheduledQuery=SCHEDULED)}, "nightly"),
        ("scheduled_query_progress", {"info": idl.ScheduledQueryProgressInfo(scheduledExecutionId=4)}, "scheduledExecutionId 4"),
        ("getStatus", {}, ""),
    ],
)
def test_the_object_of_a_call_is_found_in_its_arguments(method: str, args: dict[str, object], subject: str) -> None:
    called = signature(method)
    assert called.describe(called.args(**args)) == subject
