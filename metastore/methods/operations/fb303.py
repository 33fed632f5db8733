"""Answer fb303, the base service that every Hive Metastore has: name, status, counters, options.

`shutdown` and `reinitialize` are accepted and do nothing: no client ends this server.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from metastore import idl
from metastore.methods.forms.entry import Method, changes, of_one_side, reads
from metastore.methods.forms.rules import ADMIN, OPEN
from metastore.service.call.context import Call

NAME = "new db based metaserver"
"""The name of Java's server."""
VERSION = "4.0.1"
"""The answer to getVersion. From 4.0 on Java's server answers its release; this is the release whose answers this server imitates."""
VERSION_TO_HIVE_3 = "3.0"
"""The answer to getVersion of Java's servers of every release before 4.0."""

_started = int(time.time())
_options: dict[str, str] = {}


def _nothing(_call: Call, _args: Any) -> None:
    return None


def _version(call: Call, _args: Any) -> str:
    return VERSION_TO_HIVE_3 if call.client.release.is_3 or call.client.release.is_2_3 else VERSION


def _set_option(_call: Call, args: Any) -> None:
    _options[args.key] = args.value


def counting(calls: Callable[[], Mapping[str, int]]) -> tuple[Method, ...]:
    """Return the methods that answer the number of calls of each method since the server began, as in Java; `calls` returns these."""
    return (
        reads("getCounter", lambda _call, args: calls().get(args.key, 0), OPEN),
        reads("getCounters", lambda _call, _args: dict(calls()), OPEN),
    )


METHODS = of_one_side(
    reads("aliveSince", lambda _call, _args: _started, OPEN),
    *counting(dict),  # the dispatcher replaces them with its own counts
    reads("getCpuProfile", lambda _call, _args: "", OPEN),
    reads("getName", lambda _call, _args: NAME, OPEN),
    reads("getOption", lambda _call, args: _options.get(args.key), OPEN),
    reads("getOptions", lambda _call, _args: dict(_options), OPEN),
    reads("getStatus", lambda _call, _args: idl.fb303.fb_status.ALIVE, OPEN),
    reads("getStatusDetails", lambda _call, _args: "", OPEN),
    reads("getVersion", _version, OPEN),
    reads("reinitialize", _nothing, OPEN),
    changes("setOption", _set_option, ADMIN),
    reads("shutdown", _nothing, OPEN),
)
