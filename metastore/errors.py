"""The error tree of all operations; `methods/interface/errors.py` turns each into the Thrift exception that the method declares.

    MetastoreError
    |- InvalidObject          a name, column, location or value that can not be stored
    |- AlreadyExists
    |- NoSuchObject
    |  |- UnknownDatabase
    |  |- UnknownTable
    |  `- UnknownPartition
    |- InvalidPartition       values that do not fit the partition keys, in methods that declare InvalidPartitionException
    |- InvalidOperation       the object exists but the operation does not fit it
    |- InvalidInput
    |- ConfigValueSecurity    a setting that may not be read over the wire
    |- NoSuchTransaction, TransactionAborted
    |- NoSuchLock, TransactionOpen
    |- MetaError              everything else; MetaException in Java
    |  |- PermissionDenied    the caller lacks a privilege
    |  |- VersionMismatch     the database's schema is newer than this server
    |  |- RequestTooLarge     a limit was exceeded; the message names the setting
    |  `- MissingArgument     an argument without which the call has no meaning was not sent

A message names the object, the fault and the remedy.
"""

from __future__ import annotations


class MetastoreError(Exception):
    """Base of all errors that reach a client by design."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class InvalidObject(MetastoreError):
    """A name, column, location or value can not be stored."""


class AlreadyExists(MetastoreError):
    """The object exists already."""


class NoSuchObject(MetastoreError):
    """The object is not there."""


class UnknownDatabase(NoSuchObject):
    """The database is not there, in methods that declare UnknownDBException."""


class UnknownTable(NoSuchObject):
    """The table is not there, in methods that declare UnknownTableException."""


class UnknownPartition(NoSuchObject):
    """The partition is not there, in methods that declare UnknownPartitionException."""


class InvalidPartition(MetastoreError):
    """Values do not fit the partition keys, in methods that declare InvalidPartitionException."""


class InvalidOperation(MetastoreError):
    """The object exists but the operation does not fit it."""


class InvalidInput(MetastoreError):
    """An argument of a statistics or schema call is wrong."""


class ConfigValueSecurity(MetastoreError):
    """A setting may not be read over the wire."""


class NoSuchTransaction(MetastoreError):
    """No transaction has this id."""


class TransactionAborted(MetastoreError):
    """The transaction was aborted."""


class NoSuchLock(MetastoreError):
    """No lock has this id."""


class TransactionOpen(MetastoreError):
    """The lock belongs to an open transaction and ends with it."""


class MetaError(MetastoreError):
    """Any other failure that the interface declares; MetaException on the wire."""


class PermissionDenied(MetaError):
    """The caller lacks a privilege."""


class VersionMismatch(MetaError):
    """The database's schema is newer than this server."""


class RequestTooLarge(MetaError):
    """A configured limit was exceeded."""


class MissingArgument(MetaError):
    """An argument without which the call has no meaning was not sent, in a method where Hive 3's server ends the connection.

    Hive 3's own client takes the end of the connection for the answer, so its connection is ended. Other clients get an error.
    """
