"""GSSAPI, the client's side: the user's cache of tickets, or a keytab. Source: RFC 4752. The library comes with the extra `kerberos`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from metastore.client_login.negotiation import LoginError
from metastore.wire.auth.gss import LARGEST, QUALITIES, GSSError, KerberosLayer, error_text, gssapi
from metastore.wire.auth.sasl import ClientRefused, Layer


@dataclass(frozen=True)
class Kerberos:
    """A login by Kerberos: the tickets to use, and the server.

    `principal` is the server's; `_HOST` in it stands for the host of the connection. `keytab` holds the key of `user`; without a keytab the
    tickets are read from `cache`, else from KRB5CCNAME. `qualities` are the protections to agree on, the most wanted first.
    """

    principal: str = "hive/_HOST"
    user: str | None = None
    keytab: str | None = None
    cache: str | None = None
    qualities: tuple[str, ...] = ("authentication", "integrity", "privacy")
    act_for: str = ""
    """The user to act for, if it is not the user who logs in (a proxy user)."""

    def begin(self, host: str) -> KerberosMechanism:
        """Begin a login at a host. Raises LoginError if there is no ticket."""
        try:
            name = gssapi.Name(self.user, gssapi.NameType.kerberos_principal) if self.user else None
            store: dict[str | bytes, str | bytes] = (
                {"client_keytab": f"FILE:{self.keytab}", "ccache": f"MEMORY:metastore-{self.user}-{self.keytab}"} if self.keytab else {}
            )
            if self.cache:
                store["ccache"] = self.cache
            credentials = gssapi.Credentials(name=name, usage="initiate", mechs=[gssapi.MechType.kerberos], store=store or None)
            server = gssapi.Name(self.principal.replace("_HOST", host.lower()), gssapi.NameType.kerberos_principal)
        except GSSError as error:
            raise LoginError(f"There is no Kerberos ticket to log in with ({error_text(error)}): run kinit, or give a keytab") from error
        return KerberosMechanism(self, credentials, server)


class KerberosMechanism:
    """One login by Kerberos."""

    name = "GSSAPI"
    reveals_secret = False

    def __init__(self, login: Kerberos, credentials: gssapi.Credentials, server: gssapi.Name) -> None:
        self._login = login
        self._server = server
        flags = gssapi.RequirementFlag
        wanted = flags.mutual_authentication | flags.integrity | flags.confidentiality | flags.out_of_sequence_detection
        self._context = gssapi.SecurityContext(
            name=server, creds=credentials, usage="initiate", mech=gssapi.MechType.kerberos, flags=wanted | flags.replay_detection
        )
        self._context.__DEFER_STEP_ERRORS__ = False  # type: ignore[attr-defined]  # else it holds an error back until the next step
        self._next: Callable[[bytes], bytes] = self._prove
        self.complete = False
        self.layer: Layer | None = None

    def step(self, challenge: bytes) -> bytes:
        """Return the answer to a challenge. Raises LoginError."""
        try:
            return self._next(challenge)
        except GSSError as error:
            raise LoginError(f"Kerberos can not log in to {self._server}: {error_text(error)}") from error
        except ClientRefused as error:
            raise LoginError(str(error)) from error

    def _prove(self, challenge: bytes) -> bytes:
        token = self._context.step(challenge or None)
        if self._context.complete:
            self._next = self._choose
        return token or b""

    def _choose(self, challenge: bytes) -> bytes:
        offer = self._context.unwrap(challenge).message
        if len(offer) != 4:
            raise LoginError(f"The server offers its security layers in {len(offer)} bytes instead of 4")
        for name in self._login.qualities:
            if QUALITIES[name] & offer[0]:
                break
        else:
            raise LoginError(f"The server offers no protection of {', '.join(self._login.qualities)}: see its setting sasl_protection")
        size = 0
        if QUALITIES[name] != QUALITIES["authentication"]:
            size = LARGEST
            self.layer = KerberosLayer.of(self._context, encrypted=name == "privacy", size=int.from_bytes(offer[1:], "big"))
        self.complete = True
        answer = bytes([QUALITIES[name]]) + size.to_bytes(3, "big") + self._login.act_for.encode()
        return self._context.wrap(answer, encrypt=False).message
