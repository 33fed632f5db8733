"""The server's side of TLS: its certificate, and whose certificates it takes from clients. Files that changed are read again."""

from __future__ import annotations

import ssl
import threading
import time
from pathlib import Path

from metastore import log
from metastore.wire.settings import WireSettings

LOOK_EVERY = 5.0
"""Seconds after which the files are looked at without a new connection, if there are clients who logged in by a certificate."""
Stamps = tuple[tuple[int, int, int], ...]
"""Of each file the inode, the size in bytes and the time of its last change in nanoseconds."""


class Certificates:
    """Gives each new connection the context made of the files as they are now. Safe for threads."""

    def __init__(self, settings: WireSettings) -> None:
        """Raises OSError (ssl.SSLError is one) for files that can not be read or hold something else."""
        assert settings.tls_certificate is not None
        self._certificate = settings.tls_certificate
        self._key = settings.tls_key
        self._client_ca = settings.tls_client_ca
        self._client_crl = settings.tls_client_crl
        self._lock = threading.Lock()
        self._looked_at = time.monotonic()
        self._stamps = self._look()
        self._context = self._load()

    def context(self) -> ssl.SSLContext:
        """Return the context for a new connection. Files that changed and do not fit are logged, and the old ones serve on."""
        with self._lock:
            try:
                stamps = self._look()
                if stamps != self._stamps:
                    self._stamps = stamps
                    self._context = self._load()
                    log.get("metastore.tls").info("certificates read again", file=str(self._certificate))
            except OSError as error:
                log.get("metastore.tls").error("certificates not read again, the old ones serve on", reason=str(error))
            self._looked_at = time.monotonic()
            return self._context

    def recent_context(self) -> ssl.SSLContext:
        """Return the context of `LOOK_EVERY` seconds ago or less, for those who ask often."""
        return self.context() if time.monotonic() - self._looked_at > LOOK_EVERY else self._context

    def _look(self) -> Stamps:
        files = [file for file in (self._certificate, self._key, self._client_ca, self._client_crl) if file is not None]
        return tuple((found.st_ino, found.st_size, found.st_mtime_ns) for found in map(Path.stat, files))

    def _load(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.load_cert_chain(self._certificate, self._key)
        if self._client_ca is not None:
            context.load_verify_locations(self._client_ca)
            context.verify_mode = ssl.CERT_OPTIONAL  # who comes without one may log in otherwise
        if self._client_crl is not None:
            context.load_verify_locations(self._client_crl)
            if not context.cert_store_stats()["crl"]:
                raise OSError(f"{self._client_crl} holds no list of revoked certificates (PEM: X509 CRL)")
            context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF
        return context


def certificates(settings: WireSettings) -> Certificates | None:
    """Return the certificates; None if no certificate is set. Raises OSError."""
    return None if settings.tls_certificate is None else Certificates(settings)
