"""Errors about wrong TLS files: they name the setting and the file."""

from __future__ import annotations

import ssl
import subprocess
import urllib.request
from pathlib import Path

import pytest

from metastore.config import ConfigError
from metastore.wire.sockets.settings import WireSettings
from metastore.wire.sockets.tls import certificates
from tests.support.logins.certificates import Authority
from tests.support.servers.servers import run_command, serving


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    authority = Authority(tmp_path)
    authority.issue("server")
    authority.issue("other")
    (tmp_path / "words.pem").write_text("no certificate")
    openssl = [
        "openssl",
        "ec",
        "-in",
        str(tmp_path / "server.pem"),
        "-aes128",
        "-passout",
        "pass:secret",
        "-out",
        str(tmp_path / "locked.pem"),
    ]
    subprocess.run(openssl, check=True, capture_output=True)
    return tmp_path


@pytest.mark.parametrize(
    ("files", "setting", "file", "reason"),
    [
        ({"tls_certificate": "missing.pem"}, "tls_certificate", "missing.pem", "No such file"),
        ({"tls_certificate": "words.pem"}, "tls_certificate", "words.pem", "NO_START_LINE|PEM_LIB|PEM lib"),
        ({"tls_certificate": "server.pem", "tls_key": "missing.pem"}, "tls_key", "missing.pem", "No such file"),
        ({"tls_certificate": "server.pem", "tls_key": "other.pem"}, "tls_key", "other.pem", "KEY_VALUES_MISMATCH"),
        ({"tls_certificate": "server.pem", "tls_key": "locked.pem"}, "tls_key", "locked.pem", "which has no password"),
        ({"tls_certificate": "server.pem", "tls_client_ca": "missing.pem"}, "tls_client_ca", "missing.pem", "No such file"),
        ({"tls_certificate": "server.pem", "tls_client_ca": "words.pem"}, "tls_client_ca", "words.pem", "name a PEM file"),
    ],
)
def test_a_file_that_does_not_fit_is_named_with_its_setting(
    folder: Path, files: dict[str, str], setting: str, file: str, reason: str
) -> None:
    given = {name: folder / value for name, value in files.items()}
    with pytest.raises(ConfigError, match=f"{setting} {folder / file} can not be used: .*({reason})"):
        certificates(WireSettings(**given))  # type: ignore[arg-type]  # its fields


def test_the_start_of_a_server_says_so(folder: Path) -> None:
    ended = run_command("serve", "--port", "0", "--set", f"tls_certificate={folder}/missing.pem", home=folder / "home")
    assert ended.returncode == 1
    assert f"metastore: tls_certificate {folder}/missing.pem can not be used: No such file or directory" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert not (folder / "home").exists()


@pytest.mark.parametrize(("age", "header"), [("0", None), ("365d", "max-age=31536000")])
def test_browsers_are_asked_to_use_tls_alone_where_that_is_set(folder: Path, age: str, header: str | None) -> None:
    context = ssl.create_default_context(cafile=str(folder / "authority.pem"))
    options = ("--set", f"tls_certificate={folder}/server.pem", "--set", "tls_required=false", "--set", f"hsts_age={age}")
    with serving("--workers", "1", *options, home=folder / "home") as server:
        place = server.uri.removeprefix("thrift://")
        for address, expected in ((f"https://{place}/version", header), (f"http://{place}/version", None)):
            with urllib.request.urlopen(address, context=context if address.startswith("https") else None, timeout=20) as answer:
                assert answer.headers["Strict-Transport-Security"] == expected
