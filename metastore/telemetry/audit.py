"""The audit log: one line in a file for each call that changes something or was refused. It never fails a call.

Several processes append to one file, each line by one write. After the file is moved away (logrotate without `copytruncate`) the next line
begins a new one.
"""

from __future__ import annotations

import datetime
import logging
import os
import secrets
from logging.handlers import WatchedFileHandler
from typing import Any

import orjson

from metastore import log
from metastore.service.call.context import Client

LONGEST = 300
"""Characters of one value; clients send the values, and a line is one write."""


class Audit:
    """Writes the lines of one process."""

    def __init__(self, path: str, style: str) -> None:
        self._write = _hive if style == "hive" else _json
        self._file = _File(path, encoding="utf-8", delay=True)

    def record(self, client: Client, method: str, thing: str, outcome: str, seconds: float, query: str = "") -> str:
        """Write a line and return the id that it gives the request."""
        request = secrets.token_hex(8)
        values = {
            "time": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="milliseconds"),
            "request": request,
            "user": client.user,
            "real_user": client.real_user,
            "mechanism": client.mechanism or None,
            "address": client.address,
            "method": method,
            "object": thing,
            "outcome": outcome,
            "ms": round(seconds * 1000, 3),
            "query": query or None,
        }
        short = {name: value[:LONGEST] if isinstance(value, str) else value for name, value in values.items()}
        self._file.handle(logging.LogRecord("metastore.audit", logging.INFO, "", 0, self._write(short), None, None))
        return request


class _File(WatchedFileHandler):
    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802  # logging's name
        log.get("metastore.audit").error("audit log can not be written", file=self.baseFilename, line=record.getMessage(), exc_info=True)


def _json(values: dict[str, Any]) -> str:
    return orjson.dumps(values).decode()


def _hive(values: dict[str, Any]) -> str:
    """Return a line as Hive's metastore writes it, followed by the fields that Hive lacks."""
    shown = {name: "null" if value is None else str(value).translate(_ESCAPED) for name, value in values.items()}
    more = "\t".join(f"{name}={shown[name]}" for name in ("outcome", "ms", "real_user", "mechanism", "request", "query"))
    return (
        f"{shown['time']}\tugi={shown['user']}\tip={shown['address'].rpartition(':')[0]}\tcmd={shown['method']} : {shown['object']}\t{more}"
    )


_ESCAPED = {ord("\t"): "\\t", ord("\n"): "\\n", ord("\r"): "\\r"}


def writable(path: str) -> None:
    """Raise OSError unless lines can be appended to a file."""
    os.close(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o640))
