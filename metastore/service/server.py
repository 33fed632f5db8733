"""What clients ask of the server itself: settings, its database's identity, events about their own writes."""

from __future__ import annotations

import re

from metastore.errors import ConfigValueSecurity, MetaError
from metastore.idl import FireEventRequest, InsertEventRequestData
from metastore.listeners.events import Insert
from metastore.service.change import change
from metastore.service.context import Call
from metastore.service.names import TableName
from metastore.service.tables import find_table
from metastore.store import catalogs

READABLE = re.compile(r"(hive|hdfs|mapred|metastore)\..*")


def get_config_value(call: Call, name: str | None, default: str | None) -> str | None:
    """Return a setting by Hive's name or the default. ConfigValueSecurity for other names and for passwords."""
    if name is None:
        return default
    if not READABLE.fullmatch(name) or "password" in name.lower():
        raise ConfigValueSecurity(f"For security reasons, the config key {name} cannot be accessed")
    return call.config.hive_value(name, default)


def get_meta_conf(call: Call, key: str | None) -> str | None:
    """Return a setting that Hive lets clients see through getMetaConf. MetaError for an unknown one."""
    value = call.config.hive_value(key or "", None)
    if value is None:
        raise MetaError(f"Invalid configuration key {key}")
    return value


def database_uuid(call: Call) -> str:
    """Return the database's own UUID, made on the first call."""
    return call.database.write(catalogs.server_uuid)


def fire_listener_event(call: Call, name: TableName, request: FireEventRequest) -> None:
    """Tell listeners that a client wrote files into a table or partition. NoSuchObject, MetaError."""
    data = request.data
    inserts: list[tuple[list[str], InsertEventRequestData]] = []
    if data is not None and data.insertData is not None:
        inserts.append((request.partitionVals or [], data.insertData))
    elif data is not None and data.insertDatas is not None:
        inserts.extend((each.partitionVal or [], each) for each in data.insertDatas)
    elif data is None or not data.refreshEvent:
        raise MetaError(f"event for {name} holds neither insertData nor insertDatas nor refreshEvent")
    table = find_table(call, name)
    for values, each in inserts:
        with change(call, Insert(client=call.info, table=table, partition_values=values, data=each)) as current:
            if call.listeners.transactional:
                current.write(lambda session: None)
