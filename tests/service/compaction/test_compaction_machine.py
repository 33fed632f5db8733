"""The compaction queue against a model of it in memory: every reply, and the whole queue after every call."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from metastore.errors import MetaError
from metastore.idl import CompactionInfoStruct, CompactionRequest, CompactionType, ShowCompactRequest
from metastore.rules.transactions.compactions import (
    ABORTED,
    FAILED,
    FOLLOWS,
    INITIATED,
    MOST_DEATHS,
    QUEUED,
    READY,
    REFUSED,
    SERVERS_OWN,
    STATE_TEXTS,
    SUCCEEDED,
    WORKING,
)
from metastore.service.call.context import Call, Metastore
from metastore.service.compaction import compaction_workers, compactions
from metastore.service.compaction.compaction_history import housekeep
from metastore.service.transactions import compactors
from tests.support.catalog.catalog import MetastoreMaker

DATABASES = (f"d{number}" for number in count())
OBJECTS = st.tuples(st.sampled_from(["t", "u"]), st.sampled_from([None, "p=1"]))
POOLS = st.sampled_from([None, "x"])
WORKERS = st.sampled_from(["w1", "w2"])
VERSIONS = st.sampled_from([None, "4.0.1", SERVERS_OWN])


@dataclass
class Entry:
    """An entry of the queue, as the model has it."""

    object: tuple[str, str | None]
    pool: str | None
    state: str = INITIATED
    worker: str | None = None
    version: str | None = None
    """The version of the worker that has the entry, or has put it back."""
    deaths: int = 0


class Queue(RuleBasedStateMachine):
    """One database whose queue starts empty. Entries are picked by number, missing entries included."""

    call: Call
    impatient: Metastore

    def __init__(self) -> None:
        super().__init__()
        self.database = next(DATABASES)
        self.model: dict[int, Entry] = {}

    def teardown(self) -> None:
        """End all entries that the workers of another history could get."""
        for key, entry in self.model.items():
            if entry.state in FOLLOWS[FAILED]:
                compaction_workers.mark_failed(self.call, CompactionInfoStruct(id=key))

    def pick(self, number: int) -> int:
        return sorted(self.model)[number % len(self.model)] if self.model else 10**6

    @rule(where=OBJECTS, pool=POOLS)
    def ask(self, where: tuple[str, str | None], pool: str | None) -> None:
        table, partition = where
        answer = compactions.compact(
            self.call,
            CompactionRequest(
                dbname=self.database,
                tablename=table,
                partitionname=partition,
                type=CompactionType.MAJOR,
                poolName=pool,
            ),
        )
        scheduled = [key for key, entry in self.model.items() if entry.object == where and entry.state in QUEUED]
        assert answer.accepted == (not scheduled)
        if scheduled:
            state = STATE_TEXTS[self.model[scheduled[0]].state]
            assert answer.errormessage == f"Compaction is already scheduled with state='{state}' and id={scheduled[0]}"
        else:
            assert answer.id not in self.model
            self.model[answer.id] = Entry(where, pool)

    @rule(worker=WORKERS, pool=POOLS, version=VERSIONS)
    def take(self, worker: str, pool: str | None, version: str | None) -> None:
        found = compaction_workers.find_next(self.call, worker, version, pool)
        waiting = [
            key
            for key, entry in sorted(self.model.items())
            if entry.state == INITIATED and entry.pool == pool and (entry.version is None or entry.version != version)
        ]
        assert (None if found is None else found.id) == (waiting[0] if waiting else None)
        if found is not None:
            entry = self.model[found.id]
            entry.state, entry.worker, entry.version = WORKING, worker, version

    @rule(number=st.integers(0, 9), worker=WORKERS, reason=st.sampled_from([None, "too large"]))
    def put_back(self, number: int, worker: str, reason: str | None) -> None:
        key = self.pick(number)
        entry = self.model.get(key)
        fits = entry is not None and entry.state == WORKING and entry.worker == worker
        try:
            compaction_workers.put_back(self.call, CompactionInfoStruct(id=key, workerId=worker, errorMessage=reason))
        except MetaError:
            assert not fits
        else:
            assert fits
            assert entry is not None
            entry.state, entry.worker = INITIATED, None
            entry.version = entry.version if reason else None

    @rule(worker=WORKERS)
    def die(self, worker: str) -> None:
        found = {each.id for each in compaction_workers.take_from(self.call.metastore, worker, "died") if each.database == self.database}
        expected = {key for key, entry in self.model.items() if entry.state == WORKING and entry.worker == worker}
        assert found == expected
        for key in found:
            entry = self.model[key]
            entry.deaths += 1
            if entry.deaths >= MOST_DEATHS:
                entry.state = FAILED
            else:
                entry.state, entry.worker, entry.version = INITIATED, None, None

    @rule(number=st.integers(0, 9), worker=st.sampled_from([None, "w1", "w2"]), state=st.sampled_from([READY, SUCCEEDED, FAILED, REFUSED]))
    def mark(self, number: int, worker: str | None, state: str) -> None:
        key = self.pick(number)
        mark = {
            READY: compaction_workers.mark_compacted,
            SUCCEEDED: compaction_workers.mark_cleaned,
            FAILED: compaction_workers.mark_failed,
            REFUSED: compaction_workers.mark_refused,
        }[state]
        entry = self.model.get(key)
        fits = (
            entry is not None
            and entry.state in FOLLOWS[state]
            and not (entry.state == WORKING and worker is not None and worker != entry.worker)
        )
        try:
            mark(self.call, CompactionInfoStruct(id=key, workerId=worker))
        except MetaError:
            assert not fits
        else:
            assert fits
            assert entry is not None
            entry.state = state
            if state == READY:
                entry.worker, entry.deaths = None, 0

    @rule(numbers=st.lists(st.integers(0, 9), max_size=3))
    def abort(self, numbers: list[int]) -> None:
        keys = [self.pick(number) for number in numbers]
        replies = compactors.abort_compactions(self.call, keys)
        for key in set(keys):
            entry = self.model.get(key)
            fits = entry is not None and (entry.state == INITIATED or (entry.state == WORKING and entry.version == SERVERS_OWN))
            assert replies[key].status == ("Success" if fits else "Error")
            if fits and entry is not None:
                entry.state = ABORTED

    @rule()
    def silence(self) -> None:
        """Let every worker be silent for too long."""
        while any(each.state == "working" for each in compactions.show(self.call, ShowCompactRequest(dbName=self.database))):
            housekeep(self.impatient)
        for entry in self.model.values():
            if entry.state == WORKING:
                entry.state, entry.worker, entry.version = INITIATED, None, None

    @invariant()
    def the_queue_is_the_models(self) -> None:
        found = compactions.show(self.call, ShowCompactRequest(dbName=self.database))
        assert {each.id: (each.tablename, each.partitionname, each.state, each.workerid) for each in found} == {
            key: (*entry.object, STATE_TEXTS[entry.state], entry.worker) for key, entry in self.model.items()
        }


def test_the_queue_behaves_as_its_model(make_metastore: MetastoreMaker, call: Call, database_kind: str) -> None:
    keep = {f"compactor_history_{kind}": 1000 for kind in ("succeeded", "failed", "refused", "did_not_initiate")}
    machine = type("Machine", (Queue,), {"call": call, "impatient": make_metastore(compactor_worker_timeout=0.001, **keep)})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=60 if database_kind == "sqlite" else 25,
            stateful_step_count=30,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
