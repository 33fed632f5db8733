"""Put the server together from its settings and serve: the composition root. Holds no rule and no protocol itself."""

from __future__ import annotations

import gc
import os
import platform
import secrets
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from metastore import log
from metastore.config import Config, hive_properties, without_passwords
from metastore.errors import MetaError
from metastore.jobs import JOBS, Runner
from metastore.listeners import Listeners
from metastore.methods.in_process import InProcessClient
from metastore.rules.patterns import compile_expression
from metastore.service.authorization.loading import load as load_authorizer
from metastore.service.call.context import Call, Client, Metastore
from metastore.service.catalog.catalogs import create_startup_objects
from metastore.service.changes.recovery import recover, recover_before_serving
from metastore.service.transactions.compactors import bury
from metastore.store.core import migrate
from metastore.store.core.database import Database
from metastore.store.core.replica import Replica
from metastore.telemetry import audit
from metastore.warehouse import Journal, Warehouse
from metastore.warehouse.trash import own_user
from metastore.wire import codec
from metastore.wire.auth import authenticator
from metastore.wire.auth.authenticator import Authenticator
from metastore.wire.sockets.settings import WireSettings
from metastore.wire.sockets.tls import certificates

if TYPE_CHECKING:
    from metastore.wire.connection.server import Beside, Death


def build(config: Config, listeners: Listeners | None = None) -> Metastore:
    """Make the parts of one process. Their connections open when they are first used: call it after a fork.

    Without `listeners` the listeners of the settings are made. Raises MetaError for a listener that can not be loaded and for a database
    URL of an unknown kind.
    """
    database = Database(config.db, pool_size=config.database_pool_size)
    return Metastore(
        config=config,
        database=database,
        warehouse=Warehouse(
            config.warehouse,
            config.external_warehouse,
            trash=config.trash_interval > 0,
            threads=config.directory_threads,
            options=config.filesystem_options,
            timeout=config.warehouse_timeout,
            accepts_moved=config.accept_moved_directories,
        ),
        listeners=Listeners.load(config) if listeners is None else listeners,
        journal=Journal(Path(config.data_directory) / "journal"),
        authorizer=load_authorizer(config, database),
        replica=_replica(config, database),
    )


def _replica(config: Config, primary: Database) -> Replica | None:
    if not config.db_read:
        return None
    kinds = [urlsplit(url).scheme.partition("+")[0] for url in (config.db, config.db_read)]
    if kinds != ["postgresql", "postgresql"]:
        text = f"db_read needs PostgreSQL, which reports the delay of a replica; db and db_read are {' and '.join(kinds)}"
        raise MetaError(text)
    return Replica(primary, config.db_read, config.database_pool_size, config.db_read_staleness)


def close(metastore: Metastore) -> None:
    """Release the resources of a process, at its end."""
    metastore.database.close()
    if metastore.replica is not None:
        metastore.replica.close()
    if metastore.authorizer is not None:
        metastore.authorizer.close()
    if metastore.journal is not None:
        metastore.journal.close()


def check(config: Config) -> None:
    """Raise MetaError, ConfigError or OSError for settings with which no server can be started, without asking the database.

    A MetaError may come from a listener, or from a warehouse whose file system has no driver here.
    """
    hive_properties.check(config)
    Listeners.check(config)
    check_compactors(config)
    _check_audit(config)
    _check_traces(config)
    _check_whitelist(config)
    authenticator.check(config)
    metastore = build(config, Listeners())
    try:
        _check_warehouse(config, metastore.warehouse)
        Authenticator(config, metastore)
    finally:
        close(metastore)
    certificates(wire_settings(config))


def prepare(config: Config) -> None:
    """Bring the schema up to date, make the objects that a server begins with and undo changes that a killed server had begun.

    Leaves no connection open.

    Raises VersionMismatch when a newer server has made the schema, and the errors of `check`, before anything is changed.
    """
    check(config)
    metastore = build(config, Listeners())
    try:
        with metastore.database.explained():
            metastore.database.driver.check()
        migrate.upgrade(metastore.database)
        create_startup_objects(metastore)
        recover_before_serving(metastore)
    finally:
        close(metastore)


