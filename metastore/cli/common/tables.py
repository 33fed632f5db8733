"""Print a table: with rich on a terminal, as columns separated by tabs elsewhere. Never cuts a value for a program."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

import typer


def print_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print rows below a header; without a terminal only the rows."""
    if not sys.stdout.isatty():
        for row in rows:
            typer.echo("\t".join(row))
        return
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(*header, box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for row in rows:
        table.add_row(*(Text(cell, overflow="fold") for cell in row))
    Console().print(table)
