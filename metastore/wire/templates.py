"""Make structs that are alike but for texts and numbers: one is decoded with marks in place of those, and copied with what each has there.

Nobody outside can know the marks, and where one is not found just once, in a place for such a value, structs are not made this way.
"""

from __future__ import annotations

import secrets
import struct
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from thriftpy2.thrift import TPayload

from metastore.idl import StorageDescriptor
from metastore.wire.likeness import Runs

Make = Callable[[Sequence[Any]], Any]
"""Makes a struct of texts and numbers, in the order in which they stand."""
Items = Iterable[tuple[Any, Any]]
"""A field's name, an index or a key each, and the value there."""
Reader = Callable[[bytes], Any]
DOUBLE = struct.Struct("!d")


class Template(NamedTuple):
    """A struct that was decoded once, and what makes others like it: they share its parts, but for what holds values of their own."""

    model: Any
    make: Make
    readers: list[Reader]
    """What turns the bytes of each text or number into the value."""

    def made(self, values: Sequence[bytes]) -> Any:
        """Return the struct with these texts and numbers. UnicodeDecodeError."""
        return self.make([read(value) for read, value in zip(self.readers, values, strict=True)])


def template(cls: type[TPayload], runs: Runs, decode: Callable[[type[TPayload], bytes], TPayload]) -> Template | None:
    """Return what makes the structs with these runs; None when that is not known. Whatever `decode` raises."""
    marks = [_mark(width) for width in runs.widths]
    found = _Found(marks)
    model = decode(cls, runs.filled(marks))
    found.pass_over = frozenset(name for _, piece in runs.pieces for name in piece.fields)
    make = _struct(model, found, own=True)
    readers = [found.readers.get(number) for number in range(len(marks))]
    known = [reader for reader in readers if reader is not None]
    return Template(model, make, known) if len(known) == len(marks) == found.count else None


def _mark(width: int) -> bytes:
    """Return a text, or a number of so many bytes that is above 0 and, as a double, finite."""
    if not width:
        return secrets.token_hex(12).encode()
    return b"\x3f" + secrets.token_bytes(width - 1)


def _integer(raw: bytes) -> int:
    return int.from_bytes(raw, "big", signed=True)


def _double(raw: bytes) -> Any:
    return DOUBLE.unpack(raw)[0]


class _Found:
    """Where marks were met in a struct."""

    def __init__(self, marks: Sequence[bytes]) -> None:
        self.count = 0
        self.pass_over: frozenset[str] = frozenset()
        """Fields of storage descriptors that hold none."""
        self.readers: dict[int, Reader] = {}
        self._readings: dict[tuple[type[Any], Any], tuple[int, Reader]] = {}
        for number, mark in enumerate(marks):
            self._readings[bytes, mark] = number, bytes
            if len(mark) > DOUBLE.size:
                self._readings[str, mark.decode()] = number, bytes.decode
            else:
                self._readings[int, _integer(mark)] = number, _integer
            if len(mark) == DOUBLE.size:
                self._readings[float, _double(mark)] = number, _double

    def number(self, value: Any) -> int | None:
        """Return the number of the mark that a value is."""
        reading = self._readings.get((type(value), value)) if type(value) in (str, int, float, bytes) else None
        if reading is None:
            return None
        self.count += 1
        self.readers[reading[0]] = reading[1]
        return reading[0]


def _struct(model: TPayload, found: _Found, *, own: bool) -> Make:
    """Return what makes structs like the model; with `own` none of them shares a container or struct with another."""
    cls, fields = type(model), model.__dict__
    new = cls.__new__
    items = fields.items() if cls is not StorageDescriptor else [item for item in fields.items() if item[0] not in found.pass_over]
    make_fields = _container(fields, items, found, own=own)

    def make(given: Sequence[Any]) -> TPayload:
        struct = new(cls)
        struct.__dict__ = make_fields(given)
        return struct

    return make


def _container(model: Any, items: Items, found: _Found, *, own: bool = False) -> Make:
    """Return what makes lists or maps like the model, which has these items beside others without marks; `own` as for structs."""
    values, parts = _slots(items, found, own=own)

    def make(given: Sequence[Any]) -> Any:
        copied = model.copy()
        for place, number in values:
            copied[place] = given[number]
        for place, part in parts:
            copied[place] = part(given)
        return copied

    return make


def _slots(items: Items, found: _Found, *, own: bool) -> tuple[list[tuple[Any, int]], list[tuple[Any, Make]]]:
    """Return where marks stand among items, and what makes those that hold marks, or with `own` all that hold anything."""
    values: list[tuple[Any, int]] = []
    parts: list[tuple[Any, Make]] = []
    for place, value in items:
        before = found.count
        if isinstance(value, TPayload):
            make = _struct(value, found, own=False)
        elif isinstance(value, (list, dict)):
            make = _container(value, enumerate(value) if isinstance(value, list) else value.items(), found)
        else:
            number = found.number(value)
            if number is not None:
                values.append((place, number))
            continue
        if own or found.count > before:
            parts.append((place, make))
    return values, parts
