"""Objects of one user, and a call of each method of the interface that names them. The rights of users are not decided here."""

from __future__ import annotations

import contextlib
from typing import Any, NamedTuple

from thriftpy2.thrift import TApplicationException, TException, TType

from metastore import idl
from metastore.client import Client

OWNER = "olga"
HUSH = "hush"
"""A part of each name that no call sends. A reply that contains it has disclosed such a name."""


class Names(NamedTuple):
    """The names and numbers in the arguments of calls: of objects that exist, or of the same length for objects that do not."""

    catalog: str
    database: str
    table: str
    other: str
    """A second table like `table`."""
    function: str
    schema: str
    role: str
    transaction: int
    lock: int
    compaction: int
    table_key: int


def columns(*names: str) -> list[Any]:
    return [idl.FieldSchema(name=name, type="string", comment="") for name in names]


def storage(location: str | None = None) -> Any:
    return idl.StorageDescriptor(
        cols=columns("c", f"{HUSH}_column"), location=location, inputFormat="in", outputFormat="out", parameters={}, bucketCols=[],
        sortCols=[], serdeInfo=idl.SerDeInfo(name="s", serializationLib="lib", parameters={}),
    )  # fmt: skip


def constraints(names: Names) -> list[tuple[str, Any]]:
    """Return methods that constrain the table, each with its request."""
    table = {"table_db": names.database, "table_name": names.table, "column_name": "c", "enable_cstr": True, "catName": "hive"}
    key = idl.SQLForeignKey(
        pktable_db=names.database, pktable_name=names.table, pkcolumn_name="c", fktable_db=names.database, fktable_name=names.other,
        fkcolumn_name="c", key_seq=1, fk_name=f"{HUSH}_fk", catName="hive",
    )  # fmt: skip
    return [
        ("add_primary_key", idl.AddPrimaryKeyRequest([idl.SQLPrimaryKey(**table, key_seq=1, pk_name=f"{HUSH}_pk")])),
        ("add_unique_constraint", idl.AddUniqueConstraintRequest([idl.SQLUniqueConstraint(**table, key_seq=1, uk_name=f"{HUSH}_uk")])),
        ("add_not_null_constraint", idl.AddNotNullConstraintRequest([idl.SQLNotNullConstraint(**table, nn_name=f"{HUSH}_nn")])),
        (
            "add_default_constraint",
            idl.AddDefaultConstraintRequest([idl.SQLDefaultConstraint(**table, default_value="1", dc_name=f"{HUSH}_dc")]),
        ),
        (
            "add_check_constraint",
            idl.AddCheckConstraintRequest([idl.SQLCheckConstraint(**table, check_expression="c > 1", dc_name=f"{HUSH}_cc")]),
        ),
        ("add_foreign_key", idl.AddForeignKeyRequest([key])),
    ]


def resource_plan() -> list[tuple[str, Any]]:
    """Return methods that make a resource plan and all its parts that calls name, each with its request. All names are "x"."""
    of_plan = {"resourcePlanName": "x", "ns": "x"}
    trigger = idl.WMTrigger(triggerName="x", triggerExpression=f"{HUSH} > 1", actionExpression=HUSH, **of_plan)
    return [
        ("create_resource_plan", idl.WMCreateResourcePlanRequest(resourcePlan=idl.WMResourcePlan(name="x", ns="x"))),
        ("create_wm_pool", idl.WMCreatePoolRequest(pool=idl.WMPool(poolPath="x", **of_plan))),
        ("create_wm_trigger", idl.WMCreateTriggerRequest(trigger=trigger)),
        (
            "create_or_update_wm_mapping",
            idl.WMCreateOrUpdateMappingRequest(mapping=idl.WMMapping(entityType="USER", entityName="x", **of_plan)),
        ),
    ]


