"""Rows of partitions. Every function runs a fixed number of statements, however many partitions it handles."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

import sqlalchemy as sa

from metastore.idl import Partition, Table
from metastore.places import END, LENGTH, is_in, place_of
from metastore.store.catalog import descriptors
from metastore.store.catalog.partitions.partition_structs import FIELDS, INSERTED, PartitionStructs, rows_of
from metastore.store.catalog.tables import tables
from metastore.store.catalog.tables.tables import KEY as TABLE_KEY
from metastore.store.core.clauses import Among, ascending, constant, looked_up
from metastore.store.core.database import Session
from metastore.store.drivers.answer import Answer
from metastore.store.drivers.contract import Retry, Row
from metastore.store.schema.model import partition_statistics, partitions, privileges
from metastore.store.schema.model import tables as tables_table

PARTITION = partitions.c
OF_TABLE = PARTITION.table_id == sa.bindparam("table_id")
ALL = sa.select(*FIELDS).where(OF_TABLE).order_by(PARTITION.name)
AFTER = sa.select(*FIELDS).where(OF_TABLE, PARTITION.name > sa.bindparam("after")).order_by(PARTITION.name).limit(sa.bindparam("limit"))
RANGE_AFTER = AFTER.where(PARTITION.name >= sa.bindparam("low"), PARTITION.name < sa.bindparam("high"))
NAMED = looked_up(sa.select(*FIELDS).where(OF_TABLE), PARTITION.name, "names")
ONE = sa.select(*FIELDS).where(OF_TABLE, PARTITION.name == sa.bindparam("name_key"))
LOCK_NAMED = looked_up(sa.select(*FIELDS).where(OF_TABLE).with_for_update(), PARTITION.name, "names")
LOCK_ALL = sa.select(*FIELDS).where(OF_TABLE).order_by(PARTITION.name).with_for_update()
LOCK_OTHERS = LOCK_ALL.where(PARTITION.columns_hash != sa.bindparam("columns"))
EXISTING = looked_up(sa.select(PARTITION.name).where(OF_TABLE), PARTITION.name, "names")
NAMES = sa.select(PARTITION.name).where(PARTITION.table_id == TABLE_KEY.scalar_subquery()).order_by(PARTITION.name)
NAMES_FIRST = NAMES.limit(sa.bindparam("limit"))
NAMES_AND_VALUES = sa.select(PARTITION.name, PARTITION.partition_values).where(OF_TABLE).order_by(PARTITION.name)
NAMES_RANGE = (
    sa.select(PARTITION.name, PARTITION.partition_values)
    .where(OF_TABLE, PARTITION.name >= sa.bindparam("low"), PARTITION.name < sa.bindparam("high"))
    .order_by(PARTITION.name)
)
COUNT = sa.select(sa.func.count()).where(OF_TABLE)
OUTSIDE = sa.select(PARTITION.location).where(OF_TABLE, sa.not_(PARTITION.location.like(constant("./%"))))
OUTSIDE_IN = (
    sa.select(PARTITION.table_id, PARTITION.location)
    .select_from(partitions.join(tables_table, PARTITION.table_id == tables_table.c.id))
    .where(
        tables_table.c.database_id == sa.bindparam("key"), PARTITION.place.is_not(None), sa.not_(PARTITION.location.like(constant("./%")))
    )
)
DELETE = sa.delete(partitions).where(Among(PARTITION.id, "keys"))
DELETE_STATISTICS = sa.delete(partition_statistics).where(Among(partition_statistics.c.partition_id, "keys"))
DELETE_PRIVILEGES = sa.delete(privileges).where(privileges.c.table_id == sa.bindparam("of_table"), Among(privileges.c.partition_id, "keys"))
HAND_OVER_STATISTICS = (
    sa.update(partition_statistics).where(Among(partition_statistics.c.partition_id, "keys")).values(table_id=sa.bindparam("new_table"))
)
_BELOW = sa.func.substr(PARTITION.location, 3, type_=sa.String())
DETACH = (  # MySQL assigns one column after the other, and the place needs the old location
    sa.update(partitions)
    .where(OF_TABLE, PARTITION.location.like(constant("./%")))
    .ordered_values(
        (
            PARTITION.place,
            sa.func.coalesce(PARTITION.place, sa.func.substr(sa.bindparam("base_place", type_=sa.String()) + _BELOW, 1, LENGTH)),
        ),
        (PARTITION.location, sa.bindparam("base", type_=sa.String()) + _BELOW),
    )
)
PLACED = sa.select(PARTITION.id, PARTITION.table_id, PARTITION.name, PARTITION.location).where(
    PARTITION.place >= sa.bindparam("low"), PARTITION.place < sa.bindparam("high")
)
MOVE = sa.update(partitions).where(PARTITION.id == sa.bindparam("key")).values(location=sa.bindparam("to"), place=sa.bindparam("to_place"))
SET_COLUMNS = sa.update(partitions).where(OF_TABLE).values(columns_hash=sa.bindparam("columns"))


def insert(session: Session, table: Table, named: Iterable[tuple[str, Partition]]) -> None:
    """Add partitions (name, struct) to a table, ordered by name: calls with overlapping lists then wait for each other only once."""
    session.insert_many(partitions, INSERTED, rows_of(session, table, sorted(named, key=itemgetter(0))))


def replace(session: Session, table: Table, changed: Sequence[tuple[int, str, Partition]]) -> None:
    """Write changed partitions (key, new name, struct) under their old keys.

    The error for a new name that another partition has may be raised by the next statement only: run one before directories are moved.
    """
    rows = rows_of(session, table, [(name, partition) for _, name, partition in changed])
    session.enqueue_upsert(partitions, ("id", *INSERTED), [(key, *row) for (key, _, _), row in zip(changed, rows, strict=True)])


def hand_over(session: Session, source: Table, table: Table, moved: Sequence[tuple[int, str, Partition]]) -> None:
    """Give partitions (key, name, struct) of one table to another: their statistics follow, their privileges do not."""
    keys = [key for key, _, _ in moved]
    replace(session, table, moved)
    session.execute(HAND_OVER_STATISTICS, keys=keys, new_table=table.id)
    session.execute(DELETE_PRIVILEGES, of_table=source.id, keys=keys)


def existing(session: Session, table_id: int, names: Sequence[str]) -> set[str]:
    """Return the names, among some, of a table's existing partitions."""
    return {*session.column(EXISTING, table_id=table_id, names=ascending(names))}


