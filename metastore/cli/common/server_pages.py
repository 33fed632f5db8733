"""Ask a server for its pages over HTTP, with the login that the environment chooses. Only this project's server has them."""

from __future__ import annotations

import base64
import json
import os
import ssl
from pathlib import Path
from urllib.parse import urlsplit

from metastore.cli.common.options import DEFAULT_PORT, fail, tls

_TIMEOUT, _PATIENCE = 20.0, 5.0
"""Seconds to wait for a page, and for a page that a command can do without."""


class _NoLogin(ValueError):
    """Pages can not be asked for with the login of the environment."""


def fetch(uri: str, tls_ca: Path | None, path: str) -> str:
    """Return the text of a page of the server at `thrift://HOST:PORT` or `http(s)://HOST:PORT`; a refusal ends the command."""
    from urllib.error import HTTPError

    try:
        return _read(uri, tls_ca, path, _TIMEOUT)
    except _NoLogin as error:
        fail(str(error))
    except HTTPError as error:
        fail(f"{error.url}: {error.read().decode(errors='replace').strip()[:300] or error.reason}")
    except (OSError, ValueError) as error:  # URLError is an OSError
        fail(f"{_address(uri, tls_ca)}{path}: {getattr(error, 'reason', error)}; only metastore's own server has this page")


def _address(uri: str, tls_ca: Path | None) -> str:
    """Return the address of the server's pages. Raises ValueError for a text that is not a URI."""
    split = urlsplit(uri if "://" in uri else f"thrift://{uri}")
    host = f"[{split.hostname}]" if ":" in (split.hostname or "") else split.hostname
    return f"{'https' if tls_ca is not None or split.scheme == 'https' else 'http'}://{host}:{split.port or DEFAULT_PORT}"


def _read(uri: str, tls_ca: Path | None, path: str, timeout: float) -> str:
    """Return the text of a page. Raises OSError (HTTPError and URLError are OSErrors), ValueError."""
    from urllib.request import Request, urlopen

    address = _address(uri, tls_ca)
    context = tls(tls_ca) or (ssl.create_default_context() if address.startswith("https:") else None)
    request = Request(address + path, headers=_headers())  # noqa: S310  # http and https alone
    with urlopen(request, timeout=timeout, context=context) as answer:  # noqa: S310  # as above
        text: str = answer.read().decode()
        return text


def waiting_since(uri: str, tls_ca: Path | None) -> dict[int, int]:
    """Return the times in milliseconds since which locks wait, by the locks' ids; empty for a server without this page, as Hive's own."""
    try:
        waiting: dict[str, int] = json.loads(_read(uri, tls_ca, "/api/v1/lock-waits", _PATIENCE))["waiting_since_ms"]
    except (OSError, ValueError, KeyError):  # HTTPError and URLError are OSError
        return {}
    return {int(key): since for key, since in waiting.items()}


def _headers() -> dict[str, str]:
    """Return the headers of the login. Raises _NoLogin."""
    from metastore.client_login import Bearer, LoginError, Plain, from_environment

    try:
        login = from_environment()
    except LoginError as error:
        raise _NoLogin(str(error)) from error
    if isinstance(login, Bearer):
        return {"Authorization": f"Bearer {login.token}"}
    if isinstance(login, Plain):
        return {"Authorization": "Basic " + base64.b64encode(f"{login.user}:{login.password}".encode()).decode()}
    if login is not None:
        raise _NoLogin("pages take a password, a key or a JSON web token: set METASTORE_CLIENT_LOGIN to plain or jwt")
    user = os.environ.get("METASTORE_CLIENT_USER")
    return {"X-Actor-Username": user} if user else {}
