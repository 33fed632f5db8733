"""`metastore db`: bring a database's schema up to date, or show its revision. Never changes data."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

from metastore.cli.options import Assignments, ConfigFile, Db, HiveSite, fail, settings

if TYPE_CHECKING:
    from metastore.store.database import Database

app = typer.Typer(help="Bring a database's schema up to date, or show its revision.", no_args_is_help=True)


@contextmanager
def opened(db: str | None, config: ConfigFile, hive_site: HiveSite, assignments: Assignments) -> Iterator[Database]:
    chosen = settings({"db": db}, config, hive_site, assignments)
    from metastore.errors import MetastoreError
    from metastore.store.database import Database

    try:
        database = Database(chosen.db, pool_size=1)
        try:
            yield database
        finally:
            database.close()
    except MetastoreError as error:
        fail(error.message)


@app.command()
def upgrade(db: Db = None, config: ConfigFile = None, hive_site: HiveSite = None, assignments: Assignments = None) -> None:
    """Make the schema, or bring it to this version's revision. A server does the same when it starts."""
    from metastore.store import migrate

    with opened(db, config, hive_site, assignments) as database:
        done = migrate.upgrade(database)
        typer.echo(f"{'now at' if done else 'already at'} revision {migrate.current(database)}")


@app.command()
def current(db: Db = None, config: ConfigFile = None, hive_site: HiveSite = None, assignments: Assignments = None) -> None:
    """Print the schema's revision; the exit status is 1 if it is not this version's."""
    from metastore.store import migrate

    with opened(db, config, hive_site, assignments) as database:
        found, newest = migrate.current(database), migrate.revisions()[-1]
        typer.echo(f"{found or 'no schema'} (this version: {newest})")
        if found != newest:
            raise typer.Exit(1)
