"""Turn the bodies of records into structs of the Thrift interface."""

from __future__ import annotations

from binascii import a2b_base64
from collections.abc import Sequence
from typing import Any

import orjson

from metastore import idl
from metastore.binary import from_bytes
from metastore.store.catalog import descriptors
from metastore.store.catalog.tables import view_sources
from metastore.transfer.records import Key


def columns(content: Any) -> list[Any]:
    """Return the columns of a column list."""
    return [idl.FieldSchema(*each) for each in content or ()]


def storage(content: Any, location: str | None, column_list: Any) -> Any:
    """Return a storage descriptor."""
    sd = descriptors.StorageFormat(orjson.dumps(content).decode()).at(location, idl_columns(column_list))
    sd.serdeInfo.serdeType = sd.serdeInfo.serdeType or None
    return sd


def idl_columns(content: Any) -> Any:
    """Return the columns of a column list, None for none."""
    return None if content is None else columns(content)


def database(key: Key, body: dict[str, Any]) -> Any:
    """Return a database."""
    return idl.Database(
        name=key[1], catalogName=key[0], description=body["description"], locationUri=body["location"],
        managedLocationUri=body["managed_location"], parameters=body["parameters"], ownerName=body["owner_name"],
        ownerType=body["owner_type"], createTime=body["create_time"], type=body["type"], connector_name=body["connector_name"],
        remote_dbname=body["remote_name"],
    )  # fmt: skip


def table(key: Key, body: dict[str, Any]) -> Any:
    """Return a table."""
    creation = body["creation_metadata"]
    return idl.Table(
        catName=key[0], dbName=key[1], tableName=key[2], owner=body["owner"], ownerType=body["owner_type"], createTime=body["create_time"],
        lastAccessTime=body["last_access_time"], retention=body["retention"], tableType=body["type"],
        sd=None if body["storage"] is None else storage(body["storage"], body["location"], body["columns"]),
        partitionKeys=columns(body["partition_keys"]), parameters=body["parameters"], viewOriginalText=body["view_original_text"],
        viewExpandedText=body["view_expanded_text"], rewriteEnabled=bool(body["rewrite_enabled"]),
        creationMetadata=None if creation is None else view_sources.decode(orjson.dumps(creation).decode()),
    )  # fmt: skip


def partition(key: Key, body: dict[str, Any], contents: dict[str | None, Any]) -> Any:
    """Return a partition; `contents` are the column lists and storage formats of its table by their hashes."""
    sd = None if body["storage"] is None else storage(contents[body["storage"]], body["location"], contents[body["columns"]])
    return idl.Partition(
        values=body["values"], catName=key[0], dbName=key[1], tableName=key[2], createTime=body["create_time"],
        lastAccessTime=body["last_access_time"], parameters=body["parameters"], sd=sd,
    )  # fmt: skip


def statistics(key: Key, found: dict[str, list[Any]], partition_name: str | None, engine: str) -> Any:
    """Return the statistics of a table's columns, or of a partition's, by one engine."""
    described = idl.ColumnStatisticsDesc(
        isTblLevel=partition_name is None, catName=key[0], dbName=key[1], tableName=key[2], partName=partition_name,
        lastAnalyzed=max((each[1] for each in found.values()), default=0),
    )  # fmt: skip
    objects = [
        idl.ColumnStatisticsObj(colName=name, colType=kind, statsData=from_bytes(idl.ColumnStatisticsData, a2b_base64(raw)))
        for name, (kind, _, raw) in found.items()
    ]
    return idl.ColumnStatistics(statsDesc=described, statsObj=objects, engine=engine)


def constraint(key: Key, body: dict[str, Any]) -> Sequence[Any]:
    """Return a constraint, a struct for each column."""
    own, kind = body["body"], body["kind"]
    flags = {"enable_cstr": own["enable"], "validate_cstr": own["validate"], "rely_cstr": own["rely"], "catName": key[0]}
    where = {"table_db": key[1], "table_name": key[2], **flags}
    numbered = list(enumerate(own["columns"], 1))
    if kind == "primary":
        return [idl.SQLPrimaryKey(column_name=name, key_seq=number, pk_name=key[3], **where) for number, name in numbered]
    if kind == "unique":
        return [idl.SQLUniqueConstraint(column_name=name, key_seq=number, uk_name=key[3], **where) for number, name in numbered]
    if kind == "notnull":
        return [idl.SQLNotNullConstraint(column_name=name, nn_name=key[3], **where) for _, name in numbered]
    if kind == "default":
        return [idl.SQLDefaultConstraint(column_name=name, default_value=own["value"], dc_name=key[3], **where) for _, name in numbered]
    if kind == "check":
        return [idl.SQLCheckConstraint(column_name=name, check_expression=own["value"], dc_name=key[3], **where) for _, name in numbered]
    _, parent_database, parent_table = body["parent_table"]
    return [
        idl.SQLForeignKey(
            pktable_db=parent_database, pktable_name=parent_table, pkcolumn_name=parent, fktable_db=key[1], fktable_name=key[2],
            fkcolumn_name=name, key_seq=number, update_rule=own["update_rule"], delete_rule=own["delete_rule"], fk_name=key[3],
            pk_name=own["parent_key"], **flags,
        )
        for (number, name), parent in zip(numbered, own["parent_columns"], strict=True)
    ]  # fmt: skip


def privilege(key: Key, body: dict[str, Any], partition_values: list[str] | None) -> Any:
    """Return a privilege."""
    kind, catalog, database_name, table_name, _, column, principal_type, principal, granted, grantor_type, grantor, authorizer = key
    ref = idl.HiveObjectRef(
        objectType=kind,
        catName=catalog or "hive",
        dbName=database_name,
        objectName=table_name,
        partValues=partition_values,
        columnName=column,
    )
    info = idl.PrivilegeGrantInfo(
        privilege=granted, createTime=body["create_time"], grantor=grantor, grantorType=grantor_type, grantOption=bool(body["grant_option"])
    )
    return idl.HiveObjectPrivilege(
        hiveObject=ref, principalName=principal, principalType=principal_type, grantInfo=info, authorizer=authorizer
    )
