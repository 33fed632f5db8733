"""A result that brings its own bytes, so that a long list can be answered without encoding it struct by struct.

A handler may return an `Encoded` instead of the value of its method's `success` field. It never frames or sends.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Encoded:
    """The value of a `success` field, already in the binary protocol."""

    __slots__ = ("_parts", "_value")

    def __init__(self, parts: list[bytes], value: Callable[[], Any]) -> None:
        """`parts` joined are the bytes of the value (for a list: element type, i32 size, elements), without the
        field's header. `value` makes the same value of structs, for the other protocols.
        """
        self._parts = parts
        self._value = value

    def encode_success(self, protocol: str) -> bytes | None:
        """Return the bytes of the value in `protocol` ("binary" or "compact"), or None if they are not at hand."""
        return b"".join(self._parts) if protocol == "binary" else None

    def value(self) -> Any:
        """Return the value as Thrift structs."""
        return self._value()
