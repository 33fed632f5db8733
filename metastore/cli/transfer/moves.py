"""`metastore dump`, `restore`, `import`, `export`: move the objects of metastores. The rules are in `transfer`."""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Iterable
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from metastore.cli.common.options import AsJson, Assignments, ConfigFile, Db, HiveSite, TlsCa, fail, settings
from metastore.cli.common.progress import amount
from metastore.cli.common.tables import print_table
from metastore.cli.transfer.options import (
    SOURCES,
    Connections,
    Each,
    Exclude,
    Include,
    Kinds,
    Rate,
    Resume,
    Rewrite,
    Without,
    asking,
    chosen,
    failing,
)

if TYPE_CHECKING:
    from metastore.transfer.contract import Reader, Writer
    from metastore.transfer.following import Round
    from metastore.transfer.moving import Moved
    from metastore.transfer.selection import Selection


def _move(title: str, reader: Reader, writer: Writer | None, selection: Selection, *, resume: bool, each: bool, as_json: bool) -> None:
    from metastore.transfer.moving import move

    is_whole = not (selection.include or selection.exclude or resume)
    with amount(title, "records", (reader.partitions() or None) if is_whole else None) as step:
        if writer is not None:
            writer.wrote = step
        moved = move(reader, writer, selection, resume=resume, each=typer.echo if each and not as_json else None)
    _print(moved, as_json)


def _print(moved: Moved, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps({"records": moved.counts, "skipped": moved.skipped}, ensure_ascii=False))
        return
    print_table(("kind", "records"), [(kind, str(count)) for kind, count in moved.counts.items()])
    _print_skipped(moved.skipped)


def _print_skipped(texts: Iterable[str]) -> None:
    for text in texts:
        typer.echo(f"not moved: {text}")


def _print_round(done: Round, seconds: float, before: Collection[str], as_json: bool) -> None:
    """Print a line for a round of `follow`, and one for each object that it left out, except those of the round before (`before`)."""
    if as_json:
        found = {"changed": done.changed, "written": done.written, "removed": done.removed, "events": done.events}
        typer.echo(json.dumps({**found, "skipped": done.moved.skipped, "seconds": round(seconds, 3)}, ensure_ascii=False))
        return
    events = "compared" if done.events is None else f"{done.events} events"
    typer.echo(f"{events}: {done.changed} tables changed, {done.written} written, {done.removed} removed, in {seconds:.1f} s")
    _print_skipped(text for text in done.moved.skipped if text not in before)


def dump(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The file to make.")],
    source: Annotated[str | None, typer.Option("--from", metavar="SOURCE", help=f"{SOURCES}; without it, the settings' database.")] = None,
    include: Include = None,
    exclude: Exclude = None,
    only: Kinds = None,
    without: Without = None,
    connections: Connections = 4,
    calls_per_second: Rate = None,
    tls_ca: TlsCa = None,
    each: Each = False,
    as_json: AsJson = False,
    db: Db = None,
    config: ConfigFile = None,
    hive_site: HiveSite = None,
    assignments: Assignments = None,
) -> None:
    """Write all objects of a metastore into one file, in their state at this moment. The server may run meanwhile."""
    from metastore.transfer import opening
    from metastore.transfer.dumps import DumpWriter

    asked = asking(connections, calls_per_second, tls_ca)
    with failing(), ExitStack() as stack:
        selection = chosen(include, exclude, only, without)
        reader = stack.enter_context(closing(opening.reader(source or settings({"db": db}, config, hive_site, assignments).db, asked)))
        _move("dump", reader, stack.enter_context(closing(DumpWriter(file))), selection, resume=False, each=each, as_json=as_json)


def restore(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A file that `metastore dump` made.")],
    include: Include = None,
    exclude: Exclude = None,
    only: Kinds = None,
    without: Without = None,
    rewrite: Rewrite = None,
    resume: Resume = False,
    each: Each = False,
    as_json: AsJson = False,
    db: Db = None,
    config: ConfigFile = None,
    hive_site: HiveSite = None,
    assignments: Assignments = None,
) -> None:
    """Write the objects of a dump into an empty database, on which no server runs. The file is checked before anything is written."""
    from metastore.transfer import opening
    from metastore.transfer.dumps import DumpReader
    from metastore.transfer.rewriting import Rewritten

    with failing(), ExitStack() as stack:
        selection = chosen(include, exclude, only, without)
        reader = DumpReader(file)
        reader.check()
        writer = stack.enter_context(closing(opening.writer(settings({"db": db}, config, hive_site, assignments).db)))
        _move("restore", Rewritten(reader, rewrite or ()), writer, selection, resume=resume, each=each, as_json=as_json)


def _toml(path: Path) -> str:
    """Return the settings of a hive-site.xml as TOML. A setting that does not fit ends the command."""
    from metastore.config import ConfigError, load
    from metastore.config.written import toml

    try:
        return toml(load({}, hive_site=path, environment={}), str(path))
    except ConfigError as error:
        fail(str(error), 2)


