"""Conditions that a resource plan meets before Hive may run queries by it. Source: Hive's ObjectStore, also for the messages.

Never parses a trigger: Hive's server leaves that to the engine, which knows its counters.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from metastore.errors import InvalidObject
from metastore.idl import WMFullResourcePlan, WMPool
from metastore.rules.names import normalize

NAMESPACE = "default"
"""The namespace of requests that name none, such as Hive 3's."""
ENTITY_TYPES = ("USER", "GROUP", "APPLICATION")
POLICIES = ("FAIR", "FIFO", "DEFAULT")
_SMALLEST = 0.00001
"""Fractions that differ by less are the same."""


def namespace_of(name: str | None) -> str:
    """Return a namespace in its stored form."""
    return normalize(NAMESPACE if name is None else name)


def is_policy(name: str | None) -> bool:
    """Return whether Hive has a scheduling policy of this name; None stands for `fair`."""
    return name is None or name.strip().upper() in POLICIES


def pool_path(path: str) -> str:
    """Return a pool's path in its stored form: names with a dot between parent and child. InvalidObject."""
    found = normalize(path)
    if not all(found.split(".")):
        raise InvalidObject(f"Pool path {path!r} has an empty part: name a pool, or parent.child")
    return found


def parent_of(path: str) -> str:
    """Return the path of a pool's parent, "" for one at the root."""
    return path.rpartition(".")[0]


def shortcomings(full: WMFullResourcePlan) -> tuple[list[str], list[str]]:
    """Return the errors, with which a plan can not be enabled, and the warnings."""
    errors, warnings = [], []
    limit, total = full.plan.queryParallelism, 0
    if limit is not None and limit < 1:
        errors.append(f"Query parallelism should for resource plan be positive. Got: {limit}")
    for pool in full.pools:
        if pool.queryParallelism is not None and pool.queryParallelism < 1:
            errors.append(f"Invalid query parallelism for pool: {pool.poolPath}")
        else:
            total += pool.queryParallelism or 0
        if not is_policy(pool.schedulingPolicy):
            errors.append(f"Invalid scheduling policy {pool.schedulingPolicy} for pool: {pool.poolPath}")
    if limit is not None:
        if limit < total:
            errors.append(f"Sum of all pools' query parallelism: {total} exceeds resource plan query parallelism: {limit}")
        elif limit != total:
            warnings.append(f"Sum of all pools' query parallelism: {total} is less than resource plan query parallelism: {limit}")
    return errors + _misfits(full.pools), warnings


def _misfits(pools: Sequence[WMPool]) -> list[str]:
    """Return the faults of the tree of pools: sums of fractions of a pool's children, and children without a parent."""
    if not pools:
        return ["Root has no children"]
    paths = {pool.poolPath for pool in pools}
    fractions: dict[str, float] = defaultdict(float)
    for pool in pools:
        fractions[parent_of(pool.poolPath)] += pool.allocFraction or 0.0
    found = []
    for parent, total in sorted(fractions.items()):
        if parent and parent not in paths:
            found.append(f"Pool does not exists but has children: {parent}")
        if not parent and abs(1.0 - total) > _SMALLEST:
            found.append(f"Sum of root children pools' alloc fraction should be 1.0 got: {total} for pool: {parent}")
        elif parent and total - 1.0 > _SMALLEST:
            found.append(f"Sum of children pools' alloc fraction should be less than 1 got: {total} for pool: {parent}")
    return found
