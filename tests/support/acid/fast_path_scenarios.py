"""Scenarios by which fast paths are compared with the portable way, each with the databases whose fast path does its last call.

A scenario runs in a Hive database of its own, whose table t has a counter of write ids and whose locks have a queue.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from metastore.idl import AddDynamicPartitions, LockComponent, TxnType
from metastore.service.call.context import Call
from metastore.service.transactions import locks, transactions, write_ids
from metastore.store.drivers.contract import FEW
from tests.support.acid import txns
from tests.support.acid.changes import of_another
from tests.support.acid.txns import DELETE, EXCL_WRITE, EXCLUSIVE, INSERT, READ, SELECT, UPDATE, WRITE

BOTH = "postgresql mysql"
MAX_OPEN = 200
"""The most transactions that may be open."""


@dataclass
class World:
    """The surroundings of a scenario: the calls of two clients on one Hive database."""

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
    """Return a commit by a client that did not write in the transaction; `opens` if it opened the transaction."""

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
scenarios(
    "postgresql",
    "commit_of_another_client_s",
    reader=lambda world: world.commit(txns.begin_one(world.other, txn_type=TxnType.READ_ONLY)),
)
scenarios(
    "postgresql",
    "abort",
    of_another_client_s_reader=lambda world: world.abort(txns.begin_one(world.other, txn_type=TxnType.READ_ONLY)),
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
    reallocated=lambda world: world.allocate([*world.allocate(world.begin(3))], reallocate=True),
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
    """Return an allocation for transactions of a batch, of which the second and third have write ids in the table already."""

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
    """Return a request for locks on tables without a transaction."""
    return lambda world: world.ask(*(world.component(kind, f"t{number}", **options) for number, kind in enumerate(kinds)))


def lock_in_transaction(*operations: int, partition: str | None = None) -> Scenario:
    """Return a request for locks to write, in a transaction that has a write id in the first table."""

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
    """An exclusive lock that another client adds to a quiet queue is seen, and after its release it excludes nothing."""
    for _ in range(2):
        world.ask(world.component(WRITE))
    key, _ = txns.ask(world.other, world.component(EXCL_WRITE, "v"))
    locks.unlock(world.other, key)
    return world.ask(world.component(WRITE))