def import_(
    source: Annotated[str | None, typer.Argument(metavar="SOURCE", help=SOURCES)] = None,
    settings_of: Annotated[
        Path | None, typer.Option("--settings", metavar="HIVE-SITE.XML", help="Print the settings of Java's server as TOML instead.")
    ] = None,
    include: Include = None,
    exclude: Exclude = None,
    only: Kinds = None,
    without: Without = None,
    connections: Connections = 4,
    calls_per_second: Rate = None,
    tls_ca: TlsCa = None,
    rewrite: Rewrite = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Read everything and list the objects that can not be moved; write nothing.")
    ] = False,
    resume: Resume = False,
    each: Each = False,
    as_json: AsJson = False,
    db: Db = None,
    config: ConfigFile = None,
    hive_site: HiveSite = None,
    assignments: Assignments = None,
) -> None:
    """Write all objects of another metastore into an empty database, on which no server runs. The source is not changed."""
    if settings_of is not None:
        typer.echo(_toml(settings_of), nl=False)
        return
    if source is None:
        fail(f"name a SOURCE: {SOURCES}", 2)
    from metastore.transfer import opening
    from metastore.transfer.rewriting import Rewritten

    asked = asking(connections, calls_per_second, tls_ca)
    with failing(), ExitStack() as stack:
        selection = chosen(include, exclude, only, without)
        reader = Rewritten(stack.enter_context(closing(opening.reader(source, asked))), rewrite or ())
        target = settings({"db": db}, config, hive_site, assignments).db
        writer = None if dry_run else stack.enter_context(closing(opening.writer(target)))
        _move("import", reader, writer, selection, resume=resume, each=each, as_json=as_json)


def follow(
    source: Annotated[str, typer.Argument(metavar="SOURCE", help=SOURCES)],
    include: Include = None,
    exclude: Exclude = None,
    only: Kinds = None,
    without: Without = None,
    connections: Connections = 4,
    calls_per_second: Rate = None,
    tls_ca: TlsCa = None,
    rewrite: Rewrite = None,
    once: Annotated[
        bool, typer.Option("--once", help="Bring the database up to date once and end, as after the last writer has stopped.")
    ] = False,
    compare: Annotated[bool, typer.Option("--compare", help="Compare both sides instead of reading the source's log.")] = False,
    pause: Annotated[float, typer.Option(min=0, help="Seconds between two rounds.")] = 30,
    as_json: AsJson = False,
    db: Db = None,
    config: ConfigFile = None,
    hive_site: HiveSite = None,
    assignments: Assignments = None,
) -> None:
    """Keep a database that was imported up to date with its source, until Ctrl-C. No server may run on it yet."""
    from metastore.transfer import opening
    from metastore.transfer.following import follow as follow_once
    from metastore.transfer.own.writer import OwnWriter
    from metastore.transfer.rewriting import Rewritten

    asked = asking(connections, calls_per_second, tls_ca)
    with failing(), ExitStack() as stack, suppress(KeyboardInterrupt):
        selection = chosen(include, exclude, only, without)
        reader = Rewritten(stack.enter_context(closing(opening.reader(source, asked))), rewrite or ())
        writer = stack.enter_context(closing(opening.writer(settings({"db": db}, config, hive_site, assignments).db)))
        assert isinstance(writer, OwnWriter)
        skipped: list[str] = []
        while True:
            begun = time.monotonic()
            done = follow_once(reader, writer, selection, by_comparison=compare)
            _print_round(done, time.monotonic() - begun, skipped, as_json)
            skipped = done.moved.skipped
            if once:
                return
            time.sleep(pause)


def export(
    target: Annotated[str, typer.Argument(metavar="TARGET", help="The server to fill, thrift://HOST:PORT.")],
    source: Annotated[str | None, typer.Option("--from", metavar="SOURCE", help=f"{SOURCES}; without it, the settings' database.")] = None,
    include: Include = None,
    exclude: Exclude = None,
    only: Kinds = None,
    without: Without = None,
    calls_per_second: Rate = None,
    tls_ca: TlsCa = None,
    rewrite: Rewrite = None,
    resume: Resume = False,
    each: Each = False,
    as_json: AsJson = False,
    db: Db = None,
    config: ConfigFile = None,
    hive_site: HiveSite = None,
    assignments: Assignments = None,
) -> None:
    """Write the objects of a metastore into another one over Thrift: the way back to a Java server. Nothing is removed there."""
    from metastore.transfer import opening
    from metastore.transfer.rewriting import Rewritten

    if not target.startswith(opening.SERVERS):
        fail(f"{target} is not a server: write thrift://HOST:PORT; `metastore dump`, `restore` and `import` write files and databases", 2)
    asked = asking(1, calls_per_second, tls_ca)
    with failing(), ExitStack() as stack:
        selection = chosen(include, exclude, only, without)
        place = source or settings({"db": db}, config, hive_site, assignments).db
        reader = Rewritten(stack.enter_context(closing(opening.reader(place, asked))), rewrite or ())
        writer = stack.enter_context(closing(opening.writer(target, asked)))
        _move("export", reader, writer, selection, resume=resume, each=each, as_json=as_json)
