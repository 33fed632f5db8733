"""`metastore compactions`: show the compaction queue of any server; queue, retry and abort compactions. Never compacts anything itself."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from metastore.cli.common.objects import require
from metastore.cli.common.options import DEFAULT_URI, AsJson, TlsCa, Uri, asking, fail
from metastore.cli.common.tables import print_table
from metastore.rules.transactions.compactions import DEFAULT_POOL, INITIATED, READY, SERVERS_OWN, STATE_TEXTS, WAITS, WORKING

if TYPE_CHECKING:
    from metastore.client import Client
    from metastore.idl import CompactionResponse, ShowCompactResponseElement, TxnInfo

PENDING = {STATE_TEXTS[state] for state in (INITIATED, WORKING, READY)}
TO_RETRY = {text for state, text in STATE_TEXTS.items() if text not in PENDING}
LETTERS = {text: letter for letter, text in STATE_TEXTS.items()}
HEADER = ("id", "table", "type", "state", "age", "worker", "reason")

app = typer.Typer(help="Look at the compaction queue of a server, and change it.", no_args_is_help=True)
Table = Annotated[str, typer.Argument(metavar="DATABASE.TABLE", help="A transactional table.")]
Ids = Annotated[list[int], typer.Argument(metavar="ID...", help="Numbers of compactions, as `list` shows them.")]


@app.command("list")
def list_compactions(
    name: Annotated[str | None, typer.Argument(metavar="[DATABASE[.TABLE]]", help="Nothing, a database or a table.")] = None,
    history: Annotated[bool, typer.Option("--all", help="Those that have ended too.")] = False,
    state: Annotated[str | None, typer.Option(help=f"Only those that are {', '.join(STATE_TEXTS.values())}.")] = None,
    pool: Annotated[str | None, typer.Option(help="Only entries of this pool.")] = None,
    limit: Annotated[int, typer.Option(help="Most entries to list; 0 lists all.")] = 0,
    uri: Uri = DEFAULT_URI,
    tls_ca: TlsCa = None,
    as_json: AsJson = False,
) -> None:
    """List compactions that wait, run or are cleaned, and the reasons for waiting."""
    from metastore import idl

    if state is not None and state not in LETTERS:
        fail(f"no state {state!r}; use one of {', '.join(STATE_TEXTS.values())}", 2)
    database, _, table = (name or "").partition(".")
    request = idl.ShowCompactRequest(
        dbName=database or None,
        tbName=table or None,
        state=LETTERS[state] if state else None,
        poolName=pool,
        order="compactionid",
    )
    with asking(uri, tls_ca) as client:
        found = [each for each in client.show_compact(request).compacts if history or state or each.state in PENDING]
        if not found and name is not None:
            require(client, name)
        opened = _open_transactions(client) if any(each.state == STATE_TEXTS[READY] for each in found) else {}
    now = time.time_ns() // 1_000_000
    rows = [_row(each, opened, now) for each in found[: limit or None]]
    if as_json:
        typer.echo(json.dumps(rows, indent=2, ensure_ascii=False))
    else:
        print_table(
            HEADER,
            [
                (
                    str(row["id"]),
                    row["table"] + (f" {row['partition']}" if row["partition"] else ""),
                    row["type"],
                    row["state"],
                    duration(row["age_seconds"]),
                    row["worker"] or "",
                    row["reason"],
                )
                for row in rows
            ],
        )


def _open_transactions(client: Client) -> dict[int, TxnInfo]:
    from metastore.idl import TxnState

    found = client.get_open_txns_info().open_txns
    return {each.id: each for each in sorted(found, key=lambda each: each.id) if each.state == TxnState.OPEN}


def _row(entry: ShowCompactResponseElement, opened: Mapping[int, TxnInfo], now: int) -> dict[str, Any]:
    from metastore.idl import CompactionType

    began = entry.enqueueTime or entry.start or now
    return {
        "id": entry.id,
        "table": f"{entry.dbname}.{entry.tablename}",
        "partition": entry.partitionname,
        "type": CompactionType._VALUES_TO_NAMES.get(entry.type, str(entry.type)).lower(),  # noqa: SLF001 - thriftpy2 has no public name
        "state": entry.state,
        "pool": entry.poolName,
        "age_seconds": max(0, (entry.endTime or now) - began) // 1000,
        "worker": entry.workerid,
        "reason": reason(entry, opened, now),
    }


def reason(entry: ShowCompactResponseElement, opened: Mapping[int, TxnInfo], now: int) -> str:
    """Return the reason for which a compaction waits or has ended; `opened` holds the open transactions in ascending order."""
    if entry.state == STATE_TEXTS[INITIATED]:
        pool = "" if entry.poolName in (None, DEFAULT_POOL) else f" of pool {entry.poolName}"
        if entry.errorMessage and entry.workerVersion:
            return f"waits for a worker{pool} other than {entry.workerVersion}, such as `metastore compactor`: {entry.errorMessage}"
        return f"waits for a worker{pool}" + (f", the last one was {entry.errorMessage}" if entry.errorMessage else "")
    if entry.state == STATE_TEXTS[WORKING]:
        job = f", {'' if entry.workerVersion == SERVERS_OWN else 'job '}{entry.hadoopJobId}" if entry.hadoopJobId else ""
        return f"worked on for {duration((now - (entry.start or now)) // 1000)}{job}"
    if entry.state != STATE_TEXTS[READY]:
        return entry.errorMessage or ""
    if entry.txnId in opened:
        return f"waits for its worker to commit transaction {entry.txnId}"
    oldest = next(iter(opened.values()), None)
    if oldest is not None and entry.nextTxnId and oldest.id < entry.nextTxnId:
        since = duration((now - (oldest.startedTime or now)) // 1000)
        return f"waits for transaction {oldest.id} of {oldest.user or 'nobody'}, open for {since}"
    if entry.errorMessage:
        if entry.errorMessage.startswith(WAITS):
            return entry.errorMessage
        return f"is tried again after a failure: {entry.errorMessage}"
    return "waits for the cleaner"


def duration(seconds: int) -> str:
    """Return a number of seconds as a text with its largest unit: 45 s, 5 min, 3 h, 2 d."""
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= size:
            return f"{seconds // size} {unit}"
    return f"{max(0, seconds)} s"


@app.command()
def queue(
    name: Table,
    partition: Annotated[str | None, typer.Argument(help="A partition of the table, as KEY=VALUE/KEY=VALUE.")] = None,
    kind: Annotated[str, typer.Option("--type", help="major or minor.")] = "major",
    pool: Annotated[str | None, typer.Option(help="Pool whose workers do it.")] = None,
    uri: Uri = DEFAULT_URI,
    tls_ca: TlsCa = None,
    as_json: AsJson = False,
) -> None:
    """Ask for a compaction of a table or partition."""
    from metastore import idl

    database, dot, table = name.partition(".")
    if not dot:
        fail(f"{name} is not a table: write DATABASE.TABLE", 2)
    if kind not in {"major", "minor"}:
        fail(f"no type {kind}; use major or minor", 2)
    number = idl.CompactionType.MAJOR if kind == "major" else idl.CompactionType.MINOR
    request = idl.CompactionRequest(
        dbname=database, tablename=table, partitionname=partition, type=number, poolName=pool, initiatorId="command line"
    )
    with asking(uri, tls_ca) as client:
        require(client, name, partition)
        answer = client.compact2(request)
    _print_queued(answer, as_json=as_json)


def _print_queued(answer: CompactionResponse, *, as_json: bool) -> None:
    if not answer.accepted:
        fail(answer.errormessage or f"the server refused it: {answer.state}")
    typer.echo(json.dumps({"id": answer.id, "state": answer.state}) if as_json else f"compaction {answer.id} is {answer.state}")


@app.command()
def retry(
    key: Annotated[int, typer.Argument(metavar="ID", help="Number of a compaction that has ended.")],
    uri: Uri = DEFAULT_URI,
    tls_ca: TlsCa = None,
    as_json: AsJson = False,
) -> None:
    """Queue a compaction again that has ended: one that failed, was refused, was aborted, did not start, or succeeded."""
    from metastore import idl

    with asking(uri, tls_ca) as client:
        found = client.show_compact(idl.ShowCompactRequest(id=key)).compacts
        if not found:
            fail(f"no compaction {key}: `metastore compactions list --all` shows all")
        (entry,) = found
        if entry.state not in TO_RETRY:
            fail(f"compaction {key} of {entry.dbname}.{entry.tablename} is {entry.state}: only one that has ended can be tried again")
        request = idl.CompactionRequest(
            dbname=entry.dbname,
            tablename=entry.tablename,
            partitionname=entry.partitionname,
            type=entry.type,
            runas=entry.runAs,
            poolName=None if entry.poolName == DEFAULT_POOL else entry.poolName,
            initiatorId="command line",
        )
        answer = client.compact2(request)
    _print_queued(answer, as_json=as_json)


@app.command()
def abort(keys: Ids, uri: Uri = DEFAULT_URI, tls_ca: TlsCa = None, as_json: AsJson = False) -> None:
    """Abort compactions that have not begun, or that run in a process of a server (`compactor_worker_threads`)."""
    from metastore import idl

    with asking(uri, tls_ca) as client:
        aborted = client.abort_Compactions(idl.AbortCompactionRequest(compactionIds=list(keys))).abortedcompacts
    _print_aborted(aborted, keys, as_json=as_json)


def _print_aborted(aborted: Mapping[int, Any], keys: Sequence[int], *, as_json: bool) -> None:
    rows = [
        {"id": key, "status": found.status if found else "Error", "message": found.message if found else "not known"}
        for key, found in ((key, aborted.get(key)) for key in keys)
    ]
    if as_json:
        typer.echo(json.dumps(rows, indent=2))
    else:
        print_table(("id", "status", "message"), [(str(row["id"]), str(row["status"]), str(row["message"])) for row in rows])
    if any(row["status"] != "Success" for row in rows):
        raise typer.Exit(1)
