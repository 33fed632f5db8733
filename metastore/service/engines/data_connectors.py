"""Data connectors: create, read, list, alter, drop. Source: Hive's HMSHandler and ObjectStore.

A connector describes the access to another system; this server never connects to it. A database of type REMOTE names a connector, which
need not exist. Names are trimmed and in lower case.
"""

from __future__ import annotations

import time
from copy import copy

from metastore.errors import AlreadyExists, InvalidObject, InvalidOperation, MetaError, NoSuchObject
from metastore.idl import DataConnector, PrincipalType
from metastore.listeners.events import AlterDataConnector, CreateDataConnector, DropDataConnector
from metastore.rules.names import normalize, validate_data_connector_name
from metastore.service.call.context import Call
from metastore.service.changes.change import change
from metastore.store.authorization import privileges
from metastore.store.core.database import Session
from metastore.store.engines import data_connectors

MOST_NAMED = 10
"""Databases that one refusal names."""


def _name(name: str | None) -> str:
    if name is None:
        raise MetaError("Data connector name cannot be null.")
    return normalize(name)


def _missing(name: str) -> NoSuchObject:
    return NoSuchObject(f"There is no data connector {name}")


def create_data_connector(call: Call, connector: DataConnector | None) -> None:
    """Add a connector. InvalidObject for its name, AlreadyExists, MetaError. Without an owner it belongs to the caller."""
    if connector is None:
        raise MetaError("The data connector is null: send one")
    stored = copy(connector)
    stored.name = _name(connector.name)
    validate_data_connector_name(stored.name)
    if not stored.type or not stored.url:
        raise InvalidObject(f"Data connector {stored.name} needs type and url; got {stored.type} and {stored.url}")
    stored.parameters, stored.createTime = stored.parameters or {}, int(time.time())
    stored.ownerName = call.caller if stored.ownerName is None else stored.ownerName
    stored.ownerType = stored.ownerType or PrincipalType.USER
    with change(call, CreateDataConnector(client=call.info, connector=stored)) as current:

        def work(session: Session) -> None:
            if data_connectors.find(session, stored.name) is not None:
                raise AlreadyExists(f"Data connector {stored.name} already exists")
            data_connectors.insert(session, stored)

        current.write(work)


def get_data_connector(call: Call, name: str | None) -> DataConnector:
    """Return a connector. NoSuchObject, MetaError."""
    wanted = _name(name)
    found = call.database.read(lambda session: data_connectors.find(session, wanted))
    if found is None:
        raise _missing(wanted)
    return found


def get_data_connectors(call: Call) -> list[str]:
    """Return the names of all connectors, ascending."""
    return call.database.read(data_connectors.names)


def alter_data_connector(call: Call, name: str | None, new: DataConnector | None) -> None:
    """Change URL, parameters, owner and comment; name, type and time stay. NoSuchObject, MetaError.

    A field that is not sent stays too, except for the owner's name and the parameters, which are emptied.
    """
    wanted = _name(name)
    if new is None:
        raise MetaError(f"The new data connector {wanted} is null: send one")
    before = get_data_connector(call, wanted)
    with change(call, AlterDataConnector(client=call.info, before=before, after=_altered(before, new))) as current:

        def work(session: Session) -> None:
            found = data_connectors.find(session, wanted, locked=True)
            if found is None:
                raise _missing(wanted)
            after = _altered(found, new)
            data_connectors.update(session, after)
            current.event = AlterDataConnector(client=call.info, before=found, after=after)

        current.write(work)


def _altered(before: DataConnector, new: DataConnector) -> DataConnector:
    after = copy(before)
    after.url, after.parameters, after.ownerName = new.url or before.url, dict(new.parameters or {}), new.ownerName
    after.ownerType, after.description = new.ownerType or before.ownerType, new.description or before.description
    return after


def drop_data_connector(call: Call, name: str | None, *, if_exists: bool, check_references: bool) -> None:
    """Remove a connector. NoSuchObject, MetaError; InvalidOperation where databases name it and `check_references` is set."""
    wanted = _name(name)
    try:
        connector = get_data_connector(call, wanted)
    except NoSuchObject:
        if if_exists:
            return
        raise
    with change(call, DropDataConnector(client=call.info, connector=connector)) as current:

        def work(session: Session) -> None:
            if data_connectors.find(session, wanted, locked=True) is None:
                raise _missing(wanted)
            users = data_connectors.databases_with(session, wanted, MOST_NAMED) if check_references else []
            if users:
                raise InvalidOperation(
                    f"Data connector {wanted} can not be dropped: the databases {', '.join(users)} name it; drop them first, "
                    "or drop it without a check of references"
                )
            data_connectors.delete(session, wanted)
            privileges.delete_of_connector(session, wanted)

        current.write(work)
