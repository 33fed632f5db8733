"""Structs of a list that have nothing but the same numbers are passed over at once, and end where a walk over each would end."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metastore.binary import to_bytes
from metastore.idl import AllocateTableWriteIdsResponse, TxnToWriteId, service
from metastore.wire import outline
from metastore.wire.outline import Outline
from metastore.wire.transport import EndOfStream, Feed, Malformed, TooLarge

RESULT = service.allocate_table_write_ids_result


def message(pairs: list[TxnToWriteId]) -> bytes:
    return to_bytes(RESULT(success=AllocateTableWriteIdsResponse(txnToWriteIds=pairs)))


def walk(data: bytes, piece: int, limit: int = 1 << 20) -> object:
    """Return where the walk ends, or what is wrong."""
    pieces = iter([data[at : at + piece] for at in range(0, len(data), piece)])
    try:
        return Outline(Feed(lambda _: next(pieces, b"")), limit, 10_000).end(0, RESULT)
    except (Malformed, TooLarge, EndOfStream) as error:
        return type(error)


def walked_singly(data: bytes, piece: int, **how: int) -> object:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(outline, "LEAST_ALIKE", 1 << 30)
        return walk(data, piece, **how)


ALL = message([TxnToWriteId(txnId=number, writeId=2**40 + number) for number in range(100)])


def test_none_is_walked_over_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    structs: list[int] = []
    walk_struct = Outline._struct

    def counted(self: Outline, at: int, specs: Any, depth: int) -> int:
        structs.append(at)
        return walk_struct(self, at, specs, depth)

    monkeypatch.setattr(Outline, "_struct", counted)
    assert walk(ALL, 1 << 20) == len(ALL)
    assert len(structs) == 2  # the result and the response


PAIRS = st.builds(TxnToWriteId, st.integers(0, 2**63 - 1), st.none() | st.integers(0, 5))


@given(st.lists(PAIRS, max_size=12), st.sampled_from((1, 40, 5000)))
def test_any_end_where_they_end(pairs: list[TxnToWriteId], piece: int) -> None:
    data = message(pairs)
    assert walk(data, piece) == len(data)


@given(st.lists(st.tuples(st.integers(0, len(ALL) - 1), st.integers(0, 255)), min_size=1, max_size=3), st.sampled_from((50, 100_000)))
def test_wrong_bytes_are_seen_all_the_same(changes: list[tuple[int, int]], piece: int) -> None:
    changed = bytearray(ALL)
    for at, byte in changes:
        changed[at] = byte
    assert walk(bytes(changed), piece) == walked_singly(bytes(changed), piece)


@pytest.mark.parametrize("at", range(0, len(ALL), 97))
@pytest.mark.parametrize("piece", [30, 1 << 20])
def test_a_message_that_is_cut_or_too_long_is_refused(at: int, piece: int) -> None:
    assert walk(ALL[:at], piece) == walked_singly(ALL[:at], piece) == EndOfStream
    assert walk(ALL, piece, limit=at) == walked_singly(ALL, piece, limit=at)
