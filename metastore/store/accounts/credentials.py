"""Rows of the server's own users: passwords and keys, hashed. One function per statement; it never hashes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from metastore.store.core.clauses import constant
from metastore.store.core.database import Session
from metastore.store.drivers.contract import Row
from metastore.store.schema.model import credentials

CREDENTIAL = credentials.c
OF_USER = sa.select(credentials).where(CREDENTIAL.user_name == sa.bindparam("name")).order_by(CREDENTIAL.id)
ALL = sa.select(credentials).order_by(CREDENTIAL.user_name, CREDENTIAL.id)
VALID = sa.select(CREDENTIAL.id).where(
    CREDENTIAL.id == sa.bindparam("key"), sa.or_(CREDENTIAL.expire_time.is_(None), CREDENTIAL.expire_time > sa.bindparam("now"))
)
HOLD = sa.select(CREDENTIAL.expire_time).where(CREDENTIAL.id == sa.bindparam("key")).with_for_update(read=True)
DELETE = sa.delete(credentials).where(CREDENTIAL.id == sa.bindparam("key"))
DELETE_OF_USER = sa.delete(credentials).where(CREDENTIAL.user_name == sa.bindparam("name"))
DELETE_PASSWORD = sa.delete(credentials).where(CREDENTIAL.user_name == sa.bindparam("name"), CREDENTIAL.kind == constant("password"))


@dataclass(frozen=True, slots=True)
class Credential:
    """One password or key; times are in seconds since 1970."""

    credential_id: int
    user: str
    kind: str
    """"password" or "key"."""
    hash: str
    groups: tuple[str, ...]
    comment: str | None
    created: int
    expires: int | None


def _credentials(rows: Sequence[Row]) -> list[Credential]:
    return [
        Credential(credential_id, user, kind, hashed, tuple(json.loads(groups)), comment, created, expires)
        for credential_id, user, kind, hashed, groups, comment, created, expires in rows
    ]


def of_user(session: Session, user: str) -> list[Credential]:
    """Return a user's passwords and keys, expired ones too."""
    return _credentials(session.rows(OF_USER, name=user))


def everybody(session: Session) -> list[Credential]:
    """Return the passwords and keys of all users, ascending by user."""
    return _credentials(session.rows(ALL))


def is_valid(session: Session, credential_id: int, now: int) -> bool:
    """Return whether a password or key is there and has not expired."""
    return session.exists(VALID, key=credential_id, now=now)


def hold(session: Session, credential_id: int) -> tuple[int | None] | None:
    """Lock a password or key until the session ends. Return its time of expiry as a tuple of one, or None if it does not exist."""
    row = session.row(HOLD, key=credential_id)
    return None if row is None else (row[0],)


def insert(session: Session, new: Credential) -> None:
    """Add a password or key; the database numbers it."""
    session.insert(
        credentials, user_name=new.user, kind=new.kind, hash=new.hash, groups=json.dumps(new.groups), comment=new.comment,
        create_time=new.created, expire_time=new.expires,
    )  # fmt: skip


def delete(session: Session, credential_id: int) -> bool:
    """Remove a password or key; return whether it existed."""
    return session.execute(DELETE, key=credential_id) > 0


def delete_of_user(session: Session, user: str, *, password_only: bool = False) -> int:
    """Remove a user's passwords and keys, or the password alone; return the number of removed ones."""
    return session.execute(DELETE_PASSWORD if password_only else DELETE_OF_USER, name=user)
