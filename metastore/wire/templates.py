"""Make structs that are alike but for some texts: one is decoded with marks in place of those, and copied with the texts of each.

Nobody outside can know the marks, and where one is not found just once, in a place for text, structs are not made this way.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from thriftpy2.thrift import TPayload

from metastore.wire.likeness import Runs

Make = Callable[[Sequence[str]], Any]
"""Makes a struct of texts, in the order in which they stand."""
Slots = list[tuple[Any, int]]
"""Where texts go, a field's name, a key or an index each, and their numbers."""


class Template(NamedTuple):
    """A struct that was decoded once, and what makes others like it: they share its parts, but for what holds texts of their own."""

    model: Any
    make: Make


def template(cls: type[TPayload], runs: Runs, decode: Callable[[type[TPayload], bytes], TPayload]) -> Template | None:
    """Return what makes the structs with these runs; None when that is not known. Whatever `decode` raises."""
    token = secrets.token_hex(8)
    marks = {f"{token} {number}": number for number in range(len(runs.before))}
    found = _Marks(marks)
    model = decode(cls, runs.with_texts([mark.encode() for mark in marks]))
    make = _struct(model, found, own=True)
    return Template(model, make) if sorted(found.seen) == list(marks.values()) else None


class _Marks:
    def __init__(self, numbers: dict[str, int]) -> None:
        self._numbers = numbers
        self.seen: list[int] = []

    def slots(self, items: Any) -> Slots:
        """Return which of the items (place, value) are marks."""
        slots = [(place, self._numbers[value]) for place, value in items if type(value) is str and value in self._numbers]
        self.seen += [number for _, number in slots]
        return slots


def _struct(model: TPayload, marks: _Marks, *, own: bool) -> Make:
    """Return what makes structs like the model; with `own` none of them shares a container or struct with another."""
    cls, fixed = type(model), model.__dict__
    new = cls.__new__
    texts = marks.slots(fixed.items())
    parts: list[tuple[str, Make]] = []
    for name, value in fixed.items():
        if isinstance(value, TPayload):
            before = len(marks.seen)
            make = _struct(value, marks, own=False)
        elif isinstance(value, (list, dict)):
            before = len(marks.seen)
            make = _container(value, marks.slots(enumerate(value) if isinstance(value, list) else value.items()))
        else:
            continue
        if own or len(marks.seen) > before:
            parts.append((name, make))

    def make_struct(given: Sequence[str]) -> TPayload:
        fields = fixed.copy()
        for name, number in texts:
            fields[name] = given[number]
        for name, part in parts:
            fields[name] = part(given)
        struct = new(cls)
        struct.__dict__ = fields
        return struct

    return make_struct


def _container(model: Any, slots: Slots) -> Make:
    def make(given: Sequence[str]) -> Any:
        copied = model.copy()
        for place, number in slots:
            copied[place] = given[number]
        return copied

    return make
