"""Hive's engine in a process of its own: `with hive(uri, ...) as engine: engine.sql("SELECT 1")`. It runs statements of any test.

Sessions are named. The statements of one session run in order; sessions run side by side. One statement of the engine never reaches this
server: `ALTER TABLE ... COMPACT` writes into the database of Java's metastore. `compact` requests a compaction through Thrift instead.
"""

from __future__ import annotations

import os
import struct
import subprocess
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO
from xml.sax.saxutils import escape

from tests.support.engines.jars import classpath

CAPABILITIES = (
    "EXTWRITE,EXTREAD,HIVEBUCKET2,HIVEFULLACIDREAD,HIVEFULLACIDWRITE,HIVECACHEINVALIDATE,HIVEMANAGESTATS,HIVEMANAGEDINSERTWRITE,"
    "HIVEMANAGEDINSERTREAD,HIVESQL,HIVEMQT,HIVEONLYMQTWRITE,ACCEPTS_UNMODIFIED_METADATA"
)
"""The capabilities that HiveServer2 announces to a metastore."""
OPENED = (
    *(f"java.base/java.{name}" for name in (
        "io", "lang", "lang.invoke", "lang.reflect", "math", "net", "nio", "text", "time", "util", "util.concurrent",
        "util.concurrent.atomic", "util.regex",
    )), "java.base/sun.nio.ch", "java.base/sun.nio.cs", "java.base/sun.security.action", "java.base/sun.util.calendar", "java.sql/java.sql",
    "java.security.jgss/sun.security.krb5",
)  # fmt: skip
"""Packages of Java 17 whose internals Hive uses."""
PATIENCE = 300
"""Seconds that a statement may take."""

Rows = list[tuple[str, ...]]


class HiveError(Exception):
    """Hive refused a statement; the text holds its messages."""


def settings(uri: str, folder: Path, warehouse: Path) -> dict[str, str]:
    """Return Hive's configuration for a metastore, with all that it writes below `folder` and `warehouse`."""
    return {
        "hive.metastore.uris": uri, "hive.metastore.warehouse.dir": f"file:{warehouse}",
        "hive.metastore.warehouse.external.dir": f"file:{warehouse}", "hive.metastore.client.capabilities": CAPABILITIES,
        "hive.support.concurrency": "true", "hive.txn.manager": "org.apache.hadoop.hive.ql.lockmgr.DbTxnManager",
        "hive.exec.dynamic.partition.mode": "nonstrict", "hive.execution.engine": "mr", "mapreduce.framework.name": "local",
        "fs.defaultFS": "file:///", "hadoop.tmp.dir": f"{folder}/hadoop", "mapreduce.jobtracker.staging.root.dir": f"{folder}/staging",
        "mapreduce.task.io.sort.mb": "16", "hive.exec.scratchdir": f"{folder}/scratch", "hive.exec.local.scratchdir": f"{folder}/local",
        "hive.downloaded.resources.dir": f"{folder}/resources", "hive.user.install.directory": f"file:{folder}/install",
        "hive.exec.submitviachild": "false", "hive.exec.submit.local.task.via.child": "false", "hive.auto.convert.join": "false",
        "hive.query.results.cache.enabled": "false", "hive.llap.execution.mode": "none", "hive.llap.io.enabled": "false",
        "hive.lock.numretries": "60", "hive.lock.sleep.between.retries": "1s", "hive.strict.checks.cartesian.product": "false",
        "hive.notification.event.poll.interval": "0s", "hive.metastore.runworker.in": "hs2", "hive.compactor.worker.threads": "1",
        "hive.compactor.check.interval": "1s", "hive.scheduled.queries.executor.idle.sleep.time": "1s", "hive.cli.print.header": "false",
        "hive.security.authorization.createtable.owner.grants": "INSERT,SELECT,UPDATE,DELETE",
    }  # fmt: skip


