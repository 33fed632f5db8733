"""Long work shows its progress: a bar on a terminal, lines elsewhere."""

from __future__ import annotations

import os
import pty
import subprocess
from pathlib import Path

from metastore.store.core import migrate
from tests.support.servers.servers import COMMAND, ROOT, environment


def test_an_upgrade_prints_each_revision_in_a_line(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/metastore.db"
    command = [*COMMAND, "db", "upgrade", "--db", url]
    done = subprocess.run(command, env=environment(tmp_path), cwd=ROOT, capture_output=True, text=True, check=True)
    known = migrate.revisions()
    assert [line.partition(" after")[0] for line in done.stderr.splitlines()] == [
        f"upgrade: {number} of {len(known)}" for number in range(1, len(known) + 1)
    ]
    assert done.stderr.splitlines()[-1].endswith(f"revision {known[-1]}")
    assert done.stdout == f"now at revision {known[-1]}\n"
    again = subprocess.run(command, env=environment(tmp_path), cwd=ROOT, capture_output=True, text=True, check=True)
    assert again.stderr == ""


def test_an_upgrade_draws_a_bar_on_a_terminal(tmp_path: Path) -> None:
    master, end = pty.openpty()
    variables = {**environment(tmp_path), "TERM": "xterm", "COLUMNS": "100"}
    command = [*COMMAND, "db", "upgrade", "--db", f"sqlite:///{tmp_path}/metastore.db"]
    process = subprocess.Popen(command, stdout=end, stderr=end, stdin=end, env=variables, cwd=ROOT)
    os.close(end)
    seen = b""
    try:
        while part := os.read(master, 65536):
            seen += part
    except OSError:  # the other end is closed
        pass
    assert process.wait(60) == 0
    os.close(master)
    known = len(migrate.revisions())
    assert f"{known}/{known}".encode() in seen
    assert "━".encode() in seen
    assert b"now at revision" in seen
