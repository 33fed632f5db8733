"""Join Hive's sketches of distinct values, which it calls bit vectors, to count the distinct values of old and new data together.

A sketch is a HyperLogLog of 64-bit hashes. The low `index_bits` bits of a hash name a register, which keeps the greatest rank: the place,
from 1, of the lowest bit that is set among the others. Hive writes few registers sparsely: each under the low 25 bits of its hash.
Source: Hive's common.ndv.hll for the bytes. The count of a full sketch is Ertl's (arXiv 1702.01284, algorithm 6), which needs none of
Hive's tables of corrections and differs from Hive's by less than the error of either.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf, log, sqrt
from typing import NamedTuple

MAGIC = b"HLL"
HASH_BITS = 64
SPARSE_BITS = 25
RANK_BITS = 6
"""The bits of a rank in a sparse sketch, and the most bits of a packed rank; wider ranks take a byte each."""
UNPACKED = 7
"""The mark in place of the width of ranks that take a byte each."""
INDEX_BITS = range(4, 16)
"""The possible values of a sketch's `index_bits`; Hive writes 10, before 3.0 it wrote 14."""


class Sketch(NamedTuple):
    """The rank of each register that has one. `key_bits` is `index_bits`, or SPARSE_BITS where the keys have further bits of the hash."""

    index_bits: int
    key_bits: int
    ranks: dict[int, int]


def merged(old: bytes | None, new: bytes | None) -> tuple[bytes, int] | None:
    """Return the sketch of old and new data together and its count; None where one has none, or one of another kind."""
    one, other = decode(old), decode(new)
    if one is None or other is None:
        return None
    joined = join(one, other)
    count = max(1, counted(joined))
    return encode(joined, count), count


def decode(data: bytes | None) -> Sketch | None:
    """Return the sketch in bytes; None for bytes that can not be read as one."""
    if data is None or len(data) < len(MAGIC) + 2 or not data.startswith(MAGIC):
        return None
    index_bits, width = data[3] >> 4, data[3] & 7
    if index_bits not in INDEX_BITS:
        return None
    try:
        _, rest = _number(data, 4)
        ranks = _packed(data[rest:], 1 << index_bits, width) if width else _sparse(data, rest)
    except IndexError:
        return None
    return Sketch(index_bits, SPARSE_BITS if width == 0 else index_bits, ranks)


def encode(sketch: Sketch, count: int) -> bytes:
    """Return a sketch as Hive writes it, with its count."""
    is_sparse = sketch.key_bits > sketch.index_bits
    width = 0 if is_sparse else max(sketch.ranks.values(), default=1).bit_length()
    out = bytearray(MAGIC)
    out.append(sketch.index_bits << 4 | (width if width <= RANK_BITS else UNPACKED))
    _write_number(out, count)
    if is_sparse:
        _write_number(out, len(sketch.ranks))
        before = 0
        for key in sorted(sketch.ranks):
            entry = key << RANK_BITS | sketch.ranks[key]
            _write_number(out, entry - before)
            before = entry
    else:
        ranks = [sketch.ranks.get(index, 0) for index in range(1 << sketch.index_bits)]
        out += bytes(ranks) if width > RANK_BITS else _pack(ranks, width)
    return bytes(out)


def join(one: Sketch, other: Sketch) -> Sketch:
    """Return the sketch of the union of two, as exact as the coarser of them."""
    index_bits = min(one.index_bits, other.index_bits)
    key_bits = min(one.key_bits, other.key_bits) if one.index_bits == other.index_bits else index_bits
    ranks: dict[int, int] = {}
    for sketch in (one, other):
        for key, rank in _with_keys_of(sketch, index_bits, key_bits):
            if rank > ranks.get(key, 0):
                ranks[key] = rank
    joined = Sketch(index_bits, key_bits, ranks)
    return joined if key_bits == index_bits or len(ranks) <= _most_sparse(index_bits) else join(joined, Sketch(index_bits, index_bits, {}))


