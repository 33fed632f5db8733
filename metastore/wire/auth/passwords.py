"""Ask the stores of passwords one after the other, and let those wait who guess. It knows no store itself."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from metastore import log
from metastore.service.identity import Login, folded
from metastore.wire.auth.sasl import ClientRefused

Check = Callable[[str, str], Login | None]
"""From name and password to the login; None if they do not fit. It raises ClientRefused where it can not tell."""
MAX_DELAY = 8.0
"""Seconds that a login waits after many that failed."""
FIRST_DELAY = 0.25
FORGET_AFTER = 300.0
"""Seconds without a further failure after which earlier ones count no more."""
MAX_REMEMBERED = 10_000
MAX_WAITING = 8
"""Logins of one user from one address that wait at one time once a password was wrong."""
Who = tuple[str, str]
"""An address, and what all spellings of a user's name have in common."""


@dataclass
class _Turn:
    """Whose turn it is among the logins of one user from one address."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    waiting: int = 0


class Passwords:
    """Checks passwords for all connections of a process. Safe for threads."""

    def __init__(self, checks: Sequence[Check], sleep: Callable[[float], None] = time.sleep) -> None:
        self._checks = checks
        self._sleep = sleep
        self._lock = threading.Lock()
        self._turns: dict[Who, _Turn] = {}
        self._failures: OrderedDict[Who, tuple[int, float]] = OrderedDict()
        """The number of failures in a row and the time of the last."""

    def check(self, user: str, password: str, host: str) -> Login:
        """Return the login. Raises ClientRefused, with the same text for a wrong password as for an unknown user."""
        if not user or not password:  # an empty password is no login, though a directory may take it for an anonymous one
            raise ClientRefused("A login needs a name and a password")
        who = (host, folded(user))
        with self._turn(who):
            self._sleep(self._delay(who))
            for check in self._checks:
                login = check(user, password)
                if login is not None:
                    with self._lock:
                        self._failures.pop(who, None)
                    return login
            self._note_failure(who)
        log.get("metastore.login").warning("wrong password", client=host, user=user[:300])
        raise ClientRefused(f"The password of {user[:300]} is wrong, or there is no such user")

    @contextmanager
    def _turn(self, who: Who) -> Iterator[None]:
        """Let the tries for one user from one address go one after the other. Raises ClientRefused where many wait behind wrong ones."""
        with self._lock:
            turn = self._turns.setdefault(who, _Turn())
            if turn.waiting >= MAX_WAITING and who in self._failures:
                raise ClientRefused("Too many logins of this user wait after wrong passwords: try again in a minute")
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
        if not number or time.monotonic() - last > FORGET_AFTER:
            return 0.0
        return min(MAX_DELAY, FIRST_DELAY * 2.0 ** min(number - 1, 10))

    def _note_failure(self, who: Who) -> None:
        with self._lock:
            number, last = self._failures.pop(who, (0, 0.0))
            now = time.monotonic()
            self._failures[who] = (1 if now - last > FORGET_AFTER else number + 1, now)
            while len(self._failures) > MAX_REMEMBERED:
                self._failures.popitem(last=False)
