"""Hive's bucketing hash, of both versions, over Arrow arrays: it decides the bucket of a row in a bucketed table. This module reads no
table.

Version 1 (tables whose `bucketing_version` is 1 or absent) is Java's own hash of each value, version 2 mostly a Murmur3 of its bytes;
the columns of a row are joined by 31 * hash + next. Source: Hive's ObjectInspectorUtils, Murmur3 (seed 104729), TimestampWritableV2,
HiveDecimal.

Hive's oddities are kept: nulls, booleans and bytes are not mixed by Murmur3; a float's bits are converted to a float once more before they
are hashed; the values of a map are hashed as in version 1; timestamps of version 1 are instants of the zone in which Hive runs. For another
zone than UTC they agree with Java's from 1910 to 2037, in UTC from 1582 on.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from metastore.acid.values.types import parts

Hashes = Any
"""A numpy array of uint32, whose arithmetic wraps as Java's int does."""
Numbers = Any
"""A numpy array of other numbers."""
SEED = 104729
_PER_SECOND = {"s": 1, "ms": 1000, "us": 1_000_000, "ns": 1_000_000_000}
_PARAMETERS = re.compile(r"\(.*\)")
_ARROW = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.large_string(),
    "char": pa.large_string(),
    "varchar": pa.large_string(),
    "binary": pa.large_binary(),
    "date": pa.date32(),
}


class CanNotHash(ValueError):
    """A type by which no table can be bucketed."""


def buckets_of(columns: Sequence[tuple[Any, str]], count: int, version: int, *, zone: str = "UTC") -> Numbers:
    """Return the bucket, 0 to `count` - 1, of each row, given as (Arrow array, Hive type) of each bucket column. CanNotHash."""
    return ((hashes(columns, version, zone=zone) & np.uint32(0x7FFFFFFF)) % np.uint32(count)).astype(np.int32)


def hashes(columns: Sequence[tuple[Any, str]], version: int, *, zone: str = "UTC") -> Hashes:
    """Return the hash of each row; version 1 takes timestamps as times of `zone`. CanNotHash."""
    if not columns:
        raise CanNotHash("there is no column to hash")
    total = np.zeros(len(columns[0][0]), np.uint32)
    for values, kind in columns:
        total = total * np.uint32(31) + hash_values(_one(values), kind, version, zone=zone)
    return total


def _one(values: Any) -> Any:
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values


def hash_values(values: Any, kind: str, version: int, *, zone: str = "UTC") -> Hashes:
    """Return the hash of each value of an array of a Hive type; of nulls it is 0. CanNotHash."""
    if version not in (1, 2):
        raise CanNotHash(f"bucketing version {version} is unknown: there are 1 and 2")
    if pa.types.is_null(values.type):
        return np.zeros(len(values), np.uint32)
    name = _PARAMETERS.sub("", kind.strip().lower())
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if nested := _NESTED.get(name.partition("<")[0]):
        found = nested(values, [inner for _, inner in parts(kind)], version, zone)
    elif name in _ARROW:
        found = (_old if version == 1 else _new)[name](values.cast(_ARROW[name]))
    elif name == "decimal":
        found = _by_value(values, _decimal_old if version == 1 else _decimal_bytes)
    elif name == "timestamp":
        found = _timestamp_old(values, zone) if version == 1 else _by_value(values, _timestamp_bytes(_PER_SECOND[values.type.unit]))
    else:
        raise CanNotHash(f"a table can not be bucketed by a column of type {kind}")
    if values.null_count:
        found = np.where(np.asarray(values.is_null()), np.uint32(0), found)
    return found


def _numbers(values: Any, empty: Any) -> Numbers:
    return np.asarray(values.fill_null(empty) if values.null_count else values)


def _integer(values: Any) -> Hashes:
    return _numbers(values, 0).astype(np.int64).astype(np.uint32)


def _boolean(values: Any) -> Hashes:
    return _numbers(values.cast(pa.int8()), 0).astype(np.uint32)


def _date(values: Any) -> Hashes:
    return _integer(values.cast(pa.int32()))


def _folded(bits: Numbers) -> Hashes:
    wide = bits.astype(np.uint64)
    return ((wide >> np.uint64(32)) ^ wide).astype(np.uint32)


def _float_bits(values: Any) -> Numbers:
    found = _numbers(values, 0.0)
    bits = found.view(np.int32 if found.dtype == np.float32 else np.int64)
    return np.where(np.isnan(found), np.asarray([np.nan], found.dtype).view(bits.dtype) & np.iinfo(bits.dtype).max, bits).astype(bits.dtype)


def _bytes(values: Any) -> tuple[Numbers, Numbers, Numbers]:
    """Return the bytes of all values, and the place and the length of each value among them; nulls are empty."""
    _, offsets, data = values.buffers()
    places = np.frombuffer(offsets, np.int64)[values.offset : values.offset + len(values) + 1]
    lengths = np.diff(places)
    if values.null_count:
        lengths = np.where(np.asarray(values.is_null()), 0, lengths)
    return np.frombuffer(data if data is not None else b"", np.uint8), places[:-1], lengths


