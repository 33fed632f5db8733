"""What the messages of a connection leave to its next ones.

A client asks the same again and again: for the last event, for the state of a lock, whether anything is to be compacted. A message that is
the last one of its method but for its sequence id was walked over already, so it is only decoded. Nothing that was decoded is kept.
"""

from __future__ import annotations

from thriftpy2.thrift import TPayload

from metastore.wire.likeness import WIDTH, Likenesses

CALL = b"\x80\x01\0\x01"
"""What a call in the binary protocol begins with: its version, and the type of the message."""
BEFORE_STRUCT = len(CALL) + WIDTH + WIDTH
"""Bytes before the struct of a call, without its name: what it begins with, the size of the name, the sequence id."""
SHORT = 1024
"""Bytes of a message up to which it is remembered: a connection may use a few hundred methods."""
Known = tuple[str, type[TPayload], bytes]
"""The name of a message, what its struct is decoded into, and that struct as bytes."""


class Memory:
    """Of one connection."""

    __slots__ = ("_last", "alike")

    def __init__(self) -> None:
        self.alike: Likenesses = {}
        """Of each kind of struct, what the last message that had many had in common: the next one is often of the same table."""
        self._last: dict[bytes, Known] = {}
        """By what stands before the sequence id."""

    def known(self, data: bytes) -> tuple[Known, int] | None:
        """Return what is known of a message and its sequence id; None if `data` is not all of the last one of its method again."""
        if len(data) > SHORT:
            return None
        begin = BEFORE_STRUCT + int.from_bytes(data[len(CALL) : len(CALL) + WIDTH], "big")
        known = self._last.get(data[: begin - WIDTH])
        if known is None or known[2] != data[begin:]:
            return None
        return known, int.from_bytes(data[begin - WIDTH : begin], "big", signed=True)

    def note(self, name: str, cls: type[TPayload], data: bytes, begin: int) -> None:
        """Note a message that could be decoded, whose struct stands from `begin` on."""
        if len(data) <= SHORT and data.startswith(CALL):
            self._last[data[: begin - WIDTH]] = name, cls, data[begin:]
