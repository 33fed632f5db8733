"""Clients' questions about the server itself: settings, its database's identity."""

from __future__ import annotations

import re

from metastore.config import ConfigError, changed, without_passwords
from metastore.errors import ConfigValueSecurity, MetaError
from metastore.rules.patterns import compile_expression
from metastore.service.call.context import Call
from metastore.store.catalog import catalogs

ITS_OWN = frozenset(
    {
        "hive.metastore.partition.name.whitelist.pattern",
        "hive.metastore.client.capability.check",
        "hive.metastore.expression.proxy",
        "hive.metastore.disallow.incompatible.col.type.changes",
    }
)
"""Settings that a connection may have of its own; with `WITHOUT_EFFECT` they are Hive's MetastoreConf.metaConfVars."""
WITHOUT_EFFECT = {
    "hive.metastore.try.direct.sql": "true",
    "hive.metastore.try.direct.sql.ddl": "true",
    "hive.metastore.client.socket.timeout": "600s",
    "hive.metastore.partition.order.expr": '"PART_NAME" asc',
}
"""The settings of a connection that only Java's server heeds, with their defaults: they can be set and read."""
READABLE = re.compile(r"(hive|hdfs|mapred|metastore).*")


def get_config_value(call: Call, name: str | None, default: str | None) -> str | None:
    """Return a setting by Hive's name or the default. ConfigValueSecurity for other names and for secrets such as passwords and keys."""
    if name is None:
        return default
    if not READABLE.fullmatch(name) or call.config.is_secret(name):
        raise ConfigValueSecurity(f"For security reasons, the config key {name} cannot be accessed")
    value = call.config.hive_value(name)
    return default if value is None else without_passwords(value)


def get_meta_conf(call: Call, key: str | None) -> str | None:
    """Return one of the settings that a connection can set. MetaError for another key: a Hive configuration has credentials too."""
    name = _settable(key)
    return call.config.hive_value(name, WITHOUT_EFFECT.get(name))


def set_meta_conf(call: Call, key: str | None, value: str | None) -> None:
    """Change a setting for the calls of this connection, as long as it lasts. MetaError for a key that Hive does not let clients set."""
    name = _settable(key)
    if value is None:
        raise MetaError(f"Invalid configuration value null for key {key}")
    try:
        if name.endswith(".whitelist.pattern"):
            compile_expression(value)
        call.client.config = changed(changed(call.config, name, value, call.method), name.removeprefix("hive."), value, call.method)
    except (ConfigError, MetaError) as error:
        raise MetaError(f"Invalid configuration value {value} for key {key}: {error}") from error


def _settable(key: str | None) -> str:
    """Return the name, beginning with `hive.`, of a setting that a connection can see and set. MetaError for another key."""
    name = key if key and key.startswith("hive.") else f"hive.{key}"
    if name not in ITS_OWN and name not in WITHOUT_EFFECT:
        raise MetaError(f"Invalid configuration key {key}: a connection can set {', '.join(sorted([*ITS_OWN, *WITHOUT_EFFECT]))}")
    return name


def database_uuid(call: Call) -> str:
    """Return the database's own UUID, made on the first call."""
    return call.database.write(catalogs.server_uuid)
