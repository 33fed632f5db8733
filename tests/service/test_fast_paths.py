"""Each call that has a fast path does the same on it as on the portable way: the same answer, the same rows, the same log.

A scenario runs twice in one database, once with the fast paths and once without, each in a Hive database of its own; what is compared has
the ids of transactions counted from the scenario's begin. It names the databases whose fast path did its last call, so none goes unused.
"""

from __future__ import annotations

import base64
import gzip
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
import pytest

from metastore.errors import MetastoreError
from metastore.idl import AddDynamicPartitions, LockComponent, NotificationEvent, NotificationEventRequest, TxnType
from metastore.service import fast_paths, notifications, transactions, write_ids
from metastore.service.context import Call
from metastore.store import schema
from metastore.store.drivers import FEW
from tests.service.changes import of_another
from tests.support import txns
from tests.support.catalog import MetastoreMaker, call_of
from tests.support.txns import DELETE, EXCL_WRITE, EXCLUSIVE, INSERT, READ, SELECT, UPDATE, WRITE

BOTH = "postgresql mysql"
MAX_OPEN = 200
BASE = 1000
"""Ids of transactions are above it, and no other number of a scenario is: so they can be told apart in what is compared."""


TRIES = ("try_open", "try_commit", "try_abort", "try_allocate", "try_lock")


class Switch:
    """Lets calls take their fast paths, or none; `took` tells whether the last call that has one took it."""

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


@dataclass
class World:
    """Where a scenario runs: its calls, by two clients, are on one Hive database."""

    call: Call
    database: str
    first: int
    event: int

    def __post_init__(self) -> None:
        self.other = of_another(self.call)

    def begin(self, count: int = 1, **options: object) -> list[int]:
        return txns.begin(self.call, count, **options)

    def begin_one(self, **options: object) -> int:
        return self.begin(**options)[0]

    def allocate(self, keys: Sequence[int], table: str = "t", call: Call | None = None, **options: object) -> dict[int, int]:
        return txns.allocate(call or self.call, keys, table, self.database, **options)

    def component(self, kind: int = READ, table: str | None = "t", partition: str | None = None, **options: Any) -> LockComponent:
        return txns.component(kind, table, partition, **{"database": self.database, **options})

    def ask(self, *components: LockComponent, call: Call | None = None, **options: Any) -> int:
        return txns.ask(call or self.call, *components, **options)[1]

    def write(self, key: int, operation: int = UPDATE, table: str = "t", partition: str | None = None, call: Call | None = None) -> None:
        self.allocate([key], table, call)
        kind = READ if operation == INSERT else WRITE
        self.ask(self.component(kind, table, partition, operation=operation), transaction=key, call=call)

    def writer(self, operation: int = UPDATE, table: str = "t", partition: str | None = None) -> int:
        key = self.begin_one()
        self.write(key, operation, table, partition)
        return key

    def commit(self, key: int, **options: object) -> None:
        txns.commit(self.call, key, **options)

    def abort(self, key: int) -> None:
        txns.abort(self.call, key)


Scenario = Callable[[World], object]
SCENARIOS: dict[str, tuple[Scenario, str]] = {}


def scenario(fast: str) -> Callable[[Scenario], Scenario]:
    """Add a scenario, and the databases whose fast path does its last call."""

    def add(work: Scenario) -> Scenario:
        SCENARIOS[work.__name__] = work, fast
        return work

    return add


def scenarios(fast: str, prefix: str, **works: Scenario) -> None:
    """Add scenarios of one prefix."""
    for name, work in works.items():
        SCENARIOS[f"{prefix}_{name}"] = work, fast


scenarios(
    BOTH,
    "open",
    one=lambda world: world.begin(),
    reader=lambda world: world.begin(txn_type=TxnType.READ_ONLY),
    compaction=lambda world: world.begin(txn_type=TxnType.COMPACTION),
)
scenarios("postgresql", "open", two=lambda world: world.begin(2), batch=lambda world: world.begin(101))


@scenario("")
def open_more_than_allowed(world: World) -> object:
    world.begin(MAX_OPEN - 10)
    return world.begin(15)


