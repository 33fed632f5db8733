"""Users of the server's own: passwords that people choose, keys that the server makes, each with groups and an expiry.

A password is hashed with scrypt. A key has 256 random bits, which nobody guesses: SHA-256 is enough, and costs a login nothing.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from typing import NamedTuple

from metastore.errors import InvalidInput, NoSuchObject
from metastore.service.call.context import Metastore
from metastore.service.call.identity import Login
from metastore.store.accounts import credentials, delegation_tokens
from metastore.store.accounts.credentials import Credential
from metastore.store.core.database import Database, Session

MIN_PASSWORD = 8
KEY_PREFIX = "mk_"
_N, _R, _P = 1 << 14, 8, 1
"""The cost of scrypt: 16 MiB and some 50 ms for each check."""
_VERIFIED_SECONDS = 60.0
_MAX_VERIFIED = 1000
_NOBODY = "scrypt$AAAAAAAAAAAAAAAAAAAAAA==$"
"""The hash for a user without a password: no password fits it, and its check costs the same time."""
_hashing = ThreadPoolExecutor(thread_name_prefix="hashing")
"""The threads that compute hashes. The C library keeps memory for each thread that has computed one, and a worker has a thread for each
client."""
_secret = secrets.token_bytes(32)
_verified: dict[bytes, float] = {}
"""The times of passed checks, by an HMAC of hash and password with a secret of this process: HTTP sends passwords with every request."""


class Revoked(NamedTuple):
    """The numbers of a user's passwords and keys, and of delegation tokens, that were removed."""

    credentials: int
    tokens: int
    """Delegation tokens of the user, and those that the user had got for others."""


def add(
    database: Database, user: str, password: str | None, groups: Sequence[str] = (), expires: int | None = None, comment: str | None = None
) -> str | None:
    """Store a user's password in place of an earlier one, or make a key in addition to others, and return the key.

    When an earlier password is replaced, the user's delegation tokens are removed: somebody else may have got them with that password.
    `expires` is in seconds since 1970. Raises InvalidInput for a short password or a name that no login can carry.
    """
    if not user or "\0" in user or ":" in user:
        raise InvalidInput(f"The user name {user!r} is empty or holds a colon or NUL; choose another")
    if password is not None and len(password) < MIN_PASSWORD:
        raise InvalidInput(f"The password of {user} has less than {MIN_PASSWORD} characters; choose a longer one")
    key = None if password is not None else KEY_PREFIX + secrets.token_urlsafe(32)
    kind = "password" if password is not None else "key"
    hashed = _scrypt(password, secrets.token_bytes(16)) if password is not None else _sha256(key or "")
    new = Credential(0, user, kind, hashed, tuple(groups), comment, int(time.time()), expires)

    def work(session: Session) -> None:
        if password is not None and credentials.delete_of_user(session, user, password_only=True):
            delegation_tokens.delete_of_user(session, user)
        credentials.insert(session, new)

    database.write(work)
    return key


def revoke(database: Database, user: str, credential_id: int | None = None) -> Revoked:
    """Remove one password or key of a user, or all of them, and the user's delegation tokens. Raises NoSuchObject if there is none."""

    def work(session: Session) -> Revoked:
        if credential_id is None:
            number = credentials.delete_of_user(session, user)
        else:
            owned = any(each.credential_id == credential_id for each in credentials.of_user(session, user))
            number = int(owned and credentials.delete(session, credential_id))
        return Revoked(number, delegation_tokens.delete_of_user(session, user) if number else 0)

    removed = database.write(work)
    if not removed.credentials:
        raise NoSuchObject(f"User {user} has no password or key{f' {credential_id}' if credential_id is not None else ''}")
    return removed


def check(metastore: Metastore, user: str, password: str, costly: AbstractContextManager[None]) -> Login | None:
    """Return the login of a user whose password or key fits; None if none does.

    A wrong or expired password and an unknown user all cost one hash, within `costly`: the time does not reveal whether a user exists.
    """
    found = metastore.database.read(lambda session: credentials.of_user(session, user))
    now = time.time()
    valid = [each for each in found if each.expires is None or each.expires > now]
    hashed = _sha256(password)
    fits = next((each for each in valid if each.kind == "key" and hmac.compare_digest(hashed, each.hash)), None)
    if fits is None:
        chosen = next((each for each in valid if each.kind == "password"), None)
        fits = chosen if _fits(_NOBODY if chosen is None else chosen.hash, password, costly) else None
    return None if fits is None else Login(user, "users", groups=fits.groups, credential=fits.credential_id)


def is_valid(metastore: Metastore, credential_id: int) -> bool:
    """Return whether the password or key of a login is neither revoked nor expired."""
    return metastore.database.read(lambda session: credentials.is_valid(session, credential_id, int(time.time())))


def _fits(stored: str, password: str, costly: AbstractContextManager[None]) -> bool:
    mark = hmac.digest(_secret, f"{stored}\0{password}".encode(), "sha256")
    if _is_verified(mark):
        return True
    with costly:
        if _is_verified(mark):  # by another login with the same password meanwhile
            return True
        salt = base64.b64decode(stored.split("$")[1])
        if not hmac.compare_digest(_hashing.submit(_scrypt, password, salt).result(), stored):
            return False
    if len(_verified) >= _MAX_VERIFIED:
        _verified.clear()
    _verified[mark] = time.monotonic()
    return True


def _is_verified(mark: bytes) -> bool:
    since = _verified.get(mark)
    return since is not None and time.monotonic() - since < _VERIFIED_SECONDS


def _sha256(key: str) -> str:
    return "sha256$" + hashlib.sha256(key.encode()).hexdigest()


def _scrypt(password: str, salt: bytes) -> str:
    hashed = hashlib.scrypt(password.encode(), salt=salt, n=_N, r=_R, p=_P, maxmem=64 << 20)
    return "$".join(("scrypt", base64.b64encode(salt).decode(), base64.b64encode(hashed).decode()))
