"""Each call that has a fast path does the same on it as on the portable way: the same answer, the same rows, the same log.

A scenario runs twice in one database of the server, once with the fast paths and once without, each in a Hive database of its own. The
outcomes are compared with the ids of transactions counted from the scenario's begin. Its last call must take the fast path on the databases
that the scenario names.
"""

from __future__ import annotations

import base64
import gzip
import re
from collections.abc import Callable

import orjson
import pytest

from metastore.errors import MetastoreError
from metastore.idl import NotificationEvent, NotificationEventRequest
from metastore.service.call.context import Call
from metastore.service.operations import notifications
from metastore.service.transactions import fast_paths, transactions
from metastore.store.schema import model as schema
from tests.support.acid import txns
from tests.support.acid.fast_path_scenarios import MAX_OPEN, SCENARIOS, Scenario, World
from tests.support.acid.txns import INSERT
from tests.support.catalog.catalog import MetastoreMaker, call_of

BASE = 1000
"""A number that only the ids of transactions exceed, by which they are recognised in an outcome."""


TRIES = ("try_open", "try_commit", "try_abort", "try_allocate", "try_lock")


class Switch:
    """Switches the fast paths of all calls on or off. `took` is whether the last call that has one took it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.on = self.took = False
        for name in TRIES:
            monkeypatch.setattr(fast_paths, name, self._switched(getattr(fast_paths, name)))

    def _switched(self, method: Callable[..., object]) -> Callable[..., object]:
        def switched(*args: object) -> object:
            found = method(*args) if self.on else None
            self.took = found is not None
            return found

        return switched


CALLS = sorted({name.partition("_")[0] for name in SCENARIOS})


@pytest.mark.parametrize("method", CALLS)
def test_a_fast_path_has_the_effect_of_the_portable_way(call_with_log: Call, method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    call, switch = call_with_log, Switch(monkeypatch)
    transactions.seed_transaction_id(call, BASE + 1)
    for number, (name, (work, fast)) in enumerate(SCENARIOS.items()):
        if name.partition("_")[0] == method:
            found = []
            for switch.on in (True, False):
                found.append(outcome(call, f"{'fast' if switch.on else 'slow'}{number:03}", work))
                assert switch.took == (switch.on and call.database.driver.name in fast), f"{name} took its fast path: {switch.took}"
            assert found[0] == found[1], name


@pytest.fixture(
    params=[
        pytest.param("json-0.2", id="plain log"),
        pytest.param("gzip(json-2.0)", id="compressed log", marks=pytest.mark.on_one_database),
        pytest.param(None, id="no log", marks=pytest.mark.on_one_database),
    ]
)
def call_with_log(request: pytest.FixtureRequest, make_metastore: MetastoreMaker) -> Call:
    """A call to a server with each format of the log's messages, and without the log."""
    if request.param is None:
        return call_of(make_metastore(notification_log=False, txn_max_open=MAX_OPEN))
    return call_of(make_metastore(event_message_format=request.param, txn_max_open=MAX_OPEN))


def outcome(call: Call, database: str, work: Scenario) -> str:
    """Run a scenario. Return its answer or error, and the rows and events that it left, with the same names and ids for each run."""
    world = World(call_of(call.metastore), database, 0, notifications.current_id(call))
    world.commit(world.writer(INSERT))  # the table has a counter, and the database a queue
    world.first = transactions.get_open_transactions(call).txn_high_water_mark
    try:
        answer: object = work(world)
    except MetastoreError as error:
        answer = (type(error).__name__, str(error))
    found = {"answer": answer, "log": log(world), **rows(world)}
    text = orjson.dumps(found, option=orjson.OPT_NON_STR_KEYS | orjson.OPT_INDENT_2).decode().replace(database, "database")
    call.database.write(lambda session: session.cursor.execute("UPDATE transactions SET state = 'c' WHERE state = 'o'"))
    return re.sub(r"\b\d{4,6}\b", lambda match: f"first + {int(match[0]) - world.first}", text)


def log(world: World) -> list[object]:
    """Return the events of a scenario in the notification log."""
    events = notifications.get_next(world.call, NotificationEventRequest(lastEvent=world.event))
    return [(each.eventType, each.dbName, each.tableName, each.catName, each.messageFormat, message(each)) for each in events]


def message(event: NotificationEvent) -> object:
    """Return the fields of an event's message in their order, but for its time."""
    text = event.message if event.messageFormat == "json-0.2" else gzip.decompress(base64.b64decode(event.message))
    found = orjson.loads(text)
    return [(key, value) for key, value in found.items() if key != "timestamp"]


def rows(world: World) -> dict[str, list[object]]:
    """Return the rows that a scenario left, without times, and without the keys that a database gives."""
    call, database = world.call, world.database
    names = ("database", "table")
    found: dict[str, list[object]] = {
        # not their commit ids: MariaDB notes them later, see `fast_paths.mysql_statements.COMPLETE`
        "transactions": [
            row
            for row in txns.rows(call, schema.transactions, "id", "state", "type", "user", "host", "agent", "holds")
            if row[0] > world.first  # type: ignore[operator]
        ],
        "ended": [row[0] for row in txns.rows(call, schema.transactions, "id", "ended_ms") if row[0] > world.first and row[1]],  # type: ignore[operator]
        "intended": txns.intended(call, "transaction_id", *names, "partition", "operation", "write_id", "commit_id", database=database),
        "completed": txns.completed(call, "transaction_id", *names, "partition", "operation", "write_id", "commit_id", database=database),
        "counters": txns.rows(call, schema.write_id_counters, *names, "next", "last_transaction", "last_change", database=database),
        "write_ids": txns.rows(call, schema.write_ids, "transaction_id", *names, "write_id", database=database),
        "ranges": txns.rows(
            call, schema.write_id_ranges, *names, "first_transaction", "last_transaction", "first_write_id", database=database
        ),
        "history": txns.rows(call, schema.min_history, "transaction_id", *names, "write_id", database=database),
        "queues": [row for row in txns.rows(call, schema.lock_queues, "name", "changes") if database in str(row[0])],
    }
    locks: dict[object, list[object]] = {}
    for lock_id, *component in txns.rows(call, schema.lock_components, "lock_id", "number", "catalog", *names, "partition", "type"):
        if database in str(component[2]):
            locks.setdefault(lock_id, []).append(component)
    columns = ("id", "transaction_id", "state", "user", "host", "agent", "writers_wait")
    found["locks"] = [[row[1:], locks[row[0]]] for row in txns.rows(call, schema.locks, *columns) if row[0] in locks]
    return found
