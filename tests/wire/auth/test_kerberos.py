"""Logins by Kerberos between our client's side and our server's side, with tickets of a real KDC."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from metastore.config import ConfigError
from metastore.service.call.identity import Login
from metastore.wire.auth.sasl import ClientRefused, Layer, LoginDone
from tests.support.logins.kdc import REALM, SERVICE, Kdc, realm

pytest.importorskip("gssapi", reason="built with libkrb5-dev: pip install '.[kerberos]'")

from metastore.client_login import LoginError
from metastore.client_login.kerberos import Kerberos
from metastore.wire.auth.gss import gssapi
from metastore.wire.auth.kerberos import Acceptor
from metastore.wire.auth.kerberos import KerberosLogin as Server

ALICE = f"alice@{REALM}"
ALL = ("authentication", "integrity", "privacy")


def bob_alone(login: Login, user: str) -> Login:
    """Let everybody act for bob."""
    if user == "bob":
        return Login("bob", login.mechanism, real_user=login.user)
    if user != login.user:
        raise ClientRefused(f"{login.user} may not act for {user}")
    return login


def begin(acceptor: Acceptor) -> Server:
    return Server(acceptor, bob_alone)


@pytest.fixture
def acceptor(kdc: Kdc) -> Acceptor:
    return Acceptor(SERVICE, kdc.keytab(SERVICE), ALL, "DEFAULT")


def client(kdc: Kdc, **settings: Any) -> Kerberos:
    return Kerberos(**{"cache": kdc.tickets(ALICE), "principal": f"hive/_HOST@{REALM}", **settings})


def log_in(login: Kerberos, acceptor: Acceptor, host: str = "localhost") -> tuple[LoginDone, Layer | None]:
    """Exchange messages until the server completes the login; return the server's result and the client's layer."""
    ours, theirs = login.begin(host), begin(acceptor)
    challenge = b""
    while True:
        found = theirs.step(ours.step(challenge))
        if isinstance(found, LoginDone):
            assert ours.complete
            return found, ours.layer
        challenge = found


def refusal(token: bytes, acceptor: Acceptor) -> str:
    with pytest.raises(ClientRefused) as refused:
        begin(acceptor).step(token)
    return str(refused.value)


def test_the_user_is_the_short_name_of_the_principal(kdc: Kdc, acceptor: Acceptor) -> None:
    assert log_in(client(kdc), acceptor)[0].login == Login("alice", "kerberos")
    named = Acceptor(SERVICE, kdc.keytab(SERVICE), ALL, "RULE:[1:$1]s/^a/A/")
    assert log_in(client(kdc), named)[0].login == Login("Alice", "kerberos")


def test_clients_log_in_from_their_keytabs(kdc: Kdc, acceptor: Acceptor) -> None:
    for user in ("alice", "carol", "alice"):
        login = Kerberos(user=f"{user}@{REALM}", keytab=str(kdc.keytab(f"{user}@{REALM}")), principal=f"hive/_HOST@{REALM}")
        assert log_in(login, acceptor)[0].login == Login(user, "kerberos")
    login = Kerberos(keytab=str(kdc.keytab(f"dora@{REALM}")), principal=f"hive/_HOST@{REALM}")
    assert log_in(login, acceptor)[0].login == Login("dora", "kerberos")
    with pytest.raises(LoginError, match="There is no Kerberos ticket to log in with"):
        Kerberos(user=f"nobody@{REALM}", keytab=str(kdc.keytab(ALICE))).begin("localhost")


def test_the_first_answer_may_be_empty(kdc: Kdc, acceptor: Acceptor) -> None:
    server = begin(acceptor)
    assert server.step(b"") == b""
    assert server.step(client(kdc).begin("localhost").step(b""))


@pytest.mark.parametrize("offered", [("integrity",), ("privacy",), ALL])
@pytest.mark.parametrize("wanted", ["integrity", "privacy"])
def test_frames_are_protected_as_agreed(kdc: Kdc, offered: tuple[str, ...], wanted: str) -> None:
    acceptor = Acceptor(SERVICE, kdc.keytab(SERVICE), offered, "DEFAULT")
    if wanted not in offered:
        with pytest.raises(LoginError, match=f"The server offers no protection of {wanted}"):
            log_in(client(kdc, qualities=(wanted,)), acceptor)
        return
    done, ours = log_in(client(kdc, qualities=(wanted,)), acceptor)
    theirs = done.layer
    assert ours is not None
    assert theirs is not None
    text = b"all the world may see this, or not"
    for sender, receiver in ((ours, theirs), (theirs, ours)):
        frame = sender.wrap(text)
        assert (text in frame) == (wanted == "integrity")
        again = bytes(bytearray(frame))  # the library reverses the bytes that it reads in place
        assert receiver.unwrap(frame) == text
        with pytest.raises(ClientRefused, match=r"came twice: .*(duplicate|already)"):
            receiver.unwrap(again)
        changed = bytearray(sender.wrap(text))
        changed[-1] ^= 1
        with pytest.raises(ClientRefused, match="changed on its way or came twice"):
            receiver.unwrap(bytes(changed))


def test_authentication_alone_protects_nothing(kdc: Kdc, acceptor: Acceptor) -> None:
    done, ours = log_in(client(kdc), acceptor)
    assert (done.layer, ours) == (None, None)


def test_a_frame_without_encryption_is_refused_where_it_was_agreed_on(kdc: Kdc, acceptor: Acceptor) -> None:
    login = client(kdc, qualities=("privacy",)).begin("localhost")
    server = begin(acceptor)
    challenge: bytes | LoginDone = b""
    while isinstance(challenge, bytes):
        challenge = server.step(login.step(challenge))
    assert challenge.layer is not None
    with pytest.raises(ClientRefused, match="without encryption"):
        challenge.layer.unwrap(login._context.wrap(b"open", encrypt=False).message)


def chosen(kdc: Kdc, acceptor: Acceptor, answer: bytes) -> LoginDone:
    """Log in with a client that answers the offer of layers by these bytes."""
    login, server = client(kdc).begin("localhost"), begin(acceptor)
    challenge = server.step(login.step(b""))
    assert isinstance(challenge, bytes)
    login.step(challenge)
    server.step(b"")
    done = server.step(login._context.wrap(answer, encrypt=False).message)
    assert isinstance(done, LoginDone)
    return done


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (b"", "has 0 bytes"),
        (b"\x01\0\0", "has 3 bytes"),
        (b"\x00\0\0\0", "security layer 0"),
        (b"\x03\0\0\0", "security layer 3"),
        (b"\x08\0\0\0", "security layer 8"),
        (b"\x04\0\0\0", "security layer 4"),
        (b"\x02\0\0\x10", "frames of 16 bytes only"),
        (b"\x01\0\0\0\xff", "utf-8"),
        (b"\x01\0\0\0a/b/c@X", "not a Kerberos name"),
        (b"\x01\0\0\0bob@OTHER", "No rule of kerberos_name_rules"),
    ],
)
def test_a_choice_that_does_not_fit_is_refused(kdc: Kdc, answer: bytes, reason: str) -> None:
    acceptor = Acceptor(SERVICE, kdc.keytab(SERVICE), ("authentication", "integrity"), "DEFAULT")
    with pytest.raises(ClientRefused, match=reason):
        chosen(kdc, acceptor, answer)


def test_the_clients_buffer_is_never_exceeded(kdc: Kdc, acceptor: Acceptor) -> None:
    layer = chosen(kdc, acceptor, b"\x04\x00\x10\x00").layer
    assert layer is not None
    assert layer.max_size < 4096
    assert len(layer.wrap(b"x" * layer.max_size)) <= 4096


@pytest.mark.parametrize("asked", ["alice", ALICE])
def test_a_client_may_name_itself(kdc: Kdc, acceptor: Acceptor, asked: str) -> None:
    assert log_in(client(kdc, act_for=asked), acceptor)[0].login == Login("alice", "kerberos")


def test_only_a_proxy_user_acts_for_another(kdc: Kdc, acceptor: Acceptor) -> None:
    assert log_in(client(kdc, act_for=f"bob@{REALM}"), acceptor)[0].login == Login("bob", "kerberos", real_user="alice")
    with pytest.raises(ClientRefused, match="alice may not act for eve"):
        log_in(client(kdc, act_for="eve"), acceptor)


def test_a_login_that_is_sent_again_is_refused(kdc: Kdc, acceptor: Acceptor) -> None:
    token = client(kdc).begin("localhost").step(b"")
    begin(acceptor).step(token)
    assert "Request is a replay; the same login was sent before" in refusal(token, acceptor)


def test_a_ticket_for_another_host_is_refused(kdc: Kdc, acceptor: Acceptor) -> None:
    kdc.keytab(f"hive/other.example@{REALM}")
    said = refusal(client(kdc).begin("other.example").step(b""), acceptor)
    assert f"Cannot decrypt ticket for hive/other.example@{REALM}" in said
    assert "the client asked for another server" in said


def test_a_user_of_another_realm_needs_a_rule(kdc: Kdc, acceptor: Acceptor, monkeypatch: pytest.MonkeyPatch) -> None:
    with realm("OTHER.EXAMPLE") as other:
        carol = "carol@OTHER.EXAMPLE"
        tickets = other.tickets(carol)
        monkeypatch.setenv("KRB5_CONFIG", str(kdc.trust(other, f"krbtgt/{REALM}@OTHER.EXAMPLE", "shared")))
        login = client(kdc, cache=tickets)
        with pytest.raises(
            ClientRefused, match=f"No rule of kerberos_name_rules names the user of {carol}; DEFAULT does for the realm {REALM} alone"
        ):
            log_in(login, acceptor)
        rules = r"RULE:[1:$1@$0](.*@OTHER\.EXAMPLE)s/@.*/_other/ DEFAULT"
        named = Acceptor(SERVICE, kdc.keytab(SERVICE), ALL, rules)
        assert log_in(login, named)[0].login == Login("carol_other", "kerberos")
        assert log_in(client(kdc), named)[0].login == Login("alice", "kerberos")


def wait_until(moment: float) -> None:
    while time.time() < moment:
        time.sleep(0.05)


def test_an_expired_ticket_is_refused_on_both_sides(kdc: Kdc, acceptor: Acceptor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KRB5_CONFIG", str(kdc.configured("strict", clockskew="1")))
    short = client(kdc, cache=kdc.tickets(ALICE, lifetime="1s", name="-short"))
    token = short.begin("localhost").step(b"")
    wait_until(time.time() + 3)
    assert "Ticket expired; the client's ticket has expired" in refusal(token, acceptor)
    with pytest.raises(LoginError, match="expired"):
        short.begin("localhost").step(b"")


def test_clocks_that_differ_are_an_error(kdc: Kdc, acceptor: Acceptor, monkeypatch: pytest.MonkeyPatch) -> None:
    token = client(kdc).begin("localhost").step(b"")
    monkeypatch.setenv("KRB5_CONFIG", str(kdc.configured("strict", clockskew="1")))
    wait_until(time.time() + 3)
    assert "Clock skew too great; the clocks of client and server differ" in refusal(token, acceptor)


def test_a_client_without_ticket_gets_an_error_with_the_command(kdc: Kdc) -> None:
    with pytest.raises(LoginError, match=r"There is no Kerberos ticket to log in with .*run kinit"):
        client(kdc, cache=f"FILE:{kdc.folder}/none").begin("localhost")


def test_a_server_that_the_realm_does_not_know_is_named(kdc: Kdc) -> None:
    with pytest.raises(LoginError, match=rf"Kerberos can not log in to hive/unknown\.example@{REALM}: .*not found"):
        client(kdc).begin("unknown.example").step(b"")


def test_a_changed_keytab_serves_the_next_login(kdc: Kdc, tmp_path: Path) -> None:
    service = f"hive/renewed@{REALM}"
    keytab = Path(shutil.copy(kdc.keytab(service), tmp_path / "server.keytab"))
    acceptor = Acceptor(service, keytab, ALL, "DEFAULT")
    changed = kdc.keytab(service, name="renewed-2", new_key=True)
    login = client(kdc)
    token = login.begin("renewed").step(b"")
    assert "the keytab lacks the key that the ticket was made with" in refusal(token, acceptor)
    shutil.copy(changed, keytab)
    assert log_in(login, acceptor, "renewed")[0].login.user == "alice"
    keytab.unlink()
    assert f"{keytab} can not be used: the file does not exist" in refusal(login.begin("renewed").step(b""), acceptor)


@pytest.mark.parametrize("token", [b"x", b"\x60\x01", os.urandom(1000)])
def test_a_text_that_is_not_a_token_is_refused(acceptor: Acceptor, token: bytes) -> None:
    assert refusal(token, acceptor).startswith(f"Kerberos refuses the login to {SERVICE}: ")


def test_a_login_that_failed_does_not_go_on(kdc: Kdc, acceptor: Acceptor) -> None:
    server = begin(acceptor)
    with pytest.raises(ClientRefused):
        server.step(b"x")
    with pytest.raises(ClientRefused, match="has ended"):
        server.step(client(kdc).begin("localhost").step(b""))


def starts(**settings: Any) -> Callable[[], Acceptor]:
    given = {"principal": SERVICE, "protection": ALL, "rules": "DEFAULT", **settings}
    return lambda: Acceptor(**given)


def test_settings_that_do_not_serve_end_the_start(kdc: Kdc, tmp_path: Path) -> None:
    keytab = kdc.keytab(SERVICE)
    other = kdc.keytab(f"hive/other.example@{REALM}")
    for start, reason in (
        (starts(keytab=tmp_path / "none"), "kerberos_keytab: .* the file does not exist"),
        (starts(keytab=other), f"kerberos_keytab: .* it has no key of {SERVICE}; `klist -kt` shows whose"),
        (starts(keytab=keytab, principal="hive"), "kerberos_principal must be service/host@REALM"),
        (starts(keytab=keytab, principal="hive/localhost"), "kerberos_principal must be service/host@REALM"),
        (starts(keytab=keytab, principal="a/b/c@R"), "kerberos_principal: 'a/b/c@R' is not a Kerberos name"),
        (starts(keytab=keytab, rules="nonsense"), "^kerberos_name_rules: 'nonsense' is not a rule"),
    ):
        with pytest.raises(ConfigError, match=reason):
            start()


def test_an_unreadable_keytab_is_an_error(kdc: Kdc) -> None:
    keytab = Path(shutil.copy(kdc.keytab(SERVICE), kdc.folder / "closed"))
    keytab.chmod(0)
    kdc.folder.chmod(0o755)
    user = os.geteuid()
    if user == 0:  # root reads everything
        os.seteuid(65534)
    try:
        with pytest.raises(ConfigError, match=r"kerberos_keytab: .* the file can not be read by the user who runs the server"):
            Acceptor(SERVICE, keytab, ALL, "DEFAULT")
    finally:
        os.seteuid(user)


def test_the_host_of_the_principal_is_this_one(kdc: Kdc, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("socket.getfqdn", lambda: "LocalHost")
    assert Acceptor(f"hive/_HOST@{REALM}", kdc.keytab(SERVICE), ALL, "DEFAULT").principal == SERVICE


def test_only_kerberos_is_negotiated(kdc: Kdc, acceptor: Acceptor) -> None:
    spnego = gssapi.OID.from_int_seq("1.3.6.1.5.5.2")
    context = gssapi.SecurityContext(
        name=gssapi.Name(SERVICE, gssapi.NameType.kerberos_principal),
        creds=gssapi.Credentials(usage="initiate", store={"ccache": kdc.tickets(ALICE)}),
        usage="initiate",
        mech=spnego,
    )
    assert "refuses the login" in refusal(context.step() or b"", acceptor)


@pytest.mark.parametrize(
    ("offer", "reason"),
    [
        (b"\x01\0\0", "offers its security layers in 3 bytes"),
        (b"\x01\0\0\0\0", "offers its security layers in 5 bytes"),
        (b"\x00\0\0\0", "offers no protection of authentication, integrity, privacy"),
        (b"\x04\0\0\x10", "takes protected frames of 16 bytes only"),
    ],
)
def test_a_client_refuses_an_offer_that_does_not_fit(kdc: Kdc, acceptor: Acceptor, offer: bytes, reason: str) -> None:
    ours, theirs = client(kdc).begin("localhost"), begin(acceptor)
    challenge = theirs.step(ours.step(b""))
    assert isinstance(challenge, bytes)
    ours.step(challenge)
    with pytest.raises(LoginError, match=reason):
        ours.step(theirs._context.wrap(offer, encrypt=False).message)
    assert not ours.complete


@pytest.mark.parametrize("challenge", [b"", b"x", b"\x60\x01"])
def test_a_client_believes_no_server_that_proves_nothing(kdc: Kdc, acceptor: Acceptor, challenge: bytes) -> None:
    ours = client(kdc).begin("localhost")
    ours.step(b"")
    with pytest.raises(LoginError, match=f"Kerberos can not log in to {SERVICE}"):
        ours.step(challenge)
    assert not ours.complete


def test_a_client_refuses_an_offer_that_was_changed(kdc: Kdc, acceptor: Acceptor) -> None:
    ours, theirs = client(kdc).begin("localhost"), begin(acceptor)
    challenge = theirs.step(ours.step(b""))
    assert isinstance(challenge, bytes)
    offer = theirs.step(ours.step(challenge))
    assert isinstance(offer, bytes)
    with pytest.raises(LoginError, match=f"Kerberos can not log in to {SERVICE}"):
        ours.step(offer[:-1] + bytes([offer[-1] ^ 1]))
