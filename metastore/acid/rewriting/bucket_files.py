"""The files that Python writes: ORC files of events, of many transactions even, that can be read while they grow, and plain files.

    delta_A_B/_orc_acid_version        "2"
    delta_A_B/bucket_N                 six columns; after each flush a whole ORC file ends there
    delta_A_B/bucket_N_flush_length    8 bytes for each flush: where that end is; gone when the file is closed

Source: Hive's OrcRecordUpdater and OrcAcidUtils.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import pairwise, repeat
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyorc
from pyarrow import parquet
from pyorc.converters import ORCConverter

from metastore.acid.buckets import buckets
from metastore.acid.orc.orc_files import cast
from metastore.acid.rewriting.event_file import hive_metadata
from metastore.acid.storage import VERSION_FILE, Storage, naming_the_file
from metastore.acid.values.calendars import GREGORIAN, as_stored
from metastore.acid.values.types import decimal_of, parts, with_timestamps

DAY = 86_400_000_000
EVENT = (("operation", "int"), ("originalTransaction", "bigint"), ("bucket", "int"), ("rowId", "bigint"), ("currentTransaction", "bigint"))
_TYPES: dict[str, type[pyorc.TypeDescription]] = {
    "boolean": pyorc.Boolean,
    "tinyint": pyorc.TinyInt,
    "smallint": pyorc.SmallInt,
    "int": pyorc.Int,
    "integer": pyorc.Int,
    "bigint": pyorc.BigInt,
    "float": pyorc.Float,
    "double": pyorc.Double,
    "string": pyorc.String,
    "binary": pyorc.Binary,
    "date": pyorc.Date,
    "timestamp": pyorc.Timestamp,
}


class AsIs(ORCConverter):
    """A converter of values that are already the numbers that ORC keeps."""

    @staticmethod
    def to_orc(*given: Any) -> Any:
        return given[-1]

    from_orc = to_orc


class _Microseconds(AsIs):
    @staticmethod
    def to_orc(*given: Any) -> Any:
        seconds, fraction = divmod(given[0], 1_000_000)
        return seconds, fraction * 1000


class Nanoseconds(AsIs):
    """A converter of times that are given as nanoseconds since 1970."""

    @staticmethod
    def to_orc(*given: Any) -> Any:
        return divmod(given[0], 1_000_000_000)


_CONVERTERS: dict[pyorc.TypeKind, type[ORCConverter]] = {
    pyorc.TypeKind.DATE: AsIs,
    pyorc.TypeKind.DECIMAL: AsIs,
    pyorc.TypeKind.TIMESTAMP: _Microseconds,
}


def orc_type(kind: str) -> pyorc.TypeDescription:
    """Return the ORC type of a Hive type that `arrow_type` accepts."""
    text = kind.strip().lower()
    if text in _TYPES:
        return _TYPES[text]()
    if (decimal := decimal_of(text)) is not None:
        return pyorc.Decimal(precision=decimal[0], scale=decimal[1])
    outer, _, rest = text.partition("<")
    if not rest:
        name, _, length = text.rstrip(") ").partition("(")
        return (pyorc.Char if name.strip() == "char" else pyorc.VarChar)(int(length))
    inner = [(name, orc_type(each)) for name, each in parts(kind)]
    if outer == "struct":
        return pyorc.Struct(**dict(inner))
    return pyorc.Array(inner[0][1]) if outer == "array" else pyorc.Map(inner[0][1], inner[1][1])


def event_type(columns: Sequence[tuple[str, str]]) -> pyorc.TypeDescription:
    """Return the ORC type of a transactional file with data columns of Hive types."""
    row = pyorc.Struct(**{name: orc_type(kind) for name, kind in columns})
    return pyorc.Struct(**{name: _TYPES[kind]() for name, kind in EVENT}, row=row)


def as_numbers(values: Any, *, stored: bool = False) -> list[Any]:
    """Return an Arrow array as the Python values that a file's writer takes: dates, moments and decimals are whole numbers.

    Days are converted to the calendar of files, unless they are `stored`, as they were read from a file.
    """
    kind = values.type
    if stored and (pa.types.is_date32(kind) or pa.types.is_timestamp(kind)):
        return values.cast(pa.int32() if pa.types.is_date32(kind) else pa.int64()).to_pylist()  # type: ignore[no-any-return]
    if pa.types.is_date32(kind):
        return _rebased(values.cast(pa.int32()), GREGORIAN, hybrid_day)
    if pa.types.is_timestamp(kind):
        return _rebased(values.cast(pa.int64()), GREGORIAN * DAY, lambda moment: hybrid_day(moment // DAY) * DAY + moment % DAY)
    if pa.types.is_decimal(kind):
        halves = np.frombuffer(values.buffers()[1], "<i8")[2 * values.offset : 2 * (values.offset + len(values))]
        pairs = zip(halves[::2].view("<u8").tolist(), halves[1::2].tolist(), values.is_null().to_pylist(), strict=True)
        return [None if is_null else (high << 64) | low for low, high, is_null in pairs]
    if pa.types.is_struct(kind):
        rows: list[Any] = list(zip(*(as_numbers(column, stored=stored) for column in values.flatten()), strict=True))
    elif pa.types.is_map(kind):
        pairs_of = list(zip(as_numbers(values.keys, stored=stored), as_numbers(values.items, stored=stored), strict=True))
        rows = [dict(pairs_of[begin:end]) for begin, end in _ranges(values)]
    elif pa.types.is_list(kind):
        items = as_numbers(values.values, stored=stored)
        rows = [items[begin:end] for begin, end in _ranges(values)]
    else:
        return values.to_pylist()  # type: ignore[no-any-return]
    if not values.null_count:
        return rows
    return [None if is_null else row for row, is_null in zip(rows, values.is_null().to_pylist(), strict=True)]


def _rebased(numbers: Any, begin: int, rebase: Callable[[int], int]) -> list[Any]:
    """Return whole numbers, those before `begin` rebased."""
    least = pc.min(numbers).as_py()
    found: list[Any] = numbers.to_pylist()
    if least is None or least >= begin:
        return found
    return [rebase(value) if value is not None and value < begin else value for value in found]


def hybrid_day(day: int) -> int:
    """Return the day, since 1970, that has the same date in the Julian calendar: ORC files have it for days before 1582-10-15."""
    year, month, of_month = (np.datetime64(day, "D")).item().timetuple()[:3]
    shift = (14 - month) // 12
    years, months = year + 4800 - shift, month + 12 * shift - 3
    return of_month + (153 * months + 2) // 5 + 365 * years + years // 4 - 32083 - 2440588


def _ranges(values: Any) -> Iterator[tuple[int, int]]:
    return pairwise(values.offsets.to_pylist())


class BucketFile:
    """A bucket of a delta directory, to which rows are appended in the order of their write ids. Its methods raise CanNotWrite."""

    def __init__(
        self,
        storage: Storage,
        directory: str,
        bucket: int,
        schema: pyorc.TypeDescription,
        compression: str,
        *,
        grows: bool,
        statement: int = 0,
    ) -> None:
        self._storage = storage
        self._path = f"{directory}/{buckets.file_name(bucket)}"
        self._number = buckets.encode(bucket, statement)
        self._write_id = 0
        self._next_row = 0
        self._starts: list[tuple[int, int]] = []
        """(first row of the file, write id) of each transaction that wrote."""
        self._count = 0
        self._is_named = False
        storage.make_directory(directory)
        self._lengths: Any = None
        if grows:
            self._lengths = storage.create(self._path + "_flush_length")
            self._write_length(0)
        self._file = storage.create(self._path)
        self._writer = pyorc.Writer(
            self._file,
            schema,
            batch_size=1,
            compression=pyorc.CompressionKind[compression.upper()],
            converters=_CONVERTERS,
        )

    def append(self, write_id: int, rows: pa.RecordBatch) -> None:
        """Write rows, which have the file's data columns, under a write id."""
        if write_id != self._write_id:
            self._write_id, self._next_row = write_id, 0
            self._starts.append((self._count, write_id))
        numbers = range(self._next_row, self._next_row + len(rows))
        values = zip(*(as_numbers(column) for column in rows.columns), strict=True)
        events = zip(repeat(0), repeat(write_id), repeat(self._number), numbers, repeat(write_id), values, strict=False)
        with naming_the_file(self._path):
            self._writer.writerows(events)
        self._next_row += len(rows)
        self._count += len(rows)

    def flush(self) -> None:
        """Make the written rows readable."""
        with naming_the_file(self._path):
            length = self._writer.write_intermediate_footer()
            if self._lengths is not None:
                self._file.flush()
                self._storage.sync(self._path)  # before the length is published: a file must be readable up to a published length
                self._write_length(length)
                self._sync_names()

    def _sync_names(self) -> None:
        """Write the length, and at the first time all names, through to the disk."""
        self._storage.sync(self._path + "_flush_length")
        if not self._is_named:
            directory = self._path.rpartition("/")[0]
            self._storage.sync(f"{directory}/{VERSION_FILE}")
            self._storage.sync_names(directory)
            self._is_named = True

    def close(self) -> None:
        """End the file; rows that were not flushed belong to no commit and are kept with the others."""
        with naming_the_file(self._path):
            self._writer.write_intermediate_footer()
            self._file.flush()
            keys = self._last_keys() if self._storage.grows else None
            self._writer.set_user_metadata(**hive_metadata(self._count, keys, deletes=False))
            self._writer.close()
            self._file.close()
            if self._lengths is not None:
                self._storage.sync(self._path)
                self._lengths.close()
        self._storage.remove(self._path + "_flush_length")

    def abandon(self) -> None:
        """Close the file unfinished: rows that were flushed before stay readable."""
        for each in (self._file, self._lengths):
            with suppress(OSError):
                if each is not None:
                    each.close()

    def remove(self) -> None:
        """Remove a file that nobody will read."""
        self.abandon()
        self._storage.remove(self._path)

    def _write_length(self, length: int) -> None:
        with naming_the_file(self._path + "_flush_length"):
            self._lengths.write(length.to_bytes(8, "big"))
            self._lengths.flush()

    def _last_keys(self) -> list[tuple[int, int, int]]:
        """Return (write id, bucket, row id) of the last row of each stripe."""
        with self._storage.open(self._path) as file:
            lasts = [stripe.row_offset + len(stripe) - 1 for stripe in pyorc.Reader(file).iter_stripes()]
        out = []
        for last in lasts:
            first, write_id = self._starts[bisect_right(self._starts, (last, 2**63)) - 1]
            out.append((write_id, self._number, last - first))
        return out


