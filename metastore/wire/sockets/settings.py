"""The settings of the wire: where it listens, how many processes serve, which limits a message has.

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
    """Where the pages are served as well, without Thrift; 0 opens no such port."""
    admin_host: str = "127.0.0.1"
    workers: int = 1
    max_message_size: int = 100 * 1024 * 1024
    max_container_size: int = 10_000_000
    """Elements of one list, set or map; none can have more than bytes are left in the message."""
    idle_timeout: float = 3600.0
    """A connection that is silent for longer is closed, between messages as well as within one."""
    connection_lifetime: float = 0.0
    """A connection whose client has logged in is closed after so long, between two messages; 0 keeps it."""
    park_after: float = 5.0
    """A connection that is silent for longer gives its thread back until it speaks again."""
    watchdog_timeout: float = 30.0
    """A worker process whose main thread does not run for so long (a hostile message can do that) is replaced."""
    drain_timeout: float = 30.0
    """How long running calls may continue after SIGTERM."""
    drain_notice: float = 0.0
    """How long after SIGTERM new connections are still taken, while `/readyz` sends clients elsewhere."""
    backlog: int = 1024
    tls_certificate: Path | None = None
    tls_key: Path | None = None
    """The key may be in the certificate's file; then it is not set."""
    tls_client_ca: Path | None = None
    """Whose certificates are taken from clients; None asks for none."""
    tls_client_crl: Path | None = None
    """Which of them were revoked; None looks for none."""
    tls_required: bool = True
    """With a certificate: whether a connection without TLS is refused."""
    http_path: str = "/metastore"
    hsts_age: float = 0.0
    """Seconds."""
    serves_thrift: bool = True
    """False for the connections of `admin_port`, which get pages alone."""
    slow_call_threshold: float = 1.0
    """A call that takes so long is kept and logged; 0 keeps none."""
    log_calls: str = "all"
    """Which calls have a line in the log: "changes" (and failures), "failures" or "all"."""
    audit_log: str | None = None
    """File of the audit log; None writes none."""
    audit_format: str = "json"
