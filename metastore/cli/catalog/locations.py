"""`metastore locations`: let users, groups and roles put data outside of their databases. It works on the database, not on a server."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from metastore.cli.common.options import AsJson, Assignments, ConfigFile, Db, HiveSite, fail, opened
from metastore.cli.common.tables import print_table

app = typer.Typer(help="Let users, groups and roles put data outside of their databases (authorization grants).", no_args_is_help=True)

Principal = Annotated[str, typer.Argument(metavar="ROLE", help="Name of a role; of a user with --user, of a group with --group.")]
Prefix = Annotated[str, typer.Argument(metavar="LOCATION", help="Location and all below it: s3://bucket/path, hdfs://host/path or /path.")]
User = Annotated[bool, typer.Option("--user", help="The name is a user's.")]
Group = Annotated[bool, typer.Option("--group", help="The name is a group's.")]


def _kind(user: bool, group: bool) -> int:
    from metastore.idl import PrincipalType

    if user and group:
        fail("give --user or --group, not both", 2)
    return int(PrincipalType.USER if user else PrincipalType.GROUP if group else PrincipalType.ROLE)


@app.command()
def grant(
    principal: Principal,
    location: Prefix,
    user: User = False,
    group: Group = False,
    db: Db = None,
    config: ConfigFile = None,
    hive_site: HiveSite = None,
    assignments: Assignments = None,
    as_json: AsJson = False,
) -> None:
    """Let a role, user or group put data at a location and below it. Servers see it within a second."""
    from metastore.service.authorization import location_grants

    with opened(db, config, hive_site, assignments) as database:
        location_grants.grant(database, principal, _kind(user, group), location)
    if as_json:
        typer.echo(json.dumps({"granted": location, "to": principal}, ensure_ascii=False))


@app.command()
def revoke(
    principal: Principal,
    location: Prefix,
    user: User = False,
    group: Group = False,
    db: Db = None,
    config: ConfigFile = None,
    hive_site: HiveSite = None,
    assignments: Assignments = None,
    as_json: AsJson = False,
) -> None:
    """Revoke the grant. Tables at the location stay."""
    from metastore.service.authorization import location_grants

    with opened(db, config, hive_site, assignments) as database:
        location_grants.revoke(database, principal, _kind(user, group), location)
    if as_json:
        typer.echo(json.dumps({"revoked": location, "from": principal}, ensure_ascii=False))


@app.command("list")
def show(
    db: Db = None, config: ConfigFile = None, hive_site: HiveSite = None, assignments: Assignments = None, as_json: AsJson = False
) -> None:
    """List the locations with the users and roles that may put data there."""
    from metastore.service.authorization import location_grants

    kinds = {1: "user", 2: "role", 3: "group"}
    with opened(db, config, hive_site, assignments) as database:
        rows = [(kinds.get(each.type, str(each.type)), each.principal, each.location) for each in location_grants.granted(database)]
    header = ("kind", "name", "location")
    if as_json:
        typer.echo(json.dumps([dict(zip(header, row, strict=True)) for row in rows], indent=2, ensure_ascii=False))
    else:
        print_table(header, rows)
