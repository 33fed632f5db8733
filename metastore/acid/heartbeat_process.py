"""Send heartbeats for a transaction from a process of its own: the process that began it ends before others continue it.

    python -m metastore.acid.heartbeat_process URI TRANSACTION PROCESS SECONDS

The process ends with the transaction, with PROCESS, and after SECONDS. This module never ends the transaction.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time

from metastore import idl
from metastore.acid.transactions import server_timeout
from metastore.client import connect
from metastore.idl import HeartbeatRequest

LOOK = 1.0
"""Seconds between looks at the process."""


def start(uri: str, transaction: int, process: int, seconds: float) -> None:
    """Start the process: heartbeats as long as `process` of this machine lives, at most for `seconds`."""
    subprocess.Popen(  # noqa: S603  # our own program
        [sys.executable, "-m", "metastore.acid.heartbeat_process", uri, str(transaction), str(process), str(seconds)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def beat(uri: str, transaction: int, process: int, seconds: float) -> None:
    """Send heartbeats until the transaction or the process has ended, or the seconds are over."""
    end = time.monotonic() + seconds
    request = HeartbeatRequest(lockid=0, txnid=transaction)
    with connect(uri) as client:
        interval = server_timeout(client) / 3
        due = 0.0
        while _lives(process) and time.monotonic() < end:
            if time.monotonic() >= due:
                try:
                    client.heartbeat(request)
                except (idl.NoSuchTxnException, idl.TxnAbortedException):
                    return
                except Exception:  # noqa: BLE001, S110  # the server may be restarting: the next beat may reach it
                    pass
                due = time.monotonic() + interval
            time.sleep(LOOK)


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


if __name__ == "__main__":
    beat(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]))
