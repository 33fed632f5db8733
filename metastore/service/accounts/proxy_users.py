"""Decide whether a user may act for another.

A proxy user, such as an engine's own, may act for the users, and from the hosts, that the settings name. Source: Hadoop's
DefaultImpersonationProvider (`hadoop.proxyuser.NAME.hosts|users|groups`).
"""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Iterable, Mapping

from metastore.config import Config
from metastore.service.accounts.groups import groups_of

_PROPERTY = re.compile(r"hadoop\.proxyuser\.(.+)\.(hosts|users|groups)")
_KINDS = ("hosts", "users", "groups")
ANY = "*"


def rules(config: Config) -> dict[str, dict[str, set[str]]]:
    """Return for each proxy user its `hosts`, `users` and `groups`, from `proxy_users` and from Hadoop's properties."""
    found: dict[str, dict[str, set[str]]] = {}
    for name, allowed in config.proxy_users.items():
        found[name] = {kind: _texts(allowed.get(kind, ())) for kind in _KINDS}
    for name, value in config.other.items():
        if match := _PROPERTY.fullmatch(name):
            found.setdefault(match[1], {kind: set() for kind in _KINDS})[match[2]] |= _texts(value)
    return found


def _texts(value: str | Iterable[str]) -> set[str]:
    parts = value.split(",") if isinstance(value, str) else value
    return {part.strip() for part in parts if part.strip()}


def may_act_for(config: Config, real_user: str, user: str, address: str) -> bool:
    """Return whether a user who logged in may act for another from an address "host:port": the host must be allowed, and user or group."""
    allowed = rules(config).get(real_user)
    if allowed is None or not _host_fits(allowed["hosts"], address):
        return False
    if ANY in allowed["users"] or user in allowed["users"] or ANY in allowed["groups"]:
        return True
    return not allowed["groups"].isdisjoint(groups_of(config, user))


def _host_fits(hosts: set[str], address: str) -> bool:
    if ANY in hosts:
        return True
    ip = ipaddress.ip_address(address.rpartition(":")[0].strip("[]").partition("%")[0])
    return any(ip in network for host in hosts for network in _networks(host))


def _networks(host: str) -> Iterable[ipaddress.IPv4Network | ipaddress.IPv6Network]:
    """Return the addresses of a host in the settings: one address, a range such as 10.0.0.0/8, or all addresses of a name."""
    try:
        return [ipaddress.ip_network(host, strict=False)]
    except ValueError:
        pass
    try:
        found = {str(entry[4][0]) for entry in socket.getaddrinfo(host, None)}
    except OSError:
        return []
    return [ipaddress.ip_network(each.partition("%")[0]) for each in found]


def check(proxy_users: Mapping[str, object]) -> str | None:
    """Return the fault of the setting `proxy_users`, None if it has none."""
    for name, allowed in proxy_users.items():
        if not isinstance(allowed, Mapping) or not set(allowed) <= set(_KINDS):
            return f"proxy_users: {name} needs a table with hosts, users and groups, such as {{hosts = '10.0.0.0/8', groups = 'analysts'}}"
        for kind, value in allowed.items():
            if not isinstance(value, str) and not (isinstance(value, list) and all(isinstance(each, str) for each in value)):
                return f"proxy_users: {name}.{kind} is neither a text nor a list of texts"
    return None
