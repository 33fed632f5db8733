"""Pages to find tables by: catalogs, databases, and a search over all names."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from metastore.console.pages.asking import ROWS, catalog_of
from metastore.console.visit import Visit
from metastore.errors import InvalidInput
from metastore.idl import GetDatabaseRequest


@dataclass(frozen=True, slots=True)
class ListedDatabase:
    """A database in a list."""

    name: str
    owner: str | None
    description: str | None
    location: str | None


@dataclass(frozen=True, slots=True)
class ListedTable:
    """A table in a list."""

    database: str
    name: str
    type: str
    owner: str | None
    comment: str | None


@dataclass(frozen=True, slots=True)
class Catalog:
    """A page of the databases of a catalog, or of the results of a search in it."""

    catalogs: list[str]
    catalog: str
    search: str
    databases: list[ListedDatabase]
    next_database: str | None
    tables: list[ListedTable]
    """Empty without a search."""
    next_table: str | None
    """The key of the next page of tables, opaque."""


def catalog(visit: Visit, catalog: str = "", search: str = "", after_database: str = "", after_table: str = "") -> Catalog:
    """List the databases of a catalog; with a search all databases and tables whose names contain it, or `database.table`."""
    where = catalog_of(visit, catalog)
    part = search.strip().lower()
    first, dot, second = part.rpartition(".")
    databases: Any = None
    if not after_table:
        databases = visit.run("show_databases_page", catalog=where, part=first if dot else part, after=after_database, most=ROWS)
    tables: Any = None
    if part and not after_database:
        tables = visit.run("show_tables_page", catalog=where, parts=(first, second), after=_pair(after_table), most=ROWS)
    return Catalog(
        catalogs=sorted(visit.run("get_catalogs").names),
        catalog=where,
        search=search,
        databases=[ListedDatabase(*row) for row in databases.rows] if databases is not None else [],
        next_database=databases.next if databases is not None else None,
        tables=[ListedTable(*row) for row in tables.rows] if tables is not None else [],
        next_table=json.dumps(tables.next) if tables is not None and tables.next is not None else None,
    )


def _pair(text: str) -> tuple[str, str]:
    """Read the key of a page of tables: a JSON list of the names of a database and a table. InvalidInput."""
    if not text:
        return ("", "")
    try:
        first, second = json.loads(text)
    except (ValueError, TypeError):
        first = second = None
    if not isinstance(first, str) or not isinstance(second, str):
        raise InvalidInput("after_table is not a key of a page: take it from the field next_table of the page before")
    return first, second


@dataclass(frozen=True, slots=True)
class Database:
    """A database, and a page of its tables."""

    catalog: str
    name: str
    description: str | None
    location: str | None
    managed_location: str | None
    owner: str | None
    created: int
    """In milliseconds."""
    search: str
    tables: list[ListedTable]
    next: str | None
    parameters: dict[str, str] = field(default_factory=dict)


def database(visit: Visit, database: str, catalog: str = "", search: str = "", after: str = "") -> Database:
    """Show a database and its tables whose names contain the search."""
    where = catalog_of(visit, catalog)
    found: Any = visit.run("get_database_req", request=GetDatabaseRequest(name=database, catalogName=where))
    page = visit.run(
        "show_database_tables_page", catalog=where, database=found.name, parts=("", search.strip().lower()), after=("", after), most=ROWS
    )
    return Database(
        catalog=where,
        name=found.name,
        description=found.description,
        location=found.locationUri,
        managed_location=found.managedLocationUri,
        owner=found.ownerName,
        created=(found.createTime or 0) * 1000,
        search=search,
        tables=[ListedTable(*row) for row in page.rows],
        next=page.next[1] if page.next is not None else None,
        parameters=dict(found.parameters or {}),
    )