class Estate:
    """The objects of the owner. They are made again when a call has removed them."""

    def __init__(self, admin: Client, owner: Client, folder: str) -> None:
        self.admin, self.owner, self._folder = admin, owner, folder
        self.names = Names(
            "kept_catalog", "kept_database", "kept_table", "kept_other", "kept_function", "kept_schema", "kept_role", 0, 0, 0, 0
        )

    def make(self) -> Names:
        """Make the missing objects and return the names and numbers of all."""
        names = self.names
        place = f"{self._folder}/{HUSH}_place"
        make = self._make
        make(
            self.admin, "create_catalog", idl.CreateCatalogRequest(catalog=idl.Catalog(name=names.catalog, locationUri=f"{place}/catalog"))
        )
        make(
            self.admin, "create_database",
            idl.Database(name=names.database, locationUri=f"{place}/{HUSH}.db", ownerName=OWNER, ownerType=1, parameters={HUSH: HUSH}),
        )  # fmt: skip
        for name in (names.table, names.other, f"{HUSH}_table"):
            table = idl.Table(
                dbName=names.database, tableName=name, owner=OWNER, sd=storage(), partitionKeys=columns("k"), tableType="MANAGED_TABLE",
                parameters={"comment": f"{HUSH} comment"},
            )  # fmt: skip
            make(self.owner, "create_table", table)
            for value in ("v", f"{HUSH}_value", *(["e"] if name == names.table else [])):
                make(
                    self.owner, "add_partition",
                    idl.Partition(dbName=names.database, tableName=name, values=[value], sd=storage(), parameters={HUSH: HUSH}),
                )  # fmt: skip
        for level, part in ((True, None), (False, "k=v")):
            described = idl.ColumnStatisticsDesc(isTblLevel=level, dbName=names.database, tableName=names.table, partName=part)
            data = idl.ColumnStatisticsData(stringStats=idl.StringColumnStatsData(maxColLen=1, avgColLen=1.0, numNulls=0, numDVs=1))
            each = idl.ColumnStatisticsObj(colName="c", colType="string", statsData=data)
            make(
                self.owner, "update_table_column_statistics" if level else "update_partition_column_statistics",
                idl.ColumnStatistics(statsDesc=described, statsObj=[each], engine="hive"),
            )  # fmt: skip
        for method, request in constraints(names):
            make(self.owner, method, request)
        make(self.owner, "create_function", self.function(names))
        for name in (names.schema, f"{HUSH}_schema"):
            make(self.owner, "create_ischema", idl.ISchema(schemaType=1, name=name, dbName=names.database, description=HUSH))
            version = idl.SchemaVersion(schema=idl.ISchemaName("hive", names.database, name), version=1, cols=columns("c"), name=HUSH)
            make(self.owner, "add_schema_version", version)
        make(self.admin, "add_serde", idl.SerDeInfo(name="x"))
        make(self.admin, "create_role", idl.Role(roleName=names.role, ownerName=OWNER, createTime=0))
        make(self.admin, "create_role", idl.Role(roleName=f"{HUSH}_role", ownerName=OWNER, createTime=0))
        make(self.admin, "grant_role", f"{HUSH}_role", OWNER, 1, "admin", 2, True)
        make(self.owner, "grant_privileges", self.bag(names, f"{HUSH}_user"))
        for method, request in resource_plan():
            make(self.admin, method, request)
        index = idl.Index(
            indexName="x", dbName=names.database, origTableName=names.table, indexTableName=f"{HUSH}_index", sd=storage(), parameters={}
        )
        make(self.owner, "add_index", index, self.index_table(names, f"{HUSH}_index"))
        transaction = self.owner.open_txns(idl.OpenTxnRequest(num_txns=1, user=OWNER, hostname=f"{HUSH}_host")).txn_ids[0]
        self.owner.allocate_table_write_ids(
            idl.AllocateTableWriteIdsRequest(dbName=names.database, tableName=names.table, txnIds=[transaction])
        )
        component = idl.LockComponent(
            type=idl.LockType.SHARED_READ, level=2, dbname=names.database, tablename=names.table, operationType=idl.DataOperationType.SELECT
        )
        lock = self.owner.lock(idl.LockRequest(component=[component], txnid=0, user=OWNER, hostname=f"{HUSH}_host"))
        self.admin.compact2(idl.CompactionRequest(dbname=names.database, tablename=f"{HUSH}_table", partitionname=f"k={HUSH}_none", type=1))
        found = self.admin.show_compact(idl.ShowCompactRequest()).compacts
        key = self.owner.get_table(names.database, names.table).id
        self._make_what_engines_keep()
        self.admin.get_current_notificationEventId()
        return names._replace(transaction=transaction, lock=lock.lockid, compaction=found[0].id, table_key=key)

    def _make_what_engines_keep(self) -> None:
        for name in ("x", f"{HUSH}_connector"):
            connector = idl.DataConnector(name=name, type="mysql", url=f"jdbc:{HUSH}", ownerName=OWNER, parameters={HUSH: HUSH})
            self._make(self.admin, "create_dataconnector_req", idl.CreateDataConnectorRequest(connector=connector))
        query = idl.ScheduledQuery(
            scheduleKey=idl.ScheduledQueryKey(scheduleName="x", clusterNamespace="x"), enabled=True, schedule="* * * * * ?", user=OWNER,
            query=f"select {HUSH}",
        )  # fmt: skip
        database = self.names.database
        for name in ("x", f"{HUSH}_name"):
            procedure = idl.StoredProcedure(name=name, dbName=database, catName="hive", ownerName=OWNER, source=HUSH)
            self._make(self.owner, "create_stored_procedure", procedure)
            package = idl.AddPackageRequest(catName="hive", dbName=database, packageName=name, ownerName=OWNER, header=HUSH, body=HUSH)
            self._make(self.owner, "add_package", package)
        self._make(self.admin, "set_properties", idl.PropertySetRequest(nameSpace="hms", propertyMap={f"x.{HUSH}": HUSH}))
        self._make(self.admin, "add_runtime_stats", idl.RuntimeStat(weight=1, payload=HUSH.encode()))
        metrics = idl.ReplicationMetrics(scheduledExecutionId=1, policy="x", dumpExecutionId=1, metadata=HUSH, progress=HUSH)
        self._make(self.admin, "add_replication_metrics", idl.ReplicationMetricList(replicationMetricList=[metrics]))
        self._make(self.owner, "scheduled_query_maintenance", idl.ScheduledQueryMaintenanceRequest(type=1, scheduledQuery=query))

    @staticmethod
    def _make(client: Client, method: str, *args: Any) -> None:
        with contextlib.suppress(idl.AlreadyExistsException, idl.InvalidObjectException, idl.MetaException, TApplicationException):
            client.call(method, *args)

    @staticmethod
    def index_table(names: Names, name: str = "n_index") -> Any:
        return idl.Table(
            dbName=names.database, tableName=name, owner=OWNER, sd=storage(), partitionKeys=[], parameters={}, tableType="INDEX_TABLE"
        )

    @staticmethod
    def function(names: Names) -> Any:
        return idl.Function(
            functionName=names.function, dbName=names.database, className=f"{HUSH}.Class", ownerName=OWNER, ownerType=1, createTime=0,
            functionType=1, resourceUris=[],
        )  # fmt: skip

    @staticmethod
    def bag(names: Names, principal: str) -> Any:
        return idl.PrivilegeBag(
            privileges=[
                idl.HiveObjectPrivilege(
                    hiveObject=idl.HiveObjectRef(objectType=idl.HiveObjectType.TABLE, dbName=names.database, objectName=names.table),
                    principalName=principal, principalType=1, authorizer="SQL",
                    grantInfo=idl.PrivilegeGrantInfo(privilege="SELECT", createTime=0, grantor=OWNER, grantorType=1, grantOption=False),
                )
            ]
        )  # fmt: skip


