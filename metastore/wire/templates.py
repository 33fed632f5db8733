"""Make structs that are alike but for texts and numbers: one is decoded with marks in place of those, and copied with what each has there.

Nobody outside can know the marks, and where one is not found just once, in a place for such a value, structs are not made this way.
The copies are made by a function that is put together from the fields of the one: it names what a client sent, and holds none of it.
"""

from __future__ import annotations

import secrets
import struct
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from types import CodeType
from typing import Any, NamedTuple

from thriftpy2.thrift import TPayload

from metastore.idl import StorageDescriptor
from metastore.wire.likeness import Runs

MOST = 1000
"""Texts and numbers of a struct from which on none are made this way: the function takes long to compile."""
Items = Iterable[tuple[Any, Any]]
"""A field's name, an index or a key each, and the value there."""
DOUBLE = struct.Struct("!d")
INTEGERS = {layout.size: layout for layout in (struct.Struct("!i"), struct.Struct("!q"))}
"""By how many bytes they have."""


class Template(NamedTuple):
    """A struct that was decoded once, and what makes others like it: they share its parts, but for what holds values of their own."""

    runs: Runs
    model: Any
    make: Callable[[bytes, Sequence[int]], Any]
    """Makes the struct of a message whose runs begin at these places. UnicodeDecodeError."""


def template(cls: type[TPayload], runs: Runs, decode: Callable[[type[TPayload], bytes], TPayload]) -> Template | None:
    """Return what makes the structs with these runs; None when that is not known. Whatever `decode` raises."""
    if len(runs.widths) > MOST:
        return None
    marks = [_mark(width) for width in runs.widths]
    model = decode(cls, runs.filled(marks))
    source = _Source(marks, frozenset(name for _, piece in runs.pieces for name in piece.fields))
    made = source.struct(model, own=True)
    return Template(runs, model, source.function(made, runs.skipped)) if source.numbers == [*range(len(marks))] else None


def _mark(width: int) -> bytes:
    """Return a text, or a number of so many bytes that is above 0 and, as a double, finite."""
    if not width:
        return secrets.token_hex(12).encode()
    return b"\x3f" + secrets.token_bytes(width - 1)


@lru_cache(maxsize=64)
def _compiled(source: str) -> CodeType:
    """Return the code of a function; messages of one kind from one client have the same."""
    return compile(source, "<template>", "exec")


class _Source:
    """The statements that make a struct, and the objects that they name."""

    def __init__(self, marks: Sequence[bytes], pass_over: frozenset[str]) -> None:
        self._found: list[int] = []
        self._pass_over = pass_over
        """Fields of storage descriptors that hold no marks."""
        self._lines: list[str] = []
        self._objects: dict[str, Any] = {
            "double": DOUBLE.unpack_from,
            **{f"integer{size}": layout.unpack_from for size, layout in INTEGERS.items()},
        }
        self._readings: dict[tuple[type[Any], Any], tuple[int, str]] = {}
        """What a mark is read as: its number, and how what stands in the message becomes the value."""
        for number, mark in enumerate(marks):
            size, at = len(mark), f"begin{number} + skipped{number}"
            raw = f"data[{at} : begin{number + 1}]"
            self._readings[bytes, mark] = number, raw
            if size > DOUBLE.size:
                self._readings[str, mark.decode()] = number, f"{raw}.decode()"
            else:
                self._readings[int, INTEGERS[size].unpack(mark)[0]] = number, f"integer{size}(data, {at})[0]"
            if size == DOUBLE.size:
                self._readings[float, DOUBLE.unpack(mark)[0]] = number, f"double(data, {at})[0]"

    @property
    def numbers(self) -> list[int]:
        """The numbers of the marks that were met, ascending."""
        return sorted(self._found)

    def function(self, made: str, skipped: Sequence[int]) -> Callable[[bytes, Sequence[int]], Any]:
        """Return the function; so many bytes are before each value in its run."""
        for number, size in enumerate(skipped):
            self._objects[f"skipped{number}"] = size
        begins = "".join(f"begin{number}, " for number in range(len(skipped) + 2))
        body = [f"{begins} = places", *self._lines, f"return {made}"]
        exec(_compiled("def make(data, places):\n" + "".join(f"    {line}\n" for line in body)), self._objects)  # noqa: S102  # see above
        make: Callable[[bytes, Sequence[int]], Any] = self._objects.pop("make")
        return make

    def struct(self, model: TPayload, *, own: bool = False) -> str:
        """Return the expression of a struct like the model; with `own` none of them shares a container or struct with another."""
        cls, fields = type(model), model.__dict__
        items = fields.items() if cls is not StorageDescriptor else [item for item in fields.items() if item[0] not in self._pass_over]
        values = self._copied(fields, items, own=own)
        new = self._assigned(f"{self._named(cls.__new__)}({self._named(cls)})")
        self._lines.append(f"{new}.__dict__ = {values}")
        return new

    def _copied(self, model: Any, items: Items, *, own: bool = False) -> str:
        """Return the expression of a list or map like the model, which has these items and others without marks; `own` as for structs."""
        copied = self._assigned(f"{self._named(model)}.copy()")
        for place, value in items:
            seen, length = len(self._found), len(self._lines)
            if isinstance(value, TPayload):
                made = self.struct(value)
            elif isinstance(value, (list, dict)):
                made = self._copied(value, enumerate(value) if isinstance(value, list) else value.items())
            else:
                if (read := self._read(value)) is not None:
                    self._lines.append(f"{copied}[{self._named(place)}] = {read}")
                continue
            if own or len(self._found) > seen:
                self._lines.append(f"{copied}[{self._named(place)}] = {made}")
            else:
                del self._lines[length:]
        return copied

    def _read(self, value: Any) -> str | None:
        """Return the expression of what stands in the message where the value, if it is a mark, was decoded."""
        reading = self._readings.get((type(value), value)) if type(value) in (str, int, float, bytes) else None
        if reading is None:
            return None
        number, read = reading
        self._found.append(number)
        return read

    def _assigned(self, expression: str) -> str:
        name = f"value{len(self._lines)}"
        self._lines.append(f"{name} = {expression}")
        return name

    def _named(self, value: Any) -> str:
        name = f"object{len(self._objects)}"
        self._objects[name] = value
        return name
