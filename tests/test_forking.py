"""A server that `tests/support/servers/forking.py` forks is as one that its command starts."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support.servers.servers import COMMAND, Server, serving

WAYS = pytest.mark.parametrize("command", [None, COMMAND], ids=["forked", "started"])


def held(server: Server) -> Counter[str]:
    """Return the number of open files of each kind in a server."""
    folder = Path(f"/proc/{server.process.pid}/fd")
    return Counter(re.sub(r"[\d\[\]]+|/.*/|-\w+", "", os.readlink(each)) for each in folder.iterdir())


def test_it_has_the_files_and_the_folder_of_one_that_is_started(tmp_path: Path) -> None:
    found = []
    for command in (None, COMMAND):
        (tmp_path / "here").mkdir(exist_ok=True)
        with serving("--workers", "1", home=tmp_path, command=command, cwd=tmp_path / "here") as server:
            assert isinstance(server.process, subprocess.Popen) is (command is not None)
            found.append((held(server), os.readlink(f"/proc/{server.process.pid}/cwd"), server.process.poll()))
    assert found[0] == found[1]
    assert found[0][1:] == (str(tmp_path / "here"), None)


@WAYS
@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 0), (signal.SIGKILL, -signal.SIGKILL)])
def test_its_end_is_reported(tmp_path: Path, command: list[str], number: int, status: int) -> None:
    with serving("--workers", "1", home=tmp_path, command=command) as server:
        with pytest.raises(subprocess.TimeoutExpired):
            server.process.wait(0.01)
        server.process.send_signal(number)
        assert [server.process.wait(), server.process.poll(), server.process.returncode] == [status] * 3
        server.process.kill()  # no signal is sent after the end: another process may have this id by now


@WAYS
def test_one_that_does_not_start_says_why(tmp_path: Path, command: Sequence[str] | None) -> None:
    with (
        pytest.raises(AssertionError, match=r"not ready: ''\n(?s:.*)nonsense"),
        serving("--db", "nonsense://x", home=tmp_path, command=command),
    ):
        pass
