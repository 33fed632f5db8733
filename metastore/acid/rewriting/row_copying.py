"""Copy the rows that are left in a bucket with pyorc alone, where `rewriting` can not: Arrow does not hold maps with null keys.

Every file has to have the table's types as they are; columns that it lacks at the end are null. This module places no file.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator
from decimal import Context, Decimal
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa
import pyorc
from pyorc.converters import ORCConverter

from metastore.acid.buckets import buckets
from metastore.acid.buckets.buckets import Bucket, Original
from metastore.acid.files import open_path
from metastore.acid.orc.orc_files import event_schema
from metastore.acid.rewriting.bucket_files import EVENT, AsIs, event_type
from metastore.acid.rewriting.deleted import Deleted, ids_of, kept
from metastore.acid.rewriting.rewriting import CanNotCopy, Form, in_order
from metastore.acid.rewriting.row_file import RowWriter

ROWS_AT_A_TIME = 10_000
_TEXT = re.compile(r"varchar\(\d+\)")
_IDS = event_schema(pa.int64())
"""The columns of events that have a place in a list of rows instead of a row."""


class _Moments(AsIs):
    """A converter of times that are (seconds, nanoseconds) since 1970."""

    @staticmethod
    def from_orc(*given: Any) -> Any:
        return given[:2]

    @staticmethod
    def to_orc(*given: Any) -> Any:
        return given[0]


class _Decimals(ORCConverter):
    @staticmethod
    def from_orc(*given: Any) -> Any:
        return Decimal(given[0])

    @staticmethod
    def to_orc(*given: Any) -> Any:
        _, scale, value = given
        return int(value.scaleb(scale, Context(prec=100)))


_CONVERTERS: dict[pyorc.TypeKind, type[ORCConverter]] = {
    pyorc.TypeKind.DATE: AsIs,
    pyorc.TypeKind.DECIMAL: _Decimals,
    pyorc.TypeKind.TIMESTAMP: _Moments,
}
Rows = list[tuple[Any, ...]]


def copy_rows(form: Form, bucket: Bucket, name: str) -> str:
    """Write the rows that no delete event names into a file and return its path. CanNotCopy; OSError, and the errors of pyorc."""
    gone = Deleted.read(bucket.deletes, form.write_ids)
    sources: list[Iterator[tuple[Any, ...]]] = [_of_original(form, each) for each in bucket.originals]
    sources += [_of_events(form, path, length) for path, length in _sorted(bucket)]
    path = f"{form.folder}/{name}"
    system, inner = open_path(path)
    with system.open(inner, "wb") as stream, RowWriter(stream, form.columns, form.options, _CONVERTERS) as writer:
        for batch, rows in _checked(_left(sources, gone, form)):
            form.passed(batch.num_rows)
            writer.write_values(batch, rows)
    return path


def _reader(path: str, length: int | None = None) -> pyorc.Reader:
    system, inner = open_path(path)
    stream = system.open(inner, "rb") if length is None else io.BytesIO(system.read_block(inner, 0, length))
    return pyorc.Reader(stream, converters=_CONVERTERS)


def _sorted(bucket: Bucket) -> list[tuple[str, int | None]]:
    """Return the files of events that have rows, in the order of their first ids."""
    firsts = []
    for path, length in bucket.inserts:
        first = next(iter(_reader(path, length)), None)
        if first is not None:
            firsts.append((first[1:4], path, length))
    return [(path, length) for _, path, length in sorted(firsts)]


def _of_events(form: Form, path: str, length: int | None) -> Iterator[tuple[Any, ...]]:
    reader = _reader(path, length)
    columns = _fields(reader.schema)
    if list(columns) != [*(name for name, _ in EVENT), "row"]:
        raise CanNotCopy(f"{path} has other columns than events have: {', '.join(columns)}")
    missing = _missing(form, path, columns["row"])
    for *ids, row in reader:
        if ids[0] != 0:
            raise CanNotCopy("there are events beside the rows that were inserted")
        yield (*ids, row + missing)


def _of_original(form: Form, original: Original) -> Iterator[tuple[Any, ...]]:
    reader = _reader(original.path)
    missing = _missing(form, original.path, reader.schema)
    number = buckets.encode(original.bucket, original.statement)
    for place, row in enumerate(reader, original.first_row):
        yield 0, original.write_id, number, place, original.write_id, row + missing


def _fields(struct: Any) -> dict[str, Any]:
    """Return the types of a struct's fields by their names."""
    return dict(struct.fields)


def _missing(form: Form, path: str, there: Any) -> tuple[None, ...]:
    """Return nulls for the columns that a file lacks. CanNotCopy unless the others, under any names, have the table's types."""
    wanted, found = (list(_fields(each).values()) for each in (_fields(event_type(form.columns))["row"], there))
    if len(found) > len(wanted) or any(
        _TEXT.sub("string", str(mine)) != _TEXT.sub("string", str(table)) for mine, table in zip(found, wanted, strict=False)
    ):
        raise CanNotCopy(f"{path} has more columns than the table, or columns of other types: {there}")
    return (None,) * (len(wanted) - len(found))


def _left(sources: Iterable[Iterator[tuple[Any, ...]]], gone: Deleted, form: Form) -> Iterator[tuple[pa.RecordBatch, Rows]]:
    """Yield the ids of the rows that are left, and the rows. The last column of the ids is a row's place in the portion that was read."""
    for source in sources:
        while found := list(islice(source, ROWS_AT_A_TIME)):
            *ids, rows = zip(*found, strict=True)
            columns = [pa.array(column, field.type) for column, field in zip(ids, _IDS, strict=False)]
            batch = pa.record_batch([*columns, pa.array(np.arange(len(found)))], schema=_IDS)
            for left in kept([batch], gone, form.write_ids):
                yield left, [rows[place] for place in left.column("row").to_pylist()]


def _checked(batches: Iterable[tuple[pa.RecordBatch, Rows]]) -> Iterator[tuple[pa.RecordBatch, Rows]]:
    """Pass on rows. CanNotCopy where they are not sorted by their ids."""
    last: tuple[int, ...] | None = None
    for batch, rows in batches:
        if rows:
            last = in_order(last, ids_of(batch))
            yield batch, rows
