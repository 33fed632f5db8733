"""Put an error into the field of a method's result that declares it. This module never sends, logs, or judges errors.

An error takes the most specific exception that the method declares, else MetaException, else the call is answered with
TApplicationException INTERNAL_ERROR, as Java's servers do. A MetaError of a method that declares ConfigValSecurityException but not
MetaException, as get_config_value does, is sent as that exception.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from thriftpy2.thrift import TApplicationException, TException, TPayload

from metastore import errors, idl
from metastore.config import without_passwords

EXCEPTIONS: dict[type[errors.MetastoreError], type[TException]] = {
    errors.InvalidObject: idl.InvalidObjectException,
    errors.AlreadyExists: idl.AlreadyExistsException,
    errors.NoSuchObject: idl.NoSuchObjectException,
    errors.UnknownDatabase: idl.UnknownDBException,
    errors.UnknownTable: idl.UnknownTableException,
    errors.UnknownPartition: idl.UnknownPartitionException,
    errors.InvalidPartition: idl.InvalidPartitionException,
    errors.InvalidOperation: idl.InvalidOperationException,
    errors.InvalidInput: idl.InvalidInputException,
    errors.ConfigValueSecurity: idl.ConfigValSecurityException,
    errors.NoSuchTransaction: idl.NoSuchTxnException,
    errors.TransactionAborted: idl.TxnAbortedException,
    errors.NoSuchLock: idl.NoSuchLockException,
    errors.TransactionOpen: idl.TxnOpenException,
    errors.MetaError: idl.MetaException,
}
"""The exception of each class of errors; a class that is not here has its nearest base's."""


_LONGEST = 1000
"""The most characters of a reason in the log, since it may hold a client's values."""


def reason(error: Exception) -> str:
    """Return an error's text for the log, without the passwords of URLs; its class where it has no text."""
    text = getattr(error, "message", None) or str(error) or type(error).__name__
    return without_passwords(str(text))[:_LONGEST]


@cache
def declared(method: str) -> dict[type[TException], tuple[str, ...]]:
    """Return the exceptions that a method declares, each with the names of its result's fields."""
    out: dict[type[TException], tuple[str, ...]] = {}
    for spec in getattr(idl.service, f"{method}_result").thrift_spec.values():
        if spec[1] != "success":
            out[spec[2]] = (*out.get(spec[2], ()), spec[1])
    return out


def internal_error(method: str, reason: str = "") -> TApplicationException:
    """Return the client's exception for an error that its method does not declare: Java's text, with the reason if clients may see it."""
    text = f"Internal error processing {method}"
    return TApplicationException(TApplicationException.INTERNAL_ERROR, f"{text}: {reason}" if reason else text)


def unknown_method(method: str) -> TApplicationException:
    """Return the client's exception for a method without handler; the text is Java's, clients look at the type."""
    return TApplicationException(TApplicationException.UNKNOWN_METHOD, f"Invalid method name: '{method}'")


def failure(method: str, error: Exception, meta_field: str = "") -> TPayload:
    """Return the body of the reply to a failed call: the method's result struct, or a TApplicationException.

    `meta_field` is the field in which the client reads a MetaException, "" for those that declare it.
    """
    if isinstance(error, TApplicationException):
        return error
    fields = declared(method)
    for exception in _candidates(error):
        if type(exception) in fields:
            result: TPayload = getattr(idl.service, f"{method}_result")()
            names = (meta_field,) if meta_field and isinstance(exception, idl.MetaException) else fields[type(exception)]
            for name in names:
                setattr(result, name, exception)
            return result
    return internal_error(method, error.message if isinstance(error, errors.MetastoreError) else "")


def _candidates(error: Exception) -> list[Any]:
    """Return the Thrift exceptions that could carry the error, the best one first."""
    if isinstance(error, TException):
        return [error, idl.MetaException(message=str(getattr(error, "message", None) or error))]
    if isinstance(error, errors.MetastoreError):
        classes: list[Any] = [EXCEPTIONS[cls] for cls in type(error).__mro__ if cls in EXCEPTIONS]
        if isinstance(error, errors.MetaError):
            classes.append(idl.ConfigValSecurityException)
        return [cls(message=error.message) for cls in (*classes, idl.MetaException)]
    return [idl.MetaException(message=f"{type(error).__name__}: {error}")]
