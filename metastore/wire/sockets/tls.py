"""The server's side of TLS: its certificate, and the authorities of its clients' certificates. Files that changed are read again."""

from __future__ import annotations

import os
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from metastore import log
from metastore.config import ConfigError
from metastore.wire.sockets.settings import WireSettings

LOOK_EVERY = 5.0
"""Seconds after which the files are checked without a new connection, if there are clients with a certificate."""
Stamps = tuple[tuple[int, int, int], ...]
"""The inode, the size in bytes and the time of the last change in nanoseconds of each file."""


class Certificates:
    """Gives each new connection the context made of the files as they are now. Safe for threads."""

    def __init__(self, settings: WireSettings) -> None:
        """Raises ConfigError, which names setting and file, for files that can not be read or hold something else."""
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
        """Return the context for a new connection. Files that changed and do not fit are logged, and the old ones stay in use."""
        with self._lock:
            try:
                stamps = self._look()
                if stamps != self._stamps:
                    self._stamps = stamps
                    self._context = self._load()
                    log.get("metastore.tls").info("certificates read again", file=str(self._certificate))
            except ConfigError as error:
                log.get("metastore.tls").error("certificates not read again, the old ones stay in use", reason=str(error))
            self._looked_at = time.monotonic()
            return self._context

    def recent_context(self) -> ssl.SSLContext:
        """Return the context of `LOOK_EVERY` seconds ago or less, for frequent requests."""
        return self.context() if time.monotonic() - self._looked_at > LOOK_EVERY else self._context

    def _look(self) -> Stamps:
        return tuple(
            (found.st_ino, found.st_size, found.st_mtime_ns) for found in (_stat(setting, file) for setting, file in self._files())
        )

    def _files(self) -> list[tuple[str, Path]]:
        """Return the files with the settings that name them."""
        named = (
            ("tls_certificate", self._certificate),
            ("tls_key", self._key),
            ("tls_client_ca", self._client_ca),
            ("tls_client_crl", self._client_crl),
        )
        return [(setting, file) for setting, file in named if file is not None]

    def _load(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        key = f" with tls_key {self._key}" if self._key is not None else ""
        with _said(f"tls_certificate {self._certificate}{key}", "name PEM files with a chain and its key, which has no password"):
            context.load_cert_chain(self._certificate, self._key, password="")
        if self._client_ca is not None:
            with _said(f"tls_client_ca {self._client_ca}", "name a PEM file with certificates of authorities"):
                context.load_verify_locations(self._client_ca)
            context.verify_mode = ssl.CERT_OPTIONAL  # a client without one may log in otherwise
        if self._client_crl is not None:
            with _said(f"tls_client_crl {self._client_crl}", "name a PEM file with a list of revoked certificates"):
                context.load_verify_locations(self._client_crl)
                if not context.cert_store_stats()["crl"]:
                    raise OSError("it holds no list of revoked certificates (PEM: X509 CRL)")
            context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF
        return context


def _stat(setting: str, file: Path) -> os.stat_result:
    """Return the status of a file that can be read. ConfigError."""
    with _said(f"{setting} {file}", "the server's user has to be able to read it"), file.open("rb") as opened:
        return os.fstat(opened.fileno())


@contextmanager
def _said(what: str, remedy: str) -> Iterator[None]:
    """Raise OSError (ssl.SSLError is one) as a ConfigError that names setting and file."""
    try:
        yield
    except OSError as error:
        reason = getattr(error, "reason", None) or error.strerror or str(error)
        raise ConfigError(f"{what} can not be used: {reason}; {remedy}") from error


def certificates(settings: WireSettings) -> Certificates | None:
    """Return the certificates; None if no certificate is set. Raises ConfigError."""
    return None if settings.tls_certificate is None else Certificates(settings)
