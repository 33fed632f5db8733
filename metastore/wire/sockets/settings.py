"""The settings of the wire: its addresses, the number of processes, the limits of a message.

This module never reads a file.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class WireSettings:
    """Made by `metastore.config`; sizes are in bytes, times in seconds."""

    host: str = "127.0.0.1"
    port: int = 9083
    """The port; 0 lets the system choose, and `Supervisor` passes its choice to `ready`."""
    admin_port: int = 0
    """Another port for the pages, without Thrift; 0 opens no such port."""
    admin_host: str = "127.0.0.1"
    workers: int = 1
    max_message_size: int = 100 * 1024 * 1024
    max_container_size: int = 10_000_000
    """The most elements of one list, set or map. None can have more elements than the rest of the message has bytes."""
    idle_timeout: float = 3600.0
    """A connection that is silent for longer is closed, between messages as well as within one."""
    connection_lifetime: float = 0.0
    """A connection whose client has logged in is closed after this time, between two messages; 0 keeps it."""
    park_after: float = 5.0
    """A connection that is silent for longer gives its thread back until it sends again."""
    watchdog_timeout: float = 30.0
    """A worker process whose main thread does not run for this time (a hostile message can cause that) is replaced."""
    drain_timeout: float = 30.0
    """The time for which running calls may continue after SIGTERM."""
    drain_notice: float = 0.0
    """The time after SIGTERM in which new connections are still accepted, while `/readyz` directs clients to other servers."""
    backlog: int = 1024
    tls_certificate: Path | None = None
    tls_key: Path | None = None
    """The key may be in the certificate's file; then it is not set."""
    tls_client_ca: Path | None = None
    """The authorities whose certificates are accepted from clients; None asks for no certificate."""
    tls_client_crl: Path | None = None
    """The list of revoked certificates of clients; None checks none."""
    tls_required: bool = True
    """With a certificate: whether a connection without TLS is refused."""
    http_path: str = "/metastore"
    hsts_age: float = 0.0
    """The age in the header Strict-Transport-Security, in seconds; 0 sends no header."""
    serves_thrift: bool = True
    """False for the connections of `admin_port`, which get pages alone."""
    slow_call_threshold: float = 1.0
    """A call that takes this time or longer is kept and logged; 0 keeps none."""
    log_calls: str = "all"
    """The calls that have a line in the log: "changes" (and failures), "failures" or "all"."""
    audit_log: str | None = None
    """File of the audit log; None writes none."""
    audit_format: str = "json"
