"""Differences between the databases: how to connect, begin, write many rows, and read an error; a module for each of them."""

from metastore.store.drivers.contract import Driver
from metastore.store.drivers.mysql import MySQLDriver
from metastore.store.drivers.postgresql import PostgreSQLDriver
from metastore.store.drivers.sqlite import SQLiteDriver

DRIVERS: dict[str, type[Driver]] = {"sqlite": SQLiteDriver, "postgresql": PostgreSQLDriver, "mysql": MySQLDriver, "mariadb": MySQLDriver}
"""The drivers by the name that a URL begins with."""
