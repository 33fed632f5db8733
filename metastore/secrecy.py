"""Keep passwords, keys and tokens out of names and texts that people see. It reads no setting."""

from __future__ import annotations

import re

_SECRET = re.compile(
    r"passw|passphrase|pass$|pwd|bindpw|secret|token|credential|jaas|headers|sas$|azuresas"
    r"|(access|account|api|encryption|master|private|shared|signing|storage)key"
)
_IN_URL = re.compile(r"(?i)(://[^:/@\s]*:)\S*(?=@)|([?&](?:ssl)?passw(?:or)?d=)[^&\s]*")


def names_secret(name: str) -> bool:
    """Return whether a property or argument has a password, key, token or the like, by its name. In doubt the answer is True."""
    return _SECRET.search(re.sub(r"[^a-z0-9]", "", name.lower())) is not None


def without_passwords(text: str) -> str:
    """Return a text with *** in place of the passwords of its URLs. A password may hold @ and /: in doubt more is replaced."""
    return _IN_URL.sub(r"\1\2***", text)
