"""Give a whole ORC file further user metadata by a new tail at its end: stripes stay, nothing is decompressed. This module opens no file.

A tail is all after the last stripe: statistics of the stripes, the footer, the postscript and one byte, the postscript's length.
A footer is a message, and its bytes with further fields behind them are one too: new items are one more chunk that is not compressed.
Source: the ORC specification and its orc_proto.proto.
"""

from __future__ import annotations

from collections.abc import Mapping

from metastore.acid.orc.protobuf import Field, NotAMessage, bytes_field, fields, varint

LONGEST_POSTSCRIPT = 256
"""Bytes at the end of a file that hold its postscript and the length of it."""
MAGIC = b"ORC"
CHUNK = 1 << 15
"""Bytes of a chunk that is not compressed; less than the smallest block in use."""
_FOOTER_LENGTH, _COMPRESSION, _METADATA_LENGTH, _STRIPE_STATISTICS_LENGTH = 1, 2, 5, 7
_USER_METADATA = 5
"""The number of the field in the footer."""


class NotOrc(ValueError):
    """The bytes are not the end of an ORC file."""


def tail_length(end: bytes) -> int:
    """Return the tail's length in bytes, from the last `LONGEST_POSTSCRIPT` bytes of a file or more. NotOrc."""
    postscript = _postscript(end)
    sections = {_FOOTER_LENGTH, _METADATA_LENGTH, _STRIPE_STATISTICS_LENGTH}
    return 1 + end[-1] + sum(field.value for field in postscript if field.number in sections)


def with_user_metadata(tail: bytes, items: Mapping[str, bytes]) -> bytes:
    """Return the tail to append to a file that ends in `tail`: it has the same content, and the items. NotOrc."""
    before = _postscript(tail)
    added = b"".join(bytes_field(_USER_METADATA, bytes_field(1, name.encode()) + bytes_field(2, value)) for name, value in items.items())
    if any(field.number == _COMPRESSION and field.value for field in before):
        added = b"".join(
            (len(chunk) << 1 | 1).to_bytes(3, "little") + chunk
            for chunk in (added[place : place + CHUNK] for place in range(0, len(added), CHUNK))
        )
    postscript = b"".join(
        varint(_FOOTER_LENGTH << 3) + varint(field.value + len(added)) if field.number == _FOOTER_LENGTH else field.raw for field in before
    )
    return tail[: -1 - tail[-1]] + added + postscript + bytes([len(postscript)])


def _postscript(end: bytes) -> list[Field]:
    length = end[-1] if end else 0
    if len(end) <= length or not end[:-1].endswith(MAGIC):
        raise NotOrc("the file does not end as ORC files do")
    try:
        return list(fields(end[-1 - length : -1]))
    except NotAMessage as error:
        raise NotOrc(f"the postscript can not be read: {error}") from error
