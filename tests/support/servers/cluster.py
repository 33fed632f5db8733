"""A server that can be killed and started again, a table on it with a model of its rows, and processes that can be killed."""

from __future__ import annotations

import os
import random
import select
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from pathlib import Path

from pyspark.sql import SparkSession

from metastore.acid.folders.table import CAPABILITIES
from metastore.client import connect
from metastore.idl import CreateTableRequest, ShowCompactRequest
from metastore.spark import AcidTable
from tests.support.acid.acid_tables import definition, stored_table
from tests.support.servers.servers import ROOT, Server, free_port, serving

PATIENCE = 120
SETTINGS = (
    "txn_timeout=4s",
    "txn_reaper_interval=1s",
    "compactor_check_interval=1s",
    "compactor_cleaner_interval=1s",
    "compactor_housekeeper_interval=1s",
    "compactor_worker_timeout=4s",
    "compactor_aborted_number=0",
)
LAYOUTS = [("", "id int, v int, k string"), ("k string", "id int, v int")]
"""Partition keys and the other columns of the table."""
Row = tuple[int, int, str]
Model = dict[int, Row]


class Cluster:
    """A server that can be killed and started again, and one table on it."""

    def __init__(self, spark: SparkSession, home: Path, *settings: str) -> None:
        self.spark = spark
        self._settings = (*SETTINGS, *settings)
        self.home = home
        self.port = free_port()
        self.uri = f"thrift://127.0.0.1:{self.port}"
        self._running = ExitStack()
        self.server = self._start()

    def _start(self) -> Server:
        options = [part for setting in self._settings for part in ("--set", setting)]
        return self._running.enter_context(
            serving(
                "--port",
                str(self.port),
                "--db",
                f"sqlite:///{self.home}/m.db",
                "--warehouse",
                str(self.home / "warehouse"),
                *options,
                home=self.home,
            )
        )

    def kill_server(self) -> None:
        """Kill the server and start it again on the same port."""
        self.server.kill()
        self.server = self._start()

    def stop(self) -> None:
        self._running.close()

    def make(self, keys: str, columns: str) -> None:
        table = definition("t", columns, keys, parameters={"no_auto_compaction": "true"})
        with connect(self.uri) as client:
            client.create_table_req(CreateTableRequest(table=table, processorCapabilities=CAPABILITIES, processorIdentifier="tests"))
            self.root = Path(stored_table(client, "t").sd.location.removeprefix("file:"))
        self.table = AcidTable.forName(self.spark, "default.t", self.uri)

    def directories(self) -> set[str]:
        """Return the directories in the table and its partitions."""
        out: set[str] = set()
        for folder, inner, _ in os.walk(self.root):  # a directory that is removed meanwhile is skipped
            out.update(str(Path(folder, name).relative_to(self.root)) for name in inner if not name.startswith("k="))
            inner[:] = [name for name in inner if name.startswith("k=")]
        return out

    def staging(self) -> set[str]:
        return {path.name for path in self.root.glob(".staging*")}

    def read(self) -> Model:
        found = {row.id: (row.id, row.v, row.k) for row in self.table.toDF().collect()}
        self.table.close()
        return found

    def unsettled(self) -> list[str]:
        """Return the transactions that are open, or aborted and not forgotten, and the compactions that wait or run."""
        with connect(self.uri) as client:
            opened = client.get_open_txns_info().open_txns
            waiting = client.show_compact(ShowCompactRequest()).compacts or []
        states = ("initiated", "working", "ready for cleaning")
        return [str(each) for each in [*opened, *(each for each in waiting if each.state in states)]]


class Victim:
    """A process with children, such as Java's, that is killed at once with them."""

    def __init__(self, *command: str, cwd: Path, variables: Mapping[str, str] | None = None) -> None:
        with (cwd / "victim.log").open("a") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,
                cwd=cwd,
                env={**os.environ, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable, **(variables or {})},
            )

    def say(self, text: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(text + "\n")
        self._process.stdin.flush()

    def hear(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def hears_within(self, seconds: float) -> str:
        """Return the next line. If there is none in time, the process is killed, and the text is empty."""
        assert self._process.stdout is not None
        if not select.select([self._process.stdout], [], [], seconds)[0]:
            self.kill()
        return self.hear()

    @property
    def pid(self) -> int:
        """The id of the process, and of its session."""
        return self._process.pid

    @property
    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def wait(self) -> int:
        return self._process.wait(PATIENCE)

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


def changed(model: Model, action: str, what: object) -> Model:
    """Return the rows of a table after an operation of the driver."""
    if action == "update":
        return {key: (key, row[1] + 1, row[2]) if row[1] == what else row for key, row in model.items()}
    assert isinstance(what, list)
    return {**model, **{row[0]: tuple(row) for row in what}}


def some(random_: random.Random, model: Model) -> list[Row]:
    """Return new rows."""
    start = max(model, default=0) + 1
    return [(start + number, random_.randrange(4), f"k{random_.randrange(3)}") for number in range(random_.randrange(200, 400))]
