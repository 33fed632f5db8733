"""SASL's framing: messages in pieces, too long, or out of order."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metastore.service.call.identity import Login
from metastore.wire.auth.negotiation import (
    BAD,
    COMPLETE,
    MAX_LOGIN_MESSAGE,
    MAX_LOGIN_STEPS,
    OK,
    START,
    Frames,
    login_message,
    negotiate,
    read_login_message,
)
from metastore.wire.auth.sasl import ClientRefused, LoginDone, Mechanism
from metastore.wire.sockets.transport import EndOfStream, Feed, Malformed, frame_feed

LOGIN = Login("ann", "users")


class Steps:
    """A mechanism that completes after a number of steps."""

    def __init__(self, number: int) -> None:
        self.left = number
        self.seen: list[bytes] = []

    def step(self, response: bytes) -> bytes | LoginDone:
        self.seen.append(response)
        self.left -= 1
        return b"more" if self.left else LoginDone(LOGIN, b"last")


class Turning:
    """A layer that turns bytes around."""

    max_size = 3

    def wrap(self, data: bytes) -> bytes:
        assert len(data) <= self.max_size
        return data[::-1]

    def unwrap(self, data: bytes) -> bytes:
        return data[::-1]


def talk(sent: bytes, choose: Callable[[str], Mechanism]) -> tuple[object, list[tuple[int, bytes]]]:
    """Return the result of a negotiation, or its error, and the server's messages."""
    out: list[bytes] = []
    try:
        result: object = negotiate(frame_feed(sent), out.append, choose)
    except (ClientRefused, Malformed, EndOfStream) as error:
        result = error
    return result, [read_login_message(frame_feed(each)) for each in out]


@pytest.mark.parametrize("steps", [1, 3])
def test_a_login_of_several_steps_ends_with_complete(steps: int) -> None:
    mechanism = Steps(steps)
    sent = login_message(START, b"X") + b"".join(login_message(OK, bytes((at,))) for at in range(steps))
    done, answers = talk(sent, lambda name: mechanism)
    assert isinstance(done, LoginDone)
    assert done.login == LOGIN
    assert answers == [*[(OK, b"more")] * (steps - 1), (COMPLETE, b"last")]
    assert mechanism.seen == [bytes((at,)) for at in range(steps)]


def refuse(name: str) -> Mechanism:
    raise ClientRefused(f"no {name}")


@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        (login_message(START, b"X") + login_message(OK), "no X"),
        (login_message(OK, b"X"), "begins with status 2"),
        (login_message(START, b"\xff\xfe") + login_message(OK), "no "),
    ],
)
def test_a_refused_login_is_answered_with_the_reason(sent: bytes, reason: str) -> None:
    error, answers = talk(sent, refuse)
    assert isinstance(error, ClientRefused)
    assert reason in str(error)
    assert [status for status, _ in answers] == [BAD]
    assert reason in answers[0][1].decode()


def test_a_client_that_breaks_off_or_never_ends_is_refused() -> None:
    error, _ = talk(login_message(START, b"X") + login_message(BAD, b"changed my mind"), lambda _: Steps(9))
    assert "changed my mind" in str(error)
    error, _ = talk(login_message(START, b"X") + login_message(OK) * 100, lambda _: Steps(1000))
    assert f"more than {MAX_LOGIN_STEPS} steps" in str(error)


def test_a_long_message_is_not_waited_for() -> None:
    error, answers = talk(b"\x01" + (MAX_LOGIN_MESSAGE + 1).to_bytes(4, "big"), refuse)
    assert isinstance(error, Malformed)
    assert not answers


@given(st.binary(max_size=300))
def test_any_bytes_end_the_negotiation(sent: bytes) -> None:
    result, answers = talk(sent, lambda _: Steps(2))
    assert isinstance(result, LoginDone | ClientRefused | Malformed | EndOfStream)
    assert len(answers) <= MAX_LOGIN_STEPS + 1


@given(st.lists(st.binary(max_size=50), max_size=10), st.integers(1, 20), st.booleans())
def test_frames_carry_bytes_as_they_are(parts: list[bytes], size: int, layered: bool) -> None:
    layer = Turning() if layered else None
    sender = Frames(frame_feed(b""), layer, 1000)
    stream = b"".join(map(sender.wrap, parts))
    receiver = Frames(frame_feed(stream), layer, 1000)
    out = b""
    while part := receiver.receive(size):
        assert len(part) <= size
        out += part
    assert out == b"".join(parts)


def test_frames_that_are_too_long_or_cut_are_errors() -> None:
    with pytest.raises(Malformed, match="max_message_size"):
        Frames(frame_feed((1001).to_bytes(4, "big")), None, 1000).receive(10)
    cut = Frames(frame_feed(b"\0\0\0\x05ab"), None, 1000)
    assert cut.receive(10) == b"ab"
    with pytest.raises(EndOfStream):
        cut.receive(10)
    with pytest.raises(EndOfStream):
        Frames(Feed(lambda _: b"", b"\0\0"), None, 1000).receive(10)
