"""What the compiled and the pure codec have in common: limits, what may be shared, and the errors. This module never reads a byte."""

from __future__ import annotations

from metastore.wire.transport import Malformed

MAX_DEPTH = 64
"""Nesting of structs and containers, the outermost struct included."""

SHARED_FIELDS = frozenset({("ColumnStatistics", "statsObj")})
"""Fields whose value may be one object in all structs of a message that have equal ones: never change it in place."""
SHARED_PARTS = frozenset({("Partition", "sd")})
"""Fields whose struct may share its containers and structs so. The struct itself and the numbers and texts in it are its own."""


def depth_error() -> Malformed:
    """Return the error for what nests too deep."""
    return Malformed(f"Structs and containers nest deeper than {MAX_DEPTH}")


def size_error(size: int) -> Malformed:
    """Return the error for a negative size."""
    return Malformed(f"A size of {size} bytes")


def container_error(size: int, max_container_size: int) -> Malformed:
    """Return the error for a container of so many elements."""
    if size < 0:
        return Malformed(f"A container of {size} elements")
    if size > max_container_size:
        return Malformed(f"A container of {size} elements; max_container_size is {max_container_size}")
    return Malformed(f"A container of {size} elements can not fit in the message; see max_message_size")


def type_error(ttype: int) -> Malformed:
    """Return the error for a type that is none."""
    return Malformed(f"Type {ttype} is unknown")


def version_error(version: int) -> Malformed:
    """Return the error for a message with another version of the binary protocol."""
    return Malformed(f"Version {version & 0xFFFFFFFF:#x} is not that of the binary protocol")
