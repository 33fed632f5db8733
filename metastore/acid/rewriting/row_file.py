"""Write whole ORC files of events row by row with pyorc, as `event_file` does with PyArrow: only pyorc writes times before 1970 right.

PyArrow's writer gives ORC the fraction of a second before 1970 as a negative number, which Java reads as another time. This module places
no file.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from itertools import repeat
from typing import Any

import pyarrow as pa
import pyorc
from pyorc.converters import ORCConverter

from metastore.acid.orc.orc_files import IDENTITY
from metastore.acid.rewriting.bucket_files import AsIs, Nanoseconds, as_numbers, event_type
from metastore.acid.rewriting.event_file import DICTIONARY, UNIT, OrcOptions, hive_metadata

_CONVERTERS: dict[pyorc.TypeKind, type[ORCConverter]] = {
    pyorc.TypeKind.DATE: AsIs,
    pyorc.TypeKind.DECIMAL: AsIs,
    pyorc.TypeKind.TIMESTAMP: Nanoseconds,
}


class RowWriter:
    """One file of inserts, given in the order of their ids: a context, whose end copies the file to the stream, which stays open."""

    def __init__(
        self,
        stream: Any,
        columns: Sequence[tuple[str, str]],
        options: OrcOptions,
        converters: Mapping[pyorc.TypeKind, type[ORCConverter]] | None = None,
    ) -> None:
        """`converters` convert the values of `write_values`."""
        self._stream = stream
        self._file = tempfile.TemporaryFile()  # noqa: SIM115  # `__exit__` closes it
        self._rows = 0
        self._writer = pyorc.Writer(
            self._file,
            event_type(columns),
            batch_size=1,
            compression=pyorc.CompressionKind[options.codec.upper()],
            stripe_size=options.stripe,
            row_index_stride=options.stride,
            compression_block_size=-(-options.block // UNIT) * UNIT,
            dict_key_size_threshold=DICTIONARY,
            converters=dict(converters or _CONVERTERS),
        )

    def write(self, batch: pa.RecordBatch) -> None:
        """Write events, values as they are stored."""
        row = batch.column("row")
        values = zip(*(as_numbers(row.field(place), stored=True) for place in range(row.type.num_fields)), strict=True)
        self.write_values(batch, values if row.type.num_fields else repeat(()))

    def write_values(self, batch: pa.RecordBatch, rows: Iterable[tuple[Any, ...]]) -> None:
        """Write events whose rows are Python values; the last column of the batch is ignored."""
        ids = (column.to_pylist() for column in batch.columns[:-1])
        self._writer.writerows(zip(*ids, rows, strict=False))
        self._rows += batch.num_rows

    def __enter__(self) -> RowWriter:  # noqa: PYI034  # Self needs Python 3.11
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        with self._file:
            if kind is not None:
                return
            self._writer.write_intermediate_footer()
            self._writer.set_user_metadata(**hive_metadata(self._rows, self._last_keys(), deletes=False))
            self._writer.close()
            self._file.seek(0)
            shutil.copyfileobj(self._file, self._stream)

    def _last_keys(self) -> list[tuple[int, int, int]]:
        """Return (write id, bucket, row id) of the last row of each stripe."""
        end = self._file.tell()
        reader = pyorc.Reader(self._file, column_names=list(IDENTITY))
        lasts = [stripe.row_offset + len(stripe) - 1 for stripe in reader.iter_stripes()]
        out = []
        for last in lasts:
            reader.seek(last)
            out.append(next(reader))
        self._file.seek(end)
        return out
