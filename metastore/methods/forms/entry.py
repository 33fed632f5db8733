"""Join the method tables of the nouns into one. This module never runs a method."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import ModuleType
from typing import Any

from metastore import idl
from metastore.service.call.context import Call

Handler = Callable[[Call, Any], Any]
"""From the call and its decoded argument struct to the value of `success` (None for a void method)."""

ALL: frozenset[str] = frozenset(idl.service.thrift_services)
"""Every method of the interface, those of fb303 included."""


def merge(modules: Iterable[ModuleType]) -> dict[str, Handler]:
    """Return the union of the modules' `METHODS`. Raises ValueError for a name that is unknown or there twice."""
    methods: dict[str, Handler] = {}
    for module in modules:
        for name, handler in module.METHODS.items():
            if name not in ALL:
                raise ValueError(f"{module.__name__}: the interface has no method {name}; correct the name")
            if name in methods:
                raise ValueError(f"{module.__name__}: method {name} is in another module too; keep one")
            methods[name] = handler
    return methods


def document(methods: Iterable[str], answers: Mapping[str, str]) -> str:
    """Return the text of docs/methods.md for the methods that have a handler; `answers` says what those of dead features answer."""
    works = set(methods)
    lines = [
        "# Methods",
        "",
        "Every method of the interface and whether this server answers it. One that does not work yet answers",
        "TApplicationException UNKNOWN_METHOD, as a server without it does, and the connection lives on.",
        "Generated: `python -m metastore.methods methods > docs/methods.md`.",
        "",
        f"{len(works)} of {len(ALL)} work.",
        "",
        "| method | state |",
        "|---|---|",
    ]
    for name in sorted(ALL, key=str.lower):
        state = "works" if name in works else "not yet"
        lines.append(f"| `{name}` | {f'a dead feature: {answers[name]}' if name in answers else state} |")
    return "\n".join(lines) + "\n"
