"""`metastore config`: show every setting, its value and where it came from. Never prints a secret."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from metastore.cli.options import AsJson, Assignments, ConfigFile, Db, HiveSite, settings
from metastore.config import settings as all_settings
from metastore.config import shown


def show_config(
    names: Annotated[list[str] | None, typer.Argument(metavar="[NAME]...", help="Only these settings.")] = None,
    db: Db = None,
    config: ConfigFile = None,
    hive_site: HiveSite = None,
    assignments: Assignments = None,
    as_json: AsJson = False,
) -> None:
    """Show every setting, its value and where it came from: what `serve` with the same options would use."""
    chosen = settings({"db": db}, config, hive_site, assignments)
    wanted = set(names or ())
    rows = [
        (setting.name, shown(chosen, setting), chosen.source(setting.name))
        for setting in all_settings()
        if not wanted or wanted & {setting.name, *setting.hive}
    ]
    if as_json:
        typer.echo(json.dumps({name: {"value": value, "source": source} for name, value, source in rows}, indent=2))
    else:
        from metastore.cli.tables import print_table

        print_table(("setting", "value", "from"), rows)
    for warning in chosen.warnings:
        typer.echo(f"metastore: {warning}", err=True)