DATABASES = frozenset(
    """db_name dbname dbName databaseName database_name db dbase oldDbName database table_db pktable_db fktable_db parent_db_name
    foreign_db_name source_db dest_db""".split()  # noqa: SIM905
)
TABLES = frozenset(
    """tbl_name tblName tableName tablename table_name tblname tab_name objectName pktable_name fktable_name parent_tbl_name
    foreign_tbl_name source_table_name table tbName origTableName base_tbl_name""".split()  # noqa: SIM905
)
UNSENT = frozenset(
    """validWriteIdList processorCapabilities capabilities engine partitionOrder order fileMetadata dictionary
    environment_context environmentContext envContext replPolicy replSrcTxnIds srcTxnToWriteIdList replLastIdInfo
    writeEventInfos keyValue expectedParameterKey creationMetadata skewedInfo viewOriginalText viewExpandedText
    tablesPattern poolName partitionname partname partName isolation getFileMetadata includeParamKeyPattern
    excludeParamKeyPattern projectionSpec filterSpec location metaInfo subDirectoryList state id dataConnectorName
    connector_name remote_dbname managedLocationUri eventTypeSkipList eventTypeList tableNames toEventId agentInfo
    partitionColSchema skipColumnSchemaForPartition sharedSDPartitionSpec rootPath pk_name fk_name uk_name nn_name
    dc_name schedulingPolicy isDynamicPartitionWrite exclusiveCTAS zeroWaitReadEnabled orderByClause sourceTables expr""".split()  # noqa: SIM905
)
TEXTS = {
    "validTxnList": "0:9223372036854775807::", "filter": "", "pattern": "*", "tbl_patterns": "*", "db_patterns": "*",
    "tableNamePattern": "*",
    "tableType": "MANAGED_TABLE", "type": "string", "colType": "string", "part_name": "k=v", "privilege": "SELECT", "authorizer": "SQL",
    "entityType": "USER",
    "principal_name": OWNER, "principalName": "x_principal", "grantor": OWNER, "user_name": OWNER, "token_owner": OWNER, "owner": "x",
    "ownerName": "x",
    "col_name": "c", "colName": "c", "column_name": "c", "pkcolumn_name": "c", "fkcolumn_name": "c", "columnName": None,
    "default_value": "1",
    "partition": "k=v", "workerId": "w", "key": "hive.metastore.client.capability.check", "value": "true", "defaultValue": "d",
    "tbl_types": "MANAGED_TABLE", "className": "x.Class", "relativePath": "/r",
}  # fmt: skip
LISTS: dict[str, Any] = {
    "part_vals": ["v"], "partVals": ["v"], "partitionVals": ["v"], "partitionVal": ["v"], "names": ["k=v"],
    "partNames": ["k=v"], "part_names": ["k=v"], "partitionnames": ["k=v"], "partValues": ["v"], "partitionKeys": columns("k"),
    "colNames": ["c"], "col_names": ["c"], "cols": columns("c"), "group_names": [], "groupNames": [], "tbl_types": ["MANAGED_TABLE"],
    "bucketCols": [], "sortCols": [], "filesAdded": ["f"], "filesAddedChecksum": ["x"], "resourceUris": [], "filters": ["k=v"],
    "excludeTxnTypes": [],
}  # fmt: skip
NUMBERS = {
    "max_parts": -1, "maxParts": -1, "max_tables": -1, "limit": -1, "max_indexes": -1, "maxEvents": 100, "lastEvent": 0, "fromEventId": 0,
    "objectType": 3, "profileDurationInSec": 0, "level": 2, "seedWriteId": 7, "seedTxnId": 0, "numberOfBuckets": 0, "writeid": 1,
}  # fmt: skip
BOOLEANS = {"throw_exception": False, "needMerge": False, "isTblLevel": True, "tableLevel": True, "if_exists": False}


