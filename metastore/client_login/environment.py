"""Choose a login by variables of the environment, so that the programs which a program starts log in as it does. It never logs in itself.

METASTORE_CLIENT_LOGIN       kerberos, token, plain, jwt (over HTTP) or none; unset: token if HADOOP_TOKEN_FILE_LOCATION is set, else none
METASTORE_CLIENT_PRINCIPAL   the server's Kerberos principal; unset: hive/_HOST
METASTORE_CLIENT_KEYTAB      keytab to log in from, with the user's principal in METASTORE_CLIENT_USER; unset: the cache of tickets
METASTORE_CLIENT_TOKEN       the text of a delegation token; unset: the token in the file HADOOP_TOKEN_FILE_LOCATION
METASTORE_CLIENT_USER, METASTORE_CLIENT_PASSWORD    user and password of plain
METASTORE_CLIENT_JWT         the JSON web token; unset: HMS_JWT, which Hive's client takes
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from metastore.client_login.bearer import Bearer
from metastore.client_login.negotiation import ClientLogin, LoginError
from metastore.client_login.plain import Plain
from metastore.client_login.token import VARIABLE, Token
from metastore.config import ConfigError

PREFIX = "METASTORE_CLIENT_"


def from_environment(environment: Mapping[str, str] = os.environ) -> ClientLogin | Bearer | None:
    """Return the login that the variables describe, None if they describe none. LoginError if one is missing or does not fit."""

    def get(name: str) -> str | None:
        return environment.get(PREFIX + name) or None

    kind = get("LOGIN")
    if kind == "none" or (kind is None and not environment.get(VARIABLE)):
        return None
    if kind is None:
        return _of_hadoop(environment)
    if kind == "token":
        text = get("TOKEN")
        token = Token(text) if text else Token.from_environment(environment)
        if token is None:
            raise LoginError(f"{PREFIX}LOGIN=token needs {PREFIX}TOKEN or {VARIABLE}")
        return token
    if kind == "plain":
        user, password = get("USER"), get("PASSWORD")
        if user is None or password is None:
            raise LoginError(f"{PREFIX}LOGIN=plain needs {PREFIX}USER and {PREFIX}PASSWORD")
        return Plain(user, password)
    if kind == "jwt":
        text = get("JWT") or environment.get("HMS_JWT")
        if not text:
            raise LoginError(f"{PREFIX}LOGIN=jwt needs {PREFIX}JWT or HMS_JWT")
        return Bearer(text)
    if kind == "kerberos":
        try:
            from metastore.client_login.kerberos import Kerberos
        except ConfigError as error:
            raise LoginError(str(error)) from error
        return Kerberos(principal=get("PRINCIPAL") or Kerberos.principal, user=get("USER"), keytab=get("KEYTAB"))
    raise LoginError(f"{PREFIX}LOGIN={kind} is unknown: use kerberos, token, plain, jwt or none")


def _of_hadoop(environment: Mapping[str, str]) -> Token | None:
    """Return the metastore's token in Hadoop's file; None if there is none in it: the file may be for another service."""
    try:
        return Token.from_environment(environment)
    except LoginError:
        return None
