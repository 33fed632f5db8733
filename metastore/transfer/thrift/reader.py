"""Read the records of a metastore over Thrift, with several connections and as fast as is allowed. It changes nothing.

The calls are not of one moment, unless writers are stopped meanwhile: an object that is dropped after it was listed is left out. Objects
that no method returns are not read (`KINDS_READ`), and statistics lack the time of their making, and from Java's servers also bit vectors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any

from metastore import idl
from metastore.client import Client
from metastore.rules.values.partition_names import make_partition_name
from metastore.transfer.contract import Changes
from metastore.transfer.records import KINDS, OF_TABLES, Key, Record, ids_text
from metastore.transfer.selection import Selection
from metastore.transfer.thrift import constraints, structs
from metastore.transfer.thrift.calls import Calls
from metastore.transfer.thrift.tables import Names, Tables, prefixed
from metastore.transfer.thrift.transactions import Transactions

NOT_READ = frozenset(
    {
        "schema", "schema_version", "serde", "scheduled_query", "property", "type", "index", "location_grant", "credential",
        "transaction_component", "min_history", "compaction", "replicated_transaction", "server",
    }
)  # fmt: skip
KINDS_READ = frozenset(KINDS) - NOT_READ - {"transaction", "write_id"}
"""Kinds whose objects a method returns completely."""
EVENTS = 1000
"""Events of one call."""
_NOT_LISTED = {"schema": "schemas", "scheduled_query": "scheduled queries", "property": "properties", "type": "types"}
"""Kinds that no method lists, with their names for people."""


class ThriftReader:
    """A server as a source of records."""

    def __init__(self, uri: str, connect: Callable[[], Client], connections: int = 4, rate: float | None = None) -> None:
        """`rate` is the number of calls that may begin in a second. MetaError when a call fails."""
        self.name = uri
        self.skipped: list[str] = []
        self.kinds = KINDS_READ
        self.seen: Callable[[Record], Record] | None = seen
        self._calls = Calls(connect, connections, rate)
        self._tables = Tables(self._calls)

    def close(self) -> None:
        """Close the connections."""
        self._calls.close()

    def partitions(self) -> int:
        """Return 0: to count the partitions takes as long as to read them."""
        return 0

    def changes(self, after: int) -> Changes | None:
        """Return the changes in the notification log; None where the server has none, or it begins later."""
        last = self._calls.ask("get_current_notificationEventId")
        if last is None:
            return None
        found: list[Any] = []
        begin = after
        while begin < last.eventId:
            reply = self._calls.ask("get_next_notification", idl.NotificationEventRequest(lastEvent=begin, maxEvents=EVENTS))
            events = [event for event in reply.events or () if event.eventId > begin]
            if not events or events[0].eventId != begin + 1:
                return None
            found += events
            begin = events[-1].eventId
        return Changes.of(begin, ((event.catName, event.dbName, event.tableName) for event in found))

    def records(self, selection: Selection) -> Iterator[Record]:
        """Yield the records that are wanted."""
        self.skipped = [*_not_read(selection)]
        catalogs = dict(self._of_catalogs(sorted(self._catalogs())))
        found = dict(self._of_databases(self._wanted(list(catalogs), selection)))
        databases = list(found)
        tables = self._tables.names(selection, databases)
        roles = sorted(self._calls.ask("get_role_names"))
        transactions = cache(lambda: Transactions(self._calls, tables))
        steps: dict[str, Callable[[], Iterator[Record]]] = {
            "role": lambda: self._roles(roles),
            "catalog": lambda: (Record("catalog", (name,), body) for name, body in catalogs.items()),
            "connector": self._connectors,
            "database": lambda: (Record("database", where, body) for where, body in found.items()),
            "constraint": lambda: self._of_tables(tables),
            "function": lambda: self._functions(databases),
            "procedure": lambda: self._procedures(databases),
            "package": lambda: self._packages(databases),
            "role_grant": lambda: self._role_grants(roles),
            "privilege": lambda: self._privileges(databases, tables, roles),
            "resource_plan": self._resource_plans,
            "position": lambda: self._positions(transactions()),
            "transaction": lambda: self._transactions(transactions()),
            "transaction_component": lambda: transactions().components(),
            "write_id_position": lambda: transactions().positions(),
            "write_id": lambda: transactions().write_ids(),
        }
        for kind in KINDS:
            if kind == "table" and (selection.wants("table") or selection.wants("partition")):
                yield from self._tables.records(selection, tables)
            elif kind in steps and kind not in OF_TABLES and selection.wants(kind):
                yield from (record for record in steps[kind]() if selection.wants_key(kind, record.key))

    def tables(self, selection: Selection) -> set[Key]:
        """Return the names of the tables."""
        found = self._tables.names(selection, self._wanted(self._catalogs(), selection))
        return {names for names in found if selection.wants_key("table", names)}

    def _wanted(self, catalogs: Sequence[str], selection: Selection) -> list[tuple[str, str]]:
        """Return the databases that are wanted."""
        return [
            (catalog, name)
            for catalog in catalogs
            if selection.wants_catalog(catalog)
            for name in sorted(self._databases(catalog))
            if selection.wants_database(catalog, name)
        ]

    def _catalogs(self) -> Sequence[str]:
        reply = self._calls.ask("get_catalogs")
        return ["hive"] if reply is None else list(reply.names)

    def _databases(self, catalog: str) -> Sequence[str]:
        found: Sequence[str] = self._calls.find("get_databases", "*" if catalog == "hive" else f"@{catalog}#*", absent=())
        return found

    def _of_catalogs(self, names: Sequence[str]) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the names of the catalogs that are there, each with the body of its record."""
        for name in names:
            reply = self._calls.find("get_catalog", idl.GetCatalogRequest(name))
            if reply is not None:
                found = reply.catalog
            elif self._calls.knows("get_catalog"):
                continue
            else:
                found = idl.Catalog(name=name, locationUri=self._calls.ask("get_database", "default").locationUri)
            yield name, {"description": found.description, "location": found.locationUri, "create_time": found.createTime or 0}

    def _connector_names(self) -> list[str]:
        return sorted(self._calls.ask("get_dataconnectors", absent=()))

    def _connectors(self) -> Iterator[Record]:
        for name in self._connector_names():
            found = self._calls.find("get_dataconnector_req", idl.GetDataConnectorRequest(name))
            if found is None:
                continue
            body = {
                "type": found.type, "url": found.url, "description": found.description, "parameters": found.parameters or {},
                "owner_name": found.ownerName, "owner_type": found.ownerType, "create_time": found.createTime or 0,
            }  # fmt: skip
            yield Record("connector", (name,), body)

    def _of_databases(self, names: Sequence[tuple[str, str]]) -> Iterator[tuple[tuple[str, str], dict[str, Any]]]:
        """Yield the names of the databases that are there, each with the body of its record."""
        for where in names:
            found = self._calls.find("get_database", prefixed(*where))
            if found is not None:
                yield where, structs.database(found)

    def _of_tables(self, names: Sequence[Names]) -> Iterator[Record]:
        for found in self._calls.each(lambda each: constraints.of_table(self._calls, each), names):
            yield from found

    def _functions(self, databases: Sequence[tuple[str, str]]) -> Iterator[Record]:
        for where in databases:
            for name in sorted(self._calls.find("get_functions", prefixed(*where), "*", absent=())):
                found = self._calls.find("get_function", prefixed(*where), name)
                if found is not None:
                    yield Record("function", (*where, name), structs.function(found))

    def _procedures(self, databases: Sequence[tuple[str, str]]) -> Iterator[Record]:
        for where in databases:
            for name in sorted(self._calls.find("get_all_stored_procedures", idl.ListStoredProcedureRequest(*where), absent=())):
                found = self._calls.find("get_stored_procedure", idl.StoredProcedureRequest(*where, name))
                if found is not None:
                    yield Record("procedure", (*where, name), {"owner_name": found.ownerName, "source": found.source})

    def _packages(self, databases: Sequence[tuple[str, str]]) -> Iterator[Record]:
        for where in databases:
            for name in sorted(self._calls.find("get_all_packages", idl.ListPackageRequest(*where), absent=())):
                found = self._calls.find("find_package", idl.GetPackageRequest(*where, name))
                if found is not None:
                    yield Record("package", (*where, name), {"owner_name": found.ownerName, "header": found.header, "body": found.body})

    def _roles(self, names: Sequence[str]) -> Iterator[Record]:
        """Yield the roles. The time of creation and the maker are known only of roles with members."""
        for name in names:
            known = [
                each
                for member in self._members(name)[:1]
                for each in self._calls.ask("list_roles", member.principalName, member.principalType)
                if each.roleName == name
            ]
            body = (
                {"create_time": known[0].createTime, "owner_name": known[0].ownerName} if known else {"create_time": 0, "owner_name": None}
            )
            yield Record("role", (name,), body)

    def _members(self, role: str) -> Sequence[Any]:
        reply = self._calls.find("get_principals_in_role", idl.GetPrincipalsInRoleRequest(role))
        return (reply.principalGrants if reply is not None else None) or ()

    def _role_grants(self, roles: Sequence[str]) -> Iterator[Record]:
        for name in roles:
            for each in self._members(name):
                body = {
                    "grant_option": int(bool(each.grantOption)), "grant_time": each.grantTime, "grantor": each.grantorName,
                    "grantor_type": each.grantorPrincipalType,
                }  # fmt: skip
                yield Record("role_grant", (name, each.principalType, each.principalName), body)

    def _privileges(self, databases: Sequence[tuple[str, str]], tables: Sequence[Names], roles: Sequence[str]) -> Iterator[Record]:
        """Yield all privileges of roles, their members, and holders of a privilege on the server, a connector, a database or a table."""
        kinds = idl.HiveObjectType
        asked = [
            idl.HiveObjectRef(objectType=kinds.GLOBAL),
            *(idl.HiveObjectRef(objectType=kinds.DATACONNECTOR, objectName=name) for name in self._connector_names()),
            *(idl.HiveObjectRef(objectType=kinds.DATABASE, catName=catalog, dbName=name) for catalog, name in databases),
            *(
                idl.HiveObjectRef(objectType=kind, catName=catalog, dbName=database, objectName=name)
                for catalog, database, name in tables
                for kind in (kinds.TABLE, kinds.COLUMN)
            ),
        ]
        holders = {(each.principalType, each.principalName) for role in roles for each in self._members(role)}
        holders |= {(idl.PrincipalType.ROLE, role) for role in roles}
        for granted in self._calls.each(lambda ref: self._calls.find("list_privileges", None, None, ref, absent=()), asked):
            holders |= {(each.principalType, each.principalName) for each in granted}
        catalogs = sorted({catalog for catalog, _ in databases})
        for kind, name in sorted(holders):
            seen = set()
            for catalog in catalogs:
                for each in self._calls.ask("list_privileges", name, kind, idl.HiveObjectRef(catName=catalog)):
                    record = self._privilege(each)
                    if record is not None and record.key not in seen:
                        seen.add(record.key)
                        yield record

    def _resource_plans(self) -> Iterator[Record]:
        reply = self._calls.ask("get_all_resource_plans", idl.WMGetAllResourcePlanRequest("default"))
        for plan in (reply.resourcePlans if reply is not None else None) or ():
            full = self._calls.find("get_resource_plan", idl.WMGetResourcePlanRequest(plan.name, plan.ns))
            if full is not None:
                yield Record("resource_plan", (plan.ns or "default", plan.name), structs.resource_plan(full.resourcePlan))

    def _positions(self, transactions: Transactions) -> Iterator[Record]:
        yield Record("position", ("transaction",), {"last": transactions.last})
        reply = self._calls.ask("get_current_notificationEventId")
        yield Record("position", ("notification",), {"last": 0 if reply is None else reply.eventId})

    def _transactions(self, transactions: Transactions) -> Iterator[Record]:
        if opened := transactions.opened():
            self.skipped.append(
                f"{len(opened)} open transactions ({ids_text(opened)}) count as aborted: let them end before, or import from the database"
            )
        yield from transactions.transactions()

    def _privilege(self, granted: Any) -> Record | None:
        """Return the record of a privilege; None for one on a partition of a table that is gone."""
        ref, info = granted.hiveObject, granted.grantInfo
        catalog = None if ref.dbName is None else ref.catName or "hive"
        partition = None
        if ref.partValues:
            keys = self._tables.keys_of((catalog or "", ref.dbName, ref.objectName))
            if not keys:
                return None
            partition = make_partition_name(keys, ref.partValues)
        is_connector = ref.objectType == idl.HiveObjectType.DATACONNECTOR
        table = ref.objectName if ref.dbName is not None or is_connector else None
        key = (
            ref.objectType, catalog, ref.dbName, table or None, partition, ref.columnName, granted.principalType, granted.principalName,
            info.privilege, info.grantorType, info.grantor, granted.authorizer,
        )  # fmt: skip
        return Record("privilege", key, {"grant_option": int(bool(info.grantOption)), "create_time": info.createTime or 0})


def _not_read(selection: Selection) -> Iterator[str]:
    """Yield texts on the wanted kinds that no method returns."""
    if names := [name for kind, name in _NOT_LISTED.items() if selection.wants(kind)]:
        yield f"{', '.join(names)}: no method lists them"
    if selection.wants("compaction"):
        yield "the queue of compactions, and writes of committed transactions: queue compactions again"


def seen(record: Record) -> Record:
    """Return a record as far as the interface covers it."""
    body = record.body
    if record.kind == "role":
        return record._replace(body={})
    if record.kind == "write_id_position":
        return record._replace(body={"next": body["next"]})
    if record.kind in ("table", "partition") and body["statistics"]:
        reduced = {engine: structs.without_sketches(columns) for engine, columns in body["statistics"].items()}
        return record._replace(body={**body, "statistics": reduced})
    return record