def _check_audit(config: Config) -> None:
    if config.audit_log is not None:
        try:
            audit.writable(config.audit_log)
        except OSError as error:
            raise MetaError(
                f"audit_log {config.audit_log} can not be written: {error.strerror}; name a file in a folder that is there"
            ) from error


def _check_traces(config: Config) -> None:
    if config.traces_endpoint is None:
        return
    if urlsplit(config.traces_endpoint).scheme not in ("http", "https"):
        raise MetaError(f"traces_endpoint {without_passwords(config.traces_endpoint)} is not a URL of a collector: write http://HOST:4318")
    if any(find_spec(f"opentelemetry.{name}") is None for name in ("sdk", "exporter")) if find_spec("opentelemetry") else True:
        raise MetaError("traces_endpoint needs OpenTelemetry: pip install '.[otel]' in the checkout of metastore")


def _check_warehouse(config: Config, warehouse: Warehouse) -> None:
    for name in ("warehouse", "external_warehouse"):
        location = getattr(config, name)
        if location:
            try:
                warehouse.check_driver(location)
            except MetaError as error:
                raise MetaError(f"setting {name}: {error.message}") from error


def _check_whitelist(config: Config) -> None:
    try:
        compile_expression(config.partition_name_whitelist)
    except MetaError as error:
        raise MetaError(f"partition_name_whitelist: {error.message}") from error


def warnings(config: Config) -> list[str]:
    """Return warnings of settings that an operator may have meant in another way."""
    found = [*config.warnings, *hive_properties.overruled(config)]
    if config.authorization != "none" and (not config.authentication or "anonymous" in config.authentication):
        found.append(
            f"authorization is {config.authorization}, and clients without a login are accepted: the user that such a client names in "
            "set_ugi is not checked; remove anonymous from the setting authentication unless only trusted programs can connect"
        )
    if missing := _missing_to_compact(config):
        found.append(
            f"hive.compactor.worker.threads ({config.source('compactor_worker_threads')}) asks this server to compact too, which needs "
            f"{missing}: it compacts nothing. Install '.[streaming]' in the checkout of metastore, or, if HiveServer2 or "
            "`metastore compactor` compacts, set compactor_worker_threads=0"
        )
    return found


def start_worker(config: Config) -> tuple[Metastore, Runner]:
    """Make the parts of a worker process, undo changes that a killed one had begun, run the init listeners and begin the periodic jobs."""
    metastore = build(config)
    recover(metastore)
    metastore.listeners.started()
    if metastore.replica is not None:
        metastore.replica.start()
    runner = Runner(metastore, JOBS)
    runner.start()
    return metastore, runner


def compactors(config: Config) -> Beside | None:
    """Return the processes that compact beside the server, None where the settings ask for none, or libraries are missing."""
    from metastore.wire.connection.server import Beside

    if not config.compactor_worker_threads or _missing_to_compact(config):
        return None
    server = secrets.token_hex(3)  # distinguishes its processes from those of other servers that share a host's name

    def name_of(pid: int) -> str:
        return f"{platform.node()}-{pid}-{server}"

    def run(death: Death | None) -> int:
        from metastore.acid.compaction import process

        metastore = build(config)
        call = Call(metastore, Client("", own_user()), "abort_txns")

        def first() -> float:
            if death is None or death.status == 0:
                return 0.0
            bury(call, name_of(death.pid), death.reason)
            return death.delay

        def connected() -> Any:
            return InProcessClient(metastore, own_user())

        try:
            return process.run(
                connected, name_of(os.getpid()), config.compactor_worker_memory, first, filesystems=config.filesystem_options
            )
        finally:
            close(metastore)

    return Beside(config.compactor_worker_threads, run)


