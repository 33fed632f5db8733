"""Methods of tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from metastore.errors import InvalidObject, MetaError, MissingArgument, NoSuchObject, UnknownDatabase
from metastore.idl import (
    AlterTableResponse,
    ExtendedTableInfo,
    FieldSchema,
    GetFieldsResponse,
    GetSchemaResponse,
    GetTableResult,
    GetTablesResult,
    Table,
    TableMeta,
    TruncateTableResponse,
)
from metastore.methods.catalog import table_rules as rules
from metastore.methods.forms import unpack
from metastore.methods.forms.entry import changes, reads
from metastore.methods.forms.rules import DROP, REMOVES, SEE, MethodRule, found_by, needs, on_database, on_table
from metastore.methods.forms.undeclared import undeclared
from metastore.rules.catalog import projection
from metastore.rules.statistics import statistics_validity as validity_rules
from metastore.service.call.context import Call
from metastore.service.call.releases import Sign
from metastore.service.catalog import translation
from metastore.service.catalog.statistics import statistics_validity
from metastore.service.catalog.tables import tables
from metastore.service.catalog.tables.alter_table import alter_table
from metastore.service.catalog.tables.create_table import create_table, dry_run

CONSTRAINT_LISTS = ("primaryKeys", "foreignKeys", "uniqueConstraints", "notNullConstraints", "defaultConstraints", "checkConstraints")


def _constraints(holder: Any) -> list[Any]:
    return [constraint for name in CONSTRAINT_LISTS for constraint in getattr(holder, name) or ()]


def _create(call: Call, table: Table, **options: Any) -> None:
    """Create a table. Java reports a missing database as an invalid object."""
    try:
        create_table(call, table, **options)
    except NoSuchObject as error:
        raise InvalidObject(error.message) from error


def _create_table(call: Call, args: Any) -> None:
    _create(call, unpack.required(call, args.tbl, "tbl"))


def _create_table_with_environment_context(call: Call, args: Any) -> None:
    _create(call, unpack.required(call, args.tbl, "tbl"), environment=unpack.environment(args.environment_context))


def _create_table_with_constraints(call: Call, args: Any) -> None:
    _create(call, unpack.required(call, args.tbl, "tbl"), constraints=_constraints(args))


def _create_table_req(call: Call, args: Any) -> None:
    request = args.request
    if request.table is not None and request.table.dbName is None:
        raise MetaError(f"Database name of table {request.table.tableName} cannot be null: set dbName")
    _create(
        call,
        unpack.required(call, request.table, "request.table"),
        environment=unpack.environment(request.envContext),
        constraints=_constraints(request),
        capabilities=request.processorCapabilities,
        identifier=request.processorIdentifier,
    )


def _get_table(call: Call, args: Any) -> Table:
    table = tables.get_table(call, unpack.table(call, args.dbname, args.tbl_name))
    translation.check_readable(call, table, None)
    translation.check_full_acid(call, table)
    return table


def _get_table_req(call: Call, args: Any) -> GetTableResult:
    request = args.req
    name = unpack.target(call, request)
    table = tables.get_table(call, name)
    if (seen := validity_rules.seen_by(request.validWriteIdList)) is not None:
        statistics_validity.show_validity_of_table(table, seen)
    if request.getColumnStats:
        statistics_validity.add_to_table(call, name, table, request.engine, seen)
    translation.check_readable(call, table, request.capabilities)
    named = request.capabilities.values if request.capabilities is not None else None
    translation.check_full_acid(call, table, named, request.processorCapabilities)
    return GetTableResult(table=translation.on_get(table, request.processorCapabilities))


def _lists_namespace(call: Call) -> bool:
    """Return whether PyIceberg is listing a namespace, by `get_all_tables` and then the tables: a missing namespace is then an error."""
    return call.client.last_method == "get_all_tables"


def _get_table_objects_by_name(call: Call, args: Any) -> list[Table]:
    catalog, database = unpack.database(call, args.dbname)
    found = tables.get_table_objects_by_name(call, catalog, database, args.tbl_names, must_exist=_lists_namespace(call))
    for table in found:
        translation.check_readable(call, table, None)
    return found


def _get_table_objects_by_name_req(call: Call, args: Any) -> GetTablesResult:
    request = args.req
    catalog, database = unpack.database(call, request.dbName, request.catName)
    if request.tblNames is None and request.tablesPattern is not None:
        found = tables.get_table_objects_by_pattern(call, catalog, database, request.tablesPattern)
    else:
        found = tables.get_table_objects_by_name(call, catalog, database, request.tblNames, must_exist=_lists_namespace(call))
    for table in found:
        translation.check_readable(call, table, request.capabilities)
    shown = [translation.on_get(table, request.processorCapabilities) for table in found]
    return GetTablesResult(tables=projection.project_tables(shown, request.projectionSpec))


def _get_tables(call: Call, args: Any) -> list[str]:
    return tables.get_tables(call, *unpack.database(call, args.db_name), args.pattern)


def _get_tables_by_type(call: Call, args: Any) -> list[str]:
    return tables.matching_tables(call, *unpack.database(call, args.db_name), args.pattern, args.tableType)


def _get_all_tables(call: Call, args: Any) -> list[str]:
    return tables.matching_tables(call, *unpack.database(call, args.db_name), None)


def _get_table_meta(call: Call, args: Any) -> list[TableMeta]:
    catalog, pattern = unpack.database(call, args.db_patterns)
    return tables.get_table_meta(call, catalog, pattern, args.tbl_patterns, args.tbl_types)


def _get_table_names_by_filter(call: Call, args: Any) -> list[str]:
    catalog, database = unpack.database(call, args.dbname)
    return tables.get_table_names_by_filter(call, catalog, database, args.filter, unpack.limit(args.max_tables))


def _get_tables_ext(call: Call, args: Any) -> list[ExtendedTableInfo]:
    request = args.req
    catalog, database = unpack.database(call, request.database, request.catalog)
    names = tables.matching_tables(call, catalog, database, request.tableNamePattern)
    limit = unpack.limit(request.limit)
    found = tables.get_table_objects_by_name(call, catalog, database, names if limit < 0 else names[:limit])
    translated = [translation.on_get(table, request.processorCapabilities) for table in found]
    return [
        ExtendedTableInfo(
            tblName=table.tableName,
            accessType=table.accessType,
            requiredReadCapabilities=table.requiredReadCapabilities,
            requiredWriteCapabilities=table.requiredWriteCapabilities,
        )
        for table in translated
    ]


def _alter(call: Call, args: Any, environment: Mapping[str, str], *, cascade: bool = False) -> None:
    if args.new_tbl is None:
        raise MissingArgument(f"{call.method} needs the new table")
    name = unpack.table(call, args.dbname, args.tbl_name)
    alter_table(call, name, args.new_tbl, environment=environment, cascade=cascade)


def _alter_table_req(call: Call, args: Any) -> AlterTableResponse:
    request = args.req
    environment = dict(unpack.environment(request.environmentContext))
    if request.expectedParameterKey is not None:
        environment["expected_parameter_key"] = request.expectedParameterKey
        if request.expectedParameterValue is not None:
            environment["expected_parameter_value"] = request.expectedParameterValue
    new = unpack.required(call, request.table, "req.table")
    by = validity_rules.writer(max(request.writeId or -1, new.writeId or -1), request.validWriteIdList)
    alter_table(call, unpack.target(call, request), new, environment=environment, by=by)
    return AlterTableResponse()


def _drop_table(call: Call, args: Any) -> None:
    tables.drop_table(call, unpack.table(call, args.dbname, args.name), delete_data=bool(args.deleteData))


def _drop_table_with_environment_context(call: Call, args: Any) -> None:
    tables.drop_table(
        call,
        unpack.table(call, args.dbname, args.name),
        delete_data=bool(args.deleteData),
        environment=unpack.environment(args.environment_context),
    )


def _drop_table_req(call: Call, args: Any) -> None:
    request = args.dropTableReq
    tables.drop_table(
        call,
        unpack.table(call, request.dbName, request.tableName, request.catalogName),
        delete_data=bool(request.deleteData),
        environment=unpack.environment(request.envContext),
    )


def _get_fields(call: Call, args: Any) -> list[FieldSchema]:
    return tables.get_fields(call, unpack.table(call, args.db_name, args.table_name))


def _get_schema(call: Call, args: Any) -> list[FieldSchema]:
    return tables.get_schema(call, unpack.table(call, args.db_name, args.table_name))


def _truncate_table(call: Call, args: Any) -> None:
    try:
        tables.truncate_table(call, unpack.table(call, args.dbName, args.tableName), args.partNames, None)
    except NoSuchObject as error:
        if args.partNames and call.client.release.request_methods:
            raise  # Hive's later clients expect this error where they name partitions of a missing table
        raise MetaError(error.message) from error


def _truncate_table_req(call: Call, args: Any) -> TruncateTableResponse:
    request = args.req
    name, environment = unpack.table(call, request.dbName, request.tableName), unpack.environment(request.environmentContext)
    tables.truncate_table(call, name, request.partNames, environment, request.writeId)
    return TruncateTableResponse()


def _update_creation_metadata(call: Call, args: Any) -> None:
    tables.update_creation_metadata(call, unpack.table(call, args.dbname, args.tbl_name, args.catName), args.creation_metadata)


def _get_materialized_views_for_rewriting(call: Call, args: Any) -> list[str]:
    catalog, database = unpack.database(call, args.db_name)
    return tables.materialized_views(call, catalog, database or "")


def _translate_table_dryrun(call: Call, args: Any) -> Table:
    request = args.request
    table = unpack.required(call, request.table, "request.table")
    environment = unpack.environment(request.envContext)
    return dry_run(call, table, capabilities=request.processorCapabilities, identifier=request.processorIdentifier, environment=environment)


METHODS = (
    changes("create_table", _create_table, rules.CREATE_TABLE, metric="create_total_count_tables"),
    changes(
        "create_table_with_environment_context",
        _create_table_with_environment_context,
        rules.CREATE_TABLE,
        metric="create_total_count_tables",
    ),
    changes("create_table_with_constraints", _create_table_with_constraints, rules.CREATE_TABLE, metric="create_total_count_tables"),
    changes(
        "create_table_req",
        _create_table_req,
        needs(
            *rules.creates_table("request.table", "request"), operation="CREATETABLE", fill=rules.made_table("request.table"), renews=True
        ),
        sign=Sign.SINCE_4,
        metric="create_total_count_tables",
    ),
    reads(
        "translate_table_dryrun", _translate_table_dryrun, needs(*rules.creates_table("request.table", "request"), operation="CREATETABLE")
    ),
    reads(
        "get_table",
        _get_table,
        needs(on_table(SEE, "dbname", "tbl_name"), operation="DESCTABLE", late=lambda _args, value: value),
        replica=True,
        sign=Sign.READS_TABLE,
    ),
    reads(
        "get_table_req",
        _get_table_req,
        needs(
            found_by("any privilege on the table, SELECT for statistics", rules.reads_table), operation="DESCTABLE", late=rules.table_alone
        ),
        replica=True,
        sign=Sign.SINCE_3,
    ),
    reads(
        "get_table_objects_by_name",
        undeclared(_get_table_objects_by_name, UnknownDatabase),
        needs(on_database(SEE, "dbname"), around=rules.by_name("dbname", None), **rules.SHOW_TABLES),
        replica=True,
    ),
    reads(
        "get_table_objects_by_name_req",
        _get_table_objects_by_name_req,
        needs(
            found_by("any privilege on the database, unless it is a pattern", rules.database_of_tables),
            around=rules.by_name("req.dbName", "req"),
            **rules.SHOW_TABLES,
        ),
        replica=True,
    ),
    reads(
        "get_tables",
        _get_tables,
        needs(on_database(SEE, "db_name"), keep=rules.tables_in("db_name"), **rules.SHOW_TABLES),
        replica=True,
        sign=Sign.MARKS_CATALOG,
    ),
    reads(
        "get_tables_by_type",
        _get_tables_by_type,
        needs(on_database(SEE, "db_name"), keep=rules.tables_in("db_name"), **rules.SHOW_TABLES),
        replica=True,
    ),
    reads(
        "get_tables_ext",
        _get_tables_ext,
        needs(
            on_database(SEE, "req.database", "req.catalog"),
            around=rules.limited("req.limit", "req.database", "req.catalog", lambda each: str(each.tblName)),
            **rules.SHOW_TABLES,
        ),
        replica=True,
    ),
    reads(
        "get_all_tables", _get_all_tables, needs(on_database(SEE, "db_name"), around=rules.all_tables, **rules.SHOW_TABLES), replica=True
    ),
    reads(
        "get_table_meta", _get_table_meta, MethodRule(operation="SHOWTABLES", keep=rules.kept_metas, shows=rules.TABLES_SHOWN), replica=True
    ),
    reads(
        "get_table_names_by_filter",
        _get_table_names_by_filter,
        needs(on_database(SEE, "dbname"), around=rules.limited("max_tables", "dbname", None, str), **rules.SHOW_TABLES),
        replica=True,
    ),
    reads(
        "get_materialized_views_for_rewriting",
        _get_materialized_views_for_rewriting,
        needs(on_database(SEE, "db_name"), keep=rules.tables_in("db_name"), **rules.SHOW_TABLES),
    ),
    reads(
        "get_all_materialized_view_objects_for_rewriting",
        lambda call, args: tables.materialized_view_objects(call),
        MethodRule(keep=rules.kept_tables, shows=rules.TABLES_SHOWN),
    ),
    changes(
        "update_creation_metadata",
        _update_creation_metadata,
        needs(found_by("ownership or ALTER on the view, SELECT on its sources", rules.changes_sources), operation="ALTERVIEW_AS"),
    ),
    changes(
        "alter_table",
        lambda call, args: _alter(call, args, {}),
        needs(rules.alters_table("dbname", "tbl_name", "new_tbl"), operation="ALTERTABLE_PROPERTIES"),
    ),
    changes(
        "alter_table_with_environment_context",
        lambda call, args: _alter(call, args, unpack.environment(args.environment_context)),
        needs(rules.alters_table("dbname", "tbl_name", "new_tbl"), operation="ALTERTABLE_PROPERTIES"),
    ),
    changes(
        "alter_table_with_cascade",
        lambda call, args: _alter(call, args, {}, cascade=bool(args.cascade)),
        needs(rules.alters_table("dbname", "tbl_name", "new_tbl"), operation="ALTERTABLE_PROPERTIES"),
    ),
    changes(
        "alter_table_req",
        _alter_table_req,
        needs(rules.alters_table("req.dbName", "req.tableName", "req.table", "req.catName"), operation="ALTERTABLE_PROPERTIES"),
        sign=Sign.SINCE_4,
    ),
    changes(
        "drop_table",
        _drop_table,
        needs(on_table(DROP, "dbname", "name"), operation="DROPTABLE", renews=True),
        metric="delete_total_count_tables",
    ),
    changes(
        "drop_table_with_environment_context",
        _drop_table_with_environment_context,
        needs(on_table(DROP, "dbname", "name"), operation="DROPTABLE", renews=True),
        metric="delete_total_count_tables",
    ),
    changes(
        "drop_table_req",
        _drop_table_req,
        needs(
            on_table(DROP, "dropTableReq.dbName", "dropTableReq.tableName", "dropTableReq.catalogName"), operation="DROPTABLE", renews=True
        ),
        sign=Sign.SINCE_4,
        metric="delete_total_count_tables",
    ),
    changes(
        "truncate_table",
        undeclared(_truncate_table, NoSuchObject),
        needs(on_table(REMOVES, "dbName", "tableName"), operation="TRUNCATETABLE"),
        sign=Sign.MARKS_CATALOG,
    ),
    changes(
        "truncate_table_req",
        _truncate_table_req,
        needs(on_table(REMOVES, "req.dbName", "req.tableName"), operation="TRUNCATETABLE"),
        sign=Sign.SINCE_4,
    ),
    reads("get_fields", _get_fields, rules.SEES_FIELDS, replica=True),
    reads("get_fields_with_environment_context", _get_fields, rules.SEES_FIELDS, replica=True),
    reads(
        "get_fields_req",
        lambda call, args: GetFieldsResponse(fields=tables.get_fields(call, unpack.target(call, args.req))),
        rules.SEES_TABLE_OF_REQUEST,
        replica=True,
        sign=Sign.SINCE_4,
    ),
    reads("get_schema", _get_schema, rules.SEES_FIELDS, replica=True),
    reads("get_schema_with_environment_context", _get_schema, rules.SEES_FIELDS, replica=True),
    reads(
        "get_schema_req",
        lambda call, args: GetSchemaResponse(fields=tables.get_schema(call, unpack.target(call, args.req))),
        rules.SEES_TABLE_OF_REQUEST,
        replica=True,
        sign=Sign.SINCE_4,
    ),
)
