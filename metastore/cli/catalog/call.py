"""`metastore call`: call any method of the interface on any server, with JSON arguments. Never repeats a call."""

from __future__ import annotations

import difflib
import json
from typing import Annotated, Any

import typer
from thriftpy2.thrift import TType

from metastore.cli.common.options import DEFAULT_URI, AsJson, TlsCa, Uri, asking, fail


def call(
    method: Annotated[str, typer.Argument(help="Method of the Thrift interface, such as get_table_req.")],
    arguments: Annotated[
        list[str] | None,
        typer.Argument(metavar="[ARGUMENT]...", help="Arguments in order, as JSON; NAME=JSON names one. A text needs no quotes."),
    ] = None,
    uri: Uri = DEFAULT_URI,
    tls_ca: TlsCa = None,
    as_json: AsJson = True,  # the output is always JSON; programs may give the option to every command
) -> None:
    """Call any method on any server and print its result as JSON.

    metastore call get_partition_names default trips 10

    metastore call get_table_req '{"dbName": "default", "tblName": "trips"}'
    """
    from metastore import idl
    from metastore.cli.common.structs import Misfit, to_json, to_thrift

    if method not in idl.service.thrift_services:
        near = difflib.get_close_matches(method, idl.service.thrift_services, n=3)
        fail(f"no method {method}{'; did you mean ' + ' or '.join(near) + '?' if near else ''}", 2)
    fields = list(getattr(idl.service, f"{method}_args").thrift_spec.values())
    names = [field[1] for field in fields]
    values: dict[str, Any] = {}
    for position, text in enumerate(arguments or ()):
        name, equals, rest = text.partition("=")
        if equals and name in names:
            text = rest  # noqa: PLW2901 - the argument without its name
        elif position < len(names):
            name = names[position]
        else:
            fail(f"{method} takes {len(names)} arguments ({', '.join(names) or 'none'}), got {len(arguments or ())}", 2)
        kind, detail = fields[names.index(name)][0], fields[names.index(name)][2:-1]
        try:
            values[name] = to_thrift(kind, detail[0] if detail else None, _read(kind, text), name)
        except (Misfit, ValueError) as error:
            fail(f"{method}: {error}", 2)
    with asking(uri, tls_ca) as client:
        result = client.call(method, **values)
    if result is not None:
        typer.echo(json.dumps(to_json(result), indent=2, ensure_ascii=False))


def _read(kind: int, text: str) -> Any:
    """Read an argument: a text is taken literally unless it is quoted as JSON."""
    if kind in {TType.STRING, TType.BINARY} and not text.startswith('"'):
        return text
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"{text!r} is not JSON: {error}") from error
