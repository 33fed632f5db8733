"""Decode the answers of MariaDB and MySQL to statements. This module never touches a socket.

Values are the same as from PyMySQL's own cursors. The converter of a column is cached by the column's description. PyMySQL parses the
description for each result: that is most of its work for a short one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from struct import Struct
from typing import Any, NamedTuple

from pymysql import err
from pymysql.connections import TEXT_TYPES
from pymysql.constants import CR, FIELD_TYPE, SERVER_STATUS
from pymysql.converters import decoders, through
from pymysql.protocol import FieldDescriptorPacket

LONGEST = 0xFFFFFF
"""The length of a packet that the next one continues, in bytes."""
OK, NULL, LOCAL, END, ERROR = 0x00, 0xFB, 0xFB, 0xFE, 0xFF
"""First bytes of packets, or of values."""
WIDTHS = {0xFC: 2, 0xFD: 3, 0xFE: 8}
"""The length of a number in bytes, by the byte before it. A smaller byte is itself the number."""
HEADER = Struct("<I").unpack_from
"""Reads the header of a packet: its length in three bytes, its number in one."""
BINARY = 63
"""The character set of binary columns."""
ENCODING = "utf8"
"""Python's name of the character set of the connections."""

Row = tuple[Any, ...]
Converter = Callable[[bytes], Any]


class Result(NamedTuple):
    """The result of one statement: rows, the number of rows found or changed, and the key of an inserted row, 0 or None without one."""

    rows: Sequence[Row]
    number: int
    key: int | None


class Answers:
    """The answers to the statements of one packet.

    `more` returns at least the given number of further bytes, and possibly later ones that have arrived. `number` is the number of the
    first packet. A `mark` at the end of a text is removed.
    """

    __slots__ = ("_at", "_data", "_mark", "_more", "_number", "ended", "status")

    def __init__(self, more: Callable[[int], bytes], number: int, mark: str = "") -> None:
        self._mark = mark
        self._more = more
        self._data = b""
        self._at = 0
        self._number = number
        self.ended = False
        """Whether the server sends no further results."""
        self.status = 0
        """The status of the server, see `pymysql.constants.SERVER_STATUS`."""

    def read(self, results: list[Result]) -> None:
        """Add all results, also those before an error. pymysql.Error for an error of the server, RuntimeError if it asks for a file."""
        while not self.ended:
            packet = self._packet()
            kind = packet[0]
            if kind == OK:
                count, at = _number(packet, 1)
                key, at = _number(packet, at)
                results.append(Result((), count, key))
                self._end(packet, at)
            elif kind == LOCAL:
                raise RuntimeError("the database asks for a file: LOAD DATA LOCAL is not allowed")
            else:
                columns, _ = _number(packet, 0)
                converters = _converters(tuple([self._packet() for _ in range(columns)]), self._mark)
                self._packet()  # the end of the descriptions
                rows = []
                while (packet := self._packet())[0] != END or len(packet) >= 9:  # a longer one is a row: END is a value's length
                    rows.append(_row(packet, converters))
                results.append(Result(rows, len(rows), None))
                self._end(packet, 3)

    def _end(self, packet: bytes, at: int) -> None:
        self.status = int.from_bytes(packet[at : at + 2], "little")
        self.ended = not self.status & SERVER_STATUS.SERVER_MORE_RESULTS_EXISTS

    def _packet(self) -> bytes:
        """Return the next packet, joined from its parts. pymysql.Error for a packet with an error."""
        packet = self._part()
        if len(packet) == LONGEST:
            parts = [packet]
            while len(parts[-1]) == LONGEST:
                parts.append(self._part())
            packet = b"".join(parts)
        if packet[0] == ERROR:
            self.ended = True
            err.raise_mysql_exception(packet)
        return packet

    def _part(self) -> bytes:
        data, start = self._data, self._at + 4
        if len(data) < start:
            data, start = self._fill(self._at, 4), 4
        header: int = HEADER(data, start - 4)[0]
        number, size = header >> 24, header & LONGEST
        if number != self._number:
            self._lost(number)
        self._number = (number + 1) & 0xFF
        self._at = end = start + size
        if len(data) < end:
            data, start = self._fill(start, size), 0
            self._at = end = size
        return data[start:end]

    def _fill(self, at: int, size: int) -> bytes:
        """Drop the received bytes before a position, and receive more until there are at least `size`."""
        rest = self._data[at:]
        self._data = rest + self._more(size - len(rest))
        return self._data

    def _lost(self, number: int) -> None:
        if number == 0:  # MariaDB's last packet when it stops or kills the connection
            raise err.OperationalError(CR.CR_SERVER_LOST, "Lost connection to MySQL server during query")
        raise err.InternalError(f"Packet sequence number wrong - got {number} expected {self._number}")


def _number(packet: bytes, at: int) -> tuple[int, int]:
    """Return the number at a position, and the position of its end."""
    size = packet[at]
    at += 1
    if size not in WIDTHS:
        return size, at
    end = at + WIDTHS[size]
    return int.from_bytes(packet[at:end], "little"), end


def _row(packet: bytes, converters: Sequence[Converter]) -> Row:
    values: list[Any] = []
    at = 0
    for convert in converters:
        size = packet[at]
        at += 1
        if size > NULL:
            size, at = _number(packet, at - 1)
        elif size == NULL:
            values.append(None)
            continue
        end = at + size
        values.append(convert(packet[at:end]))
        at = end
    return tuple(values)


@lru_cache(maxsize=1000)
def _converters(descriptions: tuple[bytes, ...], mark: str) -> list[Converter]:
    return [_converter(FieldDescriptorPacket(each, ENCODING), mark) for each in descriptions]


def _converter(field: Any, mark: str) -> Converter:
    kind, found = field.type_code, decoders.get(field.type_code, through)
    if kind in TEXT_TYPES and kind != FIELD_TYPE.JSON and field.charsetnr == BINARY:
        return bytes if found is through else found
    if found is through:
        return (lambda raw: raw.decode().removesuffix(mark)) if mark else bytes.decode
    return found if found in (int, float) else lambda raw: found(raw.decode())  # numbers are read from bytes
