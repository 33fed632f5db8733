"""Make and move directories for one call and take exactly that back when it fails. Never removes a directory that existed before."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from types import TracebackType

import structlog

from metastore.errors import MetastoreError
from metastore.warehouse.directories import ParentMissing, Warehouse
from metastore.warehouse.journal import Journal, Subject
from metastore.warehouse.locations import same_place
from metastore.warehouse.reach import Reach

log = structlog.get_logger()
NONE: list[str] = []

ATTEMPTS = 100
"""The most attempts to make directories: another call that is undone may remove a parent meanwhile."""


def _parent(place: str) -> str:
    return place.rstrip("/").rpartition("/")[0]


class MadeDirectories:
    """A context that, when it is left with an error, removes the empty directories made in it, and moves the moved ones back."""

    def __init__(self, warehouse: Warehouse, journal: Journal | None, subject: Subject) -> None:
        self._warehouse = warehouse
        self._journal = journal
        self.subject = subject
        self._entries: list[int] = []
        self._made: list[str] = []
        self._moved: list[tuple[str, str]] = []
        self._keep_entries = False

    def __enter__(self) -> MadeDirectories:  # noqa: PYI034  # Self needs Python 3.11
        return self

    @property
    def made(self) -> list[str]:
        """The directories that were made and are not undone."""
        return list(self._made)

    @property
    def moved(self) -> list[tuple[str, str]]:
        """The moves, as (from, to), that are not undone."""
        return list(self._moved)

    def make(self, wanted: Sequence[str], reach: Reach | None = None) -> list[bool]:
        """Make each location with its parents where missing; return for each whether it had to be made.

        Raises MetaError when one can not be made; earlier ones stay until the context ends. Storage that `reach` need not reach is ignored.
        """
        reach = reach or Reach("", required=True)
        had_to_be_made = [False] * len(wanted)
        for attempt in range(ATTEMPTS):
            missing = self._missing(wanted, reach)
            had_to_be_made = [before or bool(steps) for before, steps in zip(had_to_be_made, missing, strict=True)]
            steps = list(dict.fromkeys(step for steps in missing for step in steps))
            if not steps:
                break
            self._note(steps, [])
            try:
                by_depth: dict[int, list[str]] = {}
                for step in steps:
                    by_depth.setdefault(step.count("/"), []).append(step)
                passed_over: list[str] = []
                for depth in sorted(by_depth):
                    level = [step for step in by_depth[depth] if not any(step.startswith(f"{above}/") for above in passed_over)]
                    there = self._warehouse.each(lambda step: reach.look(self._make, step, False), level, steps[0])
                    passed_over += [step for step, is_there in zip(level, there, strict=True) if not is_there]
                break
            except ParentMissing:
                if attempt == ATTEMPTS - 1:
                    raise
        return had_to_be_made

    def _missing(self, wanted: Sequence[str], reach: Reach) -> list[list[str]]:
        look = partial(self._warehouse.missing, present=set[str]())
        return self._warehouse.each(lambda place: reach.look(look, place, NONE), wanted, wanted[0]) if wanted else []

    def _make(self, step: str) -> bool:
        if self._warehouse.make(step):
            self._made.append(step)
        return True

    def move(self, moves: Sequence[tuple[str, str]]) -> None:
        """Move directories (from, to), the targets' parents being made where missing. MetaError when a target exists.

        Directories that moved before a failure stay at their targets until the context ends.
        """
        parents = {_parent(target): _parent(source) for source, target in moves}
        self.make([parent for parent, before in parents.items() if not same_place(parent, before)])
        self._note([], list(moves))
        errors = self._warehouse.each(self._move, moves, moves[0][0]) if moves else []
        for error in errors:
            if error is not None:
                raise error

    def _move(self, move: tuple[str, str]) -> MetastoreError | None:
        try:
            self._warehouse.rename(*move)
        except MetastoreError as error:
            return error
        self._moved.append(move)
        return None

    def _note(self, directories: list[str], moves: list[tuple[str, str]]) -> None:
        if self._journal is not None:
            self._entries.append(self._journal.begin(self.subject, directories, moves))

    def undo(self) -> None:
        """Move back moved directories and remove new ones, innermost first. Those that can not be undone now stay in the journal."""
        self.undo_moves()
        for step in sorted(self._made, key=len, reverse=True):
            if not self._warehouse.remove_if_empty(step):
                self._keep_entries = True
        self._made.clear()

    def undo_moves(self) -> None:
        """Move back moved directories. Those that can not be moved back now stay in the journal."""
        for source, target in reversed(self._moved):
            try:
                self._warehouse.rename(target, source)
            except MetastoreError:
                log.exception("directory of a failed call was not moved back; the next start tries again", source=source, target=target)
                self._keep_entries = True
        self._moved.clear()

    def leave(self, *, noted: bool) -> None:
        """Take nothing back at the end; with `noted` the journal keeps its entries for the next start."""
        self._made.clear()
        self._moved.clear()
        self._keep_entries = noted

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if error is not None:
            self.undo()
        if not self._keep_entries:
            for number in self._entries:
                assert self._journal is not None
                self._journal.end(number)
        self._entries.clear()
