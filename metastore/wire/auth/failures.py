"""Count the wrong passwords of each site, for all users together, and refuse tries after too many. It checks no password itself."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable

from metastore.wire.auth.sasl import TooManyTries

Who = tuple[str, str]
"""A client's site, and the form that all spellings of a user's name share."""
MAX_REMEMBERED = 10_000
"""Sites, and users of a site, that are remembered."""
KNOWN_FOR = 86_400.0
"""Seconds for which a user who logged in from a site is known there."""


class Failures:
    """The failed tries of one process. Safe for threads."""

    def __init__(self, most: int, period: float, clock: Callable[[], float]) -> None:
        """Each site may fail `most` times within `period` seconds; 0 sets no limit."""
        self._most = most
        self._period = period
        self._clock = clock
        self._lock = threading.Lock()
        self._levels: OrderedDict[str, tuple[float, float]] = OrderedDict()
        """The level of failures by site, and the time for which it holds: `most` failures sink to 0 within the period."""
        self._known: OrderedDict[Who, float] = OrderedDict()
        """When a user last logged in from a site."""

    def check(self, who: Who) -> None:
        """Raise TooManyTries where a site has failed too often, but for users who logged in from there before."""
        with self._lock:
            now = self._clock()
            over = self._level(who[0], now) - self._most + 1
            if not self._most or over <= 0 or now - self._known.get(who, float("-inf")) < KNOWN_FOR:
                return
        wait = over * self._period / self._most
        raise TooManyTries(f"Too many wrong passwords came from {who[0]}: try again in {wait:.0f} seconds, or use a key", wait)

    def failed(self, who: Who) -> None:
        """Note a wrong password."""
        with self._lock:
            now = self._clock()
            level = min(self._level(who[0], now), self._most) + 1
            self._put(self._levels, who[0], (level, now))

    def succeeded(self, who: Who) -> None:
        """Note a login. It removes no failure, but its user is still accepted when the site has failed too often."""
        with self._lock:
            self._put(self._known, who, self._clock())

    def _level(self, site: str, now: float) -> float:
        level, since = self._levels.get(site, (0.0, now))
        return max(0.0, level - (now - since) * self._most / self._period)

    @staticmethod
    def _put(remembered: OrderedDict, key: object, value: object) -> None:  # type: ignore[type-arg]
        remembered[key] = value
        remembered.move_to_end(key)
        while len(remembered) > MAX_REMEMBERED:
            remembered.popitem(last=False)
