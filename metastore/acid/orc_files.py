"""Read ORC files in Python, on any fsspec file system: those that Spark's own source can not read, and their row counts. Never writes.

Timestamps of ORC are wall-clock times; they become times of the zone that is given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import orc

from metastore.acid import buckets
from metastore.acid.calendars import as_read
from metastore.acid.files import open_path

IDENTITY = ("originalTransaction", "bucket", "rowId")


def _open(path: str, length: int | None = None) -> orc.ORCFile:
    """Open a file, or its first `length` bytes."""
    system, inner = open_path(path)
    if length is None:
        return orc.ORCFile(system.open(inner, "rb"))
    return orc.ORCFile(pa.BufferReader(system.read_block(inner, 0, length)))


def count_rows(path: str) -> int:
    """Return how many rows a file has, by its footer."""
    return int(_open(path).nrows)


def read_events(path: str, schema: pa.Schema, zone: str, *, length: int | None = None) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a transactional file in the six columns of `schema`; columns that the file lacks are null."""
    file = _open(path, length)
    for number in range(file.nstripes):
        stripe = file.read_stripe(number)
        yield pa.record_batch([cast(as_read(stripe.column(field.name)), field.type, zone) for field in schema], schema=schema)


def deleted_ids(paths: Sequence[str], is_valid: Callable[[int], bool]) -> pd.MultiIndex:
    """Return the ids of the rows that the delete events of files name, as far as the snapshot sees the events."""
    parts = []
    for path in paths:
        file = _open(path)
        for number in range(file.nstripes):
            events = file.read_stripe(number, columns=[*IDENTITY, "currentTransaction"]).to_pandas()
            parts.append(events[events["currentTransaction"].map(is_valid)])
    found = pd.concat(parts) if parts else pd.DataFrame(columns=IDENTITY, dtype="int64")
    return pd.MultiIndex.from_frame(found[list(IDENTITY)])


def live(batches: Iterator[pa.RecordBatch], gone: pd.MultiIndex, is_valid: Callable[[int], bool]) -> Iterator[pa.RecordBatch]:
    """Keep the rows, in six columns, that the snapshot sees and no delete event names."""
    for batch in batches:
        ids = batch.select([*IDENTITY, "currentTransaction"]).to_pandas()
        keep = ids["currentTransaction"].map(is_valid).to_numpy(dtype=bool)
        if len(gone):
            keep = keep & ~pd.MultiIndex.from_frame(ids[list(IDENTITY)]).isin(gone)
        yield batch.filter(pa.array(keep))


def read_original(
    path: str, bucket: int, first_row: int, schema: pa.Schema, zone: str, *, names: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file from before the table was transactional as if write id 0 had inserted them.

    Columns are found by name, or by place among the table's `names` where the file has Hive's old names `_col0`, `_col1` ...
    """
    file = _open(path)
    row = schema.field("row").type
    for number in range(file.nstripes):
        stripe = file.read_stripe(number)
        there = [name.lower() for name in stripe.schema.names]
        if all(name.startswith("_col") for name in there):
            there = [names[place] if place < len(names) else name for place, name in enumerate(there)]
        rows = pa.StructArray.from_arrays(stripe.columns, names=there)
        count = stripe.num_rows
        fixed = {
            "operation": pa.repeat(pa.scalar(0, pa.int32()), count),
            "originalTransaction": pa.repeat(pa.scalar(0, pa.int64()), count),
            "bucket": pa.repeat(pa.scalar(buckets.encode(bucket), pa.int32()), count),
            "rowId": pa.array(range(first_row, first_row + count), pa.int64()),
            "currentTransaction": pa.repeat(pa.scalar(0, pa.int64()), count),
            "row": cast(as_read(rows), row, zone),
        }
        yield pa.record_batch([fixed[field.name] for field in schema], schema=schema)
        first_row += count


def cast(values: Any, wanted: pa.DataType, zone: str) -> Any:
    """Return an array as another type: structs by the names of their fields, times without zone as those of `zone`, and back."""
    kind = values.type
    if kind.equals(wanted):
        return values
    if pa.types.is_struct(wanted) and pa.types.is_struct(kind):
        there = {kind.field(place).name.lower(): place for place in range(kind.num_fields)}
        parts = [
            cast(pc.struct_field(values, there[field.name.lower()]), field.type, zone)
            if field.name.lower() in there else pa.nulls(len(values), field.type)
            for field in wanted
        ]
        return pa.StructArray.from_arrays(parts, fields=list(wanted), mask=pc.is_null(values))
    if pa.types.is_list(wanted) and pa.types.is_list(kind):
        return pa.ListArray.from_arrays(values.offsets, cast(values.values, wanted.value_type, zone), type=wanted, mask=pc.is_null(values))
    if pa.types.is_map(wanted) and pa.types.is_map(kind):
        keys, items = cast(values.keys, wanted.key_type, zone), cast(values.items, wanted.item_type, zone)
        return pa.MapArray.from_arrays(values.offsets, keys, items).cast(wanted)
    if pa.types.is_timestamp(wanted) and wanted.tz is not None and pa.types.is_timestamp(kind) and kind.tz is None:
        local = pc.assume_timezone(values, zone, ambiguous="earliest", nonexistent="latest")
        return local.cast(pa.timestamp(wanted.unit, zone), safe=False).cast(wanted)
    if pa.types.is_timestamp(wanted) and wanted.tz is None and pa.types.is_timestamp(kind) and kind.tz is not None:
        return pc.local_timestamp(values.cast(pa.timestamp(kind.unit, zone))).cast(wanted)
    if pa.types.is_timestamp(wanted):
        return values.cast(wanted, safe=False)
    return values.cast(wanted)