scenarios(
    BOTH,
    "commit",
    nothing=lambda world: world.commit(world.begin_one()),
    one_of_a_batch=lambda world: world.commit(world.begin(3)[1]),
    reader=lambda world: world.commit(world.begin_one(txn_type=TxnType.READ_ONLY)),
    insert=lambda world: world.commit(world.writer(INSERT)),
    insert_into_partition=lambda world: world.commit(world.writer(INSERT, partition="p=1")),
)
scenarios(
    "mysql",
    "commit",
    update=lambda world: world.commit(world.writer(UPDATE)),
    delete_in_partition=lambda world: world.commit(world.writer(DELETE, partition="p=1")),
)
scenarios(
    "",
    "commit",
    update_without_write_id=lambda world: world.commit(_locked(world, world.component(WRITE, "new", operation=UPDATE))),
    update_of_a_database=lambda world: world.commit(_locked(world, world.component(WRITE, None, operation=UPDATE))),
    compaction=lambda world: world.commit(world.begin_one(txn_type=TxnType.COMPACTION)),
    soft_delete=lambda world: world.commit(_with(world, world.begin_one(txn_type=TxnType.SOFT_DELETE), UPDATE)),
    unknown=lambda world: world.commit(world.begin_one() + 77),
    aborted=lambda world: world.commit(_ended(world, world.abort)),
    committed=lambda world: world.commit(_ended(world, world.commit)),
)


def _locked(world: World, *components: LockComponent) -> int:
    key = world.begin_one()
    world.ask(*components, transaction=key)
    return key


def _with(world: World, key: int, operation: int) -> int:
    world.write(key, operation)
    return key


def _ended(world: World, end: Callable[[int], None]) -> int:
    key = world.writer(INSERT)
    end(key)
    return key


@scenario(BOTH)
def commit_of_locks(world: World) -> object:
    return world.commit(_locked(world, world.component(), world.component(table="u"), world.component(EXCLUSIVE, "v")))


@scenario("postgresql")
def commit_of_several_inserts(world: World) -> object:
    key = world.writer(INSERT)
    world.write(key, INSERT, "u")
    world.ask(world.component(READ, operation=INSERT), transaction=key)
    return world.commit(key)


@scenario("")
def commit_of_several_updates(world: World) -> object:
    key = world.writer(INSERT)
    world.write(key, UPDATE, "u")
    world.write(key, DELETE, "v", "p=1")
    return world.commit(key)


@scenario("mysql")
def commit_after_changes_of_others(world: World) -> object:
    earlier = world.writer(partition="p=1")
    world.commit(earlier)
    key = world.writer(partition="p=1")
    for table, partition in (("t", "p=2"), ("t", None), ("u", "p=1")):
        world.commit(world.writer(UPDATE, table, partition))
    return world.commit(key)


@scenario("")
def commit_that_loses(world: World) -> object:
    loser = world.writer()
    world.commit(world.writer())
    return world.commit(loser)


@scenario("")
def commit_of_a_partition_that_loses(world: World) -> object:
    loser = world.writer(partition="p=1")
    world.commit(world.writer(partition="p=1"))
    return world.commit(loser)


@scenario("mysql")
def commit_that_is_not_judged(world: World) -> object:
    late = world.writer()
    world.commit(world.writer())
    return world.commit(late, exclWriteEnabled=True)


@scenario("mysql")
def commit_of_a_partition_found_while_writing(world: World) -> object:
    key = world.begin_one()
    number = world.allocate([key])[key]
    world.ask(world.component(WRITE, operation=UPDATE, dynamic=True), transaction=key)
    write_ids.add_dynamic_partitions(
        world.call,
        AddDynamicPartitions(txnid=key, writeid=number, dbname=world.database, tablename="t", partitionnames=["p=7"], operationType=UPDATE),
    )
    return world.commit(key)


@scenario("")
def commit_with_history(world: World) -> object:
    key = world.writer(INSERT)
    write_ids.add_to_history(world.call, key, {f"{world.database}.t": 1})
    return world.commit(key)


@scenario("")
def commit_with_history_that_another_client_noted(world: World) -> object:
    key = world.writer(INSERT)
    write_ids.add_to_history(world.other, key, {f"{world.database}.t": 1})
    return world.commit(key)


def by_another(operation: int, *, opens: bool) -> Scenario:
    """A commit by a client that knows nothing of what was done in the transaction, and perhaps opened it."""

    def work(world: World) -> object:
        key = txns.begin_one(world.call if opens else world.other)
        if operation == SELECT:
            world.ask(world.component(), transaction=key, call=world.other)
        else:
            world.write(key, operation, call=world.other)
        return world.commit(key)

    return work


