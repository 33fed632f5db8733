"""Methods of catalogs and databases."""

from __future__ import annotations

from typing import Any

from metastore.idl import Database, GetCatalogResponse, GetCatalogsResponse, GetDatabaseObjectsResponse
from metastore.methods.forms import unpack
from metastore.methods.forms.entry import Handler
from metastore.rules.names import normalize
from metastore.service.call.context import Call
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


METHODS: dict[str, Handler] = {
    "create_catalog": lambda call, args: catalogs.create_catalog(call, unpack.required(call, args.catalog.catalog, "catalog.catalog")),
    "get_catalog": lambda call, args: GetCatalogResponse(catalog=catalogs.get_catalog(call, args.catName.name)),
    "get_catalogs": _get_catalogs,
    "alter_catalog": lambda call, args: catalogs.alter_catalog(
        call, args.rqst.name, unpack.required(call, args.rqst.newCat, "rqst.newCat")
    ),
    "drop_catalog": lambda call, args: catalogs.drop_catalog(call, args.catName.name),
    "create_database": lambda call, args: databases.create_database(call, unpack.required(call, args.database, "database")),
    "create_database_req": _create_database_req,
    "get_database": _get_database,
    "get_database_req": _get_database_req,
    "get_databases": _get_databases,
    "get_databases_req": _get_databases_req,
    "get_all_databases": _get_all_databases,
    "alter_database": _alter_database,
    "alter_database_req": _alter_database_req,
    "drop_database": _drop_database,
    "drop_database_req": _drop_database_req,
}
