"""Write the counts of the processes and the figures of the database in Prometheus's format. It never counts itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.process_collector import ProcessCollector

import metastore
from metastore.service.operations.observations import Observation
from metastore.store.core.figures import Figure
from metastore.telemetry import hive_metrics
from metastore.telemetry.counts import SECONDS, Counts
from metastore.telemetry.telemetry import Telemetry

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class _Counted:
    """Counts of the processes, as metrics."""

    def __init__(self, counts: Counts) -> None:
        self._counts = counts

    def collect(self) -> Iterable[Metric]:
        counts = self._counts
        text = "Calls by method and outcome; the time from the decoded request to the encoded reply."
        calls = HistogramMetricFamily("metastore_call_seconds", text, labels=("method", "outcome"))
        bounds = (*(str(bound) for bound in SECONDS), "+Inf")
        for each in counts.calls():
            calls.add_metric((each.method, each.outcome), list(zip(bounds, accumulate(each.buckets), strict=True)), each.seconds)
        yield calls
        text = "Parts of the time of calls, by method; the parts of a call add up to its metastore_call_seconds."
        parts = HistogramMetricFamily("metastore_call_part_seconds", text, labels=("method", "part"))
        for each in counts.parts():
            parts.add_metric((each.method, each.outcome), list(zip(bounds, accumulate(each.buckets), strict=True)), each.seconds)
        yield parts
        yield CounterMetricFamily("metastore_received_bytes_total", "Bytes of requests.", value=counts.received)
        yield CounterMetricFamily("metastore_sent_bytes_total", "Bytes of replies.", value=counts.sent)
        logins = CounterMetricFamily("metastore_logins_total", "Logins by mechanism and outcome.", labels=("mechanism", "outcome"))
        for login, number in counts.logins().items():
            logins.add_metric(login, number)
        yield logins
        yield CounterMetricFamily("metastore_slow_calls_total", "Calls that took slow_call_threshold or longer.", value=counts.slow_calls)
        text = "How often a worker process had no descriptor for another connection."
        yield CounterMetricFamily("metastore_accept_failures_total", text, value=counts.accept_failures)
        yield from _figures(counts.figures())
        text = "Open connections by transport and mechanism."
        yield _gauge("metastore_connections", text, counts.connections(), ("transport", "mechanism"))


class _Running:
    """The calls that run, as metrics."""

    def __init__(self, telemetry: Telemetry) -> None:
        self._telemetry = telemetry

    def collect(self) -> Iterable[Metric]:
        yield _gauge("metastore_active_calls", "Calls that run, up to a second old.", hive_metrics.running(self._telemetry), ("method",))


_TOTALS = {
    "statements": ("metastore_statements_total", "SQL statements by kind.", "kind"),
    "database_seconds": ("metastore_database_seconds_total", "Time in round trips to the database.", ""),
    "lock_seconds": ("metastore_lock_seconds_total", "Time in statements that lock rows, and in waits for SQLite's turn to write.", ""),
    "pool_waits": ("metastore_pool_waits_total", "How often no connection to the database was idle.", ""),
    "pool_wait_seconds": ("metastore_pool_wait_seconds_total", "Time of waits for a connection to the database.", ""),
    "cpu_seconds": ("metastore_cpu_seconds_total", "Processor time of the worker processes.", ""),
    "cache_hits": ("metastore_cache_hits_total", "Look-ups that a cache answered, by cache.", "cache"),
    "cache_misses": ("metastore_cache_misses_total", "Look-ups that a cache did not answer, by cache.", "cache"),
}
_LEVELS = {
    "cpu_load": ("metastore_cpu_load", "Processors that the worker processes used in the last second.", ""),
    "workers": ("metastore_workers", "Worker processes that serve.", ""),
    "pool_size": ("metastore_pool_size", "Most connections to the database, of all workers.", ""),
    "pool_in_use": ("metastore_pool_in_use", "Connections to the database that are in use.", ""),
    "pool_waiting": ("metastore_pool_waiting", "Threads that wait for a connection to the database.", ""),
    "cache_values": ("metastore_cache_values", "Values in a cache, by cache.", "cache"),
}


def _figures(figures: Mapping[Figure, float]) -> Iterable[Metric]:
    """Yield each process's figures of its database, as metrics."""
    for families, make in ((_TOTALS, CounterMetricFamily), (_LEVELS, GaugeMetricFamily)):
        for name, (metric, text, label) in families.items():
            family = make(metric, text, labels=(label,) if label else ())
            for (found, kind), value in figures.items():
                if found == name:
                    family.add_metric((kind,) if label else (), value)
            yield family


class State(NamedTuple):
    """The state of the process that is asked, as in `/readyz`."""

    codec: str
    """`compiled` or `pure`."""
    is_ready: bool
    database_answers: bool
    database_changes: bool
    """Whether the database takes changes."""


class _Observed:
    """An observation of the database, as metrics."""

    def __init__(self, state: State, seen: Observation | None) -> None:
        self._state = state
        self._seen = seen

    def collect(self) -> Iterable[Metric]:
        yield _gauge(
            "metastore_info", "Version and codec of the server.", {(metastore.__version__, self._state.codec): 1}, ("version", "codec")
        )
        seen = self._seen
        yield _gauge("metastore_ready", "Whether /readyz answers 200.", {(): int(self._state.is_ready)})
        yield _gauge("metastore_database_up", "Whether the database answers.", {(): int(self._state.database_answers)})
        yield _gauge("metastore_database_writable", "Whether the database takes changes.", {(): int(self._state.database_changes)})
        if seen is None:
            return
        yield _gauge("metastore_objects", "Objects by kind, at most a minute old.", {(k,): n for k, n in seen.objects.items()}, ("kind",))
        yield _gauge("metastore_open_transactions", "Open transactions.", {(): seen.open_transactions})
        yield _gauge("metastore_oldest_open_transaction_seconds", "Age of the oldest open transaction.", {(): seen.oldest_transaction})
        yield _gauge("metastore_locks", "Locks by state.", {(state,): number for state, number in seen.locks.items()}, ("state",))
        compactions = seen.compactions.items()
        yield _gauge("metastore_compactions", "Compactions by state, with the history.", {(s,): n for s, (n, _) in compactions}, ("state",))
        yield _gauge(
            "metastore_oldest_compaction_seconds",
            "Age of the oldest compaction, by state.",
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


def _gauge(name: str, text: str, values: Mapping[tuple[str, ...], float], labels: tuple[str, ...] = ()) -> Metric:
    family = GaugeMetricFamily(name, text, labels=labels)
    for label, number in values.items():
        family.add_metric(label, number)
    return family


def exposition(telemetry: Telemetry, state: State, seen: Observation | None, names: Sequence[str]) -> bytes:
    """Return all metrics as text: the counts of all processes, and the observation `seen` of the database, None if it did not answer.

    `names` are "metastore", "hive" or both.
    """
    registry = CollectorRegistry()
    if "metastore" in names:
        registry.register(_Observed(state, seen))
        registry.register(_Counted(telemetry.counts))
        registry.register(_Running(telemetry))
    if "hive" in names:
        registry.register(hive_metrics.HiveMetrics(telemetry, seen))
    ProcessCollector(registry=registry)
    return generate_latest(registry)
