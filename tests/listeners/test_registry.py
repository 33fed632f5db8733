"""Transactional listeners take part in the transaction, on each database."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from metastore.errors import AlreadyExists, InvalidOperation, MetaError
from metastore.idl import Database as DatabaseStruct
from metastore.listeners import Listeners
from metastore.listeners.events import CreateDatabase, Event
from metastore.service.call.context import Metastore
from metastore.service.catalog.databases import create_database, get_databases
from metastore.store.drivers.contract import Retry
from tests.support.catalog.catalog import call_of
from tests.support.catalog.recording import Before, Remembering, Within, listening
from tests.support.databases.services import make_metastore, metastore  # noqa: F401  # fixtures


@pytest.fixture
def notes(metastore: Metastore) -> Iterator[Metastore]:  # noqa: F811
    metastore.database.write(lambda session: session.cursor.execute("CREATE TABLE notes (text VARCHAR(100))"))
    yield metastore
    metastore.database.write(lambda session: session.cursor.execute("DROP TABLE notes"))


def noted(server: Metastore) -> list[str]:
    def read(session: Any) -> list[str]:
        session.cursor.execute("SELECT text FROM notes")
        return [text for (text,) in session.cursor.fetchall()]

    return server.database.read(read)


def insert(event: Event, session: Any) -> None:
    assert isinstance(event, CreateDatabase)
    session.cursor.execute(f"INSERT INTO notes VALUES ('{event.database.name}')")


def test_its_writes_are_there_after_the_commit(notes: Metastore) -> None:
    create_database(call_of(listening(notes, Within(insert))), DatabaseStruct(name="d"))
    assert noted(notes) == ["d"]


def test_its_writes_go_with_a_roll_back(notes: Metastore) -> None:
    def refuse(_event: Event, _session: Any) -> None:
        raise InvalidOperation("no")

    server = listening(notes, Within(insert), Within(refuse))
    with pytest.raises(InvalidOperation):
        create_database(call_of(server), DatabaseStruct(name="d"))
    assert noted(notes) == []
    assert get_databases(call_of(notes), "hive", None) == ["default"]


def test_it_runs_again_with_the_transaction_and_is_committed_once(notes: Metastore) -> None:
    runs: list[int] = []

    def conflict(_event: Event, _session: Any) -> None:
        runs.append(1)
        if len(runs) < 3:
            raise Retry

    memory = Remembering()
    create_database(call_of(listening(notes, Within(insert), Within(conflict), memory)), DatabaseStruct(name="d"))
    assert len(runs) == 3
    assert noted(notes) == ["d"]
    assert [error for _, error in memory.seen] == [None]


def test_it_is_not_asked_when_the_change_fails_before(notes: Metastore) -> None:
    create_database(call_of(notes), DatabaseStruct(name="d"))
    with pytest.raises(AlreadyExists):
        create_database(call_of(listening(notes, Within(insert))), DatabaseStruct(name="d"))
    assert noted(notes) == []


def test_the_first_that_refuses_ends_the_asking() -> None:
    asked: list[str] = []

    def refuse(_event: Event) -> None:
        asked.append("refuse")
        raise ValueError("odd")

    listeners = Listeners(pre=[Before(refuse), Before(lambda _event: asked.append("second"))])
    with pytest.raises(MetaError, match="Before refused Event: odd"):
        listeners.before(Event(client=None))  # type: ignore[arg-type]  # nobody looks
    assert asked == ["refuse"]
