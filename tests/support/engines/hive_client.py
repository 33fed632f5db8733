"""Hive's own metastore client in a process of its own: `hive_client(folder, uri, settings, "databases")`."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

from tests.support.engines.hive import java, variables, write_configuration
from tests.support.engines.jars import HIVE, client_classpath


def hive_client(
    folder: Path,
    uri: str,
    settings: Mapping[str, str],
    *commands: str,
    properties: Mapping[str, str] | None = None,
    environment: Mapping[str, str] | None = None,
    release: str = HIVE,
) -> list[str]:
    """Run commands of HiveClient.java in turn; return a line for each, or one that begins with "refused: "."""  # fmt: skip
    folder.mkdir(parents=True, exist_ok=True)
    write_configuration(folder, {"hive.metastore.uris": uri, "hive.metastore.connect.retries": "1", "hive.in.test": "false", **settings})
    command = java(folder, client_classpath(release), "HiveClient", str(folder / "hive-site.xml"), *commands)
    defined = [f"-D{name}={text}" for name, text in (properties or {}).items()]
    done = subprocess.run(
        [command[0], *defined, *command[1:]], capture_output=True, text=True, check=False, cwd=folder, timeout=120,
        env={**variables(folder), **(environment or {})},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.splitlines()
