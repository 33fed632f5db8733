"""Whole calls on transactions in one round trip to the database: on PostgreSQL one statement, on MariaDB one packet of several.

`contract.FastPaths` describes each. `service.transactions.fast_paths` alone calls them.
"""

from metastore.store.core.database import Database
from metastore.store.fast_paths.contract import FIRST, LAST, PLAIN, WRITE_ID, Ended, FastPaths, Hint, LockAttempt
from metastore.store.fast_paths.mysql import MySQL
from metastore.store.fast_paths.postgresql import PostgreSQL

_BY_KIND: dict[str, FastPaths] = {"sqlite": FastPaths(), "postgresql": PostgreSQL(), "mysql": MySQL()}


def of(database: Database) -> FastPaths:
    """Return the fast paths of a kind of database; SQLite, which has no round trips to save, has none."""
    return _BY_KIND[database.driver.name]


__all__ = ["FIRST", "LAST", "PLAIN", "WRITE_ID", "Ended", "FastPaths", "Hint", "LockAttempt", "of"]
