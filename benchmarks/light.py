#!/usr/bin/env python3
"""Measure an idle server: the time until it is ready and until it answers, and the memory it holds.

    python benchmarks/light.py [--runs 10] [--workers 1] [--db URL] [--json]

Starts `metastore serve` of this checkout again and again on a schema that the first, uncounted start has made, and prints
medians. Times count from the start of the process, Python's own start included. `resident` counts a page once for each
process that holds it. `proportional` divides it among them: this is the memory that the machine has less. Linux only;
never touches a server that it did not start.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
READY = "ready on "


def processes(parent: int) -> list[int]:
    """Return a process and all its descendants."""
    children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    return [parent, *(process for child in children for process in processes(int(child)))]


def memory(process: int) -> tuple[float, float]:
    """Return the resident and the proportional memory of a process in MB (10^6 bytes)."""
    sizes: dict[str, int] = {}
    for line in Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()[1:]:
        name, size, _ = line.split()
        sizes[name.rstrip(":")] = int(size) * 1024
    return sizes["Rss"] / 1e6, sizes["Pss"] / 1e6


def start(folder: Path, options: list[str]) -> dict[str, float]:
    """Start a server, ask it once, measure its memory, and end it."""
    from metastore.client import connect

    environment = {name: value for name, value in os.environ.items() if not name.startswith("METASTORE_")}
    command = [sys.executable, "-c", "from metastore.cli import main; main()", "serve", "--port", "0",
               "--set", f"data_directory={folder}", *options]  # fmt: skip
    with (folder / "log").open("w") as log:
        began = time.perf_counter()
        server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, env={**environment, "PYTHONPATH": str(ROOT)})
    try:
        assert server.stdout is not None
        line = server.stdout.readline().strip()
        ready = time.perf_counter() - began
        if not line.startswith(READY):
            sys.exit(f"the server did not start: {line}\n{(folder / 'log').read_text()[-2000:]}")
        with connect(line.removeprefix(READY)) as client:
            client.get_all_databases()
            answered = time.perf_counter() - began
        weights = [memory(process) for process in processes(server.pid)]
        ticks = Path(f"/proc/{server.pid}/stat").read_text().rpartition(")")[2].split()
        return {
            "ready, s": ready,
            "first answer, s": answered,
            "processor time of the start, s": (int(ticks[11]) + int(ticks[12])) / os.sysconf("SC_CLK_TCK"),
            "resident, MB": sum(resident for resident, _ in weights),
            "proportional, MB": sum(proportional for _, proportional in weights),
            "processes": len(weights),
        }
    finally:
        server.terminate()
        server.wait(60)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--db", help="URL of the database; an SQLite file of its own without it")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    sys.path.insert(0, str(ROOT))
    options = ["--workers", str(arguments.workers), *(["--db", arguments.db] if arguments.db else [])]
    with tempfile.TemporaryDirectory() as name:
        start(Path(name), options)
        runs = [start(Path(name), options) for _ in range(arguments.runs)]
    medians = {key: statistics.median(run[key] for run in runs) for key in runs[0]}
    if arguments.json:
        print(json.dumps(medians))
        return
    print(f"{arguments.runs} starts with an existing schema, {arguments.workers} worker(s); load of the machine {os.getloadavg()[0]:.1f}")
    for key, value in medians.items():
        values = [run[key] for run in runs]
        print(f"{key:<32} {value:8.2f}   ({min(values):.2f} to {max(values):.2f})")


if __name__ == "__main__":
    main()
