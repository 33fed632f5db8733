"""A sketch of distinct values is read back from its bytes, and a joined one counts the values of both. For Hive's see tests/hive4."""

from __future__ import annotations

import random
from math import sqrt

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metastore.rules.statistics.distinct_sketches import INDEX_BITS, SPARSE_BITS, Sketch, counted, decode, encode, join, merged

INDEXES = st.integers(INDEX_BITS.start, INDEX_BITS.stop - 1)
NUMBERS = st.sampled_from([0, 1, 7, 150, 160, 2_000, 9_000])


def sketch_of(hashes: list[int], index_bits: int) -> Sketch:
    """Return the sketch that Hive makes of hashes."""
    ranks: dict[int, int] = {}
    for each in hashes:
        key, further = each & (1 << SPARSE_BITS) - 1, each >> index_bits
        ranks[key] = max((further & -further).bit_length(), ranks.get(key, 0))
    return join(Sketch(index_bits, SPARSE_BITS, ranks), Sketch(index_bits, SPARSE_BITS, {}))


def hashes(number: int, seed: int) -> list[int]:
    rng = random.Random(seed)
    return [rng.getrandbits(64) for _ in range(number)]


@settings(max_examples=30)
@given(INDEXES, NUMBERS, st.integers())
def test_a_sketch_comes_back_and_counts(index_bits: int, number: int, seed: int) -> None:
    sketch = sketch_of(hashes(number, seed), index_bits)
    assert decode(encode(sketch, number)) == sketch
    error = 1.04 / sqrt(1 << index_bits) if sketch.key_bits == index_bits else 0.001
    assert abs(counted(sketch) - number) <= 6 * error * number + 2


@settings(max_examples=30)
@given(INDEXES, INDEXES, NUMBERS, NUMBERS, st.integers())
def test_joined_sketches_are_that_of_all_values(one: int, other: int, few: int, many: int, seed: int) -> None:
    left, right = hashes(few, seed), hashes(many, seed + 1)
    joined = join(sketch_of(left, one), sketch_of(right, other))
    full = Sketch(min(one, other), joined.key_bits, {})
    assert joined == join(sketch_of(left + right, min(one, other)), full)
    assert join(joined, sketch_of(left, one)) == joined


@given(st.binary(max_size=40))
def test_bytes_that_are_no_sketch_are_none(data: bytes) -> None:
    whole = encode(sketch_of(hashes(5, 1), 10), 5)
    assert merged(data, whole) is None
    for text in (b"HLL" + data, whole[: len(data)]):
        merged(text, whole)
    assert decode(whole[:-1]) is None


def test_a_full_sketch_lacks_no_byte() -> None:
    whole = encode(sketch_of(hashes(4_000, 1), 10), 4_000)
    assert decode(whole) is not None
    assert decode(whole[:-1]) is None


@pytest.mark.parametrize("missing", [None, b"", b"FM\x10\x00"])
def test_without_two_sketches_nothing_is_joined(missing: bytes | None) -> None:
    whole = encode(sketch_of(hashes(5, 1), 10), 5)
    assert merged(whole, missing) is None
    assert merged(missing, whole) is None
    assert merged(whole, whole) == (whole, 5)
