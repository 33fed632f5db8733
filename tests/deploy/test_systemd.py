"""The unit is valid for systemd, and starts a command that exists."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.servers.servers import COMMAND, ROOT, environment

UNIT = ROOT / "deploy" / "systemd" / "metastore.service"


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="apt install systemd")
def test_systemd_takes_the_unit(tmp_path: Path) -> None:
    text = UNIT.read_text().replace("/opt/metastore/bin/metastore", sys.executable).replace("User=metastore", "User=root")
    (tmp_path / "metastore.service").write_text(text)
    done = subprocess.run(["systemd-analyze", "verify", str(tmp_path / "metastore.service")], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    (tmp_path / "metastore.service").write_text(text.replace("KillMode=mixed", "KillMode=never"))
    done = subprocess.run(["systemd-analyze", "verify", str(tmp_path / "metastore.service")], capture_output=True, text=True, check=False)
    assert "kill mode" in done.stderr, "it finds what is wrong"


def test_the_settings_of_the_unit_exist(tmp_path: Path) -> None:
    text = UNIT.read_text()
    found = re.search(r"^Environment=(.*)$", text, re.MULTILINE)
    assert found is not None
    variables = dict(each.split("=", 1) for each in found[1].split())
    done = subprocess.run([*COMMAND, "config"], env=environment(tmp_path, variables), cwd=ROOT, capture_output=True, text=True, check=True)
    assert "/var/lib/metastore" in done.stdout
    assert "serve --config /etc/metastore/metastore.toml" in text
    stop = re.search(r"^TimeoutStopSec=(\d+)s$", text, re.MULTILINE)
    assert stop is not None
    assert int(stop[1]) >= 60
