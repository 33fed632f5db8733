"""Read and write the few forms of Protocol Buffers' encoding that the ends of ORC files need. This module defines no message."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple


class NotAMessage(ValueError):
    """The bytes are not a message of whole fields."""


class Field(NamedTuple):
    """One field of a message in its encoded form."""

    number: int
    value: int
    """Value of a number field; 0 for other kinds."""
    content: bytes
    """Bytes of a field of any other kind; empty for a number field."""
    raw: bytes
    """All bytes of the field, its key included."""


def fields(message: bytes) -> Iterator[Field]:
    """Yield the fields of a message in their order. NotAMessage."""
    place = 0
    while place < len(message):
        begin = place
        key, place = read_varint(message, place)
        value, content = 0, b""
        if key & 7 == 0:
            value, place = read_varint(message, place)
        else:
            if key & 7 == 2:
                length, place = read_varint(message, place)
            elif key & 7 in (1, 5):
                length = 8 if key & 7 == 1 else 4
            else:
                raise NotAMessage(f"a field is of the unknown kind {key & 7}")
            content, place = message[place : place + length], place + length
        if place > len(message):
            raise NotAMessage("a field is cut short")
        yield Field(key >> 3, value, content, message[begin:place])


def read_varint(data: bytes, place: int) -> tuple[int, int]:
    """Return the number that begins at a place, and the place after it. NotAMessage."""
    value = shift = 0
    while True:
        if place >= len(data):
            raise NotAMessage("a number is cut short")
        byte = data[place]
        value |= (byte & 0x7F) << shift
        place, shift = place + 1, shift + 7
        if byte < 0x80:
            return value, place


def varint(value: int) -> bytes:
    """Encode a number that is not negative."""
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def signed(value: int) -> int:
    """Return the number that a field of kind sint encodes."""
    return value >> 1 ^ -(value & 1)


def bytes_field(number: int, content: bytes) -> bytes:
    """Encode a field of bytes."""
    return varint(number << 3 | 2) + varint(len(content)) + content
