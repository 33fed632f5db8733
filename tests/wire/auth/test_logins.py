"""One port for logins by password, key, certificate and token: their users, and the clients that are refused before a call is read."""

from __future__ import annotations

import json
import socket
import ssl
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep

import pytest
from cryptography import x509
from thriftpy2.thrift import TApplicationException

from metastore.client import connect
from metastore.client_login import Bearer, LoginError, Plain, Token
from metastore.idl import Database, MetaException
from metastore.wire.auth.negotiation import BAD, COMPLETE
from metastore.wire.messages.protocol import Unreadable
from tests.support.logins.certificates import Authority
from tests.support.logins.issuer import AUDIENCE, Issuer
from tests.support.servers.servers import Server, run_command, serving
from tests.wire.auth.speaking import Speaker, logged_in, post, request, value

PASSWORD = "correct horse"


@dataclass(frozen=True)
class Place:
    """A server that accepts logins by password or key, certificate and token."""

    server: Server
    home: Path
    authority: Authority
    issuer: Issuer
    trust: ssl.SSLContext
    keys: dict[str, str]

    def user(self, *arguments: str, text: str = "") -> str:
        done = run_command("users", *arguments, home=self.home, text=text)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def tls(self, name: str = "", *alternatives: x509.GeneralName) -> ssl.SSLContext:
        """Return a TLS context with the certificate of a name, or without a certificate."""
        context = ssl.create_default_context(cafile=str(self.authority.file))
        if name:
            context.load_cert_chain(self.authority.issue(name, *alternatives))
        return context


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    home = tmp_path_factory.mktemp("logins")
    authority = Authority(home)
    issuer = Issuer()
    issuer.add_key()
    options = {
        "authentication": "users,certificate,jwt",
        "tls_certificate": authority.issue("server"),
        "tls_client_ca": authority.file,
        "tls_required": "false",
        "jwt_jwks_urls": f"{issuer.url}/jwks",
        "jwt_issuers": issuer.url,
        "jwt_audiences": AUDIENCE,
        "proxy_users": '{"engine": {"hosts": "127.0.0.0/8", "users": "ann,bob"}, "far": {"hosts": "10.0.0.1", "users": "*"}}',
    }
    with serving("--workers", "2", *(each for name, text in options.items() for each in ("--set", f"{name}={text}")), home=home) as server:
        place = Place(server, home, authority, issuer, ssl.create_default_context(cafile=str(authority.file)), {})
        for name in ("ann", "engine", "far"):
            place.user("add", name, "--groups", "staff,analysts", text=PASSWORD)
        yield place
    issuer.close()


def refused(place: Place, speaker: Speaker, message: str) -> None:
    with speaker:
        status, text = speaker.plain("ann", PASSWORD)
        assert status == BAD
        assert message in text.decode()
        assert speaker.ended()


def test_a_plain_call_is_refused_with_the_ways_to_log_in_and_changes_nothing(place: Place) -> None:
    for options in ({}, {"framed": True}, {"protocol": "compact"}):
        with (
            connect(place.server.uri, timeout=20, **options) as client,
            pytest.raises(TApplicationException, match="asks for a login") as error,
        ):  # type: ignore[arg-type]
            client.create_database(Database(name="sneaked"))
        assert "users, certificate, jwt" in error.value.message
    with logged_in(place.server.uri, "ann", PASSWORD) as ann:
        assert ann.call("get_all_databases") == ["default"]


def test_a_long_message_of_a_stranger_is_not_read(place: Place) -> None:
    with Speaker(place.server.uri) as stranger:
        stranger.sock.sendall(request("get_table", dbname="d", tbl_name="t" * 1_000_000))
        assert stranger.ended()


def test_a_password_lets_in_over_tls_and_on_this_machine(place: Place) -> None:
    for tls in (None, place.trust):
        with logged_in(place.server.uri, "ann", PASSWORD, tls) as ann:
            assert ann.call("get_all_databases") == ["default"]
            assert ann.call("set_ugi", user_name="ann", group_names=["root"]) == ["staff", "analysts", "ann"]
            created = Database(name=f"made{'' if tls is None else '_tls'}")
            ann.call("create_database", database=created)
            assert ann.call("get_database", name=created.name).ownerName == "ann"
            ann.call("drop_database", name=created.name, deleteData=True, cascade=False)


