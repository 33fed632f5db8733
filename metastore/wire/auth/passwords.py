"""Ask the stores of passwords one after the other, and delay clients that guess. It implements no store itself.

A wrong password delays the next try for the same user from the same site. Many of them, for the same or for different users, close the site
to all but users who logged in from there before (`failures`). Expensive steps, computing a hash or asking a directory, are done few at a
time (`gate`).
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

from metastore import log
from metastore.service.call.identity import Login, folded
from metastore.wire.auth.failures import MAX_REMEMBERED, Failures, Who
from metastore.wire.auth.gate import Gate
from metastore.wire.auth.sasl import ClientRefused, TooManyTries
from metastore.wire.sockets.addresses import site_of

Check = Callable[[str, str, AbstractContextManager[None]], Login | None]
"""A function from name and password to the login; None if they do not fit. It does expensive steps within the context, which it enters at
most once.

It raises ClientRefused where it can not decide.
"""
MAX_LENGTH = 4096
"""Characters of a name or password."""
_REMEMBERED_LENGTH = 300
"""Characters of a name that are remembered, since 10,000 longer ones would take much memory. Names that begin alike count as one user."""
MAX_DELAY = 8.0
"""The longest delay of a login after many failed ones, in seconds."""
FIRST_DELAY = 0.25
FORGET_AFTER = 300.0
"""Seconds without a further failure after which earlier ones count no more."""
MAX_WAITING = 8
"""The most logins of one user from one site that wait at one time after a wrong password."""


class PasswordStore(NamedTuple):
    """A keeper of the passwords of some users."""

    check: Check
    at_once: int
    """The number of passwords that are checked at one time."""


@dataclass
class _Turn:
    """The lock by which the logins of one user from one site are checked one after the other."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    waiting: int = 0


class Passwords:
    """Checks passwords for all connections of a process. Safe for threads."""

    def __init__(
        self, stores: Sequence[PasswordStore], most_failures: int, period: float,
        sleep: Callable[[float], None] = time.sleep, clock: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        """A site is closed after `most_failures` wrong passwords within `period` seconds; 0 closes none."""
        self._stores = [(store.check, Gate(store.at_once)) for store in stores]
        self._of_sites = Failures(most_failures, period, clock)
        self._sleep = sleep
        self._clock = clock
        self._lock = threading.Lock()
        self._turns: dict[Who, _Turn] = {}
        self._failures: OrderedDict[Who, tuple[int, float]] = OrderedDict()
        """The number of failures in a row and the time of the last."""

    def check(self, user: str, password: str, host: str) -> Login:
        """Return the login. Raises ClientRefused, with the same text for a wrong password as for an unknown user.

        Raises TooManyTries, and checks nothing, after too many failures, and where too many wait.
        """
        if not user or not password:  # an empty password is not a login, though a directory may take it for an anonymous one
            raise ClientRefused("A login needs a name and a password")
        if max(len(user), len(password)) > MAX_LENGTH:
            raise ClientRefused(f"Name and password have at most {MAX_LENGTH} characters")
        who = (site_of(host), folded(user)[:_REMEMBERED_LENGTH])
        with self._turn(who):
            self._sleep(self._delay(who))
            for check, gate in self._stores:
                login = check(user, password, self._admission(gate, who))
                if login is not None:
                    self._of_sites.succeeded(who)
                    with self._lock:
                        self._failures.pop(who, None)
                    return login
            self._note_failure(who)
        log.get("metastore.login").warning("wrong password", client=host, user=user[:300])
        raise ClientRefused(f"The password of {user[:300]} is wrong, or there is no such user")

    @contextmanager
    def _admission(self, gate: Gate, who: Who) -> Iterator[None]:
        """A context for an expensive step. Raises TooManyTries."""
        self._of_sites.check(who)
        with gate.passed(who[0]):
            self._of_sites.check(who)  # others may have failed during the wait
            yield

    @contextmanager
    def _turn(self, who: Who) -> Iterator[None]:
        """Make the logins of one user from one site take turns. Raises TooManyTries where many wait after a wrong password."""
        with self._lock:
            turn = self._turns.setdefault(who, _Turn())
            if turn.waiting >= MAX_WAITING and who in self._failures:
                raise TooManyTries("Too many logins of this user wait after wrong passwords: try again in a minute", 60)
            turn.waiting += 1
        try:
            with turn.lock:
                yield
        finally:
            with self._lock:
                turn.waiting -= 1
                if not turn.waiting:
                    del self._turns[who]

    def _delay(self, who: Who) -> float:
        with self._lock:
            number, last = self._failures.get(who, (0, 0.0))
        if not number or self._clock() - last > FORGET_AFTER:
            return 0.0
        return min(MAX_DELAY, FIRST_DELAY * 2.0 ** min(number - 1, 10))

    def _note_failure(self, who: Who) -> None:
        self._of_sites.failed(who)
        with self._lock:
            number, last = self._failures.pop(who, (0, 0.0))
            now = self._clock()
            self._failures[who] = (1 if now - last > FORGET_AFTER else number + 1, now)
            while len(self._failures) > MAX_REMEMBERED:
                self._failures.popitem(last=False)
