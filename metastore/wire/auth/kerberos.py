"""GSSAPI, the server's side: Kerberos tickets, checked with a keytab by the system's library. It never asks a KDC for anything.

Source: RFC 4752. The library `gssapi` comes with the extra `kerberos`. The keytab is read at each login.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

from metastore.config import ConfigError
from metastore.errors import InvalidInput
from metastore.rules.accounts.kerberos_names import NameRules, parse_principal
from metastore.service.call.identity import Login
from metastore.wire.auth.gss import LARGEST, QUALITIES, GSSError, KerberosLayer, error_text, gssapi
from metastore.wire.auth.sasl import ClientRefused, LoginDone

_AUTHENTICATION, _PRIVACY = QUALITIES["authentication"], QUALITIES["privacy"]


class Acceptor:
    """The parts that all logins by Kerberos of a process share."""

    def __init__(self, principal: str, keytab: Path, protection: Sequence[str], rules: str) -> None:
        """Check the settings. Raises ConfigError, which names the wrong setting."""
        self.keytab = keytab
        self.offered = sum(QUALITIES[word] for word in set(protection))
        try:
            parsed = parse_principal(own_principal(principal))
        except InvalidInput as error:
            raise ConfigError(f"kerberos_principal: {error.message}") from error
        if parsed.host is None or parsed.realm is None:
            raise ConfigError(f"kerberos_principal must be service/host@REALM, such as hive/_HOST@REALM; it is {principal}")
        try:
            self.rules = NameRules(rules, parsed.realm)
        except InvalidInput as error:
            raise ConfigError(error.message) from error
        self.principal = str(parsed)
        self._name = gssapi.Name(self.principal, gssapi.NameType.kerberos_principal)
        try:
            self.credentials()
        except ClientRefused as error:
            raise ConfigError(f"kerberos_keytab: {error}") from error

    def credentials(self) -> gssapi.Credentials:
        """Read the key from the keytab. Raises ClientRefused with the reason."""
        try:
            return gssapi.Credentials(
                name=self._name, usage="accept", mechs=[gssapi.MechType.kerberos], store={"keytab": f"FILE:{self.keytab}"}
            )
        except GSSError as error:
            if not self.keytab.exists():
                why = "the file does not exist"
            elif not os.access(self.keytab, os.R_OK, effective_ids=True):
                why = "the file can not be read by the user who runs the server; give it to that user with mode 400"
            else:
                why = f"it has no key of {self.principal}; `klist -kt` shows whose keys it has. {error_text(error)}"
            raise ClientRefused(f"The server's keytab {self.keytab} can not be used: {why}") from error


class KerberosLogin:
    """The server's side of one login, a `wire.auth.sasl.Mechanism`."""

    def __init__(self, acceptor: Acceptor, act_for: Callable[[Login, str], Login]) -> None:
        """`act_for` returns the login that counts for a login and the user that the client names, or raises ClientRefused."""
        self._acceptor = acceptor
        self._act_for = act_for
        self._next: Callable[[bytes], bytes | LoginDone] = self._begin

    def step(self, response: bytes) -> bytes | LoginDone:
        """Take a message of the client and return the next challenge, or the completed login. Raises ClientRefused."""
        step, self._next = self._next, _ended
        try:
            return step(response)
        except GSSError as error:
            raise ClientRefused(f"Kerberos refuses the login to {self._acceptor.principal}: {error_text(error)}") from error

    def _begin(self, response: bytes) -> bytes | LoginDone:
        if not response:
            self._next = self._begin
            return b""
        self._context = gssapi.SecurityContext(creds=self._acceptor.credentials(), usage="accept")
        self._context.__DEFER_STEP_ERRORS__ = False  # type: ignore[attr-defined]  # else it holds an error back until the next step
        return self._accept(response)

    def _accept(self, response: bytes) -> bytes | LoginDone:
        token = self._context.step(response)
        if not self._context.complete:
            self._next = self._accept
        elif token:
            self._next = self._offer
        else:
            return self._offer(b"")
        return token or b""

    def _offer(self, _response: bytes) -> bytes | LoginDone:
        self._next = self._choose
        size = 0 if self._acceptor.offered == _AUTHENTICATION else LARGEST
        return self._context.wrap(bytes([self._acceptor.offered]) + size.to_bytes(3, "big"), encrypt=False).message

    def _choose(self, response: bytes) -> bytes | LoginDone:
        answer = self._context.unwrap(response).message
        if len(answer) < 4:
            raise ClientRefused(f"The client's choice of a security layer has {len(answer)} bytes, less than 4")
        chosen, size = answer[0], int.from_bytes(answer[1:4], "big")
        if chosen not in QUALITIES.values() or not chosen & self._acceptor.offered:
            raise ClientRefused(
                f"The client chose the security layer {chosen}; set its hadoop.rpc.protection to one of the server's sasl_protection"
            )
        protected = chosen != _AUTHENTICATION
        layer = KerberosLayer.of(self._context, encrypted=chosen == _PRIVACY, size=size) if protected else None
        return LoginDone(self._login(answer[4:]), layer=layer)

    def _login(self, asked: bytes) -> Login:
        principal = str(self._context.initiator_name)
        try:
            rules = self._acceptor.rules
            proved = Login(rules.short_name(principal), "kerberos")
            wanted = asked.decode()
            user = rules.short_name(wanted) if wanted and wanted != principal else proved.user
        except (InvalidInput, UnicodeDecodeError) as error:
            raise ClientRefused(str(error)) from error
        return self._act_for(proved, user)


def own_principal(principal: str) -> str:
    """Put this host's full name, in lower case, where a principal has `_HOST`."""
    return principal.replace("/_HOST@", f"/{socket.getfqdn().lower()}@")


def _ended(_response: bytes) -> NoReturn:
    raise ClientRefused("This login has ended; connect again")
