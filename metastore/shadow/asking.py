"""The process beside the proxy: it asks the secondary the calls that the primary has answered, and compares the replies.

It holds up no client. The proxy offers each exchange. A limited number of them may wait; further ones are counted and left out.
"""

from __future__ import annotations

import multiprocessing
import queue
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import IO, Any, NamedTuple

from thriftpy2.thrift import TApplicationException, TMessageType

from metastore import log
from metastore.methods.interface.signatures import signature
from metastore.shadow import agreement
from metastore.shadow.agreement import Agreement
from metastore.shadow.comparing import differences, is_unknown
from metastore.shadow.upstream import FAILURES, LIMITS, NAMES_USER, Caller, Line, Upstream
from metastore.wire.messages.protocol import Dialect, read_message
from metastore.wire.sockets.transport import frame_feed

LANES = 8
"""The number of threads that ask. One thread makes all calls of a client."""
MOST = 2000
MOST_BYTES = 256 << 20
"""The largest number of exchanges that wait, and of their bytes."""
TICK = 1.0
"""Seconds between two checks that the proxy still runs."""
PATIENCE = 10.0
"""Seconds at the end in which waiting calls are still asked."""
_WITHOUT_FRAME = {protocol: Dialect(protocol, framed=False) for protocol in ("binary", "compact")}


class Exchange(NamedTuple):
    """A call and the primary's answer, without frames; `client` is the number of the connection."""

    client: int
    caller: Caller
    dialect: Dialect
    method: str
    request: bytes
    reply: bytes
    other: bytes | None = None
    """The secondary's answer, empty where it gave none; None where it has not been asked yet."""


def _size(each: Exchange) -> int:
    return len(each.request) + len(each.reply) + len(each.other or b"")


class Report(NamedTuple):
    """The way in which counts are shown: the seconds between two times (0: at the end alone), and the function that shows them."""

    every: float
    show: Callable[[dict[str, dict[str, int]]], None]


class Beside:
    """The proxy's side of the process. Make it before any thread; several threads may call `offer`."""

    def __init__(self, secondary: Upstream, log_file: IO[str] | None, to_json: Callable[[Any], Any], report: Report) -> None:
        context = multiprocessing.get_context("fork")
        self._queue: Any = context.Queue()
        self._waiting, self._bytes = context.Value("q", 0), context.Value("q", 0)
        self._dropped: Counter[str] = Counter()
        self._sent = 0
        self._lock = threading.Lock()
        target = _Asking(self._queue, self._done, secondary, Agreement(log_file, to_json), report)
        self._process = context.Process(target=target.run, daemon=True)
        self._process.start()

    def _done(self, size: int) -> None:
        for value, number in ((self._waiting, 1), (self._bytes, size)):
            with value.get_lock():
                value.value -= number

    def offer(self, each: Exchange) -> None:
        """Queue an exchange to be compared. It is counted as dropped if there is no room for it, or the process has ended."""
        size = _size(each)
        with self._lock:
            if self._waiting.value >= MOST or self._bytes.value + size > MOST_BYTES or not self._process.is_alive():
                self._dropped[each.method] += 1
                return
            for value, number in ((self._waiting, 1), (self._bytes, size)):
                with value.get_lock():
                    value.value += number
        self._queue.put(each)

    def left(self, client: int) -> None:
        """Close the secondary's connection for a client that has left."""
        self._queue.put(client)

    def send_dropped(self) -> None:
        """Send the numbers of exchanges that were left out, if they have changed. Call it every second."""
        with self._lock:
            number, dropped = self._dropped.total(), dict(self._dropped)
        if number != self._sent:
            self._sent = number
            self._queue.put(dropped)

    def end(self) -> None:
        """End the process, after it has asked waiting calls for some seconds and has shown the counts."""
        self.send_dropped()
        self._queue.put(None)
        self._process.join(2 * PATIENCE)
        if self._process.is_alive():
            self._process.kill()
        self._queue.cancel_join_thread()


