"""Read the Kryo form in which Hive's clients send expressions, into plain trees. Never makes an object of a class that the bytes name.

Kryo writes the fields of an object one behind the other, without names, types or lengths, so a class can be read only if its fields are
known: `hive_classes` lists them. Hive 2.3 and 3.1 write Kryo 3 (lists: their length), Hive 4 writes Kryo 5 (lists: length plus one, and
whether all elements are of one class). Source: Kryo's FieldSerializer, CollectionSerializer, DefaultClassResolver, MapReferenceResolver.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from metastore.errors import MetaError
from metastore.rules.filters.hive_classes import (
    ENUM,
    FIELDS,
    FUNCTION,
    LISTS,
    OF_KRYO_3,
    REGISTERED,
    REGISTERED_LIST,
    full_name,
)

MAXIMUM_EXPRESSION_LENGTH = 10_000_000
BEGINNINGS: dict[int, tuple[bytes, ...]] = {
    5: (b"\x01\x00org.apache.hadoop.hive.ql.plan.ExprNode",),
    3: (b"\x01\x01\x00java.util.", b"\x01\x10"),
}
"""The first bytes, by Kryo's version: the root's class and its first field, the list of its arguments."""
MAXIMUM_DEPTH = 120
"""The most objects within each other. Each level of an expression takes two of them, and five of Python's frames."""


class NotUnderstood(MetaError):
    """The bytes begin as an expression does, but hold something that is not known here."""


@dataclass(eq=False, slots=True)
class Instance:
    """An object: its class, without the packages that all of Hive's share, and its fields by name."""

    kind: str
    fields: dict[str, Any] = field(default_factory=dict)


@dataclass(eq=False, slots=True)
class _Unfinished:
    """A placeholder for an object that is being read, by which an object that holds itself is refused."""


def _version(data: bytes) -> int | None:
    return next((version for version, begins in BEGINNINGS.items() if data.startswith(begins)), None)


def is_expression(data: bytes) -> bool:
    """Return whether bytes begin like a serialised expression of Hive's clients."""
    return _version(data) is not None


def read(data: bytes) -> Instance:
    """Return the expression that bytes of either Kryo hold. NotUnderstood; MetaError for bytes that are not an expression at all."""
    version = _version(data)
    if version is None or len(data) > MAXIMUM_EXPRESSION_LENGTH:
        raise MetaError(
            f"The partition expression, {len(data)} bytes, is not one that Hive's client serialises (or is longer than "
            f"{MAXIMUM_EXPRESSION_LENGTH}): "
            "send one of Hive 2.3, 3.1 or 4, or use a method that takes a filter string"
        )
    reader = _Reader(data, version)
    try:
        # Hive 4 writes the root's class, the others leave it out.
        found = reader.class_and_object() if version == 5 else reader.marked(FUNCTION, may_be_null=False)
        if not isinstance(found, Instance):
            raise NotUnderstood("it is not an object")
        if reader.position != len(data):
            raise NotUnderstood(f"{len(data) - reader.position} bytes are left over")
    except NotUnderstood as error:
        raise NotUnderstood(f"The partition expression is not understood: {error.message}") from error
    except (IndexError, struct.error, UnicodeDecodeError, OverflowError, ValueError) as error:
        raise NotUnderstood("The partition expression is not understood: it ends too early or has impossible values") from error
    return found


