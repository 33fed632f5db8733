"""Basic statistics that the server sets by itself: number of files and bytes of a directory. Never reads a file.

Source: Hive's MetaStoreUtils.updateTableStatsSlow, updatePartitionStatsFast and requireCalStats.
"""

from __future__ import annotations

from collections.abc import Mapping

from metastore.idl import Table
from metastore.rules.catalog.table_kinds import is_external, table_label
from metastore.service.call.context import Call
from metastore.warehouse import DirectorySummary, Reach

DO_NOT_UPDATE = "DO_NOT_UPDATE_STATS"
ACCURATE = "COLUMN_STATS_ACCURATE"
FAST = ("numFiles", "totalSize")
ROWS = "numRows"


def wanted(call: Call, parameters: Mapping[str, str], environment: Mapping[str, str]) -> bool:
    """Return whether the server is to look at directories for this request."""
    if DO_NOT_UPDATE not in environment and DO_NOT_UPDATE not in parameters:
        return call.config.stats_autogather
    said = (environment.get(DO_NOT_UPDATE, "").lower(), parameters.get(DO_NOT_UPDATE, "").lower())
    return call.config.stats_autogather and "true" not in said


def reach_of(call: Call, table: Table) -> Reach:
    """Return the storage that the server must reach for a table: an external table's is used by clients alone."""
    return Reach(table_label(table), required=not is_external(table), silent=call.warehouse.silent)


def are_given(environment: Mapping[str, str]) -> bool:
    """Return whether a request declares that it brings statistics of the present data."""
    return environment.get("STATS_GENERATED") in ("TASK", "USER")


def are_same(before: Mapping[str, str], after: Mapping[str, str]) -> bool:
    """Return whether a request has numFiles and totalSize, neither of them changed."""
    for key in FAST:
        value = after.get(key)
        if value is None or before.get(key, value) != value:
            return False
    return True


def from_directory(
    call: Call, parameters: Mapping[str, str], location: str, environment: Mapping[str, str], reach: Reach, *, force: bool = False
) -> dict[str, str]:
    """Return parameters with numFiles and totalSize of a directory; unchanged if it is not reached, or has them and `force` is not set.

    COLUMN_STATS_ACCURATE is removed unless the request declares that a task made the statistics: a user's figures (`ALTER TABLE .. UPDATE
    STATISTICS`) answer no query.
    """
    if not force and all(key in parameters for key in FAST):
        return dict(parameters)
    summary: DirectorySummary | None = reach.look(call.warehouse.summarize, location, None)
    if summary is None:
        return dict(parameters)
    out = {**parameters, "numFiles": str(summary.files), "totalSize": str(summary.size)}
    if environment.get("STATS_GENERATED") != "TASK":
        out.pop(ACCURATE, None)
    return out


def not_declared_exact(before: Mapping[str, str], after: Mapping[str, str]) -> dict[str, str]:
    """Return the new parameters of a transactional table or partition, without a mark that makes an unchanged row count exact.

    Hive's compactor runs `ANALYZE .. NOSCAN`, which sets the mark without counting. The row count is a sum, to which writers other than
    Hive, such as Spark or a stream, have added nothing. Source: Hive's StatsUpdater and BasicStatsTask.
    """
    if not _is_exact(after) or _is_exact(before) or before.get(ROWS) != after.get(ROWS):
        return dict(after)
    return {key: value for key, value in after.items() if key != ACCURATE}


def _is_exact(parameters: Mapping[str, str]) -> bool:
    return '"BASIC_STATS":"true"' in parameters.get(ACCURATE, "").replace(" ", "")


def without_marker(parameters: dict[str, str]) -> dict[str, str]:
    """Return parameters without DO_NOT_UPDATE_STATS, which is an instruction and never stored."""
    if DO_NOT_UPDATE not in parameters:
        return parameters
    return {key: value for key, value in parameters.items() if key != DO_NOT_UPDATE}
