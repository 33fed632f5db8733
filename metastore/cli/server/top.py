"""`metastore top`: show the activity of a server: calls per second, slow calls, waiting locks. It only reads."""

from __future__ import annotations

import contextlib
import json
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from metastore.cli.common.options import DEFAULT_URI, AsJson, TlsCa, Uri, tls
from metastore.cli.common.server_pages import fetch
from metastore.cli.common.tables import print_table
from metastore.cli.server import slow
from metastore.cli.transactions.txns import age

if TYPE_CHECKING:
    from rich.console import RenderableType

METHODS, LOCKS, SLOW = 15, 8, 5
"""The largest numbers of methods, locks and slow calls that are shown."""


class Calls(NamedTuple):
    """Calls of one method since its server began: their number, errors among them, and seconds."""

    number: float = 0.0
    errors: float = 0.0
    seconds: float = 0.0


@dataclass
class Sample:
    """The values of `/metrics` at one time."""

    at: float
    calls: dict[str, Calls] = field(default_factory=dict)
    values: dict[tuple[str, ...], float] = field(default_factory=dict)
    """Values by a metric's name and its labels' values."""

    def total(self, name: str) -> float:
        """Return the sum of a metric over its labels."""
        return sum(value for (found, *_), value in self.values.items() if found == name)


def read_sample(text: str, at: float) -> Sample:
    """Return the sample in metrics of Prometheus's text format. They were read at the time `at` of the monotonic clock."""
    from prometheus_client.parser import text_string_to_metric_families

    sample = Sample(at)
    for family in text_string_to_metric_families(text):
        for name, labels, value, *_ in family.samples:
            if family.name != "metastore_call_seconds":
                key = (name, *labels.values())
                sample.values[key] = value
            elif not name.endswith("_bucket"):
                number, errors, seconds = sample.calls.get(labels["method"], Calls())
                if name.endswith("_sum"):
                    seconds += value
                elif name.endswith("_count"):
                    number, errors = number + value, errors + (value if labels["outcome"] != "ok" else 0.0)
                sample.calls[labels["method"]] = Calls(number, errors, seconds)
    return sample


class View(NamedTuple):
    """One screen: a line, and tables as title, header and rows."""

    line: str
    tables: tuple[tuple[str, Sequence[str], list[Sequence[str]]], ...]


def view(before: Sample, now: Sample, waiting: list[Sequence[str]], calls: list[dict[str, Any]]) -> View:
    """Return the screen for the time between two samples, with the waiting locks and the slow calls."""
    passed = max(now.at - before.at, 1e-9)
    rates = []
    for method, (number, errors, seconds) in now.calls.items():
        past = before.calls.get(method, Calls())
        if number > past.number:  # else the server was started again, or nobody called it
            made = number - past.number
            rates.append((made / passed, method, (seconds - past.seconds) / made * 1000, (errors - past.errors) / passed))
    rates.sort(reverse=True)
    value = now.values.get
    line = (
        f"{sum(each[0] for each in rates):.1f} calls/s, {sum(each[3] for each in rates):.1f} errors/s; "
        f"{now.total('metastore_connections'):.0f} connections; "
        f"{value(('metastore_open_transactions',), 0):.0f} open transactions; "
        f"{value(('metastore_locks', 'waiting'), 0):.0f} locks wait, {value(('metastore_locks', 'acquired'), 0):.0f} are held; "
        f"{value(('metastore_compactions', 'initiated'), 0):.0f} compactions are due"
    )
    if not value(("metastore_database_up",), 1):
        line += "; THE DATABASE DOES NOT ANSWER"
    methods: list[Sequence[str]] = [
        (method, f"{rate:.1f}", f"{mean:.1f}", f"{errors:.1f}" if errors else "") for rate, method, mean, errors in rates[:METHODS]
    ]
    return View(
        line,
        (
            ("calls", ("method", "per second", "mean ms", "errors per second"), methods),
            ("locks that wait", ("lock", "object", "type", "user", "waits for", "since"), waiting[:LOCKS]),
            ("slow calls", slow.NARROW, [[cell.replace("\n", ", ") for cell in slow.narrow_row(each)] for each in calls[:SLOW]]),
        ),
    )


def top(
    interval: Annotated[float, typer.Option(min=0.1, help="Seconds between two updates.")] = 2.0,
    once: Annotated[bool, typer.Option("--once", help="Show the activity once and end.")] = False,
    uri: Uri = DEFAULT_URI,
    tls_ca: TlsCa = None,
    as_json: AsJson = False,
) -> None:
    """Show the activity of a server until Ctrl-C: calls per second by method, errors, locks that wait, the newest slow calls."""
    with contextlib.suppress(KeyboardInterrupt):
        before = _sample(uri, tls_ca)
        if once or as_json or not sys.stdout.isatty():
            for shown in _views(before, uri, tls_ca, interval):
                _print(shown, as_json=as_json)
                if once:
                    return
        from rich.live import Live

        with Live(screen=True, auto_refresh=False) as live:
            live.update(f"asking {uri} ...", refresh=True)
            for shown in _views(before, uri, tls_ca, interval):
                live.update(_drawn(shown, uri), refresh=True)


def _print(shown: View, *, as_json: bool) -> None:
    """Print a view as lines; with `as_json` as one line of JSON, so that each view is a document."""
    if as_json:
        tables = {title: [dict(zip(header, row, strict=True)) for row in rows] for title, header, rows in shown.tables}
        typer.echo(json.dumps({"line": shown.line, **tables}, ensure_ascii=False))
        return
    typer.echo(shown.line)
    for title, header, rows in shown.tables:
        if rows:
            typer.echo(f"{title}:")
            print_table(header, rows)


def _views(before: Sample, uri: str, tls_ca: Path | None, interval: float) -> Iterable[View]:
    while True:
        time.sleep(interval)
        now = _sample(uri, tls_ca)
        yield view(before, now, _waiting(uri, tls_ca), slow.slow_calls(uri, tls_ca))
        before = now


def _sample(uri: str, tls_ca: Path | None) -> Sample:
    return read_sample(fetch(uri, tls_ca, "/metrics"), time.monotonic())


def _waiting(uri: str, tls_ca: Path | None) -> list[Sequence[str]]:
    """Return the locks that wait, as rows; none where the caller can not use Thrift."""
    from thriftpy2.thrift import TException

    from metastore.cli.transactions.locks import values_of, with_waits
    from metastore.client import connect
    from metastore.idl import ShowLocksRequest

    try:
        with connect(uri, tls=tls(tls_ca)) as client:
            found = [values_of(each) for each in client.show_locks(ShowLocksRequest(isExtended=True)).locks]
    except (TException, OSError):
        return []
    now = time.time_ns() // 1_000_000
    return [
        (str(each["id"]), each["object"], each["type"], each["user"] or "", str(each["waits_for"] or ""), age(each["waiting_ms"], now))
        for each in with_waits([each for each in found if each["state"] == "waiting"], uri, tls_ca)
    ]


def _drawn(shown: View, uri: str) -> RenderableType:
    """Return a view for a terminal."""
    from rich import box
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    parts: list[RenderableType] = [Text(f"{uri}  {time.strftime('%H:%M:%S')}", style="bold"), Text(shown.line), Text()]
    for title, header, rows in shown.tables:
        if not rows and title != "calls":
            continue
        table = Table(*header, title=title, title_justify="left", box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
        for row in rows:
            table.add_row(*(Text(cell, overflow="ellipsis", no_wrap=True) for cell in row))
        parts += [table, Text()]
    return Group(*parts)
