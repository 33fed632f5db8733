"""Tell where somebody may not put data: outside of the object's own directory without a right to the place, or over what is another's.

Never looks into a directory: the rows say whose a place is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from metastore.errors import MetastoreError
from metastore.places import is_in, place_of
from metastore.service.authorization.contract import DATABASE, LOCATION, OWN, TABLE, USE, Access
from metastore.service.context import Call
from metastore.store import authorization, partitions
from metastore.store.authorization import Facts, TableFacts
from metastore.store.database import Session

Ask = Callable[[Sequence[Access]], Sequence[bool]]
Name = tuple[str | None, str | None, str | None]


def judged_locations(
    call: Call, ask: Ask, name: Name, facts: Facts | None, locations: Sequence[str], present: Sequence[str] = ()
) -> Iterator[str]:
    """Yield those of the locations that may not be used for a table, or for a database or catalog where the name has no table.

    Where the table, a partition of it, or (`present`) the database lies already is free, and so is what lies inside the table's directory.
    """
    table = facts.table if facts is not None and name[2] is not None else None
    own = [place for place in map(place_of, _own(call, name, facts, table)) if place]
    outside: set[str | None] | None = set(map(place_of, present)) if present else None
    for location in dict.fromkeys(locations):
        place = _place(call, location, facts)
        if place is None or any(is_in(place, each) for each in own):
            continue  # what is no place is refused by whoever stores it
        if table is not None and outside is None:
            outside = _of_partitions(call, table.key)
        if outside and place in outside:
            continue
        if not call.database.read(lambda session, place=place: _may_use(session, ask, name, facts, table, place)):  # type: ignore[misc]  # bound now
            yield location


def _of_partitions(call: Call, key: int) -> set[str | None]:
    return set(map(place_of, call.database.read(lambda session: partitions.locations_outside(session, key))))


def _own(call: Call, name: Name, facts: Facts | None, table: TableFacts | None) -> list[str | None]:
    if table is not None:
        return [table.location]
    if facts is None and name[1] is not None and name[0] == call.config.default_catalog:
        return [call.warehouse.database_location(name[1])]
    return []


def _place(call: Call, location: str, facts: Facts | None) -> str | None:
    try:
        return place_of(call.warehouse.qualified(location, next(iter(facts.locations), None) if facts is not None else None))
    except MetastoreError:
        return None


def _may_use(session: Session, ask: Ask, name: Name, facts: Facts | None, table: TableFacts | None, place: str) -> bool:
    """Tell whether a place is in the directory of the table's database or allowed to the user, and nobody else's table lies around it."""
    if not _is_home(session, name, facts, place) and not ask([Access(USE, LOCATION, location=place)])[0]:
        return False
    asked: dict[tuple[str, str | None, str | None], Access] = {}
    for row in authorization.around(session, place):
        if row.table_id is not None and table is not None and row.table_id == table.key:
            continue
        if (row.table is None and name[:2] == (row.catalog, row.database)) or row.kind == "catalog" or row.database is None:
            continue
        other = place_of((row.base or "") + row.location[1:] if row.location and row.location.startswith("./") else row.location)
        if other is None or not (is_in(place, other) if row.kind == "above" else is_in(other, place)):
            continue
        key = (row.catalog, row.database, row.table)
        if key not in asked:
            found = authorization.facts(session, row.catalog, row.database, row.table)
            if row.table is None:
                asked[key] = Access(OWN, DATABASE, row.catalog, row.database, owner=found and found.owner)
            else:
                known = found and found.table
                asked[key] = Access(OWN, TABLE, *key, owner=known and known.owner, key=row.table_id)
    return all(ask(list(asked.values()))) if asked else True


def _is_home(session: Session, name: Name, facts: Facts | None, place: str) -> bool:
    """Tell whether the innermost of the databases' directories that hold a place is that of the table's own database."""
    if facts is None:
        return False
    holding = authorization.databases_holding(session, place)
    inner: dict[str, set[tuple[str, str]]] = {}
    for catalog, database, *locations in holding:
        for each in map(place_of, locations):
            if each is not None and is_in(place, each):
                inner.setdefault(each, set()).add((catalog, database))
    return bool(inner) and name[:2] in inner[max(inner, key=len)]
