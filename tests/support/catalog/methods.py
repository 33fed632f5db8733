"""Entries of methods with handlers of a test's own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from metastore.methods import METHODS, Method
from metastore.methods.forms.rules import Handler


def entries(handlers: Mapping[str, Handler]) -> dict[str, Method]:
    """Return the entries of methods, each with the handler that is given for it."""
    return {name: replace(METHODS[name], handler=handler) for name, handler in handlers.items()}
