"""Make directories for one call and take exactly those back when it fails. Never removes a directory that was there before."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType

from metastore.warehouse.directories import PARALLEL, Warehouse
from metastore.warehouse.journal import Journal
from metastore.warehouse.locations import parse


class MadeDirectories:
    """A context: directories made inside it are removed, empty as they are, when it is left with an error."""

    def __init__(self, warehouse: Warehouse, journal: Journal | None, subject: Sequence[str | list[str]]) -> None:
        self._warehouse = warehouse
        self._journal = journal
        self._subject = subject
        self._entries: list[int] = []
        self._made: list[str] = []

    def __enter__(self) -> MadeDirectories:
        return self

    def make(self, wanted: Sequence[str]) -> list[bool]:
        """Make each location with its parents where missing; return for each whether it had to be made.

        Raises MetaError when one can not be made; what was made before it stays until the context ends.
        """
        warehouse = self._warehouse
        missing = [warehouse.missing(location) for location in wanted]
        steps = list(dict.fromkeys(step for steps in missing for step in steps))
        if steps:
            if self._journal is not None:
                self._entries.append(self._journal.begin(self._subject, steps))
            if len(steps) < 4 or parse(steps[0]).protocol in ("file", "memory"):
                for step in steps:
                    self._make(step)
            else:
                by_depth: dict[int, list[str]] = {}
                for step in steps:
                    by_depth.setdefault(step.count("/"), []).append(step)
                with ThreadPoolExecutor(PARALLEL) as pool:
                    for depth in sorted(by_depth):
                        list(pool.map(self._make, by_depth[depth]))
        return [bool(steps) for steps in missing]

    def _make(self, step: str) -> None:
        if self._warehouse.make(step):
            self._made.append(step)

    def undo(self) -> None:
        """Remove what was made, innermost first."""
        for step in sorted(self._made, key=len, reverse=True):
            self._warehouse.remove_if_empty(step)
        self._made.clear()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if error is not None:
            self.undo()
        for number in self._entries:
            assert self._journal is not None
            self._journal.end(number)
        self._entries.clear()
