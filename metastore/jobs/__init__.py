"""Periodic jobs: what a server does without being asked. One of all workers and servers that share a database runs each of them.

A job calls a function of `service/`; `JOBS` names it with its settings, `runner` keeps the leases and the time.
"""

from __future__ import annotations

from metastore.jobs.runner import Job, Runner
from metastore.service import compaction_history

__all__ = ["JOBS", "Job", "Runner"]

JOBS: tuple[Job, ...] = (
    Job(
        "compaction housekeeper", "compactor_housekeeper_interval", "compactor_housekeeper",
        compaction_history.housekeep,
    ),
)