def existing_in(session: Session, table: Table, names: Sequence[str]) -> tuple[Table | None, set[str]]:
    """Lock a table as `tables.lock_known` does; return it, None when it is gone, and the names, among some, of its partitions.

    Both statements take one round trip.
    """
    assert table.id is not None
    answer = tables.lock_known(session, table)
    there = existing(session, table.id, names)
    return tables.locked(session, table, answer), there


def find(session: Session, table: Table, name: str) -> Partition | None:
    """Return a partition, or None."""
    rows = session.rows(ONE, table_id=table.id, name_key=name)
    return PartitionStructs(session, table).structs(rows)[0] if rows else None


def named_rows(session: Session, table: Table, names: Sequence[str]) -> Sequence[Row]:
    """Return the rows (`FIELDS`) of the names that exist, ascending by name."""
    return session.rows(NAMED, table_id=table.id, names=ascending(names))


def named(session: Session, table: Table, names: Sequence[str]) -> list[tuple[int, str, Partition]]:
    """Return (key, name, partition) of the names that exist, ascending by name."""
    return _keyed(session, table, named_rows(session, table, names))


def lock_named(session: Session, table: Table, names: Sequence[str]) -> list[tuple[int, str, Partition]]:
    """Like `named`, with the rows locked until the transaction ends."""
    return _keyed(session, table, _locked_rows(session, table, names, _enqueue_lock(session, table, names)))


class Locked(NamedTuple):
    """A locked table, and its existing partitions of some names in the form of `named`."""

    table: Table
    partitions: list[tuple[int, str, Partition]]


class Locking:
    """Locks a table, as `tables.lock_known` does, and its named partitions: in one round trip, possibly with the next statement."""

    def __init__(self, session: Session, table: Table, names: Sequence[str], known: tables.Known | None = None) -> None:
        """`known` is given for a table that may have been replaced since it was read. `rows` notes in it whether it is current."""
        self._session, self._table, self._names, self._known = session, table, names, known or tables.Known(table, None)
        self._known.is_current = False
        self._held = tables.lock_known(session, table)
        self._rows = _enqueue_lock(session, table, names)

    def rows(self) -> list[Row] | None:
        """Return the rows (`FIELDS`) of existing partitions, ascending by name; None when the table is gone or not the known one.

        Retry as in `_locked_rows`.
        """
        rows = _locked_rows(self._session, self._table, self._names, self._rows)
        self._known.is_current = tables.is_locked(self._table, self._held, self._known.state)
        return rows if self._known.is_current else None

    def locked(self) -> Locked | None:
        """Return the locked rows, or None, as `rows` does."""
        rows = self.rows()
        held = tables.locked(self._session, self._table, self._held, self._known.state)
        return None if rows is None or held is None else Locked(held, _keyed(self._session, held, rows))


def _enqueue_lock(session: Session, table: Table, names: Sequence[str]) -> Answer:
    return session.enqueue(LOCK_NAMED, table_id=table.id, names=ascending(names))


def _locked_rows(session: Session, table: Table, wanted: Sequence[str], answer: Answer) -> list[Row]:
    """Return the rows that were locked.

    Raises Retry when a row was rewritten by a transaction for which this one waited: PostgreSQL then leaves the row out.
    """
    assert table.id is not None
    rows = list(answer.rows)
    if len(rows) < len(wanted) and len(existing(session, table.id, wanted)) > len(rows):
        raise Retry(f"partitions of {table.dbName}.{table.tableName} were rewritten meanwhile")
    return rows


