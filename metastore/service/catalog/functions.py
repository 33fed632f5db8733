"""Functions: create, read, list, alter, drop. Source: Hive's HMSHandler and ObjectStore. A function's code is never loaded."""

from __future__ import annotations

import time
from copy import copy

from metastore.errors import AlreadyExists, InvalidObject, InvalidOperation, MetaError, MissingArgument, NoSuchObject
from metastore.idl import Function
from metastore.listeners.events import AlterFunction, CreateFunction, DropFunction
from metastore.rules.names import normalize, pattern_matcher, validate_function_name
from metastore.service.call.context import Call
from metastore.service.call.names import database_name
from metastore.service.changes.change import change
from metastore.store.catalog import databases, functions
from metastore.store.core.database import Session


def _name(call: Call, database: str | None, name: str | None, catalog: str | None = None) -> tuple[str, str, str]:
    """Return catalog, database and function, normalised. MissingArgument when one is absent."""
    found, normalized = database_name(database, catalog, call.config.default_catalog)
    if normalized is None or name is None:
        raise MissingArgument(f"A function needs the names of its database and itself; got {database} and {name}")
    return found, normalized, normalize(name)


def _checked(call: Call, function: Function | None) -> Function:
    """Return the function as it will be stored. InvalidObject; MissingArgument as in Java."""
    if function is None:
        raise MissingArgument("The function is null")
    catalog, database, _ = _name(call, function.dbName, function.functionName, function.catName)
    validate_function_name(function.functionName)
    if function.className is None:
        raise InvalidObject(f"Function {function.functionName} needs a class: set className")
    if function.ownerType is None or function.functionType is None:
        raise MissingArgument(f"Function {function.functionName} needs ownerType and functionType")
    stored = copy(function)
    stored.catName, stored.dbName, stored.functionName = catalog, database, normalize(function.functionName)
    return stored


def create_function(call: Call, function: Function | None) -> None:
    """Add a function. InvalidObject for name or class, NoSuchObject for the database, AlreadyExists, MissingArgument."""
    if function is not None and function.dbName is None and call.client.release.is_3:
        raise NoSuchObject(f"Function {function.functionName} needs a database: set dbName")
    stored = _checked(call, function)
    stored.createTime = int(time.time())
    stored.ownerName = call.caller if stored.ownerName is None else stored.ownerName
    catalog, database, name = str(stored.catName), stored.dbName, stored.functionName
    with change(call, CreateFunction(client=call.info, function=stored)) as current:

        def work(session: Session) -> None:
            key = databases.share(session, catalog, database)
            if key is None:
                raise NoSuchObject(f"The database {catalog}.{database} does not exist")
            if functions.find(session, catalog, database, name) is not None:
                raise AlreadyExists(f"Function {catalog}.{database}.{name} already exists")
            functions.insert(session, key, stored)

        current.write(work)


def get_function(call: Call, database: str | None, name: str | None) -> Function:
    """Return a function. NoSuchObject, MetaError."""
    if name is None or database_name(database, None, call.config.default_catalog)[1] is None:
        raise MetaError(f"A function needs the names of its database and itself; got {database} and {name}")
    where = _name(call, database, name)
    found = call.database.read(lambda session: functions.find(session, *where))
    if found is None:
        raise NoSuchObject(f"Function {'.'.join(where)} does not exist")
    return found


def get_functions(call: Call, database: str | None, pattern: str | None, catalog: str | None = None) -> list[Function]:
    """Return the functions of a database whose name matches, ascending; none for a missing database. MetaError."""
    found_catalog, normalized = database_name(database, catalog, call.config.default_catalog)
    if normalized is None:
        raise MetaError("Database name cannot be null.")
    matches = pattern_matcher(pattern)
    found = call.database.read(lambda session: functions.all_of(session, found_catalog, normalized))
    return [function for function in found if matches(function.functionName)]


def get_all_functions(call: Call) -> list[Function]:
    """Return all functions of the default catalog, ascending by database and name."""
    return call.database.read(lambda session: functions.in_catalog(session, call.config.default_catalog))


def alter_function(call: Call, database: str | None, name: str | None, new: Function | None) -> None:
    """Replace a function, also its name and database; its time of creation stays.

    InvalidObject for values that can not be stored and a missing new database; InvalidOperation, MetaError, MissingArgument.
    """
    where = _name(call, database, name)
    stored = _checked(call, new)
    new_where = (str(stored.catName), stored.dbName, stored.functionName)
    if new_where[0] != where[0]:
        raise InvalidOperation(f"Function {'.'.join(where)} can not move to catalog {new_where[0]}")
    before = call.database.read(lambda session: functions.find(session, *where))
    if before is None:
        raise MetaError(f"function {'.'.join(where)} doesn't exist")
    with change(call, AlterFunction(client=call.info, before=before, after=stored)) as current:

        def work(session: Session) -> None:
            target = databases.share(session, *new_where[:2])
            if target is None:
                raise InvalidObject(f"The database {new_where[0]}.{new_where[1]} does not exist")
            key = functions.lock(session, *where)
            locked = functions.find(session, *where)
            if key is None or locked is None:
                raise MetaError(f"function {'.'.join(where)} doesn't exist")
            if new_where != where and functions.find(session, *new_where) is not None:
                raise MetaError(f"function {'.'.join(new_where)} already exists")
            stored.createTime = locked.createTime
            current.event = AlterFunction(client=call.info, before=locked, after=stored)
            functions.update(session, key, target, stored)

        current.write(work)


def drop_function(call: Call, database: str | None, name: str | None) -> None:
    """Remove a function. NoSuchObject, MissingArgument."""
    where = _name(call, database, name)
    function = get_function(call, database, name)
    with change(call, DropFunction(client=call.info, function=function)) as current:

        def work(session: Session) -> None:
            key = functions.lock(session, *where)
            if key is None:
                raise NoSuchObject(f"Function {'.'.join(where)} does not exist")
            functions.delete(session, key)

        current.write(work)
