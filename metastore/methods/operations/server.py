"""Methods about the server itself: identity of the client, settings, caches."""

from __future__ import annotations

from typing import Any

from metastore.methods.forms.entry import Shadowed, reads
from metastore.methods.forms.rules import OPEN
from metastore.service.accounts import logins
from metastore.service.call.context import Call
from metastore.service.operations import server


def _nothing(call: Call, args: Any) -> None:
    return None


METHODS = (
    reads("set_ugi", lambda call, args: logins.set_ugi(call, args.user_name, args.group_names), OPEN),
    reads("get_config_value", lambda call, args: server.get_config_value(call, args.name, args.defaultValue), OPEN),
    reads("getMetaConf", lambda call, args: server.get_meta_conf(call, args.key), OPEN),
    reads("setMetaConf", lambda call, args: server.set_meta_conf(call, args.key, args.value), OPEN, shadowed=Shadowed.AFTER_CHANGES),
    reads("get_metastore_db_uuid", lambda call, args: server.database_uuid(call), OPEN, shadowed=Shadowed.NEVER),
    reads("flushCache", _nothing, OPEN, shadowed=Shadowed.NEVER),
)