class _Asking:
    """The process itself: it takes exchanges off the queue and gives each to the lane of its client."""

    def __init__(
        self, given: Any, done: Callable[[int], None], secondary: Upstream, counts: Agreement, report: Report,
    ) -> None:  # fmt: skip
        self._given, self._done = given, done
        self._secondary = secondary
        self._counts = counts
        self._report = report

    def run(self) -> None:
        """Pass exchanges on until the queue has None, or the proxy has ended."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)  # the proxy sends None at its end
        lanes = [_Lane(self._secondary, self._counts, self._done) for _ in range(LANES)]  # not before the fork, which would end them
        for lane in lanes:
            lane.start()
        every = self._report.every
        shown = time.monotonic()
        proxy = multiprocessing.parent_process()
        while proxy is not None and proxy.is_alive():  # a killed proxy sends no None
            if every and time.monotonic() >= shown + every:
                shown = time.monotonic()
                self._report.show(self._counts.counts())
            try:
                each = self._given.get(timeout=min(TICK, every or TICK))
            except queue.Empty:
                continue
            if each is None:
                break
            if isinstance(each, dict):
                self._counts.set_dropped(each)
            else:
                lanes[(each if isinstance(each, int) else each.client) % LANES].given.put(each)
        for lane in lanes:
            lane.given.put(None)
        until = time.monotonic() + PATIENCE
        for lane in lanes:
            lane.join(max(0.0, until - time.monotonic()))
        self._report.show(self._counts.counts())


class _Lane(threading.Thread):
    """A thread that asks the calls of some clients, one after the other."""

    def __init__(self, secondary: Upstream, counts: Agreement, done: Callable[[int], None]) -> None:
        super().__init__(daemon=True)
        self.given: queue.SimpleQueue[Exchange | int | None] = queue.SimpleQueue()
        self._secondary = secondary
        self._counts = counts
        self._done = done
        self._lines: dict[int, Line] = {}
        self._named: dict[int, str] = {}
        """Users that clients without a login have named, by the number of the client's connection."""
        self._log = log.get("metastore.shadow")

    def run(self) -> None:
        """Ask until the queue has None."""
        while (each := self.given.get()) is not None:
            if isinstance(each, int):
                self._named.pop(each, None)
                if each in self._lines:
                    self._lines.pop(each).close()
                continue
            try:
                self._compare(each)
            except Exception as error:  # noqa: BLE001  # one call's trouble must not end the lane
                self._log.error("reply not compared", method=each.method, exc_info=error)
                self._counts.count(each.method, agreement.UNREAD)
            finally:
                self._done(_size(each))

    def _compare(self, each: Exchange) -> None:
        called = signature(each.method)

        def choose(_: str, kind: int) -> Any:
            return TApplicationException if kind == TMessageType.EXCEPTION else called.result

        plain = _WITHOUT_FRAME[each.dialect.protocol]
        try:
            one = read_message(frame_feed(each.reply), plain, LIMITS, choose).body
        except FAILURES as error:
            self._log.warning("reply can not be read", method=each.method, reason=str(error)[:300])
            self._counts.count(each.method, agreement.UNREAD)
            return
        if is_unknown(one):
            self._counts.count(each.method, agreement.UNKNOWN)
            return
        if each.method == NAMES_USER:
            self._named[each.client] = self._arguments(each).user_name
        try:
            other = self._answer_of_secondary(each, choose)
        except FAILURES as error:
            self._log.debug("the secondary did not answer", method=each.method, reason=str(error))
            self._counts.count(each.method, agreement.UNANSWERED)
            return
        found = differences(each.method, one, other, same_numbers=each.other is not None)
        if not found:
            self._counts.count(each.method, agreement.SAME)
            return
        self._counts.differ(each.method, each.caller.user or self._named.get(each.client), self._arguments(each), found)

    def _arguments(self, each: Exchange) -> Any:
        called = signature(each.method)
        return read_message(frame_feed(each.request), _WITHOUT_FRAME[each.dialect.protocol], LIMITS, lambda *_: called.args).body

    def _answer_of_secondary(self, each: Exchange, choose: Any) -> Any:
        if each.other is not None:
            return read_message(frame_feed(each.other), _WITHOUT_FRAME[each.dialect.protocol], LIMITS, choose).body
        line = self._lines.setdefault(each.client, Line(self._secondary))
        return line.ask(each.dialect, each.caller, each.method, each.request, choose).body
