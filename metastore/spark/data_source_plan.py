"""The plan of one write of the format `hive_acid`, which tasks and commit share. This module writes nothing."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple
from uuid import uuid4

from metastore.acid.buckets import buckets
from metastore.acid.values.constraints import Constraints
from metastore.idl import Table
from metastore.rules.transactions.acid_directories import staging_name
from metastore.spark.session.catalog import AcidTableInfo

FILES_OF_A_TASK = 256
"""The most files that a task begins for one partition: tasks of the same bucket share the statement numbers of a transaction."""


@dataclass(frozen=True)
class WritePlan:
    """The plan of one write, which tasks and commit share."""

    uri: str
    table: Table
    transaction: int
    write_id: int
    overwrite: bool
    zone: str
    query: str = ""
    """The parameter that notes a stream's batches."""
    constraints: Constraints = field(default_factory=lambda: Constraints(""))
    defaults: dict[str, Any] = field(default_factory=dict)
    """Values of columns that the rows do not have."""

    @property
    def info(self) -> AcidTableInfo:
        return AcidTableInfo(self.table)

    @property
    def most_tasks(self) -> int | None:
        """The most tasks that row ids can number, by bucket and statement; None without a limit."""
        if self.info.is_insert_only:
            return None
        if self.overwrite or self.info.buckets:
            return buckets.MAX_BUCKETS
        return buckets.MAX_BUCKETS * (buckets.MAX_STATEMENTS // FILES_OF_A_TASK)


class Staged(NamedTuple):
    """A file of one partition; `statement` and `name` decide its place."""

    path: str
    partition: str
    statement: int
    name: str


def staged_folder(plan: WritePlan) -> str:
    """Return a new folder for one attempt of a task."""
    return f"{plan.info.location}/{staging_name(plan.transaction, uuid4().hex)}"
