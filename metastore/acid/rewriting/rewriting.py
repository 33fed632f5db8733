"""Write the remaining events of a bucket's files into one file, values as they are stored: the part of a compaction for one bucket.

Files are read and written stripe by stripe, in the order of their first rows: each is sorted, and their ranges do not overlap, since later
write ids are in later deltas. This module lists and places no files. Values that it can not copy faithfully are left to others: see
`CanNotCopy`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from metastore.acid.buckets.buckets import Bucket, Original
from metastore.acid.files import open_path
from metastore.acid.orc.orc_files import (
    Columns,
    by_place,
    each_column,
    event_schema,
    null_key_places,
    open_orc,
    stored_events,
    stored_originals,
)
from metastore.acid.orc.orc_footer import DATE, TIMESTAMPS, Footer, footer_of
from metastore.acid.orc.own_bucket import is_of
from metastore.acid.rewriting.deleted import Deleted, ids_of, is_seen, kept
from metastore.acid.rewriting.event_file import CODECS, EventWriter, OrcOptions, PlainWriter
from metastore.acid.values.calendars import GREGORIAN
from metastore.acid.values.characters import unpadded
from metastore.acid.values.nested import times
from metastore.acid.values.null_keys import NullKeys
from metastore.acid.values.types import UnknownType, arrow_type, with_timestamps
from metastore.rules.transactions.acid_directories import SeenWriteIds

OLDEST, NEWEST = -292 * 365 * 86_400_000, 292 * 365 * 86_400_000
"""Milliseconds since 1970 between which PyArrow reads times, in any zone."""
ERA = 2 * 86_400_000
"""Milliseconds since 1970 from which on PyArrow writes times as Java reads them, in any zone: see `row_file`."""
EVENTS_AT_A_TIME = 1 << 20
_IDS = slice(2, 5)
"""The numbers of ORC's columns that hold a row's id."""


class CanNotCopy(Exception):
    """A bucket's values would change, or lose their order: Spark must copy them. The text has the reason."""


def no_watch(_rows: int) -> None:
    """Do nothing: the rewriting continues."""


@dataclass(frozen=True)
class Form:
    """The form of the files to write: (name, Hive type) of the columns, in a folder; `zones` are the zones of their writers or readers."""

    columns: list[tuple[str, str]]
    options: OrcOptions
    write_ids: SeenWriteIds
    zones: tuple[str, ...]
    folder: str
    passed: Callable[[int], None] = no_watch
    """A function that is called with the number of rows before each portion is written; an error that it raises ends the work."""

    def schema(self) -> pa.Schema:
        """Return the columns of a file of events. CanNotCopy."""
        try:
            row = pa.struct([(name, arrow_type(kind)) for name, kind in self.columns])
        except UnknownType as error:
            raise CanNotCopy(str(error)) from error
        if self.options.codec not in CODECS:
            raise CanNotCopy(f"PyArrow does not write {self.options.codec}")
        return event_schema(with_timestamps(row, pa.timestamp("ns")))


def rewrite_rows(form: Form, bucket: Bucket, name: str) -> str:
    """Write the rows that no delete event names into a file and return its path.

    CanNotCopy; NullKeys, for which there is `row_copying`; OSError, ArrowException.
    """
    schema = form.schema()
    footers: list[Footer] = []
    sources = _sources(form, bucket, schema, footers)
    gone = Deleted.read(bucket.deletes, form.write_ids)
    found = (batch for source in sources for batch in kept(source, gone, form.write_ids))
    writer = _row_writer(form) if any(map(_has_old_times, footers)) else _event_writer(form, schema, deletes=False)
    return _write(form, writer, _in_order(_faithful(found, form.zones)), name)


def rewrite_deletes(form: Form, bucket: Bucket, name: str) -> str:
    """Write the delete events, which are few beside rows, sorted into one file and return its path. CanNotCopy; OSError, ArrowException."""
    schema = form.schema()
    return _write(form, _event_writer(form, schema, deletes=True), _sorted_deletes(form, bucket, schema), name)


