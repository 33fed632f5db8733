"""Count by method how often two metastores agree, and write down their differences. Safe for threads."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import IO, Any

from metastore.shadow.comparing import Difference

SAME, DIFFERENT, UNANSWERED, UNKNOWN, UNREAD, DROPPED = "same", "different", "unanswered", "unknown", "unread", "dropped"
OUTCOMES = (SAME, DIFFERENT, UNANSWERED, UNKNOWN, UNREAD, DROPPED)
"""The outcomes of a call, in this order: the replies are the same; they differ; the secondary gave no answer; the primary has no such
method, so that the secondary was not asked; a reply could not be read; there was no room to wait for the secondary."""


class Agreement:
    """The counts since the beginning."""

    def __init__(self, log: IO[str] | None, to_json: Callable[[Any], Any]) -> None:
        """`log` gets a line of JSON for each difference; `to_json` turns Thrift's values into plain ones."""
        self._log = log
        self._to_json = to_json
        self._lock = threading.Lock()
        self._counts: dict[str, Counter[str]] = {}

    def count(self, method: str, outcome: str) -> None:
        """Count a call."""
        with self._lock:
            self._counts.setdefault(method, Counter())[outcome] += 1

    def set_dropped(self, dropped: Mapping[str, int]) -> None:
        """Set the numbers of calls, by method, that were not compared for want of room."""
        with self._lock:
            for method, number in dropped.items():
                self._counts.setdefault(method, Counter())[DROPPED] = number

    def differ(self, method: str, user: str | None, arguments: Any, found: Sequence[Difference]) -> None:
        """Count a call whose replies differ, and write down the differences."""
        self.count(method, DIFFERENT)
        if self._log is None:
            return
        common = {"time": round(time.time(), 3), "method": method, "user": user, "arguments": self._to_json(arguments)}
        lines = [
            json.dumps(
                {**common, "path": each.path, "primary": self._to_json(each.primary), "secondary": self._to_json(each.secondary)},
                ensure_ascii=False,
            )
            for each in found
        ]
        with self._lock:
            self._log.write("".join(f"{line}\n" for line in lines))
            self._log.flush()

    def counts(self) -> dict[str, dict[str, int]]:
        """Return the numbers by method and outcome; outcomes without calls are left out."""
        with self._lock:
            return {method: {name: found[name] for name in OUTCOMES if found[name]} for method, found in sorted(self._counts.items())}
