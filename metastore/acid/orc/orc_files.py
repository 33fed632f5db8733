"""Read ORC files in Python, on any fsspec file system: files that Spark's own source can not read, and row counts. Never writes.

Values are returned as they are stored, or as Spark's: then timestamps, which are wall-clock times in ORC, are times of the given zone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import ROUND_HALF_UP, Context, Decimal
from math import isnan
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import orc

from metastore.acid.buckets import buckets
from metastore.acid.buckets.buckets import Original
from metastore.acid.files import open_path
from metastore.acid.orc.orc_footer import CHAR, FooterColumn, footer_of
from metastore.acid.values.calendars import as_read
from metastore.acid.values.characters import is_limited, shown, unpadded
from metastore.acid.values.nested import lists, maps, structs
from metastore.acid.values.null_keys import NullKeys, has_maps, with_null_keys
from metastore.acid.values.types import parts
from metastore.rules.values.partition_values import text_of

IDENTITY = ("originalTransaction", "bucket", "rowId")


def event_schema(row: pa.DataType) -> pa.Schema:
    """Return the six columns of a transactional file."""
    return pa.schema(
        [
            ("operation", pa.int32()),
            ("originalTransaction", pa.int64()),
            ("bucket", pa.int32()),
            ("rowId", pa.int64()),
            ("currentTransaction", pa.int64()),
            ("row", row),
        ]
    )


def open_orc(path: str, length: int | None = None) -> orc.ORCFile:
    """Open a file, or its first `length` bytes."""
    system, inner = open_path(path)
    if length is None:
        return orc.ORCFile(system.open(inner, "rb"))
    return orc.ORCFile(pa.BufferReader(system.read_block(inner, 0, length)))


def count_rows(path: str) -> int:
    """Return the number of rows of a file, from its footer."""
    return int(open_orc(path).nrows)


def null_key_places(file: orc.ORCFile, *, events: bool) -> frozenset[int]:
    """Return the places of the columns, of an event file those within `row`, that have maps with null keys: Arrow must not read them."""
    columns = footer_of(file).columns
    kinds = [kind for _, kind in parts(_outline(pa.struct(list(file.schema)), iter(columns)))]
    number = 1
    if events:
        number, kinds = len(kinds) + 1, [kind for _, kind in parts(kinds[-1])]
    return with_null_keys(kinds, number, lambda each: columns[each].has_null) if has_maps(kinds) else frozenset()


def stored_events(file: orc.ORCFile, skipped: frozenset[int] = frozenset()) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a transactional file as they are stored, but for the padding of chars; columns at `skipped` places are null."""
    return _stripes(file, skipped, events=True)


def stored_originals(file: orc.ORCFile, original: Original, skipped: frozenset[int] = frozenset()) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file of rows alone as events of its write id, values as `stored_events` has them."""
    first = original.first_row
    for stripe in _stripes(file, skipped, events=False):
        row = pa.StructArray.from_arrays(stripe.columns, names=stripe.schema.names)
        count = stripe.num_rows
        yield pa.record_batch(
            [
                pa.repeat(pa.scalar(0, pa.int32()), count),
                pa.repeat(pa.scalar(original.write_id, pa.int64()), count),
                pa.repeat(pa.scalar(buckets.encode(original.bucket, original.statement), pa.int32()), count),
                pa.array(range(first, first + count), pa.int64()),
                pa.repeat(pa.scalar(original.write_id, pa.int64()), count),
                row,
            ],
            schema=event_schema(row.type),
        )
        first += count


def _stripes(file: orc.ORCFile, skipped: frozenset[int], *, events: bool) -> Iterator[pa.RecordBatch]:
    """Yield the stripes of a file, texts of chars without padding: the table's column may have another type now."""
    footer, whole = footer_of(file), pa.struct(list(file.schema))
    kinds = [kind for _, kind in parts(_outline(whole, iter(footer.columns)))]
    ids, within = (file.schema.names[:-1], whole[-1].type) if events else ([], whole)
    names = None
    if skipped:
        names = [*ids, *(f"{'row.' if events else ''}{field.name}" for place, field in enumerate(within) if place not in skipped)]
    for number, count in enumerate(footer.stripes):
        columns = [] if names == [] else file.read_stripe(number, columns=names).columns
        if skipped:
            there = iter([each for column in columns[len(ids) :] for each in (column.flatten() if events else [column])])
            row = [pa.nulls(count, field.type) if place in skipped else next(there) for place, field in enumerate(within)]
            columns = [*columns[: len(ids)], *([pa.StructArray.from_arrays(row, fields=list(within))] if events else row)]
        yield pa.record_batch([unpadded(column, kind) for column, kind in zip(columns, kinds, strict=True)], schema=file.schema)