scenarios(
    "postgresql",
    "commit_of_another_client_s",
    lock=by_another(SELECT, opens=True),
    insert=by_another(INSERT, opens=True),
    foreign_insert=by_another(INSERT, opens=False),
)
scenarios(BOTH, "commit_of_another_client_s", foreign_lock=by_another(SELECT, opens=False))
scenarios("", "commit_of_another_client_s", update=by_another(UPDATE, opens=True), foreign_update=by_another(UPDATE, opens=False))
scenarios(
    BOTH,
    "abort",
    nothing=lambda world: world.abort(world.begin_one()),
    reader=lambda world: world.abort(world.begin_one(txn_type=TxnType.READ_ONLY)),
    lock=lambda world: world.abort(_locked(world, world.component())),
    one_of_many=lambda world: transactions.abort_transactions(world.call, world.begin(3)[1:2]),
)
scenarios(
    "",
    "abort",
    insert=lambda world: world.abort(world.writer(INSERT)),
    compaction=lambda world: world.abort(world.begin_one(txn_type=TxnType.COMPACTION)),
    unknown=lambda world: world.abort(world.begin_one() + 77),
    aborted=lambda world: world.abort(_ended(world, world.abort)),
    committed=lambda world: world.abort(_ended(world, world.commit)),
    of_another_client_s_insert=lambda world: world.abort(_by_other(world, INSERT)),
    many_with_one_that_wrote=lambda world: transactions.abort_transactions(world.call, [*world.begin(2), world.writer(INSERT)]),
    many_with_one_reader=lambda world: transactions.abort_transactions(
        world.call, [*world.begin(2), world.begin_one(txn_type=TxnType.READ_ONLY)]
    ),
    readers=lambda world: transactions.abort_transactions(world.call, world.begin(2, txn_type=TxnType.READ_ONLY)),
    more_than_go_together=lambda world: transactions.abort_transactions(world.call, world.begin(101)),
    many_with_one_that_ended=lambda world: transactions.abort_transactions(world.call, [_ended(world, world.commit), *world.begin(2)]),
)
scenarios(
    "postgresql",
    "abort",
    many=lambda world: transactions.abort_transactions(world.call, [*world.begin(3), _locked(world, world.component())]),
    many_apart=lambda world: transactions.abort_transactions(world.call, world.begin(9)[::2]),
)


def _by_other(world: World, operation: int) -> int:
    key = world.begin_one()
    world.write(key, operation, call=world.other)
    return key


scenarios(
    BOTH,
    "allocate",
    one=lambda world: world.allocate([world.begin_one()]),
    one_of_a_batch=lambda world: world.allocate(world.begin(3)[1:2]),
    first_of_a_table=lambda world: world.allocate([world.begin_one()], "new"),
    two=lambda world: world.allocate(world.begin(2)),
    batch=lambda world: world.allocate([*reversed(world.begin(40))]),
    anew=lambda world: world.allocate([*world.allocate(world.begin(3))], reallocate=True),
    two_batches=lambda world: world.allocate([*world.begin(2), *world.begin(3)]),
    of_another_client=lambda world: world.allocate([txns.begin_one(world.other)]),
    odd_name=lambda world: (world.allocate(world.begin(1), '"writeIdList":[-1'), world.allocate(world.begin(1), '"writeIdList":[-1')),
)
scenarios(
    "postgresql",
    "allocate",
    first_batch_of_a_table=lambda world: world.allocate(world.begin(3), "new"),
)


@scenario("postgresql")
def allocate_for_an_older_batch(world: World) -> object:
    older = world.begin(3)
    world.allocate([world.begin_one()])
    return world.allocate(older)


def again(wanted: Callable[[list[int]], list[int]]) -> Scenario:
    """Allocate for transactions of a batch of which the second and third have write ids in the table."""

    def work(world: World) -> object:
        keys = world.begin(5)
        world.allocate(keys[1:3])
        return world.allocate(wanted(keys))

    return work


scenarios(
    "",
    "allocate",
    twice=again(lambda keys: keys[1:3]),
    one_that_has_some=again(lambda keys: keys[1:2]),
    more_than_have_some=again(lambda keys: keys),
    apart=lambda world: world.allocate(world.begin(5)[::2]),
    for_a_reader=lambda world: world.allocate([world.begin_one(txn_type=TxnType.READ_ONLY)]),
    for_readers=lambda world: world.allocate(world.begin(2, txn_type=TxnType.READ_ONLY)),
    for_one_that_ended=lambda world: world.allocate([_ended(world, world.commit)]),
    with_one_that_is_unknown=lambda world: world.allocate([*(keys := world.begin(2)), keys[-1] + 1]),
    in_a_second_table=lambda world: world.allocate([*world.allocate([world.begin_one()])], "u"),
    for_one_opened_alone_and_a_batch=lambda world: world.allocate([*world.begin(2), *world.begin(1)]),
)


@scenario("")
def allocate_for_a_batch_of_which_one_ended(world: World) -> object:
    keys = world.begin(3)
    world.abort(keys[1])
    return world.allocate(keys)


def lock(*kinds: int, **options: Any) -> Scenario:
    """Ask for locks on tables without a transaction."""
    return lambda world: world.ask(*(world.component(kind, f"t{number}", **options) for number, kind in enumerate(kinds)))


