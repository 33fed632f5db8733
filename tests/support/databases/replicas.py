"""A PostgreSQL primary and a standby that confirms each of its commits; the standby can take over."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy.engine import URL

from tests.support.databases.databases import ci
from tests.support.servers.processes import kill_with_children
from tests.support.servers.servers import free_port


class Pair:
    """Two servers on ports of this machine; `url` has the addresses of both, and selects the server that accepts writes."""

    def __init__(self, folder: Path) -> None:
        self._ci = ci()
        self._prefix, account = self._ci.owner("postgres")
        self._folder = folder
        os.chown(folder, account.pw_uid, account.pw_gid)
        self._ports = {"primary": free_port(), "standby": free_port()}
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        query = {
            "host": [f"127.0.0.1:{port}" for port in self._ports.values()],
            "target_session_attrs": "read-write",
            "connect_timeout": "2",
        }
        self.url = URL.create("postgresql", username="metastore", database="postgres", query=query)

    def address(self, name: str) -> str:
        """Return the URL of one of the servers: `primary`, `standby`."""
        return f"postgresql://metastore@127.0.0.1:{self._ports[name]}/postgres"

    def start(self) -> None:
        """Make the primary, and the standby from a copy of it."""
        self.start_alone()
        port = str(self._ports["primary"])
        self._run("pg_basebackup", "-D", str(self._folder / "standby"), "-R", "-h", "127.0.0.1", "-p", port, "-U", "metastore")
        self._serve("standby")
        self._psql("primary", "ALTER SYSTEM SET synchronous_standby_names = '*'", "SELECT pg_reload_conf()")

    def start_alone(self) -> None:
        """Make the primary, without a standby."""
        data = str(self._folder / "primary")
        self._run("initdb", "--pgdata", data, "--username=metastore", "--auth=trust", "--encoding=UTF8", "--no-sync")
        self._serve("primary")

    def start_again(self, name: str) -> None:
        """Start one of the servers again that was killed."""
        self._serve(name)

    def fail_over(self) -> None:
        """Kill the primary, and let the standby take its place."""
        self.kill("primary")
        self._psql("standby", "SELECT pg_promote()")

    def kill(self, name: str) -> None:
        """Kill one of the servers with its processes: it could not start again while one of them uses its shared memory."""
        process = self._processes.pop(name)
        kill_with_children(process.pid)
        process.wait()

    def run(self, name: str, *statements: str) -> None:
        """Run statements on one of the servers."""
        self._psql(name, *statements)

    def close(self) -> None:
        """End the servers that run."""
        for name in list(self._processes):
            self.kill(name)

    def _run(self, program: str, *options: str) -> None:
        path = str(self._ci.postgresql_program(program))
        subprocess.run([*self._prefix, path, *options], check=True, cwd=self._folder, stdout=subprocess.DEVNULL)

    def _serve(self, name: str, *options: str) -> None:
        command = [
            str(self._ci.postgresql_program("postgres")), "-D", str(self._folder / name), "-c", "listen_addresses=127.0.0.1",
            "-c", f"port={self._ports[name]}", "-c", "unix_socket_directories=", "-c", "max_connections=200", *options,
        ]  # fmt: skip
        log = (self._folder / f"{name}.log").open("wb")
        self._processes[name] = subprocess.Popen(
            [*self._prefix, *command], cwd=self._folder, stdout=log, stderr=log, start_new_session=True
        )
        self._psql(name, "SELECT 1")

    def _psql(self, name: str, *statements: str) -> None:
        """Run statements on one server as soon as it answers."""
        import psycopg

        until = time.monotonic() + 60
        while True:
            try:
                with psycopg.connect(
                    host="127.0.0.1", port=self._ports[name], user="metastore", dbname="postgres", autocommit=True
                ) as opened:
                    for statement in statements:
                        opened.execute(statement)
                return
            except psycopg.OperationalError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.05)


@contextmanager
def pair() -> Iterator[Pair]:
    """Start both servers, yield them, and end them."""
    with _made() as made:
        made.start()
        yield made


@contextmanager
def alone() -> Iterator[Pair]:
    """Start the primary of a pair, without its standby, for a test that stops it; yield the pair, and end it."""
    with _made() as made:
        made.start_alone()
        yield made


@contextmanager
def _made() -> Iterator[Pair]:
    folder = Path(tempfile.mkdtemp())  # another user can not enter pytest's own folders
    made = Pair(folder)
    try:
        yield made
    finally:
        made.close()
        shutil.rmtree(folder, ignore_errors=True)
