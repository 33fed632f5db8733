"""`metastore check`: find files of full-ACID tables with rows of another bucket, or with names that Hive refuses. Never changes them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from metastore.cli.common.objects import require
from metastore.cli.common.options import DEFAULT_URI, AsJson, TlsCa, Uri, asking, fail
from metastore.cli.common.tables import print_table

if TYPE_CHECKING:
    from metastore.client import Client

Name = Annotated[str | None, typer.Argument(metavar="[DATABASE[.TABLE]]", help="Nothing, a database or a table.")]


HEADER = ("table", "partition", "file", "problem", "remedy")


def check(name: Name = None, uri: Uri = DEFAULT_URI, tls_ca: TlsCa = None, as_json: AsJson = False) -> None:
    """Look for files of full-ACID tables that hold rows of another bucket or have names that Hive refuses; status 1 if there are any."""
    try:
        from metastore.acid.folders.table import NotTransactional
        from metastore.spark.checking import check_table
        from metastore.spark.session.catalog import AcidTableInfo
    except ImportError as error:
        fail(f"reading tables needs metastore[spark]: pip install '.[spark]' in the checkout of metastore ({error})")
    rows: list[tuple[str, ...]] = []
    failed = 0
    with asking(uri, tls_ca) as client:
        if name is not None:
            require(client, name)
        for database, table in _tables(client, name):
            try:
                info = AcidTableInfo.load(client, database, table)
            except NotTransactional as error:
                if name is not None and "." in name:
                    fail(str(error))
                continue
            try:
                found = check_table(uri, info)
            except Exception as error:  # noqa: BLE001  # one table that can not be read hides no other
                typer.echo(f"metastore: {database}.{table} can not be checked: {type(error).__name__}: {error}", err=True)
                failed += 1
            else:
                rows += [(info.full_name, *each) for each in found]
    if as_json:
        typer.echo(json.dumps([dict(zip(HEADER, row, strict=True)) for row in rows], indent=2, ensure_ascii=False))
    else:
        print_table(HEADER, rows)
    if rows or failed:
        raise typer.Exit(1)


def _tables(client: Client, name: str | None) -> Iterator[tuple[str, str]]:
    """Yield database and name of each table that the argument selects."""
    if name is not None and "." in name:
        database, table = name.split(".", 1)
        yield database, table
        return
    for database in [name] if name is not None else client.get_all_databases():
        yield from ((database, table) for table in client.get_tables(database, "*"))
