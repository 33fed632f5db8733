"""Count calls, bytes, connections and logins of all worker processes, and write them as Prometheus reads them.

Each process writes into files of its own in one folder, which all map into memory; whoever is asked adds them up. Without that folder
(`prepare` was not called) a process counts for itself alone, as in tests. Source: prometheus_client's multiprocess mode.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache

from prometheus_client import REGISTRY, CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client import values as prometheus_values
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead
from prometheus_client.process_collector import ProcessCollector

import metastore
from metastore.service.observations import Observation

FOLDER = "PROMETHEUS_MULTIPROC_DIR"
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
UNKNOWN = "unknown"
"""In place of the name of a method that this server has not: names come from clients."""


@contextmanager
def shared() -> Iterator[None]:
    """Let all processes that are forked from this one count together. Call it before the first count."""
    folder = tempfile.mkdtemp(prefix="metastore-metrics-")
    os.environ[FOLDER] = folder
    prometheus_values.ValueClass = prometheus_values.get_value_class()  # type: ignore[no-untyped-call]  # it was chosen at the import
    try:
        yield
    finally:
        del os.environ[FOLDER]
        shutil.rmtree(folder, ignore_errors=True)


def forget(pid: int) -> None:
    """Let what a dead process held open count no more; what it counted stays."""
    if FOLDER in os.environ:
        mark_process_dead(pid)  # type: ignore[no-untyped-call]


class _Counts:
    """The counts of this process."""

    def __init__(self) -> None:
        self.calls = Histogram(
            "metastore_call_seconds", "Calls by method and outcome; the time from the decoded request to the encoded reply.",
            ("method", "outcome"), buckets=SECONDS,
        )  # fmt: skip
        self.sent = Counter("metastore_sent_bytes", "Bytes of replies.")
        self.received = Counter("metastore_received_bytes", "Bytes of requests.")
        self.open = Gauge(
            "metastore_connections", "Open connections by transport and mechanism.", ("transport", "mechanism"), multiprocess_mode="livesum"
        )
        self.logins = Counter("metastore_logins", "Logins by mechanism and outcome.", ("mechanism", "outcome"))


@cache
def _counts() -> _Counts:
    return _Counts()


@cache
def _calls(method: str, outcome: str) -> Histogram:
    return _counts().calls.labels(method, outcome)


def count_call(method: str, outcome: str, seconds: float, received: int, sent: int) -> None:
    """Count an answered call."""
    _calls(method, outcome).observe(seconds)
    counts = _counts()
    counts.received.inc(received)
    counts.sent.inc(sent)


def count_connection(transport: str, mechanism: str, change: int) -> None:
    """Count a connection that begins to speak (1) or ends (-1)."""
    _counts().open.labels(transport, mechanism).inc(change)


def count_login(mechanism: str, outcome: str) -> None:
    """Count a login: "ok" or "refused"."""
    _counts().logins.labels(mechanism, outcome).inc()


class _Observed:
    """What an observation of the database shows, as metrics."""

    def __init__(self, seen: Observation | None) -> None:
        self._seen = seen

    def collect(self) -> Iterable[Metric]:
        yield _gauge("metastore_info", "The version of the server.", {(metastore.__version__,): 1}, ("version",))
        seen = self._seen
        yield _gauge("metastore_database_up", "Whether the database could be asked for what follows.", {(): int(seen is not None)})
        if seen is None:
            return
        yield _gauge("metastore_objects", "Objects by kind, at most a minute old.", {(k,): n for k, n in seen.objects.items()}, ("kind",))
        yield _gauge("metastore_open_transactions", "Open transactions.", {(): seen.open_transactions})
        yield _gauge("metastore_oldest_open_transaction_seconds", "Age of the oldest open transaction.", {(): seen.oldest_transaction})
        yield _gauge("metastore_locks", "Locks by state.", {(state,): number for state, number in seen.locks.items()}, ("state",))
        compactions = seen.compactions.items()
        yield _gauge("metastore_compactions", "Entries of the queue and its history.", {(s,): n for s, (n, _) in compactions}, ("state",))
        yield _gauge(
            "metastore_oldest_compaction_seconds",
            "Age of the oldest entry of a state.",
            {(s,): age for s, (_, age) in compactions},
            ("state",),
        )
        yield _gauge("metastore_last_event_id", "Id of the newest event of the notification log.", {(): seen.last_event})
        yield _gauge(
            "metastore_job_lease_seconds",
            "For how long a server still holds a periodic job.",
            {(j,): s for j, s in seen.leases.items()},
            ("job",),
        )


def _gauge(name: str, text: str, values: dict[tuple[str, ...], float], labels: tuple[str, ...] = ()) -> Metric:
    family = GaugeMetricFamily(name, text, labels=labels)
    for label, number in values.items():
        family.add_metric(label, number)
    return family


def exposition(seen: Observation | None) -> bytes:
    """Return all metrics as text: the counts of all processes, and what was seen in the database, None if it could not be asked."""
    registry = CollectorRegistry()
    registry.register(_Observed(seen))
    if FOLDER in os.environ:
        MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        ProcessCollector(registry=registry)
        return generate_latest(registry)
    return generate_latest(registry) + generate_latest(REGISTRY)
