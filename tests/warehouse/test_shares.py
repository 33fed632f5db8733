"""Work on many directories is divided among threads where that is faster. After an error no thread continues."""

from __future__ import annotations

import errno
import os
import threading
import time
from pathlib import Path

import pytest

from metastore.errors import MetaError
from metastore.warehouse import MadeDirectories, Warehouse
from metastore.warehouse.shares import SAMPLE, Shares

PAUSE = 0.001


def threads_of(shares: Shares, seconds: float, items: int) -> int:
    """Return the number of threads that worked on items, each of which waits for some seconds."""
    seen: set[int] = set()

    def work(item: int) -> int:
        seen.add(threading.get_ident())
        if seconds:
            time.sleep(seconds)
        return -item

    assert shares.each_local(work, range(items)) == [-item for item in range(items)]
    return len(seen - {threading.get_ident()})


def test_slow_calls_get_more_threads_and_fast_ones_none() -> None:
    assert max(threads_of(Shares(4), PAUSE, 100) for _ in range(5)) == 4  # several tries: a busy machine may be slow to start threads
    assert min(threads_of(Shares(4), 0, 100) for _ in range(20)) == 0  # several tries: on a busy machine a fast call may be slow
    assert threads_of(Shares(1), PAUSE, 20) == 0
    assert threads_of(Shares(4), PAUSE, SAMPLE) == 0


@pytest.mark.parametrize("items", [0, 1, 2, 50])
def test_each_request_that_crosses_a_network_is_its_own_share(items: int) -> None:
    assert Shares(4).each(lambda item: item * 2, range(items)) == [item * 2 for item in range(items)]


def test_after_an_error_nothing_is_begun_and_nothing_goes_on() -> None:
    begun: list[int] = []

    def work(item: int) -> None:
        begun.append(item)
        time.sleep(PAUSE)
        if item == SAMPLE:
            raise MetaError("no")

    with pytest.raises(MetaError, match="no"):
        Shares(4).each_local(work, range(200))
    count = len(begun)
    time.sleep(PAUSE * 20)
    assert len(begun) == count < 50


def test_of_many_directories_that_are_made_at_once_none_stays_when_one_can_not_be_made(
    local: Warehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.mkdir

    def mkdir(path: str, mode: int = 0o777) -> None:
        time.sleep(PAUSE)
        if path.endswith("/p=57"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
        real(path, mode)

    monkeypatch.setattr(os, "mkdir", mkdir)
    with pytest.raises(MetaError, match=r"p=57 .*No space left"), MadeDirectories(local, None, ()) as made:
        made.make([f"{local.root}/t/p={number}" for number in range(400)])
    time.sleep(PAUSE * 20)
    assert list((tmp_path / "wh").iterdir()) == []
