"""Choose the mechanism of a login among those that the setting `authentication` names. It checks no credential itself."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from metastore.config import Config, ConfigError
from metastore.errors import MetaError
from metastore.service.accounts import delegation_tokens, logins, proxy_users, users
from metastore.service.accounts.delegation_tokens import ValidToken
from metastore.service.call.context import Client, Metastore
from metastore.service.call.identity import Login
from metastore.wire.auth.certificate import user_of
from metastore.wire.auth.digest.digest_md5 import DigestMd5Login, check_protection
from metastore.wire.auth.passwords import Passwords, PasswordStore
from metastore.wire.auth.plain import PlainLogin
from metastore.wire.auth.sasl import ClientRefused, Mechanism
from metastore.wire.sockets.addresses import is_loopback

ANONYMOUS = "anonymous"
UNPROTECTED = ("authentication",)


@dataclass(frozen=True, slots=True)
class Peer:
    """The other end of a connection."""

    address: str
    """"host:port"."""
    encrypted: bool = False
    login: Login | None = None
    """The login that the client's certificate proved."""

    @property
    def private(self) -> bool:
        """Whether nobody on the way can read the connection: with TLS, or within this machine."""
        return self.encrypted or is_loopback(self.address.rpartition(":")[0])


class Authenticator:
    """Accepts the logins of clients; one for all connections of a process."""

    def __init__(self, config: Config, metastore: Metastore | None) -> None:
        """`metastore` holds the users and tokens; only logins by these need it.

        Raises ConfigError for settings that do not fit together, or for a library that is not installed.
        """
        self._config = config
        self._metastore = metastore
        self.offered = config.authentication or (ANONYMOUS,)
        self.anonymous = ANONYMOUS in self.offered
        if wrong := proxy_users.check(config.proxy_users):
            raise ConfigError(wrong)
        if "certificate" in self.offered and not (config.tls_certificate and config.tls_client_ca):
            raise ConfigError("authentication by certificate needs tls_certificate and tls_client_ca")
        if config.tls_client_crl and not config.tls_client_ca:
            raise ConfigError("tls_client_crl lists revoked certificates of the authorities in tls_client_ca; set that, too")
        stores: list[PasswordStore] = []
        if metastore is None and (kept := {"users", "token"}.intersection(self.offered)):
            raise ConfigError(f"authentication by {' and '.join(sorted(kept))} needs a metastore's own database, which is missing here")
        if "users" in self.offered and metastore is not None:
            cores = os.cpu_count() or 1
            stores.append(PasswordStore(lambda *tried: users.check(metastore, *tried), max(1, cores // (config.workers or cores))))
        if "ldap" in self.offered:
            from metastore.wire.auth.ldap import AT_ONCE, Ldap

            stores.append(PasswordStore(Ldap(config).check, AT_ONCE))
        self.passwords = Passwords(stores, config.login_failures, config.login_failures_period) if stores else None
        self._sasl: dict[str, Callable[[Peer], Mechanism]] = {}
        if self.passwords is not None:
            self._sasl["PLAIN"] = self._plain
        if "kerberos" in self.offered:
            self._sasl["GSSAPI"] = self._kerberos()
        if "token" in self.offered and metastore is not None:
            self._sasl["DIGEST-MD5"] = self._token(metastore)
        self.bearer: Callable[[str], Login] | None = None
        """Checks a token of HTTP; None if `jwt` is not offered. It raises ClientRefused."""
        if "jwt" in self.offered:
            from metastore.wire.auth.jwt import Tokens

            self.bearer = Tokens(config).check

    def mechanism(self, name: str, peer: Peer) -> Mechanism:
        """Return the server's side of a SASL login. Raises ClientRefused for a mechanism that is not offered."""
        make = self._sasl.get(name)
        if make is None:
            offered = f"it offers {', '.join(self._sasl)}" if self._sasl else "it offers no SASL; use hive.metastore.sasl.enabled=false"
            raise ClientRefused(f"This server does not offer the SASL mechanism {name[:40]}; {offered}")
        return make(peer)

    def _plain(self, peer: Peer) -> PlainLogin:
        return PlainLogin(lambda user, password: self.password(user, password, peer), self.acts_for(peer))

    def _kerberos(self) -> Callable[[Peer], Mechanism]:
        from metastore.wire.auth.kerberos import Acceptor, KerberosLogin

        config = self._config
        if config.kerberos_principal is None or config.kerberos_keytab is None:
            raise ConfigError("authentication by Kerberos needs kerberos_principal and kerberos_keytab")
        acceptor = Acceptor(
            config.kerberos_principal, Path(config.kerberos_keytab), config.sasl_protection or UNPROTECTED, config.kerberos_name_rules
        )
        return lambda peer: KerberosLogin(acceptor, self.acts_for(peer))

    def _token(self, metastore: Metastore) -> Callable[[Peer], Mechanism]:
        protection = self._config.sasl_protection or UNPROTECTED
        check_protection(protection)

        def find(identifier: bytes) -> ValidToken:
            try:
                return delegation_tokens.find_valid(metastore, identifier)
            except MetaError as error:
                raise ClientRefused(error.message) from error

        return lambda _peer: DigestMd5Login(protection, find)

    def password(self, user: str, password: str, peer: Peer) -> Login:
        """Return the login of a user by password. Raises ClientRefused, also where others could read the password on its way."""
        if self.passwords is None:
            raise ClientRefused(f"This server takes no passwords; it accepts {', '.join(self.offered)}")
        if not peer.private:
            raise ClientRefused("A password is taken only over TLS or within the server's machine; connect with TLS")
        return self.passwords.check(user, password, peer.address.rpartition(":")[0])

    def acts_for(self, peer: Peer) -> Callable[[Login, str], Login]:
        """Return the function from a login and a user that the client names to the login that counts; it raises ClientRefused."""

        def act_for(login: Login, user: str) -> Login:
            if user in ("", login.user):
                return login
            if not proxy_users.may_act_for(self._config, login.user, user, peer.address):
                raise ClientRefused(f"{login.user} may not act for {user[:300]}; allow that in the setting proxy_users")
            return Login(user, login.mechanism, real_user=login.user, credential=login.credential)

        return act_for

    def certificate(self, found: Mapping[str, Any] | None) -> Login | None:
        """Return the login of a client by its certificate. None without one, or if it is not asked for. Raises ClientRefused."""
        if not found or "certificate" not in self.offered:
            return None
        return Login(user_of(found, self._config.certificate_user), "certificate")

    def admit(self, client: Client, login: Login) -> None:
        """Accept a client as the user whom its login proved."""
        logins.admit(self._config, client, login)

    def check_again(self, login: Login) -> None:
        """Raise ClientRefused if the stored credential of a login was revoked or has expired, or its delegation token was cancelled."""
        if self._metastore is None:
            return
        if login.credential is not None and not users.is_valid(self._metastore, login.credential):
            raise ClientRefused(f"The password or key of {login.real_user or login.user} was revoked or has expired; log in with another")
        if login.token is not None and not delegation_tokens.is_there(self._metastore, login.token):
            raise ClientRefused(f"The delegation token of {login.user} was cancelled or has reached its end; get a new one")

    def login_missing(self) -> ClientRefused:
        """Return the answer to a client that calls without a login."""
        return ClientRefused(f"This server asks for a login; it accepts {', '.join(self.offered)}")


def check(config: Config) -> None:
    """Raise ConfigError for an address beyond this machine where no setting decides who may log in."""
    host = config.host if is_loopback(config.admin_host) or not config.admin_port else config.admin_host or config.host
    if not config.authentication and not is_loopback(host):
        raise ConfigError(
            f"host {host} can be reached from other machines, and no setting decides who may log in: set authentication, "
            "or authentication=anonymous to accept everybody under any name"
        )
