"""Passwords of a directory: bind as the user, then ask whether the user and the user's groups may log in.

Source: Hive's LdapAuthenticationProviderImpl and its filters, whose settings these are.
"""

from __future__ import annotations

import contextlib
import queue
import ssl
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

from metastore import log
from metastore.config import Config, ConfigError
from metastore.service.call.identity import Login, folded
from metastore.wire.auth.sasl import ClientRefused

try:
    import ldap3
    from ldap3.core.exceptions import LDAPException, LDAPInvalidCredentialsResult, LDAPInvalidDNSyntaxResult, LDAPNoSuchObjectResult
    from ldap3.utils.conv import escape_filter_chars
    from ldap3.utils.dn import escape_rdn

    from metastore.wire.auth.ldap_names import first_value, is_dn, lies_below, name_in_pattern
except ImportError as error:
    raise ConfigError("authentication by ldap needs a library: pip install '.[ldap]' in the checkout of metastore") from error

ldap3.set_config_parameter("POOLING_LOOP_TIMEOUT", 0)  # seconds that it sleeps before it raises an error if no server of a pool answers

AT_ONCE = 16
"""Passwords that the directory is asked about at one time."""
TIMEOUT = 10
"""Seconds for connecting and for each answer."""
MAX_POOLED = 5
"""Connections of the search account that are kept open."""


class LdapEntry(NamedTuple):
    """A user's entry. A directory finds it by other spellings too: all of them mean one user."""

    dn: str
    name: str
    """The user's name as the directory spells it, or as `folded` does where the entry can not be read."""


class _Tls(ldap3.Tls):  # type: ignore[misc]  # it has no types
    """TLS in which Python checks the certificate and its name: from Python 3.12 on ldap3 compares names itself, and accepts no address."""

    def __init__(self, authorities: str | None) -> None:
        super().__init__(validate=ssl.CERT_REQUIRED, ca_certs_file=authorities)
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        if authorities:
            self._context.load_verify_locations(authorities)
        else:
            self._context.load_default_certs()

    def wrap_socket(self, connection: Any, do_handshake: bool = False) -> None:
        """Encrypt the socket of a connection, as ldap3 asks for it."""
        connection.socket = self._context.wrap_socket(
            connection.socket, do_handshake_on_connect=do_handshake, server_hostname=connection.server.host
        )