class PlainFile:
    """A file of rows alone, as insert-only tables have."""

    def __init__(self, storage: Storage, path: str) -> None:
        self._storage = storage
        self._path = path
        self._file = storage.create(path)
        self._writer: Any = None

    def close(self) -> None:
        """End the file."""
        with naming_the_file(self._path):
            self._writer.close()
            self._file.close()

    def remove(self) -> None:
        """Remove a file that nobody will read."""
        for each in (self._writer, self._file):  # an open writer would end its file when it is freed, and fail
            with suppress(OSError):
                each.close()
        self._storage.remove(self._path)


class PlainOrcFile(PlainFile):
    """An ORC file of rows alone, as insert-only tables have. Its methods raise CanNotWrite."""

    def __init__(self, storage: Storage, path: str, columns: Sequence[tuple[str, str]], compression: str) -> None:
        super().__init__(storage, path)
        schema = pyorc.Struct(**{name: orc_type(kind) for name, kind in columns})
        self._writer = pyorc.Writer(
            self._file,
            schema,
            compression=pyorc.CompressionKind[compression.upper()],
            converters=_CONVERTERS,
        )

    def append(self, write_id: int, rows: pa.RecordBatch) -> None:  # noqa: ARG002  # rows do not bear it
        """Write rows, which have the file's columns."""
        with naming_the_file(self._path):
            self._writer.writerows(zip(*(as_numbers(column) for column in rows.columns), strict=True))


class PlainParquetFile(PlainFile):
    """A Parquet file of rows alone. As by Hive, times are written as instants of a zone, and days in Hive's calendar.

    The file notes both in Hive's properties. Its methods raise CanNotWrite. Source: Hive's DataWritableWriteSupport.
    """

    def __init__(self, storage: Storage, path: str, schema: pa.Schema, zone: str) -> None:
        super().__init__(storage, path)
        self._zone = zone
        self._schema = pa.schema([field.with_type(with_timestamps(field.type, pa.timestamp("us", "UTC"))) for field in schema])
        marked = self._schema.with_metadata({"writer.date.proleptic": "false", "writer.time.zone": zone})
        self._writer = parquet.ParquetWriter(self._file, marked, use_deprecated_int96_timestamps=True)

    def append(self, write_id: int, rows: pa.RecordBatch) -> None:  # noqa: ARG002  # rows do not bear it
        """Write rows, which have the file's columns."""
        columns = [cast(as_stored(values), field.type, self._zone) for values, field in zip(rows.columns, self._schema, strict=True)]
        with naming_the_file(self._path):
            self._writer.write_batch(pa.record_batch(columns, schema=self._writer.schema))
