"""`metastore sql`: run SQL on Spark, over transactional tables too, from a file, from arguments or from the terminal. It does not parse SQL
itself.

This file is also a program for `spark-submit`, which takes the path of a file.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer

from metastore.cli.common.options import DEFAULT_URI, AsJson, Uri, fail
from metastore.cli.common.tables import print_table

Execute = Annotated[
    list[str] | None, typer.Option("--execute", "-e", metavar="SQL", help="Run these statements; may be given several times.")
]
File = Annotated[
    Path | None, typer.Option("--file", "-f", metavar="FILE", help="Run the statements of a file, `-` for the standard input.")
]
Confs = Annotated[list[str] | None, typer.Option("--conf", metavar="KEY=VALUE", help="A setting of Spark; may be given several times.")]
Session = Any
"""A SparkSession. PySpark is imported only by commands that need it."""
PROMPT, FURTHER = "metastore> ", "         > "
HELP = "A statement ends with a semicolon, and may take several lines. `exit;` ends the shell, Ctrl-C stops the running statement."


def sql(
    execute: Execute = None,
    file: File = None,
    uri: Uri = DEFAULT_URI,
    database: Annotated[str, typer.Option(help="The current database at the beginning.")] = "default",
    master: Annotated[str | None, typer.Option(help="Spark's master; without it, spark-submit's, else local[*].")] = None,
    conf: Confs = None,
    as_json: AsJson = False,
) -> None:
    """Run SQL statements on Spark, without -e and -f as they are typed. The first failure ends it with status 1, but not in the shell."""
    text = _text(execute or [], file)
    spark = _session(uri, master, conf or [])
    try:
        if not _run(spark, as_json, f"USE `{database.replace('`', '``')}`"):
            raise typer.Exit(1)
        if text is None and sys.stdin.isatty():
            _type(spark, as_json)
        else:
            for statement in _divided(sys.stdin.read() if text is None else text):
                if not _run(spark, as_json, statement):
                    raise typer.Exit(1)
    finally:
        _let_go()
        spark.stop()


def _text(execute: list[str], file: Path | None) -> str | None:
    """Return the statements of the command line, None without any."""
    texts = list(execute)
    if file is not None:
        try:
            texts.append(sys.stdin.read() if str(file) == "-" else file.read_text("utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            fail(f"{file} can not be read: {error}", 2)
    return ";\n".join(texts) if texts else None


def _session(uri: str, master: str | None, conf: list[str]) -> Session:
    """Open a session on the metastore's tables. A missing requirement ends the command."""
    for setting in conf:
        if "=" not in setting:
            fail(f"--conf {setting}: write KEY=VALUE", 2)
    try:
        from metastore.spark.compaction.compactor import open_session
    except ImportError as error:
        fail(f"SQL runs on Spark: pip install '.[spark]' in the checkout of metastore ({error})")
    settings = {"spark.app.name": "metastore sql", "spark.sql.catalogImplementation": "hive", "spark.ui.enabled": "false"}
    if master is None or master.startswith("local"):
        settings["spark.sql.shuffle.partitions"] = "8"  # Spark's default of 200 is for clusters
    settings |= dict(setting.split("=", 1) for setting in conf)
    spark = open_session(uri, master, settings)
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def _divided(text: str) -> list[str]:
    from metastore.spark.grammar.tokens import statements

    return statements(text)


def _run(spark: Session, as_json: bool, statement: str) -> bool:
    """Run a statement and print its rows, in JSON on one line each statement; return whether it succeeded."""
    from metastore.spark import sql as run

    try:
        frame = run(spark, statement)
        if frame.columns:
            rows = frame.collect()
            if as_json:
                typer.echo(json.dumps([row.asDict(recursive=True) for row in rows], ensure_ascii=False, default=str))
                return True
            print_table(frame.columns, ([_shown(value) for value in row] for row in rows))
    except KeyboardInterrupt:
        spark.sparkContext.cancelAllJobs()
        typer.echo("stopped", err=True)
        return False
    except Exception as error:  # noqa: BLE001 # the user who typed the statement reads any error
        typer.echo(f"metastore: {_said(error)}", err=True)
        return False
    finally:
        _let_go()
    return True


def _let_go() -> None:
    """End the snapshots of printed results, so that their locks hold up no other transaction."""
    from metastore.spark.transaction.readers import close_all

    close_all()


def _said(error: Exception) -> str:
    """Return the message of an error, without the stack of the JVM."""
    text = str(getattr(error, "message", None) or error) or type(error).__name__
    return f"{type(error).__name__}: {text.partition('JVM stacktrace:')[0].partition(chr(10) + chr(9) + 'at ')[0].strip()}"


def _shown(value: Any) -> str:
    """Return a value as Hive's shells show it."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)


def _type(spark: Session, as_json: bool) -> None:
    """Run the statements that are typed until `exit;` or the end of the input."""
    from metastore.spark.grammar.tokens import is_complete

    typer.echo(HELP)
    save = _history()
    typed = ""
    while True:
        try:
            typed += input(FURTHER if typed else PROMPT) + "\n"
        except KeyboardInterrupt:
            typer.echo()
            typed = ""
            continue
        except EOFError:
            break
        if not typed.strip() or not is_complete(typed):
            continue
        statements, typed = _divided(typed), ""
        if [each.lower() for each in statements] in (["exit"], ["quit"]):
            break
        _until_wrong(spark, as_json, statements)
    save()


def _until_wrong(spark: Session, as_json: bool, statements: Iterable[str]) -> None:
    for statement in statements:
        if not _run(spark, as_json, statement):
            return


def _history() -> Callable[[], None]:
    """Turn on the editing and the history of lines, where Python has readline; return the function that saves the history."""
    try:
        import readline
    except ImportError:
        return lambda: None
    path = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local/share") / "metastore" / "sql_history"
    with suppress(OSError):
        readline.read_history_file(path)
    readline.set_history_length(1000)

    def save() -> None:
        with suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            readline.write_history_file(path)
            path.chmod(0o600)

    return save


if __name__ == "__main__":
    typer.run(sql)
