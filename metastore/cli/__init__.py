"""The command line, `metastore`: run a server, look after its database, ask any server. Holds no rule of the catalog.

    serve        run a server in the foreground
    health       ask a server whether it is ready
    doctor       look at all that a server needs, and say what to do
    db           upgrade or show the schema of a database
    users        add, list and revoke the server's own users
    tokens       list and revoke delegation tokens
    config       show every setting, its value and where it came from
    ls, show     look at databases, tables and partitions of any Hive metastore
    top, slow    watch what a server does: calls per second, waiting locks, calls that took long
    txns, locks  show transactions and locks, abort and release them
    locations    let users and roles put data outside of their databases
    compactions  list, queue, try again and take off compactions of transactional tables
    compactor    run compaction workers on Spark
    check        look for files of transactional tables that readers take otherwise than they are meant
    call         call any method of the Thrift interface with JSON arguments

The exit status is 0 for success, 1 for a failure that the error names, 2 for a command line that does not fit.
"""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

import metastore
from metastore.cli.accounts import tokens, users
from metastore.cli.catalog import browse, call, locations
from metastore.cli.server import check, db, doctor, health, serve, show_config, slow, top
from metastore.cli.transactions import compactions, compactor, locks, txns
from metastore.wire.codec import IMPLEMENTATION

app = typer.Typer(
    name="metastore",
    help="A standalone Hive metastore: run a server, look after its database, ask any server.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"metastore {metastore.__version__}, {IMPLEMENTATION} codec")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version, and whether the codec is compiled."),
    ] = False,
) -> None:
    """Take the options that stand before a command."""


app.command("serve")(serve.serve)
app.command("health")(health.health)
app.command("doctor")(doctor.doctor)
app.add_typer(db.app, name="db")
app.add_typer(users.app, name="users")
app.add_typer(users.app, name="user", hidden=True)  # as it was called
app.add_typer(tokens.app, name="tokens")
app.command("config")(show_config.show_config)
app.command("ls")(browse.ls)
app.command("show")(browse.show)
app.command("call")(call.call)
app.command("top")(top.top)
app.command("slow")(slow.slow)
app.add_typer(txns.app, name="txns")
app.add_typer(locks.app, name="locks")
app.add_typer(locations.app, name="locations")
app.add_typer(compactions.app, name="compactions")
app.command("compactor")(compactor.compactor)
app.command("check")(check.check)


def main() -> None:
    """Run the command that the arguments name. It ends quietly when whoever reads its output, such as `head`, has had enough."""
    try:
        app()
    finally:
        try:
            sys.stdout.flush()
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # else Python complains at its end
