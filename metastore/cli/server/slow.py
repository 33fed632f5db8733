"""`metastore slow`: show the calls that took long, and the parts of their time. Never keeps a call itself."""

from __future__ import annotations

import json
import sys
import time
from typing import Annotated, Any

import typer

from metastore.call_time import PARTS
from metastore.cli.common.options import DEFAULT_URI, AsJson, TlsCa, Uri
from metastore.cli.common.server_pages import fetch
from metastore.cli.common.tables import print_table
from metastore.cli.transactions.txns import age

NARROW = ("when", "took", "call", "for", "of that")
"""The header of the table that fits eighty columns; a cell takes as many lines as it needs."""
HEADER = ("when", "took", *PARTS, "statements", "method", "object", "elements", "user", "address", "query", "outcome")


def slow(
    method: Annotated[str | None, typer.Option(help="Only calls of a method.")] = None,
    user: Annotated[str | None, typer.Option(help="Only calls for a user.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="Most calls that are shown.")] = 50,
    uri: Uri = DEFAULT_URI,
    tls_ca: TlsCa = None,
    as_json: AsJson = False,
) -> None:
    """List the calls that took `slow_call_threshold` or longer, the newest first, with the parts of their time."""
    found = [
        each for each in slow_calls(uri, tls_ca) if (method is None or each["method"] == method) and (user is None or each["user"] == user)
    ][:limit]
    if as_json:
        typer.echo(json.dumps(found, indent=2, ensure_ascii=False))
    elif sys.stdout.isatty():
        print_table(NARROW, [narrow_row(each) for each in found])
    else:
        print_table(HEADER, [row(each) for each in found])


def slow_calls(uri: str, tls_ca: TlsCa) -> list[dict[str, Any]]:
    """Return the calls that a server has kept, the newest first."""
    calls: list[dict[str, Any]] = json.loads(fetch(uri, tls_ca, "/api/v1/slow-calls"))["slow_calls"]
    return calls


def row(call: dict[str, Any]) -> tuple[str, ...]:
    """Return a call as the cells of a table below `HEADER`."""
    now = time.time_ns() // 1_000_000
    return (
        f"{age(int(call['began'] * 1000), now)} ago",
        f"{call['seconds']:.3f}s",
        *(f"{call[f'{part}_seconds']:.3f}s" for part in PARTS),
        str(call["statements"]),
        call["method"],
        call["object"],
        str(call["elements"]),
        call["user"] or "",
        call["address"],
        call["query"],
        call["outcome"],
    )


def narrow_row(call: dict[str, Any]) -> tuple[str, ...]:
    """Return a call as the cells of a table below `NARROW`, without the parts of its time that took none."""
    when, took, *_ = row(call)
    outcome, query = call["outcome"], call["query"]
    what = [f"{call['method']} {call['object']}".strip(), outcome if outcome != "ok" else "", f"query {query}" if query else ""]
    parts = {part: f"{call[f'{part}_seconds']:.3f}s" for part in PARTS}
    of_that = [f"{part} {seconds}" for part, seconds in parts.items() if seconds != "0.000s"]
    counted = [f"{call['statements']} statements", f"{call['elements']} elements"]
    return (
        when,
        took,
        "\n".join(filter(None, what)),
        "\n".join(filter(None, (call["user"], call["address"]))),
        "\n".join([*of_that, *counted]),
    )
