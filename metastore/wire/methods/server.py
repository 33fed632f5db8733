"""Methods about the server itself: identity of the client, settings, caches."""

from __future__ import annotations

from typing import Any

from metastore.service import server
from metastore.service.context import Call
from metastore.wire.methods.table import Handler


def _set_ugi(call: Call, args: Any) -> list[str]:
    call.client.user = args.user_name
    call.client.groups = list(args.group_names or [])
    return [*call.client.groups, args.user_name] if args.user_name is not None else list(call.client.groups)


def _nothing(call: Call, args: Any) -> None:
    return None


METHODS: dict[str, Handler] = {
    "set_ugi": _set_ugi,
    "get_config_value": lambda call, args: server.get_config_value(call, args.name, args.defaultValue),
    "getMetaConf": lambda call, args: server.get_meta_conf(call, args.key),
    "setMetaConf": lambda call, args: server.set_meta_conf(call, args.key, args.value),
    "get_metastore_db_uuid": lambda call, args: server.database_uuid(call),
    "flushCache": _nothing,
}
