"""Keep slow calls, with the parts of their time, in memory that the worker processes share.

It never keeps a secret: arguments are shortened, and those whose names or methods suggest secrets are left out.
"""

from __future__ import annotations

import itertools
import re
import threading
from collections.abc import Mapping
from typing import Any

from thriftpy2.thrift import TPayload

from metastore.config import names_secret
from metastore.service.operations.watched import SlowCall
from metastore.telemetry.records import Records

KEPT = 200
"""The number of slow calls that are kept of each worker process: the newest."""
_SIZE = 8000
_MOST = 1200
"""Characters of the arguments."""
_LONGEST = 100
"""The largest length of one text in the arguments, in characters."""
_IN_URL = re.compile(r"://(?:[^/\s]*|[^:/@\s]*:\S*)@")
"""A user and password, which some clients write into a location; the password may hold @ and /."""
_DEPTH = 4
_ITEMS = 5


class SlowCalls:
    """The slow calls of some worker processes; `threshold` is in seconds, 0 keeps none."""

    def __init__(self, parts: int = 1, threshold: float = 0.0) -> None:
        self.threshold = threshold or float("inf")
        self._records = Records(parts, KEPT, _SIZE)
        self.take(0)

    def take(self, part: int) -> None:
        """Keep calls in a part from now on: at the beginning of a worker process. Its old calls stay until they are overwritten."""
        self._records.take(part)
        self._lock = threading.Lock()
        self._places = itertools.cycle(range(KEPT))

    def add(self, call: SlowCall) -> None:
        """Keep a call in place of the oldest one."""
        with self._lock:
            self._records.write(next(self._places), call)

    def all(self) -> list[SlowCall]:
        """Return the calls that are kept, the newest first."""
        found = [SlowCall(**values) for values in self._records.read() if values]
        return sorted(found, key=lambda each: each.began, reverse=True)


def elements(value: Any) -> int:
    """Return the number of elements of a method's value: of its list or map, or of the longest one in a struct."""
    if isinstance(value, list | set | tuple | Mapping):
        return len(value)
    if isinstance(value, TPayload):
        return max((len(each) for each in vars(value).values() if isinstance(each, list | set | Mapping)), default=1)
    return int(value is not None)


def shortened(method: str, args: Any) -> str:
    """Return arguments as text: `name=value, ...`, without secrets, with long values cut, and the first elements of lists and maps only."""
    if args is None or names_secret(method) or names_secret(str(getattr(args, "key", ""))):
        return ""
    text = ", ".join(f"{name}={_shown(each, _DEPTH)}" for name, each in vars(args).items() if each is not None and not names_secret(name))
    return text if len(text) <= _MOST else f"{text[:_MOST]}..."


def _shown(value: Any, depth: int) -> str:
    if isinstance(value, str):
        value = _IN_URL.sub("://***@", value)
        return repr(value if len(value) <= _LONGEST else f"{value[:_LONGEST]}...")
    if isinstance(value, bytes):
        return f"<{len(value)} bytes>"
    if isinstance(value, TPayload):
        fields = [(name, each) for name, each in vars(value).items() if each is not None]
        return _joined("{}", fields, len(fields), depth)
    if isinstance(value, Mapping):
        return _joined("{}", list(itertools.islice(value.items(), _ITEMS)), len(value), depth)
    if isinstance(value, list | set | tuple):
        return _joined("[]", [("", each) for each in itertools.islice(value, _ITEMS)], len(value), depth)
    return str(value)


def _joined(brackets: str, items: list[tuple[Any, Any]], number: int, depth: int) -> str:
    if not depth:
        return f"{brackets[0]}...{brackets[1]}"
    shown = [_named(str(name), each, depth - 1) for name, each in items]
    if number > len(shown):
        shown.append(f"... {number} in all")
    return f"{brackets[0]}{', '.join(shown)}{brackets[1]}"


def _named(name: str, value: Any, depth: int) -> str:
    if names_secret(name):
        return f"{name[:_LONGEST]}=***"
    return f"{name[:_LONGEST]}={_shown(value, depth)}" if name else _shown(value, depth)
