"""Fill any metastore over Thrift with every kind of object that it has. Objects that a release does not support are left out."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from thriftpy2.thrift import TApplicationException

from metastore import idl
from metastore.client import Client, is_unknown_method

TRANSACTIONAL = {"transactional": "true", "transactional_properties": "insert_only"}
INPUT, OUTPUT = "org.apache.hadoop.mapred.TextInputFormat", "org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat"
SERDE = "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe"
SKETCH = base64.b64decode("SExMoLwCEpGKF7xb7Q==")
CAPABILITIES = [
    "HIVEFULLACIDWRITE",
    "HIVEFULLACIDREAD",
    "HIVEMANAGEDINSERTREAD",
    "HIVEMANAGEDINSERTWRITE",
    "EXTREAD",
    "EXTWRITE",
    "HIVESQL",
    "HIVEMQT",
]


@contextmanager
def if_known() -> Iterator[None]:
    """Skip the rest of a block when the server has no such method."""
    try:
        yield
    except TApplicationException as error:
        if not is_unknown_method(error):
            raise


def columns(*named: tuple[str, str]) -> list[Any]:
    return [idl.FieldSchema(name=name, type=kind, comment=f"of {name}" if kind == "int" else None) for name, kind in named]


def storage(location: str | None, *named: tuple[str, str], **more: Any) -> Any:
    return idl.StorageDescriptor(
        cols=columns(*named), location=location, inputFormat=INPUT, outputFormat=OUTPUT, compressed=False,
        numBuckets=more.pop("buckets", -1),
        serdeInfo=idl.SerDeInfo(name="s", serializationLib=SERDE, parameters={"serialization.format": "1", "field.delim": ","}),
        bucketCols=more.pop("bucketCols", []), sortCols=more.pop("sortCols", []), parameters=more.pop("parameters", {}), **more,
    )  # fmt: skip


class Filler:
    """Makes objects in databases whose names begin with a prefix."""

    def __init__(self, client: Client, root: str) -> None:
        self.client, self.root = client, root

    def table(self, database: str, name: str, sd: Any, keys: list[Any] | None = None, kind: str = "EXTERNAL_TABLE", **more: Any) -> None:
        parameters = more.pop("parameters", {})
        external = {"EXTERNAL": "TRUE"} if kind == "EXTERNAL_TABLE" else {}
        table = idl.Table(
            tableName=name, dbName=database, owner="ann", ownerType=idl.PrincipalType.USER, sd=sd, partitionKeys=keys or [], tableType=kind,
            parameters={"note": "ä", **external, **parameters}, **more,
        )  # fmt: skip
        try:
            self.client.create_table_req(idl.CreateTableRequest(table=table, processorCapabilities=CAPABILITIES))
        except TApplicationException as error:
            if not is_unknown_method(error):
                raise
            self.client.create_table(table)

    def catalog(self) -> None:
        self.client.create_catalog(
            idl.CreateCatalogRequest(catalog=idl.Catalog(name="lake", description="a lake", locationUri=f"{self.root}/lake"))
        )
        self.client.create_database(
            idl.Database(name="deep", catalogName="lake", locationUri=f"{self.root}/lake/deep", ownerName="ann", ownerType=1)
        )

    def databases(self) -> None:
        self.client.create_database(
            idl.Database(
                name="sales", description="of sales", locationUri=f"{self.root}/sales", parameters={"a": "b"}, ownerName="ann", ownerType=1
            )
        )
        self.client.create_database(
            idl.Database(name="empty", locationUri=f"{self.root}/empty", ownerName="team", ownerType=idl.PrincipalType.ROLE)
        )

    def tables(self) -> None:
        root = f"{self.root}/sales"
        self.table(
            "sales", "orders", storage(f"{root}/orders", ("id", "int"), ("name", "string")), columns(("ds", "string"), ("hr", "int"))
        )
        partitions = [
            idl.Partition(
                values=[f"2026-01-{day:02}", str(hour)], dbName="sales", tableName="orders", createTime=0, lastAccessTime=0,
                sd=storage(
                    f"{root}/elsewhere/{day}" if day == 3 else f"{root}/orders/ds=2026-01-{day:02}/hr={hour}",
                    ("id", "int"), ("name", "string"),
                ),
                parameters={"numRows": str(day)},
            )
            for day in range(1, 5)
            for hour in range(3)
        ]  # fmt: skip
        partitions[-1].sd.cols = columns(("id", "int"))
        partitions[-1].sd.serdeInfo.parameters = {"field.delim": "|"}
        odd = idl.Partition(
            values=["a/b=c ä", "7"], dbName="sales", tableName="orders", parameters={}, sd=storage(f"{root}/odd", ("id", "int"))
        )
        self.client.add_partitions([*partitions, odd])
        self.table(
            "sales", "bucketed",
            storage(
                f"{root}/bucketed", ("id", "int"), ("name", "string"), buckets=4, bucketCols=["id"], sortCols=[idl.Order("name", 1)],
                parameters={"p": "q"}, skewedInfo=idl.SkewedInfo(["name"], [["x"], ["y"]], {}), storedAsSubDirectories=True,
            ),
            parameters={"comment": "in buckets"},
        )  # fmt: skip
        self.table(
            "sales", "v", storage(None, ("id", "int")), kind="VIRTUAL_VIEW", viewOriginalText="select 1", viewExpandedText="select 1 as id",
        )  # fmt: skip
        self.table("sales", "empty_keys", storage(f"{root}/empty_keys", ("id", "int")), columns(("ds", "string")))

    def constraints(self) -> None:
        where = {"table_db": "sales", "catName": "hive"}
        on = {"enable_cstr": False, "validate_cstr": False, "rely_cstr": True}
        key = idl.SQLPrimaryKey(table_name="bucketed", column_name="id", key_seq=1, pk_name="pk1", **where, **on)
        self.client.add_primary_key(idl.AddPrimaryKeyRequest([key]))
        foreign = idl.SQLForeignKey(
            pktable_db="sales", pktable_name="bucketed", pkcolumn_name="id", fktable_db="sales", fktable_name="orders", fkcolumn_name="id",
            key_seq=1, update_rule=0, delete_rule=0, fk_name="fk1", pk_name="pk1", catName="hive", **on,
        )  # fmt: skip
        self.client.add_foreign_key(idl.AddForeignKeyRequest([foreign]))
        unique = [
            idl.SQLUniqueConstraint(table_name="bucketed", column_name=name, key_seq=number, uk_name="uk1", **where, **on)
            for number, name in enumerate(("name", "id"), 1)
        ]
        self.client.add_unique_constraint(idl.AddUniqueConstraintRequest(unique))
        self.client.add_not_null_constraint(
            idl.AddNotNullConstraintRequest([idl.SQLNotNullConstraint(table_name="orders", column_name="id", nn_name="nn1", **where, **on)])
        )
        self.client.add_default_constraint(
            idl.AddDefaultConstraintRequest(
                [idl.SQLDefaultConstraint(table_name="orders", column_name="name", default_value="'x'", dc_name="dc1", **where, **on)]
            )
        )
        self.client.add_check_constraint(
            idl.AddCheckConstraintRequest(
                [idl.SQLCheckConstraint(table_name="orders", column_name="id", check_expression="id > 0", dc_name="ck1", **where, **on)]
            )
        )

    def statistics(self) -> None:
        def data(**one: Any) -> Any:
            return idl.ColumnStatisticsData(**one)

        each = [
            ("id", "int", data(longStats=idl.LongColumnStatsData(lowValue=1, highValue=9, numNulls=0, numDVs=9, bitVectors=SKETCH))),
            (
                "name",
                "string",
                data(stringStats=idl.StringColumnStatsData(maxColLen=9, avgColLen=2.5, numNulls=1, numDVs=4, bitVectors=SKETCH)),
            ),
        ]
        objects = [idl.ColumnStatisticsObj(colName=name, colType=kind, statsData=found) for name, kind, found in each]
        described = idl.ColumnStatisticsDesc(
            isTblLevel=True, dbName="sales", tableName="bucketed", lastAnalyzed=1_700_000_000, catName="hive"
        )
        self.client.update_table_column_statistics(idl.ColumnStatistics(described, objects, engine="hive"))
        described = idl.ColumnStatisticsDesc(
            isTblLevel=False, dbName="sales", tableName="orders", partName="ds=2026-01-01/hr=1", lastAnalyzed=1_700_000_000, catName="hive"
        )
        self.client.update_partition_column_statistics(idl.ColumnStatistics(described, objects, engine="hive"))
        kinds = {
            "b": ("boolean", data(booleanStats=idl.BooleanColumnStatsData(numTrues=1, numFalses=2, numNulls=3))),
            "d": ("double", data(doubleStats=idl.DoubleColumnStatsData(lowValue=-1.5, highValue=2.25, numNulls=0, numDVs=2))),
            "x": ("binary", data(binaryStats=idl.BinaryColumnStatsData(maxColLen=3, avgColLen=1.0, numNulls=0))),
            "m": ("decimal(10,2)", data(decimalStats=idl.DecimalColumnStatsData(
                lowValue=idl.Decimal(scale=2, unscaled=b"\x01\x00"), highValue=idl.Decimal(scale=2, unscaled=b"\x7f\xff"),
                numNulls=0, numDVs=2))),
            "t": ("date", data(dateStats=idl.DateColumnStatsData(lowValue=idl.Date(1), highValue=idl.Date(20000), numNulls=0, numDVs=2))),
            "n": ("int", data(longStats=idl.LongColumnStatsData(numNulls=5, numDVs=0))),
        }  # fmt: skip
        self.table("sales", "kinds", storage(f"{self.root}/sales/kinds", *((name, kind) for name, (kind, _) in kinds.items())))
        described = idl.ColumnStatisticsDesc(isTblLevel=True, dbName="sales", tableName="kinds", lastAnalyzed=1_700_000_000, catName="hive")
        objects = [idl.ColumnStatisticsObj(colName=name, colType=kind, statsData=found) for name, (kind, found) in kinds.items()]
        self.client.update_table_column_statistics(idl.ColumnStatistics(described, objects, engine="hive"))

    def functions(self) -> None:
        self.client.create_function(
            idl.Function(
                functionName="f", dbName="sales", className="org.F", ownerName="ann", ownerType=1, functionType=1, catName="hive",
                resourceUris=[idl.ResourceUri(1, "hdfs://x/f.jar"), idl.ResourceUri(2, "hdfs://x/f.txt")],
            )
        )  # fmt: skip

    def grants(self) -> None:
        for role in ("team", "lead"):
            self.client.create_role(idl.Role(roleName=role, ownerName="admin"))
        for name, kind, role in (("bob", 1, "team"), ("team", 2, "lead")):
            self.client.grant_revoke_role(
                idl.GrantRevokeRoleRequest(
                    requestType=1, roleName=role, principalName=name, principalType=kind, grantor="admin", grantorType=1, grantOption=True
                )
            )
        for ref in (
            idl.HiveObjectRef(objectType=idl.HiveObjectType.GLOBAL),
            idl.HiveObjectRef(objectType=idl.HiveObjectType.DATABASE, dbName="sales", catName="hive"),
            idl.HiveObjectRef(objectType=idl.HiveObjectType.TABLE, dbName="sales", objectName="orders", catName="hive"),
            idl.HiveObjectRef(objectType=idl.HiveObjectType.COLUMN, dbName="sales", objectName="orders", columnName="id", catName="hive"),
            idl.HiveObjectRef(
                objectType=idl.HiveObjectType.PARTITION, dbName="sales", objectName="orders", partValues=["2026-01-01", "1"], catName="hive"
            ),
            idl.HiveObjectRef(
                objectType=idl.HiveObjectType.COLUMN, dbName="sales", objectName="orders", partValues=["2026-01-01", "1"], columnName="id",
                catName="hive",
            ),
        ):  # fmt: skip
            self.grant(ref)

    def grant(self, ref: Any) -> None:
        granted = idl.PrivilegeGrantInfo(privilege="SELECT", createTime=1_700_000_000, grantor="ann", grantorType=1, grantOption=True)
        privilege = idl.HiveObjectPrivilege(hiveObject=ref, principalName="bob", principalType=1, grantInfo=granted, authorizer="SQL")
        self.client.grant_privileges(idl.PrivilegeBag([privilege]))

    def registry(self) -> None:
        self.client.create_ischema(
            idl.ISchema(
                schemaType=2, name="s1", catName="hive", dbName="sales", compatibility=2, validationLevel=1, canEvolve=True, description="d"
            )
        )
        self.client.add_schema_version(
            idl.SchemaVersion(
                schema=idl.ISchemaName("hive", "sales", "s1"), version=1, createdAt=1_700_000_000, cols=columns(("a", "int")), state=2,
                schemaText="{}", fingerprint="f", name="v1", serDe=idl.SerDeInfo(name="sd1", serializationLib="lib", parameters={"k": "v"}),
            )
        )  # fmt: skip

    def plans(self) -> None:
        self.client.create_resource_plan(idl.WMCreateResourcePlanRequest(idl.WMResourcePlan(name="plan", queryParallelism=4, ns="default")))
        self.client.create_wm_pool(idl.WMCreatePoolRequest(idl.WMPool("plan", "etl", 0.5, 2, "fair", "default")))
        self.client.create_wm_trigger(idl.WMCreateTriggerRequest(idl.WMTrigger("plan", "big", "BYTES_READ > 1", "KILL", False, "default")))
        self.client.create_or_drop_wm_trigger_to_pool_mapping(
            idl.WMCreateOrDropTriggerToPoolMappingRequest("plan", "big", "etl", False, "default")
        )
        self.client.create_or_update_wm_mapping(
            idl.WMCreateOrUpdateMappingRequest(idl.WMMapping("plan", "USER", "ann", "etl", 1, "default"), False)
        )

    def engines(self) -> None:
        with if_known():
            query = idl.ScheduledQuery(
                scheduleKey=idl.ScheduledQueryKey("nightly", "c1"), enabled=True, schedule="0 0 0 * * ? *", user="ann", query="select 1"
            )
            self.client.scheduled_query_maintenance(idl.ScheduledQueryMaintenanceRequest(1, query))
        with if_known():
            self.client.create_stored_procedure(
                idl.StoredProcedure(name="p1", dbName="sales", catName="hive", ownerName="ann", source="create procedure p1() begin end")
            )
            self.client.add_package(idl.AddPackageRequest("hive", "sales", "pk1", "ann", "header", "body"))
        with if_known():
            connector = idl.DataConnector(
                name="pg", type="postgres", url="jdbc:postgresql://x", description="d", parameters={"a": "b"}, ownerName="ann", ownerType=1
            )
            self.client.create_dataconnector_req(idl.CreateDataConnectorRequest(connector))
            self.grant(idl.HiveObjectRef(objectType=idl.HiveObjectType.DATACONNECTOR, objectName="pg"))

    def transactions(self) -> None:
        """Make a transactional table with a committed, an aborted and an open transaction."""
        self.table("sales", "acid", storage(None, ("id", "int")), kind="MANAGED_TABLE", parameters=TRANSACTIONAL)
        opened = self.client.open_txns(idl.OpenTxnRequest(4, "ann", "host1", "agent")).txn_ids
        self.client.allocate_table_write_ids(idl.AllocateTableWriteIdsRequest(dbName="sales", tableName="acid", txnIds=opened[:3]))
        for transaction in opened[:3]:
            component = idl.LockComponent(
                type=idl.LockType.SHARED_WRITE, level=idl.LockLevel.TABLE, dbname="sales", tablename="acid",
                operationType=idl.DataOperationType.INSERT, isTransactional=True,
            )  # fmt: skip
            self.client.lock(idl.LockRequest(component=[component], txnid=transaction, user="ann", hostname="host1", agentInfo="agent"))
        self.client.commit_txn(idl.CommitTxnRequest(txnid=opened[0]))
        self.client.abort_txn(idl.AbortTxnRequest(txnid=opened[1]))
        self.client.compact2(
            idl.CompactionRequest(dbname="sales", tablename="acid", type=idl.CompactionType.MAJOR, runas="ann", properties={"a": "b"})
        )

    def everything(self, leaving_out: tuple[str, ...] = ()) -> None:
        steps: list[Callable[[], None]] = [
            self.catalog, self.databases, self.tables, self.constraints, self.statistics, self.functions, self.grants, self.registry,
            self.plans, self.engines, self.transactions,
        ]  # fmt: skip
        for step in steps:
            if step.__name__ not in leaving_out:
                step()
