"""Messages that were changed at random do no harm. `python -m tests.fuzz` searches further, by coverage."""

from __future__ import annotations

import random
import resource

import pytest

from tests.fuzz.targets import TARGETS, seeds

PARTS = (b"\0", b"\xff" * 4, b'"', b"\\", b",", b"=", b"\r\n", b"{", b"[" * 50, b"1e999", b"NaN", b"null", b"-1", b".", b" ", b"\xc3\x28")
"""Bytes on which parsers fail easily."""
MEGABYTES = 300
"""The most bytes by which the process may grow: caches of messages have bounds."""


def changed(message: bytes, luck: random.Random) -> bytes:
    """Return a message with some bytes changed, taken away, doubled, or put in."""
    out = bytearray(message)
    for _ in range(luck.choice((1, 1, 2, 3, 8))):
        at = luck.randrange(len(out) + 1)
        match luck.randrange(5):
            case 0 if at < len(out):
                out[at] = luck.randrange(256)
            case 1:
                del out[at : at + luck.choice((1, 1, 2, 4, 16, 1000))]
            case 2:
                out[at:at] = luck.choice(PARTS)
            case 3:
                out[at:at] = out[at : at + luck.choice((1, 4, 16, 64))] * luck.choice((1, 2, 50))
            case 4 if at < len(out):
                out[at] ^= 1 << luck.randrange(8)
    return bytes(out)


@pytest.mark.parametrize("number", [1000, pytest.param(100_000, marks=[pytest.mark.slow, pytest.mark.timeout(1200)])])
@pytest.mark.parametrize("name", TARGETS)
def test_changed_messages_raise_only_declared_errors(name: str, number: int) -> None:
    target, luck = TARGETS[name], random.Random(number)
    for seed in seeds(name):
        target(seed)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(number):
        message = changed(luck.choice(seeds(name)), luck)
        try:
            target(message)
        except BaseException as error:
            raise AssertionError(f"{name} raises {type(error).__name__}: {error} for {message!r}") from error
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < MEGABYTES * 1024
