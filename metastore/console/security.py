"""Protection from other sites that act by a visitor's browser: headers of all answers, checks of each request that changes something.

`wire/http/other_sites.py` has already refused requests that name another site.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping

from metastore.console.visit import UI, Visit
from metastore.errors import PermissionDenied

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
"""Headers of every answer. With the policy `no-referrer` browsers would not send the origin of a form."""


COOKIE = "metastore-console"
"""The cookie whose value a form has to repeat: another site can make a browser send it, but not read it."""


def cookie(*, encrypted: bool) -> tuple[str, str]:
    """Return name and path of the cookie. Over TLS browsers take one of that name from this very host alone, not from a sibling."""
    return (f"__Host-{COOKIE}", "/") if encrypted else (COOKIE, f"{UI}/actions")


def new_token() -> str:
    """Return a token for a visitor who has none."""
    return secrets.token_urlsafe(24)


def check_action(visit: Visit) -> None:
    """Raise PermissionDenied for a request to change something by a visitor to whom no actions are offered."""
    if not visit.may_act:
        raise PermissionDenied("Log in to act: a server without logins accepts actions only from its own machine")


def check_token(cookies: Mapping[str, str], token: str, *, encrypted: bool) -> None:
    """Raise PermissionDenied for a form that does not repeat the visitor's token."""
    known = cookies.get(cookie(encrypted=encrypted)[0], "")
    if not known or not secrets.compare_digest(known.encode(), token.encode()):
        raise PermissionDenied("This form is not from a page of this server, or its cookie is gone: open the page again")
