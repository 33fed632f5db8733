"""Comparison of the replies of two metastores, such as one and its copy: the same calls to both, and the differences."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from thriftpy2.thrift import TApplicationException, TException

from metastore import idl
from metastore.client import Client, is_unknown_method
from metastore.transfer.comparing import in_words

CAPABILITIES = {"capabilities": idl.ClientCapabilities([1, 2])}
Asked = tuple[str, Callable[[Client], Any]]


def plain(value: Any) -> Any:
    """Return a reply as JSON."""
    if hasattr(value, "thrift_spec"):
        return {
            name: plain(getattr(value, name, None)) for _, name, *_ in value.thrift_spec.values() if getattr(value, name, None) is not None
        }
    if isinstance(value, dict):
        return {str(key): plain(each) for key, each in sorted(value.items(), key=repr)}
    if isinstance(value, (set, frozenset)):
        return sorted(map(plain, value), key=repr)
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    return value


def calling(method: str, *arguments: Any) -> Callable[[Client], Any]:
    """Return a function that calls a method."""
    return lambda client: client.call(method, *arguments)


def _members(role: str, client: Client) -> Any:
    return by_repr(client.get_principals_in_role(idl.GetPrincipalsInRoleRequest(role)).principalGrants)


def asked(one: Client) -> Iterator[Asked]:
    """Yield the questions, one or more for each object that the first metastore has: (name, call)."""
    for catalog in one.get_catalogs().names:
        yield f"catalog {catalog}", calling("get_catalog", idl.GetCatalogRequest(catalog))
        prefix = "" if catalog == "hive" else f"@{catalog}#"
        for database in one.get_databases(f"{prefix}*" if prefix else "*"):
            named = f"{prefix}{database}"
            yield f"database {named}", calling("get_database", named)
            for table in one.get_all_tables(named):
                yield from _of_table(one, catalog, database, table)
    yield "functions", lambda c: c.get_all_functions()
    yield "roles", lambda c: sorted(c.get_role_names())
    for role in one.get_role_names():
        yield f"members of {role}", partial(_members, role)
    yield "plans", lambda c: c.get_all_resource_plans(idl.WMGetAllResourcePlanRequest("default"))
    yield "plan", lambda c: _sorted_plan(c.get_resource_plan(idl.WMGetResourcePlanRequest("plan", "default")))
    yield "schema", lambda c: c.get_ischema(idl.ISchemaName("hive", "sales", "s1"))
    yield "version", lambda c: c.get_schema_version(idl.SchemaVersionDescriptor(idl.ISchemaName("hive", "sales", "s1"), 1))
    yield "query", lambda c: c.get_scheduled_query(idl.ScheduledQueryKey("nightly", "c1"))
    yield "procedure", lambda c: c.get_stored_procedure(idl.StoredProcedureRequest("hive", "sales", "p1"))
    yield "package", lambda c: c.find_package(idl.GetPackageRequest("hive", "sales", "pk1"))
    yield "connector", lambda c: c.get_dataconnector_req(idl.GetDataConnectorRequest("pg"))
    yield "grants", lambda c: by_repr(c.list_privileges(None, None, idl.HiveObjectRef(catName="hive")))
    yield "grants of bob", lambda c: by_repr(c.list_privileges("bob", 1, idl.HiveObjectRef(catName="hive")))
    yield "events", lambda c: c.get_current_notificationEventId()
    yield "transactions", lambda c: c.get_open_txns()
    yield "transactions in detail", lambda c: [(t.id, t.state, t.user, t.hostname) for t in c.get_open_txns_info().open_txns]
    yield (
        "compactions",
        lambda c: [(e.dbname, e.tablename, e.type, e.state, e.runAs, e.id) for e in c.show_compact(idl.ShowCompactRequest()).compacts],
    )
    transactions = one.get_open_txns()
    text = f"{transactions.txn_high_water_mark}:{min(transactions.open_txns or {1})}:{','.join(map(str, sorted(transactions.open_txns)))}:"
    yield "write ids", lambda c: c.get_valid_write_ids(idl.GetValidWriteIdsRequest(fullTableNames=["sales.acid"], validTxnList=text))


def _of_table(one: Client, catalog: str, database: str, table: str) -> Iterator[Asked]:
    name = f"{catalog}.{database}.{table}"
    request = idl.GetTableRequest(dbName=database, tblName=table, catName=catalog, **CAPABILITIES)
    yield f"table {name}", lambda c: c.get_table_req(request).table
    found = one.get_table_req(request).table
    where = database if catalog == "hive" else f"@{catalog}#{database}"
    if found.partitionKeys:
        yield f"partitions of {name}", lambda c: sorted(c.get_partitions(where, table, -1), key=lambda each: each.values)
        yield f"names of {name}", lambda c: sorted(c.get_partition_names(where, table, -1))
    columns = [each.name for each in found.sd.cols]
    yield (
        f"statistics of {name}",
        lambda c: sorted(
            map(
                plain,
                c.get_table_statistics_req(idl.TableStatsRequest(database, table, columns, catName=catalog, engine="hive")).tableStats,
            ),
            key=repr,
        ),
    )
    if found.partitionKeys and (names := one.get_partition_names(where, table, -1)):
        yield (
            f"statistics of partitions of {name}",
            lambda c: (
                c.get_partitions_statistics_req(
                    idl.PartitionsStatsRequest(database, table, columns, names, catName=catalog, engine="hive")
                ).partStats
            ),
        )
    key = {"db_name": database, "tbl_name": table, "catName": catalog}
    yield f"primary key of {name}", lambda c: c.get_primary_keys(idl.PrimaryKeysRequest(**key)).primaryKeys
    yield f"unique of {name}", lambda c: c.get_unique_constraints(idl.UniqueConstraintsRequest(**key)).uniqueConstraints
    yield f"not null of {name}", lambda c: c.get_not_null_constraints(idl.NotNullConstraintsRequest(**key)).notNullConstraints
    yield f"default of {name}", lambda c: c.get_default_constraints(idl.DefaultConstraintsRequest(**key)).defaultConstraints
    yield f"check of {name}", lambda c: c.get_check_constraints(idl.CheckConstraintsRequest(**key)).checkConstraints
    yield (
        f"foreign keys of {name}",
        lambda c: c.get_foreign_keys(idl.ForeignKeysRequest(foreign_db_name=database, foreign_tbl_name=table, catName=catalog)).foreignKeys,
    )


def _sorted_plan(reply: Any) -> Any:
    """Return a plan with its parts sorted: in Java's replies they have no order."""
    return {name: sorted(each, key=repr) if isinstance(each, list) else each for name, each in plain(reply)["resourcePlan"].items()}


def by_repr(values: Any) -> list[Any]:
    return sorted(map(plain, values or ()), key=repr)


def differences(one: Client, other: Client) -> list[str]:
    """Return the differences between the replies of two metastores; methods that the first one does not have are skipped."""
    found = []
    for name, ask in asked(one):
        replies = []
        for client in (one, other):
            try:
                replies.append(plain(ask(client)))
            except TApplicationException as error:
                replies.append("unknown" if is_unknown_method(error) else f"failed: {error}")
            except TException as error:
                replies.append(type(error).__name__)
        if replies[0] != "unknown":
            found += [f"{name}: {words}" for words in in_words({"reply": replies[0]}, {"reply": replies[1]})]
    return found
