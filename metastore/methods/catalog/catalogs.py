"""Methods of catalogs and databases."""

from __future__ import annotations

from typing import Any

from metastore.idl import Database, GetCatalogResponse, GetCatalogsResponse, GetDatabaseObjectsResponse
from metastore.methods.catalog import table_rules as rules
from metastore.methods.forms import unpack
from metastore.methods.forms.entry import changes, reads
from metastore.methods.forms.rules import DROP, SEE, MethodRule, found_by, needs, on_catalog, on_database
from metastore.rules.names import normalize
from metastore.service.call.context import Call
from metastore.service.call.releases import Sign
from metastore.service.catalog import catalogs, databases


def _create_database_req(call: Call, args: Any) -> None:
    request = args.createDatabaseRequest
    databases.create_database(
        call,
        Database(
            name=request.databaseName,
            description=request.description,
            locationUri=request.locationUri,
            parameters=request.parameters,
            privileges=request.privileges,
            ownerName=request.ownerName,
            ownerType=request.ownerType,
            catalogName=request.catalogName,
            managedLocationUri=request.managedLocationUri,
            type=request.type,
            connector_name=request.dataConnectorName,
            remote_dbname=request.remote_dbname,
        ),
    )


def _get_database(call: Call, args: Any) -> Database:
    return databases.get_database(call, *unpack.database(call, args.name))


def _get_database_req(call: Call, args: Any) -> Database:
    return databases.get_database(call, *unpack.database(call, args.request.name, args.request.catalogName))


def _get_databases(call: Call, args: Any) -> list[str]:
    return databases.get_databases(call, *unpack.database(call, args.pattern))


def _get_all_databases(call: Call, args: Any) -> list[str]:
    return databases.get_databases(call, call.config.default_catalog, None)


def _get_databases_req(call: Call, args: Any) -> GetDatabaseObjectsResponse:
    catalog = normalize(args.request.catalogName or call.config.default_catalog)
    return GetDatabaseObjectsResponse(databases=databases.get_database_objects(call, catalog, args.request.pattern))


def _alter_database(call: Call, args: Any) -> None:
    databases.alter_database(call, *unpack.database(call, args.dbname), unpack.required(call, args.db, "db"))


def _alter_database_req(call: Call, args: Any) -> None:
    request = args.alterDbReq
    new = unpack.required(call, request.newDb, "alterDbReq.newDb")
    databases.alter_database(call, *unpack.database(call, request.oldDbName, new.catalogName), new)


def _drop_database(call: Call, args: Any) -> None:
    databases.drop_database(call, *unpack.database(call, args.name), delete_data=bool(args.deleteData), cascade=bool(args.cascade))


def _drop_database_req(call: Call, args: Any) -> None:
    request = args.req
    databases.drop_database(
        call,
        *unpack.database(call, request.name, request.catalogName),
        delete_data=bool(request.deleteData),
        cascade=bool(request.cascade),
        ignore_unknown=bool(request.ignoreUnknownDb),
    )


def _get_catalogs(call: Call, args: Any) -> GetCatalogsResponse:
    return GetCatalogsResponse(names=catalogs.get_catalogs(call))


METHODS = (
    changes(
        "create_catalog",
        lambda call, args: catalogs.create_catalog(call, unpack.required(call, args.catalog.catalog, "catalog.catalog")),
        needs(found_by("CREATE on the server, and the right to its location", rules.creates_catalog), renews=True),
    ),
    reads(
        "get_catalog",
        lambda call, args: GetCatalogResponse(catalog=catalogs.get_catalog(call, args.catName.name)),
        needs(on_catalog(SEE, "catName.name")),
    ),
    reads(
        "get_catalogs",
        _get_catalogs,
        MethodRule(keep=rules.kept_catalogs, shows="catalogs with a database that is shown, and the default one"),
    ),
    changes(
        "alter_catalog",
        lambda call, args: catalogs.alter_catalog(call, args.rqst.name, unpack.required(call, args.rqst.newCat, "rqst.newCat")),
        needs(found_by("the role `admin`, and the right to a new location", rules.alters_catalog)),
    ),
    changes(
        "drop_catalog",
        lambda call, args: catalogs.drop_catalog(call, args.catName.name),
        needs(on_catalog(DROP, "catName.name"), renews=True),
    ),
    changes(
        "create_database",
        lambda call, args: databases.create_database(call, unpack.required(call, args.database, "database")),
        needs(
            rules.creates_database("database", "name", "catalogName"), operation="CREATEDATABASE", fill=rules.owned("database"), renews=True
        ),
        metric="create_total_count_dbs",
    ),
    changes(
        "create_database_req",
        _create_database_req,
        needs(
            rules.creates_database("createDatabaseRequest", "databaseName", "catalogName"),
            operation="CREATEDATABASE",
            fill=rules.owned("createDatabaseRequest"),
            renews=True,
        ),
        sign=Sign.SINCE_4,
        metric="create_total_count_dbs",
    ),
    reads("get_database", _get_database, needs(on_database(SEE, "name"), operation="DESCDATABASE"), replica=True, sign=Sign.MARKS_CATALOG),
    reads(
        "get_database_req",
        _get_database_req,
        needs(on_database(SEE, "request.name", "request.catalogName"), operation="DESCDATABASE"),
        replica=True,
        sign=Sign.SINCE_4,
    ),
    reads("get_databases", _get_databases, MethodRule(keep=rules.kept_names, shows=rules.DATABASES_SHOWN), replica=True),
    reads(
        "get_databases_req",
        _get_databases_req,
        MethodRule(keep=rules.kept_databases, shows=rules.DATABASES_SHOWN),
        replica=True,
        sign=Sign.SINCE_4,
    ),
    reads("get_all_databases", _get_all_databases, MethodRule(keep=rules.kept_names, shows=rules.DATABASES_SHOWN), replica=True),
    changes(
        "alter_database",
        _alter_database,
        needs(rules.alters_database("dbname", "db"), operation="ALTERDATABASE", renews=True),
        sign=Sign.MARKS_CATALOG,
    ),
    changes(
        "alter_database_req",
        _alter_database_req,
        needs(rules.alters_database("alterDbReq.oldDbName", "alterDbReq.newDb"), operation="ALTERDATABASE", renews=True),
        sign=Sign.SINCE_4,
    ),
    changes(
        "drop_database",
        _drop_database,
        needs(on_database(DROP, "name"), operation="DROPDATABASE", renews=True),
        sign=Sign.MARKS_CATALOG,
        metric="delete_total_count_dbs",
    ),
    changes(
        "drop_database_req",
        _drop_database_req,
        needs(on_database(DROP, "req.name", "req.catalogName"), operation="DROPDATABASE", renews=True),
        sign=Sign.SINCE_4,
        metric="delete_total_count_dbs",
    ),
)
