"""Something that is done while a transaction of the database is open, and waits for it."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from metastore.service.call.context import Call
from metastore.store.core.database import Session

T = TypeVar("T")
WAITING = {
    "postgresql": "SELECT count(*) FROM pg_locks WHERE NOT granted AND pg_backend_pid() = ANY(pg_blocking_pids(pid))",
    "mysql": "SELECT count(*) FROM information_schema.innodb_trx"
    " JOIN /*M! information_schema.innodb_lock_waits ON trx_id = blocking_trx_id */"
    " /*!80000 performance_schema.data_lock_waits ON trx_id = blocking_engine_transaction_id */"
    " WHERE trx_mysql_thread_id = connection_id()",
}
"""How many wait for the transaction that asks; MariaDB reads the first comment, MySQL the second."""


def waited_for(session: Session) -> bool:
    """Tell whether another transaction waits for this one. MariaDB looks anew for who did not ask for a tenth of a second."""
    time.sleep(0 if session.database.driver.name == "postgresql" else 0.15)
    session.cursor.execute(WAITING[session.database.driver.name])
    found: int = session.cursor.fetchone()[0]
    return found > 0


def beside(
    call: Call, change: Callable[[Session], None], then: Callable[[], T], meanwhile: Callable[[Session], object] = lambda _: None
) -> T:
    """Run `then` while a transaction of the database that made `change` is open, until `then` waits for it; return what it returns.

    The transaction also does `meanwhile` once it is waited for.
    """
    with ThreadPoolExecutor(1) as pool:
        started: list[Future[T]] = []

        def work(session: Session) -> None:
            change(session)
            if call.database.driver.name == "sqlite":  # only one writes
                return
            call.database.driver.sync(session.cursor)
            started.append(pool.submit(then))
            while not waited_for(session):
                assert not started[0].done()
            meanwhile(session)

        call.database.write(work)
        return started[0].result() if started else then()
