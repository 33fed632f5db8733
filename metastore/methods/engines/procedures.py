"""Methods of stored procedures and packages of HPL/SQL."""

from __future__ import annotations

from typing import Any

from metastore.idl import Package, StoredProcedure
from metastore.methods.forms.entry import Handler
from metastore.service.call.context import Call
from metastore.service.engines import procedures
from metastore.service.engines.procedures import Kind


def _add_package(call: Call, args: Any) -> None:
    sent = args.request
    package = Package(
        catName=sent.catName, dbName=sent.dbName, packageName=sent.packageName, ownerName=sent.ownerName, header=sent.header, body=sent.body
    )
    procedures.put(call, package, Package)


def _names(kind: Kind) -> Handler:
    return lambda call, args: procedures.names(call, kind, args.request.catName, args.request.dbName)


def _procedure(request: Any) -> tuple[str | None, str | None, str | None]:
    return request.catName, request.dbName, request.procName


def _package(request: Any) -> tuple[str | None, str | None, str | None]:
    return request.catName, request.dbName, request.packageName


METHODS: dict[str, Handler] = {
    "create_stored_procedure": lambda call, args: procedures.put(call, args.proc, StoredProcedure),
    "get_stored_procedure": lambda call, args: procedures.get_procedure(call, *_procedure(args.request)),
    "drop_stored_procedure": lambda call, args: procedures.drop(call, StoredProcedure, *_procedure(args.request)),
    "get_all_stored_procedures": _names(StoredProcedure),
    "add_package": _add_package,
    "find_package": lambda call, args: procedures.get_package(call, *_package(args.request)),
    "drop_package": lambda call, args: procedures.drop(call, Package, *_package(args.request)),
    "get_all_packages": _names(Package),
}
