"""`metastore health`: ask a server whether calls can be sent to it, as health checks of containers do."""

from __future__ import annotations

import json
import ssl
from typing import Annotated
from urllib.parse import urlsplit

import typer

from metastore.cli.common.options import DEFAULT_PORT, AsJson, fail

TIMEOUT = 5.0


def health(
    port: Annotated[int, typer.Option(envvar="METASTORE_PORT", help="Port of the server on this machine.")] = DEFAULT_PORT,
    path: Annotated[str, typer.Option(help="Probe to request: /readyz, or /healthz, which checks the process only.")] = "/readyz",
    uri: Annotated[str | None, typer.Option(help="Server elsewhere, thrift://HOST:PORT, in place of --port.")] = None,
    as_json: AsJson = False,
) -> None:
    """Print the answer of a probe. The exit status is 0 if all is well. TLS is used where the server needs it."""
    from urllib.error import HTTPError
    from urllib.request import urlopen

    place = f"127.0.0.1:{port}" if uri is None else _place(uri)
    unverified = ssl.create_default_context()
    unverified.check_hostname, unverified.verify_mode = False, ssl.CERT_NONE  # nothing secret is sent
    problem = ""
    for scheme, context in (("http", None), ("https", unverified)):
        try:
            with urlopen(f"{scheme}://{place}{path}", timeout=TIMEOUT, context=context) as answer:  # noqa: S310  # no file:
                found = json.load(answer)
                text = found["status"]
        except HTTPError as error:
            fail(error.read().decode(errors="replace").strip())
        except (OSError, ValueError, KeyError) as error:
            problem = problem or str(error)
        else:
            typer.echo(json.dumps(found) if as_json else text)
            if "warning" in found and not as_json:
                typer.echo(f"warning: {found['warning']}", err=True)
            return
    fail(f"no server answers at {place}: {problem}")


def _place(uri: str) -> str:
    """Return `HOST:PORT` of a URI."""
    split = urlsplit(uri if "://" in uri else f"thrift://{uri}")
    if not split.hostname:
        fail(f"{uri!r} names no server: write thrift://HOST:PORT", 2)
    host = f"[{split.hostname}]" if ":" in split.hostname else split.hostname
    return f"{host}:{split.port or DEFAULT_PORT}"
