"""Wrong passwords on many sockets and for many names: the limits of a site, and the logins that go on meanwhile."""

from __future__ import annotations

import http.client
import os
import socket
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from metastore.service.accounts import users
from metastore.service.call.identity import Login
from metastore.store.core.database import Database
from metastore.wire.auth import failures, gate
from metastore.wire.auth.gate import Gate
from metastore.wire.auth.negotiation import BAD, COMPLETE, OK, START, login_message, read_login_message
from metastore.wire.auth.passwords import Check, Passwords, PasswordStore
from metastore.wire.auth.sasl import ClientRefused, TooManyTries
from metastore.wire.sockets.addresses import site_of
from tests.support.servers.servers import Server, run_command, serving
from tests.support.servers.waiting import until
from tests.wire.auth.speaking import Speaker, logged_in, post, request

PASSWORD = "correct horse"
SITE = "10.0.0.1"
CORES = os.cpu_count() or 1


class Clock:
    """A clock that the tests advance."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Tried:
    """A store of passwords that notes the names that it is asked for."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def __call__(self, user: str, password: str, costly: AbstractContextManager[None]) -> Login | None:
        if password == "key":
            return Login(user, "users")
        with costly:
            self.names.append(user)
            return Login(user, "users") if password == "right" else None


def passwords(check: Check, clock: Callable[[], float], *, most: int = 5, at_once: int = 100) -> Passwords:
    return Passwords([PasswordStore(check, at_once)], most, 600.0, lambda _: None, clock)


def spray(checked: Passwords, number: int, host: str = SITE) -> None:
    for each in range(number):
        with pytest.raises(ClientRefused):
            checked.check(f"user{each}", "guess", host)


def test_wrong_passwords_for_many_names_close_a_site_until_they_are_old() -> None:
    clock, tried = Clock(), Tried()
    checked = passwords(tried, clock)
    for _ in range(50):
        assert checked.check("ann", "right", SITE).user == "ann", "logins that succeed do not count"
    spray(checked, 20)
    assert tried.names[50:] == [f"user{each}" for each in range(5)], "no further guess was checked"
    with pytest.raises(TooManyTries, match=r"came from 10\.0\.0\.1: try again in 120 seconds, or use a key") as error:
        checked.check("bob", "right", SITE)
    assert error.value.retry_after == 120
    assert checked.check("ann", "right", SITE).user == "ann", "who logged in from there goes on"
    assert checked.check("job", "key", SITE).user == "job", "a key costs nothing, and nobody guesses it"
    assert checked.check("bob", "right", "10.0.0.2").user == "bob"
    clock.now += 120
    assert checked.check("bob", "right", SITE).user == "bob"
    with pytest.raises(ClientRefused, match="wrong, or there is no such user"):
        checked.check("carl", "guess", SITE)
    with pytest.raises(TooManyTries):
        checked.check("carl", "right", SITE)
    clock.now += failures.KNOWN_FOR
    spray(checked, 10)
    with pytest.raises(TooManyTries):
        checked.check("ann", "right", SITE)


def test_sites_are_forgotten_that_failed_long_ago(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failures, "MAX_REMEMBERED", 10)
    checked = passwords(Tried(), Clock())
    for number in range(50):
        spray(checked, 1, f"10.0.1.{number}")
        assert checked.check(f"user{number}", "right", SITE)
    assert len(checked._of_sites._levels) == len(checked._of_sites._known) == 10


def test_0_sets_no_limit() -> None:
    tried = Tried()
    spray(passwords(tried, Clock(), most=0), 500)
    assert len(tried.names) == 500