def check_compactors(config: Config) -> None:
    """Raise MetaError where a setting of ours asks for processes that compact, but their libraries are not installed."""
    if (missing := _missing_to_compact(config)) and not config.has_hives_name("compactor_worker_threads"):
        raise MetaError(
            f"compactor_worker_threads needs {missing}: pip install '.[streaming]' in the checkout of metastore, or set it to 0"
        )


def _missing_to_compact(config: Config) -> str:
    """Return the missing libraries of the processes that are to compact; an empty text without any."""
    missing = [name for name in ("pyarrow", "pyorc", "numpy") if find_spec(name) is None]
    return " and ".join(missing) if config.compactor_worker_threads else ""


def wire_settings(config: Config) -> WireSettings:
    return WireSettings(
        host=config.host,
        port=config.port,
        admin_port=config.admin_port,
        admin_host=config.admin_host or config.host,
        workers=config.workers or os.cpu_count() or 1,
        max_message_size=config.max_message_size,
        max_container_size=config.max_container_size,
        idle_timeout=config.idle_timeout,
        connection_lifetime=config.connection_lifetime,
        drain_timeout=config.drain_timeout,
        drain_notice=config.drain_notice,
        tls_certificate=Path(config.tls_certificate) if config.tls_certificate else None,
        tls_key=Path(config.tls_key) if config.tls_key else None,
        log_calls=config.log_calls,
        audit_log=config.audit_log,
        audit_format=config.audit_format,
        slow_call_threshold=config.slow_call_threshold,
        tls_client_ca=Path(config.tls_client_ca) if config.tls_client_ca else None,
        tls_client_crl=Path(config.tls_client_crl) if config.tls_client_crl else None,
        tls_required=config.tls_required,
        http_path=config.http_path,
        hsts_age=config.hsts_age,
    )


def configure_log(config: Config) -> None:
    """Configure the log by the settings."""
    style = config.log_format if config.log_format != "auto" else "console" if sys.stderr.isatty() else "json"
    log.configure(config.log_level, style)


def serve(config: Config, ready: Callable[[str, int], None] | None = None) -> int:
    """Serve in the foreground until SIGTERM or SIGINT and return the exit status.

    `ready` is called with the address once every worker accepts calls. Raises OSError if the port is taken, MetaError if the
    database or a listener does not fit.
    """
    from metastore.wire.connection.server import Supervisor
    from metastore.wire.sockets.descriptors import raise_limit
    from metastore.wire.sockets.signals import listen_alone

    listen_alone()
    raise_limit()
    configure_log(config)
    for warning in warnings(config):
        log.get("metastore.config").warning(warning)
    if codec.IMPLEMENTATION == "pure":
        log.get("metastore.codec").warning(codec.PURE)
    if unused := hive_properties.without_effect(config):
        shown = ", ".join(unused[:5]) + (" ..." if len(unused) > 5 else "")
        text = "properties of Hive's have no effect; `metastore config` lists them"
        log.get("metastore.config").info(text, number=len(unused), names=shown)
    prepare(config)
    runners: list[Runner] = []

    def start() -> Metastore:
        metastore, runner = start_worker(config)
        runners.append(runner)
        return metastore

    def end(metastore: Metastore) -> None:
        for runner in runners:
            runner.stop()
        close(metastore)

    supervisor = Supervisor(wire_settings(config), start, ready=ready, close_metastore=end, beside=compactors(config))
    gc.freeze()  # loaded objects stay shared between the workers, and out of their garbage collection
    # A thousand partitions are a hundred thousand objects without a cycle: with Python's own thresholds, decoding them took twice the time.
    gc.set_threshold(50_000, 20, 50)
    gc.enable()
    # A call that computes for long delays others by this interval, after each of their waits for the database or a client.
    sys.setswitchinterval(0.0005)
    return supervisor.run()
