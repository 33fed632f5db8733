"""Hive's streaming ingest in a process of its own, for rows of any test."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.support.engines.hive import java, settings, variables, write_configuration
from tests.support.engines.jars import ingest_classpath

UNBUFFERED = "org.apache.hadoop.fs.RawLocalFileSystem"
"""A local file system that writes flushed bytes at once, like HDFS. Hadoop's usual one buffers them, for its checksums."""


class Ingest:
    """A connection of the ingest to one table."""

    def __init__(self, process: subprocess.Popen[str], errors: Path) -> None:
        self._process = process
        self._errors = errors
        self._wait()

    def do(self, *commands: str) -> None:
        """Run commands of Ingest.java one after the other."""
        assert self._process.stdin is not None
        for command in commands:
            self._process.stdin.write(command + "\n")
            self._process.stdin.flush()
            if command != "vanish":
                self._wait()

    def _wait(self) -> None:
        assert self._process.stdout is not None
        answer = self._process.stdout.readline()
        assert answer == "done\n", f"the ingest failed: {self._errors.read_text()[-3000:]}"


@contextmanager
def ingest(
    uri: str,
    folder: Path,
    warehouse: Path,
    database: str,
    table: str,
    batch: int,
    changes: Mapping[str, str] | None = None,
    properties: Mapping[str, str] | None = None,
    environment: Mapping[str, str] | None = None,
) -> Iterator[Ingest]:
    """Connect to a table; `batch` transactions are opened at a time. `changes` are further settings, `properties` are Java's."""
    write_configuration(folder, {**settings(uri, folder, warehouse), "fs.file.impl": UNBUFFERED, **(changes or {})})
    command = java(folder, ingest_classpath(), "Ingest", database, table, str(batch))
    errors = folder / "errors.txt"
    with errors.open("w") as file:
        process = subprocess.Popen(
            [command[0], *(f"-D{name}={text}" for name, text in (properties or {}).items()), *command[1:]],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=file,
            text=True,
            cwd=folder,
            env={**variables(folder), **(environment or {})},
        )
        try:
            yield Ingest(process, errors)
            assert process.stdin is not None
            process.stdin.close()
            process.wait(60)
        finally:
            process.kill()
            process.wait()
