"""The same numbers under the names of Hive's metastore, for dashboards, alerts and autoscalers that use these. It never counts itself.

Hive reports through JMX, and its operator's rules for the JMX exporter make `api_METHOD_total` and `hive_metastore_open_connections` of it;
other names are from Hive's registry, with `_` for characters that Prometheus refuses. A timer's percentiles are in milliseconds and of all
calls since the server began, estimated from the histogram. Metrics of parts that this server lacks are left out: direct SQL, the JVM's
memory and pauses. Sources: Hive's MetricsConstants and HMSHandler, ConfigMapDependentResource of its operator, Datadog's integration for
Hive.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import accumulate

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from metastore.methods import METHODS
from metastore.service.operations.observations import Observation
from metastore.telemetry.counts import SECONDS
from metastore.telemetry.telemetry import Telemetry

PERCENTILES = (50, 75, 95, 98, 99)
_OBJECTS = {"databases": "dbs", "tables": "tables", "partitions": "partitions"}
_COUNTERS = {
    name: [each.name for each in METHODS.values() if each.metric == name] for name in {each.metric for each in METHODS.values()} - {""}
}
"""The methods that count in each counter of Hive's."""
_AGES = {
    "initiated": "compaction_oldest_enqueue_age_in_sec",
    "working": "compaction_oldest_working_age_in_sec",
    "ready for cleaning": "oldest_ready_for_cleaning_age_in_sec",
}


def running(telemetry: Telemetry) -> dict[tuple[str, ...], int]:
    """Return the number of running calls by method."""
    return {(method,): number for method, number in Counter(each.running for each in telemetry.connected_clients() if each.running).items()}


def percentile(buckets: Sequence[int], percent: float) -> float:
    """Return a percentile of the durations in a histogram, in milliseconds. The durations of a bucket count as evenly distributed."""
    wanted = sum(buckets) * percent / 100
    low = 0.0
    for high, number, below in zip((*SECONDS, SECONDS[-1]), buckets, accumulate(buckets), strict=True):
        if below >= wanted:
            return 1000 * (low + (high - low) * (wanted - (below - number)) / number) if number else 1000 * low
        low = high
    return 1000 * SECONDS[-1]


class HiveMetrics:
    """Counts and observations, as metrics with Hive's names."""

    def __init__(self, telemetry: Telemetry, seen: Observation | None) -> None:
        self._telemetry = telemetry
        self._seen = seen

    def collect(self) -> Iterable[Metric]:
        counts = self._telemetry.counts
        calls: dict[str, list[int]] = {}
        seconds: dict[str, float] = {}
        well: Counter[str] = Counter()
        for each in counts.calls():
            calls[each.method] = [a + b for a, b in zip(calls.get(each.method, [0] * len(each.buckets)), each.buckets, strict=True)]
            seconds[each.method] = seconds.get(each.method, 0.0) + each.seconds
            if each.outcome == "ok":
                well[each.method] += sum(each.buckets)
        for method, buckets in calls.items():
            yield from _timer(method, buckets, seconds[method])
        yield CounterMetricFamily("total_api_calls", "Calls.", value=sum(map(sum, calls.values())))
        for (method,), number in running(self._telemetry).items():
            yield GaugeMetricFamily(f"active_calls_{method}", f"Calls of {method} that run.", value=number)
        for name in ("open_connections", "hive_metastore_open_connections"):
            yield GaugeMetricFamily(name, "Open connections.", value=sum(counts.connections().values()))
        for name, methods in sorted(_COUNTERS.items()):
            yield CounterMetricFamily(name, f"Calls of {', '.join(methods)} that succeeded.", value=sum(well[method] for method in methods))
        figures = counts.figures()
        for name, done in (("create", "added"), ("delete", "dropped")):
            value = figures[f"{done}_partitions", ""]
            yield CounterMetricFamily(f"{name}_total_count_partitions", f"Partitions that were {done}.", value=value)
        load = figures["cpu_load", ""] / (os.cpu_count() or 1)
        yield GaugeMetricFamily(
            "jvm_process_cpu_load", "Part of the processors that the worker processes used in the last second.", value=load
        )
        if self._seen is not None:
            yield from _seen(self._seen)


def _timer(method: str, buckets: Sequence[int], seconds: float) -> Iterable[Metric]:
    number = sum(buckets)
    yield CounterMetricFamily(f"api_{method}", f"Calls of {method}.", value=number)
    yield GaugeMetricFamily(f"api_{method}_mean", f"Mean time of calls of {method}, in milliseconds.", value=1000 * seconds / number)
    for percent in PERCENTILES:
        text = f"Percentile {percent} of the times of calls of {method}, in milliseconds."
        yield GaugeMetricFamily(f"api_{method}_{percent}thpercentile", text, value=percentile(buckets, percent))


def _seen(seen: Observation) -> Iterable[Metric]:
    for kind, name in _OBJECTS.items():
        for prefix in ("total_count", "init_total_count"):
            yield GaugeMetricFamily(f"{prefix}_{name}", f"Number of {kind}, at most a minute old.", value=seen.objects.get(kind, 0))
    yield GaugeMetricFamily("num_open_transactions", "Open transactions.", value=seen.open_transactions)
    yield GaugeMetricFamily("oldest_open_non_repl_txn_age_in_sec", "Age of the oldest open transaction.", value=seen.oldest_transaction)
    yield GaugeMetricFamily("num_locks", "Locks.", value=sum(seen.locks.values()))
    for state, (number, age) in seen.compactions.items():
        yield GaugeMetricFamily(f"compaction_num_{state.replace(' ', '_')}", f"Compactions in the state {state}.", value=number)
        if state in _AGES:
            yield GaugeMetricFamily(_AGES[state], f"Age of the oldest compaction in the state {state}.", value=age)