class Ldap:
    """Checks passwords for all connections of a process. Safe for threads."""

    def __init__(self, config: Config) -> None:
        """Raises ConfigError for settings that do not fit together."""
        if not config.ldap_url:
            raise ConfigError("authentication by ldap needs ldap_url, such as ldaps://directory.example.com")
        if not (config.ldap_base_dn or config.ldap_domain or config.ldap_user_dn_pattern):
            raise ConfigError("authentication by ldap needs ldap_base_dn, ldap_user_dn_pattern or ldap_domain to find users")
        self._config = config
        tls = _Tls(config.ldap_ca)
        urls = [url for each in config.ldap_url for url in each.split()]  # Hive separates them with spaces
        servers = [ldap3.Server(url, tls=tls, connect_timeout=TIMEOUT, get_info=ldap3.NONE) for url in urls]
        self._servers = ldap3.ServerPool(servers, ldap3.FIRST, active=1, exhaust=60)
        self._search_connections: queue.LifoQueue[Any] = queue.LifoQueue(MAX_POOLED)

    def check(self, user: str, password: str, costly: AbstractContextManager[None]) -> Login | None:
        """Return the login of a user whose password and groups fit, None if one does not. Raises ClientRefused where no server answers.

        The directory is asked within `costly`.
        """
        name = self._short_name(user)
        if name is None:
            return None
        with costly:
            try:
                return self._searched(user, name, password) if self._config.ldap_bind_dn else self._tried(user, name, password)
            except LDAPException as error:
                log.get("metastore.login").error("no answer of LDAP", reason=str(error)[:500])
                raise ClientRefused("The directory (LDAP) with this server's users gives no answer; its log has the reason") from error

    def _short_name(self, user: str) -> str | None:
        """Return a user's name without its domain, or from a distinguished name; None for a domain that is not the setting's."""
        if is_dn(user):
            return first_value(user)[1]
        name, _, domain = user.partition("@")
        return name if not domain or domain.lower() == self._config.ldap_domain.lower() else None

    def _searched(self, user: str, name: str, password: str) -> Login | None:
        """Return the login of a user whom the account of the settings finds, None if the password or a filter does not fit."""
        with self._search_connection() as connection:
            entry = self._entry_below_bases(connection, user) if is_dn(user) else self._find(connection, name)
        # An unknown user is tried too: the time does not reveal whether a user exists.
        bound = self._bound(f"{self._config.ldap_guid_key}={escape_rdn(name)},{self._bases()[0]}" if entry is None else entry.dn, password)
        if bound is None:
            return None
        bound.unbind()
        if entry is None:
            return None
        with self._search_connection() as connection:
            return self._admitted(connection, entry)

    def _tried(self, user: str, name: str, password: str) -> Login | None:
        """Return the login of a user who binds by one of the names of the settings, None if the password or a filter does not fit."""
        for principal in self._principals(user):
            connection = self._bound(principal, password)
            if connection is not None:
                try:
                    entry = self._bound_entry(connection, principal, name)
                    return None if entry is None else self._admitted(connection, entry)
                finally:
                    connection.unbind()
        return None

    def _principals(self, user: str) -> list[str]:
        """Return the names to try to bind as."""
        config = self._config
        if is_dn(user) or "@" in user:
            return [user]
        if config.ldap_domain:
            return [f"{user}@{config.ldap_domain}"]
        return [pattern.replace("%s", escape_rdn(user)) for pattern in self._patterns()]

    def _bound_entry(self, connection: Any, principal: str, name: str) -> LdapEntry | None:
        """Return the entry as which a connection is bound; None where the settings do not accept the entry as a user's."""
        if not is_dn(principal):
            return self._find(connection, name) or LdapEntry(principal, folded(name))
        named = next(filter(None, (name_in_pattern(principal, pattern) for pattern in self._patterns())), None)
        if named is None:
            return self._entry_below_bases(connection, principal)
        return self._entry_at(connection, principal) or LdapEntry(principal, named)

    def _patterns(self) -> list[str]:
        config = self._config
        default = f"{config.ldap_guid_key}=%s,{config.ldap_base_dn}" if config.ldap_base_dn else ""
        return [each for each in (config.ldap_user_dn_pattern or default).split(":") if each]

    def _bases(self) -> list[str]:
        """Return the entries below which users are searched."""
        return _bases(self._config.ldap_user_dn_pattern) or [self._config.ldap_base_dn]

    def _bound(self, dn: str, password: str) -> Any:
        """Return a connection that is bound, None if the password is wrong. Raises LDAPException."""
        connection = ldap3.Connection(
            self._servers, user=dn, password=password, receive_timeout=TIMEOUT, raise_exceptions=True, client_strategy=ldap3.SAFE_SYNC,
            auto_referrals=False,
        )  # fmt: skip
        connection.open()
        if self._config.ldap_start_tls:
            connection.start_tls()
        try:
            connection.bind()
        except (LDAPInvalidCredentialsResult, LDAPInvalidDNSyntaxResult, LDAPNoSuchObjectResult):
            connection.unbind()
            return None
        return connection

    @contextlib.contextmanager
    def _search_connection(self) -> Iterator[Any]:
        """Lend a connection of the search account; one that failed is not kept."""
        try:
            connection = self._search_connections.get_nowait()
            if connection.closed or not connection.bound:
                connection = None
        except queue.Empty:
            connection = None
        if connection is None:
            connection = self._bound(self._config.ldap_bind_dn or "", self._config.ldap_bind_password or "")
            if connection is None:
                raise LDAPException("the password of ldap_bind_dn is wrong")
        yield connection
        try:
            self._search_connections.put_nowait(connection)
        except queue.Full:
            connection.unbind()

    def _find(self, connection: Any, name: str) -> LdapEntry | None:
        """Return the entry of a user, None if there is not exactly one."""
        for base in self._bases():
            found = _search(connection, base, self._query(escape_filter_chars(name)), (self._config.ldap_guid_key,)) if base else []
            if len(found) == 1:
                return self._entry(found[0], name) or LdapEntry(str(found[0]["dn"]), folded(name))
        return None

    def _entry_below_bases(self, connection: Any, dn: str) -> LdapEntry | None:
        """Return the entry of a distinguished name if users are searched there, and the search finds it; else None."""
        return self._entry_at(connection, dn) if any(lies_below(dn, base) for base in self._bases()) else None

    def _entry_at(self, connection: Any, dn: str) -> LdapEntry | None:
        """Return the user's entry of a distinguished name; None where the connection finds none, or one without a clear name."""
        found = _search(connection, dn, self._query("*"), (self._config.ldap_guid_key,), scope=ldap3.BASE)
        kind, value = first_value(dn)
        return self._entry(found[0], value if kind == self._config.ldap_guid_key.lower() else "") if found else None

    def _query(self, name: str) -> str:
        """Return the filter of users of a name. The name is in the syntax of filters: `*` means any."""
        config = self._config
        query = (
            config.ldap_user_search_filter
            or f"(&(|(objectClass=person)(objectClass=user)(objectClass=inetOrgPerson))({config.ldap_guid_key}=%s))"
        )
        return query.replace("{0}", "%s").replace("%s", name)

    def _entry(self, found: dict[str, Any], name: str) -> LdapEntry | None:
        """Return a found entry with its name that equals `name`, else with its only name; None where it has neither."""
        names = [str(each) for each in found["attributes"].get(self._config.ldap_guid_key, ())]
        own = next((each for each in names if folded(each) == folded(name)), names[0] if len(names) == 1 else None)
        return None if own is None else LdapEntry(str(found["dn"]), own)

    def _admitted(self, connection: Any, entry: LdapEntry) -> Login | None:
        """Return the login of a user whom the filters admit, None for another one."""
        groups = self._groups_admitted(connection, *entry)
        return None if groups is None else Login(entry.name, "ldap", groups=groups)

    def _groups_admitted(self, connection: Any, dn: str, name: str) -> tuple[str, ...] | None:
        """Return the groups of a user whom the filters admit, None for another one."""
        config = self._config
        if config.ldap_custom_query:
            found = _search(connection, config.ldap_base_dn, config.ldap_custom_query, (config.ldap_group_membership_key,))
            members = {_lower(each["dn"]) for each in found} | {
                _lower(member) for each in found for member in each["attributes"].get(config.ldap_group_membership_key, ())
            }
            return self._groups(connection, dn, name) if _lower(dn) in members else None
        if config.ldap_user_filter and name.lower() not in {each.lower() for each in config.ldap_user_filter}:
            return None
        groups = self._groups(connection, dn, name)
        if config.ldap_group_filter and {each.lower() for each in groups}.isdisjoint(each.lower() for each in config.ldap_group_filter):
            return None
        return groups

    def _groups(self, connection: Any, dn: str, name: str) -> tuple[str, ...]:
        """Return the short names of a user's groups: by the user's own attribute, else by the groups' members."""
        config = self._config
        if config.ldap_user_membership_key:
            found = _search(connection, dn, "(objectClass=*)", (config.ldap_user_membership_key,), scope=ldap3.BASE)
            return tuple(first_value(group)[1] for each in found for group in each["attributes"].get(config.ldap_user_membership_key, ()))
        bases = _bases(config.ldap_group_dn_pattern) or [each for each in (config.ldap_group_base_dn or config.ldap_base_dn,) if each]
        member = config.ldap_group_membership_key
        query = config.ldap_group_search_filter or f"(&(objectClass={config.ldap_group_class_key})(|({member}={{0}})({member}={{1}})))"
        query = query.replace("{0}", escape_filter_chars(dn)).replace("{1}", escape_filter_chars(name))
        return tuple(first_value(str(each["dn"]))[1] for base in bases for each in _search(connection, base, query, ()))


def _search(connection: Any, base: str, query: str, attributes: tuple[str, ...], scope: str = ldap3.SUBTREE) -> list[dict[str, Any]]:
    """Return the entries below `base` that the query matches, none for a missing base. Raises LDAPException."""
    try:
        _, _, found, _ = connection.search(base, query, scope, attributes=list(attributes) or ldap3.NO_ATTRIBUTES)
    except (LDAPNoSuchObjectResult, LDAPInvalidDNSyntaxResult):
        return []
    return [each for each in found or () if each.get("type") == "searchResEntry"]


def _bases(patterns: str) -> list[str]:
    """Return the parents of the entries in patterns such as `uid=%s,ou=people,dc=example`, which are separated by colons."""
    return [pattern.partition(",")[2] for pattern in patterns.split(":") if "," in pattern]


def _lower(dn: str) -> str:
    return dn.replace(", ", ",").lower()
