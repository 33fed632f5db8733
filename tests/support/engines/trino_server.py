"""Start Trino's own server, fetched through Maven, on a metastore; it reads and writes local files.

Its release is kept in METASTORE_TEST_JARS, or below the system's folder for temporary files: 500 MB. Needs Maven and Java 24 or newer.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import tarfile
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import orjson
import pytest
from trino import dbapi
from trino.exceptions import TrinoQueryError

from tests.support.servers.servers import free_port

RELEASE = "476"
NEEDS = 24
"""The oldest Java that runs it."""
PLUGINS = ("hive", "iceberg")
CATALOGS = {
    "hive": ["connector.name=hive", "hive.non-managed-table-writes-enabled=true"],
    "secured": ["connector.name=hive", "hive.security=sql-standard"],
    "iceberg": ["connector.name=iceberg"],
}
"""The catalogs' properties besides the metastore and its files."""
USER = "ada"
"""The user who runs queries unless a test names another."""


def java_home() -> Path:
    """Return the folder of a Java that is new enough, or skip."""
    for folder in filter(None, [os.environ.get("JAVA_HOME"), *sorted(Path("/usr/lib/jvm").glob("*"))]):
        release = Path(folder) / "release"
        found = re.search(r'JAVA_VERSION="(\d+)', release.read_text()) if release.is_file() else None
        if found and int(found[1]) >= NEEDS:
            return Path(folder)
    pytest.skip(f"Trino {RELEASE} needs Java {NEEDS} or newer: set JAVA_HOME")


def release() -> Path:
    """Return the folder of Trino's server with the plugins that are used."""
    if shutil.which("mvn") is None:
        pytest.skip("mvn is missing: it fetches Trino")
    place = Path(os.environ.get("METASTORE_TEST_JARS") or tempfile.gettempdir()) / f"metastore-test-trino-{RELEASE}"
    place.mkdir(parents=True, exist_ok=True)
    found, name = place / "server", f"trino-server-{RELEASE}"
    with (place / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not found.exists():
            goal = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy"
            artifact = f"-Dartifact=io.trino:trino-server:{RELEASE}:tar.gz"
            subprocess.run(["mvn", "-q", "-B", goal, artifact, f"-DoutputDirectory={place}"], cwd=place, check=True)
            wanted = tuple(f"{name}/{part}/" for part in ("bin", "lib", "secrets-plugin", *(f"plugin/{each}" for each in PLUGINS)))
            with tarfile.open(place / f"{name}.tar.gz") as archive:
                archive.extractall(place, [member for member in archive if member.name.startswith(wanted)], filter="data")
            (place / f"{name}.tar.gz").unlink()
            (place / name).rename(found)
    return found


def _configure(folder: Path, port: int, metastore: str, properties: Sequence[str], jvm: Sequence[str]) -> None:
    files = {
        "node.properties": ["node.environment=test", "node.id=one", f"node.data-dir={folder}/data", "node.bind-ip=127.0.0.1"],
        "jvm.config": ["-Xmx2G", "-XX:+ExitOnOutOfMemoryError", "-Djdk.attach.allowAttachSelf=true", *jvm],
        "config.properties": [
            "coordinator=true",
            "node-scheduler.include-coordinator=true",
            f"http-server.http.port={port}",
            "node.internal-address=127.0.0.1",
            f"discovery.uri=http://127.0.0.1:{port}",
            "catalog.management=static",
        ],
        **{
            f"catalog/{name}.properties": [*lines, f"hive.metastore.uri={metastore}", "fs.hadoop.enabled=true", *properties]
            for name, lines in CATALOGS.items()
        },
    }
    (folder / "etc" / "catalog").mkdir(parents=True)
    for name, lines in files.items():
        (folder / "etc" / name).write_text("\n".join(lines) + "\n")


def _has_started(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/v1/info", timeout=5) as answer:
            return orjson.loads(answer.read())["starting"] is False
    except (urllib.error.URLError, OSError):
        return False


_SECONDS_FOR_NODES = 60


class Served(Protocol):
    """A metastore, or a program before one."""

    @property
    def uri(self) -> str:
        """Return its address."""


class Trino:
    """A running Trino, and the path of the metastore's warehouse."""

    def __init__(self, port: int, warehouse: Path) -> None:
        self._port = port
        self.warehouse = warehouse

    def run(self, statement: str, *, role: str | None = None, catalog: str = "hive", user: str = USER) -> list[tuple[Any, ...]]:
        """Run a statement in a catalog, with a role in it, and return its rows. TrinoQueryError.

        Trino accepts statements before its own node is registered for the catalog: the statement is repeated until then.
        """
        until = time.monotonic() + _SECONDS_FOR_NODES
        while True:
            try:
                return self._run(statement, {catalog: role} if role else None, catalog, user)
            except TrinoQueryError as error:
                if not ("No nodes available" in error.message or "nodes is empty" in error.message) or time.monotonic() > until:
                    raise
            time.sleep(0.5)

    def _run(self, statement: str, roles: dict[str, str] | None, catalog: str, user: str) -> list[tuple[Any, ...]]:
        with dbapi.connect(host="127.0.0.1", port=self._port, user=user, catalog=catalog, roles=roles) as connection:
            cursor = connection.cursor()
            cursor.execute(statement)
            return [tuple(row) for row in cursor.fetchall()]


@contextmanager
def trino_on(server: Served, warehouse: Path, folder: Path, *properties: str, jvm: Sequence[str] = ()) -> Iterator[Trino]:
    """Start Trino, yield it when it answers, and end it. `properties` are further ones of each catalog, `jvm` options of Java."""
    home, where, port = java_home(), release(), free_port()
    _configure(folder, port, server.uri, properties, jvm)
    variables = {**os.environ, "JAVA_HOME": str(home), "PATH": f"{home}/bin:{os.environ['PATH']}"}
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            [where / "bin" / "launcher", "--etc-dir", folder / "etc", "run"], stdout=log, stderr=log, env=variables, cwd=folder,
        )  # fmt: skip
        try:
            while not _has_started(port):
                assert process.poll() is None, (folder / "log").read_text()[-3000:]
                time.sleep(0.5)
            yield Trino(port, warehouse)
        finally:
            process.terminate()
            process.wait(60)
