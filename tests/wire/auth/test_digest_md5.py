"""Logins by token between our client's side and our server's side; the numbers of RFC 2831; hostile messages."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metastore.client_login import LoginError
from metastore.client_login.token import Token as TokenLogin
from metastore.client_login.token import TokenMechanism
from metastore.rules.accounts.delegation_tokens import DelegationToken
from metastore.service.accounts.delegation_tokens import ValidToken
from metastore.service.call.identity import Login
from metastore.wire.auth.digest.digest import Exchange, parse
from metastore.wire.auth.digest.digest_layer import DigestLayer
from metastore.wire.auth.digest.digest_md5 import DigestMd5Login
from metastore.wire.auth.sasl import ClientRefused, LoginDone

TOKEN = DelegationToken(b"\0identifier", b"password")
TEXT = TOKEN.to_text()
ALL = ("authentication", "integrity", "privacy")
ALICE = Login("alice", "token")


def known(identifier: bytes) -> ValidToken:
    if identifier != TOKEN.identifier:
        raise ClientRefused("no such token")
    return ValidToken(TOKEN.password, ALICE)


def server(*protection: str) -> DigestMd5Login:
    return DigestMd5Login(protection or ("authentication",), known)


def client(text: str = TEXT, *qualities: str) -> TokenMechanism:
    begun = TokenLogin(text, qualities or ALL).begin("anywhere")
    assert begun.step(b"") == b""
    return begun


def challenge(of: DigestMd5Login) -> bytes:
    found = of.step(b"")
    assert isinstance(found, bytes)
    return found


def log_in(ours: TokenMechanism, theirs: DigestMd5Login) -> LoginDone:
    done = theirs.step(ours.step(challenge(theirs)))
    assert isinstance(done, LoginDone)
    assert not ours.complete
    ours.step(done.last)
    assert ours.complete
    return done


def test_the_example_of_the_specification() -> None:
    exchange = Exchange(
        "chris", "secret", "OA6MG9tEQGm2hh", "OA6MHXh6VqTrRk", "00000001", "auth",
        realm="elwood.innosoft.com", uri="imap/elwood.innosoft.com",
    )  # fmt: skip
    assert exchange.proof(of_server=False) == "d388dad90d4bbd760a152321f2143af7"
    assert exchange.proof(of_server=True) == "ea40f60335c427b5527b84dbabcdfffd"


def test_a_token_logs_its_owner_in() -> None:
    done = log_in(client(), server())
    assert (done.login, done.layer) == (ALICE, None)


@pytest.mark.parametrize("quality", ["integrity", "privacy"])
def test_frames_are_protected_as_agreed(quality: str) -> None:
    ours = client(TEXT, quality)
    theirs = log_in(ours, server(*ALL)).layer
    assert ours.layer is not None
    assert theirs is not None
    for sender, receiver in ((ours.layer, theirs), (theirs, ours.layer)):
        for text in (b"", b"x", b"all the world may see this, or not", b"y" * 100_000):
            frame = sender.wrap(text)
            assert (len(text) > 10 and text in frame) == (quality == "integrity" and len(text) > 10)
            assert receiver.unwrap(frame) == text


def layers(*, encrypted: bool) -> tuple[DigestLayer, DigestLayer]:
    made = [DigestLayer(b"k" * 16, is_server=is_server, encrypted=encrypted, max_size=1000) for is_server in (False, True)]
    return made[0], made[1]


@pytest.mark.parametrize("encrypted", [False, True])
def test_a_frame_that_was_changed_or_came_twice_is_refused(encrypted: bool) -> None:
    for position in (0, 5, -7, -1):
        ours, theirs = layers(encrypted=encrypted)
        frame = bytearray(ours.wrap(b"something of some length"))
        frame[position] ^= 1
        with pytest.raises(ClientRefused):
            theirs.unwrap(bytes(frame))
    ours, theirs = layers(encrypted=encrypted)
    frame = bytearray(ours.wrap(b"once"))
    assert theirs.unwrap(bytes(frame)) == b"once"
    with pytest.raises(ClientRefused, match="came twice or out of its turn"):
        theirs.unwrap(bytes(frame))
    ours, theirs = layers(encrypted=encrypted)
    with pytest.raises(ClientRefused):
        ours.unwrap(ours.wrap(b"reflected"))


@given(st.binary(max_size=100), st.booleans())
def test_any_frame_is_read_or_refused(frame: bytes, encrypted: bool) -> None:
    _, theirs = layers(encrypted=encrypted)
    with pytest.raises(ClientRefused):
        theirs.unwrap(frame + b"\0\1\0\0\0\0")


def test_a_protection_that_the_server_lacks_is_refused_on_both_sides() -> None:
    with pytest.raises(LoginError, match="The server offers the protection auth in the realm default; wanted: privacy"):
        log_in(client(TEXT, "privacy"), server())
    theirs = server("privacy")
    answer = client(TEXT, "integrity").step(challenge(theirs).replace(b"auth-conf", b"auth-int"))
    with pytest.raises(ClientRefused, match="wants the protection auth-int; the server offers auth-conf"):
        theirs.step(answer)


def test_a_wrong_password_is_refused() -> None:
    with pytest.raises(ClientRefused, match="The password of the token is wrong"):
        log_in(client(DelegationToken(TOKEN.identifier, b"another").to_text()), server())


def test_an_unknown_token_is_refused() -> None:
    with pytest.raises(ClientRefused, match="no such token"):
        log_in(client(DelegationToken(b"other", TOKEN.password).to_text()), server())


def test_an_answer_serves_one_connection_once() -> None:
    first = server()
    answer = client().step(challenge(first))
    assert isinstance(first.step(answer), LoginDone)
    with pytest.raises(ClientRefused, match="This login has ended"):
        first.step(answer)
    second = server()
    second.step(b"")
    with pytest.raises(ClientRefused, match="the wrong nonce"):
        second.step(answer)


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        (b"nc=00000001", b"nc=00000002", "the wrong nc"),
        (b"nc=00000001", b"nc=1", "the wrong nc"),
        (b"null/default", b"hive/default", "the wrong digest-uri"),
        (b'realm="default"', b'realm="other"', "the wrong realm"),
        (b"qop=auth", b"qop=auth-conf", "wants the protection auth-conf"),
        (b"qop=auth", b'qop=auth,authzid="root"', "the wrong authzid"),
        (b"qop=auth", b"qop=auth,qop=auth", "has qop twice"),
        (b"username=", b"user=", "another authzid|no base64|no such token"),
        (b"response=", b"response=Z", "lacks a cnonce or a response"),
        (b'cnonce="', b'cnonce="",other="', "lacks a cnonce or a response"),
        (b'username="', b'username="!', "not base64"),
        (b'username="', b'username="\xff', "not UTF-8"),
        (b"charset", b"=charset", "can not be read from byte 0"),
    ],
)
def test_an_answer_that_does_not_fit_is_refused(before: bytes, after: bytes, reason: str) -> None:
    theirs = server()
    answer = client().step(challenge(theirs))
    assert before in answer
    with pytest.raises(ClientRefused, match=reason):
        theirs.step(answer.replace(before, after, 1))


@pytest.mark.parametrize("size", [b"0", b"255", b"16777216", b"999999999999999999999", b"x", "²".encode()])
def test_a_buffer_that_is_no_size_is_refused(size: bytes) -> None:
    theirs = server("integrity")
    answer = client().step(challenge(theirs))
    with pytest.raises(ClientRefused, match="is not a size from 256"):
        theirs.step(re.sub(rb"maxbuf=\d+", lambda _: b"maxbuf=" + size, answer))


def test_the_clients_buffer_is_never_exceeded() -> None:
    theirs = server("privacy")
    done = theirs.step(re.sub(rb"maxbuf=\d+", b"maxbuf=4096", client().step(challenge(theirs))))
    assert isinstance(done, LoginDone)
    assert done.layer is not None
    assert len(done.layer.wrap(b"x" * done.layer.max_size)) <= 4096


def test_a_client_does_not_begin() -> None:
    with pytest.raises(ClientRefused, match="begins with the server's challenge"):
        server().step(b"x")


def test_a_server_that_does_not_know_the_password_is_refused() -> None:
    ours = client()
    ours.step(challenge(server()))
    with pytest.raises(LoginError, match="does not know the password of the token"):
        ours.step(b"rspauth=00000000000000000000000000000000")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"algorithm=md5-sess", b"algorithm=md5"),
        (b'realm="default"', b'realm="other"'),
        (b"nonce=", b"once="),
        (b'qop="auth"', b'qop="secret"'),
    ],
)
def test_a_client_refuses_a_challenge_that_does_not_fit(before: bytes, after: bytes) -> None:
    changed = challenge(server()).replace(before, after)
    with pytest.raises(LoginError, match=r"The server offers .* wanted: authentication, integrity, privacy"):
        client().step(changed)
    with pytest.raises(LoginError, match="can not be read from byte"):
        client().step(b"=")


def test_directives_are_read_as_they_may_be_written() -> None:
    assert parse(b' a = "x\\"y\\\\" ,\r\n b=c,D="",e=1,') == {"a": 'x"y\\', "b": "c", "d": "", "e": "1"}


@given(st.binary(max_size=200) | st.text(alphabet='ab=," \\', max_size=200).map(str.encode))
def test_any_message_is_read_or_refused(message: bytes) -> None:
    for begun in (server(), server(*ALL)):
        begun.step(b"")
        with pytest.raises(ClientRefused):
            begun.step(message)


def test_a_long_message_is_refused() -> None:
    for message in (b"a=" + b"b" * 20_000, b'a="' + b"\\" * 16_000, b"a" * 16_000, b" " * 16_000, b'a="' + b'b",' * 5000, b"," * 16_000):
        with pytest.raises(ClientRefused):
            parse(message)


def test_a_text_that_is_no_token_does_not_begin() -> None:
    with pytest.raises(LoginError, match="is base64; this is not"):
        TokenLogin("§").begin("host")