def _polynomial(start: int) -> Callable[[Any], Hashes]:
    """Return the hash function `31 * hash + byte` over signed bytes, which begins with `start`."""

    def run(values: Any) -> Hashes:
        data, places, lengths = _bytes(values)
        order = np.argsort(-lengths, kind="stable")
        places, sizes = places[order], -lengths[order]
        found = np.full(len(values), start, np.uint32)
        signed = data.view(np.int8)
        for place in range(int(-sizes[0]) if len(sizes) else 0):
            rows = int(np.searchsorted(sizes, -place))
            found[:rows] = found[:rows] * np.uint32(31) + signed[places[:rows] + place].astype(np.int32).astype(np.uint32)
        out = np.empty_like(found)
        out[order] = found
        return out

    return run


def _stripped(hash_text: Callable[[Any], Hashes]) -> Callable[[Any], Hashes]:
    """Return a hash function of texts without the spaces at their ends, which are not part of a `char`."""
    return lambda values: hash_text(pc.utf8_rtrim(values, " "))


def _rotated(value: Hashes, by: int) -> Hashes:
    return (value << np.uint32(by)) | (value >> np.uint32(32 - by))


def _spread(word: Hashes) -> Hashes:
    return _rotated(word * np.uint32(0xCC9E2D51), 15) * np.uint32(0x1B873593)


def _mixed(state: Hashes, word: Hashes) -> Hashes:
    return _rotated(state ^ _spread(word), 13) * np.uint32(5) + np.uint32(0xE6546B64)


def _ended(state: Hashes, lengths: Any) -> Hashes:
    state = state ^ lengths
    state = (state ^ (state >> np.uint32(16))) * np.uint32(0x85EBCA6B)
    state = (state ^ (state >> np.uint32(13))) * np.uint32(0xC2B2AE35)
    return state ^ (state >> np.uint32(16))


def _murmur_bytes(values: Any) -> Hashes:
    data, places, lengths = _bytes(values)
    order = np.argsort(-lengths, kind="stable")
    places, lengths = places[order], lengths[order]
    state = np.full(len(values), SEED, np.uint32)
    blocks = -(lengths >> 2)
    for block in range(int(-blocks[0]) if len(blocks) else 0):
        at = places[: int(np.searchsorted(blocks, -block))] + 4 * block
        word = sum((data[at + place].astype(np.uint32) << np.uint32(8 * place) for place in range(1, 4)), data[at].astype(np.uint32))
        state[: len(at)] = _mixed(state[: len(at)], word)
    signed, left = data.view(np.int8), lengths & 3
    rest = np.zeros(len(values), np.uint32)
    for place in range(3):
        rows = np.flatnonzero(left > place)
        byte = signed[places[rows] + (lengths[rows] & ~3) + place].astype(np.int32).astype(np.uint32)
        rest[rows] ^= byte << np.uint32(8 * place)
    state = _ended(np.where(left > 0, state ^ _spread(rest), state), lengths.astype(np.uint32))
    out = np.empty_like(state)
    out[order] = state
    return out


