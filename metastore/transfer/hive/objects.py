"""Objects of a Java metastore beside tables, grants and transactions, as records: each function yields one kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from metastore.idl import DatabaseType, WMResourcePlanStatus
from metastore.transfer.hive.schema import HiveSchema, flag
from metastore.transfer.hive.storage import Storage
from metastore.transfer.hive.tables import principal_type
from metastore.transfer.records import Record

CATALOG = "hive"
"""The catalog of schemas that have none, and of transactions, which name none."""
Databases = Mapping[int, tuple[str, str]]
Bodies = Iterator[Record]
PRIMARY, FOREIGN, UNIQUE, NOT_NULL, DEFAULT, CHECK = range(6)
"""Types of constraints, by Hive's number."""
KINDS_OF_CONSTRAINTS = ("primary", "foreign", "unique", "notnull", "default", "check")
ENABLE, VALIDATE, RELY = 4, 2, 1


def databases(schema: HiveSchema) -> dict[int, tuple[str, str]]:
    """Return catalog and name of each database by its number."""
    return {key: (catalog or CATALOG, name) for key, catalog, name in schema.rows("DBS", "DB_ID", "CTLG_NAME", "NAME")}


def of_server(schema: HiveSchema, _: Databases) -> Bodies:
    for key, value in schema.rows("METASTORE_DB_PROPERTIES", "PROPERTY_KEY", "PROPERTY_VALUE"):
        if key == "guid":
            yield Record("server", ("uuid",), {"value": value})


def roles(schema: HiveSchema, _: Databases) -> Bodies:
    for name, created, owner in schema.rows("ROLES", "ROLE_NAME", "CREATE_TIME", "OWNER_NAME"):
        yield Record("role", (name,), {"create_time": created, "owner_name": owner})


def catalogs(schema: HiveSchema, _: Databases) -> Bodies:
    if not schema.has("CTLGS"):
        places = {name: location for name, location in schema.rows("DBS", "NAME", "DB_LOCATION_URI")}  # noqa: C416  # their types
        yield Record(
            "catalog", (CATALOG,), {"description": "Default catalog, for Hive", "location": places.get("default"), "create_time": 0}
        )
    for name, description, location, created in schema.rows("CTLGS", "NAME", "DESC", "LOCATION_URI", "CREATE_TIME"):
        yield Record("catalog", (name,), {"description": description, "location": location, "create_time": created or 0})


def connectors(schema: HiveSchema, _: Databases) -> Bodies:
    parameters: dict[str, dict[str, str]] = {}
    for owner, name, value in schema.rows("DATACONNECTOR_PARAMS", "NAME", "PARAM_KEY", "PARAM_VALUE"):
        parameters.setdefault(owner, {})[name] = value or ""
    columns = ("NAME", "TYPE", "URL", "COMMENT", "OWNER_NAME", "OWNER_TYPE", "CREATE_TIME")
    for name, kind, url, comment, owner, owner_type, created in schema.rows("DATACONNECTORS", *columns):
        body = {
            "type": kind, "url": url, "description": comment, "parameters": parameters.get(name, {}), "owner_name": owner,
            "owner_type": principal_type(owner_type), "create_time": created,
        }  # fmt: skip
        yield Record("connector", (name,), body)


def of_databases(schema: HiveSchema, named: Databases) -> Bodies:
    parameters = schema.maps("DATABASE_PARAMS", "DB_ID", named)
    columns = (
        "DB_ID", "DESC", "DB_LOCATION_URI", "DB_MANAGED_LOCATION_URI", "OWNER_NAME", "OWNER_TYPE", "CREATE_TIME", "TYPE",
        "DATACONNECTOR_NAME", "REMOTE_DBNAME",
    )  # fmt: skip
    for key, description, location, managed, owner, owner_type, created, kind, connector, remote in schema.rows("DBS", *columns):
        body = {
            "description": description, "location": location, "managed_location": managed, "parameters": parameters.get(key, {}),
            "owner_name": owner, "owner_type": principal_type(owner_type), "create_time": created or 0,
            "type": DatabaseType.REMOTE if kind == "REMOTE" else DatabaseType.NATIVE, "connector_name": connector, "remote_name": remote,
        }  # fmt: skip
        yield Record("database", named[key], body)


