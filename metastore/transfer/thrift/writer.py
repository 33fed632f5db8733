"""Write records into a metastore over Thrift: the way back to a Java server. Existing tables are left alone.

A call is made for each object, partitions and their statistics are sent in pages. Fields that a method does not take (times of creation,
the position of the notification log) are the server's own. Refused objects are reported, and the rest is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

from metastore import idl
from metastore.client import Client
from metastore.errors import InvalidOperation, MetaError
from metastore.rules.transactions.snapshots import hidden_valid
from metastore.rules.values.partition_names import partition_values
from metastore.transfer.records import COMMITTED, OPEN, Key, Record, ids_text, key_text
from metastore.transfer.selection import EVERYTHING, Selection
from metastore.transfer.thrift import from_bodies
from metastore.transfer.thrift.calls import Calls
from metastore.transfer.thrift.tables import CAPABILITIES, PAGE, prefixed

KEEP_STATISTICS = {"DO_NOT_UPDATE_STATS": "true"}
_CONSTRAINTS = {
    "primary": ("add_primary_key", "AddPrimaryKeyRequest"),
    "unique": ("add_unique_constraint", "AddUniqueConstraintRequest"),
    "notnull": ("add_not_null_constraint", "AddNotNullConstraintRequest"),
    "default": ("add_default_constraint", "AddDefaultConstraintRequest"),
    "check": ("add_check_constraint", "AddCheckConstraintRequest"),
    "foreign": ("add_foreign_key", "AddForeignKeyRequest"),
}
"""Methods in the order in which constraints are added: a foreign key needs the key that it refers to."""


class ThriftWriter:
    """A server as a target of records."""

    def __init__(self, uri: str, connect: Callable[[], Client], rate: float | None = None) -> None:
        self.name = uri
        self.skipped: list[str] = []
        self.wrote: Callable[[int], None] = lambda _: None
        self._calls = Calls(connect, 1, rate)
        self._states: dict[int, str] = {}
        self._write_ids: dict[Key, tuple[int, list[int]]] = {}

    def close(self) -> None:
        """Close the connection."""
        self._calls.close()

    def begin(self, selection: Selection = EVERYTHING, *, resume: bool = False) -> frozenset[Key]:  # noqa: ARG002  # another needs it
        """Return the existing tables. InvalidOperation if there are any, unless the move is resumed."""
        reply = self._calls.ask("get_catalogs")
        found = []
        for catalog in ["hive"] if reply is None else reply.names:
            for database in self._calls.ask("get_databases", "*" if catalog == "hive" else f"@{catalog}#*"):
                tables = self._calls.ask("get_all_tables", prefixed(catalog, database))
                found += [(catalog, database, table) for table in tables]
        if found and not resume:
            raise InvalidOperation(f"metastore {self.name} has tables: name an empty one, or go on with --resume, which leaves them alone")
        return frozenset(found)

    def write(self, records: Iterable[Record]) -> None:
        """Write records that come in the order of their kinds."""
        for kind, group in groupby(records, lambda record: "table" if record.kind in ("descriptor", "partition") else record.kind):
            if kind == "table":
                self._tables(group)
            elif kind == "constraint":
                found = sorted(group, key=lambda record: list(_CONSTRAINTS).index(record.body["kind"]))
                self._each(self._constraint, found)
            else:
                write = getattr(self, f"_{kind}", None)
                if write is None:
                    self.skipped += [f"{key_text(record)}: no method takes it" for record in group]
                else:
                    self._each(write, group)
        for names, (next_, invalid) in self._write_ids.items():
            self._seed(names, next_, invalid)
        if opened := [each for each, state in self._states.items() if state == OPEN]:
            self.skipped.append(f"{len(opened)} open transactions ({ids_text(opened)}) count as aborted: let them end before")

    def _each(self, write: Callable[[Record], None], records: Iterable[Record]) -> None:
        for record in records:
            try:
                write(record)
            except MetaError as error:
                self.skipped.append(f"{key_text(record)}: {error.message}")
            self.wrote(1)

    def _ask(self, method: str, *arguments: Any) -> Any:
        """Call a method; an existing object is left alone. MetaError for a method that the server lacks."""
        if self._calls.knows(method):
            reply = self._calls.ask(method, *arguments, missing=(idl.AlreadyExistsException,))
            if self._calls.knows(method):
                return reply
        raise MetaError(f"the server does not know {method}")

    def _catalog(self, record: Record) -> None:
        body = record.body
        made = idl.Catalog(
            name=record.key[0], description=body["description"], locationUri=body["location"], createTime=body["create_time"]
        )
        reply = self._calls.ask("get_catalogs")
        if reply is not None and record.key[0] in reply.names:
            self._ask("alter_catalog", idl.AlterCatalogRequest(record.key[0], made))
        else:
            self._ask("create_catalog", idl.CreateCatalogRequest(made))

    def _role(self, record: Record) -> None:
        if record.key[0] not in self._calls.ask("get_role_names"):
            self._ask("create_role", idl.Role(record.key[0], record.body["create_time"], record.body["owner_name"]))

    def _connector(self, record: Record) -> None:
        body = record.body
        made = idl.DataConnector(
            name=record.key[0], type=body["type"], url=body["url"], description=body["description"], parameters=body["parameters"],
            ownerName=body["owner_name"], ownerType=body["owner_type"], createTime=body["create_time"],
        )  # fmt: skip
        self._ask("create_dataconnector_req", idl.CreateDataConnectorRequest(made))

    def _database(self, record: Record) -> None:
        made = from_bodies.database(record.key, record.body)
        where = prefixed(*record.key)
        if self._calls.find("get_database", where) is None:
            managed, made.managedLocationUri = made.managedLocationUri, None  # Hive 4 refuses an existing one
            self._ask("create_database", made)
            made.managedLocationUri = managed
            if managed is None:
                return
        self._ask("alter_database", where, made)

    def _tables(self, records: Iterator[Record]) -> None:
        table: Record | None = None
        contents: dict[str | None, Any] = {None: None}
        page: list[Record] = []
        for record in records:
            if record.kind == "table":
                self._partitions(table, page, contents)
                table, page, contents = record, [], {None: None}
                self._each(self._table, [record])
            elif record.kind == "descriptor":
                contents[record.key[3]] = record.body["content"]
            else:
                page.append(record)
                if len(page) == PAGE:
                    self._partitions(table, page, contents)
                    page = []
        self._partitions(table, page, contents)

    def _table(self, record: Record) -> None:
        made = from_bodies.table(record.key, record.body)
        context = idl.EnvironmentContext(KEEP_STATISTICS)
        try:
            self._ask("create_table_req", idl.CreateTableRequest(table=made, envContext=context, processorCapabilities=list(CAPABILITIES)))
        except MetaError:
            if self._calls.knows("create_table_req"):
                raise
            self._ask("create_table_with_environment_context", made, context)
        for engine, found in record.body["statistics"].items():
            self._statistics([from_bodies.statistics(record.key, found, None, engine)], engine)

    def _partitions(self, table: Record | None, page: Sequence[Record], contents: dict[str | None, Any]) -> None:
        if table is None or not page:
            return
        catalog, database, name = table.key
        made = [from_bodies.partition(record.key, record.body, contents) for record in page]
        request = idl.AddPartitionsRequest(
            dbName=database, tblName=name, parts=made, ifNotExists=True, needResult=False, catName=catalog,
            environmentContext=idl.EnvironmentContext(KEEP_STATISTICS),
        )  # fmt: skip
        try:
            self._ask("add_partitions_req", request)
            by_engine: dict[str, list[Any]] = {}
            for record in page:
                for engine, found in record.body["statistics"].items():
                    by_engine.setdefault(engine, []).append(from_bodies.statistics(record.key, found, record.key[3], engine))
            for engine, found in by_engine.items():
                self._statistics(found, engine)
        except MetaError as error:
            self.skipped.append(f"{len(page)} partitions of {'.'.join(table.key)}, from {page[0].key[3]} on: {error.message}")
        self.wrote(len(page))

    def _statistics(self, found: list[Any], engine: str) -> None:
        self._ask("set_aggr_stats_for", idl.SetPartitionsStatsRequest(colStats=found, needMerge=False, engine=engine))

    def _constraint(self, record: Record) -> None:
        method, request = _CONSTRAINTS[record.body["kind"]]
        self._ask(method, getattr(idl, request)(list(from_bodies.constraint(record.key, record.body))))

    def _function(self, record: Record) -> None:
        body = record.body
        made = idl.Function(
            functionName=record.key[2], dbName=record.key[1], catName=record.key[0], className=body["class_name"],
            ownerName=body["owner_name"], ownerType=body["owner_type"], createTime=body["create_time"], functionType=body["type"],
            resourceUris=[idl.ResourceUri(*each) for each in body["resources"]],
        )  # fmt: skip
        self._ask("create_function", made)

    def _procedure(self, record: Record) -> None:
        catalog, database, name = record.key
        made = idl.StoredProcedure(name, database, catalog, record.body["owner_name"], record.body["source"])
        self._ask("create_stored_procedure", made)

    def _package(self, record: Record) -> None:
        catalog, database, name = record.key
        body = record.body
        self._ask("add_package", idl.AddPackageRequest(catalog, database, name, body["owner_name"], body["header"], body["body"]))

    def _role_grant(self, record: Record) -> None:
        role, kind, name = record.key
        body = record.body
        self._ask("grant_role", role, name, kind, body["grantor"], body["grantor_type"], bool(body["grant_option"]))

    def _privilege(self, record: Record) -> None:
        values = None if record.key[4] is None else partition_values(record.key[4])
        try:
            self._ask("grant_privileges", idl.PrivilegeBag([from_bodies.privilege(record.key, record.body, values)]))
        except MetaError as error:
            if "already granted" not in error.message:  # such as a privilege of the role admin, which each server has from the beginning
                raise

    def _resource_plan(self, record: Record) -> None:
        namespace, name = record.key
        body = record.body["body"]
        of_plan = {"resourcePlanName": name, "ns": namespace}
        plan = idl.WMResourcePlan(name=name, queryParallelism=body["query_parallelism"], ns=namespace)
        self._ask("create_resource_plan", idl.WMCreateResourcePlanRequest(plan))
        for path, fraction, parallelism, policy in sorted(body["pools"], key=lambda pool: str(pool[0]).count(".")):
            pool = idl.WMPool(poolPath=path, allocFraction=fraction, queryParallelism=parallelism, schedulingPolicy=policy, **of_plan)
            if path == "default":
                self._ask("alter_wm_pool", idl.WMAlterPoolRequest(idl.WMNullablePool(**pool.__dict__), path))
            else:
                self._ask("create_wm_pool", idl.WMCreatePoolRequest(pool))
        for trigger, when, action, unmanaged in body["triggers"]:
            made = idl.WMTrigger(triggerName=trigger, triggerExpression=when, actionExpression=action, isInUnmanaged=unmanaged, **of_plan)
            self._ask("create_wm_trigger", idl.WMCreateTriggerRequest(made))
        for pool, trigger in body["pool_triggers"]:
            asked = idl.WMCreateOrDropTriggerToPoolMappingRequest(triggerName=trigger, poolPath=pool, drop=False, **of_plan)
            self._ask("create_or_drop_wm_trigger_to_pool_mapping", asked)
        for kind, entity, pool, ordering in body["mappings"]:
            mapping = idl.WMMapping(entityType=kind, entityName=entity, poolPath=pool, ordering=ordering, **of_plan)
            self._ask("create_or_update_wm_mapping", idl.WMCreateOrUpdateMappingRequest(mapping, False))
        change = idl.WMNullableResourcePlan(name=name, ns=namespace, defaultPoolPath=body["default_pool"])
        if body["default_pool"] not in (None, "default"):
            self._ask("alter_resource_plan", idl.WMAlterResourcePlanRequest(resourcePlanName=name, resourcePlan=change, ns=namespace))
        if record.body["status"] != idl.WMResourcePlanStatus.DISABLED:
            change = idl.WMNullableResourcePlan(name=name, ns=namespace, status=record.body["status"])
            enabling = idl.WMAlterResourcePlanRequest(resourcePlanName=name, resourcePlan=change, isEnableAndActivate=True, ns=namespace)
            self._ask("alter_resource_plan", enabling)

    def _schema(self, record: Record) -> None:
        catalog, database, name = record.key
        body = record.body
        made = idl.ISchema(
            schemaType=body["type"], name=name, catName=catalog, dbName=database, compatibility=body["compatibility"],
            validationLevel=body["validation_level"], canEvolve=bool(body["can_evolve"]), schemaGroup=body["schema_group"],
            description=body["description"],
        )  # fmt: skip
        self._ask("create_ischema", made)

    def _schema_version(self, record: Record) -> None:
        body = record.body
        made = idl.SchemaVersion(
            schema=idl.ISchemaName(*record.key[:3]), version=record.key[3], createdAt=body["created_at"],
            cols=from_bodies.columns(body["columns"]), state=body["state"], description=body["description"], schemaText=body["schema_text"],
            fingerprint=body["fingerprint"], name=body["name"], serDe=None if body["serde"] is None else idl.SerDeInfo(**body["serde"]),
        )  # fmt: skip
        self._ask("add_schema_version", made)

    def _scheduled_query(self, record: Record) -> None:
        body = record.body
        query = idl.ScheduledQuery(
            scheduleKey=idl.ScheduledQueryKey(record.key[1], record.key[0]), enabled=bool(body["enabled"]), schedule=body["schedule"],
            user=body["user"], query=body["query"],
        )  # fmt: skip
        kind = idl.ScheduledQueryMaintenanceRequestType.CREATE
        self._ask("scheduled_query_maintenance", idl.ScheduledQueryMaintenanceRequest(kind, query))

    def _position(self, record: Record) -> None:
        if record.key[0] != "transaction":
            raise MetaError("the log of the server continues with its own ids")
        if record.body["last"] > self._calls.ask("get_open_txns").txn_high_water_mark:
            self._ask("seed_txn_id", idl.SeedTxnIdRequest(record.body["last"]))

    def _transaction(self, record: Record) -> None:
        """Note the state of a transaction: the write ids of uncommitted ones are made invisible."""
        self._states[record.key[0]] = record.body["state"]

    def _transaction_component(self, record: Record) -> None:
        """Do nothing: writes are found by the write ids."""

    def _write_id_position(self, record: Record) -> None:
        self._write_ids[record.key] = (record.body["next"], [])

    def _write_id(self, record: Record) -> None:
        if self._states.get(record.body["transaction_id"], COMMITTED) != COMMITTED and record.key[:3] in self._write_ids:
            self._write_ids[record.key[:3]][1].append(record.key[3])

    def _seed(self, names: Key, next_: int, invalid: list[int]) -> None:
        """Let a table's write ids continue after `next_ - 1`. The ones that no reader may see stay unseen: they count as aborted."""
        aborted = ",".join(map(str, sorted(invalid)))
        database = prefixed(*names[:2])
        text = f"{database}.{names[2]}:{next_ - 1}:{2**63 - 1}::{aborted}"
        request = idl.ReplTblWriteIdStateRequest(
            validWriteIdlist=text, user="metastore", hostName="export", dbName=database, tableName=names[2], partNames=[]
        )
        try:
            self._ask("repl_tbl_writeid_state", request)
            if (seen := hidden_valid(next_ - 1, set(invalid))) is not None:
                self._show(database, names[2], seen)
        except MetaError as error:
            self.skipped.append(f"write ids of {'.'.join(names)}, up to {next_ - 1}: {error.message}")

    def _show(self, database: str, table: str, seen: int) -> None:
        """Commit a transaction with a new write id of a table if the write id `seen` is not visible without it, as on Java's server."""
        reply = self._ask("get_valid_write_ids", idl.GetValidWriteIdsRequest(fullTableNames=[f"{database}.{table}"]))
        if reply.tblValidWriteIds[0].writeIdHighWaterMark < seen:
            (transaction,) = self._ask("open_txns", idl.OpenTxnRequest(1, "metastore", "export")).txn_ids
            request = idl.AllocateTableWriteIdsRequest(dbName=database, tableName=table, txnIds=[transaction])
            self._ask("allocate_table_write_ids", request)
            self._ask("commit_txn", idl.CommitTxnRequest(transaction))
