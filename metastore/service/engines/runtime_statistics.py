"""Runtime statistics, which Hive's optimizer gathers from finished queries. Source: Hive's ObjectStore and RuntimeStatsCleanerTask.

Nothing here looks into them. Times are in seconds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from metastore.errors import MetaError
from metastore.idl import GetRuntimeStatsRequest, RuntimeStat
from metastore.service.call.clock import now_s
from metastore.service.call.context import Call
from metastore.store.core.database import Session
from metastore.store.engines import runtime_statistics as rows

if TYPE_CHECKING:
    from metastore.service.call.context import Metastore

_NEVER = 2**62
_BATCH = 1000


def add(call: Call, statistics: RuntimeStat | None) -> None:
    """Store statistics with the present time. MetaError."""
    if statistics is None or statistics.weight is None or statistics.payload is None:
        raise MetaError("Runtime statistics need weight and payload: send both")
    stored = RuntimeStat(createTime=now_s(), weight=statistics.weight, payload=statistics.payload)
    call.database.write(lambda session: rows.insert(session, stored))


def get(call: Call, request: GetRuntimeStatsRequest) -> list[RuntimeStat]:
    """Return the newest statistics until their weights reach `maxWeight`; all if that is negative.

    The one that reaches it is among them, as in Java. With a positive `maxCreateTime`, only statistics made before that time count.
    """
    most, latest = -1 if request.maxWeight is None else request.maxWeight, request.maxCreateTime or 0

    def work(session: Session) -> list[RuntimeStat]:
        total, keys = 0, list[int]()
        for key, weight in rows.weights(session, latest if latest > 0 else _NEVER):
            keys.append(key)
            total += weight
            if 0 <= most <= total:
                break
        return rows.find(session, keys) if keys else []

    return call.database.read(work)


def delete_old(metastore: Metastore, _last_run: int | None = None) -> None:
    """Remove statistics that are older than `runtime_statistics_age`: the periodic job."""
    database, before = metastore.database, now_s() - int(metastore.config.runtime_statistics_age)
    while keys := database.read(lambda session: rows.old(session, before, _BATCH)):
        database.write(lambda session, keys=keys: rows.delete(session, keys))  # type: ignore[misc]  # bound now
