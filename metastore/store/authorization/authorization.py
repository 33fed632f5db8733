"""Read the facts for authorization: owners of objects, and grants on them. Never decides, never changes a row."""

from __future__ import annotations

from collections.abc import Collection, Container, Sequence
from typing import NamedTuple

import sqlalchemy as sa

from metastore.idl import PrincipalType
from metastore.places import END, LENGTH, above
from metastore.store.authorization.privileges import COLUMNS, JOINED, PRIVILEGE
from metastore.store.catalog.places import places
from metastore.store.core.clauses import Among, ascending, constant, looked_up
from metastore.store.core.database import Session
from metastore.store.schema.engines import data_connectors
from metastore.store.schema.model import compactions, databases, functions, locks, tables, transactions

TABLE, DATABASE, FUNCTION, TRANSACTION, LOCK, COMPACTION = tables.c, databases.c, functions.c, transactions.c, locks.c, compactions.c
IN_DATABASE = sa.and_(DATABASE.catalog == sa.bindparam("catalog_key"), DATABASE.name == sa.bindparam("database_key"))
OBJECT = (
    sa.select(
        DATABASE.owner_name,
        DATABASE.owner_type,
        DATABASE.location,
        DATABASE.managed_location,
        TABLE.id,
        TABLE.owner,
        TABLE.owner_type,
        TABLE.location,
        TABLE.type,
    )
    .select_from(databases.outerjoin(tables, sa.and_(TABLE.database_id == DATABASE.id, TABLE.name == sa.bindparam("name_key"))))
    .where(IN_DATABASE)
)
TABLES = (
    sa.select(TABLE.name, TABLE.id, TABLE.owner, TABLE.owner_type)
    .select_from(tables.join(databases, TABLE.database_id == DATABASE.id))
    .where(IN_DATABASE)
)
TABLE_KEYS = sa.select(TABLE.name, TABLE.id).select_from(tables.join(databases, TABLE.database_id == DATABASE.id)).where(IN_DATABASE)
TABLE_NAMES = (
    sa.select(TABLE.id, DATABASE.catalog, DATABASE.name, TABLE.name)
    .select_from(tables.join(databases, TABLE.database_id == DATABASE.id))
    .where(Among(TABLE.id, "keys"))
)
ONE_FUNCTION = (
    sa.select(FUNCTION.owner_name, FUNCTION.owner_type)
    .select_from(functions.join(databases, FUNCTION.database_id == DATABASE.id))
    .where(IN_DATABASE, FUNCTION.name == sa.bindparam("name_key"))
)
OWNERS = sa.select(DATABASE.catalog, DATABASE.name, DATABASE.owner_name, DATABASE.owner_type)
GRANTED = (
    sa.select(
        COLUMNS["object_type"],
        COLUMNS["catalog"],
        COLUMNS["database"],
        PRIVILEGE.table_id,
        PRIVILEGE.column_name,
        PRIVILEGE.connector_name,
        PRIVILEGE.privilege,
        PRIVILEGE.grant_option,
    )
    .select_from(JOINED)
    .where(Among(PRIVILEGE.principal_name, "names"), PRIVILEGE.principal_type == sa.bindparam("type_key"))
)
CONNECTOR_OWNERS = sa.select(data_connectors.c.name, data_connectors.c.owner_name, data_connectors.c.owner_type)
CONNECTOR_OWNER = CONNECTOR_OWNERS.where(data_connectors.c.name == sa.bindparam("name_key"))
OWNED = sa.and_(
    Among(TABLE.owner, "names"), sa.func.coalesce(TABLE.owner_type, constant(int(PrincipalType.USER))) == sa.bindparam("type_key")
)
"""The condition for tables of owners. An owner without a type is a user: some clients send no type."""
WITH_OWN_TABLES = sa.select(DATABASE.catalog, DATABASE.name).where(
    sa.exists(sa.select(TABLE.id).where(TABLE.database_id == DATABASE.id, OWNED))
)
OWN_TABLES = sa.select(TABLE.name).select_from(tables.join(databases, TABLE.database_id == DATABASE.id)).where(IN_DATABASE, OWNED)
USERS_OF_TRANSACTIONS = sa.select(TRANSACTION.id, TRANSACTION.user).where(Among(TRANSACTION.id, "keys"))
USERS_OF_RANGE = sa.select(TRANSACTION.id, TRANSACTION.user).where(
    TRANSACTION.id >= sa.bindparam("low"), TRANSACTION.id <= sa.bindparam("high")
)
USER_OF_LOCK = sa.select(LOCK.user).where(LOCK.id == sa.bindparam("key"))
DATABASES_HOLDING = sa.select(DATABASE.catalog, DATABASE.name, DATABASE.location, DATABASE.managed_location).where(
    sa.or_(Among(DATABASE.place, "places"), Among(DATABASE.managed_place, "places"))
)
NAMED = looked_up(
    sa.select(TABLE.name, TABLE.id, TABLE.owner, TABLE.owner_type)
    .select_from(tables.join(databases, TABLE.database_id == DATABASE.id))
    .where(IN_DATABASE),
    TABLE.name,
    "names",
)
COMPACTED = sa.select(COMPACTION.id, COMPACTION.catalog, COMPACTION.database, COMPACTION.table).where(Among(COMPACTION.id, "keys"))


class Owner(NamedTuple):
    """The owner of an object; type is a PrincipalType of the interface."""

    name: str
    type: int | None


def owner(name: str | None, kind: int | None) -> Owner | None:
    """Return an owner as rows have it, None for none."""
    return Owner(name, kind) if name else None


