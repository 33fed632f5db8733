"""Structs that are compared with an earlier one end where a walk over each would end, whatever the bytes are."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metastore.binary import to_bytes
from metastore.idl import FieldSchema, Partition, SerDeInfo, StorageDescriptor, service
from metastore.wire import outline
from metastore.wire.outline import Outline
from metastore.wire.transport import EndOfStream, Feed, Malformed, TooLarge

ARGUMENTS = service.alter_partitions_args
COLUMNS = [FieldSchema(f"column {number}", "string", "a comment") for number in range(3)]


def partition(number: int, **fields: Any) -> Partition:
    sd = StorageDescriptor(cols=COLUMNS, location=f"file:/t/k={number}", serdeInfo=SerDeInfo("s", "library", {"f": "1"}), parameters={})
    named = {"dbName": "d", "tableName": "t", "createTime": 5, "parameters": {"numFiles": str(number // 7), "x": "y"}}
    return Partition(**{"values": [str(number)], "sd": sd, **named, **fields})


def message(partitions: list[Partition]) -> bytes:
    return to_bytes(ARGUMENTS(db_name="d", tbl_name="t", new_parts=partitions))


def walk(data: bytes, piece: int = 1000, limit: int = 1 << 20) -> tuple[Any, ...]:
    """Return where the walk ends, how many descriptors it met and which bytes need not be decoded; or what is wrong."""
    pieces = iter([data[at : at + piece] for at in range(0, len(data), piece)])
    walked = Outline(Feed(lambda _: next(pieces, b"")), limit, 10_000)
    try:
        end = walked.end(0, ARGUMENTS)
    except (Malformed, TooLarge):
        return ("refused",)
    except EndOfStream:
        return ("cut short",)
    same = all(
        walked.data[begin:end] in data[:begin] and earlier < number < walked.descriptors
        for number, earlier, _, begin, end in walked.repeated
    )
    return end, walked.descriptors, walked.careful, same


def both(data: bytes, monkeypatch: pytest.MonkeyPatch, **how: int) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Walk with and without comparing."""
    compared = walk(data, **how)
    with monkeypatch.context() as patch:
        patch.setattr(outline, "LEAST_ALIKE", 1 << 30)
        return compared, walk(data, **how)


def structs_walked(data: bytes, monkeypatch: pytest.MonkeyPatch, piece: int = 1 << 20) -> int:
    count = 0
    value = Outline._value

    def counted(self: Outline, ttype: int, at: int, spec: Any, depth: int) -> int:
        nonlocal count
        count += spec is Partition
        return value(self, ttype, at, spec, depth)

    with monkeypatch.context() as patch:
        patch.setattr(Outline, "_value", counted)
        assert walk(data, piece)[:2] == (len(data), 100)
    return count


def test_partitions_that_differ_in_texts_are_walked_over_once(monkeypatch: pytest.MonkeyPatch) -> None:
    assert structs_walked(message([partition(number) for number in range(100)]), monkeypatch) == 1


def test_partitions_that_come_in_pieces_are_walked_over_once(monkeypatch: pytest.MonkeyPatch) -> None:
    assert structs_walked(message([partition(number) for number in range(100)]), monkeypatch, piece=300) == 1


def test_of_other_partitions_only_the_first_ones_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    odd = [partition(number, parameters={str(each): "v" for each in range(number)}) for number in range(100)]
    assert structs_walked(message(odd), monkeypatch) == 100


def test_a_run_of_others_is_compared_with_its_own_first(monkeypatch: pytest.MonkeyPatch) -> None:
    mixed = [partition(number, privileges=None, writeId=None if number < 50 else 3) for number in range(100)]
    assert structs_walked(message(mixed), monkeypatch) == 2


FIELDS = st.fixed_dictionaries({}, optional={
    "values": st.lists(st.text(max_size=3), max_size=2), "createTime": st.sampled_from((None, 5, 6)), "sd": st.none(),
    "parameters": st.dictionaries(st.text(max_size=2), st.text(max_size=4), max_size=2), "writeId": st.integers(0, 3),
})  # fmt: skip


@given(st.lists(FIELDS, max_size=12), st.sampled_from((1, 50, 700, 100_000)))
def test_any_partitions_end_where_they_end(many: list[dict[str, Any]], piece: int) -> None:
    data = message([partition(number, **fields) for number, fields in enumerate(many)])
    end, _, careful, same = walk(data, piece)
    assert (end, careful, same) == (len(data), False, True)


DATA = message([partition(number) for number in range(12)])


@given(st.lists(st.tuples(st.integers(0, len(DATA) - 1), st.integers(0, 255)), min_size=1, max_size=3), st.sampled_from((50, 100_000)))
def test_wrong_bytes_are_seen_all_the_same(changes: list[tuple[int, int]], piece: int) -> None:
    changed = bytearray(DATA)
    for at, byte in changes:
        changed[at] = byte
    with pytest.MonkeyPatch.context() as patch:
        compared, walked = both(bytes(changed), patch, piece=piece)
    assert compared == walked


@pytest.mark.parametrize("at", range(0, len(DATA), 97))
def test_a_message_that_is_cut_or_too_long_is_refused(at: int, monkeypatch: pytest.MonkeyPatch) -> None:
    assert both(DATA[:at], monkeypatch) == (("cut short",), ("cut short",))
    assert both(DATA, monkeypatch, limit=at) == (("refused",), ("refused",))
    assert both(DATA, monkeypatch, limit=at, piece=len(DATA)) == (("refused",), ("refused",))
