"""Count calls, bytes, connections and logins, for all worker processes together, in memory that they share.

Each worker has a part of its own, which nobody else writes into, so a count is an addition and no message. The counts of a worker stay when
it dies; its successor continues in the same part. A count takes half a microsecond: a short call takes ninety.
"""

from __future__ import annotations

import mmap
import struct
import threading
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from typing import NamedTuple

from metastore.call_time import PARTS
from metastore.methods.forms.entry import ALL
from metastore.methods.interface.errors import EXCEPTIONS
from metastore.methods.operations.queries import QUERIES
from metastore.store.core.figures import LEVELS, TOTALS, Figure

SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Upper bounds of the histogram's buckets in seconds; one more bucket has no bound."""
OTHER = "other"
"""The name for methods that the interface lacks, and for errors that are not ours: clients and libraries choose their names."""
METHODS = (*sorted(ALL), *sorted(QUERIES), OTHER)
OUTCOMES = ("ok", *sorted({cls.__name__ for cls in EXCEPTIONS} | {"PermissionDenied", "MissingArgument", "TApplicationException"}), OTHER)
TRANSPORTS = ("plain", "tls", "sasl", "http")
MECHANISMS = ("anonymous", "kerberos", "token", "ldap", "users", "jwt", "certificate", OTHER)
RESULTS = ("ok", "refused")

_WIDTH = len(SECONDS) + 2
"""Cells of a histogram: the buckets, then the sum of the seconds."""
_CELLS = struct.Struct(f"={_WIDTH}d")
_EMPTY = bytes(_CELLS.size)
_CALLS = {pair: at * _WIDTH for at, pair in enumerate(product(METHODS, OUTCOMES))}
_WELL = {method: at for (method, outcome), at in _CALLS.items() if outcome == "ok"}
_SHORT = SECONDS[0]
_PARTS = {method: len(_CALLS) * _WIDTH + at * len(PARTS) * _WIDTH for at, method in enumerate(METHODS)}
"""The first cell of the histograms of a method's parts, by method."""
_RECEIVED = (len(_CALLS) + len(_PARTS) * len(PARTS)) * _WIDTH
_SENT = _RECEIVED + 1
_LOGINS = {pair: _SENT + 1 + at for at, pair in enumerate(product(MECHANISMS, RESULTS))}
_OPEN = {pair: _SENT + 1 + len(_LOGINS) + at for at, pair in enumerate(product(TRANSPORTS, MECHANISMS))}
_SLOW = _SENT + 1 + len(_LOGINS) + len(_OPEN)
_NOT_ACCEPTED = _SLOW + 1
_TOTALS = _NOT_ACCEPTED + 1
_LEVELS = _TOTALS + len(TOTALS)
_SIZE = _LEVELS + len(LEVELS)


class Histogram(NamedTuple):
    """The times of one method's calls with one outcome, or one part of the times of its calls that have this part."""

    method: str
    outcome: str
    """The outcome, or the name of the part."""
    buckets: tuple[int, ...]
    """The number of calls in each bucket, without the lower buckets."""
    seconds: float


