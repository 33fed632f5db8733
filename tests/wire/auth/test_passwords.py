"""PLAIN and the delays after wrong passwords."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import wait as wait_for
from contextlib import AbstractContextManager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metastore.service.call.identity import Login
from metastore.wire.auth import passwords
from metastore.wire.auth.passwords import Check, Passwords, PasswordStore
from metastore.wire.auth.plain import PlainLogin
from metastore.wire.auth.sasl import ClientRefused, LoginDone


def right(user: str, password: str, costly: AbstractContextManager[None]) -> Login | None:
    with costly:
        return Login(user, "users") if password == "right" else None


def made(
    check: Check = right,
    sleep: Callable[[float], None] = lambda _: None,
    *,
    at_once: int = 100,
    most: int = 0,
    clock: Callable[[], float] = lambda: 0.0,
) -> Passwords:
    return Passwords([PasswordStore(check, at_once)], most, 600.0, sleep, clock)


def test_guesses_of_passwords_wait_longer_and_longer_and_nobody_else_does() -> None:
    waits: list[float] = []
    checked = made(sleep=waits.append)
    for _ in range(8):
        with pytest.raises(ClientRefused, match="wrong, or there is no such user"):
            checked.check("ann", "guess", "10.0.0.1")
    assert waits == [0.0, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 8.0]
    waits.clear()
    assert checked.check("ann", "right", "10.0.0.2").user == "ann"
    assert checked.check("bob", "right", "10.0.0.1").user == "bob"
    assert waits == [0.0, 0.0]
    assert checked.check("ann", "right", "10.0.0.1").user == "ann"
    assert checked.check("ann", "right", "10.0.0.1").user == "ann"
    assert waits == [0.0, 0.0, 8.0, 0.0], "after a login earlier failures count no more"


def test_other_spellings_of_a_name_are_guesses_of_one() -> None:
    waits: list[float] = []
    checked = made(sleep=waits.append)
    for name in ("ann", "ANN", " ann ", "\N{FULLWIDTH LATIN SMALL LETTER A}nn"):
        with pytest.raises(ClientRefused):
            checked.check(name, "guess", "10.0.0.1")
    assert waits == [0.0, 0.25, 0.5, 1.0]


def test_guesses_at_once_go_one_after_the_other_and_few_wait() -> None:
    """Logins with wrong passwords wait one after the other. Otherwise each connection could try a password during one delay."""
    waits: list[float] = []
    may_go = threading.Event()

    def wait(seconds: float) -> None:
        waits.append(seconds)
        assert may_go.wait(30)

    checked = made(sleep=wait)
    checked._note_failure(("10.0.0.1", "ann"))
    with ThreadPoolExecutor(30) as pool:
        tries = {pool.submit(checked.check, "ann", "guess", "10.0.0.1") for _ in range(30)}
        done: set[Future[Login]] = set()
        while len(done) < 30 - passwords.MAX_WAITING:
            done, _ = wait_for(tries, timeout=0.05)
        assert all("Too many logins" in str(each.exception()) for each in done)
        may_go.set()
    assert len(waits) == passwords.MAX_WAITING
    assert waits == [0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 8.0, 8.0]
    assert not checked._turns


def test_many_who_know_the_password_are_not_held_up() -> None:
    checked = made(sleep=lambda seconds: pytest.fail("waited") if seconds else None)
    with ThreadPoolExecutor(30) as pool:
        assert {each.user for each in pool.map(lambda _: checked.check("ann", "right", "10.0.0.1"), range(60))} == {"ann"}


def test_guesses_of_many_names_are_not_remembered_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passwords, "MAX_REMEMBERED", 10)
    checked = made()
    for number in range(50):
        with pytest.raises(ClientRefused):
            checked.check(f"user{number}", "guess", "10.0.0.1")
    assert len(checked._failures) == 10


def test_little_is_remembered_of_long_names() -> None:
    """Normalisation makes eighteen letters of each letter of this name."""
    checked = made()
    for number in range(3):
        with pytest.raises(ClientRefused, match="wrong, or there is no such user"):
            checked.check("\N{ARABIC LIGATURE SALLALLAHOU ALAYHE WASALLAM}" * 4000 + str(number), "guess", "10.0.0.1")
    assert [len(name) for _, name in checked._failures] == [300]


@pytest.mark.parametrize(("user", "password"), [("a" * 5000, "x"), ("ann", "x" * 5000)])
def test_a_text_longer_than_any_password_asks_nobody(user: str, password: str) -> None:
    def asked(_user: str, _password: str, _costly: object) -> Login | None:
        raise AssertionError("asked")

    with pytest.raises(ClientRefused, match="at most 4096 characters"):
        made(asked).check(user, password, "10.0.0.1")


def test_an_empty_password_asks_nobody() -> None:
    def anonymous(user: str, password: str, _costly: object) -> Login | None:
        raise AssertionError("asked")

    for user, password in (("ann", ""), ("", "x")):
        with pytest.raises(ClientRefused, match="a name and a password"):
            made(anonymous).check(user, password, "10.0.0.1")


def act_for(login: Login, user: str) -> Login:
    return Login(user, login.mechanism, real_user=login.user) if user else login


def check(user: str, password: str) -> Login:
    return Login(f"{user}/{password}", "users")


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        (b"\0ann\0pass:word", Login("ann/pass:word", "users")),
        ("\0jörg\0Größe".encode(), Login("jörg/Größe", "users")),
        (b"bob\0ann\0x", Login("bob", "users", real_user="ann/x")),
    ],
)
def test_plain_takes_names_and_passwords_of_any_letters(response: bytes, expected: Login) -> None:
    plain = PlainLogin(check, act_for)
    assert plain.step(b"") == b"", "a client without an initial response is asked for one"
    done = plain.step(response)
    assert isinstance(done, LoginDone)
    assert done.login == expected


@pytest.mark.parametrize("response", [b"ann", b"\0ann", b"\0a\0b\0c", b"\0\xff\0x", b"\0ann\0" + b"x" * 5000])
def test_plain_refuses_a_message_of_another_mechanism(response: bytes) -> None:
    with pytest.raises(ClientRefused, match="PLAIN"):
        PlainLogin(check, act_for).step(response)


@given(st.binary(max_size=200))
def test_plain_refuses_or_logs_in(response: bytes) -> None:
    with contextlib.suppress(ClientRefused):
        assert isinstance(PlainLogin(check, act_for).step(response), bytes | LoginDone)
