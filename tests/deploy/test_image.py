"""A server that can write only to its data and to /tmp, as the image and the chart run it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

from metastore import idl
from metastore.client import connect
from tests.support.servers.servers import COMMAND, ROOT, serving

READ_ONLY = """
set -e
mount --bind / "$1"
mount -o remount,bind,ro "$1"
mount --bind "$2" "$1$2"
shift; shift
cd /
exec chroot "$ROOT" "$@"
"""


def may_mount() -> bool:
    return os.geteuid() == 0 and subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False).returncode == 0


@pytest.mark.skipif(not may_mount(), reason="needs root, and unshare of util-linux")
def test_a_server_runs_on_a_file_system_that_can_only_be_read(tmp_path: Path) -> None:
    root, home = tmp_path / "root", tmp_path / "home"
    root.mkdir()
    home.mkdir()
    command = ("unshare", "--mount", "sh", "-c", READ_ONLY, "sh", str(root), str(home), *COMMAND)
    variables = {"ROOT": str(root), "TMPDIR": str(home), "METASTORE_DATA_DIRECTORY": f"{home}/data", "METASTORE_AUDIT_LOG": f"{home}/audit"}
    with serving("--workers", "1", home=home, command=command, variables=variables) as server, connect(server.uri, timeout=20) as client:
        client.create_database(idl.Database("d"))
        assert client.get_all_databases() == ["d", "default"]
        assert (home / "audit").read_text()
        script = f"open({str(tmp_path / 'elsewhere')!r}, 'w')"
        check = ("nsenter", "--mount", f"--target={server.process.pid}", "chroot", str(root), sys.executable, "-c", script)
        assert "Read-only file system" in subprocess.run(check, capture_output=True, text=True, check=False).stderr


def test_the_image_has_all_that_a_server_can_use() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = set(project["optional-dependencies"]) - {"all", "spark", "streaming"}
    installed = re.search(r'pip install [^"]*"\.\[([a-z0-9,]+)\]"', (ROOT / "docker" / "Dockerfile").read_text())
    assert installed is not None
    assert set(installed[1].split(",")) == extras
