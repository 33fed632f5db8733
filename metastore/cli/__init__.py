"""The command line, `metastore`: run a server, look after its database, ask any server. Holds no rule of the catalog.

    serve        run a server in the foreground
    health       ask a server whether it is ready
    doctor       check everything that a server needs, with advice
    db           upgrade or show the schema of a database
    dump         write all objects of a metastore into one file; restore writes it into a database
    import       take over the objects of another metastore; follow keeps them up to date; export writes them to another server
    verify, diff compare two metastores, dumps or databases
    shadow       answer from one metastore and compare another with it on the same calls
    users        add, list and revoke the server's own users
    tokens       list and revoke delegation tokens
    config       show every setting, its value and its source
    ls, show     look at databases, tables and partitions of any Hive metastore
    top, slow    watch a server: calls per second, waiting locks, calls that took long
    txns, locks  show transactions and locks, abort and release them
    locations    let users and roles put data outside of their databases
    compactions  list, queue, retry and abort compactions of transactional tables
    compactor    run compaction workers on Spark
    sql          run SQL on Spark, over transactional tables too
    check        find files of transactional tables with rows of another bucket, or with names that Hive refuses
    call         call any method of the Thrift interface with JSON arguments

The exit status is 0 for success, 1 for a failure that the error names, 2 for a command line that does not fit.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import metastore

COMMANDS = {
    "serve": "server.serve:serve",
    "health": "server.health:health",
    "doctor": "server.doctor:doctor",
    "db": "server.db:app",
    "dump": "transfer.moves:dump",
    "restore": "transfer.moves:restore",
    "import": "transfer.moves:import_",
    "follow": "transfer.moves:follow",
    "export": "transfer.moves:export",
    "verify": "transfer.comparisons:verify",
    "diff": "transfer.comparisons:diff",
    "shadow": "transfer.shadow:shadow",
    "users": "accounts.users:app",
    "user": "accounts.users:app",
    "tokens": "accounts.tokens:app",
    "config": "server.show_config:show_config",
    "ls": "catalog.browse:ls",
    "show": "catalog.browse:show",
    "call": "catalog.call:call",
    "top": "server.top:top",
    "slow": "server.slow:slow",
    "txns": "transactions.txns:app",
    "locks": "transactions.locks:app",
    "locations": "catalog.locations:app",
    "compactions": "transactions.compactions:app",
    "compactor": "transactions.compactor:compactor",
    "sql": "sql.shell:sql",
    "check": "server.check:check",
}
"""The module of each command, below `metastore.cli`, and in it the function or the group of commands. It is loaded for its command only."""
HIDDEN = frozenset({"user"})
"""Commands that are not listed: `user` is the former name of `users`."""


class _Commands(TyperGroup):
    """The commands, each loaded when it is asked for."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002  # click's signature
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002  # click's signature
        if cmd_name not in COMMANDS:
            return None
        module, name = COMMANDS[cmd_name].split(":")
        found: Any = getattr(import_module(f"{__name__}.{module}"), name)
        one = typer.Typer(context_settings=SETTINGS, pretty_exceptions_enable=False)
        if isinstance(found, typer.Typer):
            one.add_typer(found, name=cmd_name, hidden=cmd_name in HIDDEN)
            return typer.main.get_group(one).commands[cmd_name]
        one.command(cmd_name)(found)
        return typer.main.get_command(one)


SETTINGS = {"help_option_names": ["-h", "--help"]}

app = typer.Typer(
    name="metastore",
    cls=_Commands,
    help="A standalone Hive metastore: run a server, look after its database, ask any server.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings=SETTINGS,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from metastore.wire.codec import IMPLEMENTATION

        typer.echo(f"metastore {metastore.__version__}, {IMPLEMENTATION} codec")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version, and whether the codec is compiled."),
    ] = False,
) -> None:
    """Take the options before a command."""


def main() -> None:
    """Run the command that the arguments name. It ends quietly when the reader of its output, such as `head`, closes the pipe."""
    try:
        app()
    finally:
        try:
            sys.stdout.flush()
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # else Python reports an error at its end
