"""Read and write delegation tokens as Hadoop's clients have them: identifier, token, text, file of tokens. It never checks a password.

Source: Hadoop's AbstractDelegationTokenIdentifier, Token, Credentials and WritableUtils.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass

from metastore.errors import InvalidInput

KIND = "HIVE_DELEGATION_TOKEN"
LONGEST = 65536
"""Bytes of a token, and of each of its parts."""
_FILE = b"HDTS\0"
"""The beginning of a file of tokens: its mark, and the number of Writable's format."""


@dataclass(frozen=True, slots=True)
class Identifier:
    """The owner and the validity of a token; times are in milliseconds since 1970."""

    owner: str
    renewer: str
    """"" if nobody can renew it."""
    real_user: str
    """The user who got it for its owner; "" if that was the owner."""
    issued: int
    max_date: int
    sequence: int
    master_key: int = 0

    def to_bytes(self) -> bytes:
        """Return the bytes that clients pass on."""
        texts = b"".join(map(_text, (self.owner, self.renewer, self.real_user)))
        return b"\0" + texts + b"".join(map(_vlong, (self.issued, self.max_date, self.sequence, self.master_key)))


@dataclass(frozen=True, slots=True)
class DelegationToken:
    """The proof of a login: an identifier and the password that belongs to it."""

    identifier: bytes
    password: bytes
    kind: str = KIND
    service: str = ""
    """The name by which clients find it among others (`hive.metastore.token.signature`)."""

    def to_text(self) -> str:
        """Return the token as text that fits into a URL."""
        data = _blob(self.identifier) + _blob(self.password) + _text(self.kind) + _text(self.service)
        return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class _Reader:
    """Reads the encodings of Hadoop's WritableUtils. Raises InvalidInput."""

    def __init__(self, data: bytes, what: str) -> None:
        self._data = data
        self._what = what
        self._at = 0

    def take(self, size: int) -> bytes:
        out = self._data[self._at : self._at + size]
        if size < 0 or len(out) < size:
            raise InvalidInput(f"This is not a {self._what}: it ends too early")
        self._at += size
        return out

    def vlong(self) -> int:
        first = int.from_bytes(self.take(1), "big", signed=True)
        if first >= -112:
            return first
        negative = first < -120
        value = int.from_bytes(self.take(-first - (120 if negative else 112)), "big")
        return ~value if negative else value

    def blob(self) -> bytes:
        size = self.vlong()
        if not 0 <= size <= LONGEST:
            raise InvalidInput(f"This is not a {self._what}: a part of it has {size} bytes")
        return self.take(size)

    def text(self) -> str:
        try:
            return self.blob().decode()
        except UnicodeDecodeError as error:
            raise InvalidInput(f"This is not a {self._what}: a text in it is not UTF-8") from error

    def token(self) -> DelegationToken:
        return DelegationToken(self.blob(), self.blob(), self.text(), self.text())


def _vlong(value: int) -> bytes:
    if -112 <= value <= 127:
        return value.to_bytes(1, "big", signed=True)
    rest = ~value if value < 0 else value
    size = (rest.bit_length() + 7) // 8
    return ((-120 if value < 0 else -112) - size).to_bytes(1, "big", signed=True) + rest.to_bytes(size, "big")


def _blob(data: bytes) -> bytes:
    return _vlong(len(data)) + data


def _text(text: str) -> bytes:
    return _blob(text.encode())


def read_identifier(data: bytes) -> Identifier:
    """Read an identifier. InvalidInput for other bytes."""
    reader = _Reader(data, "identifier of a delegation token")
    if reader.take(1) != b"\0":
        raise InvalidInput("The identifier of the delegation token has a version that is not known; it should be 0")
    owner, renewer, real_user = reader.text(), reader.text(), reader.text()
    return Identifier(owner, renewer, real_user, reader.vlong(), reader.vlong(), reader.vlong(), reader.vlong())


def read_token(text: str) -> DelegationToken:
    """Read a token's text. InvalidInput for another text."""
    if len(text) > 2 * LONGEST:
        raise InvalidInput(f"A text of {len(text)} characters is too long for a delegation token")
    plain = "".join(text.split()).rstrip("=").replace("+", "-").replace("/", "_")
    try:
        data = base64.b64decode(plain + "=" * (-len(plain) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError) as error:
        raise InvalidInput("The text of a delegation token is base64; this is not") from error
    return _Reader(data, "delegation token").token()


def read_token_file(data: bytes) -> list[DelegationToken]:
    """Read the tokens of a file, as HADOOP_TOKEN_FILE_LOCATION names one. InvalidInput for another file."""
    if not data.startswith(_FILE):
        raise InvalidInput("This is not a file of Hadoop's tokens, or one in protobuf's format; write it as Writable, Hadoop's default")
    reader = _Reader(data[len(_FILE) :], "file of tokens")
    tokens = []
    for _ in range(reader.vlong()):
        reader.text()
        tokens.append(reader.token())
    return tokens
