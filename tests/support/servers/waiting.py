"""Waits: until something has happened, and for an open transaction of the database."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from metastore.service.call.context import Call
from metastore.store.core.database import Session

T = TypeVar("T")
PATIENCE = 60.0
"""Seconds after which a wait fails; long, since a machine may be busy."""
WAITING = {
    "postgresql": "SELECT count(*) FROM pg_locks WHERE NOT granted AND pg_backend_pid() = ANY(pg_blocking_pids(pid))",
    "mysql": "SELECT count(*) FROM information_schema.innodb_trx"
    " JOIN /*M! information_schema.innodb_lock_waits ON trx_id = blocking_trx_id */"
    " /*!80000 performance_schema.data_lock_waits ON trx_id = blocking_engine_transaction_id */"
    " WHERE trx_mysql_thread_id = connection_id()",
}
"""Queries for the number of transactions that wait for the one that runs the query. MariaDB uses the first comment, MySQL the second."""


def until(look: Callable[[], T], is_there: Callable[[T], object] = bool, *, missing: str = "", seconds: float = PATIENCE) -> T:
    """Call `look` until its result is there, and return it. After some seconds it fails with the text `missing`, or with the last result.

    A server counts and logs a call after its reply is sent: a test that reads log or metrics after a call waits with this function.
    """
    end = time.monotonic() + seconds
    while not is_there(found := look()):
        assert time.monotonic() < end, f"it did not happen: {missing or found}"
        time.sleep(0.01)
    return found


def waited_for(session: Session) -> bool:
    """Return whether another transaction waits for this one. MariaDB updates its answer only after a tenth of a second without a query."""
    time.sleep(0 if session.database.driver.name == "postgresql" else 0.15)
    session.cursor.execute(WAITING[session.database.driver.name])
    found: int = session.cursor.fetchone()[0]
    return found > 0


def beside(
    call: Call, change: Callable[[Session], None], then: Callable[[], T], meanwhile: Callable[[Session], object] = lambda _: None
) -> T:
    """Run `then` while a database transaction that made `change` is open, until `then` waits for it; return the result of `then`.

    The transaction also does `meanwhile` when `then` waits for it.
    """
    with ThreadPoolExecutor(1) as pool:
        started: list[Future[T]] = []

        def work(session: Session) -> None:
            change(session)
            if call.database.driver.name == "sqlite":  # only one transaction writes
                return
            call.database.driver.sync(session.cursor)
            started.append(pool.submit(then))
            while not waited_for(session):
                assert not started[0].done()
            meanwhile(session)

        call.database.write(work)
        return started[0].result() if started else then()
