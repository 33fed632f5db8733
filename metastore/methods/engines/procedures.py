"""Methods of stored procedures and packages of HPL/SQL."""

from __future__ import annotations

from typing import Any

from metastore.idl import Package, StoredProcedure
from metastore.methods.engines import engine_rules as rules
from metastore.methods.forms.entry import changes, reads
from metastore.methods.forms.rules import ALTER, SEE, Handler
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


METHODS = (
    changes(
        "create_stored_procedure",
        lambda call, args: procedures.put(call, args.proc, StoredProcedure),
        rules.procedure(ALTER, "proc", "CREATEFUNCTION"),
    ),
    reads(
        "get_stored_procedure",
        lambda call, args: procedures.get_procedure(call, *_procedure(args.request)),
        rules.procedure(SEE, "request", "DESCFUNCTION"),
    ),
    changes(
        "drop_stored_procedure",
        lambda call, args: procedures.drop(call, StoredProcedure, *_procedure(args.request)),
        rules.procedure(ALTER, "request", "DROPFUNCTION"),
    ),
    reads("get_all_stored_procedures", _names(StoredProcedure), rules.LISTED),
    changes("add_package", _add_package, rules.procedure(ALTER, "request", "CREATEFUNCTION")),
    changes(
        "find_package",
        lambda call, args: procedures.get_package(call, *_package(args.request)),
        rules.procedure(SEE, "request", "DESCFUNCTION"),
    ),
    changes(
        "drop_package",
        lambda call, args: procedures.drop(call, Package, *_package(args.request)),
        rules.procedure(ALTER, "request", "DROPFUNCTION"),
    ),
    reads("get_all_packages", _names(Package), rules.LISTED),
)