class _Reader:
    def __init__(self, data: bytes, version: int) -> None:
        self.data = data
        self.version = version
        self.position = 0
        self.depth = 0
        self.names: list[str] = []
        self.objects: list[Any] = []

    def byte(self) -> int:
        value = self.data[self.position]
        self.position += 1
        return value

    def unsigned(self, most: int = 5) -> int:
        """Read a number of 7 bits a byte, the low ones first; the ninth byte has 8."""
        value = 0
        for shift in range(0, most * 7, 7):
            part = self.byte()
            if part < 0x80 or shift == 56:
                return value | part << shift
            value |= (part & 0x7F) << shift
        raise NotUnderstood("a number has too many bytes")

    def signed(self, most: int = 5) -> int:
        value = self.unsigned(most)
        return (value >> 1) ^ -(value & 1)

    def fixed(self, code: str) -> Any:
        layout = struct.Struct(("<" if self.version == 5 else ">") + code)
        (value,) = layout.unpack_from(self.data, self.position)
        self.position += layout.size
        return value

    def flag(self) -> bool:
        value = self.byte()
        if value > 1:
            raise NotUnderstood("a truth value is neither 0 nor 1")
        return value == 1

    def flagged(self) -> tuple[bool, int]:
        """Read a number whose first byte has a flag before its six bits."""
        first = self.byte()
        value = first & 0x3F
        if first & 0x40:
            value |= self.unsigned() << 6
        return bool(first & 0x80), value

    def text(self) -> str | None:
        if self.data[self.position] < 0x80:
            end = self.position
            while self.data[end] < 0x80:
                end += 1
            raw = self.data[self.position : end] + bytes((self.data[end] & 0x7F,))
            self.position = end + 1
            return raw.decode("ascii")
        _, length = self.flagged()
        return None if length == 0 else self.characters(length - 1)

    def characters(self, count: int) -> str:
        """Read UTF-16 units in the form of UTF-8."""
        if count > len(self.data) - self.position:
            raise NotUnderstood("a text is longer than the rest of the bytes")
        units = bytearray()
        for _ in range(count):
            first = self.byte()
            if first < 0x80:
                unit = first
            elif first >> 5 == 0b110:
                unit = (first & 0x1F) << 6 | self.byte() & 0x3F
            elif first >> 4 == 0b1110:
                unit = (first & 0x0F) << 12 | (self.byte() & 0x3F) << 6 | self.byte() & 0x3F
            else:
                raise NotUnderstood("a text has a byte that can not begin a character")
            units += unit.to_bytes(2, "little")
        return units.decode("utf-16-le")

    def class_name(self) -> str | None:
        number = self.unsigned()
        if number == 0:
            return None
        if number > 1:
            name = REGISTERED_LIST if number - 2 == REGISTERED_LIST_NUMBER[self.version] else REGISTERED.get(number - 2)
            if name is None:
                raise NotUnderstood(f"it holds an object of the registered class {number - 2}, which is not known here")
            return name
        index = self.unsigned()
        if index < len(self.names):
            return self.names[index]
        name = self.text()
        if index > len(self.names) or not name:
            raise NotUnderstood("a class has no name")
        self.names.append(full_name(name))
        return self.names[-1]

    def class_and_object(self) -> Any:
        kind = self.class_name()
        return None if kind is None else self.marked(kind, may_be_null=False)

    def marked(self, kind: str, *, may_be_null: bool) -> Any:
        """Read an object of a known class: null, an object that was read before, or a new one."""
        refers = kind not in PRIMITIVES and not (kind in ENUM and self.version == 5)
        if not refers and not may_be_null:
            return self.body(kind)
        mark = self.unsigned()
        if mark == 0:
            return None
        if mark > 1:
            if mark - 2 >= len(self.objects) or isinstance(self.objects[mark - 2], _Unfinished):
                raise NotUnderstood("an object refers to itself or to a later one")
            return self.objects[mark - 2]
        if not refers:
            return self.body(kind)
        index = len(self.objects)
        self.objects.append(_Unfinished())
        self.depth += 1
        if self.depth > MAXIMUM_DEPTH:
            raise NotUnderstood(f"objects are nested more than {MAXIMUM_DEPTH} deep")
        value = self.objects[index] = self.body(kind)
        self.depth -= 1
        return value

    def body(self, kind: str) -> Any:
        if kind in SPECIAL:
            return SPECIAL[kind](self)
        if kind in LISTS:
            return self.elements()
        fields = (OF_KRYO_3.get(kind) if self.version == 3 else None) or FIELDS.get(kind)
        if fields is None:
            raise NotUnderstood(f"it holds an object of the class {kind}, which is not known here")
        return Instance(kind, {name: self.value(code) for name, code in fields})

    def value(self, code: str) -> Any:
        """Read a field: a primitive, an object with its class, or an object of a class that is final."""
        if code in PRIMITIVES:
            return SPECIAL[code](self)
        if code == "texts":
            return None if self.class_name() is None else self.marked("list of texts", may_be_null=False)
        return self.class_and_object() if code == "object" else self.marked(code, may_be_null=True)

    def elements(self) -> list[Any]:
        if self.version == 3:
            return [self.class_and_object() for _ in range(self.bounded(self.unsigned()))]
        same, length = self.flagged()
        length = self.bounded(length - 1)
        if not same or not length:
            return [self.class_and_object() for _ in range(length)]
        kind = self.class_name()
        if kind is None:
            return [None] * length
        may_be_null = self.flag()
        return [self.marked(kind, may_be_null=may_be_null) for _ in range(length)]

    def texts(self) -> list[Any]:
        """Read a list that is declared as a list of strings: its elements have no class, since String is a final one."""
        may_be_null, length = (True, self.unsigned()) if self.version == 3 else self.flagged()
        count = self.bounded(length if self.version == 3 else length - 1)
        return [self.marked("String", may_be_null=may_be_null) for _ in range(count)]

    def listed(self) -> list[Any]:
        """Read a list of Arrays.asList; Hive has a form of its own for it."""
        count = self.bounded(self.unsigned())
        self.class_name()
        return [self.class_and_object() for _ in range(count)]

    def array(self) -> list[Any] | None:
        length = self.unsigned()
        return None if length == 0 else [self.class_and_object() for _ in range(self.bounded(length - 1))]

    def raw(self) -> bytes | None:
        length = self.unsigned()
        if length == 0:
            return None
        start, self.position = self.position, self.position + self.bounded(length - 1)
        return self.data[start : self.position]

    def longs(self) -> list[int] | None:
        length = self.unsigned()
        return None if length == 0 else [self.signed(9) for _ in range(self.bounded(length - 1))]

    def bounded(self, length: int) -> int:
        if not 0 <= length <= len(self.data) - self.position:
            raise NotUnderstood("a list is longer than the rest of the bytes")
        return length

    def date(self) -> tuple[int, int, int]:
        if self.version == 5:
            return self.unsigned(), self.byte(), self.byte()
        day, month, year = self.fixed("h"), self.fixed("h"), self.signed()
        return year, month, day

    def time(self) -> tuple[int, int, int, int]:
        if self.version == 3:
            hour, minute, nanos, second = self.fixed("b"), self.fixed("b"), self.signed(), self.fixed("b")
            return hour, minute, second, nanos
        parts = [0, 0, 0, 0]
        for index in range(3):
            parts[index] = self.fixed("b")
            if parts[index] < 0:  # the last part that is not zero is inverted
                parts[index] = ~parts[index]
                break
        else:
            parts[3] = self.unsigned()
        return parts[0], parts[1], parts[2], parts[3]

    def date_time(self) -> tuple[int, ...]:
        if self.version == 5:
            return (*self.date(), *self.time())
        date, time = self.marked("LocalDate", may_be_null=True), self.marked("LocalTime", may_be_null=True)
        if date is None or time is None:
            raise NotUnderstood("a timestamp is incomplete")
        return (*date, *time)


REGISTERED_LIST_NUMBER = {3: 14, 5: 13}

SPECIAL: dict[str, Callable[[_Reader], Any]] = {
    "boolean": _Reader.flag,
    "byte": lambda reader: reader.fixed("b"),
    "short": lambda reader: reader.fixed("h"),
    "char": lambda reader: chr(reader.fixed("H")),
    "int": _Reader.signed,
    "long": lambda reader: reader.signed(9),
    "float": lambda reader: reader.fixed("f"),
    "double": lambda reader: reader.fixed("d"),
    "String": _Reader.text,
    "byte[]": _Reader.raw,
    "long[]": _Reader.longs,
    "list of texts": _Reader.texts,
    "array": _Reader.array,
    REGISTERED_LIST: _Reader.listed,
    "LocalDate": _Reader.date,
    "LocalTime": _Reader.time,
    "LocalDateTime": _Reader.date_time,
    **dict.fromkeys(ENUM, _Reader.unsigned),
}
"""The readers of the classes whose form is not a list of fields."""
PRIMITIVES = frozenset(("boolean", "byte", "short", "char", "int", "long", "float", "double"))
