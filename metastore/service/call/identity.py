"""The identity of a client: the login that it proved, and the user for whom its calls act. This module never checks a credential."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Login:
    """The proof of a mechanism of authentication about a client."""

    user: str
    """The user whom calls act for: the short name of a Kerberos principal, the owner of a delegation token, and so on."""
    mechanism: str
    """"kerberos", "token", "ldap", "users", "jwt" or "certificate", as the setting `authentication` names them."""
    real_user: str | None = None
    """The user who logged in, where it is somebody else (a proxy user); None if it is `user`."""
    groups: tuple[str, ...] | None = None
    """The user's groups as the mechanism sends them; None if it sends none, and `group_mapping` decides."""
    credential: int | None = None
    """The key of the stored credential with which the client logged in; None where none is stored here."""
    token: str | None = field(default=None, compare=False)
    """The key of the stored delegation token with which the client logged in."""

    @property
    def can_be_revoked(self) -> bool:
        """Whether the client's credential is stored here, and can be revoked."""
        return self.credential is not None or self.token is not None


def folded(name: str) -> str:
    """Return the common form of the spellings that a directory (LDAP) accepts for one name.

    They differ in letter case, width, and blanks at the ends or repeated.
    """
    return " ".join(unicodedata.normalize("NFKC", name).casefold().split())
