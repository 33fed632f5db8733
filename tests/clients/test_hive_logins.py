"""Hive 4's own client logs in: over HTTP with a token, by PLAIN over TLS against a directory, or not at all."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from joserfc.jwk import KeySet

from tests.support.engines.hive_client import hive_client
from tests.support.logins import slapd
from tests.support.logins.certificates import Authority
from tests.support.logins.issuer import AUDIENCE, Issuer
from tests.support.logins.slapd import PASSWORD, SUFFIX
from tests.support.servers.servers import COMMAND, Server, environment, serving

pytestmark = [pytest.mark.slow, pytest.mark.skipif(slapd.PROGRAM is None, reason="needs slapd (Debian's package slapd)")]
STORE_PASSWORD = "changeit"


@dataclass(frozen=True)
class Place:
    server: Server
    home: Path
    issuer: Issuer
    trust: Path
    """The authority as a trust store of Java."""

    @property
    def tls_uri(self) -> str:
        return self.server.uri.replace("127.0.0.1", "localhost")

    def http(self, folder: Path, token: str, *commands: str) -> list[str]:
        settings = {
            "hive.metastore.client.thrift.transport.mode": "http",
            "hive.metastore.client.auth.mode": "JWT",
            "hive.metastore.use.SSL": "true",
            **self._trusted(),
        }
        return hive_client(folder, self.tls_uri, settings, *commands, environment={"HMS_JWT": token})

    def plain(self, folder: Path, user: str, password: str, *commands: str, tls: bool = True) -> list[str]:
        settings = {
            "hive.metastore.client.auth.mode": "PLAIN",
            "hive.metastore.client.plain.username": user,
            "hadoop.security.credential.provider.path": f"jceks://file{folder}/{user}-{len(password)}.jceks",
            **({"hive.metastore.use.SSL": "true", **self._trusted()} if tls else {}),
        }
        return hive_client(folder, self.tls_uri, settings, *commands, properties={"plain.password": password})

    def _trusted(self) -> dict[str, str]:
        return {
            "hive.metastore.truststore.path": str(self.trust),
            "hive.metastore.truststore.password": STORE_PASSWORD,
            "hive.metastore.trustmanagerfactory.algorithm": "PKIX",  # over HTTP Hive knows no default
        }


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    home = tmp_path_factory.mktemp("hive-logins")
    authority = Authority(home)
    trust = home / "trust.jks"
    command = [
        "keytool",
        "-importcert",
        "-noprompt",
        "-alias",
        "ca",
        "-file",
        authority.file,
        "-keystore",
        trust,
        "-storepass",
        STORE_PASSWORD,
    ]
    subprocess.run(command, check=True, capture_output=True)
    issuer = Issuer()
    issuer.add_key("RSA")
    keys = home / "keys.json"
    keys.write_text(json.dumps(KeySet(issuer.keys).as_dict(private=False)))
    with slapd.directory() as directory:
        options = {
            "authentication": "jwt,ldap,users",
            "tls_certificate": authority.issue("localhost"),
            "tls_required": "false",
            "jwt_jwks_urls": f"{issuer.url}/jwks",
            "jwt_audiences": AUDIENCE,
            "ldap_url": directory.secure_url,
            "ldap_ca": directory.ca,
            "ldap_user_dn_pattern": f"uid=%s,ou=people,{SUFFIX}",
            "ldap_base_dn": SUFFIX,
            "ldap_group_filter": "analysts",
        }
        arguments = [part for name, text in options.items() for part in ("--set", f"{name}={text}")]
        with serving("--workers", "2", *arguments, home=home) as server:
            yield Place(server, home, issuer, trust)
    issuer.close()


def test_http_with_a_token(place: Place, tmp_path: Path) -> None:
    key = place.issuer.keys[0]
    lines = place.http(tmp_path, place.issuer.token(key, sub="carl"), "create:of_carl", "owner:of_carl", "databases", "drop:of_carl")
    assert lines == ["created", "carl", "default,of_carl", "dropped"]
    for token in (
        place.issuer.token(key, exp=time.time() - 3600),
        place.issuer.token(key, aud="somebody else"),
        place.issuer.token(key)[:-5],
    ):
        (line,) = place.http(tmp_path, token, "create:sneaked")
        assert line.startswith(("error: ", "refused: ")), line
        assert "401" in line
    new = place.issuer.add_key("RSA")
    time.sleep(11)  # keys are not fetched twice within ten seconds
    assert place.http(tmp_path, place.issuer.token(new, sub="dora"), "databases") == ["default"]


def test_plain_over_tls_against_a_directory(place: Place, tmp_path: Path) -> None:
    assert place.plain(tmp_path, "ann", PASSWORD, "create:of_ann", "owner:of_ann", "drop:of_ann") == ["created", "ann", "dropped"]
    for user, password in (("ann", "wrong"), ("bob", PASSWORD)):  # bob is in no group that may log in
        (line,) = place.plain(tmp_path, user, password, "create:sneaked")
        assert line.startswith("refused: ")
        assert "wrong, or there is no such user" in line
    assert place.plain(tmp_path, "ann", PASSWORD, "databases") == ["default"]


def test_a_key_of_the_server_as_password(place: Place, tmp_path: Path) -> None:
    def user(*arguments: str) -> str:
        command = [*COMMAND, "users", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True, env=environment(place.home)).stdout.strip()

    key = user("add", "job", "--key")
    assert place.plain(tmp_path, "job", key, "databases") == ["default"]
    user("revoke", "job")
    assert place.plain(tmp_path, "job", key, "databases")[0].startswith("refused: ")


def test_without_a_login_nothing_is_answered(place: Place, tmp_path: Path) -> None:
    lines = hive_client(tmp_path, place.server.uri, {}, "databases", "create:sneaked")
    assert all(line.startswith(("refused: ", "error: ")) for line in lines), lines
    assert place.plain(tmp_path, "ann", PASSWORD, "databases") == ["default"]
