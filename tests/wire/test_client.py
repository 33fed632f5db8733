from __future__ import annotations

import socket

import pytest

from metastore.client import connect
from metastore.wire.connection.server import ServerThread


def test_the_next_address_is_tried(server: ServerThread) -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        closed = unused.getsockname()[1]
    with connect(f"thrift://127.0.0.1:{closed},thrift://{server.host}:{server.port}", timeout=10) as client:
        assert client.getStatus() == 2


def test_no_answer_names_every_address() -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        closed = unused.getsockname()[1]
    with pytest.raises(ConnectionError, match=f"127.0.0.1:{closed}"):
        connect(f"thrift://127.0.0.1:{closed}", timeout=10).getStatus()


def test_a_closed_client_connects_again(server: ServerThread) -> None:
    client = connect(server.uri, timeout=10)
    assert client.getStatus() == 2
    client.close()
    assert client.getStatus() == 2
    client.close()


def test_arguments_go_by_position_or_name(server: ServerThread) -> None:
    with connect(server.uri, timeout=10) as client:
        assert client.get_table("d", tbl_name="t").tableName == "t"
        for wrong in (("d", "t", "u"), ("d",)):
            with pytest.raises(TypeError, match="get_table takes dbname, tbl_name"):
                client.get_table(*wrong, dbname="d")


def test_a_method_that_the_interface_lacks_is_an_attribute_error(server: ServerThread) -> None:
    with pytest.raises(AttributeError, match="no method get_tabel"):
        connect(server.uri).get_tabel  # noqa: B018


@pytest.mark.parametrize("uri", ["ftp://h:1", "thrift://", ""])
def test_another_scheme_is_refused(uri: str) -> None:
    with pytest.raises(ValueError, match="not a metastore URI"):
        connect(uri)