class OwnedTable(NamedTuple):
    """A table: its key, its owner and its location."""

    key: int
    owner: Owner | None
    location: str | None
    type: str


class Facts(NamedTuple):
    """The facts of an existing database, and of one of its tables if that exists too."""

    owner: Owner | None
    locations: tuple[str, ...]
    table: OwnedTable | None


def facts(session: Session, catalog: str, database: str, table: str | None) -> Facts | None:
    """Return the facts of a database and of one of its tables; None for a missing database."""
    row = session.row(OBJECT, catalog_key=catalog, database_key=database, name_key=table or "")
    if row is None:
        return None
    found = None if row[4] is None else OwnedTable(row[4], owner(row[5], row[6]), row[7], row[8])
    return Facts(owner(row[0], row[1]), tuple(place for place in row[2:4] if place), found)


def tables_of(session: Session, catalog: str, database: str, names: Sequence[str] | None = None) -> dict[str, tuple[int, Owner | None]]:
    """Return the key and the owner of tables of a database, by name: of all tables, or of the named ones."""
    if names is None:
        rows = session.rows(TABLES, catalog_key=catalog, database_key=database)
    else:
        rows = session.rows(NAMED, catalog_key=catalog, database_key=database, names=ascending(names))
    return {name: (key, owner(who, kind)) for name, key, who, kind in rows}


def names_of(session: Session, keys: Sequence[int]) -> dict[int, tuple[str, str, str]]:
    """Return (catalog, database, table) of tables by their keys."""
    return {key: (catalog, database, name) for key, catalog, database, name in session.rows(TABLE_NAMES, keys=list(keys))}


def names_among(session: Session, catalog: str, database: str, keys: Container[int]) -> set[str]:
    """Return the names of a database's tables whose keys are among many. The query reads all tables of the database."""
    return {name for name, key in session.rows(TABLE_KEYS, catalog_key=catalog, database_key=database) if key in keys}


def function_owner(session: Session, catalog: str, database: str, name: str) -> tuple[bool, Owner | None]:
    """Return whether a function exists, and its owner."""
    row = session.row(ONE_FUNCTION, catalog_key=catalog, database_key=database, name_key=name)
    return row is not None, None if row is None else owner(row[0], row[1])


def database_owners(session: Session) -> dict[tuple[str, str], Owner | None]:
    """Return the owner of each database, by catalog and name."""
    return {(catalog, name): owner(who, kind) for catalog, name, who, kind in session.rows(OWNERS)}


def connector_owners(session: Session, name: str | None = None) -> dict[str, Owner | None]:
    """Return the owners of data connectors by name: of all, or of the named one if it exists."""
    rows = session.rows(CONNECTOR_OWNERS) if name is None else session.rows(CONNECTOR_OWNER, name_key=name)
    return {found: owner(who, kind) for found, who, kind in rows}


class Granted(NamedTuple):
    """One privilege; type is a HiveObjectType of the interface, the parts that its object lacks are None."""

    type: int
    catalog: str | None
    database: str | None
    table_key: int | None
    column: str | None
    connector: str | None
    privilege: str
    option: int


def granted(session: Session, names: Sequence[str], kind: int) -> list[Granted]:
    """Return all that was granted to principals of one type."""
    rows = session.rows(GRANTED, names=list(names), type_key=kind)
    return [Granted(*row) for row in rows]


def with_own_tables(session: Session, names: Sequence[str], kind: int) -> set[tuple[str, str]]:
    """Return the databases, as (catalog, name), in which principals of one type own a table."""
    return {(catalog, name) for catalog, name in session.rows(WITH_OWN_TABLES, names=list(names), type_key=kind)}


def own_tables(session: Session, catalog: str, database: str, names: Sequence[str], kind: int) -> set[str]:
    """Return the names of the tables of a database that belong to one of the principals of a kind."""
    return {name for (name,) in session.rows(OWN_TABLES, catalog_key=catalog, database_key=database, names=list(names), type_key=kind)}


def users_of_transactions(session: Session, keys: Sequence[int]) -> dict[int, str | None]:
    """Return the users of transactions, by id."""
    return dict(session.rows(USERS_OF_TRANSACTIONS, keys=list(keys)))


def users_of_range(session: Session, low: int, high: int) -> dict[int, str | None]:
    """Return the users of the transactions from one id to another, by id."""
    return dict(session.rows(USERS_OF_RANGE, low=low, high=high))


def user_of_lock(session: Session, key: int) -> tuple[bool, str | None]:
    """Return whether a lock exists, and its owner."""
    row = session.row(USER_OF_LOCK, key=key)
    return row is not None, None if row is None else row[0]


def compacted(session: Session, keys: Sequence[int]) -> list[tuple[int, str, str, str]]:
    """Return (id, catalog, database, table) of entries of the compaction queue."""
    return [(row[0], row[1], row[2], row[3]) for row in session.rows(COMPACTED, keys=list(keys))]


def around(session: Session, wanted: Collection[str]) -> list[places.PlaceRow]:
    """Return the tables, partitions and databases at or in places, and the tables that contain these. Others may be among them."""
    texts = [each[:LENGTH] for each in wanted]
    holding = {holder[:LENGTH] for each in wanted for holder in above(each)}
    return places.found(session, min(texts), max(text + END for text in texts), sorted(holding))


def databases_holding(session: Session, place: str) -> list[tuple[str, str, str | None, str | None]]:
    """Return (catalog, database, location, managed location) of the databases whose directories contain a place."""
    return [
        (row[0], row[1], row[2], row[3])
        for row in session.rows(DATABASES_HOLDING, places=sorted({each[:LENGTH] for each in (place, *above(place))}))
    ]
