"""What clients ask of the server itself: settings, its database's identity."""

from __future__ import annotations

import re

from metastore.errors import ConfigValueSecurity, MetaError
from metastore.service.context import Call
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
