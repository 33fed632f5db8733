"""`metastore shadow`: answer from one metastore and compare another with it on the same calls. Its rules are in `shadow`."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from metastore.cli.common.options import AsJson, Assignments, ConfigFile, HiveSite, fail, settings, tls
from metastore.cli.common.tables import print_table

if TYPE_CHECKING:
    from metastore.shadow.upstream import Upstream

LOGIN, OF_SECONDARY = "METASTORE_CLIENT_", "METASTORE_SECONDARY_"
FOREVER = 86400.0
"""Seconds that the primary may take to answer: its clients have limits of their own."""


def shadow(
    primary: Annotated[
        str,
        typer.Option(
            metavar="URI", help="The metastore that answers; of several, separated by commas, the first that accepts a connection."
        ),
    ],
    secondary: Annotated[str, typer.Option(metavar="URI", help="The metastore that is compared with it.")],
    host: Annotated[str | None, typer.Option(help="Address to listen on.  [default: 127.0.0.1]")] = None,
    port: Annotated[int | None, typer.Option(help="Port to listen on; 0 takes a free one.  [default: 9083]")] = None,
    send_changes: Annotated[
        bool, typer.Option("--send-changes", help="Send changes to the secondary too, for test systems; calls are sent one at a time.")
    ] = False,
    log_file: Annotated[
        Path | None, typer.Option("--log", metavar="FILE", help="Append a line of JSON for each field in which replies differ.")
    ] = None,
    every: Annotated[float, typer.Option(min=0.0, metavar="SECONDS", help="How often the counts are printed; 0: only at the end.")] = 60.0,
    timeout: Annotated[float, typer.Option(min=0.1, metavar="SECONDS", help="How long the secondary may take to answer.")] = 60.0,
    primary_tls_ca: Annotated[Path | None, typer.Option(metavar="FILE", help="Use TLS to the primary; trust these authorities.")] = None,
    secondary_tls_ca: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Use TLS to the secondary; trust these authorities.")
    ] = None,
    as_json: AsJson = False,
    config: ConfigFile = None,
    hive_site: HiveSite = None,
    assignments: Assignments = None,
) -> None:
    """Pass calls on to one metastore, ask another the same reads, and count by method how often they agree.

    Clients get the primary's replies unchanged. Changes are sent to the primary alone, unless --send-changes is given. It runs until
    SIGTERM or Ctrl-C, then prints the counts. The server's settings determine the logins and TLS of clients. The login to both metastores
    is taken from METASTORE_CLIENT_LOGIN and the other METASTORE_CLIENT_ variables.
    """
    from metastore import app
    from metastore.cli.common.structs import to_json
    from metastore.config import ConfigError
    from metastore.shadow.asking import Beside, Report
    from metastore.shadow.proxy import Proxy
    from metastore.shadow.relay import Both
    from metastore.wire.auth import authenticator

    chosen = settings({"host": host, "port": port}, config, hive_site, assignments)
    app.configure_log(chosen)
    first = _upstream("--primary", primary, primary_tls_ca, FOREVER, os.environ)
    second = _upstream("--secondary", secondary, secondary_tls_ca, timeout, _of_secondary(os.environ))

    def ready(address: str, number: int) -> None:
        typer.echo(f"ready on thrift://{f'[{address}]' if ':' in address else address}:{number}")

    try:
        authenticator.check(chosen)
        with open(log_file or os.devnull, "a", encoding="utf-8") as opened:  # noqa: PTH123  # a path or the name of nothing
            beside = Beside(second, opened if log_file else None, to_json, Report(every, _shower(as_json)))
            try:
                both = Both(second, threading.Lock()) if send_changes else None
                Proxy(chosen, app.wire_settings(chosen), first, beside, both).run(ready)
            finally:
                beside.end()
    except ConfigError as error:
        fail(str(error))
    except OSError as error:
        fail(f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}")


def _of_secondary(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment with the variables of the secondary's login in place of the primary's, where there are any."""
    own = {LOGIN + name.removeprefix(OF_SECONDARY): value for name, value in environment.items() if name.startswith(OF_SECONDARY)}
    return {**environment, **own}


def _upstream(option: str, uri: str, authorities: Path | None, timeout: float, environment: Mapping[str, str]) -> Upstream:
    from metastore.client import place
    from metastore.client_login import LoginError, from_environment
    from metastore.shadow.upstream import Upstream

    uris = tuple(part.strip() for part in uri.split(","))
    try:
        login = from_environment(environment)
        for each in uris:
            place(each, timeout, None, login)
    except (ValueError, LoginError) as error:
        fail(f"{option} {uri}: {error}", 2)
    return Upstream(uris, tls(authorities), login, timeout)


def _shower(as_json: bool) -> Callable[[dict[str, dict[str, int]]], None]:
    def show(counts: dict[str, dict[str, int]]) -> None:
        if as_json:
            typer.echo(json.dumps(counts))
            return
        from metastore.shadow.agreement import OUTCOMES

        rows = [(method, *(str(found.get(name, 0) or "") for name in OUTCOMES)) for method, found in counts.items()]
        print_table(("method", *OUTCOMES), rows)

    return show
