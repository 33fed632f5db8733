"""`metastore locks`: show the locks of any metastore with the locks that each waits for, and release the named ones."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from metastore.cli.common.objects import require
from metastore.cli.common.options import DEFAULT_URI, AsJson, TlsCa, Uri, asking
from metastore.cli.common.server_pages import waiting_since
from metastore.cli.common.tables import print_table
from metastore.cli.transactions.txns import age, print_done

app = typer.Typer(help="Show and release locks.", no_args_is_help=True)


@app.command("list")
def show(
    name: Annotated[str | None, typer.Argument(metavar="[DATABASE[.TABLE]]", help="Only the locks on a database or a table.")] = None,
    partition: Annotated[str | None, typer.Option(help="Only the locks on a partition of the table, KEY=VALUE/KEY=VALUE.")] = None,
    txn: Annotated[int, typer.Option(help="Only the locks of a transaction.")] = 0,
    uri: Uri = DEFAULT_URI,
    tls_ca: TlsCa = None,
    as_json: AsJson = False,
) -> None:
    """List locks: object, type, state, the lock that each waits for, owner, and time of the last heartbeat."""
    from metastore.idl import ShowLocksRequest

    database, _, table = (name or "").partition(".")
    request = ShowLocksRequest(dbname=database or None, tablename=table or None, partname=partition, txnid=txn or None, isExtended=True)
    with asking(uri, tls_ca) as client:
        found = client.show_locks(request).locks
        if not found and name is not None:
            require(client, name)
    shown = with_waits([values_of(each) for each in found], uri, tls_ca)
    if as_json:
        typer.echo(json.dumps(shown, indent=2, ensure_ascii=False))
        return
    now = time.time_ns() // 1_000_000
    rows = []
    for values in shown:
        waits = "" if values["waits_for"] is None else str(values["waits_for"])
        since = age(values["acquired_ms"] or values["waiting_ms"], now)
        heard = "with its transaction" if values["transaction"] and not values["heartbeat_ms"] else age(values["heartbeat_ms"], now)
        rows.append(
            (
                str(values["id"]),
                str(values["transaction"] or ""),
                values["object"],
                values["type"],
                values["state"],
                waits,
                values["user"] or "",
                values["host"] or "",
                since,
                heard,
            )
        )
    print_table(("id", "txn", "object", "type", "state", "waits for", "user", "host", "held or waits", "last heartbeat"), rows)


def with_waits(found: list[dict[str, Any]], uri: str, tls_ca: Path | None) -> list[dict[str, Any]]:
    """Return locks with the beginnings of their waits, if the server has a page of them: Thrift has no field for these times."""
    since = waiting_since(uri, tls_ca) if any(each["state"] == "waiting" for each in found) else {}
    return [{**each, "waiting_ms": since.get(each["id"]) if each["state"] == "waiting" else None} for each in found]


def values_of(each: Any) -> dict[str, Any]:
    """Return a component of a lock from the reply of `show_locks`, in the words of the glossary; times are in milliseconds."""
    from metastore.idl import LockState, LockType

    types = {
        LockType.SHARED_READ: "shared_read",
        LockType.SHARED_WRITE: "shared_write",
        LockType.EXCL_WRITE: "excl_write",
        LockType.EXCLUSIVE: "exclusive",
    }
    parts = (each.dbname, each.tablename, each.partname)
    return {
        "id": each.lockid,
        "transaction": each.txnid or None,
        "object": ".".join(part for part in parts if part),
        "type": types[each.type],
        "state": "acquired" if each.state == LockState.ACQUIRED else "waiting",
        "waits_for": each.blockedByExtId,
        "user": each.user,
        "host": each.hostname,
        "agent": each.agentInfo,
        "acquired_ms": each.acquiredat,
        "heartbeat_ms": each.lastheartbeat,
    }


@app.command("unlock")
def unlock(
    ids: Annotated[list[int], typer.Argument(metavar="ID...", help="Locks to release; one that a transaction holds ends with it only.")],
    uri: Uri = DEFAULT_URI,
    tls_ca: TlsCa = None,
    as_json: AsJson = False,
) -> None:
    """Release locks that wait or belong to no transaction. A missing one is an error; the others are released nevertheless."""
    from metastore import idl

    done: list[int] = []
    wrong: list[str] = []
    with asking(uri, tls_ca) as client:
        there = {each.lockid for each in client.show_locks(idl.ShowLocksRequest()).locks}
        for each in ids:
            if each not in there:
                wrong.append(f"there is no lock {each}")
                continue
            try:
                client.unlock(idl.UnlockRequest(lockid=each))
            except (idl.NoSuchLockException, idl.TxnOpenException) as error:
                wrong.append(error.message)
            else:
                done.append(each)
    print_done("released", done, wrong, as_json=as_json)