def lock_in_transaction(*operations: int, partition: str | None = None) -> Scenario:
    """Ask for locks to write with, in a transaction that has a write id in the first table."""

    def work(world: World) -> object:
        key = world.begin_one()
        world.allocate([key], "t0")
        wanted = [world.component(WRITE, f"t{number}", partition, operation=each) for number, each in enumerate(operations)]
        return world.ask(*wanted, transaction=key)

    return work


scenarios(
    BOTH,
    "lock",
    to_read=lock(READ),
    to_write=lock(WRITE),
    exclusive=lock(EXCLUSIVE),
    several=lock(READ, WRITE, EXCL_WRITE),
    a_partition=lock(READ, partition="p=1"),
    the_database=lambda world: world.ask(world.component(EXCLUSIVE, None)),
    to_read_in_a_transaction=lambda world: _locked(world, world.component(), world.component(table="u")),
    to_insert=lock_in_transaction(INSERT),
    to_update_a_partition=lock_in_transaction(UPDATE, partition="p=1"),
    to_write_tables_with_and_without_write_ids=lock_in_transaction(UPDATE, INSERT, SELECT, DELETE),
    twice=lambda world: (world.ask(world.component()), world.ask(world.component()), world.ask(world.component())),
    beside_another_table=lambda world: (world.ask(world.component(EXCLUSIVE, "u")), world.ask(world.component(READ))),
)
scenarios(
    "postgresql",
    "lock",
    to_write_to_many_tables=lock_in_transaction(*[UPDATE] * 7),
    of_very_many_parts=lambda world: _locked(
        world, *(world.component(READ, "t", f"p={part}", operation=INSERT) for part in range(FEW + 1))
    ),
)
scenarios(
    "",
    "lock",
    that_waits=lambda world: (world.ask(world.component(EXCLUSIVE)), world.ask(world.component(READ))),
    that_waits_for_one_that_waits=lambda world: (
        world.ask(world.component(READ)),
        world.ask(world.component(EXCLUSIVE)),
        world.ask(world.component(READ)),
    ),
    that_will_not_wait=lambda world: (world.ask(world.component(EXCLUSIVE)), world.ask(world.component(READ), waits=False)),
    that_meets_the_database=lambda world: (world.ask(world.component(EXCLUSIVE, None)), world.ask(world.component(WRITE))),
    of_one_that_ended=lambda world: world.ask(world.component(), transaction=_ended(world, world.abort)),
    to_write_of_one_that_ended=lambda world: world.ask(world.component(WRITE, operation=UPDATE), transaction=_ended(world, world.commit)),
    of_databases_without_locks=lambda world: world.ask(
        world.component(), world.component(database=f"{world.database}x"), world.component(database=f"{world.database}y")
    ),
)


@scenario(BOTH)
def lock_of_a_later_owner(world: World) -> object:
    """A lock that was added while the queue was believed to be quiet is seen, and is no more once it is released."""
    for _ in range(2):
        world.ask(world.component(WRITE))
    txns.locks.unlock(world.other, txns.ask(world.other, world.component(EXCL_WRITE, "v"))[0])
    return world.ask(world.component(WRITE))


CALLS = sorted({name.partition("_")[0] for name in SCENARIOS})


@pytest.mark.parametrize("method", CALLS)
def test_a_fast_path_does_what_the_portable_path_does(call_with_log: Call, method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    call, switch = call_with_log, Switch(monkeypatch)
    transactions.seed_transaction_id(call, BASE + 1)
    for number, (name, (work, fast)) in enumerate(SCENARIOS.items()):
        if name.partition("_")[0] == method:
            found = []
            for switch.on in (True, False):
                found.append(outcome(call, f"{'fast' if switch.on else 'slow'}{number:03}", work))
                assert switch.took == (switch.on and call.database.driver.name in fast), f"{name} took its fast path: {switch.took}"
            assert found[0] == found[1], name


@pytest.fixture(params=["json-0.2", "gzip(json-2.0)", None], ids=["plain log", "compressed log", "no log"])
def call_with_log(request: pytest.FixtureRequest, make_metastore: MetastoreMaker) -> Call:
    """A call to a server with each format of the log's messages, and without the log."""
    if request.param is None:
        return call_of(make_metastore(notification_log=False, txn_max_open=MAX_OPEN))
    return call_of(make_metastore(event_message_format=request.param, txn_max_open=MAX_OPEN))


def outcome(call: Call, database: str, work: Scenario) -> str:
    """Run a scenario; return its answer or error, and all that it left, with names and ids in the same words for each run."""
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
    """Return what the log tells of a scenario."""
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