def constraints(schema: HiveSchema, named: Databases) -> Bodies:
    columns = (
        "PARENT_TBL_ID", "CONSTRAINT_NAME", "POSITION", "CONSTRAINT_TYPE", "PARENT_CD_ID", "PARENT_INTEGER_IDX", "CHILD_TBL_ID",
        "CHILD_CD_ID", "CHILD_INTEGER_IDX", "UPDATE_RULE", "DELETE_RULE", "ENABLE_VALIDATE_RELY", "DEFAULT_VALUE",
    )  # fmt: skip
    rows = schema.rows("KEY_CONSTRAINTS", *columns)
    tables = table_names(schema, named, {key for row in rows for key in (row[0], row[6]) if key is not None})
    column_lists = Storage(schema).columns(key for row in rows for key in (row[4], row[7]))
    keys = schema.lists("PARTITION_KEYS", "TBL_ID", tables, "PKEY_NAME")

    def column(list_: int | None, table: int, place: int | None) -> str | None:
        names = keys.get(table, []) if list_ is None else [each[0] for each in column_lists[list_].content]
        return names[place].lower() if place is not None and 0 <= place < len(names) else None

    found: dict[tuple[int, str], dict[str, Any]] = {}
    parents: dict[tuple[int, str], tuple[int, int | None]] = {}
    for parent, name, _, kind, list_, place, child, child_list, child_place, update, delete, flags, value in sorted(
        rows, key=lambda row: (row[0], row[1], row[2])
    ):
        owner = child if kind == FOREIGN else parent
        own = column(child_list, child, child_place) if kind == FOREIGN else column(list_, parent, place)
        body = found.get((owner, name))
        if body is None:
            body = {"columns": [], "enable": bool(flags & ENABLE), "validate": bool(flags & VALIDATE), "rely": bool(flags & RELY)}
            if kind in (DEFAULT, CHECK):
                body["value"] = value
            if kind == FOREIGN:
                body |= {"update_rule": update or 0, "delete_rule": delete or 0, "parent_columns": [], "parent_key": None}
            found[owner, name], parents[owner, name] = body, (kind, parent if kind == FOREIGN else None)
        body["columns"].append(own)
        if kind == FOREIGN:
            body["parent_columns"].append(column(list_, parent, place))
    for (owner, name), body in found.items():
        kind, other = parents[owner, name]
        if other is not None:
            body["parent_key"] = _parent_key(found, parents, other, body["parent_columns"])
        if owner in tables and (other is None or other in tables):
            parent_table = None if other is None else list(tables[other])
            yield Record(
                "constraint", (*tables[owner], name), {"kind": KINDS_OF_CONSTRAINTS[kind], "body": body, "parent_table": parent_table}
            )


def _parent_key(
    found: Mapping[tuple[int, str], dict[str, Any]], kinds: Mapping[tuple[int, str], tuple[int, int | None]], table: int, columns: list[str]
) -> str | None:
    """Return the name of the key that a foreign key refers to: the one with its columns, or else the primary one."""
    keys = [(name, kinds[owner, name][0], body["columns"]) for (owner, name), body in found.items() if owner == table]
    fitting = [name for name, kind, own in keys if kind in (PRIMARY, UNIQUE) and sorted(map(str, own)) == sorted(map(str, columns))]
    return next(iter([*fitting, *(name for name, kind, _ in keys if kind == PRIMARY)]), None)


def table_names(schema: HiveSchema, named: Databases, keys: set[int]) -> dict[int, tuple[str, str, str]]:
    """Return catalog, database and name of tables by their numbers."""
    return {row[0]: (*named[row[1]], row[2]) for row in schema.among("TBLS", "TBL_ID", keys, "DB_ID", "TBL_NAME") if row[1] in named}


