"""`metastore health`: ask a server on this machine whether calls can be sent to it, as health checks of containers do."""

from __future__ import annotations

import json
import ssl
from typing import Annotated

import typer

from metastore.cli.options import fail

TIMEOUT = 5.0


def health(
    port: Annotated[int, typer.Option(envvar="METASTORE_PORT", help="Port of the server on this machine.")] = 9083,
    path: Annotated[str, typer.Option(help="Probe to ask: /readyz, or /healthz whether the process lives.")] = "/readyz",
) -> None:
    """Print what a probe answers; the exit status is 0 if all is well. It asks with TLS where the server wants that."""
    from urllib.error import HTTPError
    from urllib.request import urlopen

    unverified = ssl.create_default_context()
    unverified.check_hostname, unverified.verify_mode = False, ssl.CERT_NONE  # it is this machine, and nothing secret is sent
    problem = ""
    for scheme, context in (("http", None), ("https", unverified)):
        try:
            with urlopen(f"{scheme}://127.0.0.1:{port}{path}", timeout=TIMEOUT, context=context) as answer:  # noqa: S310  # no file:
                typer.echo(json.load(answer)["status"])
                return
        except HTTPError as error:
            fail(error.read().decode(errors="replace").strip())
        except (OSError, ValueError, KeyError) as error:
            problem = problem or str(error)
    fail(f"no server answers on port {port}: {problem}")
