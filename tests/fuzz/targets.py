"""The code that reads bytes of clients before their login, as functions of bytes. An exception of a function is a fault.

`seeds` returns proper inputs of each, from which others are made by changing them.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, cast

from joserfc import jws
from joserfc.jwk import ECKey, KeySet

from metastore.client_login import LoginError
from metastore.client_login.token import Token as TokenLogin
from metastore.config import Config
from metastore.errors import MetastoreError
from metastore.listeners.registry import Listeners
from metastore.methods import METHODS
from metastore.rules.accounts.delegation_tokens import DelegationToken, Identifier, read_identifier, read_token
from metastore.service.accounts.delegation_tokens import ValidToken
from metastore.service.call.context import Metastore
from metastore.service.call.identity import Login
from metastore.store.core.database import Database
from metastore.telemetry.telemetry import Telemetry
from metastore.wire.auth.authenticator import Authenticator, Peer
from metastore.wire.auth.digest.digest_layer import DigestLayer
from metastore.wire.auth.digest.digest_md5 import DigestMd5Login
from metastore.wire.auth.jwt import Tokens
from metastore.wire.auth.negotiation import COMPLETE, OK, START, Frames, login_message, negotiate
from metastore.wire.auth.plain import PlainLogin
from metastore.wire.auth.sasl import ClientRefused, LoginDone, Mechanism
from metastore.wire.calls.dispatch import Dispatcher
from metastore.wire.http.http import HttpConversation
from metastore.wire.http.pages import Pages
from metastore.wire.sockets.settings import WireSettings
from metastore.wire.sockets.transport import EndOfStream, Feed, Malformed, frame_feed

ALL = ("authentication", "integrity", "privacy")
LARGEST = 1 << 20
"""The most bytes of a frame or message. All answers of a target together must not be longer."""
TOKEN = DelegationToken(Identifier("alice", "alice", "oozie", 1_700_000_000_000, 1_800_000_000_000, 7, 1).to_bytes(), b"password")
Target = Callable[[bytes], None]


def _known(identifier: bytes) -> ValidToken:
    if identifier != TOKEN.identifier:
        raise ClientRefused("no such token")
    return ValidToken(TOKEN.password, Login("alice", "token"))


def _password(user: str, password: str) -> Login:
    if password != "secret":
        raise ClientRefused("wrong password")
    return Login(user, "users")


def _mechanism(name: str) -> Mechanism:
    if name == "PLAIN":
        return PlainLogin(_password, lambda login, _user: login)
    if name == "DIGEST-MD5":
        return DigestMd5Login(ALL, _known)
    raise ClientRefused(f"no {name}")


def sasl(data: bytes) -> None:
    """Log in by PLAIN or DIGEST-MD5, and read the frames that follow."""
    sent: list[bytes] = []
    feed = frame_feed(data)
    with suppress(ClientRefused, Malformed, EndOfStream):
        frames = Frames(feed, negotiate(feed, sent.append, _mechanism).layer, LARGEST)
        while frames.receive(1 << 16):
            pass
    assert sum(map(len, sent)) <= LARGEST


def digest(data: bytes) -> None:
    """Answer a client's answer to the challenge of DIGEST-MD5."""
    mechanism = DigestMd5Login(ALL, _known)
    assert isinstance(mechanism.step(b""), bytes)
    with suppress(ClientRefused):
        mechanism.step(data)


def challenge(data: bytes) -> None:
    """Read a server's challenge, as our own client does."""
    login = TokenLogin(TOKEN.to_text(), ALL).begin("localhost")
    login.step(b"")
    with suppress(ClientRefused, LoginError):
        login.step(data)
        login.step(data)


def layer(data: bytes) -> None:
    """Read a frame that is signed, and one that is encrypted."""
    for encrypted in (False, True):
        with suppress(ClientRefused):
            DigestLayer(b"k" * 16, is_server=True, encrypted=encrypted, max_size=65536).unwrap(data)


def plain(data: bytes) -> None:
    """Read a name and a password."""
    with suppress(ClientRefused):
        _mechanism("PLAIN").step(data)


def token(data: bytes) -> None:
    """Read the text of a delegation token, and its identifier."""
    with suppress(MetastoreError):
        read_identifier(read_token(data.decode("latin-1")).identifier)
    with suppress(MetastoreError):
        read_identifier(data)


@cache
def _key() -> ECKey:
    return ECKey.generate_key("P-256", {"kid": "fuzz"})


@cache
def _config() -> Config:
    keys = Path(tempfile.mkdtemp(prefix="metastore-fuzz-")) / "keys.json"
    keys.write_text(json.dumps(KeySet([_key()]).as_dict(private=False)))
    return Config(authentication=("anonymous", "jwt"), jwt_jwks_urls=(f"file:{keys}",), jwt_groups_claim="groups", proxy_users={})


