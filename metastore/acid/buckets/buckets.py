"""Bucket files and the number in each row's `bucket` column. Source: Hive's BucketCodec and AcidUtils.

bits 31-29  version, 1      bits 27-16  bucket (task or hash bucket)      bits 11-0  statement
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import NamedTuple
from unicodedata import category
from urllib.parse import quote

MAX_BUCKETS = 4096
MAX_STATEMENTS = 4096
_VERSION = 1 << 29
_FILE = re.compile(r"bucket_(\d+)(?:_\d+)?", re.ASCII)
_ORIGINAL = re.compile(r"(\d+)_\d+(?:_copy_\d+)?", re.ASCII)
_QUOTED = frozenset(' "#%<>?[\\]^`{|}')
"""Letters of which a URI has the codes, beside blanks and control characters of any alphabet."""


class TooManyBuckets(ValueError):
    """The table has more buckets than row ids can number."""


class Original(NamedTuple):
    """A file of rows alone, numbered from `first_row` on: written before the table was transactional, or loaded by Hive's LOAD DATA.

    The rows of a loaded file have the write id and the statement of its directory; those of an older file have write id 0.
    """

    path: str
    bucket: int
    first_row: int
    write_id: int = 0
    statement: int = 0


@dataclass(frozen=True)
class Bucket:
    """The files of one bucket that a snapshot reads. `inserts` are paths, each with the readable length of a growing file, or None."""

    number: int
    inserts: list[tuple[str, int | None]] = field(default_factory=list)
    deletes: list[str] = field(default_factory=list)
    originals: list[Original] = field(default_factory=list)
    is_mixed: bool = False
    """Whether the files of events may hold rows of other buckets too, which are passed over."""


def encode(bucket: int, statement: int = 0) -> int:
    """Return the number for a bucket, 0 to 4095, and a statement, 0 to 4095. ValueError."""
    if not 0 <= bucket < MAX_BUCKETS or not 0 <= statement < MAX_STATEMENTS:
        raise ValueError(f"bucket {bucket} of statement {statement}: both must be from 0 to {MAX_BUCKETS - 1}")
    return _VERSION | bucket << 16 | statement


def check_count(table: str, count: int) -> None:
    """Raise TooManyBuckets for a full-ACID table that has more than `MAX_BUCKETS`; `table` is its name."""
    if count > MAX_BUCKETS:
        raise TooManyBuckets(f"{table} has {count} buckets, and row ids can number only {MAX_BUCKETS}: insert its rows into one with fewer")


def is_encoded(number: int) -> bool:
    """Return whether a row's number is encoded as in version 1. Before that version it was the bucket itself."""
    return bool(number & _VERSION)


def decode(number: int) -> int:
    """Return the bucket of a row."""
    return number >> 16 & 0xFFF if is_encoded(number) else number


def file_name(bucket: int) -> str:
    """Return the name of a bucket's file."""
    return f"bucket_{bucket:05d}"


def of_file(name: str) -> int | None:
    """Return the bucket of a file in a base or delta directory, None for files that are not buckets, such as `..._flush_length`."""
    match = _FILE.fullmatch(name)
    return None if match is None else int(match[1])


def is_original(name: str) -> bool:
    """Return whether a file has a name that Hive gives to a bucket's file in a table that is not transactional."""
    return _ORIGINAL.fullmatch(name) is not None


def of_original(name: str) -> int:
    """Return the bucket of a file that was written before the table was transactional: 0 for a name that Hive did not give."""
    match = _ORIGINAL.fullmatch(name)
    return 0 if match is None else int(match[1])


def hive_order(path: str) -> bytes:
    """Return the key by which Hive sorts the original files of a bucket to number their rows: the path as text.

    `_copy_10` is before `_copy_2`, and files of directories are between others. Source: AcidUtils.getAcidState, java.net.URI.compareTo.
    """
    letters = (quote(each, safe="") if each in _QUOTED or category(each) in ("Cc", "Zs", "Zl", "Zp") else each for each in path)
    return "".join(letters).encode("utf-16-be", "surrogatepass")
