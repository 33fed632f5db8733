"""Delegation tokens: issue them to clients that logged in by another mechanism, renew and cancel them, and find the user of one at login.

A token's password is random and stored. No master key signs a token: access to the database is access to the tokens. Every worker and
server reads the database at each login. A token is therefore valid everywhere at once, and a cancelled one nowhere. Source: Hive's
MetastoreDelegationTokenManager, Hadoop's AbstractDelegationTokenSecretManager.
"""

from __future__ import annotations

import hmac
import math
import secrets
from dataclasses import dataclass
from functools import lru_cache

import structlog

from metastore.config import Config
from metastore.errors import InvalidInput, MetaError, NoSuchObject
from metastore.rules.accounts.delegation_tokens import DelegationToken, Identifier, read_identifier, read_token
from metastore.rules.accounts.kerberos_names import NameRules, parse_principal
from metastore.service.accounts.proxy_users import may_act_for
from metastore.service.authorizer import ADMINISTER, SERVER, Access, Who
from metastore.service.call.clock import now_ms
from metastore.service.call.context import Call, Metastore
from metastore.service.call.identity import Login
from metastore.store.accounts import credentials, delegation_tokens
from metastore.store.accounts.delegation_tokens import StoredToken
from metastore.store.core.database import Database, Session

log = structlog.get_logger()

MECHANISM = "token"
_PASSWORD_SIZE = 20
"""Bytes of a token's password, the same number as Hadoop's."""
_LONGEST_NAME = 256
_BATCH = 1000


@dataclass(frozen=True, slots=True)
class ValidToken:
    """A valid token: its password, and the user who logs in with it."""

    password: bytes
    login: Login


def issue(call: Call, owner: str | None, renewer: str | None) -> str:
    """Return the text of a new token. MetaError without a login, for one by a token, and for an owner for whom it may not act."""
    if MECHANISM not in call.config.authentication:
        raise MetaError("This server issues no delegation tokens because it accepts none: add token to its setting authentication")
    login = _proved(call, "gets")
    wanted = _short_name(call.config, owner or login.user)
    if wanted not in (login.user, call.client.user) and not may_act_for(call.config, login.user, wanted, call.client.address):
        raise MetaError(
            f"{login.user} gets no delegation token of {wanted}: it may not act for {wanted}; allow that in the setting proxy_users"
        )
    by = _short_name(call.config, renewer or "")
    if max(len(wanted), len(by)) > _LONGEST_NAME:
        raise MetaError(f"Owner and renewer of a delegation token have at most {_LONGEST_NAME} characters")
    now, config = now_ms(), call.config
    real_user = login.real_user or login.user
    on_behalf = "" if real_user == wanted else real_user

    def work(session: Session) -> DelegationToken:
        last = int(min(now + config.delegation_token_max_lifetime * 1000, _end_of(session, login)))
        # Spark requests tokens with the metastore itself as renewer. They need no renewal: Hive's server renews them at each login.
        until = last if by and by == _own_name(config) else min(last, now + int(config.delegation_token_renew_interval * 1000))
        stored = StoredToken(secrets.token_bytes(_PASSWORD_SIZE), wanted, by, on_behalf, until, last)
        identifier = Identifier(wanted, by, on_behalf, now, last, secrets.randbits(31)).to_bytes()
        delegation_tokens.insert(session, identifier, stored)
        return DelegationToken(identifier, stored.password)

    token = call.database.write(work)
    log.info("delegation token issued", owner=wanted, renewer=by, real_user=on_behalf, client=call.client.address)
    return token.to_text()


def _end_of(session: Session, login: Login) -> float:
    """Lock a login's password or key until the session ends; return the end of its validity, in milliseconds. MetaError."""
    if login.credential is None:
        return math.inf
    found = credentials.hold(session, login.credential)
    if found is None or (found[0] is not None and found[0] * 1000 <= now_ms()):
        raise MetaError(f"The password or key of {login.real_user or login.user} was revoked or has expired; log in with another")
    return math.inf if found[0] is None else found[0] * 1000


def renew(call: Call, text: str | None) -> int:
    """Make a token valid for another interval; return its new end, in milliseconds since 1970. MetaError except for its renewer."""
    login, token = _proved(call, "renews"), _read(text)
    now = now_ms()

    def work(session: Session) -> int:
        stored = delegation_tokens.find(session, token.identifier)
        if stored is None or stored.max_date < now:
            raise MetaError("The delegation token does not exist: it was cancelled or has expired; get a new one")
        if not hmac.compare_digest(stored.password, token.password):
            raise MetaError(f"The password of the delegation token of {stored.owner} is wrong")
        if not stored.renewer or stored.renewer != login.user:
            raise MetaError(
                f"{login.user} can not renew the delegation token of {stored.owner}: its renewer is {stored.renewer or 'nobody'}"
            )
        until = min(stored.max_date, now + int(call.config.delegation_token_renew_interval * 1000))
        delegation_tokens.renew(session, token.identifier, max(until, stored.valid_until))
        return max(until, stored.valid_until)

    return call.database.write(work)


