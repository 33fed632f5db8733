"""`metastore config`: show every setting, its value and its source, and the judgement on Hive's properties. Never prints a secret."""

from __future__ import annotations

import difflib
import json
from typing import Annotated

import typer

from metastore.cli.common.options import AsJson, Assignments, ConfigFile, Db, HiveSite, fail, settings
from metastore.cli.common.tables import print_table
from metastore.config import Config, ConfigError, hive_properties, shown
from metastore.config import settings as all_settings


def show_config(
    names: Annotated[list[str] | None, typer.Argument(metavar="[NAME]...", help="Only these, by our names or Hive's.")] = None,
    check: Annotated[bool, typer.Option("--check", help="Only check whether `serve` would start with them; status 1 if not.")] = False,
    db: Db = None,
    config: ConfigFile = None,
    hive_site: HiveSite = None,
    assignments: Assignments = None,
    as_json: AsJson = False,
) -> None:
    """Show every setting, its value and its source, and the judgement on each property of Hive's.

    `serve` with the same options would use these values. `--check` lists only properties of Hive's, also those that would prevent a start.
    """
    chosen = settings({"db": db}, config, hive_site, assignments)
    wanted = set(names or ())
    own = {} if check else {each.name: each for each in all_settings() if not wanted or wanted & {each.name, *each.hive}}
    judged = [each for each in hive_properties.verdicts(chosen) if not wanted or each.name in wanted]
    known = {name for each in own.values() for name in (each.name, *each.hive)} | {each.name for each in judged}
    if not check and (unknown := sorted(wanted - known)):
        fail(f"there is no setting {', '.join(unknown)}{_nearest(unknown[0])}")
    wrong = _wrong(chosen) if check else None
    values = {name: {"value": shown(chosen, each), "source": chosen.source(name)} for name, each in own.items()}
    properties = {each.name: {"outcome": each.outcome, "reason": each.text, "source": each.source} for each in judged}
    if as_json:
        typer.echo(json.dumps({"properties": properties, "error": wrong} if check else values, indent=2, ensure_ascii=False))
    else:
        if own:
            print_table(("setting", "value", "from"), [(name, each["value"], each["source"]) for name, each in values.items()])
        if judged:
            print_table(("property of Hive's", "is", "setting or reason", "from"), judged)
    for warning in chosen.warnings:
        typer.echo(f"metastore: {warning}", err=True)
    if wrong is not None:
        fail(wrong)
    if check and not as_json:
        typer.echo("a server would start with these settings")


def _nearest(name: str) -> str:
    near = difflib.get_close_matches(name, [each for setting in all_settings() for each in (setting.name, *setting.hive)], n=1)
    return f"; did you mean {near[0]}?" if near else "; `metastore config` lists all"


def _wrong(config: Config) -> str | None:
    """Return the reasons for which a server would not start."""
    from metastore import app
    from metastore.errors import MetastoreError

    try:
        app.check(config)
    except MetastoreError as error:
        return error.message
    except (ConfigError, OSError) as error:
        return str(error)
    return None
