"""Delete the data of what was dropped or is truncated, but for what other objects need, which the log names.

A drop never fails here: its metadata is gone already.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import structlog

from metastore.errors import MetaError, MetastoreError
from metastore.idl import Table
from metastore.places import above, place_of
from metastore.service.context import Call
from metastore.service.names import TableName
from metastore.service.occupants import NOBODY, Occupant, Own, occupants, told
from metastore.store.database import Session
from metastore.warehouse import StorageUnreachable

log = structlog.get_logger()

MAX_NAMED_OBJECTS = 10
"""Objects that one entry of the log names."""
Batch = tuple[Sequence[str], bool]
"""Locations, and whether their data passes the trash by."""


def delete_data(
    call: Call, subject: str, batches: Sequence[Batch], *, below: str | None = None, own: Own = NOBODY, kept: Iterable[Occupant] = ()
) -> None:
    """Delete directories, one batch after the other, after the rows of `subject` are gone.

    A directory at which a row that remains, or one of `kept`, lies stays with all that is in it; of one that holds such only the rest goes.
    `below` and `own` are those of `occupants`.
    """
    wanted = list(dict.fromkeys(location for locations, _ in batches for location in locations))
    if not wanted:
        return
    try:
        remaining = call.database.read(lambda session: occupants(session, wanted, below=below, own=own))
    except MetastoreError as error:
        log.exception("data of a dropped object was not deleted", object=subject, location=wanted[0], error=error.message)
        return
    inside = by_holder([*remaining, *kept])
    for locations, purge in batches:
        free = [location for location in dict.fromkeys(locations) if place_of(location) not in inside]
        for location, failure in call.warehouse.delete_all(free, purge=purge).items():
            _tell_failure(subject, location, failure)
        for location in dict.fromkeys(locations):
            if found := inside.get(place_of(location) or ""):
                _delete_rest(call, subject, location, found, purge=purge)


def by_holder(found: Iterable[Occupant]) -> Mapping[str, list[Occupant]]:
    """Return by place what lies at it or inside it."""
    out: dict[str, list[Occupant]] = defaultdict(list)
    for each in found:
        for place in (*above(each.place), each.place):
            out[place].append(each)
    return out


def to_empty(
    call: Call, session: Session, name: TableName, table: Table, places: Sequence[tuple[str | None, str]], *, wholly: bool = False
) -> dict[str, list[str]]:
    """Return, by the directory that is to be emptied of a table or a partition, the locations in it that others have.

    MetaError for a directory that can not be emptied, before anything is changed.
    """
    names = frozenset(each for each, _ in places if each is not None)
    emptied = {*names, None} if wholly or not names else names

    def is_other(each: Occupant) -> bool:
        return each.table_id != table.id or each.partition not in emptied

    base = table.sd.location if table.sd is not None else None
    found = occupants(session, [place for _, place in places], below=base, own=(table.id, names))
    inside = by_holder(filter(is_other, found))
    out: dict[str, list[str]] = {}
    for _, location in places:
        others = inside.get(place_of(location) or "", ())
        if shared := [each for each in others if each.place == place_of(location)]:
            raise MetaError(f"{name} can not be truncated: {location} is the directory of {told(call, table, shared)} too")
        if others:
            log.warning(
                "data in a truncated directory stays, others lie in it",
                object=f"table {name}",
                location=location,
                kept=sorted({each.label for each in others}),
            )
        out[location] = [each.location for each in others]
    return {location: out[location] for location in call.warehouse.to_empty(list(out))}


def _delete_rest(call: Call, subject: str, location: str, found: Sequence[Occupant], *, purge: bool) -> None:
    names = sorted({each.label for each in found})
    kept = (
        names[:MAX_NAMED_OBJECTS]
        if len(names) <= MAX_NAMED_OBJECTS
        else [*names[:MAX_NAMED_OBJECTS], f"and {len(names) - MAX_NAMED_OBJECTS} more"]
    )
    if any(each.place == place_of(location) for each in found):
        log.warning("data of a dropped object stays, others lie there", object=subject, location=location, kept=kept)
        return
    places = sorted({each.location for each in found})
    log.warning("data in a dropped object's directory stays, others lie in it", object=subject, location=location, kept=kept, places=places)
    try:
        call.warehouse.delete_but(location, places, purge=purge)
    except MetastoreError as error:
        _tell_failure(subject, location, error)


def _tell_failure(subject: str, location: str, error: MetastoreError) -> None:
    tell = log.warning if isinstance(error, StorageUnreachable) else log.error
    tell("data of a dropped object was not deleted", object=subject, location=location, error=error.message)
