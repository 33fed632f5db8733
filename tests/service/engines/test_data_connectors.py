"""Data connectors, and the databases that name one, on each database."""

from __future__ import annotations

from typing import Any

import pytest

from metastore.config import Config
from metastore.errors import AlreadyExists, InvalidObject, InvalidOperation, MetaError, NoSuchObject
from metastore.idl import Database, DatabaseType, DataConnector, NotificationEventRequest, PrincipalType
from metastore.listeners import PostEventListener, PreEventListener, TransactionalListener
from metastore.listeners.events import AlterDataConnector, CreateDataConnector, DropDataConnector, Event
from metastore.service.call.context import Call
from metastore.service.call.names import TableName
from metastore.service.catalog import databases
from metastore.service.catalog.tables import tables
from metastore.service.engines import data_connectors
from metastore.service.operations import notifications
from tests.support.catalog.catalog import MetastoreMaker, call_of, make_table
from tests.support.databases.statement_counts import StatementCounts

pytestmark = pytest.mark.on_one_database


def connector(name: str | None = "pg", **fields: Any) -> DataConnector:
    values: dict[str, Any] = {"type": "postgres", "url": "jdbc:postgresql://h/d", "parameters": {"hive.sql.dbcp.username": "u"}}
    return DataConnector(name=name, **{**values, **fields})


def remote(call: Call, name: str = "far", connector_name: str | None = "PG") -> None:
    databases.create_database(call, Database(name=name, type=DatabaseType.REMOTE, connector_name=connector_name, remote_dbname="theirs"))


def test_a_connector_comes_back_as_it_was_made(call: Call) -> None:
    data_connectors.create_data_connector(call, connector(" Pg_1 ", description="ours"))
    found = data_connectors.get_data_connector(call, "PG_1")
    assert found.createTime > 0
    found.createTime = None
    assert found == connector("pg_1", description="ours", ownerName="alice", ownerType=PrincipalType.USER)
    data_connectors.create_data_connector(call, connector("a", ownerName="admins", ownerType=PrincipalType.ROLE, parameters=None))
    found = data_connectors.get_data_connector(call, "a")
    assert (found.ownerName, found.ownerType, found.parameters, found.description) == ("admins", PrincipalType.ROLE, {}, None)
    assert data_connectors.get_data_connectors(call) == ["a", "pg_1"]


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        (None, MetaError), (connector(None), MetaError), (connector(""), InvalidObject), (connector("a/b"), InvalidObject),
        (connector("x" * 129), InvalidObject), (connector(type=None), InvalidObject), (connector(url=""), InvalidObject),
    ],
)  # fmt: skip
def test_connectors_that_can_not_be_stored_are_refused(call: Call, wrong: DataConnector | None, error: type[Exception]) -> None:
    with pytest.raises(error):
        data_connectors.create_data_connector(call, wrong)
    assert data_connectors.get_data_connectors(call) == []


def test_a_second_connector_of_a_name_is_refused(call: Call) -> None:
    data_connectors.create_data_connector(call, connector())
    with pytest.raises(AlreadyExists, match="Data connector pg already exists"):
        data_connectors.create_data_connector(call, connector("PG"))


def test_alter_changes_url_parameters_owner_and_comment(call: Call) -> None:
    data_connectors.create_data_connector(call, connector(description="old"))
    created = data_connectors.get_data_connector(call, "pg").createTime
    new = connector("other", type="mysql", url="jdbc:x", parameters={"k": "v"}, ownerName="bob", description="new", createTime=1)
    data_connectors.alter_data_connector(call, "PG", new)
    expected = connector(
        url="jdbc:x", parameters={"k": "v"}, ownerName="bob", ownerType=PrincipalType.USER, description="new", createTime=created
    )
    assert data_connectors.get_data_connector(call, "pg") == expected
    data_connectors.alter_data_connector(call, "pg", DataConnector(ownerName="bob"))
    expected.parameters = {}
    assert data_connectors.get_data_connector(call, "pg") == expected
    with pytest.raises(NoSuchObject, match="There is no data connector no"):
        data_connectors.alter_data_connector(call, "no", new)
    with pytest.raises(MetaError, match="The new data connector pg is null"):
        data_connectors.alter_data_connector(call, "pg", None)


def test_a_dropped_connector_is_gone(call: Call) -> None:
    data_connectors.create_data_connector(call, connector())
    data_connectors.drop_data_connector(call, "PG", if_exists=False, check_references=True)
    for use in (
        lambda: data_connectors.get_data_connector(call, "pg"),
        lambda: data_connectors.drop_data_connector(call, "pg", if_exists=False, check_references=False),
    ):
        with pytest.raises(NoSuchObject, match="There is no data connector pg"):
            use()
    data_connectors.drop_data_connector(call, "pg", if_exists=True, check_references=False)
    with pytest.raises(MetaError, match="name cannot be null"):
        data_connectors.drop_data_connector(call, None, if_exists=True, check_references=False)