def _outline(kind: pa.DataType, columns: Iterator[FooterColumn]) -> str:
    """Return a file's type in Hive's spelling. Its simple types are `char(1)` or `string`: only chars matter."""
    found = next(columns)
    if pa.types.is_struct(kind):
        return f"struct<{','.join(f'f:{_outline(field.type, columns)}' for field in kind)}>"
    if pa.types.is_map(kind):
        return f"map<{_outline(kind.key_type, columns)},{_outline(kind.item_type, columns)}>"
    if pa.types.is_list(kind):
        return f"array<{_outline(kind.value_type, columns)}>"
    return "char(1)" if found.kind == CHAR else "string"


Columns = Sequence[tuple[str, str]]
"""(name, Hive type) of a table's columns."""


def by_place(row: pa.StructArray, columns: Columns) -> pa.StructArray:
    """Return rows with the table's names of columns, matched by position as in Hive; further columns are dropped."""
    fields = [row.type.field(place).with_name(name) for place, (name, _) in zip(range(row.type.num_fields), columns, strict=False)]
    if not fields or fields == list(row.type):
        return row
    return pa.StructArray.from_arrays([row.field(place) for place in range(len(fields))], fields=fields, mask=pc.is_null(row))


def each_column(row: pa.StructArray, columns: Columns, change: Callable[[Any, str], Any]) -> pa.StructArray:
    """Return rows of a table's columns, or some of them, with the texts of chars and varchars changed by `change(values, Hive type)`."""
    kinds = dict(columns)
    if not any(is_limited(kinds[field.name]) for field in row.type):
        return row
    return structs(row, [change(row.field(place), kinds[field.name]) for place, field in enumerate(row.type)], row.type)