def arguments(method: str, names: Names) -> Any:
    """Return arguments of a method that name the objects in `names`."""
    return _struct(getattr(idl.service, f"{method}_args"), method, names, ())


def _struct(cls: Any, method: str, names: Names, path: tuple[str, ...]) -> Any:
    out = cls()
    for field in cls.thrift_spec.values():
        extra = field[2] if len(field) == 4 else None
        setattr(out, field[1], _value(field[0], extra, field[1], cls.__name__, method, names, (*path, field[1])))
    return out


def _value(kind: int, extra: Any, name: str, owner: str, method: str, names: Names, path: tuple[str, ...]) -> Any:
    if (method, path) in OVERRIDES:
        value = OVERRIDES[method, path]
        return value(names) if callable(value) else value
    if name in UNSENT or len(path) > 7 or (name in ("privileges", "colStats") and owner in ("Table", "Partition", "Database")):
        return None
    if kind == TType.STRUCT:
        return _struct(extra, method, names, path)
    if kind in (TType.LIST, TType.SET):
        return _list(extra, name, owner, method, names, path)
    if kind == TType.MAP:
        return {"k": "v"} if name in ("part_vals", "partitionSpecs") else {}
    if kind == TType.STRING:
        return _text(name, owner, method, names)
    if kind == TType.BOOL:
        return BOOLEANS.get(name, True)
    return {TType.BINARY: b"", TType.DOUBLE: 1.0}.get(kind, _number(name, names))


