"""`metastore doctor`: check everything that a server with given settings needs, and give advice for each. It leaves no change behind."""

from __future__ import annotations

import contextlib
import json
import resource
import ssl
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from metastore.cli.common.options import AsJson, Assignments, ConfigFile, Db, HiveSite, TlsCa, tls
from metastore.cli.common.tables import print_table
from metastore.config import Config, ConfigError, load, without_passwords
from metastore.wire.codec import IMPLEMENTATION, PURE

if TYPE_CHECKING:
    from metastore.warehouse import Warehouse

OK, WARNING, FAILED = "ok", "warning", "failed"
MOST_SKEW = 5.0
"""Seconds by which the clocks of this machine and the database may differ: time-outs of transactions are measured by several clocks."""
FEW_DESCRIPTORS, MANY_DESCRIPTORS = 1024, 8192
DAYS_LEFT = 14
_NO_CHECK_TIME = ssl.VerifyFlags(0x200000)
"""OpenSSL's X509_V_FLAG_NO_CHECK_TIME, for which Python has no name."""
SLOW_DATABASE = 0.02
"""Seconds of a round trip above which every call takes long."""


class Finding(NamedTuple):
    """One result of a check: its name, OK, WARNING or FAILED, and the advice."""

    check: str
    outcome: str
    text: str


def doctor(
    db: Db = None,
    config: ConfigFile = None,
    hive_site: HiveSite = None,
    assignments: Assignments = None,
    uri: Annotated[str | None, typer.Option(help="Ask the server at thrift://HOST:PORT too.")] = None,
    tls_ca: TlsCa = None,
    as_json: AsJson = False,
) -> None:
    """Check the needs of `serve` with the same options: settings, codec, files, certificate, database, schema, clock, warehouse.

    Each line has the finding and the advice. The exit status is 0 if a server would work, warnings or not, and 1 if it would not.
    """
    found = list(_findings(lambda: load({"db": db}, config_file=config, hive_site=hive_site, assignments=assignments or ())))
    if uri is not None:
        found.append(_server(uri, tls(tls_ca)))
    found = [each._replace(text=without_passwords(each.text)) for each in found]
    if as_json:
        typer.echo(json.dumps([each._asdict() for each in found], indent=2, ensure_ascii=False))
    else:
        print_table(("check", "", "result and remedy"), found)
    raise typer.Exit(int(any(each.outcome == FAILED for each in found)))


def _findings(read: Callable[[], Config]) -> Iterator[Finding]:
    yield _codec()
    yield _descriptors()
    try:
        config = read()
    except ConfigError as error:
        yield Finding("settings", FAILED, str(error))
        return
    yield from _settings(config)
    for look in (_certificate, _database, _warehouse):
        try:
            yield from look(config)
        except Exception as error:  # noqa: BLE001  # one check that breaks hides no other
            yield Finding(look.__name__.strip("_"), FAILED, getattr(error, "message", None) or f"{type(error).__name__}: {error}")


def _settings(config: Config) -> Iterator[Finding]:
    from metastore import app
    from metastore.errors import MetastoreError

    try:
        app.check(config)
    except (MetastoreError, ConfigError, OSError) as error:
        for line in str(error).splitlines():
            yield Finding("settings", FAILED, line)
    else:
        yield Finding("settings", OK, "a server would start with them; `metastore config` shows all")
    for warning in app.warnings(config):
        yield Finding("settings", WARNING, warning)


def _codec() -> Finding:
    if IMPLEMENTATION == "compiled":
        return Finding("codec", OK, "compiled")
    return Finding("codec", WARNING, PURE)


def _descriptors() -> Finding:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = sys.maxsize if soft == resource.RLIM_INFINITY else soft
    text = f"a process may open {soft} files, one for each connection"
    advice = f"raise it: ulimit -n {MANY_DESCRIPTORS}, or LimitNOFILE= of systemd; the hard limit is {hard}"
    if limit >= MANY_DESCRIPTORS:
        return Finding("descriptors", OK, text)
    return Finding("descriptors", FAILED if limit < FEW_DESCRIPTORS else WARNING, f"{text}: {advice}")


def _certificate(config: Config) -> Iterator[Finding]:
    if config.tls_certificate is None:
        return
    ends = _not_after(config.tls_certificate, config.tls_key)
    days = (ends - time.time()) / 86400
    when = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(ends))
    renew = f"tls_certificate {config.tls_certificate} ends at {when}: write a new one over it; the server reads it without a restart"
    if days <= 0:
        yield Finding("certificate", FAILED, renew)
    else:
        yield Finding("certificate", WARNING, renew) if days < DAYS_LEFT else Finding("certificate", OK, f"holds until {when}")


