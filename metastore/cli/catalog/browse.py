"""`metastore ls` and `metastore show`: look at the objects of any metastore. Never changes them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime, timezone
from typing import Annotated, Any

import typer

from metastore.cli.common.objects import in_catalog, read_table, require
from metastore.cli.common.options import DEFAULT_URI, AsJson, Catalog, TlsCa, Uri, asking, fail
from metastore.cli.common.tables import print_table

Name = Annotated[str | None, typer.Argument(metavar="[DATABASE[.TABLE]]", help="Nothing, a database or a table.")]


def ls(
    name: Name = None,
    pattern: Annotated[str, typer.Option(help="Only databases or tables whose name fits, such as 'trip*'.")] = "*",
    limit: Annotated[int, typer.Option(help="Most partitions to list; -1 lists all.")] = -1,
    uri: Uri = DEFAULT_URI,
    catalog: Catalog = None,
    tls_ca: TlsCa = None,
    as_json: AsJson = False,
) -> None:
    """List the databases, the tables of a database, or the partitions of a table."""
    from metastore import idl

    header: tuple[str, ...]
    rows: list[tuple[str, ...]]
    with asking(uri, tls_ca) as client:
        if name is not None:
            require(client, name, catalog=catalog)
        if name is None:
            header, rows = ("database",), [(found,) for found in client.get_databases(in_catalog(catalog, pattern))]
            if not rows and catalog is not None:
                client.get_catalog(idl.GetCatalogRequest(name=catalog))
        elif "." not in name:
            metas = client.get_table_meta(in_catalog(catalog, name), pattern, [])
            header = ("table", "type", "comment")
            rows = sorted((meta.tableName, meta.tableType or "", meta.comments or "") for meta in metas)
        else:
            database, table = name.split(".", 1)
            found = client.get_partition_names(in_catalog(catalog, database), table, limit)
            header, rows = ("partition",), [(partition,) for partition in found]
    _print(header, rows, as_json)


def show(
    name: Annotated[str, typer.Argument(metavar="DATABASE[.TABLE]", help="A database or a table.")],
    partition: Annotated[str | None, typer.Argument(help="A partition of the table, as KEY=VALUE/KEY=VALUE.")] = None,
    uri: Uri = DEFAULT_URI,
    catalog: Catalog = None,
    tls_ca: TlsCa = None,
    as_json: AsJson = False,
) -> None:
    """Show a database, a table or a partition."""
    from metastore.cli.common.structs import to_json

    database, dot, table = name.partition(".")
    if partition is not None and not dot:
        fail(f"a partition belongs to a table: write {database}.TABLE {partition}", 2)
    with asking(uri, tls_ca) as client:
        if not dot:
            found = client.get_database(in_catalog(catalog, database))
        elif partition is None:
            found = read_table(client, catalog, database, table)
        else:
            found = client.get_partition_by_name(in_catalog(catalog, database), table, partition)
    if as_json:
        typer.echo(json.dumps(to_json(found), indent=2, ensure_ascii=False))
    else:
        print_table(("", ""), list(_flat(to_json(found), "")))


def _print(header: tuple[str, ...], rows: list[tuple[str, ...]], as_json: bool) -> None:
    if as_json:
        objects = [dict(zip(header, row, strict=True)) for row in rows]
        typer.echo(json.dumps([row[0] for row in rows] if len(header) == 1 else objects, indent=2, ensure_ascii=False))
    else:
        print_table(header, rows)


def _flat(value: Any, place: str) -> Iterator[tuple[str, str]]:
    """Yield one row for each leaf; columns take one row each, times are shown as dates."""
    if isinstance(value, dict) and set(value) <= {"name", "type", "comment"} and "type" in value:
        yield place, f"{value.get('name', '')} {value['type']}  {value.get('comment', '')}".rstrip()
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _flat(item, f"{place}.{key}" if place else key)
    elif isinstance(value, list) and value and isinstance(value[0], dict):
        for index, item in enumerate(value):
            yield from _flat(item, f"{place}[{index}]")
    elif place in {"createTime", "lastAccessTime"} and value:
        yield place, datetime.fromtimestamp(value, timezone.utc).isoformat()
    elif value not in ({}, [], None, ""):
        yield place, ", ".join(map(str, value)) if isinstance(value, list) else str(value)
