"""A handler's reply in the form for clients: the handler may return rows in place of structs."""

from __future__ import annotations

from typing import Any

from metastore.idl import service
from metastore.wire.codec.pure_encoder import as_structs


def in_structs(method: str, value: Any) -> Any:
    """Return the value of a method's `success` field in structs."""
    field = getattr(service, f"{method}_result").thrift_spec.get(0)
    return value if field is None else as_structs(field[0], field[2] if len(field) > 3 else None, value)