def _not_after(certificate: str, key: str | None) -> float:
    """Return the time at which a certificate ends, in seconds. OSError (ssl.SSLError is one) for files that do not fit.

    It is read from a handshake in memory, whose client trusts just this certificate, whether it has expired or not.
    """
    server, client = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    server.load_cert_chain(certificate, key, password="")
    client.check_hostname = False
    client.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN | _NO_CHECK_TIME
    client.load_verify_locations(certificate)
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [client.wrap_bio(to_client, to_server), server.wrap_bio(to_server, to_client, server_side=True)]
    for end in ends * 2:
        with contextlib.suppress(ssl.SSLWantReadError):
            end.do_handshake()
    found = ends[0].getpeercert()
    assert found  # the handshake was done
    return ssl.cert_time_to_seconds(str(found["notAfter"]))


def _database(config: Config) -> Iterator[Finding]:
    from metastore.errors import MetastoreError
    from metastore.service.operations.observations import unattended_compactions
    from metastore.store.core import migrate
    from metastore.store.core.database import Database
    from metastore.store.core.probe import probe

    try:
        database = Database(config.db, pool_size=2)
    except MetastoreError as error:
        yield Finding("driver", FAILED, error.message)
        return
    with contextlib.closing(database):
        yield Finding("driver", OK, database.driver.name)
        database.patience = 0
        try:
            if missing := _missing_file(database.url.database if database.driver.name == "sqlite" else None):
                yield Finding("database", OK, f"{missing} does not exist yet: `metastore serve` creates it")
                return
            found = probe(database)
        except MetastoreError as error:
            yield Finding("database", FAILED, f"{error.message}; see that it runs, and that db names it")
            return
        text = f"{database.driver.name} {found.release} answers within {found.seconds * 1000:.1f} ms"
        slow = f"{text}: each call takes several round trips; run the server nearer to its database"
        yield Finding("database", WARNING, slow) if found.seconds > SLOW_DATABASE else Finding("database", OK, text)
        schema = _schema(migrate.current(database), migrate.revisions())
        yield schema
        if schema.text == f"revision {migrate.revisions()[-1]}":
            yield from (Finding("compactions", WARNING, text) for text in database.read(unattended_compactions))
        if found.ahead is not None:
            yield _clock(found.ahead)


def _missing_file(path: str | None) -> str | None:
    return path if path and not Path(path).exists() else None


def _schema(found: str | None, known: list[str]) -> Finding:
    if found == known[-1]:
        return Finding("schema", OK, f"revision {found}")
    if found is None:
        return Finding("schema", OK, "there is none yet: `metastore serve` makes it")
    if found in known:
        return Finding("schema", WARNING, f"revision {found} is older than {known[-1]}: stop older servers, then `metastore db upgrade`")
    return Finding("schema", FAILED, f"revision {found} is newer than {known[-1]}, which this version knows: install the newer version")


def _clock(ahead: float) -> Finding:
    if abs(ahead) <= MOST_SKEW:
        return Finding("clock", OK, f"within {abs(ahead):.2f} s of the database's")
    text = f"the database's clock is {abs(ahead):.0f} s {'ahead of' if ahead > 0 else 'behind'} this machine's: set both by NTP"
    return Finding("clock", FAILED, text)


def _warehouse(config: Config) -> Iterator[Finding]:
    """Make a directory below each root, write a file in it, read it, and remove all of it again."""
    from metastore.errors import MetastoreError
    from metastore.warehouse import Warehouse

    warehouse = Warehouse(
        config.warehouse, config.external_warehouse, options=config.filesystem_options, timeout=config.warehouse_timeout, threads=1
    )
    for root in dict.fromkeys(filter(None, (config.warehouse, config.external_warehouse))):
        shown = warehouse.qualified(root)
        made: list[str] = []
        try:
            made += [*warehouse.missing(shown), f"{shown}/.doctor-{uuid.uuid4().hex}"]
            for directory in made:
                warehouse.make(directory)
            written = f"{made[-1]}/file"
            warehouse.write(written, b"written")
            if warehouse.read(written) != b"written":
                raise OSError(f"{written} does not return the data that was written to it")
            yield Finding("warehouse", OK, f"{shown} can be written to")
        except (MetastoreError, OSError) as error:
            why = getattr(error, "message", None) or str(error)
            yield Finding("warehouse", FAILED, f"{shown}: {why}; let the server's user write there, or set warehouse")
        finally:
            _take_away(warehouse, made)


def _take_away(warehouse: Warehouse, made: list[str]) -> None:
    """Remove the last made directory with its file, and then the other made directories, if they are empty."""
    warehouse.delete_all(made[-1:], purge=True)
    for directory in reversed(made[:-1]):
        warehouse.remove_if_empty(directory)


def _server(uri: str, context: ssl.SSLContext | None) -> Finding:
    from thriftpy2.thrift import TException

    from metastore.client import connect

    try:
        with connect(uri, tls=context) as client:
            return Finding("server", OK, f"{uri} answers: version {client.getVersion()}")
    except (TException, OSError, ValueError) as error:
        return Finding("server", FAILED, f"{uri}: {getattr(error, 'message', None) or error}")