def test_a_connector_that_databases_name_goes_only_without_a_check(call: Call) -> None:
    data_connectors.create_data_connector(call, connector())
    remote(call, "far")
    remote(call, "away", "pg")
    with pytest.raises(InvalidOperation, match="pg can not be dropped: the databases away, far name it"):
        data_connectors.drop_data_connector(call, "pg", if_exists=True, check_references=True)
    data_connectors.drop_data_connector(call, "pg", if_exists=False, check_references=False)
    assert databases.get_database(call, "hive", "far").connector_name == "PG"


def test_a_remote_database_keeps_its_names_and_has_no_tables_here(call: Call) -> None:
    remote(call)
    found = databases.get_database(call, "hive", "far")
    assert (found.type, found.connector_name, found.remote_dbname) == (DatabaseType.REMOTE, "PG", "theirs")
    databases.alter_database(call, "hive", "far", Database(name="far", parameters={"k": "v"}, ownerName="bob"))
    found = databases.get_database(call, "hive", "far")
    assert (found.type, found.connector_name, found.remote_dbname, found.parameters) == (DatabaseType.REMOTE, "PG", "theirs", {"k": "v"})
    with pytest.raises(MetaError, match="Create table in REMOTE database far is not allowed"):
        make_table(call, "t", database="far")
    for ask in (
        lambda: tables.get_table(call, TableName("hive", "far", "t")),
        lambda: tables.get_tables(call, "hive", "far", "*"),
    ):
        with pytest.raises(MetaError, match=r"hive\.far is of type REMOTE: its tables are reached by the data connector PG"):
            ask()
    assert tables.matching_tables(call, "hive", "far", None) == []
    databases.drop_database(call, "hive", "far", delete_data=True, cascade=False)
    with pytest.raises(NoSuchObject):
        databases.get_database(call, "hive", "far")


def test_a_remote_database_names_a_connector(call: Call) -> None:
    with pytest.raises(InvalidObject, match="far is of type REMOTE and names no data connector"):
        remote(call, connector_name=None)


def test_tables_of_other_databases_are_missed_as_ever(call: Call) -> None:
    for database in ("default", "nope"):
        with pytest.raises(NoSuchObject, match="t table not found"):
            tables.get_table(call, TableName("hive", database, "t"))
        assert tables.get_tables(call, "hive", database, "*") == []
    name = make_table(call, "t")
    assert tables.get_table(call, name).tableName == "t"
    assert tables.get_tables(call, "hive", "default", "*") == ["t"]


class Seen(PreEventListener, TransactionalListener, PostEventListener):
    """Remembers all events with their stage, and refuses connectors called `veto`."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.events: list[tuple[str, Event]] = []

    def before(self, event: Event) -> None:
        self.events.append(("before", event))

    def within(self, event: Event, session: Any) -> None:  # noqa: ARG002
        self.events.append(("within", event))
        if isinstance(event, CreateDataConnector) and event.connector.name == "veto":
            raise InvalidOperation("vetoed")

    def after(self, event: Event, error: Exception | None) -> None:
        self.events.append((f"after {type(error).__name__}", event))


def test_listeners_get_events_and_the_log_does_not(make_metastore: MetastoreMaker) -> None:
    kinds_of_listeners = ("pre_event_listeners", "transactional_listeners", "post_event_listeners")
    call = call_of(make_metastore(**dict.fromkeys(kinds_of_listeners, (f"{__name__}:Seen",))))
    (seen,) = call.listeners.pre
    assert isinstance(seen, Seen)
    data_connectors.create_data_connector(call, connector())
    data_connectors.alter_data_connector(call, "pg", connector(url="jdbc:x"))
    data_connectors.drop_data_connector(call, "pg", if_exists=False, check_references=False)
    stages = ["before", "within", "after NoneType"]
    kinds = [CreateDataConnector, AlterDataConnector, DropDataConnector]
    assert [(stage, type(event)) for stage, event in seen.events] == [(stage, kind) for kind in kinds for stage in stages]
    altered = seen.events[4][1]
    assert isinstance(altered, AlterDataConnector)
    assert (altered.before.url, altered.after.url) == ("jdbc:postgresql://h/d", "jdbc:x")
    with pytest.raises(InvalidOperation, match="vetoed"):
        data_connectors.create_data_connector(call, connector("veto"))
    assert data_connectors.get_data_connectors(call) == []
    assert seen.events[-1][0] == "after InvalidOperation"
    logged = notifications.get_next(call, NotificationEventRequest(lastEvent=0))
    assert not [each for each in logged if "CONNECTOR" in each.eventType]


def test_the_cost_of_the_calls(call: Call, counts: StatementCounts) -> None:
    counts("create", lambda: data_connectors.create_data_connector(call, connector()))
    counts("get", lambda: data_connectors.get_data_connector(call, "pg"))
    counts("list", lambda: data_connectors.get_data_connectors(call))
    counts("alter", lambda: data_connectors.alter_data_connector(call, "pg", connector()))
    counts("drop", lambda: data_connectors.drop_data_connector(call, "pg", if_exists=False, check_references=True))
