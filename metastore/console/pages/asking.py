"""Parts that pages share: the number of rows of a page, names, locks, and contents that may be missing. It shows nothing itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from metastore.console.visit import Visit
from metastore.console.waits import Lock, lock_of
from metastore.errors import MetastoreError
from metastore.idl import LockState, ShowLocksRequest

T = TypeVar("T")
ROWS = 50
"""Rows of one page."""


def catalog_of(visit: Visit, catalog: str) -> str:
    """Return a catalog's name, the default one's for ""."""
    return catalog.strip().lower() or visit.default_catalog


def on_wire(visit: Visit, catalog: str, database: str) -> str:
    """Return a database's name for requests without a field for its catalog."""
    return database if catalog == visit.default_catalog else f"@{catalog}#{database}"


def unless_refused(ask: Callable[[], T]) -> T | None:
    """Return the content of a part of a page, None where the visitor may not see it or the metastore has no answer."""
    try:
        return ask()
    except MetastoreError:
        return None


def locks(visit: Visit, database: str = "", table: str = "", transaction: int = 0) -> list[Lock]:
    """Return the locks that the visitor may see: all, of a database, of a table, or of a transaction."""
    request = ShowLocksRequest(dbname=database or None, tablename=table or None, txnid=transaction or None, isExtended=True)
    found: Any = visit.run("show_locks", rqst=request)
    since = visit.run("show_waits") if any(each.state == LockState.WAITING for each in found.locks) else {}
    return [lock_of(each, since.get(each.lockid)) for each in found.locks]
