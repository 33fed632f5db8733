#!/usr/bin/env python3
"""Measure one worker while many wrong passwords arrive together: its memory, and the waits of other clients.

    python benchmarks/logins.py [--sockets 60 2000] [--addresses 1] [--json]

Starts `metastore serve` of this checkout with users of its own. Each of so many sockets sends a login by PLAIN without its last byte,
with a user of its own; then all send the last byte together. Meanwhile a client that is logged in makes calls, `/healthz` is asked on
connections of its own, and a user with the right password logs in from another address. Times are in seconds. Memory is the worker's
resident memory in MiB. Linux only: each address is one of 127.0.0.0/8; never touches a server that it did not start.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import resource
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from urllib.parse import urlsplit

ROOT = Path(__file__).parents[1]
COMMAND = (sys.executable, "-c", "from metastore.cli import main; main()")
READY = "ready on "
PASSWORD = "correct horse"
LONGEST = 120.0
"""The time in seconds of an attempt that has not ended by then."""


def resident(process: int, line: str) -> float:
    """Return the memory that a process holds (VmRSS), or has held at most (VmHWM), in MiB."""
    for each in Path(f"/proc/{process}/status").read_text().splitlines():
        if each.startswith(line):
            return int(each.split()[1]) / 1024
    return 0.0


def plain(user: str, password: str) -> bytes:
    """Return a whole login by PLAIN."""
    text = f"\0{user}\0{password}".encode()
    return b"\x01\0\0\0\x05PLAIN\x02" + len(text).to_bytes(4, "big") + text


def repeat(ask: Callable[[], None], end: threading.Event, took: list[float]) -> None:
    """Ask again and again until the end, and note the time of each."""
    while not end.is_set():
        began = time.perf_counter()
        ask()
        took.append(time.perf_counter() - began)
        end.wait(0.05)


def attack(server: subprocess.Popen[str], uri: str, sockets: int, addresses: int) -> dict[str, float]:
    """Guess passwords on many sockets together; return the measured times and memory by name."""
    from metastore.client import connect
    from metastore.client_login.plain import Plain

    where = urlsplit(uri)
    assert where.hostname is not None
    target = (where.hostname, where.port or 0)
    worker = int(Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text().split()[0])

    def healthz() -> None:
        probe = http.client.HTTPConnection(*target, timeout=LONGEST)
        probe.request("GET", "/healthz")
        assert probe.getresponse().status == 200
        probe.close()

    def log_in() -> None:
        with socket.create_connection(target, LONGEST, ("127.255.0.1", 0)) as sock:
            sock.sendall(plain("good", PASSWORD))
            assert sock.recv(1) == b"\x05", "the right password was refused"

    guesses = []
    for number in range(sockets):
        sock = socket.create_connection(target, LONGEST, (f"127.1.{number % addresses >> 8}.{number % addresses & 255 or 254}", 0))
        sock.sendall(plain(f"user{number % 100}x{number}", "guess" * 2)[:-1])
        guesses.append(sock)
    before, end = resident(worker, "VmRSS"), threading.Event()
    took: dict[str, list[float]] = {"healthz": [], "call": [], "login": []}
    with connect(uri, login=Plain("good", PASSWORD), timeout=LONGEST) as client:
        asked = {"healthz": healthz, "call": client.getStatus, "login": log_in}
        threads = [threading.Thread(target=repeat, args=(asked[name], end, took[name])) for name in asked]
        for thread in threads:
            thread.start()
        time.sleep(0.3)
        began = time.perf_counter()
        for sock in guesses:
            sock.sendall(b"s")
        refused = sum(answered(sock) for sock in guesses)
        lasted = time.perf_counter() - began
        end.set()
        for thread in threads:
            thread.join()
    return {
        "memory before, MiB": before,
        "memory at most, MiB": resident(worker, "VmHWM"),
        "refused": refused,
        "all refused after, s": lasted,
        **{f"{name} at most, s": max(times) for name, times in took.items()},
        **{f"{name} mean, s": sum(times) / len(times) for name, times in took.items()},
    }


def answered(sock: socket.socket) -> bool:
    """Return whether the server answered a login with a refusal, and close its socket."""
    with sock:
        try:
            return sock.recv(1) == b"\x03"
        except OSError:
            return False


def run(sockets: int, addresses: int) -> dict[str, float]:
    """Start a server, attack it, end it."""
    with tempfile.TemporaryDirectory() as folder:
        variables = {name: value for name, value in os.environ.items() if not name.startswith("METASTORE_")} | {"PYTHONPATH": str(ROOT)}
        options = ["--set", f"data_directory={folder}"]

        def command(*arguments: str) -> list[str]:
            return [*COMMAND, *arguments, *options]

        subprocess.run(command("db", "upgrade"), env=variables, check=True, capture_output=True)
        subprocess.run(command("user", "add", "good"), env=variables, check=True, capture_output=True, input=PASSWORD + "\n", text=True)
        with (Path(folder) / "log").open("w") as log:
            server = subprocess.Popen(
                command("serve", "--port", "0", "--workers", "1", "--set", "authentication=users"),
                stdout=subprocess.PIPE, stderr=log, text=True, env=variables,
            )  # fmt: skip
        try:
            assert server.stdout is not None
            line = server.stdout.readline().strip()
            if not line.startswith(READY):
                sys.exit(f"the server did not start: {line}\n{(Path(folder) / 'log').read_text()[-2000:]}")
            return attack(server, line.removeprefix(READY), sockets, addresses)
        finally:
            server.terminate()
            server.wait(60)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sockets", type=int, nargs="+", default=[60, 2000])
    parser.add_argument("--addresses", type=int, default=1, help="number of addresses from which the sockets connect, at most 250")
    parser.add_argument("--json", action="store_true")
    parsed = parser.parse_args(arguments)
    sys.path.insert(0, str(ROOT))
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    found = {sockets: run(sockets, parsed.addresses) for sockets in parsed.sockets}
    if parsed.json:
        print(json.dumps(found))
        return
    for sockets, measured in found.items():
        print(f"{sockets} sockets from {parsed.addresses} address(es), 1 worker; load of the machine {os.getloadavg()[0]:.1f}")
        for name, value in measured.items():
            print(f"  {name:<24} {value:9.2f}")


if __name__ == "__main__":
    main()