def rewrite_plain(form: Form, paths: Sequence[str], name: str) -> str:
    """Write the rows of files without events, one after the other, into one such file and return its path.

    CanNotCopy; NullKeys; OSError, ArrowException.
    """
    schema = form.schema()
    footers: list[Footer] = []
    sources = _sources(form, Bucket(0, originals=[Original(path, 0, 0) for path in paths]), schema, footers)
    if any(map(_has_old_times, footers)):
        raise CanNotCopy("there are times before 1970, which PyArrow does not write as they were")
    found = (batch for source in sources for batch in _faithful(source, form.zones))
    return _write(form, lambda stream: PlainWriter(stream, schema, form.options), found, name)


def _event_writer(form: Form, schema: pa.Schema, *, deletes: bool) -> Callable[[Any], Any]:
    return lambda stream: EventWriter(stream, schema, form.options, deletes=deletes)


def _row_writer(form: Form) -> Callable[[Any], Any]:
    from metastore.acid.rewriting.row_file import RowWriter  # executors may lack pyorc: only Spark's own writer works there

    return lambda stream: RowWriter(stream, form.columns, form.options)


def _write(form: Form, opened: Callable[[Any], Any], batches: Iterable[pa.RecordBatch], name: str) -> str:
    path = f"{form.folder}/{name}"
    system, inner = open_path(path)
    with system.open(inner, "wb") as stream, opened(stream) as writer:
        for batch in batches:
            form.passed(batch.num_rows)
            writer.write(batch)
    return path


def _sources(form: Form, bucket: Bucket, schema: pa.Schema, footers: list[Footer]) -> list[Iterator[pa.RecordBatch]]:
    """Return the rows of each file, the files in the order of their first rows, and add their footers to `footers`. CanNotCopy."""
    row = schema.field("row").type
    fit = partial(_fitted, schema, form.columns)
    out: list[Iterator[pa.RecordBatch]] = []
    for original in bucket.originals:
        file = open_orc(original.path)
        footers.append(footer_of(file))
        _check_values(original.path, footers[-1])
        _check_keys(original.path, file, events=False)
        _check_columns(original.path, pa.struct(list(file.schema)), row)
        out.append(map(fit, stored_originals(file, original)))
    found = []
    for path, length in bucket.inserts:
        file = open_orc(path, length)
        footer = footer_of(file)
        if not sum(footer.stripes):
            continue
        footers.append(footer)
        _check_values(path, footer)
        _check_keys(path, file, events=True)
        _check_events(path, file.schema, schema)
        _check_columns(path, file.schema.field("row").type, row)
        least = [column.least for column in footer.columns[_IDS]]
        if None in least:
            raise CanNotCopy(f"{path} has no statistics of its rows' ids")
        found.append((least, path, length))
    out += [map(fit, _stored(bucket, path, length)) for _, path, length in sorted(found)]
    return out


def _stored(bucket: Bucket, path: str, length: int | None) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file, which is opened only when they are needed."""
    for batch in stored_events(open_orc(path, length)):
        yield batch.filter(_is_of(batch, bucket)) if bucket.is_mixed else batch


def _is_of(batch: pa.RecordBatch, bucket: Bucket) -> pa.Array:
    return pa.array(is_of(batch.column("bucket").to_numpy(), bucket.number))


def _check_values(path: str, footer: Footer) -> None:
    """Raise CanNotCopy for a file with days or times that PyArrow does not write as they were."""
    for column in footer.columns:
        if column.values == 0:
            continue
        least, greatest = column.least, column.greatest
        if column.kind in TIMESTAMPS and (least is None or greatest is None or least < OLDEST or greatest > NEWEST):
            raise CanNotCopy(f"{path} may have times before 1678 or after 2261")
        if column.kind == DATE and footer.is_proleptic and (least is None or least < GREGORIAN):
            raise CanNotCopy(f"{path} may have days before 1582-10-15 of another calendar than Hive's")


def _check_keys(path: str, file: Any, *, events: bool) -> None:
    """Raise NullKeys for a file with maps that have null keys: Arrow must not read such a column."""
    if null_key_places(file, events=events):
        raise NullKeys(f"{path} has maps with null keys")


def _has_old_times(footer: Footer) -> bool:
    return any(column.kind in TIMESTAMPS and column.least is not None and column.least < ERA for column in footer.columns)


def _check_events(path: str, there: pa.Schema, schema: pa.Schema) -> None:
    if there.names != schema.names or there.types[:5] != schema.types[:5]:
        raise CanNotCopy(f"{path} has other columns than events have: {', '.join(there.names)}")


def _check_columns(path: str, there: pa.DataType, wanted: pa.DataType) -> None:
    """Raise CanNotCopy unless a file's columns, under any names, have the table's types; the table's last ones may be missing."""
    if there.num_fields > wanted.num_fields or any(
        there.field(place).type != wanted.field(place).type for place in range(there.num_fields)
    ):
        raise CanNotCopy(f"{path} has more columns than the table, or columns of other types: {there}, not {wanted}")