def functions(schema: HiveSchema, named: Databases) -> Bodies:
    columns = ("DB_ID", "FUNC_NAME", "CLASS_NAME", "OWNER_NAME", "OWNER_TYPE", "CREATE_TIME", "FUNC_TYPE")
    for rows in schema.pages("FUNCS", "FUNC_ID", *columns):
        resources = schema.grouped("FUNC_RU", "FUNC_ID", (row[0] for row in rows), "RESOURCE_TYPE", "RESOURCE_URI", order="INTEGER_IDX")
        for key, database, name, class_name, owner, owner_type, created, kind in rows:
            body = {
                "class_name": class_name, "owner_name": owner, "owner_type": principal_type(owner_type), "create_time": created,
                "type": kind, "resources": [list(each) for each in resources.get(key, ())],
            }  # fmt: skip
            yield Record("function", (*named[database], name), body)


def procedures(schema: HiveSchema, named: Databases) -> Bodies:
    for database, name, owner, source in schema.rows("STORED_PROCS", "DB_ID", "NAME", "OWNER_NAME", "SOURCE"):
        yield Record("procedure", (*named[database], name), {"owner_name": owner, "source": source})


def packages(schema: HiveSchema, named: Databases) -> Bodies:
    for database, name, owner, header, body in schema.rows("PACKAGES", "DB_ID", "NAME", "OWNER_NAME", "HEADER", "BODY"):
        yield Record("package", (*named[database], name), {"owner_name": owner, "header": header, "body": body})


def types(schema: HiveSchema, _: Databases) -> Bodies:
    rows = schema.rows("TYPES", "TYPES_ID", "TYPE_NAME", "TYPE1", "TYPE2")
    keys = [row[0] for row in rows]
    fields = schema.grouped("TYPE_FIELDS", "TYPE_NAME", keys, "FIELD_NAME", "FIELD_TYPE", "COMMENT", order="INTEGER_IDX")
    for key, name, first, second in rows:
        yield Record("type", (name,), {"body": [first, second, [list(each) for each in fields.get(key, ())]]})


def resource_plans(schema: HiveSchema, _: Databases) -> Bodies:
    def of_plans(table: str, *columns: str) -> dict[int, list[Any]]:
        found: dict[int, list[Any]] = {}
        for row in schema.rows(table, "RP_ID", *columns):
            found.setdefault(row[0], []).append(row[1:])
        return found

    pools = of_plans("WM_POOL", "POOL_ID", "PATH", "ALLOC_FRACTION", "QUERY_PARALLELISM", "SCHEDULING_POLICY")
    triggers = of_plans("WM_TRIGGER", "TRIGGER_ID", "NAME", "TRIGGER_EXPRESSION", "ACTION_EXPRESSION", "IS_IN_UNMANAGED")
    mappings = of_plans("WM_MAPPING", "ENTITY_TYPE", "ENTITY_NAME", "POOL_ID", "ORDERING")
    paths = {pool[0]: pool[1] for each in pools.values() for pool in each}
    names = {trigger[0]: trigger[1] for each in triggers.values() for trigger in each}
    used = schema.rows("WM_POOL_TO_TRIGGER", "POOL_ID", "TRIGGER_ID")
    for key, name, namespace, parallelism, status, default in schema.rows(
        "WM_RESOURCEPLAN", "RP_ID", "NAME", "NS", "QUERY_PARALLELISM", "STATUS", "DEFAULT_POOL_ID"
    ):
        own = {pool[0] for pool in pools.get(key, ())}
        body = {
            "query_parallelism": parallelism,
            "default_pool": paths.get(default),
            "pools": sorted(list(pool[1:]) for pool in pools.get(key, ())),
            "triggers": sorted([*trigger[1:4], flag(trigger[4])] for trigger in triggers.get(key, ())),
            "mappings": sorted([kind, entity, paths.get(pool), ordering] for kind, entity, pool, ordering in mappings.get(key, ())),
            "pool_triggers": sorted([paths[pool], names[trigger]] for pool, trigger in used if pool in own),
        }
        number = WMResourcePlanStatus._NAMES_TO_VALUES[status]  # noqa: SLF001  # thriftpy2 has no public name for it
        yield Record("resource_plan", (namespace or "default", name), {"status": number, "body": body})


