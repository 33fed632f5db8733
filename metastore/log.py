"""Set up structlog: one line per event, as JSON or for a terminal. This module never opens a file of its own choice.

The switch that logs everything, at any level, is in memory that forked processes share: it works for all of them.
"""

from __future__ import annotations

import logging
import mmap
import sys
import time
from collections.abc import Callable
from datetime import datetime, timezone
from typing import Any, BinaryIO

import orjson
import structlog

from metastore.secrecy import without_passwords

_LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
_everything = mmap.mmap(-1, 1)
"""1 while every event is logged."""


def configure(level: str = "info", style: str = "json", stream: BinaryIO | None = None) -> None:
    """Send events of `level` and above to `stream` (default: standard error).

    `style` is "json" (one object per line) or "console" (for people). Call it before the workers fork: each line is
    written in one piece, so that several processes may share the stream. Raises ValueError for an unknown name.
    """
    number = _LEVELS.get(level.lower())
    if number is None:
        raise ValueError(f"Log level {level!r} is unknown; use debug, info, warning or error")
    out = stream or sys.stderr.buffer
    lines = _Lines(out)
    processors: list[Any]
    if style == "json":
        processors = [_masked, _json]
    elif style == "console":
        processors = [
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            _masked,
            structlog.dev.ConsoleRenderer(colors=out.isatty()),
            _encode,
        ]
    else:
        raise ValueError(f"Log style {style!r} is unknown; use json or console")
    structlog.configure(
        processors=processors,
        wrapper_class=_logger(number),
        logger_factory=lambda *_: lines,
        cache_logger_on_first_use=True,
    )


class _Lines:
    """Writes each line at once, in one piece unless the system takes only a part of it. Most calls log one: a buffer would cost more."""

    def __init__(self, out: BinaryIO) -> None:
        self._write: Callable[[bytes], int | None] = getattr(out, "raw", out).write

    def msg(self, line: bytes) -> None:
        """Write a line, which ends in a newline."""
        written = self._write(line)
        if written != len(line):
            self._write_rest(line[written or 0 :])

    def _write_rest(self, line: bytes) -> None:
        """Write the rest that the system did not take at once, as with a full pipe."""
        while line:
            written = self._write(line)
            if written is None:  # the file is non-blocking, and takes nothing now
                time.sleep(0.001)
            line = line[written or 0 :]

    debug = info = warning = error = critical = exception = msg


def log_everything(on: bool) -> None:
    """Log every event, in this process, its ancestors and its forks; with `on` false, log by the level again."""
    _everything[0] = on


def logs_everything() -> bool:
    """Return whether every event is logged, at any level."""
    return bool(_everything[0])


def _logger(level: int) -> Any:
    """Return structlog's class of loggers, with a shorter way for `info` and a switch for events below the level."""
    whole: Any = structlog.make_filtering_bound_logger(logging.DEBUG)

    class Logger(whole):  # type: ignore[misc]  # structlog makes it as it runs
        def info(self, event: str, **fields: Any) -> None:
            line: Any = {**self._context, **fields, "event": event}
            try:
                for process in self._processors:
                    line = process(self._logger, "info", line)
            except structlog.DropEvent:
                return
            self._logger.info(line)

    for name, number in _LEVELS.items():
        if number < level:
            setattr(Logger, name, _silent(getattr(Logger, name)))
    return Logger


def _silent(say: Callable[..., None]) -> Callable[..., None]:
    """Return a logger that logs only while everything is logged."""

    def maybe(logger: Any, event: str, *args: Any, **fields: Any) -> None:
        if _everything[0]:
            say(logger, event, *args, **fields)

    return maybe


def _masked(_logger: Any, _level: str, event: Any) -> Any:
    """Leave passwords out of URLs anywhere in an event."""
    for name, value in event.items():
        if isinstance(value, str) and "://" in value and "@" in value:
            event[name] = without_passwords(value)
    return event


def _json(logger: Any, level: str, event: Any) -> bytes:
    """Encode an event as structlog's own processors do, in half the time: many calls log one."""
    if "exc_info" in event:
        event = _masked(logger, level, structlog.processors.format_exc_info(logger, level, event))
    event["level"] = level
    event["timestamp"] = datetime.now(timezone.utc)
    return orjson.dumps(event, default=repr, option=orjson.OPT_UTC_Z | orjson.OPT_APPEND_NEWLINE)


def _encode(_logger: Any, _method: str, line: Any) -> bytes:
    return f"{line}\n".encode(errors="backslashreplace")


def get(name: str) -> Any:
    """Return a logger whose events carry `name`."""
    return structlog.get_logger(part=name)
