"""Run Java's own metastore on a database of the tests, and make Hive's schemas there. Its server listens on 127.0.0.1 alone."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from sqlalchemy.engine import URL, make_url

from metastore.client import connect
from tests.support.databases import databases
from tests.support.engines.jars import metastore_server
from tests.support.servers.servers import free_port

WAIT = 180
"""Seconds for the server to answer."""
OPENED = ("lang", "lang.invoke", "lang.reflect", "io", "net", "nio", "text", "math", "util", "util.concurrent", "time", "util.regex")
SCRIPTS = {"postgresql": "postgres", "mysql": "mysql"}
DRIVERS = {"postgresql": "org.postgresql.Driver", "mysql": "org.mariadb.jdbc.Driver"}
VERSIONS = {
    "4.0.0": ("hive-schema-4.0.0",),
    "3.1.0": ("hive-schema-3.1.0",),
    "2.3.0": ("hive-schema-1.2.0", "upgrade-1.2.0-to-2.0.0", "upgrade-2.0.0-to-2.1.0", "upgrade-2.1.0-to-2.2.0", "upgrade-2.2.0-to-2.3.0"),
}
"""The scripts that make a version of Hive's schema."""
SCHEMAS = {"4.0.1": "4.0.0", "3.1.3": "3.1.0"}
"""The version of the schema of each release of the server."""
LISTENER = {"metastore.transactional.event.listeners": "org.apache.hive.hcatalog.listener.DbNotificationListener"}
"""The property with which 3.1.3 writes a notification log."""


def make_schema(url: URL, version: str) -> None:
    """Make Hive's schema in an empty database, with the clients of the databases, whose commands the scripts use."""
    kind = url.get_backend_name()
    folder = metastore_server()[0] / "scripts" / "metastore" / "upgrade" / SCRIPTS[kind]
    for name in VERSIONS[version]:
        script = folder / f"{name}.{SCRIPTS[kind]}.sql"
        if kind == "postgresql":
            where = url.set(drivername="postgresql").render_as_string(hide_password=False)
            command = ["psql", "-q", "-X", "-d", where, "-f", str(script)]
        else:
            command = ["mysql", f"-h{url.host}", f"-P{url.port}", f"-u{url.username}", f"-p{url.password}", str(url.database)]
            command += ["-e", f"source {script}"]
        subprocess.run(command, check=True, cwd=folder, capture_output=True)


def copy_rows(source: URL, target: URL) -> None:
    """Copy the rows of all tables that both databases have, in their common columns: a schema of another version with the same objects."""
    with closing(databases.connect(source)) as one, closing(databases.connect(target)) as other:
        left, right = _columns(one, source), _columns(other, target)
        quote = '"{}"' if source.get_backend_name() == "postgresql" else "`{}`"
        reading, writing = one.cursor(), other.cursor()
        if source.get_backend_name() == "postgresql":
            writing.execute("SET session_replication_role = replica")
        else:
            writing.execute("SET foreign_key_checks = 0")
        for table in sorted({*left} & {*right} - {"VERSION"}):
            (from_, own), (to, others) = left[table], right[table]
            common = sorted({*own} & {*others})
            of_hive = f" WHERE {quote.format('CTLG_NAME')} = 'hive'" if table == "DBS" and "CTLG_NAME" not in others else ""
            reading.execute(f"SELECT {', '.join(quote.format(own[name]) for name in common)} FROM {quote.format(from_)}{of_hive}")
            rows = list(reading.fetchall())
            writing.execute(f"DELETE FROM {quote.format(to)}")
            if rows:
                names = ", ".join(quote.format(others[name]) for name in common)
                writing.executemany(f"INSERT INTO {quote.format(to)} ({names}) VALUES ({', '.join(['%s'] * len(common))})", rows)


def _columns(connection: Any, url: URL) -> dict[str, tuple[str, dict[str, str]]]:
    schema = "current_schema()" if url.get_backend_name() == "postgresql" else "database()"
    found: dict[str, tuple[str, dict[str, str]]] = {}
    with closing(connection.cursor()) as cursor:
        cursor.execute(f"SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = {schema}")
        for table, column in cursor.fetchall():
            found.setdefault(table.upper(), (table, {}))[1][column.upper()] = column
    return found


@contextmanager
def java_metastore(database_url: str, folder: Path, release: str = "4.0.1", properties: Mapping[str, str] | None = None) -> Iterator[str]:
    """Start a server on an empty database, yield its address, and end it. Its warehouse is `folder`/warehouse."""
    url = make_url(database_url)
    kind = url.get_backend_name()
    make_schema(url, SCHEMAS[release])
    home, classpath = metastore_server(release)
    port, conf = free_port(), folder / "conf"
    conf.mkdir(parents=True)
    (folder / "warehouse").mkdir()
    settings = {
        "metastore.thrift.port": port,
        "metastore.thrift.bind.host": "127.0.0.1",
        "metastore.warehouse.dir": f"file:{folder / 'warehouse'}",
        "metastore.warehouse.external.dir": f"file:{folder / 'external'}",
        "metastore.expression.proxy": "org.apache.hadoop.hive.metastore.DefaultPartitionExpressionProxy",
        "metastore.task.threads.always": "org.apache.hadoop.hive.metastore.events.EventCleanerTask",
        "hive.metastore.event.db.notification.api.auth": "false",
        "javax.jdo.option.ConnectionURL": f"jdbc:{'mariadb' if kind == 'mysql' else kind}://{url.host}:{url.port}/{url.database}",
        "javax.jdo.option.ConnectionDriverName": DRIVERS[kind],
        "javax.jdo.option.ConnectionUserName": url.username,
        "javax.jdo.option.ConnectionPassword": url.password or "none",
        **(properties or {}),
    }
    lines = (f"<property><name>{name}</name><value>{escape(str(value))}</value></property>" for name, value in settings.items())
    (conf / "metastore-site.xml").write_text(f"<configuration>{''.join(lines)}</configuration>")
    shutil.copy(home / "conf" / "metastore-log4j2.properties", conf)
    opens = [part for name in OPENED for part in ("--add-opens", f"java.base/java.{name}=ALL-UNNAMED")]
    command = [
        "java", "-Xmx1g", "-Djava.net.preferIPv4Stack=true", f"-Dmetastore.log.dir={folder}",
        "-Dlog4j.configurationFile=metastore-log4j2.properties", *opens, "-cp",
        f"{conf}:{classpath}", "org.apache.hadoop.hive.metastore.HiveMetaStore", "-p", str(port),
    ]  # fmt: skip
    with (folder / "out").open("w") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out, cwd=folder, env=_environment(release, folder))
    try:
        _wait(process, f"thrift://127.0.0.1:{port}", folder / "out")
        yield f"thrift://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(60)


def _environment(release: str, folder: Path) -> dict[str, str]:
    """Return the environment in which a release listens on 127.0.0.1 alone: 3.1.3 has no property for its address."""
    if release != "3.1.3":
        return dict(os.environ)
    library = folder / "loopback.so"
    source = Path(__file__).with_name("loopback.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", str(library), str(source), "-ldl"], check=True)
    return {**os.environ, "LD_PRELOAD": str(library)}


def _wait(process: subprocess.Popen[bytes], uri: str, out: Path) -> None:
    end = time.monotonic() + WAIT
    while time.monotonic() < end and process.poll() is None:
        with suppress(OSError), connect(uri) as client:
            client.get_all_databases()
            return
        time.sleep(0.2)
    raise AssertionError(f"Java's metastore does not answer: {out.read_text()[-3000:]}")
