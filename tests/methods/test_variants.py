"""The structs of Hive 2.3 that differ from later ones, in the requests and the replies of its clients."""

from __future__ import annotations

import socket

import pytest
from thriftpy2.thrift import TPayload, TType

from metastore import idl
from metastore.client import connect
from metastore.methods.interface.variants import EVENT_OF_2_3, PARTITIONS_OF_2_3
from metastore.wire.connection.server import ServerThread
from metastore.wire.messages.protocol import Dialect, read_message, write_message
from metastore.wire.sockets.settings import WireSettings
from metastore.wire.sockets.transport import Feed
from tests.support.servers.stub_server import Stub
from tests.wire.connection.test_calls import DIALECTS


def send_old(server: ServerThread, dialect: Dialect, method: str, arguments: TPayload) -> None:
    with socket.create_connection((server.host, server.port), 10) as sock:
        sock.sendall(write_message(dialect, method, 1, 1, arguments))
        result = getattr(idl.service, f"{method}_result")
        read_message(Feed(sock.recv), dialect, WireSettings(), lambda *_: result)


@pytest.fixture(params=DIALECTS)
def dialect(request: pytest.FixtureRequest) -> Dialect:
    return Dialect(*request.param)


def test_dynamic_partitions_of_2_3_are_understood(server: ServerThread, stub: Stub, dialect: Dialect) -> None:
    args = PARTITIONS_OF_2_3.args
    request = args.thrift_spec[1][2](txnid=4, dbname="d", tablename="t", partitionnames=["a=1"], operationType=2)
    send_old(server, dialect, "add_dynamic_partitions", args(rqst=request))  # type: ignore[call-arg]
    assert stub.seen[0].rqst == idl.AddDynamicPartitions(txnid=4, dbname="d", tablename="t", partitionnames=["a=1"], operationType=2)


def test_dynamic_partitions_of_later_clients_are_not_taken_for_old_ones(server: ServerThread, stub: Stub) -> None:
    request = idl.AddDynamicPartitions(txnid=4, writeid=9, dbname="d", tablename="t", partitionnames=["a=1"])
    with connect(server.uri, timeout=10) as client:
        client.add_dynamic_partitions(request)
    assert stub.seen[0].rqst == request


def test_inserted_files_of_2_3_are_not_taken_for_their_checksums(server: ServerThread, stub: Stub, dialect: Dialect) -> None:
    args = EVENT_OF_2_3.args
    event = args.thrift_spec[1][2]
    data = event.thrift_spec[2][2]
    insert = data.thrift_spec[1][2](filesAdded=["f"], filesAddedChecksum=["c"])
    old = event(successful=True, data=data(insertData=insert), dbName="d")
    send_old(server, dialect, "fire_listener_event", args(rqst=old))  # type: ignore[call-arg]
    request = stub.seen[0].rqst
    assert request.data.insertData == idl.InsertEventRequestData(filesAdded=["f"], filesAddedChecksum=["c"])
    assert (request.successful, request.dbName) == (True, "d")


def test_inserted_files_of_later_clients_stay_as_they_are(server: ServerThread, stub: Stub) -> None:
    insert = idl.InsertEventRequestData(filesAdded=["f"], filesAddedChecksum=["c"], partitionVal=["1"])
    request = idl.FireEventRequest(successful=True, data=idl.FireEventRequestData(insertData=insert))
    with connect(server.uri, timeout=10) as client:
        client.fire_listener_event(request)
    assert stub.seen[0].rqst == request


def test_open_transactions_are_a_set_for_2_3_and_a_list_for_others(server: ServerThread) -> None:
    with connect(server.uri, timeout=10) as client:
        assert client.get_open_txns().open_txns == [3, 5]
        client.get_table("d", "t")
        assert client.get_open_txns().open_txns is None, "2.3 gets a set, which the list's reader passes over"
        client.get_table_req(idl.GetTableRequest())
        assert client.get_open_txns().open_txns == [3, 5]


def test_the_error_of_partition_names_is_in_field_1_for_2_3(server: ServerThread) -> None:
    """In Hive 2.3, field 1 of the result is the MetaException. Since 3.1 it is a NoSuchObjectException."""
    with connect(server.uri, timeout=10) as client:
        for call, error in (
            (lambda: None, idl.MetaException),
            (lambda: client.get_table("d", "t"), idl.NoSuchObjectException),
            (lambda: client.get_table_req(idl.GetTableRequest()), idl.MetaException),
        ):
            call()
            with pytest.raises(error, match="no names"):
                client.get_partition_names("d", "t", -1)


def test_a_2_3_client_reads_the_set(server: ServerThread) -> None:
    def old(name: str, spec: dict[int, tuple[object, ...]]) -> type[TPayload]:
        fields = {"thrift_spec": spec, "default_spec": [(field[1], None) for field in spec.values()]}
        return type(name, (TPayload,), fields)

    response = old("R", {1: (TType.I64, "high", False), 2: (TType.SET, "open", TType.I64, False)})
    result = old("A", {0: (TType.STRUCT, "success", response, False)})
    dialect = Dialect("binary", framed=False)
    with socket.create_connection((server.host, server.port), 10) as sock:
        feed = Feed(sock.recv)
        for method, arguments in (
            ("get_table", idl.service.get_table_args(dbname="d", tbl_name="t")),
            ("get_open_txns", idl.service.get_open_txns_args()),
        ):
            sock.sendall(write_message(dialect, method, 1, 1, arguments))
            message = read_message(feed, dialect, WireSettings(), lambda *_: result)
    assert message.body.success.open == [3, 5]
