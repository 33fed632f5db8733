"""`metastore verify` and `diff`: compare the objects of two metastores. The rules are in `transfer`."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING, Annotated

import typer

from metastore.cli.common.options import AsJson, Assignments, ConfigFile, Db, HiveSite, TlsCa, settings
from metastore.cli.common.progress import amount
from metastore.cli.common.tables import print_table
from metastore.cli.transfer.options import SOURCES, Connections, Exclude, Include, Kinds, Rate, Rewrite, Without, asking, chosen, failing

if TYPE_CHECKING:
    from metastore.transfer.comparing import Comparison
    from metastore.transfer.opening import Asking
    from metastore.transfer.selection import Selection


Fields = Annotated[
    list[str] | None,
    typer.Option(
        "--without-field", metavar="NAME", help="Leave out a field or parameter, such as create_time; may be given several times."
    ),
]
One = Annotated[str, typer.Argument(metavar="A", help=SOURCES)]
Most = Annotated[int, typer.Option(help="Differences that are printed.")]
Other = Annotated[str | None, typer.Argument(metavar="B", help="The other metastore, named as A; without it, the settings' database.")]


def _command(doc: str, most_printed: int, show: Callable[[Comparison, bool], None]) -> Callable[..., None]:
    """Return a command that compares two sides and shows the outcome; its exit status is 1 if they differ."""

    def command(
        one: One,
        other: Other = None,
        include: Include = None,
        exclude: Exclude = None,
        only: Kinds = None,
        without: Without = None,
        connections: Connections = 4,
        calls_per_second: Rate = None,
        tls_ca: TlsCa = None,
        rewrite: Rewrite = None,
        without_field: Fields = None,
        most: Most = most_printed,
        as_json: AsJson = False,
        db: Db = None,
        config: ConfigFile = None,
        hive_site: HiveSite = None,
        assignments: Assignments = None,
    ) -> None:
        with failing():
            second = other or settings({"db": db}, config, hive_site, assignments).db
            found = _compared(
                (one, second),
                chosen(include, exclude, only, without),
                rewrite or (),
                without_field or (),
                most,
                asking(connections, calls_per_second, tls_ca),
            )
        show(found, as_json)
        if not found.equal:
            raise typer.Exit(1)

    command.__doc__ = doc
    return command


def _compared(
    places: tuple[str, str], selection: Selection, rewrite: Sequence[str], without_fields: Sequence[str], most: int, asked: Asking
) -> Comparison:
    from metastore.transfer import opening
    from metastore.transfer.comparing import compare
    from metastore.transfer.rewriting import Rewritten

    with ExitStack() as stack, amount("compare", "records") as step:
        one, other = (stack.enter_context(closing(opening.reader(place, asked))) for place in places)
        return compare(Rewritten(one, rewrite), other, selection, most=most, without_fields=without_fields, step=step)


def _print_differences(found: Comparison) -> None:
    for each in found.differences:
        typer.echo(f"{each.record}: {each.words}")
    if found.is_cut:
        typer.echo("and more: show them with --most, or a part with --include")


def _show_all(found: Comparison, as_json: bool) -> None:
    if as_json:
        shown = {"equal": found.equal, "counts": found.counts, "differences": found.differences, "left_out": found.left_out}
        typer.echo(json.dumps(shown, ensure_ascii=False))
        return
    print_table(("kind", "in A", "in B"), [(kind, *map(str, pair)) for kind, pair in found.counts.items()])
    _print_differences(found)
    if found.left_out:
        typer.echo(f"not compared, since one side does not return all of them: {', '.join(found.left_out)}")
    typer.echo("equal" if found.equal else "different")


def _show_differences(found: Comparison, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(found.differences, ensure_ascii=False))
    else:
        _print_differences(found)


verify = _command(
    "Compare all that two metastores hold: counts and sums first, then the differences. The exit status is 1 if there are any.",
    20,
    _show_all,
)
diff = _command(
    "Print the differences of two metastores, a line for each object. The exit status is 1 if they differ.", 1000, _show_differences
)