@pytest.mark.parametrize(("user", "password"), [("ann", "wrong"), ("nobody", PASSWORD), ("ann", ""), ("", PASSWORD), ("ANN", PASSWORD)])
def test_a_wrong_password_reveals_nothing_and_ends_the_connection(place: Place, user: str, password: str) -> None:
    with Speaker(place.server.uri) as speaker:
        status, text = speaker.plain(user, password)
        assert status == BAD
        assert "wrong, or there is no such user" in text.decode() or "needs a name and a password" in text.decode()
        assert speaker.ended()


def test_a_mechanism_that_is_not_offered_and_a_call_before_the_end_of_a_login(place: Place) -> None:
    for name in ("GSSAPI", "DIGEST-MD5", "ANONYMOUS", "plain"):
        with Speaker(place.server.uri) as speaker:
            assert speaker.log_in(name, b"")[0] == BAD
            assert speaker.ended()
    with Speaker(place.server.uri) as speaker:
        assert speaker.log_in("PLAIN", b"") == (2, b"")
        speaker.sock.sendall(request("create_database", database=Database(name="early")))
        assert speaker.ended()
    with logged_in(place.server.uri, "ann", PASSWORD) as ann:
        assert ann.call("get_all_databases") == ["default"]


def test_set_ugi_of_somebody_else_is_refused_but_for_proxy_users(place: Place) -> None:
    with logged_in(place.server.uri, "ann", PASSWORD) as ann:
        error = ann.call("set_ugi", user_name="bob", group_names=[])
        assert isinstance(error, MetaException)
        assert "logged in as ann by users" in error.message
        assert ann.call("get_all_databases") == ["default"]
    with logged_in(place.server.uri, "engine", PASSWORD) as engine:
        assert engine.call("set_ugi", user_name="bob", group_names=["root"]) == ["bob"]
        engine.call("create_database", database=Database(name="of_bob"))
        assert engine.call("get_database", name="of_bob").ownerName == "bob"
        assert engine.call("set_ugi", user_name="engine", group_names=[])[-1] == "engine"
        engine.call("drop_database", name="of_bob", deleteData=True, cascade=False)
        assert isinstance(engine.call("set_ugi", user_name="carl", group_names=[]), MetaException)
    with logged_in(place.server.uri, "far", PASSWORD) as far:
        assert isinstance(far.call("set_ugi", user_name="ann", group_names=[]), MetaException)
    (line,) = place.server.logged(method="create_database", object="of_bob")
    assert (line["user"], line["real_user"], line["mechanism"]) == ("bob", "engine", "users")


def test_plain_names_the_user_that_a_proxy_user_acts_for(place: Place) -> None:
    with Speaker(place.server.uri) as speaker:
        assert speaker.plain("engine", PASSWORD, acting_for="ann")[0] == COMPLETE
        assert speaker.call("set_ugi", user_name="ann", group_names=[])[-1] == "ann"
    with Speaker(place.server.uri) as speaker:
        status, text = speaker.plain("ann", PASSWORD, acting_for="bob")
        assert status == BAD
        assert "may not act for bob" in text.decode()


def test_a_key_is_revoked_while_it_is_used(place: Place) -> None:
    key = place.user("add", "job", "--key", "--comment", "nightly load")
    kept = place.user("add", "job", "--key")
    listed = [each for each in json.loads(place.user("list", "--json")) if each["user"] == "job"]
    assert [(each["kind"], each["comment"], each["hash"]) for each in listed] == [("key", "nightly load", None), ("key", None, None)]
    with logged_in(place.server.uri, "job", key) as used, logged_in(place.server.uri, "job", kept) as other:
        assert used.call("get_all_databases") == ["default"]
        assert place.user("revoke", "job", "--id", str(listed[0]["key"])) == "revoked 1"
        until = monotonic() + 30
        answer = used.call("get_all_databases")
        while not isinstance(answer, TApplicationException):
            assert monotonic() < until, "the key still works"
            sleep(0.2)
            answer = used.call("get_all_databases")
        assert "revoked or has expired" in answer.message
        assert used.ended()
        assert other.call("get_all_databases") == ["default"]
    with Speaker(place.server.uri) as speaker:
        assert speaker.plain("job", key)[0] == BAD
    assert place.user("revoke", "job") == "revoked 1"