def _list(extra: Any, name: str, owner: str, method: str, names: Names, path: tuple[str, ...]) -> Any:
    if name == "values":
        return [f"n_{method}"]
    if name in LISTS:
        return LISTS[name]
    if name in ("tbl_names", "tblNames"):
        return [names.table]
    if name in ("fullTableNames", "tablesUsed"):
        return [f"{names.database}.{names.table}"]
    if name in ("txn_ids", "txnIds"):
        return [names.transaction]
    if name == "compactionIds":
        return [names.compaction]
    inner, more = extra if isinstance(extra, tuple) else (extra, None)
    return [_value(inner, more, name, owner, method, names, path)]


def _text(name: str, owner: str, method: str, names: Names) -> Any:
    if name in DATABASES:
        return names.database
    if name == "dest_table_name":
        return names.other
    if name in TABLES:
        return names.table
    if name in ("catName", "catalogName", "cat_name", "catalog"):
        return "hive"
    if name in ("roleName", "role_name"):
        return names.role
    if name in ("functionName", "funcName"):
        return names.function
    if name == "schemaName" or (name, owner) == ("name", "ISchema"):
        return names.schema
    if name == "name":
        return NAME_OF.get(owner) or NAME_OF.get(method) or "c"
    return TEXTS.get(name, "x")


def _number(name: str, names: Names) -> int:
    if name in ("txnid", "txnId", "txn_id", "min", "max"):
        return names.transaction
    if name == "lockid":
        return names.lock
    if name == "tableId":
        return names.table_key
    return NUMBERS.get(name, 1)


def altered(names: Names) -> Any:
    """Return the database with another parameter."""
    return idl.Database(name=names.database, parameters={"new": "1"}, ownerName=OWNER)


