"""Read a setting's value from text and write it as Hive would. It does not depend on the list of settings."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

Value = str | int | float | bool | tuple[str, ...] | Mapping[str, Any] | None

_SECONDS = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
_LONG_UNITS = {
    "d": ("day", "days"),
    "h": ("hour", "hours"),
    "m": ("min", "minute", "minutes"),
    "s": ("sec", "second", "seconds"),
    "ms": ("msec", "millisecond", "milliseconds"),
    "us": ("usec", "microsecond", "microseconds"),
    "ns": ("nsec", "nanosecond", "nanoseconds"),
}
_SECONDS |= {long: _SECONDS[short] for short, names in _LONG_UNITS.items() for long in names}
_BYTES = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
_BOOLEANS = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}


class ConfigError(Exception):
    """A setting is unknown or its value does not fit; the message names the setting, its source and the remedy."""


def parse(text: object, default: Value, unit: str) -> Value:
    """Turn a value from a file, the environment or an option into the type of the setting's default.

    `unit` applies to a number without one: "s" or "min" for durations, "bytes" for sizes, "" for others. Lists are
    separated by commas, mappings are JSON. Raises ValueError, whose text names the expected form.
    """
    if isinstance(default, bool):
        return _boolean(text)
    if isinstance(default, int | float):
        return _number(text, default, unit)
    if isinstance(default, tuple):
        items = text.split(",") if isinstance(text, str) else text
        if not isinstance(items, list | tuple) or not all(isinstance(item, str) for item in items):
            raise ValueError("expected texts, separated by commas")
        return tuple(item.strip() for item in items if item.strip())
    if isinstance(default, Mapping):
        return _mapping(text)
    if not isinstance(text, str):
        raise ValueError("expected a text")
    return text.strip()


def _boolean(text: object) -> bool:
    if isinstance(text, bool):
        return text
    found = _BOOLEANS.get(str(text).strip().lower())
    if found is None:
        raise ValueError("expected true or false")
    return found


def _number(text: object, default: int | float, unit: str) -> int | float:  # noqa: PYI041 - the two are distinguished
    if isinstance(text, bool) or not isinstance(text, str | int | float):
        raise ValueError("expected a number")
    match = re.fullmatch(r"\s*(-?\d+(?:\.\d+)?)\s*([a-zA-Z]*)\s*", str(text))
    if not match:
        raise ValueError(f"expected a number{f' of {unit}' if unit else ''}")
    number, suffix = float(match[1]), match[2]
    if suffix and unit in {"s", "min"}:
        if suffix.lower() not in _SECONDS:
            raise ValueError("expected a duration such as 300, 300s, 5m or 1d")
        number *= _SECONDS[suffix.lower()] / _SECONDS["m" if unit == "min" else "s"]
    elif suffix and unit == "bytes":
        letter = re.sub(r"i?b?(ytes?)?$", "", suffix.lower())
        if letter not in _BYTES:
            raise ValueError("expected a size such as 104857600 or 100MiB")
        number *= _BYTES[letter]
    elif suffix:
        raise ValueError("expected a number without a unit")
    if isinstance(default, float):
        return number
    if number != int(number):
        raise ValueError("expected a whole number")
    return int(number)


def _mapping(text: object) -> Mapping[str, Any]:
    value: object = text
    if isinstance(text, str):
        try:
            value = json.loads(text)
        except json.JSONDecodeError as error:
            raise ValueError(f"expected a JSON object: {error}") from error
    if not isinstance(value, Mapping):
        raise ValueError("expected a mapping")
    return dict(value)


def render(value: Value, unit: str) -> str | None:
    """Write a value as Hive's configuration would give it back; None for a setting that is not set."""
    if value is None:
        return None
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:.12g}{unit}"
    if isinstance(value, tuple):
        return ",".join(value)
    if isinstance(value, Mapping):
        return json.dumps(value, sort_keys=True)
    return str(value)
