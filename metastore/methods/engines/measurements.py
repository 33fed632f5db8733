"""Methods of what Hive measures: runtime statistics and metrics of replication."""

from __future__ import annotations

from metastore.methods.forms.entry import Handler
from metastore.service.engines import replication_metrics, runtime_statistics

METHODS: dict[str, Handler] = {
    "add_runtime_stats": lambda call, args: runtime_statistics.add(call, args.stat),
    "get_runtime_stats": lambda call, args: runtime_statistics.get(call, args.rqst),
    "add_replication_metrics": lambda call, args: replication_metrics.add(call, args.replicationMetricList),
    "get_replication_metrics": lambda call, args: replication_metrics.get(call, args.rqst),
}
