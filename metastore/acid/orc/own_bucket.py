"""Read the buckets that the rows of a file of events name, from the statistics at its end, and compare them with the file's own.

Rows in another bucket's file are read, but their delete events are in the file of the bucket that they name: readers that pair files by
buckets, Hive's among them, show the rows again. This module opens no file.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyarrow import orc

from metastore.acid.buckets import buckets
from metastore.acid.orc.orc_footer import Footer, footer_of
from metastore.acid.orc.orc_tail import LONGEST_POSTSCRIPT, MAGIC, tail_length

NUMBER = 3
"""The number of ORC's column `bucket`."""
USUAL_TAIL = 16_384


class Named(NamedTuple):
    """The least and the greatest number of the column `bucket` in a file; None in a file without these statistics."""

    least: int | None
    greatest: int | None

    @property
    def bucket(self) -> int | None:
        """The bucket that all rows name; None where there are several, where both encodings occur, or without statistics."""
        if self.least is None or self.greatest is None or buckets.is_encoded(self.least) != buckets.is_encoded(self.greatest):
            return None
        bucket = buckets.decode(self.least)
        return bucket if bucket == buckets.decode(self.greatest) else None

    def is_wrong(self, own: int) -> bool:
        """Return whether a row is sure to name another bucket than a file's own."""
        return any(number is not None and buckets.decode(number) != own for number in self)

    def __str__(self) -> str:
        found = sorted({buckets.decode(number) for number in self if number is not None})
        return " to ".join(map(str, found))


def footer_at_end(read_end: Callable[[int], bytes]) -> Footer:
    """Return the footer of a file; `read_end` returns its last bytes. NotOrc, NotAMessage."""
    end = read_end(USUAL_TAIL)
    size = tail_length(end[-LONGEST_POSTSCRIPT:])
    if size > len(end):
        end = read_end(size)
    return footer_of(orc.ORCFile(pa.BufferReader(MAGIC + end[-size:])))


def named(footer: Footer) -> Named | None:
    """Return the range of bucket numbers that a file's rows name; None for a file without rows."""
    if not sum(footer.stripes):
        return None
    column = footer.columns[NUMBER]
    return Named(column.least, column.greatest)


def is_of(numbers: Any, bucket: int) -> Any:
    """Return for each number of the column `bucket`, a numpy array, whether it names a bucket."""
    return np.where(numbers & buckets.encode(0) != 0, numbers >> 16 & 0xFFF, numbers) == bucket
