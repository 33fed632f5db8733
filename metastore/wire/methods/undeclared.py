"""Answer an invalid object in a method that does not declare it as Java's servers do. Never calls a service itself."""

from __future__ import annotations

from typing import Any

from thriftpy2.thrift import TApplicationException

from metastore.errors import InvalidObject
from metastore.service.context import Call
from metastore.wire.methods.table import Handler


def undeclared(handler: Handler) -> Handler:
    """Turn InvalidObject into TApplicationException INTERNAL_ERROR: Hive's clients do not take a MetaException there."""

    def answer(call: Call, args: Any) -> Any:
        try:
            return handler(call, args)
        except InvalidObject as error:
            text = f"Internal error processing {call.method}: {error.message}"
            raise TApplicationException(TApplicationException.INTERNAL_ERROR, text) from error

    return answer
