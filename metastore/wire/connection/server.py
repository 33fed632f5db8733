"""Run the worker processes: open the port, fork, replace those that die, drain on SIGTERM.

This module never serves a call itself.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import TracebackType

from metastore import log
from metastore.methods import METHODS, Method
from metastore.service.call.context import Metastore
from metastore.telemetry.telemetry import Telemetry
from metastore.wire.connection.worker import Worker, listen
from metastore.wire.sockets.settings import WireSettings
from metastore.wire.sockets.signals import ASKING, listen_alone, print_stacks, switch_log
from metastore.wire.sockets.tls import certificates

_FAILED_TO_START = 3
_SHORT_LIFE = 10.0
"""The shortest normal life of a worker, in seconds: after shorter ones the delay of its successor grows up to `_LONGEST_DELAY`."""
_LONGEST_DELAY = 10.0
_FORK_DELAY = 1.0
"""Seconds until the next try to start a worker, after the system had no process for it."""


@dataclass(frozen=True)
class Death:
    """The end of a process beside the server: its id, its exit status (negative: the signal), and seconds until a new one takes work."""

    pid: int
    status: int
    delay: float

    @property
    def reason(self) -> str:
        """The exit status or the signal as text."""
        if self.status >= 0:
            return f"ended with status {self.status}"
        return f"killed by signal {-self.status}" + (" (out of memory?)" if self.status == -signal.SIGKILL else "")


@dataclass(frozen=True)
class Beside:
    """Processes that work beside the server: their number, and the function of each. It gets the end of its predecessor and returns an exit
    status.
    """

    count: int
    run: Callable[[Death | None], int]


class Supervisor:
    """Serves with `settings.workers` processes. Make it before any thread or database connection exists."""

    def __init__(
        self,
        settings: WireSettings,
        make_metastore: Callable[[], Metastore],
        *,
        methods: Mapping[str, Method] = METHODS,
        ready: Callable[[str, int], None] | None = None,
        on_worker_death: Callable[[int], None] | None = None,
        close_metastore: Callable[[Metastore], None] | None = None,
        beside: Beside | None = None,
    ) -> None:
        """`make_metastore` runs in each worker after the fork. `ready` gets the address once all workers serve;
        `on_worker_death` the process id of one that died before it is replaced (both run in the supervisor).
        """
        self._settings = settings
        self._make_metastore = make_metastore
        self._methods = methods
        self._ready = ready
        self._on_worker_death = on_worker_death
        self._close_metastore = close_metastore
        self._workers: dict[int, float] = {}
        """When each process was started, by its id."""
        self._parts: dict[int, int] = {}
        """The part of the telemetry that each process has, by its id."""
        self._telemetry = Telemetry(settings.workers, settings.slow_call_threshold)
        self._due: list[float] = []
        self._deaths = 0
        self._beside = beside
        self._helpers: dict[int, float] = {}
        """When each process beside the server was started, by its id."""
        self._due_helpers: list[tuple[float, Death | None]] = []
        self._helper_deaths = 0
        self._stop_signals = 0
        self._log = log.get("metastore.supervisor")

    def run(self) -> int:
        """Serve until SIGTERM or SIGINT and return the exit status: 0 after a drain, 1 if no worker could start.

        Raises OSError if the port is taken or the certificate unreadable. Must run in the main thread.
        """
        self._tls = certificates(self._settings)
        self._sockets = listen(self._settings)
        self._alive_read, self._alive_write = os.pipe()
        self._ready_read, self._ready_write = os.pipe()
        wake, waker = socket.socketpair()
        wake.setblocking(False)
        waker.setblocking(False)
        before = {
            number: signal.signal(number, handler)
            for number, handler in (
                (signal.SIGTERM, self._on_stop), (signal.SIGINT, self._on_stop), (signal.SIGCHLD, lambda *_: None),
                (signal.SIGUSR1, lambda *_: print_stacks((*self._workers, *self._helpers))), (signal.SIGUSR2, lambda *_: switch_log()),
            )
        }  # fmt: skip
        self._inherited = (wake, waker, before)
        previous = signal.set_wakeup_fd(waker.fileno(), warn_on_full_buffer=False)
        try:
            with selectors.DefaultSelector() as selector:
                selector.register(wake, selectors.EVENT_READ)
                selector.register(self._ready_read, selectors.EVENT_READ)
                return self._supervise(selector, wake)
        finally:
            signal.set_wakeup_fd(previous)
            for number, handler in before.items():
                signal.signal(number, handler)
            for end in (wake, waker, self._sockets):
                end.close()
            for descriptor in (self._alive_read, self._alive_write, self._ready_read, self._ready_write):
                os.close(descriptor)

    def _supervise(self, selector: selectors.BaseSelector, wake: socket.socket) -> int:
        waiting = self._settings.workers
        announced = False
        for _ in range(self._settings.workers):
            self._fork()
        while not self._stop_signals:
            due_at = [*self._due, *(at for at, _ in self._due_helpers)]
            timeout = max(0.0, min(due_at) - time.monotonic()) if due_at else None
            for key, _ in selector.select(timeout):
                if key.fileobj is wake:
                    with contextlib.suppress(BlockingIOError):
                        wake.recv(4096)
                else:
                    waiting -= len(os.read(self._ready_read, 4096))
            if waiting <= 0 and not announced:
                announced = True
                if self._ready is not None:
                    host, port = self._sockets.thrift.getsockname()[:2]
                    self._ready(host, port)
                self._due_helpers = [(0.0, None)] * (self._beside.count if self._beside is not None else 0)
            for status in self._reap():
                if not announced and status == _FAILED_TO_START:
                    self._terminate()
                    return 1
            now = time.monotonic()
            due = [at for at in self._due if at <= now]
            self._due = [at for at in self._due if at > now]
            for _ in due:
                self._fork()
            self._reap_helpers()
            ready = [each for each in self._due_helpers if each[0] <= now]
            self._due_helpers = [each for each in self._due_helpers if each[0] > now]
            for _, before in ready:
                self._fork_helper(before)
        self._terminate()
        return 0

    def _on_stop(self, _number: int, _frame: object) -> None:
        self._stop_signals += 1

    def _fork(self) -> None:
        part = min(set(range(self._settings.workers)) - set(self._parts.values()))

        def run() -> int:
            self._telemetry.take(part)
            return self._run_worker()

        pid = self._start(run)
        if pid is None:
            self._due.append(time.monotonic() + _FORK_DELAY)
        else:
            self._workers[pid] = time.monotonic()
            self._parts[pid] = part

    def _fork_helper(self, before: Death | None) -> None:
        beside = self._beside
        assert beside is not None

        def work() -> int:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)  # until it has begun
            self._leave_server()
            self._sockets.close()
            os.close(self._alive_read)
            os.close(self._ready_write)
            return beside.run(before)

        pid = self._start(work)
        if pid is None:
            self._due_helpers.append((time.monotonic() + _FORK_DELAY, before))
        else:
            self._helpers[pid] = time.monotonic()

    def _start(self, work: Callable[[], int]) -> int | None:
        """Run work in a process of its own, and return its id; None where the system has none."""
        sys.stdout.flush()
        sys.stderr.flush()
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, ASKING)  # until the worker has handlers of its own
        try:
            pid = os.fork()
        except OSError as error:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            self._log.error("no process for a worker, tried again", reason=str(error), delay=_FORK_DELAY)
            return None
        if pid == 0:
            status = 1
            try:
                listen_alone()
                signal.pthread_sigmask(signal.SIG_SETMASK, mask)
                status = work()
            except BaseException:  # noqa: BLE001  # a forked child must not return into its parent's code
                traceback.print_exc()
            finally:
                with contextlib.suppress(Exception):
                    sys.stdout.flush()
                    sys.stderr.flush()
                os._exit(status)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        return pid

    def _leave_server(self) -> None:
        """Release the resources that only the supervisor uses."""
        wake, waker, _ = self._inherited
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        wake.close()
        waker.close()
        os.close(self._alive_write)
        os.close(self._ready_read)

    def _run_worker(self) -> int:
        """Serve as a worker process until it ends; return the exit status."""
        stop_early = threading.Event()
        signal.signal(signal.SIGTERM, lambda *_: stop_early.set())
        self._leave_server()
        try:
            metastore = self._make_metastore()
        except Exception as error:  # noqa: BLE001 # any error is reported to the supervisor
            self._log.error("worker can not start", pid=os.getpid(), exc_info=error)
            return _FAILED_TO_START
        worker = Worker(self._sockets, self._settings, metastore, self._methods, self._tls, self._telemetry)
        signal.signal(signal.SIGTERM, lambda *_: worker.stop())
        if not stop_early.is_set():
            os.write(self._ready_write, b"\0")
            worker.run(parent=self._alive_read, watchdog=True)
        if self._close_metastore is not None:
            self._close_metastore(metastore)
        return 0

    def _reap(self) -> list[int]:
        """Collect the workers that ended, plan their successors, return their exit statuses (negative: the signal)."""
        statuses = []
        for pid, started in list(self._workers.items()):
            ended, raw = os.waitpid(pid, os.WNOHANG)
            if not ended:
                continue
            del self._workers[pid]
            self._telemetry.died(self._parts.pop(pid))
            status = os.waitstatus_to_exitcode(raw)
            statuses.append(status)
            now = time.monotonic()
            self._deaths = self._deaths + 1 if now - started < _SHORT_LIFE else 1
            delay = 0.0 if self._deaths == 1 else min(_LONGEST_DELAY, 0.1 * 2 ** min(self._deaths, 10))
            self._due.append(now + delay)
            if not self._stop_signals:
                self._log.error("worker died, replaced", pid=pid, status=status, delay=delay)
            if self._on_worker_death is not None:
                self._on_worker_death(pid)
        return statuses

    def _reap_helpers(self) -> None:
        """Collect the processes beside the server that ended, and plan their successors.

        A process that was killed gets a successor at once, to give its compaction back; the successor then pauses before it takes another.
        """
        for pid, started in list(self._helpers.items()):
            ended, raw = os.waitpid(pid, os.WNOHANG)
            if not ended:
                continue
            del self._helpers[pid]
            status = os.waitstatus_to_exitcode(raw)
            self._helper_deaths = self._helper_deaths + 1 if status and time.monotonic() - started < _SHORT_LIFE else 0
            delay = min(_LONGEST_DELAY, 0.1 * 2**self._helper_deaths) if self._helper_deaths > 1 else 0.0
            self._due_helpers.append((time.monotonic() + delay if status > 0 else 0.0, Death(pid, status, delay)))
            if status and not self._stop_signals:
                self._log.error("a process beside the server died, replaced", pid=pid, status=status)

    def _terminate(self) -> None:
        """Drain the workers; a second signal, or the end of the time to drain, kills them."""
        self._sockets.close()
        for pid in (*self._workers, *self._helpers):
            os.kill(pid, signal.SIGTERM)
        signals = self._stop_signals
        until = time.monotonic() + self._settings.drain_notice + self._settings.drain_timeout + 5
        while self._workers or self._helpers:
            if self._stop_signals > signals + 1 or time.monotonic() > until:
                for pid in (*self._workers, *self._helpers):
                    os.kill(pid, signal.SIGKILL)
                until = float("inf")
            time.sleep(0.02)
            self._reap()
            self._reap_helpers()


class ServerThread:
    """A server in a thread of this process, for tests and for programs that bring their own metastore."""

    def __init__(self, settings: WireSettings, metastore: Metastore, methods: Mapping[str, Method] = METHODS) -> None:
        tls = certificates(settings)
        self._sockets = listen(settings)
        self.host, self.port = self._sockets.thrift.getsockname()[:2]
        telemetry = Telemetry(slow_call_threshold=settings.slow_call_threshold)
        self._worker = Worker(self._sockets, settings, metastore, methods, tls, telemetry)
        self._thread = threading.Thread(target=self._worker.run, daemon=True)

    @property
    def uri(self) -> str:
        """Return the address as clients write it."""
        return f"thrift://{self.host}:{self.port}"

    def __enter__(self) -> ServerThread:  # noqa: PYI034  # Self needs Python 3.11
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()

    def stop(self) -> None:
        """Drain and end."""
        self._worker.stop()
        self._thread.join()
