"""Run the periodic jobs of a worker process whose leases it holds. It never does a job's work itself.

One thread finds the jobs that are due. Each run has a thread of its own, so that a long run holds up no other, and its lease is extended
meanwhile. A lease is two intervals long: when its holder dies, another worker or server takes it once it has expired. If the clocks of
servers differ by more than a lease, a job can run twice at a time; jobs must be correct even then.
"""

from __future__ import annotations

import os
import platform
import secrets
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import structlog

from metastore.errors import MetastoreError
from metastore.service.call.context import Metastore
from metastore.store.core import leases

log = structlog.get_logger()

SHORTEST_LEASE = 2.0
"""Seconds of the shortest lease. A shorter one would expire during a pause of the process."""

PATIENCE = 5.0
"""Seconds for which `stop` waits for runs that are under way; a job must allow for an end at any point."""


class Job(NamedTuple):
    """A periodic job: its name, the settings of its interval in seconds and of its switch, and its function.

    `run` gets the beginning of its last run in this process that did not fail, in milliseconds; None before the first.
    """

    name: str
    interval: str
    switch: str | None
    run: Callable[[Metastore, int | None], object]


@dataclass
class _State:
    job: Job
    interval: float
    due: float = 0.0
    """The time of the next look at the job, by the monotonic clock."""
    thread: threading.Thread | None = None
    since: int | None = None
    holds: bool = False

    @property
    def lease(self) -> float:
        return max(2 * self.interval, SHORTEST_LEASE)


class Runner:
    """The jobs of one worker process that are switched on."""

    def __init__(self, metastore: Metastore, jobs: Sequence[Job]) -> None:
        config = metastore.config
        self._metastore = metastore
        self._states = [
            _State(job, float(getattr(config, job.interval)))
            for job in jobs
            if (job.switch is None or getattr(config, job.switch)) and getattr(config, job.interval) > 0
        ]
        self._who = f"{platform.node()}:{os.getpid()}:{secrets.token_hex(4)}"
        self._ended = threading.Event()
        self._wake = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="jobs", daemon=True)

    def start(self) -> None:
        """Start the thread, if there are any jobs."""
        if self._states:
            self._thread.start()

    def stop(self) -> None:
        """Stop the thread, wait some seconds for runs that are under way, and give the leases back."""
        self._ended.set()
        self._wake.set()
        if not self._states:
            return
        self._thread.join(PATIENCE)
        until = time.monotonic() + PATIENCE
        for state in self._states:
            if state.thread is not None:
                state.thread.join(max(0.0, until - time.monotonic()))
        names = [state.job.name for state in self._states if state.holds and not _runs(state)]
        if names:
            try:
                self._metastore.database.write(lambda session: leases.give_back(session, names, self._who))
            except Exception as error:  # noqa: BLE001  # the end of a process is not held up
                _log_failure("leases could not be given back; they expire", error, jobs=names)

    def _loop(self) -> None:
        while not self._ended.is_set():
            self._wake.clear()
            for state in self._states:
                if state.due <= time.monotonic() and not self._ended.is_set():
                    self._look(state)
            self._wake.wait(max(0.0, min(state.due for state in self._states) - time.monotonic()))

    def _look(self, state: _State) -> None:
        """Take or extend a job's lease, and begin a run unless one is under way."""
        now = time.monotonic()
        state.due = now + state.interval
        try:
            left = self._lease(state)
        except Exception as error:  # noqa: BLE001  # the other jobs continue
            _log_failure("the lease of a job could not be looked at; it is tried again", error, job=state.job.name)
            return
        if not state.holds:
            state.due = now + min(left, state.lease)
        elif _runs(state):
            state.due = now + min(state.interval, state.lease / 4)
        else:
            thread = threading.Thread(target=self._run, args=(state,), name=f"job {state.job.name}", daemon=True)
            try:
                thread.start()
            except RuntimeError:
                log.exception("no thread for a job; it is tried again", job=state.job.name)
            else:
                state.thread = thread

    def _lease(self, state: _State) -> float:
        """Take or extend the lease, and note whether it is held; return the seconds after which it may be tried again."""
        database, name, now = self._metastore.database, state.job.name, time.time_ns() // 1_000_000
        if not state.holds:
            found = database.read(lambda session: leases.find(session, name))
            if found is None:
                database.write(lambda session: leases.add(session, name))
            elif found[1] > now:
                return (found[1] - now) / 1000
        until = now + int(state.lease * 1000)
        held = database.write(lambda session: leases.take(session, name, self._who, now, until))
        if held != state.holds:
            log.info("a job's lease is taken" if held else "a job's lease is lost", job=name, holder=self._who)
        state.holds = held
        return state.interval

    def _run(self, state: _State) -> None:
        began = time.time_ns() // 1_000_000
        try:
            state.job.run(self._metastore, state.since)
            state.since = began
        except Exception as error:  # noqa: BLE001  # the other jobs continue
            _log_failure("a job failed; it is tried again", error, job=state.job.name, seconds=state.interval)


def _log_failure(event: str, error: Exception, **fields: object) -> None:
    """Log a failure: with the stack, or a MetastoreError, such as for a database that does not answer, with its message alone."""
    if isinstance(error, MetastoreError):
        log.error(event, reason=error.message, **fields)
    else:
        log.error(event, exc_info=error, **fields)


def _runs(state: _State) -> bool:
    return state.thread is not None and state.thread.is_alive()
