"""Open the source or target of a name: a database of this server, the database of a Java metastore, a server, or a dump. Reads and writes
nothing itself.
"""

from __future__ import annotations

from pathlib import Path
from ssl import SSLContext
from typing import NamedTuple

from metastore.client import connect
from metastore.errors import InvalidInput
from metastore.store.core import migrate
from metastore.store.core.database import Database
from metastore.transfer.contract import Reader, Writer
from metastore.transfer.dumps import DumpReader, DumpWriter
from metastore.transfer.hive.reader import HiveReader, version_of
from metastore.transfer.own.reader import OwnReader
from metastore.transfer.own.writer import OwnWriter
from metastore.transfer.thrift.reader import ThriftReader
from metastore.transfer.thrift.writer import ThriftWriter

SERVERS = ("thrift://", "http://", "https://")
TIMEOUT = 600.0
"""Seconds for an answer: a Java metastore takes long to list a hundred thousand partitions."""
DATABASES = ("sqlite:", "postgresql:", "mysql:")


class Asking(NamedTuple):
    """The way to ask a server: the number of connections, the most calls in a second, and TLS."""

    connections: int = 4
    rate: float | None = None
    tls: SSLContext | None = None


def reader(place: str, asking: Asking = Asking()) -> Reader:  # it can not be changed
    """Return the source of a name. MetastoreError for one that is not there, or holds no metastore."""
    if place.startswith(SERVERS):
        return ThriftReader(place, lambda: connect(place, tls=asking.tls, timeout=TIMEOUT), asking.connections, asking.rate)
    if place.startswith(DATABASES):
        if place.startswith("sqlite:") and not Path(place.removeprefix("sqlite:///")).exists():
            raise InvalidInput(f"database {place} is not there")
        database = Database(place, pool_size=2)
        found = migrate.current(database)
        if found is None and (place.startswith("sqlite:") or version_of(database) is None):
            raise InvalidInput(f"database {database.url.render_as_string()} holds no metastore")
        if found is None:
            return HiveReader(database)
        if found != migrate.revisions()[-1]:
            raise InvalidInput(
                f"the schema of database {database.url.render_as_string()} has revision {found}, this version reads "
                f"{migrate.revisions()[-1]}: run `metastore db upgrade`, or dump it with its own version"
            )
        return OwnReader(database)
    dump = DumpReader(Path(place))
    if not dump.path.is_file():
        raise InvalidInput(f"{place} is not there: name a dump, sqlite:///FILE, postgresql://.., mysql://.. or thrift://HOST:PORT")
    return dump


def writer(place: str, asking: Asking = Asking()) -> Writer:  # it can not be changed
    """Return the target of a name: a database of ours, a server, or a file that is made."""
    if place.startswith(SERVERS):
        return ThriftWriter(place, lambda: connect(place, tls=asking.tls, timeout=TIMEOUT), asking.rate)
    if place.startswith(DATABASES):
        return OwnWriter(Database(place, pool_size=2))
    return DumpWriter(Path(place))
