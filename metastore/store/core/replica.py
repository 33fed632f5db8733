"""A database that follows the primary: whether a client may read from it, and how far it lags. Only PostgreSQL reports that."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar

import sqlalchemy as sa

from metastore import log
from metastore.errors import MetaError
from metastore.store.core.database import Database, Session
from metastore.store.drivers.contract import Retry, Unavailable

T = TypeVar("T")
LOOK_EVERY = 1.0
"""Seconds between two comparisons of the positions of primary and replica in the log of changes."""
_ORIGIN: sa.ColumnElement[Any] = sa.literal_column("'0/0'::pg_lsn")
WRITTEN = sa.select(sa.cast(sa.func.pg_current_wal_lsn() - _ORIGIN, sa.BigInteger))
REPLAYED = sa.select(sa.cast(sa.func.pg_last_wal_replay_lsn() - _ORIGIN, sa.BigInteger)).where(sa.func.pg_is_in_recovery())


class ReplicaDatabase(Database):
    """The replica's own database. The primary answers queries that it can not answer."""

    patience = 0.0

    def __init__(self, url: str, pool_size: int, primary: Database, failed: Callable[[], None]) -> None:
        super().__init__(url, pool_size)
        self._primary = primary
        self._failed = failed

    def read(self, work: Callable[[Session], T]) -> T:
        """Run queries as `Database.read` does; on the primary if the replica is gone, or if it cancelled them to replay changes."""
        try:
            return super().read(work)
        except MetaError as error:
            self._give_up(error)
        return self._primary.read(work)

    def snapshot(self, work: Callable[[Session], T]) -> T:
        """Run queries as `Database.snapshot` does; on the primary in the cases in which `read` uses it."""
        try:
            return super().snapshot(work)
        except MetaError as error:
            self._give_up(error)
        return self._primary.snapshot(work)

    def _give_up(self, error: MetaError) -> None:
        """Note that the replica failed. Raise the error if it has another reason."""
        if not isinstance(error.__cause__, Unavailable | Retry):
            raise error
        self._failed()


class Replica:
    """The choice between replica and primary: reads may use the replica while it has all that was committed `staleness` seconds ago."""

    def __init__(self, primary: Database, url: str, pool_size: int, staleness: float) -> None:
        self._primary = primary
        self.staleness = staleness
        self.database = ReplicaDatabase(url, pool_size, primary, self._fail)
        self._fresh_until = 0.0
        self._written: deque[tuple[float, int]] = deque(maxlen=10_000)
        """The times of looks at the primary, each with its position in the log of changes."""
        self._stopped = threading.Event()
        self._log = log.get("metastore.replica")

    @property
    def is_fresh(self) -> bool:
        """Whether the replica has all changes that are older than `staleness`."""
        return time.monotonic() < self._fresh_until

    def start(self) -> None:
        """Begin to compare the positions of both databases."""
        threading.Thread(target=self._keep_looking, daemon=True).start()

    def close(self) -> None:
        """Stop the comparison, and close the connections."""
        self._stopped.set()
        self.database.close()

    def look(self) -> None:
        """Compare the positions of both. Raises the errors of the databases."""
        now = time.monotonic()
        self._written.append((now, self._primary.read(lambda session: session.number(WRITTEN)) or 0))
        reached = Database.read(self.database, lambda session: session.number(REPLAYED))
        seen = None
        while reached is not None and self._written and self._written[0][1] <= reached:
            seen, _ = self._written.popleft()
        if seen is not None:
            self._fresh_until = seen + self.staleness

    def _fail(self) -> None:
        self._fresh_until = 0.0

    def _keep_looking(self) -> None:
        was_fresh: bool | None = None
        while not self._stopped.wait(0 if was_fresh is None else LOOK_EVERY):
            try:
                self.look()
            except MetaError as error:
                self._log.debug("the replica can not be looked at", reason=str(error))
            except Exception:  # noqa: BLE001  # or reads would go to the primary for ever
                self._log.exception("the replica can not be looked at; it is tried again")
            if self.is_fresh != was_fresh:
                was_fresh = self.is_fresh
                event = "reads go to the replica" if was_fresh else "reads go to the primary: the replica is too far behind, or gone"
                self._log.info(event, staleness=self.staleness)
