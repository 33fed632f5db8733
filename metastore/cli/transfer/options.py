"""Options and helpers of the commands that move or compare metadata."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from metastore.cli.common.options import fail, tls

if TYPE_CHECKING:
    from metastore.transfer.opening import Asking
    from metastore.transfer.selection import Selection

Include = Annotated[
    list[str] | None,
    typer.Option(help="Only these: database, database.table or catalog.database.table, with * and ?; may be given several times."),
]
Exclude = Annotated[list[str] | None, typer.Option(help="Not these; patterns as in --include.")]
Kinds = Annotated[list[str] | None, typer.Option("--only", metavar="KIND", help="Only records of this kind, such as privilege.")]
Without = Annotated[list[str] | None, typer.Option(metavar="KIND", help="No records of this kind.")]
Rewrite = Annotated[list[str] | None, typer.Option("--rewrite-location", metavar="FROM=TO", help="Move locations below FROM to below TO.")]
Resume = Annotated[bool, typer.Option("--resume", help="Continue an interrupted run: existing tables are left alone.")]
Each = Annotated[bool, typer.Option("--each", help="Print a line for each object but partitions.")]
Connections = Annotated[int, typer.Option(min=1, max=64, help="Connections to a server that is asked over Thrift.")]
Rate = Annotated[float | None, typer.Option("--calls-per-second", min=0.1, help="Most calls per second to a server.")]
SOURCES = "sqlite:///FILE, postgresql://.., mysql://.. (ours or Java's), thrift://HOST:PORT, or the file of a dump"


@contextmanager
def failing() -> Iterator[None]:
    """A context in which a refusal of either side ends the command."""
    from metastore.errors import InvalidInput, MetastoreError

    try:
        yield
    except InvalidInput as error:
        fail(error.message, 2)
    except MetastoreError as error:
        fail(error.message)


def chosen(include: list[str] | None, exclude: list[str] | None, kinds: list[str] | None, without: list[str] | None) -> Selection:
    from metastore.transfer.selection import selection

    return selection(include or (), exclude or (), kinds or (), without or ())


def asking(connections: int, rate: float | None, tls_ca: Path | None) -> Asking:
    """Return the options of connections to servers: their number, the rate of calls, and TLS."""
    from metastore.transfer.opening import Asking

    return Asking(connections, rate, tls(tls_ca))
