"""Write the values of pages as text: times, durations, sizes, names. No value is trusted to be HTML."""

from __future__ import annotations

import datetime
import time
from urllib.parse import urlencode

from markupsafe import Markup, escape

_UNITS = ((86400, "d"), (3600, "h"), (60, "min"), (1, "s"))


def moment(ms: float | None) -> str:
    """Write a time in milliseconds since 1970; "" for none."""
    if not ms:
        return ""
    try:
        return datetime.datetime.fromtimestamp(ms / 1000, datetime.timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (OverflowError, ValueError, OSError):  # tables and clients may have any number
        return str(ms)


def duration(seconds: float) -> str:
    """Write a duration by its largest unit: `3 min`."""
    if seconds < 1:
        return f"{max(seconds, 0) * 1000:.0f} ms"
    for size, unit in _UNITS:
        if seconds >= size:
            return f"{seconds / size:.0f} {unit}" if seconds >= 10 * size or size == 1 else f"{seconds / size:.1f} {unit}"
    return ""


def ago(ms: float | None) -> str:
    """Write how long ago a time was, in milliseconds since 1970; "" for none."""
    return duration(max(0.0, time.time() - ms / 1000)) if ms else ""


def size(number: float) -> str:
    """Write a number of bytes."""
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if abs(number) < 1024 or unit == "TiB":
            return f"{number:.0f} {unit}" if unit == "B" else f"{number:.1f} {unit}"
        number /= 1024
    return ""


def count(number: float) -> str:
    """Write a number with blanks that do not break between its thousands."""
    return f"{number:,.0f}".replace(",", "\N{NARROW NO-BREAK SPACE}")


def code(text: str) -> Markup:
    """Write text with parts between backticks, as the documentation has it: these become code."""
    parts = [f"<code>{escape(part)}</code>" if number % 2 else escape(part) for number, part in enumerate(text.split("`"))]
    return Markup("").join(Markup(part) for part in parts)  # noqa: S704  # each part is escaped


def link(path: str, **parameters: object) -> str:
    """Return a path with a query of those parameters that have a value."""
    query = urlencode({name: value for name, value in parameters.items() if value not in (None, "")})
    return f"{path}?{query}" if query else path
