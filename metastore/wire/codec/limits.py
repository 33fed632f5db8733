"""Common parts of the compiled and the pure codec: limits, shared values, and the errors. This module never reads a byte."""

from __future__ import annotations

import sys
from functools import cache

from metastore.wire.sockets.transport import Malformed

MAX_DEPTH = 64
"""Nesting of structs and containers, the outermost struct included."""

MAX_EARLY_MEMORY = 32 * 1024 * 1024
"""The most bytes of memory, about, for the values of a message whose end is not yet received."""
MAX_EARLY_BYTES = 8 * 1024 * 1024
"""The most bytes that are kept of a message whose end is not yet received, while values are made of it."""
MEMORY_PER_BYTE = 10
"""Bytes of memory that the values of a message may take for each byte of `max_message_size`."""
TEXT_MEMORY, LIST_MEMORY, ELEMENT_MEMORY, ENTRY_MEMORY = 64, 64, 8, 104
"""Bytes of memory, about: of a text without its bytes, of a list without its elements, of an element's or an entry's place."""


class TooMuchMemory(Malformed):
    """The values of a message take too much memory, or too many of its bytes would be kept."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"The values of the message take more than {limit} bytes of memory; split the request or raise max_message_size")


@cache
def memory_of(cls: type) -> int:
    """Return the bytes of memory of a struct of a class without its values."""
    struct = cls()
    return sys.getsizeof(struct) + sys.getsizeof(dict(vars(struct)))


SHARED_FIELDS = frozenset({("ColumnStatistics", "statsObj")})
"""Fields whose equal values may be one object in all structs of a message: never change such a value in place. The pure codec makes an
object for each struct.
"""
SHARED_PARTS = frozenset({("Partition", "sd")})
"""Fields whose struct may share its containers and structs with equal ones. The struct itself and its numbers and texts are its own."""


def depth_error() -> Malformed:
    """Return the error for a value that nests too deep."""
    return Malformed(f"Structs and containers nest deeper than {MAX_DEPTH}")


def size_error(size: int) -> Malformed:
    """Return the error for a negative size."""
    return Malformed(f"A size of {size} bytes is not possible")


def container_error(size: int, max_container_size: int) -> Malformed:
    """Return the error for a container with a wrong number of elements."""
    if size < 0:
        return Malformed(f"A container of {size} elements is not possible")
    if size > max_container_size:
        return Malformed(f"A container of {size} elements is too large; max_container_size is {max_container_size}")
    return Malformed(f"A container of {size} elements can not fit in the message; see max_message_size")


def type_error(ttype: int) -> Malformed:
    """Return the error for an unknown type."""
    return Malformed(f"Type {ttype} is unknown")


def version_error(version: int) -> Malformed:
    """Return the error for a message with another version of the binary protocol."""
    return Malformed(f"Version {version & 0xFFFFFFFF:#x} is not that of the binary protocol")
