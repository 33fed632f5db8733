"""`metastore slow`: show which calls took long, and what they took the time for. Never keeps a call itself."""

from __future__ import annotations

import json
import time
from typing import Annotated, Any

import typer

from metastore.cli.options import DEFAULT_URI, AsJson, TlsCa, Uri
from metastore.cli.server_pages import fetch
from metastore.cli.tables import print_table
from metastore.cli.txns import age
from metastore.work import PARTS

HEADER = ("when", "took", *PARTS, "statements", "method", "object", "elements", "user", "address", "query", "outcome")


def slow(
    method: Annotated[str | None, typer.Option(help="Only calls of a method.")] = None,
    user: Annotated[str | None, typer.Option(help="Only calls for a user.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="Most calls that are shown.")] = 50,
    uri: Uri = DEFAULT_URI,
    tls_ca: TlsCa = None,
    as_json: AsJson = False,
) -> None:
    """List the calls that took `slow_call_threshold` or longer, the newest first, with what took their time."""
    found = [
        each for each in slow_calls(uri, tls_ca) if (method is None or each["method"] == method) and (user is None or each["user"] == user)
    ][:limit]
    if as_json:
        typer.echo(json.dumps(found, indent=2, ensure_ascii=False))
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