def lock_all(session: Session, table: Table) -> list[tuple[int, str, Partition]]:
    """Return (key, name, partition) of all partitions, ascending by name, locked until the transaction ends."""
    return _keyed(session, table, session.rows(LOCK_ALL, table_id=table.id))


def lock_with_other_columns(session: Session, table: Table, columns: Sequence[Any]) -> list[tuple[int, str, Partition]]:
    """Like `lock_all`, without the partitions that have just these columns."""
    hash_ = descriptors.hash_of(descriptors.encode_columns(columns))
    return _keyed(session, table, session.rows(LOCK_OTHERS, table_id=table.id, columns=hash_))


def _keyed(session: Session, table: Table, rows: Sequence[Row]) -> list[tuple[int, str, Partition]]:
    structs = PartitionStructs(session, table).structs(rows)
    return [(row[0], row[1], struct) for row, struct in zip(rows, structs, strict=True)]


def page(session: Session, table: Table, prefix: str, after: str, size: int) -> Sequence[Row]:
    """Return the rows (`FIELDS`) of the first partitions after a name whose names begin with a prefix, ascending by name."""
    if not prefix:
        return session.rows(AFTER, table_id=table.id, after=after, limit=size)
    return session.rows(RANGE_AFTER, table_id=table.id, after=after, limit=size, **_beginning_with(session, prefix))


def names(session: Session, catalog: str, database: str, table: str, limit: int = -1) -> list[str]:
    """Return the names of a table's first `limit` partitions, ascending; all with a negative limit; none for a missing table."""
    keys = {"catalog_key": catalog, "database_key": database, "name_key": table}
    return session.column(NAMES, **keys) if limit < 0 else session.column(NAMES_FIRST, **keys, limit=limit)


def names_with_prefix(session: Session, table_id: int, prefix: str) -> list[tuple[str, str]]:
    """Return (name, values as JSON) of the partitions whose name begins with a prefix, ascending by name; "" takes all."""
    if not prefix:
        return [(row[0], row[1]) for row in session.rows(NAMES_AND_VALUES, table_id=table_id)]
    return [(row[0], row[1]) for row in session.rows(NAMES_RANGE, table_id=table_id, **_beginning_with(session, prefix))]


def _beginning_with(session: Session, prefix: str) -> dict[str, str]:
    return {"low": session.lowest(prefix), "high": prefix + "\U0010ffff"}


def count(session: Session, table_id: int) -> int:
    """Return the number of a table's partitions."""
    return session.number(COUNT, table_id=table_id) or 0


def locations_outside(session: Session, table_id: int) -> list[str]:
    """Return the locations of partitions that are not below the table's."""
    return session.column(OUTSIDE, table_id=table_id)


def locations_outside_in(session: Session, database_id: int) -> list[tuple[int, str]]:
    """Return (key of the table, location) of a database's partitions that are not below their table's."""
    return [(table_id, location) for table_id, location in session.rows(OUTSIDE_IN, key=database_id)]


def delete(session: Session, table: Table, keys: Sequence[int]) -> None:
    """Remove locked partitions of a table with their dependent rows."""
    session.enqueue(DELETE_STATISTICS, keys=list(keys))
    session.enqueue(DELETE_PRIVILEGES, of_table=table.id, keys=list(keys))
    session.enqueue(DELETE, keys=list(keys))


def detach(session: Session, table_id: int, base: str) -> None:
    """Make the relative locations of partitions absolute, below `base`: their table gets another location, and they keep theirs."""
    session.execute(DETACH, table_id=table_id, base=base.rstrip("/") + "/", base_place=(place_of(base) or "") + "/")


def follow(session: Session, table_id: int, old: str, new: str) -> None:
    """Let partitions in a table's directory follow it from one location to another, however their own locations are spelled.

    Partitions at their default places are stored relative to the table and need no change: the time does not grow with their number.
    """
    base, target = place_of(old) or "", place_of(new) or ""
    changes = []
    for key, owner, name, location in session.rows(PLACED, low=session.lowest(base[:LENGTH]), high=base[:LENGTH] + END):
        place = place_of(old.rstrip("/") + location[1:] if location.startswith("./") else location)
        if owner != table_id or place is None or not is_in(place, base):
            continue
        rest = place[len(base) :]
        to = location if location.startswith("./") else f".{rest}" if rest else new
        changes.append({"key": key, "to": to, "to_place": None if to == f"./{name}" else (target + rest)[:LENGTH]})
    if changes:
        session.executemany(MOVE, changes)


def set_columns(session: Session, table_id: int, columns: Sequence[Any]) -> None:
    """Give all partitions one column list."""
    body = descriptors.encode_columns(columns)
    descriptors.insert(session, table_id, [(descriptors.hash_of(body), body)])
    session.execute(SET_COLUMNS, table_id=table_id, columns=descriptors.hash_of(body))