def _signed(payload: bytes) -> str:
    return jws.serialize_compact({"alg": "ES256", "kid": "fuzz"}, payload, _key(), algorithms=["ES256"])


@cache
def _tokens() -> Tokens:
    return Tokens(_config())


def bearer(data: bytes) -> None:
    """Check the text of a JSON web token."""
    with suppress(ClientRefused):
        _tokens().check(data.decode("latin-1"))


def claims(data: bytes) -> None:
    """Check a JSON web token whose issuer has signed these bytes."""
    with suppress(ClientRefused):
        _tokens().check(_signed(data))


class _Server:
    """The parts of a metastore that the wire uses."""

    authorizer = None
    listeners = Listeners()
    replica = None

    def __init__(self) -> None:
        self.config = _config()
        self.database = Database(f"sqlite:///{tempfile.mkdtemp(prefix='metastore-fuzz-')}/none.db")


@cache
def _http() -> tuple[Dispatcher, Authenticator, Pages, WireSettings]:
    server, settings, telemetry = cast(Metastore, _Server()), WireSettings(max_message_size=LARGEST), Telemetry()
    return (
        Dispatcher(server, METHODS, settings, telemetry),
        Authenticator(server.config, server),
        Pages(server, telemetry, lambda: False),
        settings,
    )


def http(data: bytes) -> None:
    """Answer all requests of one HTTP connection."""
    dispatcher, authenticator, pages, settings = _http()
    sent: list[bytes] = []
    parts = [data]
    feed = Feed(lambda _: parts.pop() if parts else b"")
    conversation = HttpConversation(feed, sent.append, dispatcher, settings, authenticator, Peer("127.0.0.1:1"), pages, None, lambda: None)
    with suppress(EndOfStream):
        while conversation.serve_one():
            pass
    assert sum(map(len, sent)) <= LARGEST + 100 * len(data)


_POST = "POST /metastore HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-thrift"


def _posted(body: bytes, **headers: str) -> bytes:
    lines = [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([_POST, f"Content-Length: {len(body)}", *lines, "", ""]).encode() + body


@cache
def seeds(target: str) -> tuple[bytes, ...]:
    """Return proper inputs of a target."""
    return tuple(_SEEDS[target]())


def _answered() -> bytes:
    """Return our own client's answer to a challenge. The next server's challenge has another nonce."""
    login, server = TokenLogin(TOKEN.to_text(), ALL).begin("localhost"), DigestMd5Login(ALL, _known)
    login.step(b"")
    answer = login.step(cast(bytes, server.step(b"")))
    done = server.step(answer)
    assert isinstance(done, LoginDone)
    return answer


def _payload() -> dict[str, Any]:
    now = int(time.time())
    return {"iss": "i", "aud": ["a"], "sub": "ann", "iat": now, "nbf": now, "exp": now + 10**6, "groups": ["g", "h"]}


_STATUS = b"\x80\x01\0\x01\0\0\0\x09getStatus\0\0\0\x07\0"
_LOGIN = login_message(START, b"PLAIN") + login_message(COMPLETE, b"\0ann\0secret")
_SEEDS: dict[str, Callable[[], list[bytes]]] = {
    "sasl": lambda: [
        _LOGIN + len(_STATUS).to_bytes(4, "big") + _STATUS,
        login_message(START, b"DIGEST-MD5") + login_message(OK) + login_message(OK, _answered()),
    ],
    "digest": lambda: [_answered()],
    "challenge": lambda: [cast(bytes, DigestMd5Login(ALL, _known).step(b"")), b"rspauth=" + b"0" * 32],
    "layer": lambda: [
        DigestLayer(b"k" * 16, is_server=False, encrypted=encrypted, max_size=65536).wrap(_STATUS) for encrypted in (False, True)
    ],
    "plain": lambda: [b"\0ann\0secret", b"bob\0ann\0secret"],
    "token": lambda: [TOKEN.to_text().encode(), TOKEN.identifier],
    "bearer": lambda: [_signed(json.dumps(_payload()).encode()).encode()],
    "claims": lambda: [json.dumps(_payload()).encode()],
    "http": lambda: [
        _posted(_STATUS), _posted(_STATUS, x_actor_username="ann") * 2,
        _posted(_STATUS, Authorization=f"Bearer {_signed(json.dumps(_payload()).encode())}"), _posted(_STATUS, Authorization="Basic YTpi"),
        b"GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n", b"HEAD /metastore HTTP/1.1\r\nHost: h\r\n\r\n",
        f"{_POST}\r\nTransfer-Encoding: chunked\r\n\r\n".encode() + b"4\r\nabcd\r\n0\r\n\r\n",
    ],
}  # fmt: skip
TARGETS: dict[str, Target] = {each.__name__: each for each in (sasl, digest, challenge, layer, plain, token, bearer, claims, http)}