def _fitted(schema: pa.Schema, columns: Columns, batch: pa.RecordBatch) -> pa.RecordBatch:
    """Give columns the table's names, and add nulls for columns that the table got later."""
    row, wanted = each_column(by_place(batch.column("row"), columns), columns, unpadded), list(schema.field("row").type)
    there = row.type.num_fields
    if there < len(wanted):
        added = [pa.nulls(len(row), each.type) for each in wanted[there:]]
        row = pa.StructArray.from_arrays([*(row.field(place) for place in range(there)), *added], fields=wanted)
    return pa.record_batch([*batch.columns[:-1], row], schema=schema)


def _faithful(batches: Iterable[pa.RecordBatch], zones: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Pass on rows. CanNotCopy for a time that a zone's clocks show twice: only ORC files in that zone distinguish the two."""
    for batch in batches:
        if np.any(batch.column("operation").to_numpy(zero_copy_only=False)):
            raise CanNotCopy("there are events beside the rows that were inserted")
        for moments, zone in product(times(batch.column("row")), zones):
            try:
                pc.assume_timezone(moments, zone, ambiguous="raise", nonexistent="earliest")
            except pa.ArrowInvalid as error:
                raise CanNotCopy(f"the clocks of {zone} show a time twice: {error}") from error
        yield batch


def _in_order(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Pass on rows. CanNotCopy where they are not sorted by their ids."""
    last: tuple[int, ...] | None = None
    for batch in batches:
        if batch.num_rows:
            last = in_order(last, ids_of(batch))
            yield batch


def in_order(last: tuple[int, ...] | None, ids: tuple[Any, Any, Any]) -> tuple[int, ...]:
    """Return the last of the ids of rows, which follow the `last` of those before. CanNotCopy where they are not sorted."""
    first = tuple(int(column[0]) for column in ids)
    if (last is not None and first <= last) or not _increases(*ids):
        raise CanNotCopy("rows are not sorted by their ids, or files overlap")
    return tuple(int(column[-1]) for column in ids)


def _increases(write_ids: Any, numbers: Any, rows: Any) -> bool:
    by_write_id, by_number, by_row = (column[1:] > column[:-1] for column in (write_ids, numbers, rows))
    same_write_id, same_number = (column[1:] == column[:-1] for column in (write_ids, numbers))
    return bool(np.all(by_write_id | same_write_id & (by_number | same_number & by_row)))


def _sorted_deletes(form: Form, bucket: Bucket, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    parts = []
    for path in bucket.deletes:
        file = open_orc(path)
        _check_events(path, file.schema, schema)
        for batch in stored_events(file):
            events = batch.select(range(5))
            seen = events.filter(pa.array(is_seen(events, form.write_ids)))
            parts.append(seen.filter(_is_of(seen, bucket)) if bucket.is_mixed else seen)
    if not parts:
        return
    events = pa.Table.from_batches(parts).combine_chunks()
    columns = {name: events.column(name).to_numpy() for name in schema.names[:5]}
    if np.any(columns["operation"] != 2):
        raise CanNotCopy("there are events beside delete events")
    order = np.lexsort((-columns["currentTransaction"], columns["rowId"], columns["bucket"], columns["originalTransaction"]))
    for begin in range(0, len(order), EVENTS_AT_A_TIME):
        chosen = order[begin : begin + EVENTS_AT_A_TIME]
        yield pa.record_batch(
            [*(pa.array(column[chosen]) for column in columns.values()), pa.nulls(len(chosen), schema.field("row").type)],
            schema=schema,
        )
