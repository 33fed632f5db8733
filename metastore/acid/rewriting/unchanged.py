"""Check that a table is still the one that a statement has read.

A statement reads a table before it locks it, and waits for the lock. Meanwhile others may drop, rename, move, alter or convert the table.
"""

from __future__ import annotations

from typing import Any

from metastore.idl import Table


class TableChanged(Exception):
    """A table changed after a statement had read its definition and before it had its lock: run the statement again."""


def check_unchanged(before: Table, now: Table) -> None:
    """Raise TableChanged unless two readings of a table agree in all that its files depend on."""
    found = _facts(now)
    changed = [what for what, value in _facts(before).items() if found[what] != value]
    if changed:
        raise TableChanged(
            f"{before.dbName}.{before.tableName} changed while its lock was waited for ({', '.join(changed)}): run the statement again"
        )


def _facts(table: Table) -> dict[str, Any]:
    sd, parameters = table.sd, table.parameters or {}
    return {
        "another table of this name": table.id or table.createTime,
        "location": sd.location,
        "columns": [(column.name, column.type) for column in sd.cols],
        "partition columns": [(key.name, key.type) for key in table.partitionKeys or []],
        "buckets": (sd.numBuckets, sd.bucketCols or []),
        "format": (sd.inputFormat, sd.serdeInfo and sd.serdeInfo.serializationLib),
        "kind": [(parameters.get(key) or "").lower() for key in ("transactional", "transactional_properties")],
    }
