"""Show how far long work has come: a bar on a terminal, a line for each step elsewhere. It writes to standard error alone."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import typer

Step = Callable[[str], None]
"""Is called when a step is done, with what was done."""


@contextmanager
def steps(title: str, total: int | None) -> Iterator[Step]:
    """Yield what is to be called after each of `total` steps; None if nobody knows how many there are."""
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
def _bar(title: str, total: int | None) -> Iterator[Step]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(title, total=total)
        yield lambda text: progress.update(task, advance=1, description=f"{title}: {text}")