def read_events(
    path: str, schema: pa.Schema, zone: str, *, columns: Columns, length: int | None = None, shielded: frozenset[str] = frozenset()
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a transactional file in the six columns of `schema`; `columns` are the table's; a column that the file lacks is
    null.

    NullKeys for one that has maps with null keys, unless it is `shielded`: then such a column is null, and its value must not be used.
    """
    file = open_orc(path, length)
    return _as_spark(stored_events(file, _unheld(file, schema, columns, shielded, events=True)), schema, zone, columns)


def read_original(
    original: Original, schema: pa.Schema, zone: str, *, columns: Columns, shielded: frozenset[str] = frozenset()
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file of rows alone as `read_events` does."""
    file = open_orc(original.path)
    skipped = _unheld(file, schema, columns, shielded, events=False)
    return _as_spark(stored_originals(file, original, skipped), schema, zone, columns)


def _unheld(file: orc.ORCFile, schema: pa.Schema, columns: Columns, shielded: frozenset[str], *, events: bool) -> frozenset[int]:
    """Return the places of the columns that can not be read. NullKeys where one of them is asked for and not `shielded`."""
    places = null_key_places(file, events=events)
    asked = {field.name.lower() for field in schema.field("row").type}
    for place in sorted(places):
        name = columns[place][0] if place < len(columns) else ""
        if name.lower() in asked - shielded:
            raise NullKeys(f"column {name} has maps with null keys, which Spark can not hold; read the other columns, or let Hive read it")
    return places


def _as_spark(batches: Iterable[pa.RecordBatch], schema: pa.Schema, zone: str, columns: Columns) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        events = zip([*batch.columns[:-1], by_place(batch.column("row"), columns)], schema, strict=True)
        *ids, row = (cast(as_read(values), field.type, zone) for values, field in events)
        yield pa.record_batch([*ids, each_column(row, columns, shown)], schema=schema)


def cast(values: Any, wanted: pa.DataType, zone: str) -> Any:
    """Return an array as another type: structs by the names of their fields, times without zone as times of `zone`, and back."""
    kind = values.type
    if kind.equals(wanted):
        return values
    if pa.types.is_struct(wanted) and pa.types.is_struct(kind):
        there = {kind.field(place).name.lower(): place for place in range(kind.num_fields)}
        fields = [
            cast(pc.struct_field(values, there[field.name.lower()]), field.type, zone)
            if field.name.lower() in there
            else pa.nulls(len(values), field.type)
            for field in wanted
        ]
        return structs(values, fields, wanted)
    if pa.types.is_list(wanted) and pa.types.is_list(kind):
        return lists(values, cast(values.values, wanted.value_type, zone), wanted)
    if pa.types.is_map(wanted) and pa.types.is_map(kind):
        return maps(values, cast(values.keys, wanted.key_type, zone), cast(values.items, wanted.item_type, zone), wanted)
    if pa.types.is_timestamp(wanted) and wanted.tz is not None and pa.types.is_timestamp(kind) and kind.tz is None:
        local = pc.assume_timezone(values, zone, ambiguous="earliest", nonexistent="latest")
        return local.cast(pa.timestamp(wanted.unit, zone), safe=False).cast(wanted)
    if pa.types.is_timestamp(wanted) and wanted.tz is None and pa.types.is_timestamp(kind) and kind.tz is not None:
        return pc.local_timestamp(values.cast(pa.timestamp(kind.unit, zone))).cast(wanted)
    if pa.types.is_timestamp(wanted):
        return values.cast(wanted, safe=False)
    if pa.types.is_string(wanted):
        return _as_texts(values)
    if pa.types.is_decimal(wanted) and not pa.types.is_null(kind):
        return pa.array([_as_decimal(value, wanted) for value in values.to_pylist()], wanted)
    if pa.types.is_floating(wanted) and pa.types.is_decimal(kind):
        return pa.array([None if value is None else float(value) for value in values.to_pylist()], wanted)
    # A float takes the nearest number to a whole one, as with ORC's reader.
    return values.cast(wanted, safe=not (pa.types.is_floating(wanted) and pa.types.is_integer(kind)))


def _as_texts(values: Any) -> Any:
    """Return values as texts for columns that have become strings, as ORC's reader does: a float becomes a double's text, NaN null."""
    kind = values.type
    if pa.types.is_timestamp(kind):
        return pc.replace_substring_regex(values.cast(pa.string()), r"\.?0*$", "")
    if pa.types.is_floating(kind):
        return pa.array([None if value is None or isnan(value) else text_of("double", value) for value in values.to_pylist()], pa.string())
    if pa.types.is_decimal(kind):
        return pa.array([None if value is None else text_of("decimal", value) for value in values.to_pylist()], pa.string())
    return values.cast(pa.string())


def _as_decimal(value: Any, wanted: pa.Decimal128Type) -> Decimal | None:
    """Return a number rounded to the digits of a decimal, as ORC's reader does; None where it has too many before the point."""
    if value is None:
        return None
    rounded = Decimal(value).quantize(Decimal(1).scaleb(-wanted.scale), ROUND_HALF_UP, Context(prec=100))
    return rounded if rounded.adjusted() < wanted.precision - wanted.scale else None
