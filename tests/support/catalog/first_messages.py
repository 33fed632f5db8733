"""Decode the first messages of a process in many threads at once, the same ones in each. Wrong results go to standard output."""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from random import Random
from threading import Barrier
from typing import Any

from metastore.wire import codec
from metastore.wire.sockets.transport import Feed
from tests.support.catalog.messages import CLASSES, encoded, random_struct

THREADS = 8


def read(start: Callable[[], object], messages: list[tuple[bytes, type[Any]]]) -> list[str]:
    """Return the messages that one thread has decoded, as text; all threads begin at the same time."""
    start()
    found = []
    for data, cls in messages:
        try:
            reading = codec.DECODERS["binary"](Feed(lambda _: b"", data), len(data), len(data))
            found.append(repr(reading.read(lambda *_, cls=cls: cls)))
        except Exception as error:  # noqa: BLE001  # reported in place of the message
            found.append(repr(error))
    return found


def main(seed: int) -> None:
    """Print the classes whose messages were not read as they were written."""
    random = Random(seed)
    bodies = [random_struct(random, cls) for cls in random.sample(CLASSES, len(CLASSES))]
    messages = [(encoded("name", 1, 0, body), type(body)) for body in bodies]
    expected = [repr(body) for body in bodies]
    sys.setswitchinterval(1e-6)
    barrier = Barrier(THREADS)
    with ThreadPoolExecutor(THREADS) as pool:
        for found in pool.map(partial(read, barrier.wait), [messages] * THREADS):
            for body, wanted, got in zip(bodies, expected, found, strict=True):
                if wanted != got:
                    print(type(body).__name__)  # noqa: T201


if __name__ == "__main__":
    main(int(sys.argv[1]))
