"""Show the progress of long work: a bar on a terminal, a line for each step elsewhere. It writes to standard error alone."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext

import typer

LINE_SECONDS = 10
"""Seconds between two lines of a long task, where there is no terminal."""
Step = Callable[[str], None]
"""The function to call when a step is done, with a description of it."""


@contextmanager
def steps(title: str, total: int | None) -> Iterator[Step]:
    """Yield the function to call after each of `total` steps; `total` is None if their number is not known."""
    if sys.stderr.isatty():
        with _bar(title, total) as step:
            yield step
        return
    done = 0
    begun = time.monotonic()

    def line(text: str) -> None:
        nonlocal done
        done += 1
        of = "" if total is None else f" of {total}"
        typer.echo(f"{title}: {done}{of} after {time.monotonic() - begun:.0f} s: {text}", err=True)

    yield line


@contextmanager
def amount(title: str, unit: str, total: int | None = None) -> Iterator[Callable[[int], None]]:
    """Yield the function to call with the number of further items that are done. It shows the rate, and with `total` the time left.

    On a terminal one line is updated, elsewhere a line is added every ten seconds. A last line is printed at the end.
    """
    done, begun = 0, time.monotonic()
    shown = begun

    def text() -> str:
        seconds = time.monotonic() - begun
        rate = done / seconds if seconds else 0.0
        left = "" if total is None or not rate else f", {max(0.0, (total - done) / rate):.0f} s left"
        return f"{title}: {done}{'' if total is None else f' of {total}'} {unit} after {seconds:.0f} s, {rate:.0f}/s{left}"

    with _status() if sys.stderr.isatty() else nullcontext(_print) as show:

        def add(more: int) -> None:
            nonlocal done, shown
            done += more
            if sys.stderr.isatty() or time.monotonic() - shown >= LINE_SECONDS:
                shown = time.monotonic()
                show(text())

        yield add
    _print(text())


def _print(text: str) -> None:
    typer.echo(text, err=True)


@contextmanager
def _status() -> Iterator[Callable[[str], None]]:
    from rich.console import Console

    with Console(stderr=True).status("") as status:
        yield status.update


@contextmanager
def _bar(title: str, total: int | None) -> Iterator[Step]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(title, total=total)
        yield lambda text: progress.update(task, advance=1, description=f"{title}: {text}")
