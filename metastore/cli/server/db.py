"""`metastore db`: bring a database's schema up to date, or show its revision. Never changes data."""

from __future__ import annotations

import json

import typer

from metastore.cli.common.options import AsJson, Assignments, ConfigFile, Db, HiveSite, opened
from metastore.cli.common.progress import steps

app = typer.Typer(help="Bring a database's schema up to date, or show its revision.", no_args_is_help=True)


@app.command()
def upgrade(
    db: Db = None, config: ConfigFile = None, hive_site: HiveSite = None, assignments: Assignments = None, as_json: AsJson = False
) -> None:
    """Make the schema, or bring it to this version's revision. A server does the same when it starts."""
    from metastore.store.core import migrate

    with opened(db, config, hive_site, assignments, current=False) as database:
        with steps("upgrade", migrate.missing(database)) as step:
            done = migrate.upgrade(database, lambda revision: step(f"revision {revision}"))
        reached = migrate.current(database)
    text = f"{'now at' if done else 'already at'} revision {reached}"
    typer.echo(json.dumps({"revision": reached, "upgraded": done}) if as_json else text)


@app.command()
def current(
    db: Db = None, config: ConfigFile = None, hive_site: HiveSite = None, assignments: Assignments = None, as_json: AsJson = False
) -> None:
    """Print the schema's revision; the exit status is 1 if it is not this version's."""
    from metastore.store.core import migrate

    with opened(db, config, hive_site, assignments, current=False) as database:
        found, newest = migrate.current(database), migrate.revisions()[-1]
    typer.echo(json.dumps({"revision": found, "newest": newest}) if as_json else f"{found or 'no schema'} (this version: {newest})")
    if found != newest:
        raise typer.Exit(1)
