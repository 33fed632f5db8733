"""Entries of the methods of catalogs, databases, tables and indexes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from metastore.errors import MetaError
from metastore.idl import GetTablesResult, Table
from metastore.methods.forms import unpack
from metastore.methods.forms.rules import (
    ALTER,
    CATALOG,
    CREATE,
    DATABASE,
    DROP,
    READ,
    SEE,
    TABLE,
    WRITES,
    Ask,
    Decision,
    Handler,
    Want,
    database_name_of,
    get,
    hiding,
    named,
    needs,
    on_database,
    on_table,
    put_caller,
)
from metastore.rules.names import exact_name, normalize
from metastore.service.authorization import default_places, table_changes
from metastore.service.authorization.lookups import sources
from metastore.service.authorizer import Access, owner_of
from metastore.service.call.context import Call
from metastore.service.catalog.databases import get_databases
from metastore.service.catalog.tables import tables
from metastore.service.engines.indexes import index_table_name

_see = (SEE,)
_named_database = on_database(_see, "req.dbName", "req.catName")
DATABASES_SHOWN = "databases with any privilege on them or in them"
TABLES_SHOWN = "tables with any privilege"


def kept_catalogs(decision: Decision, _args: Any, value: Any) -> Any:
    seen = decision.allowed([Access(SEE, CATALOG, name) for name in value.names])
    value.names = [name for name, ok in zip(value.names, seen, strict=True) if ok]
    return value


def kept_names(decision: Decision, args: Any, value: list[str]) -> list[str]:
    """Keep names of databases; the argument `pattern`, if there is one, names their catalog."""
    where, _ = database_name_of(decision.call, getattr(args, "pattern", None), None)
    seen = decision.databases((where or "", name) for name in value)
    return [name for name in value if (where, name) in seen]


def kept_databases(decision: Decision, _args: Any, value: Any) -> Any:
    seen = decision.databases((each.catalogName, each.name) for each in value.databases)
    value.databases = [each for each in value.databases if (each.catalogName, each.name) in seen]
    return value


def tables_in(path: str, catalog_path: str | None = None) -> Callable[[Decision, Any, list[str]], list[str]]:
    """Keep names of tables of the database that a field names."""

    def keep(decision: Decision, args: Any, value: list[str]) -> list[str]:
        where, name = database_name_of(decision.call, get(args, path), get(args, catalog_path) if catalog_path else None)
        if decision.sees_all_tables(where or "", name or ""):
            return value
        seen = decision.tables(where or "", name or "", value)
        return [each for each in value if each in seen]

    return keep


_kept_in_database = tables_in("db_name")


def all_tables(decision: Decision, args: Any, handler: Handler) -> list[str]:
    """Return the names of the tables that may be shown. Where the authorizer can list these, the others are not read."""
    where, name = database_name_of(decision.call, args.db_name, None)
    if where is not None and name is not None and not decision.sees_all_tables(where, name):
        seen = decision.seen_tables(where, name)
        if seen is not None:
            return sorted(seen)
    value: list[str] = handler(decision.call, args)
    return _kept_in_database(decision, args, value)


def kept_metas(decision: Decision, args: Any, value: list[Any]) -> list[Any]:
    where, _ = database_name_of(decision.call, args.db_patterns, None)
    names: dict[str, list[str]] = {}
    for each in value:
        names.setdefault(each.dbName, []).append(each.tableName)
    seen = {name: decision.tables(where or "", name, listed) for name, listed in names.items()}
    return [each for each in value if each.tableName in seen[each.dbName]]


def kept_tables(decision: Decision, _args: Any, value: list[Table]) -> list[Table]:
    seen = decision.allowed([table_access(each) for each in value])
    return [each for each, ok in zip(value, seen, strict=True) if ok]


def table_access(each: Table) -> Access:
    """Return the access that decides whether a table may be shown."""
    owner = owner_of(each.owner, each.ownerType)
    return Access(SEE, TABLE, each.catName, each.dbName, each.tableName, owner=owner, key=each.id)


def limited(path: str, where: str, catalog_path: str | None, name: Callable[[Any], str]) -> Callable[[Decision, Any, Handler], list[Any]]:
    """List without the limit at a path, keep the tables that may be shown, and return as many as the limit allows."""

    def around(decision: Decision, args: Any, handler: Handler) -> list[Any]:
        *way, last = path.split(".")
        holder = get(args, ".".join(way)) if way else args
        limit = unpack.limit(getattr(holder, last))
        setattr(holder, last, -1)
        value = handler(decision.call, args)
        found, database = database_name_of(decision.call, get(args, where), get(args, catalog_path) if catalog_path else None)
        seen = decision.tables(found or "", database or "", [name(each) for each in value])
        value = [each for each in value if name(each) in seen]
        return value if limit < 0 else value[:limit]

    return around


def database_of_tables(call: Call, args: Any) -> Iterator[Want]:
    """Require any privilege on the database. Patterns of databases and tables require none: only tables that may be shown are listed."""
    request = args.req
    if request.tblNames is not None or request.tablesPattern is None or exact_name(request.dbName) is not None:
        yield from _named_database.find(call, args)


def _by_pattern(decision: Decision, args: Any, handler: Handler, catalog: str) -> Any:
    """Ask the handler, database by database, for the tables that match and may be shown."""
    request, found = args.req, list[Table]()
    matching = get_databases(decision.call, catalog, database_name_of(decision.call, request.dbName, request.catName)[1] or "")
    if not matching:
        return handler(decision.call, args)
    pattern, request.tablesPattern = request.tablesPattern, None
    for each in matching:
        seen = decision.tables(catalog, each, tables.matching_tables(decision.call, catalog, each, pattern))
        request.dbName, request.tblNames = each, sorted(seen)
        found += handler(decision.call, args).tables
    return GetTablesResult(tables=found)


def by_name(path: str, holder_path: str | None) -> Callable[[Decision, Any, Handler], Any]:
    """Ask the handler only for tables that may be shown, among the named ones or the matches of patterns."""

    def around(decision: Decision, args: Any, handler: Handler) -> Any:
        holder = get(args, holder_path) if holder_path else args
        attribute = "tblNames" if holder_path else "tbl_names"
        call, names = decision.call, getattr(holder, attribute)
        where, found = database_name_of(call, get(args, path), getattr(holder, "catName", None))
        if names is None and getattr(holder, "tablesPattern", None) is not None:
            return _by_pattern(decision, args, handler, where or "")
        if names:
            seen = decision.tables(where or "", found or "", [normalize(name) for name in names])
            setattr(holder, attribute, [name for name in names if normalize(name) in seen])
        return handler(call, args)

    return around


def creates_catalog(_call: Call, args: Any) -> Iterator[Want]:
    new = args.catalog.catalog
    if new is not None:
        yield Want((CREATE,), CATALOG, normalize(new.name or ""), locations=some(new.locationUri))


def alters_catalog(_call: Call, args: Any) -> Iterator[Want]:
    new, name = args.rqst.newCat, normalize(args.rqst.name or "")
    yield Want((ALTER,), CATALOG, name, hide=hiding(args, None, "rqst.name"), locations=some(new and new.locationUri))


def some(*locations: str | None) -> tuple[str, ...]:
    """Return the given locations."""
    return tuple(each for each in locations if each)


def creates_database(path: str, name: str, catalog_path: str) -> Ask:
    def find(call: Call, args: Any) -> Iterator[Want]:
        new = get(args, path)
        if new is not None:
            where = normalize(getattr(new, catalog_path) or call.config.default_catalog)
            made, places = normalize(getattr(new, name) or ""), some(new.locationUri, new.managedLocationUri)
            by_default = tuple if new.locationUri else partial(default_places.of_database, call, where, made)
            yield Want((CREATE,), CATALOG, where, made, locations=places, by_default=by_default)

    return Ask("CREATE on the server, and the right to its locations", find)


def alters_database(path: str, new_path: str) -> Ask:
    def find(call: Call, args: Any) -> Iterator[Want]:
        new = get(args, new_path)
        where, name = database_name_of(call, get(args, path), new.catalogName if new is not None and new_path != "db" else None)
        if name is not None and new is not None:
            owner, places = (new.ownerName, new.ownerType), some(new.locationUri, new.managedLocationUri)
            yield Want((ALTER,), DATABASE, where, name, hide=hiding(args, path, None), new_owner=owner, locations=places)

    return Ask("ownership or ALTER on the database, ownership for a new owner, and the right to new locations", find)


def makes_index_table(call: Call, args: Any) -> Iterator[Want]:
    """Require the right to create the table of a new index where it is missing, else the right to drop it."""
    try:
        found = index_table_name(args.new_index, call.config.default_catalog) if args.new_index is not None else None
    except MetaError:
        return  # the handler reports it
    if found is not None:
        yield Want((DROP,), TABLE, *found, hide=hiding(args, None, "new_index.indexTableName"), otherwise=CREATE)


def creates_table(path: str, holder: str | None = None) -> tuple[Ask, ...]:
    def find(call: Call, args: Any) -> Iterator[Want]:
        new = get(args, path)
        if new is None or new.dbName is None:
            return
        where, name = database_name_of(call, new.dbName, new.catName)
        if name is not None:
            hide = hiding(args, f"{path}.dbName", None)
            asked = [get(args, f"{holder}.{field}") if holder else None for field in ("processorCapabilities", "processorIdentifier")]
            asked.append(get(args, f"{holder}.envContext.properties" if holder else "environment_context.properties"))
            has_place = new.sd is not None and new.sd.location
            by_default = tuple if has_place else partial(default_places.of_table, call, new, *asked)
            locations = table_changes.locations_of_new(new)
            yield Want((CREATE,), DATABASE, where, name, _made(new), hide=hide, locations=locations, by_default=by_default)
        yield from _sources(call, new.creationMetadata, new.catName)
        keys = getattr(get(args, holder) if holder else args, "foreignKeys", None)
        yield from parents(call, keys, where)

    return (Ask("CREATE on the database, the right to its location, SELECT on the sources of a materialized view, which must exist", find),)


def _made(new: Table) -> str | None:
    """Return the name of a table that is to be made; None for one that the handler refuses."""
    return normalize(new.tableName or "") or None


def owned(path: str, owner: str = "ownerName") -> Callable[[Decision, Any], None]:
    """Let the new object belong to the caller or to a role of the caller, even if the request names another owner; an admin may name
    anybody.
    """

    def fill(decision: Decision, args: Any) -> None:
        new = get(args, path)
        if new is not None:
            put_caller(decision, new, owner, "ownerType")

    return fill


def made_table(path: str) -> Callable[[Decision, Any], None]:
    """Let a table belong to the caller, who is also the grantor of the privileges that it brings along."""
    own = owned(path, "owner")

    def fill(decision: Decision, args: Any) -> None:
        own(decision, args)
        granted = get(args, f"{path}.privileges")
        for by_name in (granted.userPrivileges, granted.groupPrivileges, granted.rolePrivileges) if granted is not None else ():
            for each in (info for infos in (by_name or {}).values() for info in infos or () if info is not None):
                put_caller(decision, each, "grantor", "grantorType")

    return fill


def _sources(call: Call, made: Any, catalog: str | None) -> Iterator[Want]:
    """Require the right to read the sources of a materialized view. They must exist: a view keeps its sources from being dropped."""
    for each in getattr(made, "tablesUsed", None) or ():
        for name in sources(call, each, catalog):
            yield Want(READ, TABLE, *name, has_to_be=True)
    for source in getattr(made, "sourceTables", None) or ():
        inner = getattr(source, "table", None)
        if inner is not None and (found := named(call, inner.dbName, inner.tableName, inner.catName)) is not None:
            yield Want(READ, TABLE, *found, has_to_be=True)


def parents(call: Call, keys: Sequence[Any] | None, catalog: str | None) -> Iterator[Want]:
    """Require any privilege on the tables that foreign keys of a table refer to: of its own catalog, even if the keys name another."""
    for key in keys or ():
        found = named(call, key.pktable_db, key.pktable_name, catalog)
        if found is not None:
            yield Want((SEE,), TABLE, *found, hide=hiding(key, "pktable_db", "pktable_name"))


def alters_table(database_path: str, name_path: str, new_path: str, catalog_path: str | None = None) -> Ask:
    def find(call: Call, args: Any) -> Iterator[Want]:
        new = get(args, new_path)
        old = named(call, get(args, database_path), get(args, name_path), get(args, catalog_path) if catalog_path else None)
        if old is None or new is None:
            return
        new_name = named(call, new.dbName or old.database, new.tableName, new.catName or old.catalog) if new.tableName is not None else old
        renamed = new_name != old
        change = table_changes.change(call, old, new)
        yield Want(
            WRITES if change.only_counts and not renamed else (ALTER,), TABLE, *old, hide=hiding(args, database_path, name_path),
            new_owner=(new.owner, new.ownerType), locations=change.locations,
        )  # fmt: skip
        if renamed:
            yield Want((DROP,), TABLE, *old, hide=hiding(args, database_path, name_path))
            where, name = database_name_of(call, new.dbName, new.catName or old.catalog)
            hide = hiding(args, f"{new_path}.dbName", None) if name is not None else hiding(args, None, None)
            by_default = tuple if new_name is None else partial(default_places.of_new_name, call, old, new, new_name)
            where, name = where or old.catalog, name or old.database
            yield Want((CREATE,), DATABASE, where, name, _made(new), hide=hide, by_default=by_default)
        if change.has_other_sources:
            yield from _sources(call, new.creationMetadata, old.catalog)

    return Ask(
        "ownership or ALTER on the table, or INSERT, UPDATE or DELETE to change only counts or the snapshot of Iceberg; "
        "for another name also DROP, and CREATE on the new database; ownership for a new owner; the right to a new location",
        find,
    )


def changes_sources(call: Call, args: Any) -> Iterator[Want]:
    found = named(call, args.dbname, args.tbl_name, args.catName)
    if found is not None:
        yield Want((ALTER,), TABLE, *found, hide=hiding(args, "dbname", "tbl_name"))
        yield from _sources(call, args.creation_metadata, args.catName)


def reads_table(call: Call, args: Any) -> Iterator[Want]:
    found = named(call, args.req.dbName, args.req.tblName, args.req.catName)
    if found is not None:
        wanted = READ if args.req.getColumnStats else _see
        yield Want(wanted, TABLE, *found, hide=hiding(args, "req.dbName", "req.tblName"))


def table_alone(args: Any, value: Any) -> Table | None:
    return None if args.req.getColumnStats else value.table


SHOW_TABLES: dict[str, Any] = {"operation": "SHOWTABLES", "shows": TABLES_SHOWN}

CREATE_TABLE = needs(*creates_table("tbl"), operation="CREATETABLE", fill=made_table("tbl"), renews=True)

SEES_FIELDS = needs(on_table(_see, "db_name", "table_name"), operation="DESCTABLE")

SEES_TABLE_OF_REQUEST = needs(on_table(_see, "req.dbName", "req.tblName", "req.catName"), operation="DESCTABLE")

SEES_INDEXES = needs(on_table(_see, "db_name", "tbl_name"), operation="DESCTABLE")
