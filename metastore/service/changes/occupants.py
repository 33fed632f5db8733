"""Find the objects whose locations are at or in given directories: asked before a directory is deleted or moved. Never changes anything."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from metastore.idl import Table
from metastore.places import END, LENGTH, above, is_in, place_of
from metastore.service.call.context import Call
from metastore.store.catalog.places import places
from metastore.store.core.database import Session
from metastore.warehouse.locations import join


class Occupant(NamedTuple):
    """An object whose location is at or in a given directory."""

    place: str
    """Normalised location, as `places.place_of` makes it."""
    location: str
    label: str
    """The object's kind and name: `partition hive.d.t k=1`."""
    table_id: int | None = None
    partition: str | None = None


Own = tuple[int | None, Collection[str]]
"""A table's key and names of its partitions."""
NOBODY: Own = (None, ())


def occupants(session: Session, locations: Iterable[str], *, below: str | None = None, own: Own = NOBODY) -> list[Occupant]:
    """Return the occupants at or in directories.

    Directories below the location `below` take one statement, and all others on one file system take one. `own` names partitions of a table
    whose directories are given: no other partition of the table is in these by default.
    """
    base = place_of(below) or ""
    groups: dict[str, list[str]] = defaultdict(list)
    for place in {place for place in map(place_of, locations) if place}:
        groups["" if base and is_in(place, base) else "/".join(place.split("/", 3)[:3])].append(place)
    return [each for group in groups.values() for each in _in_group(session, group, own)]


def named(call: Call, table: Table, found: Iterable[Occupant]) -> str:
    """Return an error's text about the occupants of a table's directory: others' names only for callers that may know of everything."""
    labels = {each.label if call.may_name_others or each.table_id == table.id else "another object" for each in found}
    return ", ".join(sorted(labels))


def _in_group(session: Session, asked: Sequence[str], own: Own) -> Iterator[Occupant]:
    known, holding = frozenset(asked), set[str]()
    for each in asked:
        for holder in above(each):
            if holder in holding:
                break
            holding.add(holder)
    low, high = min(place[:LENGTH] for place in asked), max(place[:LENGTH] + END for place in asked)
    for row in places.found(session, low, high, sorted({holder[:LENGTH] for holder in holding})):
        location = _location(row)
        place = place_of(location)
        if location is None or place is None:
            continue
        if row.kind == "above":
            yield from _by_default(session, row, place, location, asked, own)
        elif _is_held(place, known):
            yield Occupant(place, location, _label(row), row.table_id, row.partition)


def _location(row: places.PlaceRow) -> str | None:
    if row.location is not None and row.location.startswith("./"):
        return (row.base or "").rstrip("/") + row.location[1:]
    return row.location


def _is_held(place: str, asked: Collection[str]) -> bool:
    """Return whether a place is one of the given ones, or is inside one."""
    return place in asked or any(each in asked for each in above(place))


def _by_default(session: Session, row: places.PlaceRow, base: str, location: str, asked: Sequence[str], own: Own) -> Iterator[Occupant]:
    """Yield the partitions of a table at default places at or in directories inside its own."""
    names = [place[len(base) + 1 :] for place in asked if place != base and is_in(place, base)]
    if row.table_id == own[0]:
        names = [name for name in names if name not in own[1]]
    if not names or row.table_id is None:
        return
    known = {f"://{name}" for name in names}
    for name in places.by_default(session, row.table_id, min(names), max(name + END for name in names)):
        if _is_held(f"://{name}", known):
            label = _label(row._replace(kind="partition", partition=name))
            yield Occupant(f"{base}/{name}", join(location, name), label, row.table_id, name)


def _label(row: places.PlaceRow) -> str:
    name = ".".join(filter(None, (row.catalog, row.database, row.table)))
    return " ".join(filter(None, (row.kind, name, row.partition)))
