"""Tokens are read and written as Hadoop's Writables; other bytes are refused in words."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metastore.errors import InvalidInput
from metastore.rules.accounts.delegation_tokens import DelegationToken, Identifier, read_identifier, read_token, read_token_file

NAMES = st.text(max_size=200)
LONGS = st.integers(-(2**63), 2**63 - 1)
IDENTIFIER = Identifier("alice", "hive", "", 1700000000000, 1700604800000, 7, 3)
WRITTEN = bytes.fromhex("00 05 616c696365 04 68697665 00 8a 018bcfe56800 8a 018bf3f1ec00 07 03")


def test_an_identifier_has_hadoops_bytes() -> None:
    assert IDENTIFIER.to_bytes() == WRITTEN
    assert read_identifier(WRITTEN) == IDENTIFIER


def test_a_token_has_hadoops_text() -> None:
    token = DelegationToken(WRITTEN, b"pw", "K", "s")
    assert token.to_text() == "HQAFYWxpY2UEaGl2ZQCKAYvP5WgAigGL8_HsAAcDAnB3AUsBcw"
    assert read_token(token.to_text()) == token


@given(st.builds(Identifier, NAMES, NAMES, NAMES, LONGS, LONGS, LONGS, LONGS))
def test_every_identifier_comes_back(identifier: Identifier) -> None:
    assert read_identifier(identifier.to_bytes()) == identifier


@given(st.builds(DelegationToken, st.binary(max_size=300), st.binary(max_size=300), NAMES, NAMES))
def test_every_token_comes_back(token: DelegationToken) -> None:
    text = token.to_text()
    assert read_token(text) == token
    assert read_token(f" {text}\n") == token
    assert read_token(text.replace("-", "+").replace("_", "/") + "=" * (-len(text) % 4)) == token


@given(st.binary(max_size=60))
def test_other_bytes_are_refused(data: bytes) -> None:
    for read in (read_identifier, lambda data: read_token(base64.b64encode(data).decode()), lambda data: read_token_file(b"HDTS\0" + data)):
        try:
            read(data)
        except InvalidInput:
            continue


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "ends too early"),
        ("!", "is base64"),
        ("A" * 200_000, "too long"),
        (base64.b64encode(b"\x8c" + b"\xff" * 8).decode(), "has .* bytes"),
    ],
)
def test_another_text_is_no_token(text: str, reason: str) -> None:
    with pytest.raises(InvalidInput, match=reason):
        read_token(text)


def test_an_unknown_version_is_refused() -> None:
    with pytest.raises(InvalidInput, match="has a version that is not known"):
        read_identifier(b"\x01" + WRITTEN[1:])


def test_a_file_has_tokens_with_aliases() -> None:
    first, second = DelegationToken(b"a", b"b", "K", "s"), DelegationToken(b"c", b"d")
    raw = [base64.urlsafe_b64decode(token.to_text() + "==") for token in (first, second)]
    assert read_token_file(b"HDTS\0\x02\x01x" + raw[0] + b"\x01y" + raw[1] + b"\0") == [first, second]


@pytest.mark.parametrize("data", [b"", b"HDTS", b"HDTS\1\x0a", b"PK\3\4"])
def test_another_file_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidInput, match="not a file of Hadoop's tokens"):
        read_token_file(data)
