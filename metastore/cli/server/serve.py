"""`metastore serve`: run a server in the foreground. Never decides a setting's value itself."""

from __future__ import annotations

import gc
from typing import Annotated

import typer

from metastore.cli.common.options import Assignments, ConfigFile, Db, HiveSite, fail, settings


def serve(
    host: Annotated[str | None, typer.Option(help="Address to listen on.  [default: 127.0.0.1]")] = None,
    port: Annotated[int | None, typer.Option(help="Port to listen on; 0 takes a free one.  [default: 9083]")] = None,
    db: Db = None,
    warehouse: Annotated[str | None, typer.Option(metavar="URI", help="Root of managed tables.")] = None,
    external_warehouse: Annotated[str | None, typer.Option(metavar="URI", help="Root of external tables.")] = None,
    workers: Annotated[int | None, typer.Option(help="Worker processes; 0 is one for each core.")] = None,
    config: ConfigFile = None,
    hive_site: HiveSite = None,
    assignments: Assignments = None,
) -> None:
    """Run a server in the foreground until SIGTERM or Ctrl-C.

    Prints `ready on thrift://HOST:PORT` when it accepts calls. The schema of the database is made or brought up to date
    first. All settings: docs/settings.md, or `metastore config`.
    """
    options: dict[str, object] = {
        "host": host, "port": port, "db": db, "warehouse": warehouse, "external_warehouse": external_warehouse,
        "workers": workers,
    }  # fmt: skip
    chosen = settings(options, config, hive_site, assignments)

    gc.disable()  # nothing that is loaded is garbage; `app.serve` sets it aside and turns the collector on again
    from metastore import app
    from metastore.config import ConfigError
    from metastore.errors import MetastoreError

    def ready(address: str, number: int) -> None:
        shown = f"[{address}]" if ":" in address else address
        typer.echo(f"ready on thrift://{shown}:{number}")

    try:
        status = app.serve(chosen, ready)
    except MetastoreError as error:
        fail(error.message)
    except ConfigError as error:
        fail(str(error))
    except OSError as error:
        fail(f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}")
    raise typer.Exit(status)
