"""Answer an undeclared error of a method as Java's servers do. Never calls a service itself."""

from __future__ import annotations

from typing import Any

from metastore.errors import InvalidObject, MetastoreError
from metastore.methods.forms.rules import Handler
from metastore.methods.interface.errors import internal_error
from metastore.service.call.context import Call


def undeclared(handler: Handler, kind: type[MetastoreError] = InvalidObject, *, to_hive_3: bool = False) -> Handler:
    """Return a handler whose error becomes TApplicationException INTERNAL_ERROR, with `to_hive_3` only for Hive 3's clients.

    Hive's clients do not expect a MetaException there.
    """

    def answer(call: Call, args: Any) -> Any:
        try:
            return handler(call, args)
        except kind as error:
            if to_hive_3 and not call.client.release.is_3:
                raise
            raise internal_error(call.method, error.message) from error

    return answer