NAME_OF: dict[str, str] = {"StoredProcedure": "x"}
OVERRIDES: dict[tuple[str, tuple[str, ...]], Any] = {
    **{(method, ("name",)): (lambda names: names.database) for method in ("get_database", "drop_database")},
    **{(method, ("name",)): (lambda names: names.table) for method in ("drop_table", "drop_table_with_environment_context")},
    ("get_database_req", ("request", "name")): lambda names: names.database,
    ("drop_database_req", ("req", "name")): lambda names: names.database,
    ("create_database", ("database",)): lambda names: idl.Database(name=names.database, parameters={}),
    ("create_database_req", ("createDatabaseRequest", "locationUri")): None,
    ("alter_database", ("db",)): altered,
    ("alter_database_req", ("alterDbReq", "newDb")): altered,
    ("get_catalog", ("catName", "name")): lambda names: names.catalog,
    ("drop_catalog", ("catName", "name")): lambda names: names.catalog,
    ("alter_catalog", ("rqst", "name")): lambda names: names.catalog,
    ("alter_catalog", ("rqst", "newCat")): lambda names: idl.Catalog(name=names.catalog, locationUri="/tmp/x_alter"),
    ("create_catalog", ("catalog", "catalog")): lambda names: idl.Catalog(name=names.catalog, locationUri="/tmp/x_create"),
    ("get_config_value", ("name",)): "hive.metastore.uris",
    ("get_type", ("name",)): "int",
    ("drop_type", ("type",)): "x_type",
    ("get_privilege_set", ("user_name",)): "mallory",
    ("get_table_names_by_filter", ("filter",)): 'hive_filter_field_owner__ like ".*"',
    ("get_materialization_invalidation_info", ("creation_metadata", "validTxnList")): None,
    ("create_dataconnector_req", ("connectorReq", "connector", "name")): "new_connector",
    **{(method, ("req", "nameSpace")): "hms" for method in ("get_properties", "set_properties")},
    ("get_properties", ("req", "mapPredicate")): "true",
    ("set_properties", ("req", "propertyMap")): {"x.name": "x"},
    ("scheduled_query_progress", ("info", "state")): idl.QueryState.EXECUTING,
    ("scheduled_query_maintenance", ("request", "type")): idl.ScheduledQueryMaintenanceRequestType.ALTER,
    ("scheduled_query_maintenance", ("request", "scheduledQuery", "schedule")): "0 0 0 * * ?",
    ("create_function", ("func",)): Estate.function,
    ("alter_function", ("newFunc",)): Estate.function,
    ("add_schema_version", ("schemaVersion", "version")): 2,
    ("set_schema_version_state", ("rqst", "state")): 2,
    ("get_schemas_by_cols", ("rqst", "colNamespace")): None,
    ("append_partition_by_name", ("part_name",)): "k=n1",
    ("append_partition_by_name_with_environment_context", ("part_name",)): "k=n2",
    ("append_partition", ("part_vals",)): ["n3"],
    ("append_partition_with_environment_context", ("part_vals",)): ["n4"],
    ("append_partition_req", ("appendPartitionsReq", "name")): "k=n5",
    **{
        (method, ("new_part", "values")): ["v"]
        for method in ("alter_partition", "alter_partition_with_environment_context")
    },
    **{
        (method, ("new_parts", "values")): ["v"] for method in ("alter_partitions", "alter_partitions_with_environment_context")
    },
    ("alter_partitions_req", ("req", "partitions", "values")): ["v"],
    **{
        (method, (path, "sd", "location")): "/tmp/x_table"
        for method in ("alter_table", "alter_table_with_environment_context", "alter_table_with_cascade")
        for path in ("new_tbl",)
    },
    ("alter_table_req", ("req", "table", "sd", "location")): "/tmp/x_table",
    ("seed_txn_id", ("rqst", "seedTxnId")): 1_000_000_000,
    ("update_partition_column_statistics", ("stats_obj", "statsDesc", "isTblLevel")): False,
    ("update_partition_column_statistics", ("stats_obj", "statsDesc", "partName")): "k=v",
    ("update_partition_column_statistics_req", ("req", "colStats", "statsDesc", "isTblLevel")): False,
    ("update_partition_column_statistics_req", ("req", "colStats", "statsDesc", "partName")): "k=v",
    ("repl_tbl_writeid_state", ("rqst", "validWriteIdlist")): lambda names: f"{names.database}.{names.table}:5:9223372036854775807::",
    ("show_locks", ("rqst",)): idl.ShowLocksRequest(),
    ("list_privileges", ("principal_name",)): None,
    ("drop_constraint", ("req", "constraintname")): f"{HUSH}_cc",
    ("add_write_ids_to_min_history", ("writeIds",)): lambda names: {f"{names.database}.{names.table}": 1},
    **{
        (method, ("cr", "id")): lambda names: names.compaction
        for method in ("mark_compacted", "mark_failed", "mark_refused", "mark_cleaned", "update_compactor_state")
    },
    ("set_hadoop_jobid", ("cq_id",)): lambda names: names.compaction,
    ("add_index", ("index_table",)): Estate.index_table,
    **{("add_index", ("new_index", field)): "n_index" for field in ("indexName", "indexTableName")},
    **{("alter_resource_plan", ("request", flag)): False for flag in ("isEnableAndActivate", "isForceDeactivate", "isReplace")},
    ("alter_resource_plan", ("request", "resourcePlan")): idl.WMNullableResourcePlan(isSetQueryParallelism=True, queryParallelism=9),
    ("create_wm_pool", ("request", "pool", "poolPath")): "n_pool",
    ("create_wm_trigger", ("request", "trigger", "triggerName")): "n_trigger",
    ("exchange_partition", ("partitionSpecs",)): {"k": "e"},
    ("exchange_partitions", ("partitionSpecs",)): {"k": "v"},
    ("rename_partition", ("new_part", "values")): ["r1"],
    ("rename_partition_req", ("req", "newPart", "values")): ["r2"],
}  # fmt: skip


def outcome(call: Any) -> tuple[str, Any]:
    """Run a call and return its outcome: "value" and the reply, or the name of the exception and its message."""
    try:
        return "value", call()
    except TException as error:
        return type(error).__name__, str(getattr(error, "message", error))
