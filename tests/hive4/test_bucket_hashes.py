"""The bucketing hash agrees with Hive's own classes, on values of every type, in both versions."""

from __future__ import annotations

import json
import random
import struct
import subprocess
from collections.abc import Iterator
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from metastore.acid.buckets.hashing import hashes
from tests.support.engines.jars import ARTIFACTS, HIVE, jars_of

pytestmark = pytest.mark.slow

JAVA = Path(__file__).with_name("BucketHashes.java")
Row = list[tuple[str, Any]]
LETTERS = "abcXYZ019 _-äöß€漢字😀\t\0"


def ask_hive(rows: list[Row], zone: str) -> list[tuple[int, int]]:
    """Return Hive's hashes, of version 1 and 2, of rows of (type, value in the form of BucketHashes.java)."""
    jars = jars_of(f"hive-{HIVE}", ARTIFACTS)
    command = ["java", "--add-opens=java.base/java.net=ALL-UNNAMED", f"-Duser.timezone={zone}", "-cp", jars, str(JAVA)]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    found = [tuple(map(int, line.split())) for line in done.stdout.splitlines()]
    assert len(found) == len(rows), done.stderr[-3000:]
    return [(old, new) for old, new in found]


def text(rng: random.Random, longest: int = 40) -> str:
    return "".join(rng.choice(LETTERS) for _ in range(rng.randint(0, longest)))


def whole(bits: int, rng: random.Random) -> int:
    edge = [0, 1, -1, 2 ** (bits - 1) - 1, -(2 ** (bits - 1))]
    return rng.choice(edge) if rng.random() < 0.1 else rng.randint(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) >> rng.randint(0, bits - 1)


def single(rng: random.Random) -> float:
    return struct.unpack("f", struct.pack("I", rng.getrandbits(32)))[0]


def double(rng: random.Random) -> float:
    return struct.unpack("d", struct.pack("Q", rng.getrandbits(64)))[0]


def decimal(rng: random.Random) -> Decimal:
    digits = rng.randint(1, 28)
    number = rng.randint(-(10**digits), 10**digits) * 10 ** rng.choice([0, 0, 1, 5])
    return Decimal(number).scaleb(-10) if abs(number) < 10**38 else Decimal(number // 10**6).scaleb(-10)


def stamp(rng: random.Random) -> int:
    """Nanoseconds since 1970, from 1700 to 2200."""
    seconds = rng.randint(-8_520_000_000, 7_250_000_000)
    return seconds * 10**9 + rng.choice([0, 0, rng.randint(0, 999_999_999), rng.randint(0, 999) * 10**6])


def written(nanos: int) -> str:
    seconds, fraction = divmod(nanos, 10**9)
    moment = datetime(1970, 1, 1) + timedelta(seconds=seconds)  # noqa: DTZ001  # Hive's timestamps have no zone
    return f"{moment:%Y-%m-%d %H:%M:%S}.{fraction:09d}"


def javaesque(number: float) -> str:
    return "NaN" if number != number else repr(number).replace("inf", "Infinity")  # noqa: PLR0124  # how NaN is found


def values(kind: str, rng: random.Random, count: int) -> Iterator[tuple[Any, Any]]:
    """Yield (value for Arrow, value for Hive)."""
    for _ in range(count):
        name = kind.partition("(")[0]
        if rng.random() < 0.05:
            yield None, None
        elif name == "boolean":
            truth = rng.random() < 0.5
            yield truth, str(truth).lower()
        elif name in ("tinyint", "smallint", "int", "bigint"):
            number = whole({"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}[name], rng)
            yield number, str(number)
        elif name in ("float", "double"):
            some_bits = single if name == "float" else double
            real = rng.choice([0.0, -0.0, 1.5, float("nan"), float("inf")]) if rng.random() < 0.1 else some_bits(rng)
            yield real, javaesque(real)
        elif name in ("string", "varchar", "char"):
            some = text(rng).replace("\0", "") if name == "char" else text(rng)
            yield some, some
        elif name == "binary":
            data = rng.randbytes(rng.randint(0, 30))
            yield data, data.hex()
        elif name == "date":
            day = date(1970, 1, 1) + timedelta(days=rng.randint(-100_000, 100_000))
            yield day, day.isoformat()
        elif name == "decimal":
            exact = decimal(rng)
            yield exact, f"{exact:f}"
        else:
            nanos = stamp(rng)
            yield nanos, written(nanos)


ARROW = {
    "boolean": pa.bool_(), "tinyint": pa.int8(), "smallint": pa.int16(), "int": pa.int32(), "bigint": pa.int64(), "float": pa.float32(),
    "double": pa.float64(), "string": pa.string(), "varchar(40)": pa.string(), "char(40)": pa.string(), "binary": pa.binary(),
    "date": pa.date32(), "decimal(38,10)": pa.decimal128(38, 10), "timestamp": pa.timestamp("ns"),
}  # fmt: skip


def compare(columns: list[tuple[pa.Array, str]], rows: list[Row], zone: str = "UTC") -> None:
    wanted = ask_hive(rows, zone)
    for version in (1, 2):
        found = hashes(columns, version, zone=zone).view("int32").tolist()
        different = [(row, got, want[version - 1]) for row, got, want in zip(rows, found, wanted, strict=True) if got != want[version - 1]]
        assert not different, f"version {version}: {len(different)} of {len(rows)}: {different[:3]}"


@pytest.mark.parametrize("kind", ARROW)
def test_values_of_one_type(kind: str) -> None:
    pairs = list(values(kind, random.Random(kind), 3000))
    compare([(pa.array([ours for ours, _ in pairs], ARROW[kind]), kind)], [[(kind, theirs)] for _, theirs in pairs])


@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Kolkata"])
def test_timestamps_of_version_1_are_times_of_hives_zone(zone: str) -> None:
    moments = [*range(-1_890_000_000, 2_140_000_000, 2_654_321)]
    nanos = [second * 10**9 + 123_000_000 for second in moments]
    compare([(pa.array(nanos, pa.timestamp("ns")), "timestamp")], [[("timestamp", written(each))] for each in nanos], zone)


def test_rows_of_several_columns() -> None:
    rng = random.Random("several")
    columns = {kind: list(values(kind, rng, 500)) for kind in ARROW}
    arrays = [(pa.array([ours for ours, _ in pairs], ARROW[kind]), kind) for kind, pairs in columns.items()]
    compare(arrays, [[(kind, pairs[row][1]) for kind, pairs in columns.items()] for row in range(500)])


def test_nested_values() -> None:
    kind = "struct<a:int,b:array<string>,c:map<string,bigint>,d:decimal(38,10)>"
    mapped = pa.map_(pa.string(), pa.int64())
    arrow = pa.struct([("a", pa.int32()), ("b", pa.list_(pa.string())), ("c", mapped), ("d", pa.decimal128(38, 10))])
    rng = random.Random("nested")
    ours: list[Any] = []
    rows: list[Row] = []
    for _ in range(1000):
        texts = [rng.choice([None, text(rng, 5)]) for _ in range(rng.randint(0, 5))]
        pairs = {f"{number}{text(rng, 3)}": whole(64, rng) for number in range(rng.randint(0, 4))}
        number, exact = whole(32, rng), decimal(rng)
        ours.append(rng.choice([None, {"a": number, "b": texts, "c": list(pairs.items()), "d": exact}]))
        theirs = [str(number), texts, [[key, str(item)] for key, item in pairs.items()], f"{exact:f}"]
        rows.append([(kind, None if ours[-1] is None else theirs)])
    compare([(pa.array(ours, arrow), kind)], rows)
