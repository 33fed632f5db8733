"""Ask a server for its pages over HTTP, as whoever the environment says. Only this project's server has them."""

from __future__ import annotations

import base64
import os
import ssl
from pathlib import Path
from urllib.parse import urlsplit

from metastore.cli.options import DEFAULT_PORT, fail, tls

_TIMEOUT = 20.0


def fetch(uri: str, tls_ca: Path | None, path: str) -> str:
    """Return the text of a page of the server at `thrift://HOST:PORT` or `http(s)://HOST:PORT`; what it refuses ends the command."""
    from urllib.error import HTTPError, URLError
    from urllib.request import Request, urlopen

    split = urlsplit(uri if "://" in uri else f"thrift://{uri}")
    secure = tls_ca is not None or split.scheme == "https"
    host = f"[{split.hostname}]" if ":" in (split.hostname or "") else split.hostname
    address = f"{'https' if secure else 'http'}://{host}:{split.port or DEFAULT_PORT}"
    context = tls(tls_ca) or (ssl.create_default_context() if secure else None)
    try:
        request = Request(address + path, headers=_headers())  # noqa: S310  # http and https alone
        with urlopen(request, timeout=_TIMEOUT, context=context) as answer:  # noqa: S310  # as above
            text: str = answer.read().decode()
            return text
    except HTTPError as error:
        fail(f"{address}{path}: {error.read().decode(errors='replace').strip()[:300] or error.reason}")
    except (URLError, OSError, ValueError) as error:
        fail(f"{address}{path}: {getattr(error, 'reason', error)}; only metastore's own server has this page")


def _headers() -> dict[str, str]:
    from metastore.client_login import Bearer, LoginError, Plain, from_environment

    try:
        login = from_environment()
    except LoginError as error:
        fail(str(error))
    if isinstance(login, Bearer):
        return {"Authorization": f"Bearer {login.token}"}
    if isinstance(login, Plain):
        return {"Authorization": "Basic " + base64.b64encode(f"{login.user}:{login.password}".encode()).decode()}
    if login is not None:
        fail("pages take a password, a key or a JSON web token: set METASTORE_CLIENT_LOGIN to plain or jwt")
    user = os.environ.get("METASTORE_CLIENT_USER")
    return {"X-Actor-Username": user} if user else {}