@pytest.mark.parametrize(
    ("host", "site"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("[2001:db8:1:2:3:4:5:6]", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("somewhere", "somewhere"),
    ],
)
def test_the_addresses_of_one_network_of_ipv6_are_one_site(host: str, site: str) -> None:
    assert site_of(host) == site


class Computation:
    """A store's computation of a password's hash, behind the gate: each one ends when a test releases it."""

    def __init__(self) -> None:
        self.inside: list[str] = []
        self.most = 0
        self._lock = threading.Lock()
        self._running = 0
        self.may_end = threading.Semaphore(0)

    def __call__(self, user: str, _password: str, costly: AbstractContextManager[None]) -> Login | None:
        with costly:
            with self._lock:
                self.inside.append(user)
                self._running += 1
                self.most = max(self.most, self._running)
            assert self.may_end.acquire(timeout=60)
            with self._lock:
                self._running -= 1
        return None


def test_few_are_computed_at_once_sites_take_turns_and_late_ones_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate, "MAX_OF_SITE", 6)
    monkeypatch.setattr(gate, "MAX_WAITING", 8)
    computed = Computation()
    checked = passwords(computed, Clock(), most=0, at_once=2)
    behind = checked._stores[0][1]
    with ThreadPoolExecutor(20) as pool:
        tries = []

        def start(user: str, host: str) -> None:
            waiting, inside = behind._waiting, len(computed.inside)
            tries.append(pool.submit(checked.check, user, "guess", host))
            until(lambda: behind._waiting > waiting or len(computed.inside) > inside or tries[-1].done())

        for number in range(9):
            start(f"many{number}", SITE)
        assert isinstance(tries[-1].exception(), TooManyTries), "a site has no more than its share of the queue"
        start("alone", "10.0.0.2")
        start("another", "10.0.0.3")
        start("late", "10.0.0.4")
        assert isinstance(tries[-1].exception(), TooManyTries)
        for done in range(len(tries)):
            computed.may_end.release()  # one at a time: the next login computes before another one is released
            until(lambda done=done: len(computed.inside) == min(10, done + 3))  # type: ignore[misc]
        assert all(isinstance(each.exception(), ClientRefused) for each in tries)
    assert computed.most == 2
    assert sorted(computed.inside[:2]) == ["many0", "many1"]
    assert {"alone", "another"} < set(computed.inside[2:6]), "whose site sends less does not wait for those that send much"
    assert behind._free == 2
    assert not behind._queues
    assert behind._waiting == 0


def test_a_thread_without_a_turn_in_time_leaves_the_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate, "PATIENCE", 0.01)
    behind = Gate(1)
    with behind.passed(SITE):
        with pytest.raises(TooManyTries, match="had no turn"), behind.passed(SITE):
            pytest.fail("two are behind the gate")
        assert behind._waiting == 0
    with behind.passed(SITE):
        assert not behind._free


def test_those_that_waited_are_not_computed_once_the_site_is_closed() -> None:
    computed = Computation()
    checked = passwords(computed, Clock(), most=3, at_once=1)
    behind = checked._stores[0][1]
    with ThreadPoolExecutor(40) as pool:
        tries = [pool.submit(checked.check, f"user{number}", "guess", SITE) for number in range(40)]
        until(lambda: behind._waiting == 39 and len(computed.inside) == 1)
        for _ in tries:
            computed.may_end.release()
        found = Counter(type(each.exception()) for each in tries)
    assert len(computed.inside) in (3, 4), "three, and the one whose turn it was before the third was noted"
    assert found == {ClientRefused: len(computed.inside), TooManyTries: 40 - len(computed.inside)}


def test_a_failure_behind_the_gate_gives_the_turn_back() -> None:
    def fails(_user: str, _password: str, costly: AbstractContextManager[None]) -> Login | None:
        with costly:
            raise ClientRefused("The directory gives no answer")

    checked = passwords(fails, Clock(), at_once=1)
    for _ in range(20):
        with pytest.raises(ClientRefused, match="no answer"):
            checked.check("ann", "x", SITE)


def add(home: Path, *arguments: str, text: str = "") -> str:
    done = run_command("users", "add", *arguments, home=home, text=text)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    options = ("authentication=users", "login_failures=20")
    with serving("--workers", "1", *(part for each in options for part in ("--set", each)), home=tmp_path) as started:
        for name in ("ann", "bob"):
            add(tmp_path, name, text=PASSWORD)
        yield started