def cancel(call: Call, text: str | None) -> None:
    """Remove a token: nobody can log in with it any more. A missing one is not an error.

    MetaError except for its owner, its renewer, the user who got it for the owner, and admins.
    """
    login, token = call.client.login, _read(text)
    if login is None:
        raise MetaError("Only the owner or renewer of a delegation token, the user who got it, or an admin can cancel it: log in")
    may_all = _administers(call)

    def work(session: Session) -> None:
        stored = delegation_tokens.find(session, token.identifier)
        if stored is not None and not may_all and login.user not in (stored.owner, stored.renewer, stored.real_user):
            raise MetaError(
                f"{login.user} can not cancel the delegation token of {stored.owner}: only its owner, the user who got it, admins and "
                f"its renewer can; the renewer is {stored.renewer or 'nobody'}"
            )
        delegation_tokens.delete(session, token.identifier)

    call.database.write(work)
    log.info("delegation token cancelled", user=login.user, client=call.client.address)


def _administers(call: Call) -> bool:
    """Return whether the caller may administer the server as a whole."""
    authorizer = call.metastore.authorizer
    if authorizer is None:
        return call.client.user in call.config.admin_users
    return authorizer.allowed(Who(call.client.user, tuple(call.client.groups)), (Access(ADMINISTER, SERVER),))[0] is True


def revoke(database: Database, user: str, key: str | None = None) -> int:
    """Remove a user's tokens and the ones that the user got for others, or one of them by a prefix of its key; return their number.

    NoSuchObject where there is none, InvalidInput for a prefix of several keys.
    """

    def work(session: Session) -> int:
        if key is None:
            return delegation_tokens.delete_of_user(session, user)
        keys = [each.key for each in delegation_tokens.of_users(session, user) if each.key.startswith(key)]
        if len(keys) > 1:
            raise InvalidInput(f"{len(keys)} delegation tokens of {user} begin with {key}: give a longer prefix")
        delegation_tokens.delete_many(session, keys)
        return len(keys)

    number = database.write(work)
    if not number:
        raise NoSuchObject(f"User {user} has no delegation token{f' {key}' if key is not None else ''}, and got none for others")
    return number


def is_there(metastore: Metastore, key: str) -> bool:
    """Return whether the token of a login was neither cancelled nor removed after its end."""
    return metastore.database.read(lambda session: delegation_tokens.is_there(session, key))


def find_valid(metastore: Metastore, identifier: bytes) -> ValidToken:
    """Return the token of an identifier. MetaError for one that is not there, was cancelled or has expired."""
    stored = metastore.database.read(lambda session: delegation_tokens.find(session, identifier))
    if stored is None:
        raise MetaError(f"The delegation token{_described(identifier)} does not exist: it was cancelled or has expired; get a new one")
    if stored.valid_until < now_ms():
        raise MetaError(
            f"The delegation token{_described(identifier)} has expired: let its renewer {stored.renewer} renew it, or get a new one"
        )
    login = Login(stored.owner, MECHANISM, real_user=stored.real_user or None, token=delegation_tokens.key_of(identifier))
    return ValidToken(stored.password, login)


def delete_expired(metastore: Metastore, _: int | None = None) -> int:
    """Remove the tokens that nobody can renew any more, and return their number: the periodic job."""
    database, count = metastore.database, 0
    while keys := database.read(lambda session: delegation_tokens.expired(session, now_ms(), _BATCH)):
        database.write(lambda session, keys=keys: delegation_tokens.delete_many(session, keys))  # type: ignore[misc]  # bound now
        count += len(keys)
    return count


def _proved(call: Call, does: str) -> Login:
    login = call.client.login
    if login is None:
        raise MetaError(f"Nobody {does} delegation tokens without a login: this connection has none; connect with one, such as Kerberos")
    if login.mechanism == MECHANISM:
        raise MetaError(f"Nobody {does} delegation tokens after a login with such a token: log in by Kerberos or a password")
    return login


def _read(text: str | None) -> DelegationToken:
    try:
        return read_token(text or "")
    except InvalidInput as error:
        raise MetaError(error.message) from error


def _described(identifier: bytes) -> str:
    try:
        return f" of {read_identifier(identifier).owner[:_LONGEST_NAME]}"
    except InvalidInput:
        return ""


@lru_cache(maxsize=8)
def _rules(principal: str, text: str) -> NameRules:
    return NameRules(text, parse_principal(principal).realm or "")


def _short_name(config: Config, name: str) -> str:
    """Return the short name of a principal, where there is Kerberos; else the name as it is. MetaError."""
    if config.kerberos_principal is None or not {"/", "@"} & set(name):
        return name
    try:
        return _rules(config.kerberos_principal, config.kerberos_name_rules).short_name(name)
    except InvalidInput as error:
        raise MetaError(error.message) from error


def _own_name(config: Config) -> str:
    """Return the short name of the server itself, "" if it has none."""
    try:
        return _short_name(config, config.kerberos_principal or "")
    except MetaError:
        return ""
