"""Keep delegation tokens and master keys of other servers, such as HiveServer2 with its DBTokenStore, as texts that only they read.

They are not related to the tokens of this server. Their reader can impersonate anybody at those servers. Therefore only the users of the
setting `delegation_token_store_users` may see or change them; Hive allows it to everybody.
"""

from __future__ import annotations

from metastore.errors import MetaError, NoSuchObject
from metastore.service.accounts.delegation_tokens import MECHANISM
from metastore.service.call.context import Call
from metastore.store.accounts import delegation_tokens


def _check(call: Call) -> None:
    login = call.client.login
    if login is None or login.mechanism == MECHANISM or login.user not in call.config.delegation_token_store_users:
        who = "a client without login" if login is None else f"{login.user} (by {login.mechanism})"
        raise MetaError(
            f"{call.method}: {who} may not see or change stored tokens and master keys; see the setting delegation_token_store_users"
        )


def _text(call: Call, value: str | None) -> str:
    if not value:
        raise MetaError(f"{call.method} needs a text")
    return value


def add_token(call: Call, identifier: str | None, token: str | None) -> bool:
    """Store a token; return whether it is new. MetaError for a caller without the right."""
    _check(call)
    key, text = _text(call, identifier), _text(call, token)
    return call.database.write(lambda session: delegation_tokens.add_foreign(session, key, text))


def remove_token(call: Call, identifier: str | None) -> bool:
    """Remove a token; return whether it existed. MetaError for a caller without the right."""
    _check(call)
    return call.database.write(lambda session: delegation_tokens.delete_foreign(session, identifier or ""))


def get_token(call: Call, identifier: str | None) -> str:
    """Return a token, "" if it is missing. MetaError for a caller without the right."""
    _check(call)
    return call.database.read(lambda session: delegation_tokens.find_foreign(session, identifier or "")) or ""


def get_identifiers(call: Call) -> list[str]:
    """Return the identifiers of all tokens. MetaError for a caller without the right."""
    _check(call)
    return call.database.read(delegation_tokens.foreign_identifiers)


def add_master_key(call: Call, key: str | None) -> int:
    """Store a key and return its number. MetaError for a caller without the right."""
    _check(call)
    text = _text(call, key)
    return call.database.write(lambda session: delegation_tokens.add_key(session, text))


def update_master_key(call: Call, number: int | None, key: str | None) -> None:
    """Change a key. NoSuchObject, MetaError for a caller without the right."""
    _check(call)
    text = _text(call, key)
    if not call.database.write(lambda session: delegation_tokens.update_key(session, number or 0, text)):
        raise NoSuchObject(f"No key found with keyId: {number}")


def remove_master_key(call: Call, number: int | None) -> bool:
    """Remove a key; return whether it existed. MetaError for a caller without the right."""
    _check(call)
    return call.database.write(lambda session: delegation_tokens.delete_key(session, number or 0))


def get_master_keys(call: Call) -> list[str]:
    """Return all keys. MetaError for a caller without the right."""
    _check(call)
    return call.database.read(delegation_tokens.keys)
