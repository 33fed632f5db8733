"""Compare distinguished names as a directory does, and with the patterns of the settings. It asks no directory. Source: RFC 4514."""

from __future__ import annotations

import re

from ldap3.core.exceptions import LDAPInvalidDnError
from ldap3.utils.dn import parse_dn

from metastore.service.call.identity import folded

Canonical = tuple[tuple[str, str, str], ...]
"""The parts of a name in the written order, `cn=sales` before `dc=example`: kind, value and the separator that follows. The kind is in
lower case, the value as `folded` gives it and without escapes.
"""
_ESCAPED = re.compile(r"((?:\\[0-9a-fA-F]{2})+)|\\(.)")
_NAME = "\ue000"
"""The mark of the user's name in a pattern; it has no meaning in a directory."""


def is_dn(user: str) -> bool:
    """Return whether a user wrote a distinguished name."""
    return "=" in user


def canonical(dn: str) -> Canonical | None:
    """Return the form that all spellings of a distinguished name share; None for a text that is not one."""
    try:
        parts = parse_dn(dn, escape=False, strip=True)
    except (LDAPInvalidDnError, IndexError):
        return None
    return tuple((kind.lower(), folded(_unescaped(value)), separator) for kind, value, separator in parts)


def first_value(dn: str) -> tuple[str, str]:
    """Return kind, in lower case, and value of a name's first part: `cn` and `sales` of `cn=sales,ou=groups,dc=example`."""
    try:
        kind, value, _ = parse_dn(dn, escape=False, strip=True)[0]
    except (LDAPInvalidDnError, IndexError):
        return "", dn
    return kind.lower(), _unescaped(value)


def lies_below(dn: str, base: str) -> bool:
    """Return whether an entry is below another, at any depth."""
    inner, outer = canonical(dn) or (), canonical(base) or ()
    return 0 < len(outer) < len(inner) and inner[-len(outer) :] == outer


def name_in_pattern(dn: str, pattern: str) -> str | None:
    """Return the user's name, as `folded` gives it, in a name that fits a pattern such as `uid=%s,ou=people,dc=example`; else None."""
    written, wanted = canonical(dn), canonical(pattern.replace("%s", _NAME))
    if pattern.count("%s") != 1 or written is None or wanted is None or len(written) != len(wanted):
        return None
    name = None
    for (kind, value, separator), (wanted_kind, wanted_value, wanted_separator) in zip(written, wanted, strict=True):
        found = re.fullmatch(re.escape(wanted_value).replace(_NAME, "(.+)"), value)
        if (kind, separator) != (wanted_kind, wanted_separator) or found is None:
            return None
        name = found[1] if found.groups() else name
    return name


def _unescaped(value: str) -> str:
    def plain(found: re.Match[str]) -> str:
        return bytes.fromhex(found[1].replace("\\", "")).decode("utf-8", "replace") if found[1] else str(found[2])

    return _ESCAPED.sub(plain, value)
