"""`metastore txns`: show the open and aborted transactions of any metastore, and abort the named ones."""

from __future__ import annotations

import json
import time
from typing import Annotated

import typer

from metastore.cli.common.options import DEFAULT_URI, AsJson, TlsCa, Uri, asking, fail
from metastore.cli.common.tables import print_table

app = typer.Typer(help="Show and abort transactions.", no_args_is_help=True)


def age(then: int | None, now: int) -> str:
    """Return the time from `then` to `now`, both in milliseconds, as a text with its two largest units."""
    if not then:
        return ""
    seconds = max(0, now - then) // 1000
    days, hours, minutes = seconds // 86400, seconds // 3600 % 24, seconds // 60 % 60
    if days:
        return f"{days}d {hours}h"
    if hours:
        return f"{hours}h {minutes}m"
    return f"{minutes}m {seconds % 60}s" if minutes else f"{seconds}s"


@app.command("list")
def show(
    aborted: Annotated[bool, typer.Option("--aborted", help="Also show aborted transactions that are not yet cleaned up.")] = False,
    uri: Uri = DEFAULT_URI,
    tls_ca: TlsCa = None,
    as_json: AsJson = False,
) -> None:
    """List the open transactions: owner, age, and time of the last heartbeat."""
    from metastore.idl import TxnState

    with asking(uri, tls_ca) as client:
        found = client.get_open_txns_info().open_txns
    shown = [each for each in found if aborted or each.state == TxnState.OPEN]
    names = {TxnState.OPEN: "open", TxnState.ABORTED: "aborted"}
    if as_json:
        typer.echo(
            json.dumps(
                [
                    {
                        "id": each.id,
                        "state": names[each.state],
                        "user": each.user,
                        "host": each.hostname,
                        "agent": each.agentInfo,
                        "started_ms": each.startedTime,
                        "heartbeat_ms": each.lastHeartbeatTime,
                    }
                    for each in shown
                ],
                indent=2,
                ensure_ascii=False,
            )
        )
        return
    now = time.time_ns() // 1_000_000
    print_table(
        ("id", "state", "user", "host", "agent", "age", "last heartbeat"),
        [
            (
                str(each.id),
                names[each.state],
                each.user or "",
                each.hostname or "",
                each.agentInfo or "",
                age(each.startedTime, now),
                age(each.lastHeartbeatTime, now),
            )
            for each in shown
        ],
    )


@app.command("abort")
def abort(
    ids: Annotated[list[int], typer.Argument(metavar="ID...", help="Transactions to abort, with all their locks.")],
    uri: Uri = DEFAULT_URI,
    tls_ca: TlsCa = None,
    as_json: AsJson = False,
) -> None:
    """Abort transactions. One that has ended is an error; the others are aborted nevertheless."""
    from metastore.idl import AbortTxnRequest, NoSuchTxnException

    done: list[int] = []
    wrong: list[str] = []
    with asking(uri, tls_ca) as client:
        for each in ids:
            try:
                client.abort_txn(AbortTxnRequest(txnid=each))
            except NoSuchTxnException as error:
                wrong.append(error.message)
            else:
                done.append(each)
    print_done("aborted", done, wrong, as_json=as_json)


def print_done(verb: str, done: list[int], wrong: list[str], *, as_json: bool) -> None:
    """Print the ids that were processed, after `verb`. Errors end the command with status 1."""
    if as_json:
        typer.echo(json.dumps({verb: done, "errors": wrong}, indent=2, ensure_ascii=False))
    else:
        for each in done:
            typer.echo(f"{verb} {each}")
    if wrong:
        fail("; ".join(wrong))
