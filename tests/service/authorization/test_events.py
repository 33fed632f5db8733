"""The events of the notification log that a user sees."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from metastore import idl
from metastore.errors import NoSuchObject, PermissionDenied
from metastore.methods.operations.queries import QUERIES
from metastore.methods.transactions import transaction_rules as transactions
from metastore.service.call.context import Call, Client, Metastore
from metastore.wire.calls.guard import Guard
from tests.service.authorization.callers import As, Caller, bag, table


def test_events_are_read_on_until_there_is_one_to_show(root: Caller, as_user: As) -> None:
    root.grant_privileges(bag("SELECT", "bob", dbName="shop", objectName="prices"))
    found = as_user("bob").get_next_notification(idl.NotificationEventRequest(lastEvent=0, maxEvents=1)).events
    assert [(each.dbName, each.tableName) for each in found] == [("shop", None)]
    found = as_user("bob").get_next_notification(idl.NotificationEventRequest(lastEvent=found[0].eventId, maxEvents=1)).events
    assert [(each.dbName, each.tableName) for each in found] == [("shop", "prices")]
    assert as_user("bob").get_next_notification(idl.NotificationEventRequest(lastEvent=found[0].eventId, maxEvents=1)).events == []


def test_many_hidden_events_are_passed_over_together(root: Caller, as_user: As, server: Metastore) -> None:
    for number in range(30):
        root.create_table(table("shop", f"hidden{number}", "olga"))
    root.create_table(table("shop", "shown", "bob"))
    root.create_table(table("shop", "shown_too", "bob"))
    bob, statements = as_user("bob"), list[str]()
    bob.get_all_tables("shop")
    server.database.observer = statements.append
    found = bob.get_next_notification(idl.NotificationEventRequest(lastEvent=0, maxEvents=1)).events
    first = bob.get_next_notification(idl.NotificationEventRequest(lastEvent=found[0].eventId, maxEvents=1)).events
    assert [each.tableName for each in (*found, *first)] == [None, "shown"]
    assert len(statements) < 30


def test_only_events_that_are_shown_are_counted(root: Caller, as_user: As, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transactions, "EVENTS_READ_ON", 2)
    start = root.get_current_notificationEventId().eventId
    for number in range(6):
        root.create_table(table("shop", f"t{number}", "bob" if number % 2 else "olga"))
    root.create_table(table("shop", "last", "bob"))
    root.open_txns(idl.OpenTxnRequest(num_txns=1, user="root", hostname="h"))  # an event of no database
    root.create_database(idl.Database(name="fin", ownerName="fred"))
    last = root.get_current_notificationEventId().eventId

    def counted(caller: Caller, database: str = "shop", **wanted: Any) -> int:
        request = idl.NotificationEventsCountRequest(fromEventId=start, dbName=database, **wanted)
        return int(caller.get_notification_events_count(request).eventsCount)

    root.grant_privileges(bag("SELECT", "bob", dbName="shop", objectName="prices"))
    bob, mallory = as_user("bob"), as_user("mallory")
    for name in ("shop", " Shop", "@hive#shop"):
        assert (counted(bob, name), counted(mallory, name)) == (4, 0)
    assert counted(root) > counted(as_user("olga")) >= 3
    assert counted(bob, tableNames=["t0", "t1"]) == 1
    assert counted(bob, tableNames=["t0"]) == 0
    assert [counted(bob, limit=limit) for limit in (1, 3, 9, 0, -1)] == [1, 3, 4, 4, 4]
    assert [counted(bob, toEventId=upto) for upto in (start, start + 2, start + 4, last)] == [0, 1, 2, 4]
    assert counted(mallory, "fin") == counted(mallory, "nowhere") == 0
    for everything in ("*", "@hive#", "@hive#*"):
        assert counted(root, everything) == last - start
        with pytest.raises(PermissionDenied):
            counted(bob, everything)


def test_no_event_names_a_hidden_object(root: Caller, as_user: As) -> None:
    """Bob sees no event that names a hidden table: by a foreign key, or by the old name of a table that was moved."""
    root.create_database(idl.Database(name="fin", ownerName="fred"))
    root.grant_privileges(bag("CREATE", "olga", dbName="shop"))
    root.grant_privileges(bag("CREATE", "olga", dbName="fin"))
    olga, bob = as_user("olga"), as_user("bob")
    for name in ("salaries", "plans"):
        olga.create_table(table("fin", name))
    primary = idl.SQLPrimaryKey(table_db="fin", table_name="salaries", column_name="a", key_seq=1, pk_name="pk")
    olga.add_primary_key(idl.AddPrimaryKeyRequest([primary]))
    start = root.get_current_notificationEventId().eventId
    foreign = idl.SQLForeignKey(
        pktable_db="fin", pktable_name="salaries", pkcolumn_name="a", fktable_db="shop", fktable_name="orders", fkcolumn_name="a",
        key_seq=1,
    )  # fmt: skip
    olga.add_foreign_key(idl.AddForeignKeyRequest([foreign]))
    moved = olga.get_table("fin", "plans")
    moved.dbName, moved.tableName = "shop", "projects"
    olga.alter_table("fin", "plans", moved)
    same = olga.get_table("shop", "projects")
    same.parameters["note"] = "x"
    olga.alter_table("shop", "projects", same)
    for name in ("orders", "projects"):
        root.grant_privileges(bag("SELECT", "bob", dbName="shop", objectName=name))

    def kinds(caller: Caller) -> list[str]:
        request = idl.NotificationEventRequest(lastEvent=start, maxEvents=100)
        return [each.eventType for each in caller.get_next_notification(request).events]

    assert kinds(root) == kinds(olga) == ["ADD_FOREIGNKEY", "ALTER_TABLE", "ALTER_TABLE"]
    assert kinds(bob) == ["ALTER_TABLE"]
    shown = [_shown_event(bob, start + number) for number in (1, 2, 3)]
    assert shown == [False, False, True]
    root.grant_privileges(bag("SELECT", "bob", dbName="fin"))
    assert kinds(bob) == ["ADD_FOREIGNKEY", "ALTER_TABLE", "ALTER_TABLE"]


def _shown_event(caller: Caller, key: int) -> bool:
    """Ask as the console does."""
    authorizer = caller.metastore.authorizer
    assert authorizer is not None
    call = Call(caller.metastore, Client("127.0.0.1:1", user="bob"), "show_event")
    try:
        Guard(authorizer).run(QUERIES["show_event"].rule, QUERIES["show_event"].handler, call, SimpleNamespace(id=key))
    except NoSuchObject:
        return False
    return True
