"""Run `metastore shadow` between two metastores, and read its counters and its report."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.servers.forking import Forked
from tests.support.servers.servers import READY, ROOT, environment


class Shadow:
    """A running proxy, which prints its counts at its end."""

    def __init__(self, process: Forked, uri: str, log: Path) -> None:
        self.process, self.uri, self._log = process, uri, log
        self.counts: dict[str, dict[str, int]] = {}

    def end(self) -> dict[str, dict[str, int]]:
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(60)
        self.counts = json.loads(self.process.stdout.read().splitlines()[-1])
        return self.counts

    def differences(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self._log.read_text().splitlines()] if self._log.exists() else []


@contextmanager
def shadowing(primary: str, secondary: str, home: Path, *options: str, variables: Mapping[str, str] | None = None) -> Iterator[Shadow]:
    home.mkdir(parents=True, exist_ok=True)
    log = home / "differences"
    command = [
        "shadow", "--primary", primary, "--secondary", secondary, "--port", "0", "--log", str(log), "--json", "--every", "0",
        *options,
    ]  # fmt: skip
    with (home / "log").open("w") as errors, open(os.devnull) as nothing:
        process = Forked(command, environment(home, variables), ROOT, given=nothing, errors=errors)
    try:
        line = process.stdout.readline().strip()
        assert line.startswith(READY), f"{line!r}\n{(home / 'log').read_text()[-3000:]}"
        yield Shadow(process, line.removeprefix(READY), log)
    finally:
        if process.poll() is None:
            process.kill()
        process.wait(60)
        process.stdout.close()
