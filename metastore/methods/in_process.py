"""The interface of a metastore for the process that holds it: calls go to the handlers, without a connection, a login or privileges."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from thriftpy2.thrift import TApplicationException, TException

from metastore.methods import METHODS
from metastore.methods.interface.errors import failure
from metastore.methods.interface.signatures import signature
from metastore.service.call.context import Call, Client, Metastore


class InProcessClient:
    """A client with the methods and errors of `metastore.client.Client`, for the server's own programs alone."""

    def __init__(self, metastore: Metastore, user: str) -> None:
        self._metastore = metastore
        self._client = Client("", user)

    def __enter__(self) -> InProcessClient:  # noqa: PYI034  # Self needs Python 3.11
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Do nothing: a call within the process has no connection."""

    def __getattr__(self, method: str) -> Callable[..., Any]:
        if method not in METHODS:
            raise AttributeError(f"The metastore interface has no method {method}")
        return lambda *args, **kwargs: self.call(method, *args, **kwargs)

    def call(self, method: str, *args: Any, **kwargs: Any) -> Any:
        """Call a method by its name."""
        arguments = signature(method).args()
        names = [field[1] for field in arguments.thrift_spec.values()]
        for name, value in (*zip(names, args, strict=False), *kwargs.items()):
            setattr(arguments, name, value)
        try:
            return METHODS[method].handler(Call(self._metastore, self._client, method), arguments)
        except TException:
            raise
        except Exception as error:
            raise self._declared(method, error) from error

    def _declared(self, method: str, error: Exception) -> Exception:
        """Return the exception by which a method reports an error to its client."""
        body = failure(method, error)
        if isinstance(body, TApplicationException):
            return body
        found = (getattr(body, field[1]) for field in body.thrift_spec.values() if field[1] != "success")
        declared: Exception = next(each for each in found if each is not None)
        return declared
