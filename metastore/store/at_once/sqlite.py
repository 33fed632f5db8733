"""Write ids of a batch on SQLite: no round trip is saved there, but a hundred rows that are neither read nor written."""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa

from metastore.store import notifications, write_ids
from metastore.store.at_once.contract import BEFORE_WRITE_ID, IN_PLACE_OF_WRITE_ID, AtOnce
from metastore.store.database import Database, Session
from metastore.store.drivers import Refused
from metastore.store.notifications import LogRow
from metastore.store.schema import write_id_counters
from metastore.store.transactions import may_be_range
from metastore.store.write_ids import COUNTER, Key, Range, named

N = write_id_counters.c
OF_BATCHES = sa.select(sa.func.count()).where(*may_be_range(sa.bindparam("lowest"), sa.bindparam("highest")))
TAKE_ABOVE = (
    sa.update(write_id_counters)
    .where(*COUNTER, N.last_transaction < sa.bindparam("lowest"))
    .values(next=N.next + sa.bindparam("count"), last_transaction=sa.bindparam("highest"))
    .returning(N.next)
)


class SQLite(AtOnce):
    """Only this: while it writes nobody else does, so what it reads holds."""

    least_allocated, most_allocated = 2, 1000

    def allocate(self, database: Database, transactions: Sequence[int], key: Key, *, batch: bool, told: LogRow | None) -> int | None:
        if not batch or not write_ids.is_range(transactions):
            return None
        count, lowest, highest = len(transactions), transactions[0], transactions[-1]

        def work(session: Session) -> int:
            if session.rows(OF_BATCHES, lowest=lowest, highest=highest)[0][0] < count:
                raise Refused
            row = session.row(TAKE_ABOVE, count=count, lowest=lowest, highest=highest, **named(key))
            if row is None:
                raise Refused
            first = int(row[0]) - count
            write_ids.insert_ranges(session, key, [Range(lowest, highest, first)])
            if told is not None:
                message = told.message.replace(IN_PLACE_OF_WRITE_ID, f"{BEFORE_WRITE_ID}{first}")
                notifications.insert(session, [told._replace(message=message)])
            return first

        try:
            return database.write(work)
        except Refused:
            return None