def _murmur_numbers(numbers: Numbers) -> Hashes:
    """Hash numbers of 2, 4 or 8 bytes in Java's order of bytes."""
    size = numbers.dtype.itemsize
    state = np.full(len(numbers), SEED, np.uint32)
    if size == 2:
        big = numbers.astype(">i2").view(np.int8).reshape(-1, 2).astype(np.int32).astype(np.uint32)
        state ^= _spread(big[:, 0] ^ (big[:, 1] << np.uint32(8)))
    else:
        words = numbers.astype(numbers.dtype.newbyteorder(">")).view("<u4").reshape(-1, size // 4)
        for place in range(size // 4):
            state = _mixed(state, words[:, place])
    return _ended(state, np.uint32(size))


def _by_value(values: Any, work: Callable[[Any], bytes] | Callable[[Any], int]) -> Hashes:
    """Hash each distinct value once: `work` returns its hash, or bytes whose Murmur3 is the hash."""
    encoded = values.dictionary_encode()
    distinct = encoded.dictionary.cast(pa.int64()) if pa.types.is_timestamp(values.type) else encoded.dictionary
    found = [work(value) for value in distinct.to_pylist()] or [0]
    if isinstance(found[0], bytes):
        table = _murmur_bytes(pa.array(found, pa.large_binary()))
    else:
        table = np.asarray(found, np.int64).astype(np.uint32)
    return table[_numbers(encoded.indices, 0)]


def _unscaled(value: Any) -> tuple[int, int]:
    """Return (digits, scale) of a decimal without zeros at the end of its fraction."""
    sign, digits, exponent = value.as_tuple()
    number, scale = int("".join(map(str, digits))), -int(exponent)
    while scale > 0 and number % 10 == 0:
        number //= 10
        scale -= 1
    if scale < 0:
        number, scale = number * 10**-scale, 0
    return -number if sign else number, scale


def _decimal_bytes(value: Any) -> bytes:
    number, _ = _unscaled(value)
    return number.to_bytes((number if number >= 0 else ~number).bit_length() // 8 + 1, "big", signed=True)


def _decimal_old(value: Any) -> int:
    number, scale = _unscaled(value)
    found, left = 0, abs(number)
    for word in left.to_bytes(-(-left.bit_length() // 32) * 4, "big").hex(" ", 4).split():
        found = (31 * found + int(word, 16)) & 0xFFFFFFFF
    return (31 * (-found if number < 0 else found) + scale) & 0xFFFFFFFF


def _timestamp_old(values: Any, zone: str) -> Hashes:
    if values.type.tz is None:
        values = pc.assume_timezone(values, zone, ambiguous="latest", nonexistent="latest")
    parts_of_second = _PER_SECOND[values.type.unit]
    seconds, fraction = np.divmod(_numbers(values.cast(pa.int64()), 0), parts_of_second)
    return _folded((seconds << 30) | (fraction * (1_000_000_000 // parts_of_second)))


def _timestamp_bytes(parts_of_second: int) -> Callable[[int], bytes]:
    """Return Hive's encoder of timestamps: 31 bits of the seconds and, where needed, the nanoseconds reversed and the other bits."""

    def run(moment: int) -> bytes:
        seconds, fraction = divmod(moment, parts_of_second)
        backwards = int(f"{fraction * (1_000_000_000 // parts_of_second):09d}"[::-1])
        further = not 0 <= seconds <= 0x7FFFFFFF
        first = seconds & 0x7FFFFFFF | (0x80000000 if further or backwards else 0)
        out = first.to_bytes(4, "big")
        if further or backwards:
            out += _variable(-backwards - 1 if further else backwards)
        return out + _variable(seconds >> 31) if further else out

    return run


def _variable(number: int) -> bytes:
    """Return Hadoop's encoding of a number in 1 to 9 bytes."""
    if -112 <= number <= 127:
        return number.to_bytes(1, "big", signed=True)
    rest = number if number >= 0 else ~number
    size = (rest.bit_length() + 7) // 8
    return ((-112 if number >= 0 else -120) - size).to_bytes(1, "big", signed=True) + rest.to_bytes(size, "big")


def _struct(values: Any, kinds: Sequence[str], version: int, zone: str) -> Hashes:
    return hashes(list(zip(values.flatten(), kinds, strict=True)), version, zone=zone)


def _list(values: Any, kinds: Sequence[str], version: int, zone: str) -> Hashes:
    places, lengths = _ranges(values)
    inner = hash_values(values.values, kinds[0], version, zone=zone)
    found = np.zeros(len(values), np.uint32)
    for place in range(int(lengths.max(initial=0))):
        rows = np.flatnonzero(lengths > place)
        found[rows] = found[rows] * np.uint32(31) + inner[places[rows] + place]
    return found


def _map(values: Any, kinds: Sequence[str], version: int, zone: str) -> Hashes:
    places, lengths = _ranges(values)
    pairs = hash_values(values.keys, kinds[0], version, zone=zone) ^ hash_values(values.items, kinds[1], 1, zone=zone)
    sums = np.concatenate([[np.uint32(0)], np.cumsum(pairs, dtype=np.uint32)])
    return (sums[places + lengths] - sums[places]).astype(np.uint32)


def _ranges(values: Any) -> tuple[Numbers, Numbers]:
    places = np.asarray(values.offsets).astype(np.int64)
    lengths = np.diff(places)
    return places[:-1], np.where(np.asarray(values.is_null()), 0, lengths) if values.null_count else lengths


_NESTED: dict[str, Callable[[Any, Sequence[str], int, str], Hashes]] = {"struct": _struct, "array": _list, "map": _map}
_old: dict[str, Callable[[Any], Hashes]] = {
    "boolean": _boolean,
    "tinyint": _integer,
    "smallint": _integer,
    "int": _integer,
    "date": _date,
    "bigint": lambda values: _folded(_numbers(values, 0)),
    "float": lambda values: _float_bits(values).astype(np.uint32),
    "double": lambda values: _folded(_float_bits(values)),
    "string": _polynomial(0),
    "char": _stripped(_polynomial(1)),
    "varchar": _polynomial(1),
    "binary": _polynomial(1),
}
_new: dict[str, Callable[[Any], Hashes]] = {
    "boolean": _boolean,
    "tinyint": _integer,
    "smallint": lambda values: _murmur_numbers(_numbers(values, 0)),
    "int": lambda values: _murmur_numbers(_numbers(values, 0)),
    "bigint": lambda values: _murmur_numbers(_numbers(values, 0)),
    "date": lambda values: _murmur_numbers(_numbers(values.cast(pa.int32()), 0)),
    "float": lambda values: _murmur_numbers(_float_bits(values).astype(np.float32)),
    "double": lambda values: _murmur_numbers(_float_bits(values).astype(np.float64)),
    "string": _murmur_bytes,
    "char": _stripped(_murmur_bytes),
    "varchar": _murmur_bytes,
    "binary": _murmur_bytes,
}
