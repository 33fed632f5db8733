"""Find locations where a user may not put data: outside of the object's own directory without a right to the place, or over others' data.

Never looks into a directory: the rows name the owner of a place.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence

from metastore.errors import MetastoreError
from metastore.places import END, above, is_in, place_of
from metastore.rules.names import directory_name, is_directory_name
from metastore.service.authorizer import DATABASE, LOCATION, OWN, TABLE, USE, Access
from metastore.service.call.context import Call
from metastore.store.authorization import authorization
from metastore.store.authorization.authorization import Facts, OwnedTable
from metastore.store.catalog.partitions import partitions
from metastore.store.catalog.places import places
from metastore.store.core.database import Session

Ask = Callable[[Sequence[Access]], Sequence[bool]]
Name = tuple[str | None, str | None, str | None]
DATABASE_ENDING = ".db"
"""The ending of the default directories of databases."""


def judged_locations(
    call: Call,
    ask: Ask,
    name: Name,
    facts: Facts | None,
    locations: Sequence[str],
    by_default: Sequence[str] = (),
    present: Sequence[str] = (),
    made: str | None = None,
) -> Iterator[str]:
    """Yield the locations that may not be used for a table, or for a database or catalog where the name has no table.

    A table that is to be made has the name `made`, and `name` has no table. The present locations of the table, its partitions, and
    (`present`) the database are free. Locations inside the table's directory, and default places (`by_default`), need no right to the
    place; yet nobody else's data may be there.
    """
    table = facts.table if facts is not None and name[2] is not None else None
    own = [place for place in map(place_of, _own(call, name, facts, table)) if place]
    outside: set[str | None] | None = set(map(place_of, present)) if present else None
    inside = {place: each for each in by_default if (place := place_of(each)) is not None}
    for location in dict.fromkeys(locations):
        place = _place(call, location, facts)
        if place is None or (table is not None and place in own):
            continue  # a text that is not a place is refused when it is stored
        if any(is_in(place, each) for each in own):
            inside[place] = location
            continue
        if table is not None and outside is None:
            outside = _of_partitions(call, table.key)
        if outside and place in outside:
            continue
        if not call.database.read(lambda session, place=place: _may_use(session, ask, name, facts, made, place)):  # type: ignore[misc]  # bound now
            yield location
    if inside:
        base = own[0] if table is not None and own else (own or sorted(inside))[0].rpartition("/")[0]
        for place in sorted(call.database.read(lambda session: _taken(session, ask, name, table, inside, base))):
            yield inside[place]


def _of_partitions(call: Call, key: int) -> set[str | None]:
    return set(map(place_of, call.database.read(lambda session: partitions.locations_outside(session, key))))


def _own(call: Call, name: Name, facts: Facts | None, table: OwnedTable | None) -> list[str | None]:
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


def _may_use(session: Session, ask: Ask, name: Name, facts: Facts | None, made: str | None, place: str) -> bool:
    """Return whether a place may be used: it is free in the database's directory or allowed to the user, and overlaps no others' data."""
    home = _home(session, name, facts, place)
    if (home is None or not _is_free(name[2] or made, home, place)) and not any(ask(_rights(session, name, facts, home, place))):
        return False
    return not _taken(session, ask, name, facts.table if facts is not None and name[2] is not None else None, {place})


def _first_part(home: str, place: str) -> str:
    """Return the name of the directory in a database's directory that contains a place, "" for the database's own."""
    return place[len(home) + 1 :].partition("/")[0].lower()


def _is_free(table: str | None, home: str, place: str) -> bool:
    """Return whether the name of a table alone allows it a place in its database's directory.

    Any other place may, by its name, be the default place of another table or database, present or future.
    """
    first = _first_part(home, place)
    if first.endswith(DATABASE_ENDING):
        return False
    return table is None or first == directory_name(table).lower() or (first != "" and not is_directory_name(first))


def _rights(session: Session, name: Name, facts: Facts | None, home: str | None, place: str) -> list[Access]:
    """Return the accesses of which one must be allowed for a place that is not free.

    The owner of the database decides about places of its tables, and the owner of a table about the directory of its name. Neither decides
    about directories of databases.
    """
    rights = [Access(USE, LOCATION, location=place)]
    first = _first_part(home, place) if home is not None else ""
    if home is not None and facts is not None and not first.endswith(DATABASE_ENDING):
        rights.append(Access(OWN, DATABASE, *name[:2], owner=facts.owner))
        there = authorization.facts(session, name[0] or "", name[1] or "", first) if first else None
        if there is not None and there.table is not None:
            rights.append(Access(OWN, TABLE, *name[:2], first, owner=there.table.owner, key=there.table.key))
    return rights


def _taken(
    session: Session, ask: Ask, name: Name, table: OwnedTable | None, wanted: Collection[str], base: str | None = None
) -> Collection[str]:
    """Return the requested places that overlap other owners' data.

    Ancestors of `base`, the directory of the whole, do not count, nor do places where the table has a partition already.
    """
    found: dict[tuple[str, str | None, str | None], tuple[int | None, set[str]]] = {}
    present = set[str]()
    for row in authorization.around(session, wanted):
        other = place_of((row.base or "") + row.location[1:] if row.location and row.location.startswith("./") else row.location)
        if other is None or row.kind == "catalog" or row.database is None:
            continue
        if row.table_id is not None and table is not None and row.table_id == table.key:
            present.add(other)
        elif row.table is None and name[:2] == (row.catalog, row.database):
            continue
        elif row.kind != "above":
            found.setdefault((row.catalog, row.database, row.table), (row.table_id, set()))[1].update(_held(other, wanted))
        elif base is None or not is_in(base, other):
            around = {each for each in wanted if is_in(each, other)}
            found.setdefault((row.catalog, row.database, row.table), (row.table_id, set()))[1].update(around)
    held = {key: (table_id, places - present) for key, (table_id, places) in found.items() if places - present}
    if not held:
        return ()
    answers = ask([_to_own(session, key, table_id) for key, (table_id, _) in held.items()])
    taken = {place for (_, places), ok in zip(held.values(), answers, strict=True) if not ok for place in places}
    return taken - _by_default(session, table, taken)


def _held(place: str, wanted: Collection[str]) -> Iterator[str]:
    return (each for each in (place, *above(place)) if each in wanted)


def _to_own(session: Session, name: tuple[str, str | None, str | None], key: int | None) -> Access:
    catalog, database, table = name
    found = authorization.facts(session, catalog, database or "", table)
    if table is None:
        return Access(OWN, DATABASE, catalog, database, owner=found and found.owner)
    known = found and found.table
    return Access(OWN, TABLE, *name, owner=known and known.owner, key=key)


def _by_default(session: Session, table: OwnedTable | None, wanted: Collection[str]) -> set[str]:
    """Return the places that are the default place of a partition of the table."""
    base = place_of(table.location) if table is not None else None
    names = {each[len(base) + 1 :]: each for each in wanted if is_in(each, base)} if base is not None else {}
    if table is None or not names:
        return set()
    there = places.by_default(session, table.key, min(names), max(names) + END)
    return {names[each] for each in there if each in names}


def _home(session: Session, name: Name, facts: Facts | None, place: str) -> str | None:
    """Return the innermost database directory that holds a place if it belongs to the table's own database, else None."""
    if facts is None:
        return None
    holding = authorization.databases_holding(session, place)
    inner: dict[str, set[tuple[str, str]]] = {}
    for catalog, database, *locations in holding:
        for each in map(place_of, locations):
            if each is not None and is_in(place, each):
                inner.setdefault(each, set()).add((catalog, database))
    innermost = max(inner, key=len, default=None)
    return innermost if innermost is not None and name[:2] in inner[innermost] else None
