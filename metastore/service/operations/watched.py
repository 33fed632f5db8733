"""A server's notes on connected clients and slow calls. The wire takes them, pages show them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ConnectedClient:
    """An open connection on which the client has begun to send calls; times are in seconds since 1970."""

    address: str
    user: str | None
    """The user for whom its calls act, None for nobody."""
    real_user: str | None
    """The user who logged in, where it is somebody else."""
    mechanism: str
    """How it logged in, "" if it did not."""
    transport: str
    """"plain", "tls", "sasl" or "http"."""
    worker: int
    """The process id of the worker that serves it."""
    since: float
    calls: int
    last_method: str
    """The method of its last call; "" before the first."""
    last_call: float
    """The time when that call ended, 0 before the first."""
    running: str
    """The method that runs now, "" if none does."""
    running_seconds: float
    """The time for which it has been running."""


@dataclass(frozen=True, slots=True)
class SlowCall:
    """A call that took at least `slow_call_threshold`; times are in seconds, sizes in bytes."""

    began: float
    """Since 1970."""
    seconds: float
    """From the decoded request to the encoded reply."""
    method: str
    object: str
    """The object of the call, as in the log."""
    arguments: str
    user: str | None
    real_user: str | None
    address: str
    query: str
    """The id of the query that the call was made for, "" if the client did not send it."""
    outcome: str
    """"ok", or the error's class."""
    elements: int
    """The number of elements, such as partitions, in the answer."""
    received: int
    sent: int
    statements: int
    wait_seconds: float
    """Waiting for a database that can not be reached, and for another attempt. This and the following times add up to `seconds`."""
    pool_seconds: float
    """Waiting for a connection to the database."""
    lock_seconds: float
    """In statements that lock rows; on SQLite waiting for the turn to write."""
    sql_seconds: float
    """In all other round trips to the database."""
    files_seconds: float
    """In work with files and directories."""
    encoding_seconds: float
    """Encoding the reply."""
    other_seconds: float
    """The rest: the server's own work, authorizers and listeners."""
    worker: int
    """The process id of the worker that answered."""
