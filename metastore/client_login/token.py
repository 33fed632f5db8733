"""DIGEST-MD5 with a delegation token, the client's side. Source: RFC 2831; Hive's HadoopThriftAuthBridge."""

from __future__ import annotations

import base64
import hmac
import os
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from metastore.client_login.negotiation import LoginError
from metastore.errors import InvalidInput
from metastore.rules.accounts import delegation_tokens
from metastore.rules.accounts.delegation_tokens import KIND, read_token, read_token_file
from metastore.wire.auth.digest.digest import MAX_SIZE, QOPS, REALM, URI, Exchange, layer_of, parse
from metastore.wire.auth.sasl import ClientRefused, Layer

VARIABLE = "HADOOP_TOKEN_FILE_LOCATION"
"""The variable that names the file in which Hadoop gives its programs their tokens."""


@dataclass(frozen=True)
class Token:
    """A delegation token. `qualities` are the protections to agree on, the most wanted first."""

    text: str = field(repr=False)
    qualities: tuple[str, ...] = ("authentication", "integrity", "privacy")

    @classmethod
    def from_file(cls, path: str | os.PathLike[str], signature: str = "") -> Token:
        """Read the metastore's token, or the token of a service (`hive.metastore.token.signature`), from a file of Hadoop's. LoginError."""
        try:
            found = read_token_file(Path(path).read_bytes())
        except OSError as error:
            raise LoginError(f"The file of tokens {path} can not be read: {error.strerror}") from error
        except InvalidInput as error:
            raise LoginError(f"{path}: {error.message}") from error
        for token in found:
            if token.kind == KIND and token.service == signature:
                return cls(token.to_text())
        there = ", ".join(f"{token.kind} for {token.service!r}" for token in found) or "none"
        raise LoginError(f"{path} has no {KIND} for {signature!r}; it has {there}")

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ, signature: str = "") -> Token | None:
        """Read the token of the file that HADOOP_TOKEN_FILE_LOCATION names; None if it names none. LoginError."""
        path = environment.get(VARIABLE)
        return cls.from_file(path, signature) if path else None

    def begin(self, _host: str) -> TokenMechanism:
        """Begin a login. LoginError for a text that is not a token."""
        try:
            return TokenMechanism(read_token(self.text), self.qualities)
        except InvalidInput as error:
            raise LoginError(error.message) from error


class TokenMechanism:
    """One login by a delegation token."""

    name = "DIGEST-MD5"
    reveals_secret = False

    def __init__(self, token: delegation_tokens.DelegationToken, qualities: tuple[str, ...]) -> None:
        self._user = base64.b64encode(token.identifier).decode()
        self._password = base64.b64encode(token.password).decode()
        self._qualities = qualities
        self._next: Callable[[bytes], bytes] = self._begin
        self._exchange: Exchange | None = None
        self._layer: Layer | None = None
        self.complete = False
        self.layer: Layer | None = None

    def step(self, challenge: bytes) -> bytes:
        """Return the answer to a challenge. Raises LoginError."""
        try:
            return self._next(challenge)
        except ClientRefused as error:
            raise LoginError(str(error)) from error

    def _begin(self, _challenge: bytes) -> bytes:
        self._next = self._answer
        return b""

    def _answer(self, challenge: bytes) -> bytes:
        given = parse(challenge)
        offered = [word.strip() for word in given.get("qop", "auth").split(",")]
        qop = next((QOPS[each] for each in self._qualities if QOPS[each] in offered), None)
        if qop is None or given.get("algorithm") != "md5-sess" or given.get("realm") != REALM or not given.get("nonce"):
            raise LoginError(
                f"The server offers the protection {', '.join(offered)} in the realm {given.get('realm')}; wanted: "
                f"{', '.join(self._qualities)}"
            )
        self._exchange = Exchange(self._user, self._password, given["nonce"], secrets.token_hex(16), "00000001", qop)
        self._layer = layer_of(self._exchange, given, is_server=False)
        self._next = self._check
        cipher = ',cipher="3des"' if qop == "auth-conf" else ""
        return (
            f'charset=utf-8,username="{self._user}",realm="{REALM}",nonce="{given["nonce"]}",nc=00000001,cnonce="{self._exchange.cnonce}",'
            f'digest-uri="{URI}",maxbuf={MAX_SIZE},response={self._exchange.proof(of_server=False)},qop={qop}{cipher}'
        ).encode()

    def _check(self, challenge: bytes) -> bytes:
        assert self._exchange is not None
        if not hmac.compare_digest(parse(challenge).get("rspauth", "").encode(), self._exchange.proof(of_server=True).encode()):
            raise LoginError("The server does not know the password of the token: it is another server than the one that gave it")
        self.complete, self.layer = True, self._layer
        return b""