def test_an_expired_password_lets_nobody_in(place: Place) -> None:
    place.user("add", "brief", "--days", "0.00001", text=PASSWORD)
    sleep(1.2)
    with Speaker(place.server.uri) as speaker:
        assert speaker.plain("brief", PASSWORD)[0] == BAD


def test_a_certificate_lets_in_and_a_stranger_does_not(place: Place, tmp_path: Path) -> None:
    with connect(place.server.uri, timeout=20, tls=place.tls("trino")) as client:
        assert client.set_ugi("trino", []) == ["trino"]
        with pytest.raises(MetaException, match="logged in as trino by certificate"):
            client.set_ugi("ann", [])
    with connect(place.server.uri, timeout=20, tls=place.tls("engine")) as client:
        assert client.set_ugi("ann", [])[-1] == "ann"
    with connect(place.server.uri, timeout=20, tls=place.tls()) as client, pytest.raises(TApplicationException, match="asks for a login"):
        client.get_all_databases()
    stranger = place.tls()
    stranger.load_cert_chain(Authority(tmp_path, "stranger").issue("ann"))
    with connect(place.server.uri, timeout=20, tls=stranger) as client, pytest.raises((OSError, Unreadable)):
        client.get_all_databases()
    old = place.tls("trino")
    old.set_ciphers("ALL:@SECLEVEL=0")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        old.minimum_version = old.maximum_version = ssl.TLSVersion.TLSv1_1
    with connect(place.server.uri, timeout=20, tls=old) as client, pytest.raises(ConnectionError, match=r"(?i)protocol|alert"):
        client.get_all_databases()


def test_http_asks_each_request_who_it_is(place: Place) -> None:
    body = request("set_ugi", user_name=None, group_names=[])

    def who(**headers: str) -> object:
        status, answer = post(place.server.uri, body, {name.replace("_", "-"): text for name, text in headers.items()}, tls=place.trust)
        return value("set_ugi", answer)[-1] if status == 200 else (status, answer.decode())

    token = place.issuer.token(place.issuer.keys[0], sub="carl")
    assert who(Authorization=f"Bearer {token}") == "carl"
    basic = "Basic YW5uOmNvcnJlY3QgaG9yc2U="
    assert who(Authorization=basic) == "ann"
    assert who(Authorization=basic, x_actor_username="ann") == "ann"
    for headers, message in (
        ({}, "asks for a login"),
        ({"x_actor_username": "ann"}, "asks for a login"),
        ({"Authorization": basic, "x_actor_username": "bob"}, "may not act for bob"),
        ({"Authorization": f"Bearer {token[:-4]}"}, "not signed"),
        ({"Authorization": f"Bearer {place.issuer.token(place.issuer.keys[0], aud='x')}"}, "meant for x"),
        ({"Authorization": "Basic !!"}, "not base64"),
        ({"Authorization": "Basic YW5uOnh4"}, "wrong, or there is no such user"),
        ({"Authorization": "Negotiate abc"}, "asks for a login"),
    ):
        status, text = who(**headers)  # type: ignore[misc,arg-type]
        assert status == 401  # type: ignore[has-type]
        assert message in text  # type: ignore[has-type]
    assert post(place.server.uri, body, tls=place.tls("trino"))[0] == 200


