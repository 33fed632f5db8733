"""Parts of both sides of a login by Kerberos: the library, the protection of frames, and errors in words. It never logs anybody in.

The library `gssapi` comes with the extra `kerberos`; without it this module can not be imported, which raises ConfigError.
"""

from __future__ import annotations

from metastore.config import ConfigError
from metastore.wire.auth.sasl import ClientRefused

try:
    import gssapi
    from gssapi.raw.message import unwrap, wrap  # the context's own methods look for errors of earlier steps each time, which costs more
    from gssapi.raw.misc import GSSError
except ImportError as missing:
    raise ConfigError(
        f"authentication by Kerberos needs the library gssapi ({missing}): pip install '.[kerberos]' in the checkout of "
        "metastore; to build it there must be a C compiler and libkrb5-dev"
    ) from missing

QUALITIES = {"authentication": 1, "integrity": 2, "privacy": 4}
"""The bit of each security layer by Hadoop's name for it."""
LARGEST = 0xFFFFFF
"""The most bytes of a protected frame that this side takes: the largest number of three bytes."""
_SMALLEST_ROOM = 256
"""The smallest buffer of a client, in bytes: with less every reply would be split into tiny frames."""

_ADVICE = {
    2529638944: "the client's ticket has expired: let it log in again (kinit, or a keytab that it renews from)",
    2529638946: "the same login was sent before: a client must make a new one for each connection",
    2529638949: "the clocks of client and server differ by more than krb5.conf allows (clockskew, 5 minutes): set them by NTP",
    2529638947: "the client asked for another server: its hive.metastore.kerberos.principal, with the host of its URI, must be this name",
    2529638956: "the keytab lacks the key that the ticket was made with: export it again after each change of the key (ktadd)",
    2529638943: "the keytab's key is not the ticket's: export it again after each change of the key (ktadd)",
}
"""The remedy, by the minor code of Kerberos."""

__all__ = ["LARGEST", "QUALITIES", "GSSError", "KerberosLayer", "error_text", "gssapi"]


class KerberosLayer:
    """Protects frames by the keys of the login."""

    def __init__(self, context: gssapi.SecurityContext, *, encrypted: bool, max_size: int) -> None:
        self._context = context
        self._encrypted = encrypted
        self.max_size = max_size
        """The most bytes of one frame before `wrap`, by the limit of the other side."""

    @classmethod
    def of(cls, context: gssapi.SecurityContext, *, encrypted: bool, size: int) -> KerberosLayer:
        """Return the layer for a client that takes protected frames of at most `size` bytes. Raises ClientRefused if that is too little."""
        max_size = context.get_wrap_size_limit(min(size, LARGEST), encrypted)
        if max_size < _SMALLEST_ROOM:
            raise ClientRefused(f"The other side takes protected frames of {size} bytes only: let it take 65536")
        return cls(context, encrypted=encrypted, max_size=max_size)

    def wrap(self, data: bytes) -> bytes:
        """Return the payload of one frame, protected for sending; `data` is at most `max_size` long."""
        return bytes(wrap(self._context, data, self._encrypted).message)

    def unwrap(self, data: bytes) -> bytes:
        """Return the data of one protected frame. Raises ClientRefused if it was changed on the way or received twice."""
        try:
            found = unwrap(self._context, data)
        except GSSError as error:
            raise ClientRefused(
                f"A protected frame can not be read, it was changed on its way or came twice: {error_text(error)}"
            ) from error
        if self._encrypted and not found.encrypted:
            raise ClientRefused("A frame came without encryption though it was agreed on")
        return bytes(found.message)


def error_text(error: GSSError) -> str:
    """Return the error in one line: Kerberos' own text, and the remedy where that is known."""
    minor, said = error.min_code, ""
    if minor:
        said = " ".join(error.get_all_statuses(minor, False))
    if said in ("", "Success", "Unknown error"):  # the major code then has the text, for example for a frame that is received twice
        said = " ".join(error.get_all_statuses(error.maj_code, True))
    return f"{said}; {_ADVICE[minor]}" if minor in _ADVICE else said
