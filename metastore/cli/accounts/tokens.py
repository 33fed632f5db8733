"""`metastore tokens`: list and revoke delegation tokens. It works on the database itself; no server needs to run."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import datetime, timezone
from typing import Annotated

import typer

from metastore.cli.common.options import AsJson, Assignments, ConfigFile, Db, HiveSite, opened
from metastore.cli.common.tables import print_table

app = typer.Typer(help="List and revoke delegation tokens (authentication = token).", no_args_is_help=True)
_SHOWN = 12
"""Characters of a token's id in a table."""


@app.command("list")
def show(
    user: Annotated[str | None, typer.Option(help="Only the tokens of this user, and those that the user got for others.")] = None,
    as_json: AsJson = False,
    db: Db = None,
    config: ConfigFile = None,
    hive_site: HiveSite = None,
    assignments: Assignments = None,
) -> None:
    """Print the tokens with their owners and the times of their ends, in UTC. Ended tokens stay until the server removes them."""
    from metastore.store.accounts import delegation_tokens

    with opened(db, config, hive_site, assignments) as database:
        found = database.read(lambda session: delegation_tokens.of_users(session, user))
    if as_json:
        typer.echo(json.dumps([asdict(each) for each in found], indent=2, ensure_ascii=False))
        return
    print_table(
        ("id", "owner", "got by", "renewer", "valid until", "ends"),
        [
            (each.key[:_SHOWN], each.owner, each.real_user or each.owner, each.renewer, _time(each.valid_until), _time(each.max_date))
            for each in found
        ],
    )


def _time(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds // 1000, timezone.utc).strftime("%Y-%m-%d %H:%M")


@app.command()
def revoke(
    user: Annotated[str, typer.Argument(metavar="USER")],
    key: Annotated[str | None, typer.Option("--id", help="Only this token, by the id of `metastore tokens list`.")] = None,
    db: Db = None,
    config: ConfigFile = None,
    hive_site: HiveSite = None,
    assignments: Assignments = None,
    as_json: AsJson = False,
) -> None:
    """Remove the tokens of a user, and those that the user got for others. They are refused from then on.

    On a connection that was opened with one of them, the next call is refused, after five seconds at the latest.
    """
    from metastore.service.accounts import delegation_tokens

    with opened(db, config, hive_site, assignments) as database:
        number = delegation_tokens.revoke(database, user, key)
    typer.echo(json.dumps({"revoked": number}) if as_json else f"revoked {number}")
