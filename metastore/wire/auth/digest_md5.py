"""DIGEST-MD5 for delegation tokens: the server's side, and what both sides compute. It never looks a token up itself.

The user's name is the token's identifier and the password the token's, both as base64. A nonce serves one connection and one answer, so
none can be sent again. Source: RFC 2831; Hadoop's and Hive's clients name the protocol "null" and the server "default".
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec

from metastore.config import ConfigError
from metastore.service.delegation_tokens import ValidToken
from metastore.wire.auth.digest_layer import OVERHEAD, DigestLayer
from metastore.wire.auth.sasl import Done, Refused

URI = "null/default"
REALM = "default"
QOPS = {"authentication": "auth", "integrity": "auth-int", "privacy": "auth-conf"}
"""RFC 2831's word for a protection by Hadoop's."""
MAX_SIZE = 0xFFFFFF
"""Bytes of a protected frame that this side takes: the most that the mechanism can say."""
_DEFAULT_SIZE = 65536
_LONGEST = 16384
"""Bytes of a client's answer; a token's identifier may have some hundred."""
_DIRECTIVE = re.compile(rb'[ \t\r\n]*([A-Za-z-]+)[ \t]*=[ \t]*(?:"((?:[^"\\]|\\.)*)"|([^\s,"\\]+))[ \t\r\n]*(?:,|$)', re.DOTALL)
_ESCAPED = re.compile(rb"\\(.)", re.DOTALL)
_HEX = re.compile(r"[0-9a-f]{32}")


def parse(message: bytes) -> dict[str, str]:
    """Return the directives of a message. Raises Refused for what can not be read, and for one that is there twice."""
    if len(message) > _LONGEST:
        raise Refused(f"A DIGEST-MD5 message of {len(message)} bytes is longer than {_LONGEST}")
    found: dict[str, str] = {}
    at = 0
    while at < len(message):
        match = _DIRECTIVE.match(message, at)
        if match is None:
            raise Refused(f"A DIGEST-MD5 message can not be read from byte {at} on")
        name, at = match[1].decode().lower(), match.end()
        if name in found:
            raise Refused(f"A DIGEST-MD5 message has {name} twice")
        value = match[3] if match[2] is None else _ESCAPED.sub(rb"\1", match[2])
        try:
            found[name] = value.decode()
        except UnicodeDecodeError as error:
            raise Refused(f"{name} of a DIGEST-MD5 message is no UTF-8") from error
    return found


@dataclass(frozen=True, slots=True)
class Exchange:
    """What both sides know of a login, from which they compute their proofs."""

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
        """H(A1)."""
        known = _md5(f"{self.user}:{self.realm}:{self.password}")
        return _md5(known + f":{self.nonce}:{self.cnonce}".encode() + (f":{self.authzid}".encode() if self.authzid is not None else b""))

    def proof(self, *, of_server: bool) -> str:
        """Return `response`, or what the server answers it by, `rspauth`."""
        a2 = ("" if of_server else "AUTHENTICATE") + f":{self.uri}" + ("" if self.qop == "auth" else ":" + "0" * 32)
        return _md5(f"{self.session_key.hex()}:{self.nonce}:{self.count}:{self.cnonce}:{self.qop}:{_md5(a2).hex()}").hex()


def _md5(data: bytes | str) -> bytes:
    return hashlib.md5(data.encode() if isinstance(data, str) else data, usedforsecurity=False).digest()


class DigestMd5:
    """One login; `wire.auth.sasl.Mechanism`."""

    def __init__(self, protection: Sequence[str], find: Callable[[bytes], ValidToken]) -> None:
        """`protection` are Hadoop's words. `find` gets a token's identifier, and raises Refused for one that is not valid."""
        self._qops = [QOPS[word] for word in protection]
        self._find = find
        self._nonce = base64.b64encode(secrets.token_bytes(24)).decode()
        self._step: Callable[[bytes], bytes | Done] = self._challenge

    def step(self, response: bytes) -> bytes | Done:
        """Take what the client sent and return the challenge, or the end. Raises Refused."""
        step, self._step = self._step, _ended
        return step(response)

    def _challenge(self, response: bytes) -> bytes:
        if response:
            raise Refused("DIGEST-MD5 begins with the server's challenge: the client must not send anything before")
        self._step = self._check
        text = f'realm="{REALM}",nonce="{self._nonce}",charset=utf-8,algorithm=md5-sess,qop="{",".join(self._qops)}"'
        if self._qops != ["auth"]:
            text += f",maxbuf={MAX_SIZE}"
        if "auth-conf" in self._qops:
            text += ',cipher="3des"'
        return text.encode()

    def _check(self, response: bytes) -> Done:
        given = parse(response)
        user, qop = given.get("username", ""), given.get("qop", "auth")
        said = {"authzid": user, **given, "digest-uri": given.get("digest-uri", "").lower()}
        for name, value in {"realm": REALM, "digest-uri": URI, "nonce": self._nonce, "nc": "00000001", "authzid": user}.items():
            if said.get(name) != value:
                raise Refused(f"The login by token has another {name} than it should: {value}")
        if qop not in self._qops or (qop == "auth-conf" and given.get("cipher") != "3des"):
            raise Refused(
                f"The login by token wants the protection {qop}; the server offers {', '.join(self._qops)} (its setting sasl_protection)"
            )
        if not given.get("cnonce") or not _HEX.fullmatch(given.get("response", "")):
            raise Refused("The login by token lacks a cnonce or a response")
        token = self._find(_identifier(user))
        password = base64.b64encode(token.password).decode()
        exchange = Exchange(user, password, self._nonce, given["cnonce"], given["nc"], qop, given.get("authzid"))
        if not hmac.compare_digest(exchange.proof(of_server=False), given["response"]):
            raise Refused("The password of the token is wrong")
        return Done(token.login, f"rspauth={exchange.proof(of_server=True)}".encode(), layer_of(exchange, given, is_server=True))


def layer_of(exchange: Exchange, given: Mapping[str, str], *, is_server: bool) -> DigestLayer | None:
    """Return what protects the frames after a login; `given` is what the other side said. Raises Refused if it takes too little."""
    if exchange.qop == "auth":
        return None
    size = given.get("maxbuf", str(_DEFAULT_SIZE))
    if not (size.isascii() and size.isdigit() and 256 <= int(size[:9]) <= MAX_SIZE):
        raise Refused(f"maxbuf={size[:20]} is no size from 256 to {MAX_SIZE}: let the other side take 65536 bytes")
    return DigestLayer(exchange.session_key, is_server=is_server, encrypted=exchange.qop == "auth-conf", max_size=int(size[:9]) - OVERHEAD)


def check_protection(protection: Sequence[str]) -> None:
    """Raise ConfigError for a protection that can not be given for want of a library."""
    if "privacy" in protection and find_spec("cryptography") is None:
        raise ConfigError("sasl_protection=privacy needs the library cryptography for logins by token: install metastore[kerberos]")


def _identifier(user: str) -> bytes:
    try:
        return base64.b64decode(user, validate=True)
    except (binascii.Error, ValueError) as error:
        raise Refused("The user's name of a login by token is no base64") from error


def _ended(_response: bytes) -> Done:
    raise Refused("This login has ended; connect again")
