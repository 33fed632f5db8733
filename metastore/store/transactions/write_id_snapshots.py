"""Snapshots of tables' write ids by snapshots of transactions. This module only reads.

A table of which a snapshot sees all write ids is read from its counter; the others are read by one query.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Sequence
from functools import cache
from typing import Any, NamedTuple

import orjson
import sqlalchemy as sa

from metastore.store.core.clauses import Among, bare, constant, listed
from metastore.store.core.database import Session
from metastore.store.transactions.write_ids import (
    AMONG,
    COUNTER,
    LAST_OF_RANGE,
    LAST_WRITE_ID,
    NAMES,
    RANGE_COLUMNS,
    WRITE_ID,
    WRITE_ID_COUNTER,
    WRITE_ID_RANGE,
    TableKey,
    naming,
    same,
)

_LAST_OF = sa.select(
    WRITE_ID_COUNTER.catalog,
    WRITE_ID_COUNTER.database,
    WRITE_ID_COUNTER.table,
    LAST_WRITE_ID.label("last"),
    WRITE_ID_COUNTER.last_transaction,
)
LAST_OF = {True: _LAST_OF.where(*COUNTER), False: _LAST_OF.where(AMONG)}
"""The query for one table, or for many."""
_NO: sa.ColumnElement[int] = constant(0)


def _unranged(column: sa.ColumnElement[int]) -> sa.ColumnElement[int]:
    """Return a column as an expression without an index: MariaDB would count its rows in each range between two exceptions."""
    return column + _NO


_THEIRS = sa.and_(*same(WRITE_ID, WRITE_ID_COUNTER), _unranged(WRITE_ID.transaction_id) <= sa.bindparam("mark"))
_BELOW = sa.select(WRITE_ID.write_id).where(_THEIRS).order_by(WRITE_ID.write_id.desc()).limit(constant(1)).scalar_subquery()
_SETTLED = sa.bindparam("settled", type_=sa.BigInteger())
_SETTLED_BELOW = (
    sa.select(sa.func.max(LAST_OF_RANGE))
    .where(*same(WRITE_ID_RANGE, WRITE_ID_COUNTER), WRITE_ID_RANGE.last_transaction <= _SETTLED)
    .scalar_subquery()
)


def _unsettled() -> sa.ScalarSelect[str | None]:
    """Return the ranges of a table that are not settled, as one text: first and last transaction and first write id of each."""
    first, last, number = (sa.cast(WRITE_ID_RANGE[name], sa.String()) for name in RANGE_COLUMNS[len(NAMES) :])
    comma: sa.ColumnElement[str] = constant(",")
    text = first.concat(comma).concat(last).concat(comma).concat(number)
    return (
        sa.select(listed(text)).where(*same(WRITE_ID_RANGE, WRITE_ID_COUNTER), WRITE_ID_RANGE.last_transaction > _SETTLED).scalar_subquery()
    )


_LAST: sa.ColumnElement[int] = sa.literal_column(str(2**63 - 1))
"""Above all ids. PostgreSQL estimates few rows for a range with two ends, and a third of the table for one end that it does not know."""


@cache
def snapshot_query(*, one: bool, excepts: bool) -> sa.CompoundSelect[Any]:
    """Return the query of a snapshot with or without exceptions, for one table or many: first a row for each table, then write ids.

    A seen write id is looked for in ascending order, so that PostgreSQL uses the index: the lowest is most often seen, while rows of other
    tables may be first in the heap. The ranges of a table are returned in its row as one text, which costs a tenth of a row for each.
    Ranges whose transactions are all settled are left out of it: they are seen as a whole.
    """
    seen = (
        sa.select(constant(1))
        .where(_THEIRS, *((sa.not_(Among(_unranged(WRITE_ID.transaction_id), "exceptions")),) if excepts else ()))
        .order_by(WRITE_ID.write_id)
        .limit(constant(1))
        .scalar_subquery()
    )
    theirs = (
        (bare(WRITE_ID.database) == sa.bindparam("database_key"), bare(WRITE_ID.table) == sa.bindparam("table_key"))
        if one
        else (Among(bare(WRITE_ID.database), "databases"), Among(bare(WRITE_ID.table), "tables"))
    )
    later = (WRITE_ID.transaction_id > sa.bindparam("mark"), WRITE_ID.transaction_id < _LAST)
    return sa.union_all(
        sa.select(
            WRITE_ID_COUNTER.catalog,
            WRITE_ID_COUNTER.database,
            WRITE_ID_COUNTER.table,
            _NO.label("write_id"),
            WRITE_ID_COUNTER.last_transaction.label("transaction_id"),
            LAST_WRITE_ID.label("last"),
            _BELOW.label("below"),
            sa.func.coalesce(seen, _NO).label("seen"),
            _SETTLED_BELOW.label("settled_below"),
            _unsettled().label("ranges"),
        ).where(*(COUNTER if one else (AMONG,))),
        *(
            sa.select(
                WRITE_ID.catalog,
                WRITE_ID.database,
                WRITE_ID.table,
                WRITE_ID.write_id,
                WRITE_ID.transaction_id,
                _NO,
                _NO,
                _NO,
                _NO,
                sa.null(),
            ).where(*theirs, *which)
            for which in (later, (Among(WRITE_ID.transaction_id, "exceptions"),))[: 1 + excepts]
        ),
    )


class Mark(NamedTuple):
    """The mark of a table: its last write id, the highest of a transaction of the snapshot, and whether one of those is seen."""

    last: int
    below: int | None
    seen: bool
    transaction: int
    """No transaction above this one has a write id of the table."""

    def raised(self, below: int | None, *, seen: bool) -> Mark:
        """Return the snapshot with further write ids: the highest of a transaction of the snapshot, and whether one is seen."""
        return self._replace(below=max(self.below or 0, below or 0) or None, seen=self.seen or seen)


class SeenTables(NamedTuple):
    """Tables as a snapshot of transactions sees them: marks, unseen write ids, each with its transaction, and ranges.

    Ranges of which it may not see all are left for the caller to evaluate, as (first transaction, last one, first write id); marks and
    write ids cover the others only.
    """

    marks: dict[TableKey, Mark]
    unseen: dict[TableKey, list[tuple[int, int]]]
    ranges: dict[TableKey, list[tuple[int, int, int]]]


def seen_whole(session: Session, keys: Collection[TableKey]) -> dict[TableKey, Mark]:
    """Return the write id snapshots of tables whose write ids are all seen; tables that never had a counter are missing."""
    rows = session.rows(LAST_OF[len(keys) == 1], **naming(keys))
    return {TableKey(*names): Mark(int(last), int(last) or None, True, int(transaction)) for *names, last, transaction in rows}


def snapshot(session: Session, keys: Collection[TableKey], mark: int, exceptions: Sequence[int]) -> SeenTables:
    """Return the write id snapshots of tables by a snapshot of transactions. Other tables' snapshots may be among them.

    The `exceptions` have to ascend; those above the mark are ignored. Tables without write ids are missing; unseen write ids ascend.
    """
    marks: dict[TableKey, Mark] = {}
    unseen: dict[TableKey, list[tuple[int, int]]] = {}
    ranges: dict[TableKey, list[tuple[int, int, int]]] = {}
    below = list(exceptions[: bisect_right(exceptions, mark)])
    values = naming(keys)
    if below:
        values["exceptions"] = below
    settled = below[0] - 1 if below else mark
    query = snapshot_query(one=len(keys) == 1, excepts=bool(below))
    for row in session.rows(query, mark=mark, settled=settled, **values):
        key = TableKey(*row[:3])
        if row[3]:
            unseen.setdefault(key, []).append((int(row[3]), int(row[4])))
        else:
            marks[key] = Mark(int(row[5]), row[6], bool(row[7]), int(row[4])).raised(row[8], seen=row[8] is not None)
            if row[9]:
                each = iter(orjson.loads(f"[{row[9]}]"))
                ranges[key] = list(zip(each, each, each, strict=True))
    for pairs in unseen.values():
        pairs.sort()
    return SeenTables(marks, unseen, ranges)
