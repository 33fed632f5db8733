"""A process's memory of roles and privileges, and the moments when it is renewed."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor, wait

import pytest

from metastore import idl
from metastore.errors import MetaError
from metastore.service.call.context import Metastore
from metastore.store.core import authorization_changes
from metastore.store.core.database import Session
from tests.service.authorization.callers import As, Caller, bag
from tests.support.catalog.catalog import MetastoreMaker
from tests.support.servers.waiting import until

pytestmark = pytest.mark.on_one_database


def test_a_revoked_right_does_not_hold_while_another_caller_reads_the_change(
    root: Caller, as_user: As, monkeypatch: pytest.MonkeyPatch
) -> None:
    bob, eve, reads, may_read = as_user("bob"), as_user("eve"), threading.Event(), threading.Event()
    root.grant_privileges(bag("SELECT", "bob", dbName="shop"))
    assert bob.get_all_databases() == ["default", "shop"]
    root.revoke_privileges(bag("SELECT", "bob", dbName="shop"))
    number = authorization_changes.number

    def held_up(session: Session) -> int:
        reads.set()
        assert may_read.wait(60)
        return number(session)

    monkeypatch.setattr(authorization_changes, "number", held_up)
    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(eve.get_all_databases)
        assert reads.wait(60)
        second = threads.submit(bob.get_all_databases)
        wait([second], timeout=0.3)  # an answer by the old rights would have been given by then
        may_read.set()
        assert (first.result(60), second.result(60)) == (["default"], ["default"])


def test_a_failure_to_read_the_changes_is_not_remembered(root: Caller, as_user: As, monkeypatch: pytest.MonkeyPatch) -> None:
    bob = as_user("bob")
    assert bob.get_all_databases() == ["default"]
    root.grant_privileges(bag("SELECT", "bob", dbName="shop"))

    def away(_: Session) -> int:
        raise MetaError("the database is away")

    with monkeypatch.context() as patch:
        patch.setattr(authorization_changes, "number", away)
        with pytest.raises(MetaError, match="the database is away"):
            bob.get_all_databases()
    assert bob.get_all_databases() == ["default", "shop"]


def test_grants_of_another_server_show_within_a_second(root: Caller, as_user: As, make_metastore: MetastoreMaker) -> None:
    other = Caller(make_metastore(authorization="grants"), "bob")
    assert other.get_all_tables("shop") == []
    root.grant_privileges(bag("SELECT", "bob", dbName="shop"))
    assert until(lambda: other.get_all_tables("shop")) == ["orders", "prices"]


def test_a_table_is_read_without_a_further_statement(root: Caller, as_user: As, server: Metastore) -> None:
    request = idl.GetTableRequest(dbName="shop", tblName="orders")
    root.grant_privileges(bag("SELECT", "bob", dbName="shop", objectName="orders"))
    bob, seen = as_user("bob"), list[str]()
    bob.get_table_req(request)
    server.database.observer = seen.append
    for _ in range(3):  # at the first, a second may have passed, after which the server looks for changes
        seen.clear()
        bob.get_table_req(request)
        if len(seen) == 1:
            break
    assert len(seen) == 1
