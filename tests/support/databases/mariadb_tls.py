"""A MariaDB of its own that speaks TLS."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cryptography import x509

from tests.support.databases.databases import ci
from tests.support.logins.certificates import Authority
from tests.support.servers.servers import free_port


@contextmanager
def mariadb_with_tls() -> Iterator[tuple[int, Path]]:
    """Start the server, yield its port and the file of its authority, and end it. Its certificate names localhost alone."""
    script = ci()
    folder = Path(tempfile.mkdtemp())  # another user can not enter pytest's own folders
    process = None
    try:
        folder.chmod(0o755)
        authority = Authority(folder)
        certificate = authority.issue("database", x509.DNSName("localhost"))
        certificate.chmod(0o644)
        prefix, account = script.owner("mysql")
        data = folder / "server"
        data.mkdir()
        os.chown(data, account.pw_uid, account.pw_gid)
        script.initialise_mariadb(prefix, data)
        port = free_port()
        tls = [f"--ssl-cert={certificate}", f"--ssl-key={certificate}"]
        log = folder / "log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                [*prefix, *script.serve_mariadb(data, port), *tls], cwd=data, stdout=output, stderr=output, start_new_session=True
            )
        script.wait_for("an answer of MariaDB", lambda: script.answers(port, b""), log)
        yield port, authority.file
    finally:
        if process is not None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        shutil.rmtree(folder, ignore_errors=True)
