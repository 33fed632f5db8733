"""Whole changes of transactions in one round trip: what PostgreSQL does in one statement, MariaDB in several that go together."""

from metastore.store.at_once.contract import FIRST, LAST, PLAIN, WRITE_ID, AtOnce, Guess
from metastore.store.at_once.mysql import MySQL
from metastore.store.at_once.postgresql import PostgreSQL
from metastore.store.at_once.sqlite import SQLite
from metastore.store.database import Database

_BY_KIND: dict[str, AtOnce] = {"postgresql": PostgreSQL(), "mysql": MySQL(), "sqlite": SQLite()}


def of(database: Database) -> AtOnce:
    """Return what a database can do in one round trip."""
    return _BY_KIND[database.driver.name]


__all__ = ["FIRST", "LAST", "PLAIN", "WRITE_ID", "AtOnce", "Guess", "of"]