def guess(target: tuple[str, int], number: int) -> socket.socket:
    """Send a login for a name of its own, except its last byte."""
    sock = socket.create_connection(target, 60)
    text = f"\0user{number}\0guessed".encode()
    sock.sendall(login_message(START, b"PLAIN") + login_message(OK, text)[:-1])
    return sock


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have one address of their own alone, and count memory otherwise")
def test_250_passwords_at_once_take_little_memory_and_hold_up_nobody(server: Server, tmp_path: Path) -> None:
    where = urlsplit(server.uri)
    assert where.hostname is not None
    target = (where.hostname, where.port or 0)
    worker = server.children()[0]
    key = add(tmp_path, "job", "--key")

    def largest() -> int:
        return int(next(line for line in Path(f"/proc/{worker}/status").read_text().splitlines() if line.startswith("VmHWM")).split()[1])

    with ExitStack() as stack:
        ann = stack.enter_context(logged_in(server.uri, "ann", PASSWORD))
        guesses = [stack.enter_context(guess(target, number)) for number in range(250)]
        before = largest()
        for sock in guesses:
            sock.sendall(b"x")
        probe = stack.enter_context(closing(http.client.HTTPConnection(*target, timeout=60)))
        probe.request("GET", "/healthz")
        assert probe.getresponse().status == 200
        assert ann.call("getStatus") == 2
        answers = Counter(_answer(sock) for sock in guesses)
    assert largest() - before < (100 + 20 * CORES) << 10, "in KiB; 250 computations at once would take 4 GiB"
    assert answers["wrong"] >= 20
    assert answers["wrong"] + answers["closed"] + answers["busy"] == 250
    assert answers["wrong"] <= 20 + 8 + CORES, "those whose turn it was already, and what a slow machine forgets meanwhile"
    with logged_in(server.uri, "ann", PASSWORD), logged_in(server.uri, "job", key):
        pass
    with Speaker(server.uri) as bob:
        status, text = bob.plain("bob", PASSWORD)
        assert status == BAD
        assert b"Too many wrong passwords came from 127.0.0.1" in text
    connection = http.client.HTTPConnection(*target, timeout=60)
    connection.request("POST", "/metastore", request("getStatus"), {"Content-Type": "application/x-thrift", "Authorization": BASIC_OF_BOB})
    refused = connection.getresponse()
    assert refused.status == 429
    assert int(refused.headers["Retry-After"]) > 0
    connection.close()
    elsewhere = socket.create_connection(target, 60, ("127.0.0.2", 0))
    with closing(elsewhere), elsewhere.makefile("rb") as file:
        elsewhere.sendall(login_message(START, b"PLAIN") + login_message(OK, f"\0bob\0{PASSWORD}".encode()))
        assert file.read(1)[0] == COMPLETE


BASIC_OF_BOB = "Basic Ym9iOmNvcnJlY3QgaG9yc2U="


def _answer(sock: socket.socket) -> str:
    from metastore.wire.sockets.transport import Feed

    status, text = read_login_message(Feed(sock.recv))
    assert status == BAD
    kinds = {b"no such user": "wrong", b"Too many wrong passwords": "closed", b"Too many logins": "busy", b"no turn": "busy"}
    return next(kind for reason, kind in kinds.items() if reason in text)


def test_a_good_burst_of_one_address_is_let_in_as_a_whole(server: Server) -> None:
    """A burst of correct logins from one address succeeds: a job's executors behind one NAT send such a burst."""
    for _ in range(2):
        with ThreadPoolExecutor(60) as pool:
            assert all(
                pool.map(lambda number: post(server.uri, request("getStatus"), basic(("ann", "bob")[number % 2]))[0] == 200, range(120))
            )


def basic(user: str) -> dict[str, str]:
    return {"Authorization": {"ann": "Basic YW5uOmNvcnJlY3QgaG9yc2U=", "bob": BASIC_OF_BOB}[user]}


def test_unknown_expired_wrong_and_keys_cost_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from metastore.store.core import migrate

    database = Database(f"sqlite:///{tmp_path}/users.db")
    migrate.upgrade(database)
    users.add(database, "ann", PASSWORD)
    users.add(database, "gone", PASSWORD, expires=1)
    users.add(database, "job", None)
    users.add(database, "both", PASSWORD, expires=1)
    users.add(database, "both", None)
    computed: list[str] = []
    scrypt = users._scrypt
    monkeypatch.setattr(users, "_scrypt", lambda password, salt: computed.append(password) or scrypt(password, salt))

    class Entered:
        times = 0

        def __enter__(self) -> None:
            self.times += 1

        def __exit__(self, *_: object) -> None:
            pass

    class Metastore:
        pass

    metastore: Any = Metastore()
    metastore.database = database
    for user in ("ann", "gone", "job", "both", "nobody"):
        for password in ("wrong one", PASSWORD if user != "ann" else "wrong two"):
            computed.clear()
            costly = Entered()
            assert users.check(metastore, user, password, costly) is None, user  # type: ignore[arg-type]
            assert (computed, costly.times) == ([password], 1), user
    assert users.check(metastore, "ann", PASSWORD, Entered()) is not None  # type: ignore[arg-type]
    database.close()