class Hive:
    """A running engine."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._lock = threading.Lock()
        self._waiting: dict[int, Future[Rows]] = {0: Future()}
        self._started = self._waiting[0]
        self._number = 0
        threading.Thread(target=self._receive, daemon=True).start()
        self._started.result(PATIENCE)

    def start(self, statement: str, session: str = "main") -> Future[Rows]:
        """Run a statement beside those of other sessions. The future raises HiveError."""
        answer: Future[Rows] = Future()
        with self._lock:
            self._number += 1
            self._waiting[self._number] = answer
            assert self._process.stdin is not None
            self._process.stdin.write(struct.pack("!i", self._number) + _text(session) + _text(statement))
            self._process.stdin.flush()
        return answer

    def sql(self, statement: str, session: str = "main") -> Rows:
        """Run a statement and return its rows, each column as text. HiveError."""
        return self.start(statement, session).result(PATIENCE)

    def worker(self) -> None:
        """Start a compaction worker."""
        self.sql("!worker")

    def executor(self) -> None:
        """Start the executor of scheduled queries: it polls for them, runs them and reports their progress."""
        self.sql("!executor")

    def compact(self, database: str, table: str, kind: str, partition: str = "") -> tuple[str, ...]:
        """Ask for a compaction; return (id, state, "true" if accepted)."""
        return self.sql(f"!compact {database} {table} {kind} {partition}".rstrip())[0]

    def kill(self) -> None:
        """Kill the engine: it sends no heartbeat and no abort."""
        self._process.kill()

    def _receive(self) -> None:
        assert self._process.stdout is not None
        stream: BinaryIO = self._process.stdout  # type: ignore[assignment]  # a pipe
        try:
            while head := stream.read(9):
                number, failed, size = struct.unpack("!i?i", head)
                lines = [stream.read(*struct.unpack("!H", stream.read(2))).decode("utf-8", "surrogatepass") for _ in range(size)]
                answer = self._waiting.pop(number)
                if failed:
                    answer.set_exception(HiveError("\n".join(lines)))
                else:
                    answer.set_result([tuple(line.split("\t")) for line in lines])
        finally:
            for answer in self._waiting.values():
                answer.set_exception(HiveError("the engine ended; its log stands beside its other files"))


def _text(text: str) -> bytes:
    data = text.encode()
    return struct.pack("!H", len(data)) + data


@contextmanager
def hive(uri: str, folder: Path, warehouse: Path, changes: Mapping[str, str] | None = None) -> Iterator[Hive]:
    """Start an engine on a metastore; `changes` are further settings. Its log is `folder`/hive.log."""
    write_configuration(folder, {**settings(uri, folder, warehouse), **(changes or {})})
    with (folder / "errors.txt").open("wb") as errors:
        process = subprocess.Popen(
            java(folder, classpath(), "HiveSessions"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            cwd=folder,
            env=variables(folder),
        )
        try:
            yield Hive(process)
        finally:
            process.kill()
            process.wait()


def write_configuration(folder: Path, properties: Mapping[str, str]) -> None:
    """Write the configuration that a Java program of Hive reads at its start, and the folders that it names."""
    for name in ("scratch", "local"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "scratch").chmod(0o777)
    lines = [f"<property><name>{name}</name><value>{escape(value)}</value></property>" for name, value in properties.items()]
    (folder / "hive-site.xml").write_text(f"<configuration>{''.join(lines)}</configuration>")
    (folder / "log4j2.properties").write_text(
        "\n".join(
            (
                "appender.file.type=File",
                "appender.file.name=file",
                f"appender.file.fileName={folder}/hive.log",
                "appender.file.layout.type=PatternLayout",
                "appender.file.layout.pattern=%d{HH:mm:ss.SSS} %p [%t] %c{1}: %m%n",
                "rootLogger.level=info",
                "rootLogger.appenderRef.file.ref=file",
            )
        )
    )


def java(folder: Path, classes: str, program: str, *arguments: str) -> list[str]:
    """Return the command that runs a program of a class path with the configuration in a folder."""
    return [
        "java",
        "-Xmx1500m",
        *(f"--add-opens={package}=ALL-UNNAMED" for package in OPENED),
        f"-Djava.io.tmpdir={folder}/local",
        "-Duser.timezone=UTC",
        f"-Dlog4j2.configurationFile={folder}/log4j2.properties",
        f"-Dderby.system.home={folder}",
        "-cp",
        f"{folder}:{classes}",
        program,
        *arguments,
    ]


def variables(folder: Path) -> dict[str, str]:
    """Return the variables that such a program needs."""
    return {**os.environ, "HADOOP_HOME": str(folder), "HIVE_CONF_DIR": str(folder), "HADOOP_USER_NAME": "hive"}