def counted(sketch: Sketch) -> int:
    """Return the estimated number of distinct values that a sketch counted."""
    registers = 1 << sketch.key_bits
    if sketch.key_bits > sketch.index_bits:
        return round(registers * log(registers / (registers - len(sketch.ranks))))
    longest = HASH_BITS - sketch.index_bits
    numbers = [0] * (longest + 2)
    for rank in sketch.ranks.values():
        numbers[min(rank, longest + 1)] += 1
    numbers[0] = registers - len(sketch.ranks)
    total = registers * _tau(1 - numbers[longest + 1] / registers)
    for rank in range(longest, 0, -1):
        total = (total + numbers[rank]) / 2
    total += registers * _sigma(numbers[0] / registers)
    return round(registers * registers / (2 * log(2) * total))


def _most_sparse(index_bits: int) -> int:
    """Return the most registers that Hive writes sparsely: at five bytes each, they take no more bytes than all registers packed."""
    return (1 << index_bits) * RANK_BITS // 8 // 5


def _with_keys_of(sketch: Sketch, index_bits: int, key_bits: int) -> Iterable[tuple[int, int]]:
    """Return (key, rank) as a sketch with fewer bits has them: bits that no longer name a register count for the rank."""
    if (sketch.index_bits, sketch.key_bits) == (index_bits, key_bits):
        return sketch.ranks.items()
    between = sketch.index_bits - index_bits
    further = (key >> index_bits & (1 << between) - 1 for key in sketch.ranks)
    lowest = ((bits & -bits).bit_length() for bits in further)
    return [(key & (1 << key_bits) - 1, low or between + rank) for (key, rank), low in zip(sketch.ranks.items(), lowest, strict=True)]


def _sparse(data: bytes, at: int) -> dict[int, int]:
    number, at = _number(data, at)
    ranks, entry = {}, 0
    for _ in range(number):
        step, at = _number(data, at)
        entry += step
        ranks[entry >> RANK_BITS & (1 << SPARSE_BITS) - 1] = entry & (1 << RANK_BITS) - 1
    return ranks


def _packed(data: bytes, number: int, width: int) -> dict[int, int]:
    """Read ranks of `width` bits, the first in the highest bits of the first byte. IndexError where bytes are missing."""
    size = number if width == UNPACKED else number * width // 8
    if len(data) < size:
        raise IndexError(size)
    if width == UNPACKED:
        return {index: rank for index, rank in enumerate(data[:size]) if rank}
    shifts, mask = range(7 * width, -1, -width), (1 << width) - 1
    groups = (int.from_bytes(data[at : at + width], "big") for at in range(0, size, width))
    ranks = (group >> shift & mask for group in groups for shift in shifts)
    return {index: rank for index, rank in enumerate(ranks) if rank}


def _pack(ranks: list[int], width: int) -> bytes:
    out = bytearray()
    for at in range(0, len(ranks), 8):
        group = 0
        for rank in ranks[at : at + 8]:
            group = group << width | rank
        out += group.to_bytes(width, "big")
    return bytes(out)


def _number(data: bytes, at: int) -> tuple[int, int]:
    """Return a number of seven bits a byte, the low ones first, and the place after it. IndexError, also for one of over 64 bits."""
    value = 0
    for shift in range(0, HASH_BITS, 7):
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at += 1
        if byte < 0x80:
            return value, at
    raise IndexError(at)


def _write_number(out: bytearray, value: int) -> None:
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def _sigma(part: float) -> float:
    """Return the weight of registers without a rank, a part of all of them."""
    if part == 1:
        return inf
    weight, total, before = 1.0, part, -1.0
    while total != before:
        part *= part
        before = total
        total += part * weight
        weight += weight
    return total


def _tau(part: float) -> float:
    """Return the weight of registers with the greatest rank, where `part` is the share of the others."""
    if part in (0, 1):
        return 0.0
    weight, total, before = 1.0, 1 - part, -1.0
    while total != before:
        part = sqrt(part)
        before = total
        weight /= 2
        total -= (1 - part) ** 2 * weight
    return total / 3
