"""Computations that both sides of a login by DIGEST-MD5 share. It never logs anybody in.

Source: RFC 2831. Hadoop's and Hive's clients name the protocol "null" and the server "default".
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass

from metastore.wire.auth.digest.digest_layer import OVERHEAD, DigestLayer
from metastore.wire.auth.sasl import ClientRefused

URI = "null/default"
REALM = "default"
QOPS = {"authentication": "auth", "integrity": "auth-int", "privacy": "auth-conf"}
"""RFC 2831's name of each protection (`qop`), by Hadoop's name."""
MAX_SIZE = 0xFFFFFF
"""The most bytes of a protected frame that this side takes: the largest size that the mechanism can express."""
_DEFAULT_SIZE = 65536
_LONGEST = 16384
"""The most bytes of a client's answer; a token's identifier may have some hundred."""
_DIRECTIVE = re.compile(rb'[ \t\r\n]*([A-Za-z-]+)[ \t]*=[ \t]*(?:"((?:[^"\\]|\\.)*)"|([^\s,"\\]+))[ \t\r\n]*(?:,|$)', re.DOTALL)
_ESCAPED = re.compile(rb"\\(.)", re.DOTALL)


def parse(message: bytes) -> dict[str, str]:
    """Return the directives of a message. Raises ClientRefused for an unreadable message, and for a directive that occurs twice."""
    if len(message) > _LONGEST:
        raise ClientRefused(f"A DIGEST-MD5 message of {len(message)} bytes is longer than {_LONGEST}")
    found: dict[str, str] = {}
    at = 0
    while at < len(message):
        match = _DIRECTIVE.match(message, at)
        if match is None:
            raise ClientRefused(f"A DIGEST-MD5 message can not be read from byte {at} on")
        name, at = match[1].decode().lower(), match.end()
        if name in found:
            raise ClientRefused(f"A DIGEST-MD5 message has {name} twice")
        value = match[3] if match[2] is None else _ESCAPED.sub(rb"\1", match[2])
        try:
            found[name] = value.decode()
        except UnicodeDecodeError as error:
            raise ClientRefused(f"{name} of a DIGEST-MD5 message is not UTF-8") from error
    return found


@dataclass(frozen=True, slots=True)
class Exchange:
    """The facts of a login from which both sides compute their proofs."""

    user: str
    password: str
    nonce: str
    cnonce: str
    count: str
    qop: str
    authzid: str | None = None
    realm: str = REALM
    uri: str = URI

    @property
    def session_key(self) -> bytes:
        """The session's key, RFC 2831's H(A1)."""
        known = _md5(f"{self.user}:{self.realm}:{self.password}")
        return _md5(known + f":{self.nonce}:{self.cnonce}".encode() + (f":{self.authzid}".encode() if self.authzid is not None else b""))

    def proof(self, *, of_server: bool) -> str:
        """Return the client's proof, `response`, or the server's, `rspauth`."""
        a2 = ("" if of_server else "AUTHENTICATE") + f":{self.uri}" + ("" if self.qop == "auth" else ":" + "0" * 32)
        return _md5(f"{self.session_key.hex()}:{self.nonce}:{self.count}:{self.cnonce}:{self.qop}:{_md5(a2).hex()}").hex()


def _md5(data: bytes | str) -> bytes:
    return hashlib.md5(data.encode() if isinstance(data, str) else data, usedforsecurity=False).digest()


def layer_of(exchange: Exchange, given: Mapping[str, str], *, is_server: bool) -> DigestLayer | None:
    """Return the layer of the frames after a login; `given` holds the other side's directives. Raises ClientRefused if its buffer is too
    small.
    """
    if exchange.qop == "auth":
        return None
    size = given.get("maxbuf", str(_DEFAULT_SIZE))
    if not (size.isascii() and size.isdigit() and 256 <= int(size[:9]) <= MAX_SIZE):
        raise ClientRefused(f"maxbuf={size[:20]} is not a size from 256 to {MAX_SIZE}: let the other side take 65536 bytes")
    return DigestLayer(exchange.session_key, is_server=is_server, encrypted=exchange.qop == "auth-conf", max_size=int(size[:9]) - OVERHEAD)