def test_our_own_client_logs_in_over_http(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    uri = place.server.uri.replace("thrift://", "https://")
    token = place.issuer.token(place.issuer.keys[0], sub="carl")
    for login, user in ((Bearer(token), "carl"), (Plain("ann", PASSWORD), "ann")):
        with connect(uri, timeout=20, tls=place.trust, login=login) as client:
            assert client.set_ugi(user, [])[-1] == user
            with pytest.raises(MetaException):
                client.set_ugi("somebody", [])
    with connect(uri, timeout=20, tls=place.trust, login=Bearer(token[:-4])) as client, pytest.raises(LoginError, match=r"401.*not signed"):
        client.get_all_databases()
    with connect(uri, timeout=20, tls=place.tls("trino")) as client:
        assert client.get_all_databases() == ["default"]
    with connect(f"{uri}/nowhere", timeout=20, tls=place.trust) as client, pytest.raises(ConnectionError, match="404"):
        client.get_all_databases()
    with connect(f"{place.server.uri.replace('thrift', 'http')}/metastore", timeout=20, login=Plain("ann", PASSWORD)) as client:
        assert client.get_all_databases() == ["default"]
    monkeypatch.setenv("METASTORE_CLIENT_LOGIN", "jwt")
    monkeypatch.setenv("HMS_JWT", token)
    with connect(uri, timeout=20, tls=place.trust) as client:
        assert client.get_all_databases() == ["default"]
    with pytest.raises(LoginError, match="needs HTTP"):
        connect(place.server.uri)
    with pytest.raises(LoginError, match="not a login over HTTP"):
        connect(uri, login=Token("x"))
    with connect("http://metastore.example.org", login=Plain("ann", PASSWORD)) as client, pytest.raises(LoginError, match="write https"):
        client.get_all_databases()
    with pytest.raises(ValueError, match="not a metastore URI"):
        connect("ftp://host")


def test_certificates_are_read_again_when_they_change(tmp_path: Path) -> None:
    first = Authority(tmp_path, "first")
    file = first.issue("server")
    with serving("--workers", "1", "--set", f"tls_certificate={file}", home=tmp_path) as server:

        def trusted(authority: Authority) -> bool:
            try:
                with connect(server.uri, timeout=20, tls=ssl.create_default_context(cafile=str(authority.file))) as client:
                    return bool(client.get_all_databases() == ["default"])
            except ConnectionError as error:
                return "CERTIFICATE_VERIFY_FAILED" not in str(error)

        assert trusted(first)
        second = Authority(tmp_path, "second")
        second.issue("server", file=file)
        assert trusted(second)
        assert not trusted(first)
        good = file.read_bytes()
        file.write_bytes(good[: len(good) // 2])
        assert trusted(second), "a broken file does not end the service"
        first.issue("server", file=file)
        assert trusted(first)
        with connect(server.uri, timeout=20) as plain, pytest.raises((OSError, Unreadable)):
            plain.get_all_databases()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--host", "0.0.0.0"), "no setting decides who may log in"),
        (("--set", "authentication=certificate"), "needs tls_certificate and tls_client_ca"),
        (("--set", "authentication=jwt"), "needs jwt_jwks_urls or jwt_issuers"),
        (("--set", "authentication=ldap"), "needs ldap_url"),
        (("--set", "authentication=password"), "none of kerberos"),
        (("--set", 'proxy_users={"a": "*"}'), "needs a table with hosts, users and groups"),
        (("--set", 'proxy_users={"a": {"hosts": 1}}'), "neither a text nor a list"),
    ],
)
def test_a_server_that_would_let_in_the_wrong_people_does_not_start(options: tuple[str, ...], message: str, tmp_path: Path) -> None:
    done = run_command("serve", "--port", "0", *options, home=tmp_path)
    assert done.returncode in (1, 2)
    assert message in done.stderr
    assert "ready" not in done.stdout


def test_everybody_is_let_in_on_every_address_when_that_is_asked_for(tmp_path: Path) -> None:
    with serving("--host", "0.0.0.0", "--set", "authentication=anonymous", home=tmp_path) as server:
        port = server.uri.rpartition(":")[2]
        with connect(f"thrift://127.0.0.1:{port}", timeout=20) as client:
            assert client.set_ugi("ann", ["staff"]) == ["staff"]


def test_half_a_login_holds_no_drain_up(place: Place) -> None:
    assert sys.platform == "linux"
    with socket.create_connection(("127.0.0.1", int(place.server.uri.rpartition(":")[2])), 20) as half:
        half.sendall(b"\x01\0\0\0")
        with logged_in(place.server.uri, "ann", PASSWORD) as ann:
            assert ann.call("get_all_databases") == ["default"]
