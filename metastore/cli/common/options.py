"""Options that several commands share, and the output of failures. Never reads a configuration before a command runs."""

from __future__ import annotations

import os
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from metastore.config import Config, ConfigError, load, without_passwords

if TYPE_CHECKING:
    from metastore.client import Client
    from metastore.store.core.database import Database

Db = Annotated[
    str | None,
    typer.Option(help="Database: sqlite:///FILE, postgresql://USER:PW@HOST/NAME or mysql://USER:PW@HOST/NAME."),
]
ConfigFile = Annotated[Path | None, typer.Option("--config", metavar="FILE", help="Settings in TOML.")]
HiveSite = Annotated[Path | None, typer.Option("--hive-site", metavar="FILE", help="Settings in a hive-site.xml.")]
Assignments = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Any setting, by our name or Hive's; may be given several times."),
]
Uri = Annotated[str, typer.Option(envvar="METASTORE_URI", help="Server to ask, thrift://HOST:PORT.")]
Catalog = Annotated[str | None, typer.Option(help="Catalog to look in; without it, the server's default.")]
TlsCa = Annotated[
    Path | None,
    typer.Option("--tls-ca", metavar="FILE", help="Use TLS and trust the authorities in this PEM file."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]

DEFAULT_PORT = 9083
DEFAULT_URI = f"thrift://127.0.0.1:{DEFAULT_PORT}"


def tls(authorities: Path | None) -> ssl.SSLContext | None:
    """Return the context that trusts the authorities of `--tls-ca`; None without one. A file that does not fit ends the command."""
    if authorities is None:
        return None
    try:
        return ssl.create_default_context(cafile=os.fspath(authorities))
    except OSError as error:  # ssl.SSLError is one
        fail(f"--tls-ca {authorities}: {error.strerror or error}; name a PEM file with the certificate of the server's authority")


def fail(message: str, status: int = 1) -> NoReturn:
    """Print an error, without passwords of URLs, and end the command with a status."""
    typer.echo(f"metastore: {without_passwords(message)}", err=True)
    raise typer.Exit(status)


def settings(options: dict[str, object], config_file: Path | None, hive_site: Path | None, assignments: list[str] | None) -> Config:
    """Read the settings; one that does not fit ends the command."""
    try:
        return load(options, config_file=config_file, hive_site=hive_site, assignments=assignments or ())
    except ConfigError as error:
        fail(str(error), 2)


@contextmanager
def opened(
    db: str | None, config: ConfigFile, hive_site: HiveSite, assignments: Assignments, *, current: bool = True
) -> Iterator[Database]:
    """Open the database of the settings. A refusal ends the command, and with `current` a schema that is not this version's."""
    chosen = settings({"db": db}, config, hive_site, assignments)
    from metastore.errors import MetastoreError
    from metastore.store.core import migrate
    from metastore.store.core.database import Database

    try:
        database = Database(chosen.db, pool_size=1)
        try:
            if current and (found := migrate.current(database)) != migrate.revisions()[-1]:
                fail(f"the schema has revision {found or 'none'}, this version needs {migrate.revisions()[-1]}: run `metastore db upgrade`")
            yield database
        finally:
            database.close()
    except MetastoreError as error:
        fail(error.message)


@contextmanager
def asking(uri: str, tls_ca: Path | None) -> Iterator[Client]:
    """Connect to a server. A refusal ends the command, and so does a server that does not answer."""
    from thriftpy2.thrift import TApplicationException, TException

    from metastore.client import connect

    try:
        with connect(uri, tls=tls(tls_ca)) as client:
            yield client
    except TApplicationException as error:
        fail(f"{uri}: {error.message or 'the server does not know this method'}")
    except TException as error:
        fail(f"{type(error).__name__}: {getattr(error, 'message', None) or error}")
    except (OSError, ValueError) as error:
        fail(f"{uri}: {error}")