class Counts:
    """The counts of some processes. The memory of all cells is reserved, but taken only where something is counted."""

    def __init__(self, parts: int = 1) -> None:
        self._cells = memoryview(mmap.mmap(-1, parts * _SIZE * 8)).cast("d")
        self._parts = parts
        self.take(0)

    def take(self, part: int) -> None:
        """Count into a part from now on."""
        self._base = part * _SIZE
        self._published: Sequence[float] = (0.0,) * len(TOTALS)
        self._lock = threading.Lock()  # another thread may have held it at the fork

    def close_connections(self, part: int) -> None:
        """Note that the process of a part has died, and that none of its connections is open."""
        for at in (*_OPEN.values(), *range(_LEVELS, _SIZE)):
            self._cells[part * _SIZE + at] = 0.0

    def call(self, method: str, outcome: str, seconds: float, parts: Sequence[float], received: int, sent: int) -> None:
        """Count an answered call, the parts of its time (in the order of `PARTS`) and the bytes of its messages."""
        at = _WELL.get(method) if outcome == "ok" else _CALLS.get((method, outcome))
        if at is None:
            at = _CALLS[method if method in ALL else OTHER, outcome if outcome in OUTCOMES else OTHER]
        cells, base = self._cells, self._base
        at += base
        part_at = base + _PARTS.get(method, _PARTS[OTHER])
        with self._lock:
            cells[at if seconds <= _SHORT else at + bisect_left(SECONDS, seconds)] += 1.0
            cells[at + _WIDTH - 1] += seconds
            for took in parts:
                if took:
                    cells[part_at if took <= _SHORT else part_at + bisect_left(SECONDS, took)] += 1.0
                    cells[part_at + _WIDTH - 1] += took
                part_at += _WIDTH
            cells[base + _RECEIVED] += received
            cells[base + _SENT] += sent

    def connection(self, transport: str, mechanism: str, change: int) -> None:
        """Count a connection that begins to send calls (1) or ends (-1)."""
        with self._lock:
            self._cells[self._base + _OPEN[transport, mechanism if mechanism in MECHANISMS else OTHER]] += change

    def login(self, mechanism: str, result: str) -> None:
        """Count a login: "ok" or "refused"."""
        with self._lock:
            self._cells[self._base + _LOGINS[mechanism if mechanism in MECHANISMS else OTHER, result]] += 1.0

    def slow_call(self) -> None:
        """Count a slow call."""
        with self._lock:
            self._cells[self._base + _SLOW] += 1.0

    def not_accepted(self) -> None:
        """Count a connection that could not be accepted, for lack of descriptors or memory."""
        with self._lock:
            self._cells[self._base + _NOT_ACCEPTED] += 1.0

    def publish(self, totals: Sequence[float], levels: Sequence[float]) -> None:
        """Write this process's figures of `store.core.figures`. Its totals begin at the last totals of its predecessor."""
        with self._lock:
            for at, (value, before) in enumerate(zip(totals, self._published, strict=True), self._base + _TOTALS):
                self._cells[at] += value - before
            self._published = totals
            for at, value in enumerate(levels, self._base + _LEVELS):
                self._cells[at] = value

    def _sum(self, at: int) -> float:
        return sum(self._cells[part * _SIZE + at] for part in range(self._parts))

    def calls(self) -> Iterator[Histogram]:
        """Yield the histograms of the called methods."""
        yield from self._histograms(_CALLS.items())

    def parts(self) -> Iterator[Histogram]:
        """Yield the histograms of the parts of the called methods' time."""
        yield from self._histograms(
            ((method, part), at + number * _WIDTH) for method, at in _PARTS.items() for number, part in enumerate(PARTS)
        )

    def _histograms(self, places: Iterable[tuple[tuple[str, str], int]]) -> Iterator[Histogram]:
        memory = [self._cells[part * _SIZE : part * _SIZE + _RECEIVED].tobytes() for part in range(self._parts)]
        for (method, outcome), at in places:
            found = [cells for each in memory if (cells := each[at * 8 : (at + _WIDTH) * 8]) != _EMPTY]
            if found:
                *buckets, seconds = map(sum, zip(*(_CELLS.unpack(cells) for cells in found), strict=True))
                yield Histogram(method, outcome, tuple(map(int, buckets)), seconds)

    def by_method(self) -> dict[str, int]:
        """Return the number of calls of each method that was called."""
        found: dict[str, int] = {}
        for each in self.calls():
            found[each.method] = found.get(each.method, 0) + sum(each.buckets)
        return found

    @property
    def slow_calls(self) -> int:
        """The number of slow calls."""
        return int(self._sum(_SLOW))

    @property
    def accept_failures(self) -> int:
        """The number of connections that could not be accepted, for lack of descriptors or memory."""
        return int(self._sum(_NOT_ACCEPTED))

    def figures(self) -> dict[Figure, float]:
        """Return the figures of `store.core.figures`, of all processes together."""
        return {figure: self._sum(at) for at, figure in enumerate((*TOTALS, *LEVELS), _TOTALS)}

    @property
    def received(self) -> int:
        """Bytes of requests."""
        return int(self._sum(_RECEIVED))

    @property
    def sent(self) -> int:
        """Bytes of replies."""
        return int(self._sum(_SENT))

    def logins(self) -> dict[tuple[str, ...], int]:
        """Return the logins by mechanism and result."""
        return {pair: number for pair, at in _LOGINS.items() if (number := int(self._sum(at)))}

    def connections(self) -> dict[tuple[str, ...], int]:
        """Return the open connections by transport and mechanism."""
        return {pair: int(self._sum(at)) for pair, at in _OPEN.items()}
