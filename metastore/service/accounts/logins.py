"""The user for whom a client's calls act: after a login, and after `set_ugi`. It never checks a credential."""

from __future__ import annotations

from collections.abc import Sequence

from metastore import log
from metastore.config import Config
from metastore.errors import MetaError
from metastore.service.accounts.groups import groups_of
from metastore.service.accounts.proxy_users import may_act_for
from metastore.service.call.context import Call, Client
from metastore.service.call.identity import Login


def admit(config: Config, client: Client, login: Login) -> None:
    """Accept a client as the user whom its login proved."""
    client.login = login
    client.user = login.user
    client.groups = list(groups_of(config, login.user) if login.groups is None else login.groups)


def set_ugi(call: Call, user: str | None, groups: Sequence[str] | None) -> list[str]:
    """Take the user whom a client names, and return the user's groups; after a login the user's name is the last of them, as in Java.

    Without a login the name is accepted. With one it must be the login's user, or a user for whom that user may act: else MetaError.
    """
    client, login = call.client, call.client.login
    if login is None:
        client.user, client.groups = user, list(groups or ())
        return list(client.groups)
    if user is not None and user != client.user:
        _act_for(call, client, login, user)
    return [*client.groups, client.user or login.user]


def _act_for(call: Call, client: Client, login: Login, user: str) -> None:
    if user == login.user:
        admit(call.metastore.config, client, login)
    elif may_act_for(call.metastore.config, login.user, user, client.address):
        client.user, client.groups = user, list(groups_of(call.metastore.config, user))
    elif call.metastore.config.set_ugi_mismatch == "ignore":
        log.get("metastore.login").warning("set_ugi ignored", client=client.address, named=user[:300], user=client.user)
    else:
        raise MetaError(
            f"set_ugi names {user[:300]}, but this connection is logged in as {login.user} by {login.mechanism}: name {login.user}, "
            f"or allow {login.user} to act for others in the setting proxy_users"
        )
