"""Who may keep scheduled queries, that run as somebody, and see what engines keep."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest

from metastore import idl
from metastore.client import Client, connect
from tests.support.servers import serving

CREATE, ALTER, DROP = 1, 2, 3


def maintain(client: Client, kind: int, name: str, user: str | None) -> None:
    key = idl.ScheduledQueryKey(scheduleName=name, clusterNamespace="hive")
    query = idl.ScheduledQuery(scheduleKey=key, enabled=True, schedule="0 0 0 * * ?", user=user, query="select 1")
    client.scheduled_query_maintenance(idl.ScheduledQueryMaintenanceRequest(type=kind, scheduledQuery=query))


def user_of(client: Client, name: str) -> str | None:
    return client.get_scheduled_query(idl.ScheduledQueryKey(scheduleName=name, clusterNamespace="hive")).user


def test_everybody_keeps_queries_that_run_as_themselves(tmp_path: Path) -> None:
    settings = ("--set", "authorization=grants", "--set", "admin_users=root", "--workers", "1", "--warehouse", str(tmp_path / "warehouse"))
    with ExitStack() as stack:
        server = stack.enter_context(serving(*settings, home=tmp_path))
        clients = {name: stack.enter_context(connect(server.uri)) for name in ("root", "alice", "bob")}
        for name, client in clients.items():
            client.set_ugi(name, [])
        root, alice, bob = clients.values()
        maintain(alice, CREATE, "hers", "alice")
        maintain(alice, ALTER, "hers", "alice")
        assert user_of(alice, "hers") == user_of(root, "hers") == "alice"
        maintain(root, CREATE, "as_bob", "bob")
        assert user_of(bob, "as_bob") == "bob"
        for client, kind, name, user in (
            (alice, CREATE, "new", "bob"), (alice, CREATE, "new", None), (alice, ALTER, "hers", "bob"), (alice, ALTER, "as_bob", "alice"),
            (bob, ALTER, "hers", "bob"), (bob, DROP, "hers", "bob"), (bob, DROP, "no", "bob"), (bob, ALTER, "no", "bob"),
        ):  # fmt: skip
            with pytest.raises(idl.MetaException, match="Permission denied"):
                maintain(client, kind, name, user)
        for name in ("hers", "no"):
            with pytest.raises(idl.MetaException, match="Permission denied"):
                user_of(bob, name)
        with pytest.raises(idl.MetaException, match="Permission denied"):
            alice.scheduled_query_poll(idl.ScheduledQueryPollRequest(clusterNamespace="hive"))
        assert user_of(root, "hers") == "alice"
        maintain(alice, DROP, "hers", None)
        with pytest.raises(idl.NoSuchObjectException):
            user_of(root, "hers")
