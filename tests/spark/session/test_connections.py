"""Connections that are kept from one statement to the next: never shared, never too old, never another login's."""

from __future__ import annotations

import pytest

from metastore import idl
from metastore.spark.session import connections
from metastore.spark.session.connections import connected
from tests.support.servers.servers import Server


def test_a_connection_is_kept_for_the_next_and_never_shared(server: Server) -> None:
    with connected(server.uri) as first, connected(server.uri) as second:
        assert first is not second
        assert first.get_all_databases() == second.get_all_databases()
    with pytest.raises(idl.NoSuchObjectException), connected(server.uri) as again:
        again.get_table("default", "nothing_here")
    with connected(server.uri) as again:
        assert again is first  # the connection that was returned last
        assert "default" in again.get_all_databases()


def test_a_connection_is_neither_kept_for_long_nor_for_another_login(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    with connected(server.uri) as first:
        first.get_all_databases()
    monkeypatch.setenv("METASTORE_CLIENT_LOGIN", "plain")
    monkeypatch.setenv("METASTORE_CLIENT_USER", "alice")
    monkeypatch.setenv("METASTORE_CLIENT_PASSWORD", "secret")
    with connected(server.uri) as other:
        assert other is not first
    monkeypatch.delenv("METASTORE_CLIENT_LOGIN")
    monkeypatch.setattr(connections, "IDLE", -1.0)
    with connected(server.uri) as later:
        assert later is not first
    assert first._connection is None  # closed; the client has no other sign of this
