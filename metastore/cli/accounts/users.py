"""`metastore users`: add, list and revoke the server's own users. It works on the database itself; no server needs to run."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import asdict
from datetime import datetime, timezone
from typing import Annotated, Any

import typer

from metastore.cli.common.options import AsJson, Assignments, ConfigFile, Db, HiveSite, opened
from metastore.cli.common.tables import print_table

app = typer.Typer(help="Add, list and revoke users of the server's own (authentication = users).", no_args_is_help=True)
Name = Annotated[str, typer.Argument(metavar="USER")]


@app.command()
def add(
    name: Name,
    key: Annotated[bool, typer.Option("--key", help="Make a key for a program and print it, once.")] = False,
    groups: Annotated[str, typer.Option(help="Groups of the user, separated by commas.")] = "",
    days: Annotated[float | None, typer.Option("--days", help="Days until the password or key expires; without it, never.")] = None,
    comment: Annotated[str | None, typer.Option(help="Purpose of the key.")] = None,
    db: Db = None,
    config: ConfigFile = None,
    hive_site: HiveSite = None,
    assignments: Assignments = None,
    as_json: AsJson = False,
) -> None:
    """Set a user's password, in place of an earlier one, or add a key. The password is asked for, or read from standard input."""
    from metastore.service.accounts import users

    password = None
    if not key:
        asked = sys.stdin.isatty()
        password = typer.prompt("Password", hide_input=True, confirmation_prompt=True) if asked else sys.stdin.readline().rstrip("\n")
    expires = None if days is None else int(time.time() + days * 86400)
    with opened(db, config, hive_site, assignments) as database:
        made = users.add(database, name, password, [each.strip() for each in groups.split(",") if each.strip()], expires, comment)
    if as_json:
        typer.echo(json.dumps({"user": name, "key": made}, ensure_ascii=False))
    elif made is not None:
        typer.echo(made)


@app.command("list")
def show(
    as_json: AsJson = False, db: Db = None, config: ConfigFile = None, hive_site: HiveSite = None, assignments: Assignments = None
) -> None:
    """Print the users with their passwords and keys."""
    from metastore.store.accounts import credentials

    with opened(db, config, hive_site, assignments) as database:
        found = database.read(credentials.everybody)
    if as_json:
        typer.echo(json.dumps([_as_json(**asdict(each)) for each in found], indent=2, ensure_ascii=False))
        return
    print_table(
        ("user", "id", "kind", "groups", "created", "expires", "comment"),
        [
            (
                each.user,
                str(each.credential_id),
                each.kind,
                ",".join(each.groups),
                _day(each.created),
                _day(each.expires),
                each.comment or "",
            )
            for each in found
        ],
    )


def _as_json(credential_id: int, **fields: Any) -> dict[str, Any]:
    """Return a credential with the names of the command's output, and without its hash."""
    return {"key": credential_id, **fields, "hash": None}


def _day(seconds: int | None) -> str:
    return "" if seconds is None else datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%d %H:%M")


@app.command()
def revoke(
    name: Name,
    credential_id: Annotated[
        int | None, typer.Option("--id", help="Only this password or key, by the id of `metastore users list`.")
    ] = None,
    db: Db = None,
    config: ConfigFile = None,
    hive_site: HiveSite = None,
    assignments: Assignments = None,
    as_json: AsJson = False,
) -> None:
    """Remove a user's passwords and keys, or one of them, and all delegation tokens that the user owns or got for others.

    On a connection that was opened with one of them, the next call is refused, after five seconds at the latest.
    """
    from metastore.service.accounts import users

    with opened(db, config, hive_site, assignments) as database:
        revoked = users.revoke(database, name, credential_id)
    if as_json:
        typer.echo(json.dumps({"revoked": revoked.credentials, "tokens": revoked.tokens}))
    else:
        typer.echo(f"revoked {revoked.credentials}" + (f", and {revoked.tokens} delegation tokens" if revoked.tokens else ""))
