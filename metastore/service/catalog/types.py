"""Named types: create, read, drop. Source: Hive's HMSHandler (create_type_core) and ObjectStore. Nothing refers to them."""

from __future__ import annotations

import re
from copy import copy

from metastore.errors import AlreadyExists, InvalidObject, MetaError, NoSuchObject
from metastore.idl import Type
from metastore.service.call.context import Call
from metastore.store.catalog import types
from metastore.store.core.database import Session


def create_type(call: Call, new: Type | None) -> None:
    """Add a type. InvalidObject for its name, AlreadyExists, MetaError."""
    if new is None:
        raise MetaError("The type is null: send one")
    if not re.fullmatch(r"\w+", new.name or "", re.ASCII):
        raise InvalidObject(f"Invalid type name {new.name}: use letters, digits and _")
    stored = copy(new)

    def work(session: Session) -> None:
        if types.find(session, stored.name) is not None:
            raise AlreadyExists(f"Type {stored.name} already exists")
        types.insert(session, stored)

    call.database.write(work)


def get_type(call: Call, name: str | None) -> Type:
    """Return a type. NoSuchObject."""
    found = call.database.read(lambda session: types.find(session, (name or "").strip()))
    if found is None:
        raise NoSuchObject(f'Type "{name}" not found.')
    return found


def drop_type(call: Call, name: str | None) -> None:
    """Remove a type. A missing one is not an error, as in Java."""
    call.database.write(lambda session: types.delete(session, (name or "").strip()))
