"""DIGEST-MD5 for delegation tokens, the server's side. It never looks a token up itself.

The user's name is the token's identifier and the password the token's, both as base64. A nonce is valid for one connection and one answer:
no answer can be sent again. Source: RFC 2831; Hive's HadoopThriftAuthBridge.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import re
import secrets
from collections.abc import Callable, Sequence
from importlib.util import find_spec

from metastore.config import ConfigError
from metastore.service.accounts.delegation_tokens import ValidToken
from metastore.wire.auth.digest.digest import MAX_SIZE, QOPS, REALM, URI, Exchange, layer_of, parse
from metastore.wire.auth.sasl import ClientRefused, LoginDone

_HEX = re.compile(r"[0-9a-f]{32}")


class DigestMd5Login:
    """The server's side of one login, a `wire.auth.sasl.Mechanism`."""

    def __init__(self, protection: Sequence[str], find: Callable[[bytes], ValidToken]) -> None:
        """`protection` has Hadoop's names. `find` returns the token of an identifier, and raises ClientRefused for an invalid one."""
        self._qops = [QOPS[word] for word in protection]
        self._find = find
        self._nonce = base64.b64encode(secrets.token_bytes(24)).decode()
        self._step: Callable[[bytes], bytes | LoginDone] = self._challenge

    def step(self, response: bytes) -> bytes | LoginDone:
        """Take a message of the client and return the challenge, or the completed login. Raises ClientRefused."""
        step, self._step = self._step, _ended
        return step(response)

    def _challenge(self, response: bytes) -> bytes:
        if response:
            raise ClientRefused("DIGEST-MD5 begins with the server's challenge: the client must not send anything before")
        self._step = self._check
        text = f'realm="{REALM}",nonce="{self._nonce}",charset=utf-8,algorithm=md5-sess,qop="{",".join(self._qops)}"'
        if self._qops != ["auth"]:
            text += f",maxbuf={MAX_SIZE}"
        if "auth-conf" in self._qops:
            text += ',cipher="3des"'
        return text.encode()

    def _check(self, response: bytes) -> LoginDone:
        given = parse(response)
        user, qop = given.get("username", ""), given.get("qop", "auth")
        said = {"authzid": user, **given}
        for name, value in {"realm": REALM, "digest-uri": URI, "nonce": self._nonce, "nc": "00000001", "authzid": user}.items():
            if said.get(name) != value:
                raise ClientRefused(f"The login by token has the wrong {name}: it must be {value}")
        if qop not in self._qops or (qop == "auth-conf" and given.get("cipher") != "3des"):
            raise ClientRefused(
                f"The login by token wants the protection {qop}; the server offers {', '.join(self._qops)} (its setting sasl_protection)"
            )
        if not given.get("cnonce") or not _HEX.fullmatch(given.get("response", "")):
            raise ClientRefused("The login by token lacks a cnonce or a response")
        token = self._find(_identifier(user))
        password = base64.b64encode(token.password).decode()
        exchange = Exchange(user, password, self._nonce, given["cnonce"], given["nc"], qop, given.get("authzid"))
        if not hmac.compare_digest(exchange.proof(of_server=False), given["response"]):
            raise ClientRefused("The password of the token is wrong")
        return LoginDone(token.login, f"rspauth={exchange.proof(of_server=True)}".encode(), layer_of(exchange, given, is_server=True))


def check_protection(protection: Sequence[str]) -> None:
    """Raise ConfigError for a protection whose library is not installed."""
    if "privacy" in protection and find_spec("cryptography") is None:
        raise ConfigError(
            "sasl_protection=privacy needs the library cryptography for logins by token: "
            "pip install '.[kerberos]' in the checkout of metastore"
        )


def _identifier(user: str) -> bytes:
    try:
        return base64.b64decode(user, validate=True)
    except (binascii.Error, ValueError) as error:
        raise ClientRefused("The user's name of a login by token is not base64") from error


def _ended(_response: bytes) -> LoginDone:
    raise ClientRefused("This login has ended; connect again")
