"""Write whole ORC files with PyArrow, on any stream; files of events get the notes of Hive's own writer at their end. Places no file.

    hive.acid.key.index   `write id,bucket,row id;` of the last row of each stripe: by it a reader of some stripes finds delete events that
                          concern them
    hive.acid.stats       `inserts,updates,deletes`
    hive.acid.version     2

Hive 4 reads files without them, Hive 3 does not. Source: Hive's OrcRecordUpdater, OrcRawRecordMerger.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from itertools import accumulate
from typing import Any, NamedTuple, TypeVar

import pyarrow as pa
from pyarrow import orc
from typing_extensions import Self

from metastore.acid.orc.orc_footer import footer_of
from metastore.acid.orc.orc_tail import LONGEST_POSTSCRIPT, tail_length, with_user_metadata
from metastore.acid.rewriting.deleted import ids_of

MAX_BATCH_ROWS = 10_000
"""Rows after which the writer looks whether a stripe is full."""
UNIT = 64 << 10
"""The unit of PyArrow's compressed blocks, in bytes."""
DICTIONARY = 0.8
"""The share of distinct texts up to which a column has a dictionary, as with Hive."""
STRIPE, STRIDE, BLOCK = "orc.stripe.size", "orc.row.index.stride", "orc.compress.size"
SIZES = {STRIPE: 64 << 20, STRIDE: 10_000, BLOCK: 256 << 10}
"""Properties of a table that have the same names for Hive's and Spark's writers, and their defaults."""
W = TypeVar("W", bound="_OrcWriter")
_HEAD = b"ORC"
"""The beginning of every file."""
CODECS = {"none": "uncompressed", "zlib": "zlib", "snappy": "snappy", "lz4": "lz4", "zstd": "zstd"}
"""PyArrow's names of codecs, by ORC's names."""


class OrcOptions(NamedTuple):
    """Options of a table's ORC files: a name of `CODECS`, bytes of a stripe, rows of a row group, bytes of a compressed block."""

    codec: str = "snappy"
    stripe: int = SIZES[STRIPE]
    stride: int = SIZES[STRIDE]
    block: int = SIZES[BLOCK]

    @classmethod
    def of(cls, parameters: Mapping[str, str]) -> OrcOptions:
        """Read a table's parameters. The default codec is Snappy, which every release of Hive reads. ValueError for a wrong size."""
        sizes = {name: int(parameters.get(name, default)) for name, default in SIZES.items()}
        return cls(parameters.get("orc.compress", "snappy").lower(), sizes[STRIPE], sizes[STRIDE], sizes[BLOCK])


def hive_metadata(rows: int, keys: Iterable[tuple[int, int, int]] | None, *, deletes: bool) -> dict[str, bytes]:
    """Return the user metadata of a file of inserts or of delete events: `keys` are the ids of the last row of each stripe, if known."""
    out = {"hive.acid.stats": (f"0,0,{rows}" if deletes else f"{rows},0,0").encode(), "hive.acid.version": b"2"}
    if keys is not None:
        out["hive.acid.key.index"] = "".join(f"{write_id},{number},{row};" for write_id, number, row in keys).encode()
    return out


class _OrcWriter:
    """One ORC file: a context, whose end ends the file. The stream stays open.

    KeyError for a codec that is not known. After an error the file has no end.
    """

    def __init__(self, stream: Any, schema: pa.Schema, options: OrcOptions) -> None:
        self._stream = stream
        self._schema = schema
        self._step = min(options.stride or MAX_BATCH_ROWS, MAX_BATCH_ROWS)
        self._sink = _Sink(stream)
        self._writer = orc.ORCWriter(
            self._sink,
            batch_size=self._step,
            stripe_size=options.stripe,
            compression=CODECS[options.codec],
            compression_block_size=-(-options.block // UNIT) * UNIT,
            row_index_stride=options.stride,
            dictionary_key_size_threshold=DICTIONARY,
        )
        self._rows = 0

    def _add(self, batch: pa.RecordBatch) -> None:
        """Write rows. ValueError for a slice: PyArrow misplaces nulls of a sliced struct."""
        if any(column.offset for column in batch.columns):
            raise ValueError("rows are a slice of others: filter or copy them first")
        self._writer.write(pa.Table.from_batches([batch], self._schema))
        self._rows += batch.num_rows

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            try:
                self._end()
            except BaseException:
                self._abandon()
                raise
        else:
            self._abandon()

    def _abandon(self) -> None:
        """Close PyArrow's writer. It would write the end when it is freed, and end the process if the stream is closed by then."""
        self._sink.drop = True
        self._writer.close()

    def _end(self) -> None:
        if not self._rows:
            self._writer.write(self._schema.empty_table())
        self._writer.close()


class PlainWriter(_OrcWriter):
    """A file of rows alone, which are given as the column `row` of events; `schema` is the events'."""

    def __init__(self, stream: Any, schema: pa.Schema, options: OrcOptions) -> None:
        super().__init__(stream, pa.schema(list(schema.field("row").type)), options)

    def write(self, batch: pa.RecordBatch) -> None:
        """Write the rows of events."""
        self._add(pa.record_batch(batch.column("row").flatten(), schema=self._schema))


class EventWriter(_OrcWriter):
    """A file of events, which are given in the order of their ids."""

    def __init__(self, stream: Any, schema: pa.Schema, options: OrcOptions, *, deletes: bool) -> None:
        super().__init__(stream, schema, options)
        self._deletes = deletes
        self._keys: dict[int, tuple[int, int, int]] = {}
        """The ids of rows after which a stripe may end, by the number of rows in the file up to there."""

    def write(self, batch: pa.RecordBatch) -> None:
        """Write events."""
        before = self._rows
        self._add(batch)
        ids = ids_of(batch)
        for end in (*range(self._step, batch.num_rows, self._step), batch.num_rows):
            write_id, number, row = (int(column[end - 1]) for column in ids)
            self._keys[before + end] = (write_id, number, row)

    def _end(self) -> None:
        self._sink.keep = True
        super()._end()
        tail = self._sink.last(tail_length(self._sink.last(LONGEST_POSTSCRIPT)))
        stripes = footer_of(orc.ORCFile(pa.BufferReader(_HEAD + tail))).stripes
        metadata = hive_metadata(self._rows, (self._keys[rows] for rows in accumulate(stripes)), deletes=self._deletes)
        self._stream.write(with_user_metadata(tail, metadata))


class _Sink(io.RawIOBase):
    """A stream that passes on written bytes. Once `keep` is set it keeps them too; once `drop` is set it drops them."""

    def __init__(self, stream: Any) -> None:
        super().__init__()
        self._stream = stream
        self.keep = self.drop = False
        self._kept: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        written = bytes(data)
        if self.drop:
            return len(written)
        self._stream.write(written)
        if self.keep:
            self._kept.append(written)
        return len(written)

    def last(self, length: int) -> bytes:
        """Return the last of the kept bytes."""
        parts: list[bytes] = []
        while self._kept and sum(map(len, parts)) < length:
            parts.insert(0, self._kept.pop())
        self._kept.append(b"".join(parts))
        return self._kept[-1][-length:]