def _serdes(schema: HiveSchema, keys: set[int]) -> dict[int, dict[str, Any]]:
    """Return SerDes of the schema registry by their numbers."""
    columns = ("NAME", "SLIB", "DESCRIPTION", "SERIALIZER_CLASS", "DESERIALIZER_CLASS", "SERDE_TYPE")
    rows = list(schema.among("SERDES", "SERDE_ID", keys, *columns))
    parameters = schema.maps("SERDE_PARAMS", "SERDE_ID", keys)
    return {
        key: {
            "name": name, "serializationLib": library, "parameters": parameters.get(key, {}), "description": description,
            "serializerClass": serializer, "deserializerClass": deserializer, "serdeType": kind or None,
        }
        for key, name, library, description, serializer, deserializer, kind in rows
    }  # fmt: skip


def schemas(schema: HiveSchema, named: Databases) -> Bodies:
    columns = ("DB_ID", "NAME", "SCHEMA_TYPE", "COMPATIBILITY", "VALIDATION_LEVEL", "CAN_EVOLVE", "SCHEMA_GROUP", "DESCRIPTION")
    for database, name, kind, compatibility, level, evolves, group, description in schema.rows("I_SCHEMA", *columns):
        body = {
            "type": kind, "compatibility": compatibility, "validation_level": level, "can_evolve": int(flag(evolves)),
            "schema_group": group, "description": description,
        }  # fmt: skip
        yield Record("schema", (*named[database], name), body)


def schema_versions(schema: HiveSchema, named: Databases) -> Bodies:
    names = {key: (*named[database], name) for key, database, name in schema.rows("I_SCHEMA", "SCHEMA_ID", "DB_ID", "NAME")}
    columns = (
        "SCHEMA_ID", "VERSION", "CREATED_AT", "CD_ID", "STATE", "DESCRIPTION", "SCHEMA_TEXT", "FINGERPRINT", "SCHEMA_VERSION_NAME",
        "SERDE_ID",
    )  # fmt: skip
    storage = Storage(schema)
    for rows in schema.pages("SCHEMA_VERSION", "SCHEMA_VERSION_ID", *columns):
        lists = storage.columns(row[4] for row in rows)
        serdes = _serdes(schema, {row[10] for row in rows if row[10] is not None})
        for _, key, version, created, list_, state, description, text, fingerprint, name, serde in rows:
            body = {
                "created_at": created, "state": state, "description": description, "schema_text": text, "fingerprint": fingerprint,
                "name": name, "serde": serdes.get(serde), "columns": [] if list_ is None else lists[list_].content,
            }  # fmt: skip
            yield Record("schema_version", (*names[key], version), body)


def scheduled_queries(schema: HiveSchema, _: Databases) -> Bodies:
    columns = ("CLUSTER_NAMESPACE", "SCHEDULE_NAME", "ENABLED", "SCHEDULE", "USER", "QUERY", "NEXT_EXECUTION")
    for namespace, name, enabled, schedule, user, query, next_ in schema.rows("SCHEDULED_QUERIES", *columns):
        body = {"enabled": int(flag(enabled)), "schedule": schedule, "user": user, "query": query, "next_time": next_}
        yield Record("scheduled_query", (namespace, name), body)


READ: dict[str, Callable[[HiveSchema, Databases], Bodies]] = {
    "server": of_server,
    "role": roles,
    "catalog": catalogs,
    "connector": connectors,
    "database": of_databases,
    "constraint": constraints,
    "function": functions,
    "procedure": procedures,
    "package": packages,
    "type": types,
    "resource_plan": resource_plans,
    "schema": schemas,
    "schema_version": schema_versions,
    "scheduled_query": scheduled_queries,
}
"""The functions by the kind of record."""
