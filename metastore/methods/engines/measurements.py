"""Methods of Hive's measurements: runtime statistics and metrics of replication."""

from __future__ import annotations

from metastore.methods.forms.entry import changes, reads
from metastore.methods.forms.rules import ADMIN
from metastore.service.engines import replication_metrics, runtime_statistics

METHODS = (
    changes("add_runtime_stats", lambda call, args: runtime_statistics.add(call, args.stat), ADMIN),
    reads("get_runtime_stats", lambda call, args: runtime_statistics.get(call, args.rqst), ADMIN),
    changes("add_replication_metrics", lambda call, args: replication_metrics.add(call, args.replicationMetricList), ADMIN),
    reads("get_replication_metrics", lambda call, args: replication_metrics.get(call, args.rqst), ADMIN),
)
