"""Rows of delegation tokens, and of other servers' own tokens and keys. One function per statement; it never checks a password.

A token is found by the SHA-256 of its identifier. Passwords and keys are as readable as the database is.
"""

from __future__ import annotations

import hashlib
from base64 import b64decode, b64encode
from dataclasses import dataclass

import sqlalchemy as sa

from metastore.store.core.clauses import Among
from metastore.store.core.database import Session
from metastore.store.schema.model import delegation_tokens, foreign_master_keys, foreign_tokens

TOKEN, FOREIGN_TOKEN, MASTER_KEY = delegation_tokens.c, foreign_tokens.c, foreign_master_keys.c
HASH: sa.BindParameter[str] = sa.bindparam("key")
FIND = sa.select(TOKEN.password, TOKEN.owner, TOKEN.renewer, TOKEN.real_user, TOKEN.valid_until, TOKEN.max_date).where(TOKEN.hash == HASH)
RENEW = sa.update(delegation_tokens).where(TOKEN.hash == HASH).values(valid_until=sa.bindparam("until"))
DELETE = sa.delete(delegation_tokens).where(TOKEN.hash == HASH)
IS_THERE = sa.select(TOKEN.hash).where(TOKEN.hash == HASH)
OF_USER = sa.or_(TOKEN.owner == sa.bindparam("name"), TOKEN.real_user == sa.bindparam("name"))
LIST = sa.select(TOKEN.hash, TOKEN.owner, TOKEN.renewer, TOKEN.real_user, TOKEN.valid_until, TOKEN.max_date).order_by(
    TOKEN.max_date, TOKEN.hash
)
LIST_OF_USER = LIST.where(OF_USER)
DELETE_OF_USER = sa.delete(delegation_tokens).where(OF_USER)
EXPIRED = sa.select(TOKEN.hash).where(TOKEN.max_date < sa.bindparam("now")).limit(sa.bindparam("most"))
DELETE_MANY = sa.delete(delegation_tokens).where(Among(TOKEN.hash, "keys"))

FIND_FOREIGN = sa.select(FOREIGN_TOKEN.token).where(FOREIGN_TOKEN.hash == HASH)
FOREIGN_IDENTIFIERS = sa.select(FOREIGN_TOKEN.identifier).order_by(FOREIGN_TOKEN.hash)
DELETE_FOREIGN = sa.delete(foreign_tokens).where(FOREIGN_TOKEN.hash == HASH)
KEYS = sa.select(MASTER_KEY.body).order_by(MASTER_KEY.id)
UPDATE_KEY = sa.update(foreign_master_keys).where(MASTER_KEY.id == sa.bindparam("number")).values(body=sa.bindparam("text"))
DELETE_KEY = sa.delete(foreign_master_keys).where(MASTER_KEY.id == sa.bindparam("number"))


@dataclass(frozen=True, slots=True)
class StoredToken:
    """A token that was issued; times are in milliseconds since 1970."""

    password: bytes
    owner: str
    renewer: str
    real_user: str
    valid_until: int
    """The end of its validity, unless it is renewed."""
    max_date: int


@dataclass(frozen=True, slots=True)
class ListedToken:
    """A token as it may be listed; times are in milliseconds since 1970."""

    key: str
    owner: str
    renewer: str
    real_user: str
    valid_until: int
    max_date: int


def key_of(identifier: bytes) -> str:
    """Return the key by which the token of an identifier is found."""
    return hashlib.sha256(identifier).hexdigest()


def insert(session: Session, identifier: bytes, token: StoredToken) -> None:
    """Add a token."""
    password = b64encode(token.password).decode()
    session.insert(
        delegation_tokens, hash=key_of(identifier), password=password, owner=token.owner, renewer=token.renewer, real_user=token.real_user,
        valid_until=token.valid_until, max_date=token.max_date,
    )  # fmt: skip


def find(session: Session, identifier: bytes) -> StoredToken | None:
    """Return the token of an identifier, also an expired one; None if there is none."""
    row = session.row(FIND, key=key_of(identifier))
    return None if row is None else StoredToken(b64decode(row[0]), *row[1:])


def renew(session: Session, identifier: bytes, until: int) -> None:
    """Let a token be valid until a time in milliseconds."""
    session.execute(RENEW, key=key_of(identifier), until=until)


def delete(session: Session, identifier: bytes) -> None:
    """Remove a token if it is there."""
    session.execute(DELETE, key=key_of(identifier))


def is_there(session: Session, key: str) -> bool:
    """Return whether a token is there: it was not cancelled, nor removed some time after its end."""
    return session.exists(IS_THERE, key=key)


def of_users(session: Session, user: str | None) -> list[ListedToken]:
    """Return the tokens of a user and those that the user got for others, or without a user all tokens, ascending by `max_date`."""
    return [ListedToken(*row) for row in (session.rows(LIST) if user is None else session.rows(LIST_OF_USER, name=user))]


def delete_of_user(session: Session, user: str) -> int:
    """Remove the tokens of a user, and those that the user got for others; return the number of removed ones."""
    return session.execute(DELETE_OF_USER, name=user)


def expired(session: Session, now: int, most: int) -> list[str]:
    """Return the keys of some tokens that nobody can renew any more."""
    return session.column(EXPIRED, now=now, most=most)


def delete_many(session: Session, keys: list[str]) -> None:
    """Remove tokens by their keys."""
    session.execute(DELETE_MANY, keys=keys)


def add_foreign(session: Session, identifier: str, token: str) -> bool:
    """Store a token of another server; return whether it is new."""
    key = key_of(identifier.encode())
    if session.exists(FIND_FOREIGN, key=key):
        return False
    session.insert(foreign_tokens, hash=key, identifier=identifier, token=token)
    return True


def find_foreign(session: Session, identifier: str) -> str | None:
    """Return a token of another server; None if there is none."""
    row = session.row(FIND_FOREIGN, key=key_of(identifier.encode()))
    return None if row is None else str(row[0])


def delete_foreign(session: Session, identifier: str) -> bool:
    """Remove a token of another server; return whether it existed."""
    return session.execute(DELETE_FOREIGN, key=key_of(identifier.encode())) > 0


def foreign_identifiers(session: Session) -> list[str]:
    """Return the identifiers of all tokens of other servers."""
    return session.column(FOREIGN_IDENTIFIERS)


def add_key(session: Session, text: str) -> int:
    """Keep a master key of another server and return its number."""
    return session.insert_keyed(foreign_master_keys, body=text).key


def update_key(session: Session, number: int, text: str) -> bool:
    """Change a master key of another server; return whether it existed."""
    return session.execute(UPDATE_KEY, number=number, text=text) > 0


def delete_key(session: Session, number: int) -> bool:
    """Remove a master key of another server; return whether it existed."""
    return session.execute(DELETE_KEY, number=number) > 0


def keys(session: Session) -> list[str]:
    """Return the master keys of other servers, ascending by number."""
    return session.column(KEYS)
