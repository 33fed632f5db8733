"""Periodic jobs, which a server runs without a request. Each is run by one of all workers and servers that share a database.

A job calls a function of `service/`; `JOBS` names it with its settings, `runner` keeps the leases and the time.
"""

from __future__ import annotations

from metastore.jobs.runner import Job, Runner
from metastore.service.accounts import delegation_tokens
from metastore.service.catalog.partitions import partition_marks
from metastore.service.changes import deletion
from metastore.service.compaction import abort_cleaner, cleaner, compaction_history, initiator
from metastore.service.engines import replication_metrics, runtime_statistics, scheduled_queries
from metastore.service.operations import notifications
from metastore.service.transactions import house_keeping

__all__ = ["JOBS", "Job", "Runner"]

JOBS: tuple[Job, ...] = (
    Job("transaction housekeeper", "txn_reaper_interval", None, house_keeping.keep_house),
    Job("compaction initiator", "compactor_check_interval", "compactor_initiator", initiator.initiate),
    Job("compaction cleaner", "compactor_cleaner_interval", "compactor_cleaner", cleaner.clean),
    Job("abort cleaner", "compactor_check_interval", "compactor_cleaner", abort_cleaner.clean_aborted),
    Job("compaction housekeeper", "compactor_housekeeper_interval", "compactor_housekeeper", compaction_history.housekeep),
    Job("notification log", "event_log_clean_interval", "notification_log", notifications.delete_old),
    Job("deletions", "event_clean_interval", None, deletion.delete_old),
    Job("partition marks", "event_clean_interval", None, partition_marks.delete_old),
    Job("delegation tokens", "delegation_token_clean_interval", None, delegation_tokens.delete_expired),
    Job("scheduled queries", "scheduled_query_clean_interval", None, scheduled_queries.keep_house),
    Job("runtime statistics", "runtime_statistics_clean_interval", None, runtime_statistics.delete_old),
    Job("replication metrics", "replication_metrics_clean_interval", None, replication_metrics.delete_old),
)
