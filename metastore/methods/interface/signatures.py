"""Facts of the interface about each method: its argument and result structs, its request, and the arguments that name its object.

This module never looks at a server's own methods.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from thriftpy2.thrift import TPayload, TType

from metastore import idl
from metastore.methods.interface import query_ids

_DATABASE = frozenset({"db_name", "dbname", "dbName", "databaseName", "database_name", "db", "dbase"})
_TABLE = frozenset({"tbl_name", "tblName", "tableName", "tablename", "table_name", "tblname", "tab_name"})
_NAME = frozenset(
    {
        "name",
        "functionName",
        "funcName",
        "roleName",
        "role_name",
        "resourcePlanName",
        "connectorName",
        "procName",
        "packageName",
        "scheduleName",
    }
)
_NUMBER = frozenset({"txnid", "txnId", "txn_ids", "lockid", "compactionIds", "scheduledExecutionId"})
_MAX_NUMBERS = 10
"""The most ids of a list that are shown."""
_MAX_LENGTH = 300
"""The longest name of an object; names come from clients."""

Paths = tuple[tuple[str, ...], ...]
"""Paths from a struct to names: the fields of each, from the outermost to the innermost."""


@dataclass(frozen=True, slots=True)
class Signature:
    """One method of the interface."""

    args: type[TPayload]
    result: type[TPayload]
    oneway: bool
    returns: bool
    """Whether the result has a field `success`."""
    request: str | None
    """The name of its only argument if that is a request struct: without it the method can not do anything."""
    databases: Paths
    tables: Paths
    names: Paths
    numbers: Paths
    """Paths to ids, or lists of ids, of transactions, locks, compactions and executions."""
    queries: tuple[query_ids.Place, ...]
    """The places of its arguments that may hold the id of the query."""

    def describe(self, args: Any) -> str:
        """Return the object that a call is about, as far as its arguments name it: "db.table", "db", a name, or "txnid 7"."""
        outer, inner = _first(args, self.databases), _first(args, self.tables) or _first(args, self.names)
        if outer or inner:
            return (f"{outer}.{inner}" if outer and inner and outer != inner else outer or inner)[:_MAX_LENGTH]
        return _number(args, self.numbers) if self.numbers else ""


@cache
def signature(method: str) -> Signature:
    """Return a method's signature. Raises AttributeError for one that the interface lacks."""
    args, result = getattr(idl.service, f"{method}_args"), getattr(idl.service, f"{method}_result")
    return Signature(args, result, result.oneway, 0 in result.thrift_spec, _request(args), *_paths(args), query_ids.places(args))


def _request(args: type[TPayload]) -> str | None:
    fields = list(args.thrift_spec.values())
    if len(fields) != 1 or fields[0][0] != TType.STRUCT or not fields[0][2].__name__.endswith("Request"):
        return None
    return str(fields[0][1])


def _paths(args: type[TPayload]) -> tuple[Paths, Paths, Paths, Paths]:
    """Return the paths in the arguments to names of databases, of tables and of other objects, and to ids; the outermost first."""
    found: tuple[list[tuple[str, ...]], ...] = ([], [], [])
    numbers: list[tuple[str, ...]] = []
    level: list[tuple[tuple[str, ...], Any]] = [((), args)]
    for _ in range(4):
        below = []
        for path, cls in level:
            for field in cls.thrift_spec.values():
                here = (*path, field[1])
                if field[0] == TType.STRUCT:
                    below.append((here, field[2]))
                elif field[0] == TType.STRING:
                    for names, out in zip((_DATABASE, _TABLE, _NAME), found, strict=True):
                        if field[1] in names:
                            out.append(here)
                elif field[1] in _NUMBER:
                    numbers.append(here)
        level = below
    return tuple(found[0]), tuple(found[1]), tuple(found[2]), tuple(numbers)


def _first(args: Any, paths: Paths) -> str:
    """Return the first present name."""
    for path in paths:
        value = args
        for step in path:
            value = getattr(value, step, None)
            if value is None:
                break
        if isinstance(value, str) and value:
            return value
    return ""


def _number(args: Any, paths: Paths) -> str:
    """Return the first id that is there, or the first ids of a list, with the field's name."""
    for path in paths:
        value = args
        for step in path:
            value = getattr(value, step, None)
        if value:
            return f"{path[-1]} {', '.join(map(str, value[:_MAX_NUMBERS])) if isinstance(value, list) else value}"
    return ""
